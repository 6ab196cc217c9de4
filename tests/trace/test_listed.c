/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl replay: the list of differences asks about a call of a trace. */
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>

#include "replay/replay.h"
#include "../suite.h"

enum { QP = 5 };

static struct uvd_replay r;
static struct uvd_replay_file file = { .file = 1 };
static struct uvd_trace_open client;
static struct uvd_script script;
static struct uvd_trace_decoded was;
static struct uvd_tree_entry entry;
static struct uvd_replay_call call;

static void setup(void)
{
	r = (struct uvd_replay){ .qps = json_object() };
	script = (struct uvd_script){};
	was = (struct uvd_trace_decoded){ .open = &client, .script = &script, .row = &entry.row };
	uvd_trace_decoded_start(&was);
	uvd_trace_handle(&was, "qp_handle", UVERBS_OBJECT_QP, QP);
	entry = (struct uvd_tree_entry){ .row = { .kind = UVERBSD_TREE_COMMAND, .id = IB_USER_VERBS_CMD_MODIFY_QP } };
	strcpy(entry.row.name, "IB_USER_VERBS_CMD_MODIFY_QP");
	call = (struct uvd_replay_call){ .r = &r,
					 .f = &file,
					 .was = &was,
					 .row = &entry.row,
					 .values = json_pack("{s:i}", "attr_mask", 3),
					 .attrs = json_array() };
}

static void teardown(void)
{
	json_decref(r.qps);
	uvd_trace_decoded_free(&was);
	json_decref(call.values);
	json_decref(call.attrs);
	uvd_prog_list_free(&r.list);
}

/* The list has one row: with these conditions the kernel returns EINVAL, and uverbsd succeeds. */
static bool listed_when(const char *when)
{
	char text[256];
	bool listed;

	snprintf(text, sizeof(text), "| row | MODIFY_QP UVERBSD_X | result | EINVAL | ok | %s | why |", when);
	ck_assert(uvd_prog_list_add(&r.list, text));
	listed = uvd_replay_result_agrees(&call, -EINVAL, 0);
	ck_assert_uint_eq(r.list.rows[0].hits, listed);
	uvd_prog_list_free(&r.list);
	memset(&r.list, 0, sizeof(r.list));
	return listed;
}

START_TEST(test_a_row_holds_for_the_sides_that_it_names)
{
	ck_assert(uvd_prog_list_add(&r.list, "| row | MODIFY_QP | result | EINVAL | ok | | why |"));
	ck_assert(uvd_replay_result_agrees(&call, -EINVAL, 0));
	ck_assert(!uvd_replay_result_agrees(&call, 0, -EINVAL));
	/* The trace is ours, and the kernel's device makes its calls again. */
	r.kernel = true;
	ck_assert(uvd_replay_result_agrees(&call, 0, -EINVAL));
	ck_assert(!uvd_replay_result_agrees(&call, -EINVAL, 0));
	/* It is the kernel's call that failed. */
	ck_assert(uvd_prog_list_add(&r.list, "| failed | MODIFY_QP | result | ENOMEM | ok | failed | why |"));
	ck_assert(uvd_replay_result_agrees(&call, 0, -ENOMEM));
	strcpy(entry.row.name, "IB_USER_VERBS_CMD_CREATE_QP");
	ck_assert(!uvd_replay_result_agrees(&call, 0, -EINVAL));
}
END_TEST

START_TEST(test_conditions_ask_for_inputs_and_the_header)
{
	ck_assert(listed_when("attr_mask=3"));
	ck_assert(!listed_when("attr_mask=4"));
	ck_assert(listed_when("attr_mask&2 attr_mask<4"));
	ck_assert(!listed_when("attr_mask&2 attr_mask>3"));
	ck_assert(!listed_when("no_input=0"));
	ck_assert(listed_when("command=26"));
	ck_assert(!listed_when("object=0"));
	ck_assert(listed_when("front=write failed"));
	call.ioctl = true;
	ck_assert(listed_when("front=invoke object=0"));
	entry.row.flags = UVERBSD_TREE_COMMAND_EX;
	ck_assert(listed_when("command=0x8000001a"));
	entry.row.kind = UVERBSD_TREE_METHOD;
	entry.row.object = 7;
	ck_assert(listed_when("front=method object=7 method=26"));
	ck_assert(!listed_when("command=26"));
}
END_TEST

START_TEST(test_conditions_ask_for_attributes_by_patterns)
{
	ck_assert(!listed_when("with=create_cq_*"));
	json_array_append_new(call.attrs, json_string("uhw_in"));
	json_array_append_new(call.attrs, json_string("create_cq_flags"));
	ck_assert(listed_when("with=create_cq_*"));
	ck_assert(!listed_when("with=create_cq"));
}
END_TEST

START_TEST(test_conditions_ask_for_what_was_done_to_the_qp)
{
	ck_assert(!listed_when("qp_now=0")); /* the trace did not create it */
	was.creates = true;
	was.created = QP;
	was.created_object = UVERBS_OBJECT_QP;
	uvd_replay_qp_note(&call, "CREATE_QP");
	was.creates = false;
	ck_assert(listed_when("qp_now=0"));
	ck_assert(!listed_when("after=MODIFY_QP"));
	json_object_set_new(call.values, "qp_state", json_integer(2));
	uvd_replay_qp_note(&call, "MODIFY_QP");
	ck_assert(listed_when("qp_now=1,2 after=MODIFY_QP"));
	ck_assert(!listed_when("qp_now=0"));
	ck_assert(!listed_when("after=ATTACH_MCAST"));
}
END_TEST

START_TEST(test_a_condition_knows_recorded_devices_that_shared_their_queues)
{
	ck_assert(!listed_when("mapped_queues=1"));
	script.view.driver_id = RDMA_DRIVER_RXE;
	ck_assert(listed_when("mapped_queues=1"));
}
END_TEST

START_TEST(test_a_knob_holds_for_no_call_of_a_trace)
{
	ck_assert(!listed_when("!len"));
}
END_TEST

START_TEST(test_an_output_is_listed_by_its_name_or_that_of_its_struct)
{
	json_t *two = json_integer(2), *three = json_integer(3);

	strcpy(entry.row.name, "IB_USER_VERBS_CMD_CREATE_CQ");
	ck_assert(uvd_prog_list_add(&r.list, "| a | CREATE_CQ | cqe | 0x2 | * | cqe=2 | why |"));
	ck_assert(uvd_prog_list_add(&r.list, "| c | CREATE_CQ | cqe | * | * | other=2 | why |"));
	ck_assert(uvd_prog_list_add(&r.list, "| b | CREATE_CQ | caps | * | 0x3 | | why |"));
	ck_assert(uvd_replay_output_agrees(&call, "resp_cqe", two, three, false));
	ck_assert(!uvd_replay_output_agrees(&call, "resp_cqe", three, two, false));
	ck_assert(uvd_replay_output_agrees(&call, "caps.flags", two, three, false));
	ck_assert(!uvd_replay_output_agrees(&call, "caps.flags", three, two, false));
	ck_assert(!uvd_replay_output_agrees(&call, "other", two, three, false));
	r.kernel = true;
	ck_assert(uvd_replay_output_agrees(&call, "resp_cqe", three, two, false));
	ck_assert_uint_eq(r.list.rows[0].hits, 2);
	ck_assert_uint_eq(r.list.rows[1].hits, 0);
	json_decref(two);
	json_decref(three);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("listed");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_a_row_holds_for_the_sides_that_it_names);
	tcase_add_test(tc, test_conditions_ask_for_inputs_and_the_header);
	tcase_add_test(tc, test_conditions_ask_for_attributes_by_patterns);
	tcase_add_test(tc, test_conditions_ask_for_what_was_done_to_the_qp);
	tcase_add_test(tc, test_a_condition_knows_recorded_devices_that_shared_their_queues);
	tcase_add_test(tc, test_a_knob_holds_for_no_call_of_a_trace);
	tcase_add_test(tc, test_an_output_is_listed_by_its_name_or_that_of_its_struct);
	return run_suite("listed differences of traces", tc);
}
