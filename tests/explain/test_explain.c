/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reasons and explanations. */
#include <check.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include "explain/explain.h"
#include "util/util.h"
#include "../suite.h"

static char out[UVD_EXPLAINED_TEXT];

static const char *why_text(struct uvd_why why)
{
	ck_assert_uint_eq(uvd_why_text(out, sizeof(out), &why), strlen(out));
	return out;
}

START_TEST(test_codes_are_unique_lower_case_words)
{
	for (unsigned int i = 0; i < UVD_NUM_REASONS; i++) {
		const char *code = uvd_reasons[i].code;

		ck_assert_uint_eq(strspn(code, "abcdefghijklmnopqrstuvwxyz-"), strlen(code));
		for (unsigned int k = 0; k < i; k++)
			ck_assert_str_ne(code, uvd_reasons[k].code);
	}
}
END_TEST

/* Each slot of each row is one that the formatter knows, and all rows fit into the values and into a line. */
START_TEST(test_each_row_can_be_formatted)
{
	for (unsigned int i = 0; i < UVD_NUM_REASONS; i++) {
		struct uvd_why why = { .reason = &uvd_reasons[i] };

		for (unsigned int k = 0; k < UVD_WHY_VALUES; k++)
			why.values[k].word = "word";
		why_text(why);
		ck_assert_msg(!strchr(out, '{') && !strchr(out, '}'), "%s", out);
		ck_assert_uint_lt(strlen(out), sizeof(out) / 2);
		ck_assert_ptr_nonnull(uvd_reasons[i].source);
	}
}
END_TEST

START_TEST(test_values_have_the_form_that_the_text_names)
{
	static const struct uvd_reason forms = { "forms", "{a} {b:x} {c:s} {d:time} {e:state} {f:attrs}", "", "" };
	static const struct uvd_reason gid = { "gid", "{g:gid} {h:access} {a}", "{a:x}", "" };

	ck_assert_str_eq(why_text((struct uvd_why){ &forms,
						    { { 7 },
						      { 255 },
						      { .word = "w" },
						      { 3000000000 },
						      { IBV_QPS_RTR },
						      { IBV_QP_PORT | IBV_QP_PKEY_INDEX } } }),
			 "7 0xff w 3000 ms RTR PKEY_INDEX, PORT; ");
	ck_assert_str_eq(
		why_text((struct uvd_why){ &gid, { { 0xfe80ull << 48 }, { 1 }, { IBV_ACCESS_REMOTE_READ }, { 12 } } }),
		"fe80::1 REMOTE_READ 12; 0xc");
}
END_TEST

START_TEST(test_what_is_no_slot_stays)
{
	static const struct uvd_reason odd = { "odd", "{ {} {a:} {Name} {a", NULL, "" };

	ck_assert_str_eq(why_text((struct uvd_why){ &odd }), "{ {} {a:} {Name} {a");
}
END_TEST

START_TEST(test_text_names_request_result_and_remedy)
{
	struct uvd_explained e = {
		.kind = UVD_EXPLAINED_COMPLETION,
		.why = uvd_why(KEY_OTHER_PD, { .word = "l_key" }, { 0x112 }),
		.object = "QP",
		.number = 0x12,
		.status = IBV_WC_LOC_PROT_ERR,
		.opcode = IBV_WR_SEND,
		.wr_id = 1,
		.length = 64,
	};

	uvd_explained_text(out, sizeof(out), &e);
	ck_assert_str_eq(
		out,
		"QP 0x12: SEND of 64 bytes, wr_id 0x1: LOC_PROT_ERR: l_key 0x112 belongs to another PD; register the "
		"memory with the PD of the QP (or of its SRQ)");
}
END_TEST

START_TEST(test_text_that_is_too_long_is_cut)
{
	struct uvd_explained e = { .kind = UVD_EXPLAINED_CALL,
				   .verb = "MODIFY_QP",
				   .err = -EINVAL,
				   .why = uvd_why(FIELD, { .word = "x" }, { 1 }) };
	char small[20];

	ck_assert_uint_eq(uvd_explained_text(small, sizeof(small), &e), sizeof(small) - 1);
	ck_assert_str_eq(small, "MODIFY_QP: EINVAL: ");
	ck_assert_uint_eq(uvd_explained_json(small, sizeof(small), &e, "rxe0", 1), 0);
	ck_assert_str_eq(small, "");
}
END_TEST

START_TEST(test_json_has_the_values_by_name)
{
	struct uvd_explained e = {
		.kind = UVD_EXPLAINED_EVENT,
		.why = uvd_why(PEER_PSN, { 77 }, { 0x12 }, { 0 }, { 3 }),
		.object = "QP",
		.number = 0x12,
		.event = IBV_EVENT_QP_FATAL,
	};
	json_t *o, *values;

	ck_assert_uint_gt(uvd_explained_json(out, sizeof(out), &e, "rxe0", 42), 0);
	o = json_loads(out, 0, NULL);
	ck_assert_ptr_nonnull(o);
	ck_assert_str_eq(json_string_value(json_object_get(o, "reason")), "peer-psn");
	ck_assert_str_eq(json_string_value(json_object_get(o, "event")), "IBV_EVENT_QP_FATAL");
	ck_assert_int_eq(json_integer_value(json_object_get(o, "pid")), 42);
	values = json_object_get(o, "values");
	ck_assert_int_eq(json_integer_value(json_object_get(values, "psn")), 77);
	ck_assert_str_eq(json_string_value(json_object_get(values, "qpn")), "0x12");
	ck_assert_int_eq(json_integer_value(json_object_get(values, "retries")), 3);
	ck_assert_uint_eq(json_object_size(values), 4);
	json_decref(o);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("explain");

	tcase_add_test(tc, test_codes_are_unique_lower_case_words);
	tcase_add_test(tc, test_each_row_can_be_formatted);
	tcase_add_test(tc, test_values_have_the_form_that_the_text_names);
	tcase_add_test(tc, test_what_is_no_slot_stays);
	tcase_add_test(tc, test_text_names_request_result_and_remedy);
	tcase_add_test(tc, test_text_that_is_too_long_is_cut);
	tcase_add_test(tc, test_json_has_the_values_by_name);
	return run_suite("explain", tc);
}
