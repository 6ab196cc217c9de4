/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Allow-lists: what decides (allow_cases.c), and the devices and users that they are for. */
#include "refusals.h"

START_TEST(test_allow_lists_decide_the_errno_and_the_log_line)
{
	refusals_run(&allow_cases[_i]);
}
END_TEST

/* `refused` of the status counts the refusals, whether the log shows them or not. */
START_TEST(test_refusals_count_at_every_log_level)
{
	static const char *const texts[] = { "user:1000:none", NULL };
	char text[4096];

	refusals_begin(texts);
	refusals_log(_i);
	for (unsigned int calls = 1; calls < 3; calls++) {
		ck_assert_int_eq(refusals_context(UV_METHOD), -EPERM);
		ck_assert_uint_eq(uvd_device_refused(h.dev), calls);
	}
	refusals_read_log(text, sizeof(text));
	ck_assert_msg(!!strstr(text, "is refused by the allow-list") == (_i >= UVD_WARN), "level %d: %s", _i, text);
	refusals_end();
}
END_TEST

/* ---- devices that cannot have a list ----------------------------------------------------------------------------- */

static const struct refusal_of_device bad[] = {
	{ { "verbs:base,REGMR" }, "allow: `REGMR` is no name of verbs of this device" },
	{ { "objects:PD", "user:7:objects:MRS" }, "allow: `MRS` is no name of objects" },
	{ { "ucap:no_such:access:LOCAL_WRITE" }, "the device has no User Capability `no_such`: add it with --ucaps" },
	{ { "access:LOCAL_WRITE,MW_BIND,REMOTE_READ" },
	  "a list with MW_BIND must have REMOTE_WRITE,REMOTE_ATOMIC, too" },
	{ { "verbs:all" }, "allow: a client can get around it with --memory=borrow", true },
	{ { "access:WRITE" }, "allow: `access:WRITE` contains `WRITE`, which is no access flag" },
};

START_TEST(test_device_with_a_list_that_cannot_be_enforced_does_not_begin)
{
	refusals_run_device(&bad[_i], allow_reg_remote_write);
}
END_TEST

static const struct {
	const char *text, *wrong; /* NULL: it is right */
} texts[] = {
	{ "none", NULL },
	{ "user:0:none", NULL },
	{ "user:root:access:LOCAL_WRITE, REMOTE_READ", NULL },
	{ "gids:fe80::1,::ffff:10.0.0.1", NULL },
	{ "all", "where `none` or KIND:WORD,... belongs" },
	{ "", "where `none` or KIND:WORD,... belongs" },
	{ "rights:LOCAL_WRITE", "none of user, ucap, verbs, objects, access, qp-types, pkeys, gids" },
	{ "user:", "lacks a word" },
	{ "user:nobody-is-called-so:none", "`nobody-is-called-so`, which is no user" },
	{ "user:4294967295:none", "which is no user id" },
	{ "user:99999999999999999999:none", "which is no user id" },
	{ "user:-1:none", "which is no user" },
	{ "ucap:0123456789012345678901234567890123456789012345678901234567890123:none", "a word that is too long" },
	{ "qp-types:", "lacks a word" },
	{ "qp-types:RC,,UD", "lacks a word" },
	{ "qp-types:rc", "`rc`, which is no type of QPs" },
	{ "access:0x1", "which is no access flag" },
	{ "gids:1", "`1`, which is no GID" },
	{ "pkeys:0x10000", "`0x10000`, which is no P_Key" },
	{ "pkeys:0", "`0`, which is no P_Key" },
	{ "pkeys:-1", "`-1`, which is no P_Key" },
	{ "pkeys:1x", "`1x`, which is no P_Key" },
};

START_TEST(test_wrong_text_has_a_message_that_names_the_word)
{
	const char *wrong = uvd_allow_check(texts[_i].text);

	if (texts[_i].wrong)
		ck_assert_msg(wrong && strstr(wrong, texts[_i].wrong), "%s: %s", texts[_i].text, wrong);
	else
		ck_assert_msg(!wrong, "%s: %s", texts[_i].text, wrong);
}
END_TEST

/* ---- mapped queues, capabilities, user namespaces ---------------------------------------------------------------- */

START_TEST(test_verbs_of_mapped_queues_come_with_the_queue)
{
	int err = 0;

	harness_init(&h, BACKEND);
	uvd_config_default(&h.config, uvd_persona_find("rxe"), 0);
	strcpy(h.config.backend, BACKEND);
	ck_assert_int_eq(
		uvd_engine_text_add(&h.engine, h.config.ibdev, UVD_TEXT_ALLOW, BASE ",POLL_CQ,CREATE_QP,POST_SEND"), 0);
	ck_assert_ptr_null(uvd_device_new(&h.engine, &h.config, &err));
	ck_assert_int_eq(err, -EINVAL);
	ck_assert_int_eq(uvd_engine_text_add(&h.engine, h.config.ibdev, UVD_TEXT_ALLOW, "verbs:POST_RECV"), 0);
	harness_start(&h, &uvd_mem_process);
	harness_close(&h);
}
END_TEST

/* A datagram's source GID is in the client's memory there. */
START_TEST(test_datagrams_of_mapped_queues_have_any_gid)
{
	struct uv_qp_attr attr = uv_qp_attr(0, 0);
	struct uv_qp qp;

	harness_init(&h, BACKEND);
	uvd_config_default(&h.config, uvd_persona_find("rxe"), 0);
	strcpy(h.config.backend, BACKEND);
	ck_assert_int_eq(uvd_engine_text_add(&h.engine, h.config.ibdev, UVD_TEXT_ALLOW, "gids:fe80::1"), 0);
	harness_start(&h, &uvd_mem_process);
	ck_assert_int_eq(refusals_context(UV_WRITE), 0);
	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &pd), 0);
	for (enum uv_front front = UV_WRITE; front <= UV_WRITE_EX; front += UV_WRITE_EX - UV_WRITE) {
		attr.type = IBV_QPT_UD;
		ck_assert_int_eq(uv_create_qp(h.fd, front, &attr, &qp), -EPERM);
		attr.type = IBV_QPT_RC;
		ck_assert_int_ne(uv_create_qp(h.fd, front, &attr, &qp), -EPERM);
	}
	harness_close(&h);
}
END_TEST

START_TEST(test_list_of_a_capability_counts_once_the_context_has_it)
{
	static const char *const lists[] = { "access:none", "user:1000:access:LOCAL_WRITE",
					     "ucap:perm_a:access:LOCAL_WRITE,REMOTE_WRITE", NULL };

	harness_init(&h, BACKEND);
	h.config.ucaps.num = 1;
	strcpy(h.config.ucaps.names[0], "perm_a");
	for (const char *const *t = lists; *t; t++)
		ck_assert_int_eq(uvd_engine_text_add(&h.engine, h.config.ibdev, UVD_TEXT_ALLOW, *t), 0);
	harness_start(&h, &uvd_mem_process);
	ck_assert_int_eq(refusals_objects(), 0);
	ck_assert_int_eq(allow_reg_remote_write(UV_WRITE), -EINVAL); /* a second context */
	ck_assert_int_eq(harness_reg_mr(&h, pd, mem, sizeof(mem), LW | RW, &(struct ib_uverbs_reg_mr_resp){}), -EPERM);
	uvd_file_allow_context(h.file, 0);
	ck_assert_int_eq(harness_reg_mr(&h, pd, mem, sizeof(mem), LW | RW, &(struct ib_uverbs_reg_mr_resp){}), -EPERM);
	uvd_file_allow_context(h.file, 1);
	ck_assert_int_eq(harness_reg_mr(&h, pd, mem, sizeof(mem), LW | RW, &(struct ib_uverbs_reg_mr_resp){}), 0);
	ck_assert_int_eq(harness_reg_mr(&h, pd, mem, sizeof(mem), RR, &(struct ib_uverbs_reg_mr_resp){}), -EPERM);
	harness_close(&h);
}
END_TEST

/* A user keeps its list under the ids of its user namespaces, and root's namespaces do not make their users root. */
START_TEST(test_list_of_a_user_holds_in_its_user_namespaces)
{
	static const struct {
		uid_t uids[3];
		unsigned int num;
		int err;
	} clients[] = { { { 1000 }, 1, -EPERM }, { { 100005, 1000 }, 2, -EPERM }, { { 1000, 100005, 0 }, 3, 0 },
			{ { 100005, 0 }, 2, 0 }, { { 0, 1000, 0 }, 3, -EPERM },	  { { 0 }, 1, -EPERM },
			{ { 0, 1001 }, 2, 0 } };
	struct uvd_account *account, *mine;
	int fd, err;

	harness_init(&h, BACKEND);
	ck_assert_int_eq(uvd_engine_text_add(&h.engine, h.config.ibdev, UVD_TEXT_ALLOW, "user:1000:none"), 0);
	ck_assert_int_eq(uvd_engine_text_add(&h.engine, h.config.ibdev, UVD_TEXT_ALLOW, "user:0:none"), 0);
	harness_start(&h, &uvd_mem_process);
	account = uvd_account_get(h.engine.accounts, clients[_i].uids, clients[_i].num);
	mine = h.account;
	h.account = account;
	fd = uv_open();
	h.account = mine;
	ck_assert_int_ge(fd, 0);
	err = uv_get_context(fd, UV_METHOD, NULL, NULL);
	ck_assert_int_eq(err, clients[_i].err);
	ck_assert_int_eq(uv_close(fd), 0);
	uvd_account_put(account);
	harness_close(&h);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, refusals_setup, NULL);
	tcase_set_timeout(tc, 30);
	tcase_add_loop_test(tc, test_allow_lists_decide_the_errno_and_the_log_line, 0, num_allow_cases);
	tcase_add_loop_test(tc, test_refusals_count_at_every_log_level, UVD_ERR, UVD_DEBUG + 1);
	tcase_add_loop_test(tc, test_device_with_a_list_that_cannot_be_enforced_does_not_begin, 0, UVD_COUNT(bad));
	tcase_add_loop_test(tc, test_wrong_text_has_a_message_that_names_the_word, 0, UVD_COUNT(texts));
	tcase_add_test(tc, test_verbs_of_mapped_queues_come_with_the_queue);
	tcase_add_test(tc, test_datagrams_of_mapped_queues_have_any_gid);
	tcase_add_test(tc, test_list_of_a_capability_counts_once_the_context_has_it);
	tcase_add_loop_test(tc, test_list_of_a_user_holds_in_its_user_namespaces, 0, 7);
	return run_suite(__FILE__, tc);
}
