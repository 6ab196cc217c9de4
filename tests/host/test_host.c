/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* An engine in the test's own process gives back descriptors and charges. Each harness asks about charges at its end, too. */
#include "harness.h"
#include "../suite.h"

static struct harness h;

/* Asks for a completion channel, as h's client. response: where its number goes. Returns the dispatcher's result. */
static long ask_for_channel(void *response)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_create_comp_channel cmd;
	} call = { { IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, sizeof(call) / 4, 1 }, { (uintptr_t)response } };

	return uvd_dispatch_write_from(h.call, (uintptr_t)&call, sizeof(call));
}

static void begin(void)
{
	harness_open_with(&h, "null", &uvd_mem_process);
	ck_assert_int_eq(uv_get_context(h.fd, UV_METHOD, NULL, NULL), 0);
}

static void *response; /* a page of the client */

/* The engine has made sure before that it can write the number. Here the page becomes read-only in between. */
static int add_fd_and_lose_page(int fd)
{
	ck_assert_int_eq(mprotect(response, 4096, PROT_READ), 0);
	return fd;
}

START_TEST(test_descriptor_of_a_failed_call_is_taken_away)
{
	struct uvd_host_fds fds = uvd_host_own_fds;
	unsigned int before;
	int number;

	fds.add = add_fd_and_lose_page;
	response = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(response, MAP_FAILED);
	begin();
	before = suite_num_fds();
	ck_assert_int_eq(uvd_host_finish(h.call, ask_for_channel(response), &fds, 0, &number), -EFAULT);
	ck_assert_int_eq(number, -1);
	ck_assert_uint_eq(suite_num_fds(), before);
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
	ck_assert_int_eq(harness_finish(&h, h.call, ask_for_channel(&resp)), -EOPNOTSUPP);
	ck_assert_uint_eq(suite_num_fds(), before);
	h.refuse_grant = 0;
	ck_assert_int_gt(harness_finish(&h, h.call, ask_for_channel(&resp)), 0);
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
