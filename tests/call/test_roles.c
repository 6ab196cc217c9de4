/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The tables of calls: each field has a role, and the roles agree with what the kernel does. */
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>

#include "call/call.h"
#include "../suite.h"

/* Calls check() for each struct of the tables, and for the structs in their flexible arrays. */
static void for_each_struct(void (*check)(const struct uvd_struct *))
{
	for (const struct uvd_command_fields *c = uvd_commands_fields; c->command; c++) {
		check(c->request);
		check(c->response);
		if (c->request->tail_of)
			check(c->request->tail_of);
		if (c->response->tail_of)
			check(c->response->tail_of);
	}
	for (const struct uvd_attr_fields *a = uvd_attrs_fields; a->attr; a++)
		if (a->of)
			check(a->of);
	for (const struct uvd_flow_kind *k = uvd_flow_kinds; k->name; k++)
		check(k->of);
}

static const struct uvd_struct *request_of(const char *command)
{
	return uvd_command_fields(command)->request;
}

static const struct uvd_field *field_of(const struct uvd_struct *of, const char *name)
{
	const struct uvd_field *f = uvd_struct_find(of, name);

	ck_assert_msg(f, "%s has no field %s", of->name, name);
	return f;
}

static unsigned int num_fields;

static void has_roles(const struct uvd_struct *of)
{
	for (const struct uvd_field *f = of->fields; f->name; f++, num_fields++)
		ck_assert_msg(f->role != UVD_ROLE_UNKNOWN, "src/call/roles.txt has no row for %s.%s", of->name,
			      f->name);
	ck_assert_msg(!of->tail || of->tail_role != UVD_ROLE_UNKNOWN, "roles.txt has no row for %s.%s", of->name,
		      of->tail);
}

/* The headers of the build can be newer than roles.txt. Then this test says so. */
START_TEST(test_every_field_has_a_role)
{
	num_fields = 0;
	for_each_struct(has_roles);
	ck_assert_uint_gt(num_fields, 500);
	for (const struct uvd_attr_fields *a = uvd_attrs_fields; a->attr; a++)
		ck_assert_msg(a->role != UVD_ROLE_UNKNOWN, "%s", a->attr);
}
END_TEST

/* The texts of docs/replay.md: when an output of the roles in a row is compared. */
static const struct {
	const char *text;
	unsigned int needs;
} needs_texts[] = {
	{ "if both devices are on one machine: not by a replay", UVD_SAME_MACHINE },
	{ "| never |", UVD_SAME_RUN },
	{ "in a program; in a trace if the recorded device has the same driver", UVD_SAME_DRIVER },
	{ "in a program; not in a trace, in which a peer's address is replaced by the device's own", UVD_SAME_PEERS },
	{ "| all others |", 0 },
};

/* Returns what the row of docs/replay.md with this role says. */
static unsigned int documented_needs(const char *role)
{
	FILE *in = fopen(REPLAY_MD, "r");
	unsigned int found = 0, rows = 0;
	char line[512], quoted[32];

	ck_assert_msg(in, "%s", REPLAY_MD);
	snprintf(quoted, sizeof(quoted), "`%s`", role);
	while (fgets(line, sizeof(line), in))
		for (size_t i = 0; line[0] == '|' && i < sizeof(needs_texts) / sizeof(*needs_texts); i++) {
			if (!strstr(line, needs_texts[i].text))
				continue;
			rows++;
			if (strstr(line, quoted))
				found |= needs_texts[i].needs;
		}
	fclose(in);
	ck_assert_uint_eq(rows, sizeof(needs_texts) / sizeof(*needs_texts));
	return found;
}

START_TEST(test_the_docs_say_which_roles_are_compared)
{
	for (unsigned int role = 0; role < UVD_ROLES; role++) {
		const char *name = uvd_role_name(role);

		ck_assert_msg(name, "%u has no name", role);
		ck_assert_msg(documented_needs(name) == uvd_role_needs(role), "%s", name);
	}
}
END_TEST

static void words_are_there(const struct uvd_struct *of)
{
	for (const struct uvd_field *f = of->fields; f->name; f++) {
		const bool worded = f->role == UVD_ROLE_WORDS || f->role == UVD_ROLE_FLAGS;

		ck_assert_msg(!f->words || worded, "%s.%s", of->name, f->name);
		ck_assert_msg(!f->words || f->words->flags == (f->role == UVD_ROLE_FLAGS), "%s.%s", of->name, f->name);
	}
}

START_TEST(test_words_belong_to_words_and_flags)
{
	for_each_struct(words_are_there);
	ck_assert_str_eq(field_of(request_of("IB_USER_VERBS_CMD_MODIFY_QP"), "qp_state")->words->name, "ibv_qp_state");
}
END_TEST

static void is_small_where_it_must(const struct uvd_struct *of)
{
	for (const struct uvd_field *f = of->fields; f->name; f++) {
		ck_assert_uint_le(f->at + uvd_field_bytes(f), of->size);
		ck_assert_msg((f->role != UVD_ROLE_GID && f->role != UVD_ROLE_OWN_GID) || uvd_field_bytes(f) == 16,
			      "%s.%s", of->name, f->name);
		ck_assert_msg((f->role != UVD_ROLE_HANDLE && f->role != UVD_ROLE_FD) || (f->size == 4 && !f->count),
			      "%s.%s", of->name, f->name);
		ck_assert_msg((f->role != UVD_ROLE_ADDRESS && f->role != UVD_ROLE_AT) || (f->size == 8 && f->beside),
			      "%s.%s", of->name, f->name);
	}
}

START_TEST(test_roles_fit_the_sizes_of_their_fields)
{
	for_each_struct(is_small_where_it_must);
}
END_TEST

/* A chain of selectors that ended nowhere would keep uvd_field_is_read() busy for ever. */
static void ends_at_a_field_that_is_read(const struct uvd_struct *of)
{
	for (const struct uvd_field *f = of->fields; f->name; f++) {
		const struct uvd_field *s = f;

		for (unsigned int i = 0; s->selector; i++, s = &of->fields[s->selector - 1])
			ck_assert_msg(i < 4, "%s.%s", of->name, f->name);
	}
}

START_TEST(test_no_field_selects_itself)
{
	for_each_struct(ends_at_a_field_that_is_read);
}
END_TEST

START_TEST(test_attr_mask_selects_the_fields_of_modify_qp)
{
	const struct uvd_struct *of = request_of("IB_USER_VERBS_CMD_MODIFY_QP");
	struct ib_uverbs_modify_qp cmd = { .attr_mask = IBV_QP_STATE };
	const uint8_t *data = (const uint8_t *)&cmd;

	ck_assert(uvd_field_is_read(of, field_of(of, "qp_handle"), data, sizeof(cmd)));
	ck_assert(uvd_field_is_read(of, field_of(of, "qp_state"), data, sizeof(cmd)));
	ck_assert(!uvd_field_is_read(of, field_of(of, "cur_qp_state"), data, sizeof(cmd)));
	ck_assert(!uvd_field_is_read(of, field_of(of, "dest.dlid"), data, sizeof(cmd)));
	/* The GRH of an address is read if the mask selects the address and the address says that it has a GRH. */
	cmd.dest.is_global = 1;
	ck_assert(!uvd_field_is_read(of, field_of(of, "dest.dgid"), data, sizeof(cmd)));
	cmd.attr_mask = IBV_QP_AV;
	ck_assert(uvd_field_is_read(of, field_of(of, "dest.dgid"), data, sizeof(cmd)));
	ck_assert(!uvd_field_is_read(of, field_of(of, "alt_dest.dlid"), data, sizeof(cmd)));
	cmd.dest.is_global = 0;
	ck_assert(!uvd_field_is_read(of, field_of(of, "dest.dgid"), data, sizeof(cmd)));
	ck_assert(uvd_field_is_read(of, field_of(of, "dest.dlid"), data, sizeof(cmd)));
}
END_TEST

START_TEST(test_a_field_behind_the_end_is_not_read)
{
	const struct uvd_struct *of = request_of("IB_USER_VERBS_CMD_MODIFY_QP");
	const struct ib_uverbs_modify_qp cmd = { .attr_mask = IBV_QP_STATE };
	const struct uvd_field *f = field_of(of, "qp_state");

	ck_assert(uvd_field_is_read(of, f, (const uint8_t *)&cmd, f->at + 1));
	ck_assert(!uvd_field_is_read(of, f, (const uint8_t *)&cmd, f->at));
	/* The selector itself may be missing: nothing says then that the field is read. */
	ck_assert(!uvd_field_is_read(of, field_of(of, "dest.dlid"), (const uint8_t *)&cmd, 40));
}
END_TEST

START_TEST(test_opcode_selects_the_member_of_a_work_request)
{
	const struct uvd_struct *of = request_of("IB_USER_VERBS_CMD_POST_SEND")->tail_of;
	static const struct {
		unsigned int opcode;
		const char *has, *has_not;
	} cases[] = {
		{ IB_UVERBS_WR_RDMA_READ, "wr.rdma.rkey", "wr.atomic.rkey" },
		{ IB_UVERBS_WR_ATOMIC_FETCH_AND_ADD, "wr.atomic.swap", "wr.rdma.rkey" },
		{ IB_UVERBS_WR_SEND, "wr.ud.ah", "ex.imm_data" },
		{ IB_UVERBS_WR_SEND_WITH_IMM, "ex.imm_data", "ex.invalidate_rkey" },
		{ IB_UVERBS_WR_SEND_WITH_INV, "ex.invalidate_rkey", "ex.imm_data" },
		{ 200, "opcode", "wr.ud.ah" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct ib_uverbs_send_wr wr = { .opcode = cases[i].opcode };
		const uint8_t *data = (const uint8_t *)&wr;

		ck_assert_msg(uvd_field_is_read(of, field_of(of, cases[i].has), data, sizeof(wr)), "%s", cases[i].has);
		ck_assert_msg(!uvd_field_is_read(of, field_of(of, cases[i].has_not), data, sizeof(wr)), "%s",
			      cases[i].has_not);
	}
}
END_TEST

START_TEST(test_any_value_but_0_selects_what_has_no_mask)
{
	const struct uvd_struct *of = request_of("IB_USER_VERBS_CMD_CREATE_QP");
	struct ib_uverbs_create_qp cmd = {};
	const struct uvd_field *f = field_of(of, "srq_handle");

	ck_assert(!uvd_field_is_read(of, f, (const uint8_t *)&cmd, sizeof(cmd)));
	cmd.is_srq = 2;
	ck_assert(uvd_field_is_read(of, f, (const uint8_t *)&cmd, sizeof(cmd)));
}
END_TEST

/* The names of these fields suggest something else: readers that went by names took them for that. */
START_TEST(test_fields_mean_what_the_kernel_does_with_them)
{
	const struct uvd_struct *qp = request_of("IB_USER_VERBS_EX_CMD_CREATE_QP"),
				*xrcd = request_of("IB_USER_VERBS_CMD_OPEN_XRCD"),
				*open_qp = request_of("IB_USER_VERBS_CMD_OPEN_QP"),
				*wc = uvd_command_fields("IB_USER_VERBS_CMD_POLL_CQ")->response->tail_of;

	ck_assert_int_eq(field_of(qp, "source_qpn")->role, UVD_ROLE_QPN);
	ck_assert_int_eq(field_of(wc, "src_qp")->role, UVD_ROLE_QPN);
	ck_assert_int_eq(field_of(xrcd, "fd")->role, UVD_ROLE_FD);
	ck_assert_uint_eq(field_of(xrcd, "fd")->object, UVD_NO_OBJECT);
	ck_assert(uvd_field_is_of(field_of(qp, "rwq_ind_tbl_handle"), UVERBS_OBJECT_RWQ_IND_TBL));
	ck_assert(uvd_field_is_of(field_of(qp, "pd_handle"), UVERBS_OBJECT_PD));
	ck_assert(uvd_field_is_of(field_of(qp, "pd_handle"), UVERBS_OBJECT_XRCD));
	ck_assert(!uvd_field_is_of(field_of(open_qp, "pd_handle"), UVERBS_OBJECT_PD));
}
END_TEST

START_TEST(test_a_request_says_how_many_elements_follow)
{
	const struct uvd_struct *table = request_of("IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL"),
				*post = request_of("IB_USER_VERBS_CMD_POST_SEND");
	struct ib_uverbs_ex_create_rwq_ind_table ind = { .log_ind_tbl_size = 3 };
	const struct ib_uverbs_post_send send = { .wr_count = 5, .sge_count = 7 };

	ck_assert_uint_eq(uvd_struct_tail_count(table, (const uint8_t *)&ind, sizeof(ind)), 8);
	ind.log_ind_tbl_size = 64;
	ck_assert_uint_eq(uvd_struct_tail_count(table, (const uint8_t *)&ind, sizeof(ind)), UINT64_MAX);
	ck_assert_uint_eq(uvd_struct_tail_count(table, (const uint8_t *)&ind, 4), UINT64_MAX);
	ck_assert_uint_eq(uvd_struct_tail_count(post, (const uint8_t *)&send, sizeof(send)), 5);
	ck_assert_str_eq(uvd_struct_counter(post, "sge", UVD_ROLE_COUNT)->name, "sge_count");
	ck_assert_str_eq(uvd_struct_counter(post->tail_of, "sge", UVD_ROLE_COUNT)->name, "num_sge");
	/* A request can also say how many elements the response may have. */
	ck_assert_str_eq(uvd_struct_counter(request_of("IB_USER_VERBS_CMD_POLL_CQ"), "wc", UVD_ROLE_COUNT)->name, "ne");
	ck_assert_int_eq(table->tail_role, UVD_ROLE_HANDLE);
	ck_assert_uint_eq(table->tail_object, UVERBS_OBJECT_WQ);
}
END_TEST

START_TEST(test_an_address_has_its_length_or_its_key)
{
	const struct uvd_struct *reg = request_of("IB_USER_VERBS_CMD_REG_MR"),
				*wr = request_of("IB_USER_VERBS_CMD_POST_SEND")->tail_of;

	ck_assert_str_eq(uvd_field_beside(reg, field_of(reg, "start"))->name, "length");
	ck_assert_str_eq(uvd_field_beside(wr, field_of(wr, "wr.atomic.remote_addr"))->name, "wr.atomic.rkey");
	ck_assert_str_eq(uvd_field_beside(wr, field_of(wr, "wr.rdma.remote_addr"))->name, "wr.rdma.rkey");
}
END_TEST

/* Each command that destroys an object ends exactly one handle, and each that creates one has its handle in the response. */
START_TEST(test_commands_say_what_they_make_and_end)
{
	for (const struct uvd_command_fields *c = uvd_commands_fields; c->command; c++) {
		const bool destroys = strstr(c->command, "CMD_DESTROY_") || strstr(c->command, "CMD_DEALLOC_") ||
				      strstr(c->command, "CMD_DEREG_") || strstr(c->command, "CMD_CLOSE_") ||
				      strstr(c->command, "CMD_LEAVE_");
		unsigned int ends = 0;

		for (const struct uvd_field *f = c->request->fields; f->name; f++)
			ends += f->ends;
		ck_assert_msg(ends == destroys, "%s", c->command);
	}
	ck_assert(field_of(uvd_command_fields("IB_USER_VERBS_CMD_OPEN_QP")->response, "qp_handle")->makes);
	ck_assert(field_of(request_of("IB_USER_VERBS_CMD_REREG_MR"), "mr_handle")->renews);
}
END_TEST

static void reserved_bytes_are_of_no_field(const struct uvd_struct *of)
{
	for (const struct uvd_field *r = of->reserved; r->name; r++) {
		ck_assert_uint_le(uvd_field_end(r), of->size);
		for (const struct uvd_field *f = of->fields; f->name; f++)
			ck_assert_msg(f->selector || !strncmp(f->name, "param.conn.", 11) ||
					      r->at >= uvd_field_end(f) || f->at >= uvd_field_end(r),
				      "%s: %s, %s", of->name, r->name, f->name);
	}
}

/* But for a member of a union, which a field selects, or of an event's parameters, which the identifier's type selects. */
START_TEST(test_reserved_bytes_are_of_no_field)
{
	for_each_struct(reserved_bytes_are_of_no_field);
	ck_assert_str_eq(request_of("IB_USER_VERBS_CMD_ALLOC_MW")->reserved->name, "reserved");
	ck_assert_uint_eq(uvd_field_bytes(request_of("IB_USER_VERBS_CMD_ALLOC_MW")->reserved), 3);
}
END_TEST

START_TEST(test_big_endian_fields_are_read_and_written)
{
	const struct uvd_struct *wr = request_of("IB_USER_VERBS_CMD_POST_SEND")->tail_of;
	struct ib_uverbs_send_wr data = {};

	uvd_field_put(field_of(wr, "ex.imm_data"), 0x01020304, (uint8_t *)&data);
	ck_assert_mem_eq(&data.ex.imm_data, "\1\2\3\4", 4);
	ck_assert_uint_eq(uvd_field_get(field_of(wr, "ex.imm_data"), (const uint8_t *)&data), 0x01020304);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("roles");

	tcase_add_test(t, test_every_field_has_a_role);
	tcase_add_test(t, test_the_docs_say_which_roles_are_compared);
	tcase_add_test(t, test_words_belong_to_words_and_flags);
	tcase_add_test(t, test_roles_fit_the_sizes_of_their_fields);
	tcase_add_test(t, test_no_field_selects_itself);
	tcase_add_test(t, test_attr_mask_selects_the_fields_of_modify_qp);
	tcase_add_test(t, test_a_field_behind_the_end_is_not_read);
	tcase_add_test(t, test_opcode_selects_the_member_of_a_work_request);
	tcase_add_test(t, test_any_value_but_0_selects_what_has_no_mask);
	tcase_add_test(t, test_fields_mean_what_the_kernel_does_with_them);
	tcase_add_test(t, test_a_request_says_how_many_elements_follow);
	tcase_add_test(t, test_an_address_has_its_length_or_its_key);
	tcase_add_test(t, test_commands_say_what_they_make_and_end);
	tcase_add_test(t, test_reserved_bytes_are_of_no_field);
	tcase_add_test(t, test_big_endian_fields_are_read_and_written);
	return run_suite("call roles", t);
}
