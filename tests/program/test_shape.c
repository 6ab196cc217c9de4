/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The fields of calls as programs name them, and the values that random programs choose from. */
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "program/object.h"
#include "program/program.h"
#include "program/shape_values.h"
#include "../suite.h"

static const struct uvd_shape_field *field_find(const struct uvd_shape_fields *fields, const char *name)
{
	for (unsigned int i = 0; i < fields->n; i++)
		if (uvd_shape_field_is(&fields->f[i], name))
			return &fields->f[i];
	return NULL;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* Names that programs and their results have in files. */
static const struct {
	const char *command, *name;
	bool in;
	uint16_t at, size;
} names[] = {
	{ "ALLOC_PD", "handle", false, 0, 4 },
	{ "CREATE_QP", "handle", false, offsetof(struct ib_uverbs_create_qp_resp, qp_handle), 4 },
	{ "CREATE_COMP_CHANNEL", "fd", false, 0, 4 },
	{ "GET_CONTEXT", "fd", false, offsetof(struct ib_uverbs_get_context_resp, async_fd), 4 },
	{ "CREATE_SRQ", "srqn", false, offsetof(struct ib_uverbs_create_srq_resp, srqn), 4 },
	{ "MODIFY_QP", "dgid", true, offsetof(struct ib_uverbs_modify_qp, dest.dgid), 16 },
	{ "MODIFY_QP", "alt_dgid", true, offsetof(struct ib_uverbs_modify_qp, alt_dest.dgid), 16 },
	{ "MODIFY_QP", "av_port", true, offsetof(struct ib_uverbs_modify_qp, dest.port_num), 1 },
	{ "MODIFY_QP", "port_num", true, offsetof(struct ib_uverbs_modify_qp, port_num), 1 },
	{ "EX_MODIFY_QP", "alt_av_port", true, offsetof(struct ib_uverbs_ex_modify_qp, base.alt_dest.port_num), 1 },
	{ "QUERY_QP", "hop_limit", false, offsetof(struct ib_uverbs_query_qp_resp, dest.hop_limit), 1 },
	{ "CREATE_AH", "dgid", true, offsetof(struct ib_uverbs_create_ah, attr.grh.dgid), 16 },
	{ "CREATE_AH", "grh_reserved", true, offsetof(struct ib_uverbs_create_ah, attr.grh.reserved), 1 },
	{ "CREATE_AH", "dlid", true, offsetof(struct ib_uverbs_create_ah, attr.dlid), 2 },
	{ "EX_CREATE_FLOW", "size", true, offsetof(struct ib_uverbs_create_flow, flow_attr.size), 2 },
	{ "EX_MODIFY_CQ", "attr", true, offsetof(struct ib_uverbs_ex_modify_cq, attr), 4 },
	{ "EX_QUERY_DEVICE", "odp_caps", false, offsetof(struct ib_uverbs_ex_query_device_resp, odp_caps), 24 },
	{ "EX_QUERY_DEVICE", "rss_caps", false, offsetof(struct ib_uverbs_ex_query_device_resp, rss_caps), 16 },
	{ "POST_SEND", "ah", true, 24 + offsetof(struct ib_uverbs_send_wr, wr.ud.ah), 4 },
	{ "POST_SEND", "lkey", true, 24 + sizeof(struct ib_uverbs_send_wr) + 12, 4 },
	{ "POST_SRQ_RECV", "addr", true, 24 + sizeof(struct ib_uverbs_recv_wr), 8 },
	{ "EX_CREATE_RWQ_IND_TBL", "wq1", true, sizeof(struct ib_uverbs_ex_create_rwq_ind_table) + 4, 4 },
	/* The names of the kernel's structs */
	{ "ALLOC_PD", "pd_handle", false, 0, 4 },
	{ "GET_CONTEXT", "async_fd", false, offsetof(struct ib_uverbs_get_context_resp, async_fd), 4 },
	{ "MODIFY_QP", "dest.port_num", true, offsetof(struct ib_uverbs_modify_qp, dest.port_num), 1 },
	{ "POST_SEND", "wr.rdma.rkey", true, 24 + offsetof(struct ib_uverbs_send_wr, wr.rdma.rkey), 4 },
	{ "POST_SEND", "wr.ud.remote_qkey", true, 24 + offsetof(struct ib_uverbs_send_wr, wr.ud.remote_qkey), 4 },
	{ "EX_CREATE_FLOW", "flow_attr.type", true, offsetof(struct ib_uverbs_create_flow, flow_attr.type), 4 },
};

START_TEST(test_programs_name_fields_as_before_and_as_the_kernel)
{
	const struct uvd_shape_command *c = uvd_shape_command(names[_i].command);
	const struct uvd_shape_field *f;

	ck_assert_ptr_nonnull(c);
	f = field_find(names[_i].in ? &c->in : &c->out, names[_i].name);
	ck_assert_msg(f, "%s has no %s", names[_i].command, names[_i].name);
	ck_assert_uint_eq(f->at, names[_i].at);
	ck_assert_uint_eq(f->size, names[_i].size);
}
END_TEST

/* Outputs of attributes: their names, and sizes of attributes that have none of their own. */
START_TEST(test_attributes_have_the_names_of_their_values)
{
	static const struct {
		const char *attr, *name;
		uint16_t size, bytes;
	} attrs[] = {
		{ "create_cq_resp_cqe", "cqe", 4, 4 },
		{ "create_qp_resp_qp_num", "qpn", 4, 4 },
		{ "create_qp_resp_cap", "max_inline_data", 20, 4 },
		{ "destroy_cq_resp", "async_events_reported", 8, 4 },
		{ "query_gid_table_resp_num_entries", "entries", 8, 8 },
		{ "query_gid_table_resp_entries", "netdev_ifindex", 640, 4 },
		{ "create_qp_cap", "max_send_wr", 20, 4 },
		{ "create_cq_cqe", UVD_SHAPE_VALUE, 4, 4 },
		{ "create_cq_flags", UVD_SHAPE_VALUE, 4, 4 },
		{ "create_qp_type", UVD_SHAPE_VALUE, 8, 8 },
	};

	for (unsigned int i = 0; i < UVD_COUNT(attrs); i++) {
		const struct uvd_shape_attr *a = uvd_shape_attr(attrs[i].attr);
		const struct uvd_shape_field *f = a ? field_find(&a->fields, attrs[i].name) : NULL;

		ck_assert_msg(f, "%s has no %s", attrs[i].attr, attrs[i].name);
		ck_assert_msg(f->size == attrs[i].bytes, "%s", attrs[i].attr);
		if (strcmp(attrs[i].attr, "destroy_cq_resp"))
			ck_assert_msg(a->size == attrs[i].size, "%s", attrs[i].attr);
	}
	ck_assert_uint_eq(uvd_shape_attr("query_gid_table_resp_entries")->fields.stride, 32);
}
END_TEST

/* ---- values ------------------------------------------------------------------------------------------------------ */

static bool list_has(const struct uvd_field *list, const char *pattern)
{
	for (const struct uvd_field *f = list; f->name; f++)
		if (uvd_prog_list_match(pattern, f->name))
			return true;
	return false;
}

/* Has the struct, if the pattern is its name, a field for each pattern of `fields`? */
static bool struct_has(const struct uvd_struct *of, const char *name, const char *fields)
{
	char pattern[64];
	int used;

	if (!uvd_prog_list_match(name, of->name))
		return false;
	for (; sscanf(fields, "%63s%n", pattern, &used) == 1; fields += used)
		if (!list_has(of->fields, pattern) && !list_has(of->reserved, pattern))
			return false;
	return true;
}

/* A row that matches nothing is about a field that has another name. */
START_TEST(test_each_row_of_values_is_about_a_field)
{
	const struct uvd_shape_values *v = &uvd_shape_values[_i];
	char pattern[64];
	int used;

	for (const char *at = v->structs; sscanf(at, "%63s%n", pattern, &used) == 1; at += used) {
		bool found = false;

		for (const struct uvd_command_fields *c = uvd_commands_fields; c->command && !found; c++) {
			const struct uvd_struct *of[] = { c->request, c->request->tail_of };

			for (unsigned int i = 0; i < UVD_COUNT(of); i++)
				found |= of[i] && struct_has(of[i], pattern, v->fields);
		}
		for (const struct uvd_attr_fields *a = uvd_attrs_fields; a->attr && !found; a++)
			found = a->of && struct_has(a->of, pattern, v->fields);
		ck_assert_msg(found, "no %s has %s", pattern, v->fields);
	}
}
END_TEST

/* The words of a field that refers to an object have that object, so that random programs use those that they have made. */
START_TEST(test_a_handle_is_one_of_its_object)
{
	const struct uvd_shape_command *c;
	char word[40];

	for (unsigned int i = 0; (c = uvd_shape_command_at(i)); i++)
		for (unsigned int f = 0; f < c->in.n; f++) {
			const struct uvd_field *field = c->in.f[f].field;

			if (!field || (field->role != UVD_ROLE_HANDLE && field->role != UVD_ROLE_FD) ||
			    field->object == UVD_NO_OBJECT)
				continue;
			snprintf(word, sizeof(word), "<%s>", uvd_shape_object_name(field->object));
			ck_assert_msg(c->in.f[f].good && strstr(c->in.f[f].good, word), "%s.%s", c->name, field->name);
		}
	ck_assert_str_eq(field_find(&uvd_shape_command("OPEN_QP")->in, "pd_handle")->good, "<xrcd>");
	ck_assert_str_eq(field_find(&uvd_shape_command("CREATE_QP")->in, "pd_handle")->good, "<pd>");
}
END_TEST

START_TEST(test_values_follow_from_roles)
{
	const struct uvd_shape_command *post = uvd_shape_command("POST_SEND"), *modify = uvd_shape_command("MODIFY_QP");

	ck_assert_str_eq(field_find(&post->in, "lkey")->good, "<lkey> 0");
	ck_assert_str_eq(field_find(&post->in, "wr_count")->good, "1 0 2 -1");
	ck_assert_str_eq(field_find(&modify->in, "cur_qp_state")->good, "0 1 2 3 4 5 6 7");
	ck_assert_str_eq(field_find(&uvd_shape_command("OPEN_XRCD")->in, "fd")->good, "-1");
	ck_assert_str_eq(field_find(&uvd_shape_command("CREATE_CQ")->in, "reserved")->good, "0 1");
	ck_assert_str_eq(field_find(&uvd_shape_command("ALLOC_MW")->in, "reserved")->good, "x000000 x010000");
}
END_TEST

/* Random programs leave out what is in the bytes of another field. */
START_TEST(test_fields_with_values_do_not_overlap)
{
	const struct uvd_shape_command *c;

	for (unsigned int i = 0; (c = uvd_shape_command_at(i)); i++)
		for (unsigned int f = 0, end = 0; f < c->in.n; f++) {
			if (!c->in.f[f].good)
				continue;
			ck_assert_msg(c->in.f[f].at >= end, "%s.%s", c->name, c->in.f[f].name);
			end = c->in.f[f].at + c->in.f[f].size;
			ck_assert_msg(end <= c->in_size, "%s.%s", c->name, c->in.f[f].name);
		}
}
END_TEST

/* ---- commands ---------------------------------------------------------------------------------------------------- */

START_TEST(test_commands_say_what_they_make_and_end)
{
	static const struct {
		const char *command, *makes, *ends;
	} commands[] = {
		{ "GET_CONTEXT", "context", NULL }, { "CREATE_COMP_CHANNEL", "channel", NULL },
		{ "OPEN_QP", "qp", NULL },	    { "CREATE_XSRQ", "srq", NULL },
		{ "OPEN_XRCD", "xrcd", NULL },	    { "EX_CREATE_RWQ_IND_TBL", "rwq_ind_tbl", NULL },
		{ "DEALLOC_PD", NULL, "pd" },	    { "DEREG_MR", NULL, "mr" },
		{ "CLOSE_XRCD", NULL, "xrcd" },	    { "EX_DESTROY_WQ", NULL, "wq" },
		{ "REREG_MR", NULL, NULL },	    { "QUERY_QP", NULL, NULL },
	};

	for (unsigned int i = 0; i < UVD_COUNT(commands); i++) {
		const struct uvd_shape_command *c = uvd_shape_command(commands[i].command);

		ck_assert_ptr_nonnull(c);
		ck_assert_pstr_eq(c->makes, commands[i].makes);
		ck_assert_pstr_eq(c->ends, commands[i].ends);
	}
}
END_TEST

/* A request with a flexible array has one element of it and one scatter/gather element, or two handles. */
START_TEST(test_requests_have_room_for_what_follows_them)
{
	ck_assert_uint_eq(uvd_shape_command("POST_SEND")->in_size, sizeof(struct ib_uverbs_post_send) +
									   sizeof(struct ib_uverbs_send_wr) +
									   sizeof(struct ib_uverbs_sge));
	ck_assert_uint_eq(uvd_shape_command("EX_CREATE_RWQ_IND_TBL")->in_size,
			  sizeof(struct ib_uverbs_ex_create_rwq_ind_table) + 2 * sizeof(uint32_t));
	ck_assert_uint_eq(uvd_shape_command("POLL_CQ")->uhw_out, sizeof(struct ib_uverbs_wc));
	ck_assert_uint_eq(uvd_shape_command("CREATE_QP")->uhw_out, 32);
	ck_assert_uint_eq(uvd_shape_command("EX_CREATE_FLOW")->in_size, sizeof(struct ib_uverbs_create_flow));
}
END_TEST

START_TEST(test_commands_come_by_number_and_extended_ones_last)
{
	const struct uvd_shape_command *before = uvd_shape_command_at(0), *c;

	for (unsigned int i = 1; (c = uvd_shape_command_at(i)); i++, before = c)
		ck_assert_msg(c->ex > before->ex || (c->ex == before->ex && c->number > before->number), "%s", c->name);
	ck_assert_str_eq(before->name, "EX_MODIFY_CQ");
}
END_TEST

/* ---- runs -------------------------------------------------------------------------------------------------------- */

enum { HANDLE = 77 };

static int device_open(struct uvd_prog_run *run)
{
	return dup(0);
}

static ssize_t device_write(int fd, const void *bytes, size_t len)
{
	const uint32_t handle = HANDLE;
	uint64_t response;

	memcpy(&response, (const uint8_t *)bytes + sizeof(struct ib_uverbs_cmd_hdr), sizeof(response));
	/* Other commands do not begin with the address of a response. */
	if (response >= UVD_PROG_ARENA && response < UVD_PROG_ARENA + UVD_PROG_SLOT_SIZE)
		memcpy((void *)response, &handle, sizeof(handle));
	return len;
}

static const struct uvd_prog_node_ops device_ops = { .open = device_open, .write = device_write };
static struct uvd_prog program;

/* Runs a program, whose calls make the object HANDLE, in a child. */
static struct uvd_prog_run *run_program(const char *text)
{
	struct uvd_prog_run *run = uvd_prog_run_new_with(&device_ops, "fake", 0);
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	const char *why = "";

	ck_assert_ptr_nonnull(run);
	memset(&program, 0, sizeof(program));
	ck_assert_msg(!uvd_prog_parse(&program, in, &why), "%s", why);
	fclose(in);
	uvd_prog_run_start(run, &program);
	uvd_prog_run_wait(run);
	ck_assert_str_eq(run->trouble, "");
	return run;
}

/* The process that runs the calls is a child: its records must mean the same in its parent. */
START_TEST(test_outputs_of_a_run_have_names_in_the_process_that_started_it)
{
	struct uvd_prog_run *run = run_program("write ALLOC_PD\n");
	uint64_t value;

	ck_assert(uvd_prog_output(&run->records[0], "handle", &value));
	ck_assert_uint_eq(value, HANDLE);
	ck_assert(uvd_prog_output(&run->records[0], "pd_handle", &value));
	uvd_prog_run_free(run);
}
END_TEST

/* Members of a union are in the same bytes, and a number is the beginning of a longer field. */
START_TEST(test_a_field_that_is_given_keeps_its_bytes)
{
	struct uvd_prog_run *run = run_program("write POST_SEND wr.rdma.remote_addr=0x1122334455667788\n"
					       "write MODIFY_QP dgid=5\n"
					       "write MODIFY_QP dest.port_num=7\n");
	uint64_t value;

	ck_assert(uvd_prog_input(&run->records[0], "wr.rdma.remote_addr", &value));
	ck_assert_uint_eq(value, 0x1122334455667788);
	ck_assert(uvd_prog_input(&run->records[1], "dgid.begin", &value));
	ck_assert_uint_eq(value, 5);
	ck_assert(uvd_prog_input(&run->records[1], "dgid", &value));
	ck_assert_uint_eq(value, 0);
	ck_assert(uvd_prog_input(&run->records[2], "av_port", &value));
	ck_assert_uint_eq(value, 7);
	uvd_prog_run_free(run);
}
END_TEST

/* As files have them that were recorded before the fields of EX_DESTROY_WQ had names. */
START_TEST(test_results_can_name_all_bytes_of_an_output)
{
	struct uvd_prog_run *run = run_program("write ALLOC_PD\n= ok out+0=x4e000000\n"),
			    *expected = uvd_prog_run_new_with(&device_ops, "fake", 0);
	unsigned int at;
	uint64_t value;

	ck_assert_ptr_null(uvd_prog_expect_run(&program, run, expected, &at));
	ck_assert(uvd_prog_output(&expected->records[0], "handle", &value));
	ck_assert_uint_eq(value, 0x4e);
	uvd_prog_run_free(expected);
	uvd_prog_run_free(run);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("shape");
	unsigned int rows = 0;

	while (uvd_shape_values[rows].structs)
		rows++;
	tcase_add_loop_test(t, test_programs_name_fields_as_before_and_as_the_kernel, 0, UVD_COUNT(names));
	tcase_add_test(t, test_attributes_have_the_names_of_their_values);
	tcase_add_loop_test(t, test_each_row_of_values_is_about_a_field, 0, rows);
	tcase_add_test(t, test_a_handle_is_one_of_its_object);
	tcase_add_test(t, test_values_follow_from_roles);
	tcase_add_test(t, test_fields_with_values_do_not_overlap);
	tcase_add_test(t, test_commands_say_what_they_make_and_end);
	tcase_add_test(t, test_requests_have_room_for_what_follows_them);
	tcase_add_test(t, test_commands_come_by_number_and_extended_ones_last);
	tcase_add_test(t, test_a_field_that_is_given_keeps_its_bytes);
	tcase_add_test(t, test_results_can_name_all_bytes_of_an_output);
	tcase_add_test(t, test_outputs_of_a_run_have_names_in_the_process_that_started_it);
	return run_suite("program: fields of calls", t);
}
