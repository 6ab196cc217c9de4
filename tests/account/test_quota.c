/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Quotas of devices: their texts, and the charges of accounts that have one. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <uverbsd/backend.h>
#include <uverbsd/log.h>
#include <uverbsd/schema.h>
#include "account/account.h"
#include "util/util.h"
#include "../suite.h"
#include "storm.h"

#define PDS (UVD_RES_OBJECT + UVERBS_OBJECT_PD)
#define QPS (UVD_RES_OBJECT + UVERBS_OBJECT_QP)

static struct uvd_account_limits limits;
static struct uvd_accounts *accounts;
static struct uvd_quota *quota;

static void set_up(void)
{
	uvd_account_limits_init(&limits);
	limits.max[PDS] = 4;
	limits.limit_root = true;
	accounts = uvd_accounts_new(&limits, NULL);
	quota = uvd_quota_new("hfi1_0");
}

static void tear_down(void)
{
	uvd_quota_put(quota);
	uvd_accounts_free(accounts);
}

static void add(const char *text)
{
	const char *wrong = uvd_quota_add(quota, text);

	ck_assert_msg(!wrong, "`%s` %s", text, wrong);
}

static struct uvd_account *on_device(uid_t a, uid_t b)
{
	const uid_t uids[] = { a, b };
	struct uvd_account *account = uvd_account_get(accounts, uids, 2), *mine;

	mine = uvd_account_on_device(account, quota);
	uvd_account_put(account);
	return mine;
}

/* see() adds up here how much all users hold of the first device. */
static uint64_t held;

static void see(void *arg, const char *device, uid_t uid, enum uvd_resource res, uint64_t used, uint64_t max)
{
	ck_assert_str_eq(device, "hfi1_0");
	held += used;
}

static uint64_t holds(void)
{
	held = 0;
	uvd_accounts_each_quota(accounts, see, NULL);
	return held;
}

static uint64_t held_of_daemon;

static void see_daemon(void *arg, uid_t uid, enum uvd_resource res, uint64_t used, uint64_t max)
{
	held_of_daemon += used;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static const struct {
	const char *text, *wrong; /* NULL: it is right */
} texts[] = {
	{ "qps:1", NULL },
	{ "qps:0x10 mrs:unlimited", NULL },
	{ "user:root:objects:1, registered:9223372036854775807", NULL },
	{ "user:12:comp-cntrs:0", NULL },
	{ "", "has `` where RESOURCE:N belongs" },
	{ "none", "has `none` where RESOURCE:N belongs" },
	{ "qps:1,mrs", "has `mrs` where RESOURCE:N belongs" },
	{ "qps:", "lacks a word before ``" },
	{ "qps:1,,mrs:1", "contains `,mrs`, which is no resource" },
	{ ":1", "lacks a word before `:1`" },
	{ "qp:1", "contains `qp`, which is no resource such as qps" },
	{ "qps:x", "contains `x`, which is neither a number nor `unlimited`" },
	{ "qps:1x", "contains `1x`, which is neither a number nor `unlimited`" },
	{ "qps:-1", "contains `-1`, which is neither a number nor `unlimited`" },
	{ "qps:9223372036854775808", "which is neither a number nor `unlimited`" },
	{ "qps:99999999999999999999", "which is neither a number nor `unlimited`" },
	{ "files:1", "contains `files`, of which a device has no quota" },
	{ "bytes:1", "contains `bytes`, of which a device has no quota" },
	{ "calls:1", "contains `calls`, of which a device has no quota" },
	{ "user:", "lacks a word" },
	{ "user:nobody-is-called-so:qps:1", "names `nobody-is-called-so`, which is no user" },
	{ "user:4294967295:qps:1", "names `4294967295`, which is no user id" },
	{ "user:-1:qps:1", "names `-1`, which is no user" },
	{ "user:7", "has `` where RESOURCE:N belongs" },
	{ "ucap:perm:qps:1", "names `ucap`, but a quota is a user's, or everybody's" },
	{ "0123456789012345678901234567890123456789012345678901234567890123:1", "has a word that is too long" },
};

START_TEST(test_wrong_text_has_a_message_that_names_the_word)
{
	const char *wrong = uvd_quota_check(texts[_i].text);

	if (texts[_i].wrong)
		ck_assert_msg(wrong && strstr(wrong, texts[_i].wrong), "%s: %s", texts[_i].text, wrong);
	else
		ck_assert_msg(!wrong, "%s: %s", texts[_i].text, wrong);
}
END_TEST

START_TEST(test_text_without_names_means_the_same)
{
	char *text = uvd_quota_without_names("user:root:qps:1,mrs:2");

	ck_assert_str_eq(text, "user:0:qps:1,mrs:2");
	free(text);
	text = uvd_quota_without_names("qps:1");
	ck_assert_str_eq(text, "qps:1");
	free(text);
}
END_TEST

START_TEST(test_number_of_the_user_counts_else_that_of_everybody)
{
	char text[64];

	add("qps:4,pds:7");
	add("user:5:qps:9");
	add("user:6:qps:unlimited");
	add("pds:8");
	ck_assert_uint_eq(uvd_quota_limit(quota, 4, QPS), 4);
	ck_assert_uint_eq(uvd_quota_limit(quota, 5, QPS), 9);
	ck_assert_uint_eq(uvd_quota_limit(quota, 6, QPS), UINT64_MAX);
	ck_assert_uint_eq(uvd_quota_limit(quota, 5, PDS), 8);
	ck_assert_uint_eq(uvd_quota_limit(quota, 5, UVD_RES_OBJECTS), UINT64_MAX);
	uvd_quota_text(quota, 5, QPS, text, sizeof(text));
	ck_assert_str_eq(text, "user:5:qps:9");
	uvd_quota_text(quota, 5, PDS, text, sizeof(text));
	ck_assert_str_eq(text, "pds:8");
}
END_TEST

/* ---- charges ----------------------------------------------------------------------------------------------------- */

START_TEST(test_charge_counts_for_the_daemon_and_the_device_or_for_neither)
{
	struct uvd_account *a = on_device(1000, 1000);
	struct uvd_refusal why = {};

	add("pds:3,qps:9");
	ck_assert_int_eq(uvd_account_charge(a, PDS, 2), 0);
	ck_assert_uint_eq(holds(), 2);
	ck_assert_int_eq(uvd_account_charge_why(a, PDS, 2, &why), -EAGAIN);
	ck_assert(why.quota == quota && why.uid == 1000 && why.res == PDS);
	ck_assert(why.used == 2 && why.more == 2 && why.max == 3);
	ck_assert_uint_eq(uvd_account_used(a, PDS), 2);
	uvd_accounts_each(accounts, see_daemon, NULL);
	ck_assert_uint_eq(held_of_daemon, 2);
	/* The limit of the daemon is the lower one now. */
	add("pds:9");
	ck_assert_int_eq(uvd_account_charge_why(a, PDS, 3, &why), -EAGAIN);
	ck_assert(!why.quota && why.max == 4);
	ck_assert_uint_eq(holds(), 2);
	uvd_account_uncharge(a, PDS, 2);
	ck_assert_uint_eq(holds(), 0);
	ck_assert_uint_eq(uvd_account_used(a, PDS), 0);
	uvd_account_put(a);
}
END_TEST

START_TEST(test_share_of_a_device_is_the_persons_and_no_share_of_the_daemon)
{
	struct uvd_account *a = on_device(100000, 1000), *b = on_device(0, 1000), *c = on_device(1001, 0);

	add("qps:2");
	ck_assert_int_eq(uvd_account_charge(a, QPS, 1), 0);
	ck_assert_int_eq(uvd_account_charge(b, QPS, 1), 0);
	ck_assert_int_eq(uvd_account_charge(a, QPS, 1), -EAGAIN);
	ck_assert_int_eq(uvd_account_charge(b, QPS, 1), -EAGAIN);
	ck_assert_int_eq(uvd_account_charge(c, QPS, 2), 0);
	ck_assert_uint_eq(uvd_account_uid(a), 100000);
	ck_assert_uint_eq(uvd_account_person(a), 1000);
	ck_assert_uint_eq(holds(), 4);
	uvd_account_uncharge(a, QPS, 1);
	uvd_account_uncharge(b, QPS, 1);
	uvd_account_uncharge(c, QPS, 2);
	ck_assert_uint_eq(holds(), 0);
	uvd_account_put(a);
	uvd_account_put(b);
	uvd_account_put(c);
}
END_TEST

/* Callers who get the reason have better lines. */
START_TEST(test_limit_is_logged_without_a_call_and_a_quota_is_not)
{
	const int fd = memfd_create("log", MFD_CLOEXEC);
	struct uvd_log *log = uvd_log_new(fd, "", UVD_WARN);
	struct uvd_refusal why;
	struct uvd_account *a;

	uvd_accounts_free(accounts);
	accounts = uvd_accounts_new(&limits, log);
	add("pds:3");
	a = on_device(1000, 1000);
	ck_assert_int_eq(uvd_account_charge_why(a, PDS, 4, &why), -EAGAIN);
	ck_assert_int_eq(lseek(fd, 0, SEEK_END), 0);
	uvd_account_log_refusal(a, &why);
	ck_assert_int_eq(uvd_account_charge_why(a, PDS, 5, &why), -EAGAIN);
	ck_assert_int_eq(lseek(fd, 0, SEEK_END), 0);
	uvd_account_log_refusal(a, &why);
	ck_assert_int_gt(lseek(fd, 0, SEEK_END), 0);
	uvd_account_put(a);
	uvd_accounts_free(accounts);
	accounts = NULL;
	uvd_log_free(log);
	close(fd);
}
END_TEST

/* An account can outlive the device that made the quota. */
START_TEST(test_account_keeps_its_quota)
{
	struct uvd_account *a;

	add("qps:1");
	a = on_device(1000, 1000);
	uvd_quota_put(quota);
	quota = NULL;
	ck_assert_int_eq(uvd_account_charge(a, QPS, 1), 0);
	ck_assert_int_eq(uvd_account_charge(a, QPS, 1), -EAGAIN);
	ck_assert_uint_eq(holds(), 1);
	uvd_account_uncharge(a, QPS, 1);
	uvd_account_put(a);
}
END_TEST

/* Threads of files of one person: together they never hold more than the quota, and no charge is left. */
START_TEST(test_threads_never_hold_more_than_the_quota)
{
	struct uvd_account *a[4];
	struct storm storms[4];
	pthread_t threads[4];

	add("qps:2");
	for (int i = 0; i < 4; i++)
		a[i] = on_device(100000 + i, 1000);
	for (int i = 0; i < 4; i++)
		storms[i] = (struct storm){ a[i], QPS };
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, storm_run, &storms[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	ck_assert_int_le(storm_most, 2);
	ck_assert_uint_eq(holds(), 0);
	for (int i = 0; i < 4; i++) {
		ck_assert_uint_eq(uvd_account_used(a[i], QPS), 0);
		uvd_account_put(a[i]);
	}
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("quota");

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_loop_test(t, test_wrong_text_has_a_message_that_names_the_word, 0, UVD_COUNT(texts));
	tcase_add_test(t, test_text_without_names_means_the_same);
	tcase_add_test(t, test_number_of_the_user_counts_else_that_of_everybody);
	tcase_add_test(t, test_charge_counts_for_the_daemon_and_the_device_or_for_neither);
	tcase_add_test(t, test_share_of_a_device_is_the_persons_and_no_share_of_the_daemon);
	tcase_add_test(t, test_limit_is_logged_without_a_call_and_a_quota_is_not);
	tcase_add_test(t, test_account_keeps_its_quota);
	tcase_add_test(t, test_threads_never_hold_more_than_the_quota);
	return run_suite("quota", t);
}
