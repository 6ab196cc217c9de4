/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What an engine in the test's own process gives back. Each harness ends with the same question about charges. */
#include "harness.h"
#include "../suite.h"

static struct harness h;

/* Asks for a completion channel, as h's client. response: where its number goes. Returns what write() does. */
static long make_channel(uint64_t response)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_create_comp_channel cmd;
	} call = { { IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, sizeof(call) / 4, 1 }, { response } };

	return harness_finish(&h, h.call, uvd_dispatch_write_from(h.call, (uintptr_t)&call, sizeof(call)));
}

static void begin(void)
{
	harness_open_with(&h, "null", &uvd_mem_process);
	ck_assert_int_eq(uv_get_context(h.fd, UV_METHOD, NULL, NULL), 0);
}

START_TEST(test_descriptor_of_a_failed_call_is_taken_away)
{
	unsigned int before;

	begin();
	before = suite_num_fds();
	ck_assert_int_eq(make_channel(0), -EFAULT);
	ck_assert_uint_eq(suite_num_fds(), before);
	ck_assert_int_eq(h.granted, -1);
	harness_close(&h);
}
END_TEST

START_TEST(test_refused_grant_makes_no_descriptor)
{
	struct ib_uverbs_create_comp_channel_resp resp;
	unsigned int before;

	begin();
	before = suite_num_fds();
	h.refuse_grant = EPERM;
	ck_assert_int_eq(make_channel((uintptr_t)&resp), -EOPNOTSUPP);
	ck_assert_uint_eq(suite_num_fds(), before);
	h.refuse_grant = 0;
	ck_assert_int_gt(make_channel((uintptr_t)&resp), 0);
	ck_assert_int_eq(resp.fd, h.granted);
	close(h.granted);
	harness_close(&h);
}
END_TEST

START_TEST(test_what_is_still_charged_is_told)
{
	char text[256];

	begin();
	harness_close_file(&h);
	ck_assert(!uvd_host_charged(&h.engine, text, sizeof(text), 10));
	ck_assert_int_eq(uvd_account_charge(h.account, UVD_RES_FILES, 2), 0);
	ck_assert(uvd_host_charged(&h.engine, text, sizeof(text), 0));
	ck_assert_str_eq(text, "2 open files of devices charged");
	uvd_account_uncharge(h.account, UVD_RES_FILES, 2);
	harness_close(&h);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("host");

	tcase_add_test(t, test_descriptor_of_a_failed_call_is_taken_away);
	tcase_add_test(t, test_refused_grant_makes_no_descriptor);
	tcase_add_test(t, test_what_is_still_charged_is_told);
	return run_suite("host", t);
}
