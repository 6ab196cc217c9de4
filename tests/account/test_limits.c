/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The table of limits: each resource says how much there is for all users, and one user may hold a quarter of it by
 * default. A row without the one or the other fails.
 */
#include <check.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uverbsd/backend.h>
#include <uverbsd/log.h>
#include <uverbsd/schema.h>
#include "account/account.h"
#include "broker/child.h"
#include "broker/way.h"
#include "core/observer.h"
#include "../suite.h"

static struct uvd_account_limits limits;

/* A device that has `n` of everything. */
static struct ibv_device_attr_ex attr;
static struct uvd_limits device;

static void has(uint32_t n)
{
	memset(&attr, 0, sizeof(attr));
	memset(&device, 0, sizeof(device));
	for (int res = 0; res < UVD_NUM_RES; res++) {
		const struct uvd_whole *whole = &uvd_limit_rows[res].whole;
		void *base = whole->kind == UVD_WHOLE_DEVICE ? (void *)&attr : (void *)&device;

		if (whole->kind == UVD_WHOLE_DEVICE || whole->kind == UVD_WHOLE_CONFIG)
			memcpy((char *)base + whole->offset, &n, sizeof(n));
	}
}

static uint64_t share(enum uvd_resource res)
{
	return uvd_account_device_share(&limits, res, &attr, &device);
}

static void setup(void)
{
	uvd_account_limits_init(&limits);
	has(64);
}

/* Follows the rows from a resource that only another one limits to one that has a limit of its own. */
static void check_other(int res)
{
	int steps = 0;

	ck_assert_msg(uvd_limit_rows[res].value != UINT64_MAX, "%s: any number", uvd_limit_rows[res].name);
	while (uvd_limit_rows[res].whole.kind == UVD_WHOLE_OTHER) {
		ck_assert_int_lt(steps++, UVD_NUM_RES);
		res = uvd_limit_rows[res].whole.number;
		ck_assert_ptr_nonnull(uvd_limit_rows[res].name);
	}
	ck_assert_uint_le(uvd_account_limit(&limits, res), uvd_limit_of_daemon(res) / 4);
}

START_TEST(test_each_resource_has_a_limit_and_a_share_of_a_quarter_at_most)
{
	const struct uvd_limit_row *row = &uvd_limit_rows[_i];

	switch (row->whole.kind) {
	case UVD_WHOLE_NONE:
		ck_assert_msg(!row->name, "%s: nothing says how much of it there is", row->name);
		break; /* a number that no type of objects has */
	case UVD_WHOLE_DEVICE:
	case UVD_WHOLE_CONFIG:
		ck_assert_msg(share(_i) == 16, "%s: %llu of 64", row->name, (unsigned long long)share(_i));
		break;
	case UVD_WHOLE_EACH_DEVICE:
		ck_assert_uint_ge(share(_i), 1);
		ck_assert_uint_le(share(_i), row->whole.number / 4);
		break;
	case UVD_WHOLE_DAEMON:
		/* The help's text is true and not cut. */
		ck_assert_uint_eq(uvd_account_limit(&limits, _i), row->value);
		__attribute__((fallthrough));
	case UVD_WHOLE_DESCRIPTORS:
	case UVD_WHOLE_MEMORY:
		ck_assert_uint_ne(uvd_limit_of_daemon(_i), UINT64_MAX);
		ck_assert_msg(uvd_account_limit(&limits, _i) <= uvd_limit_of_daemon(_i) / 4, "%s: %llu of %llu",
			      row->name, (unsigned long long)uvd_account_limit(&limits, _i),
			      (unsigned long long)uvd_limit_of_daemon(_i));
		break;
	case UVD_WHOLE_OTHER:
		check_other(_i);
		break;
	case UVD_WHOLE_CLIENTS:
		ck_assert_int_eq(_i, UVD_RES_REGISTERED);
		break;
	}
}
END_TEST

START_TEST(test_what_no_account_counts_has_shares_of_a_quarter_too)
{
	/* The constants of the code that has the limits. The broker cannot use the table; 0: it does. */
	static const uint64_t wholes[] = { 0, UVD_QUESTIONS_MAX, UVD_LOANS_MAX,	   UVD_WAY_CHILDREN,
					   0, UVD_MAX_OBSERVERS, UVD_MAX_COUNTERS, 0 };
	unsigned int n = 0;

	for (const struct uvd_fixed_share *s = uvd_fixed_shares; s->what; s++, n++) {
		ck_assert_msg(s->whole && s->share <= s->whole / 4, "%s: %llu of %llu", s->what,
			      (unsigned long long)s->share, (unsigned long long)s->whole);
		ck_assert_uint_lt(n, UVD_COUNT(wholes));
		ck_assert(!wholes[n] || wholes[n] == s->whole);
	}
	ck_assert_uint_eq(n, UVD_COUNT(wholes));
	ck_assert_uint_eq(uvd_fixed_shares[1].share, uvd_limit_rows[UVD_RES_CALLS].value);
	ck_assert_uint_eq(uvd_fixed_shares[2].share, uvd_limit_rows[UVD_RES_LOANS].value);
}
END_TEST

START_TEST(test_share_is_a_quarter_but_at_least_one_of_what_there_is)
{
	static const uint64_t of[][2] = {
		{ 0, 0 }, { 1, 1 }, { 3, 1 }, { 4, 1 }, { 7, 1 }, { 8, 2 }, { 65536, 16384 }
	};

	for (unsigned int i = 0; i < UVD_COUNT(of); i++)
		ck_assert_uint_eq(uvd_limit_share(of[i][0]), of[i][1]);
	/* A resource that only a device has is not limited for all devices together. */
	ck_assert_uint_eq(uvd_account_limit(&limits, UVD_RES_OBJECT + UVERBS_OBJECT_QP), UINT64_MAX);
	ck_assert_uint_eq(uvd_account_limit(&limits, UVD_RES_REGISTERED), UINT64_MAX);
	has(2);
	ck_assert_uint_eq(share(UVD_RES_OBJECT + UVERBS_OBJECT_QP), 1);
	/* A resource of which the backend tells no number has no share: the limit is that of objects of all types. */
	has(0);
	ck_assert_uint_eq(share(UVD_RES_OBJECT + UVERBS_OBJECT_WQ), UINT64_MAX);
}
END_TEST

START_TEST(test_number_of_the_administrator_replaces_the_share)
{
	const int qps = UVD_RES_OBJECT + UVERBS_OBJECT_QP;

	limits.max[qps] = 40;
	limits.max[UVD_RES_CALLS] = 200;
	ck_assert_uint_eq(share(qps), UINT64_MAX);
	ck_assert_uint_eq(uvd_account_limit(&limits, qps), 40);
	ck_assert_uint_eq(uvd_account_limit(&limits, UVD_RES_CALLS), 200);
	ck_assert_uint_eq(share(UVD_RES_OBJECT + UVERBS_OBJECT_CQ), 16);
}
END_TEST

START_TEST(test_engine_of_one_user_has_no_shares)
{
	limits.one_user = true;
	for (int i = 0; i < UVD_NUM_RES; i++) {
		ck_assert_uint_eq(share(i), UINT64_MAX);
		ck_assert_uint_eq(uvd_account_limit(&limits, i),
				  uvd_limit_rows[i].name ? uvd_limit_rows[i].value : UINT64_MAX);
	}
}
END_TEST

START_TEST(test_share_of_descriptors_follows_the_rlimit)
{
	struct rlimit nofile = { 400, 400 };

	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &nofile), 0);
	ck_assert_uint_eq(uvd_account_limit(&limits, UVD_RES_DESCRIPTORS), 100);
}
END_TEST

/* ---- accounts -------------------------------------------------------------------------------------------------------- */

static struct uvd_accounts *accounts;
static struct uvd_quota *quota;

static struct uvd_account *user_on_device(uid_t uid, uid_t owner)
{
	struct uvd_account *account = uvd_account_get(accounts, (uid_t[]){ uid, owner }, 2);
	struct uvd_account *mine = uvd_account_on_device(account, quota);

	uvd_account_put(account);
	return mine;
}

static void make_device(const char *text)
{
	accounts = uvd_accounts_new(&limits, NULL);
	quota = uvd_quota_new("hfi1_0");
	uvd_quota_set_shares(quota, accounts, &attr, &device);
	ck_assert(!text || !uvd_quota_add(quota, text));
}

static void drop_device(void)
{
	uvd_quota_put(quota);
	uvd_accounts_free(accounts);
}

START_TEST(test_four_users_fill_a_device_and_none_has_more_than_a_quarter)
{
	const int ahs = UVD_RES_OBJECT + UVERBS_OBJECT_AH;
	struct uvd_account *users[4];
	struct uvd_refusal why;

	make_device(NULL);
	for (uid_t i = 0; i < 4; i++) {
		users[i] = user_on_device(100000 + i, 1000 + i);
		ck_assert_uint_eq(uvd_account_most(users[i], ahs), 16);
		ck_assert_int_eq(uvd_account_charge(users[i], ahs, 16), 0);
		ck_assert_int_eq(uvd_account_charge_why(users[i], ahs, 1, &why), -EAGAIN);
		ck_assert(!why.quota && why.uid == 1000 + i && why.used == 16 && why.max == 16);
		ck_assert_str_eq(why.device, "hfi1_0");
	}
	for (int i = 0; i < 4; i++) {
		uvd_account_uncharge(users[i], ahs, 16);
		uvd_account_put(users[i]);
	}
	drop_device();
}
END_TEST

START_TEST(test_root_has_no_share_unless_told_and_a_quota_all_the_same)
{
	const int pds = UVD_RES_OBJECT + UVERBS_OBJECT_PD;
	struct uvd_account *root;

	for (int told = 0; told < 2; told++) {
		limits.limit_root = told;
		make_device("user:0:cqs:3");
		root = user_on_device(0, 0);
		ck_assert_uint_eq(uvd_account_most(root, pds), told ? 16 : UINT64_MAX);
		ck_assert_uint_eq(uvd_account_most(root, UVD_RES_OBJECT + UVERBS_OBJECT_CQ), 3);
		uvd_account_put(root);
		drop_device();
	}
}
END_TEST

START_TEST(test_the_least_of_limit_share_and_quota_counts_and_is_named)
{
	const int qps = UVD_RES_OBJECT + UVERBS_OBJECT_QP, cqs = UVD_RES_OBJECT + UVERBS_OBJECT_CQ,
		  pds = UVD_RES_OBJECT + UVERBS_OBJECT_PD;
	struct uvd_refusal why;
	struct uvd_account *user;

	limits.max[pds] = 5;
	make_device("qps:4, cqs:50, pds:9");
	user = user_on_device(1000, 1000);
	ck_assert_uint_eq(uvd_account_most(user, qps), 4);
	ck_assert_uint_eq(uvd_account_most(user, cqs), 16);
	ck_assert_uint_eq(uvd_account_most(user, pds), 5);
	ck_assert_int_eq(uvd_account_charge_why(user, qps, 5, &why), -EAGAIN);
	ck_assert(why.quota == quota && !why.device);
	ck_assert_int_eq(uvd_account_charge_why(user, cqs, 17, &why), -EAGAIN);
	ck_assert(!why.quota && why.device);
	ck_assert_int_eq(uvd_account_charge_why(user, pds, 6, &why), -EAGAIN);
	ck_assert(!why.quota && !why.device);
	uvd_account_put(user);
	drop_device();
}
END_TEST

START_TEST(test_refusal_by_a_share_is_a_line_that_names_device_and_option)
{
	const int ahs = UVD_RES_OBJECT + UVERBS_OBJECT_AH, fd = memfd_create("log", MFD_CLOEXEC);
	struct uvd_log *log = uvd_log_new(fd, "test", UVD_WARN);
	struct uvd_account *user;
	char text[512] = "";

	accounts = uvd_accounts_new(&limits, log);
	quota = uvd_quota_new("hfi1_0");
	uvd_quota_set_shares(quota, accounts, &attr, &device);
	user = user_on_device(1000, 1000);
	ck_assert_int_eq(uvd_account_charge(user, ahs, 17), -EAGAIN);
	ck_assert_int_gt(pread(fd, text, sizeof(text) - 1, 0), 0);
	ck_assert_msg(strstr(text, "user 1000 has 0 objects of type AH on hfi1_0, and 17 more would exceed the user's "
				   "share of 16: raise it with --limit-ahs, or `ahs` of [limits]\n"),
		      "%s", text);
	uvd_account_put(user);
	drop_device();
	uvd_log_free(log);
	close(fd);
}
END_TEST

/* ---- payers ---------------------------------------------------------------------------------------------------------- */

START_TEST(test_each_user_that_holds_a_thing_pays_for_a_whole_one_until_its_last_hold)
{
	const enum uvd_resource xrcds = UVD_RES_NAMED_XRCDS;
	struct uvd_account *a, *same, *b;
	struct uvd_payers payers = {};
	struct uvd_refusal why;

	limits.max[xrcds] = 1;
	make_device(NULL);
	a = user_on_device(1000, 1000);
	same = user_on_device(100000, 1000);
	b = user_on_device(1001, 1001);
	ck_assert_int_eq(uvd_payers_add(&payers, a, xrcds, &why), 0);
	ck_assert_int_eq(uvd_payers_add(&payers, same, xrcds, &why), 0);
	ck_assert_int_eq(uvd_payers_add(&payers, b, xrcds, &why), 0);
	ck_assert_uint_eq(uvd_account_used(a, xrcds), 1);
	ck_assert_uint_eq(uvd_account_used(b, xrcds), 1);
	/* The creator leaves: another process of that user holds it still, so the user pays still. */
	uvd_payers_drop(&payers, a, xrcds);
	ck_assert_uint_eq(uvd_account_used(a, xrcds), 1);
	uvd_payers_drop(&payers, same, xrcds);
	ck_assert_uint_eq(uvd_account_used(a, xrcds), 0);
	ck_assert_uint_eq(uvd_account_used(b, xrcds), 1);
	uvd_payers_drop(&payers, b, xrcds);
	ck_assert_uint_eq(uvd_account_used(b, xrcds), 0);
	ck_assert_ptr_null(payers.first);
	/* Refused, it holds nothing. */
	ck_assert_int_eq(uvd_account_charge(a, xrcds, 1), 0);
	ck_assert_int_eq(uvd_payers_add(&payers, a, xrcds, &why), -ENOMEM);
	ck_assert_ptr_null(payers.first);
	uvd_account_uncharge(a, xrcds, 1);
	uvd_account_put(a);
	uvd_account_put(same);
	uvd_account_put(b);
	drop_device();
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_set_timeout(tc, 30);
	tcase_add_loop_test(tc, test_each_resource_has_a_limit_and_a_share_of_a_quarter_at_most, 0, UVD_NUM_RES);
	tcase_add_test(tc, test_what_no_account_counts_has_shares_of_a_quarter_too);
	tcase_add_test(tc, test_share_is_a_quarter_but_at_least_one_of_what_there_is);
	tcase_add_test(tc, test_number_of_the_administrator_replaces_the_share);
	tcase_add_test(tc, test_engine_of_one_user_has_no_shares);
	tcase_add_test(tc, test_share_of_descriptors_follows_the_rlimit);
	tcase_add_test(tc, test_four_users_fill_a_device_and_none_has_more_than_a_quarter);
	tcase_add_test(tc, test_root_has_no_share_unless_told_and_a_quota_all_the_same);
	tcase_add_test(tc, test_the_least_of_limit_share_and_quota_counts_and_is_named);
	tcase_add_test(tc, test_refusal_by_a_share_is_a_line_that_names_device_and_option);
	tcase_add_test(tc, test_each_user_that_holds_a_thing_pays_for_a_whole_one_until_its_last_hold);
	return run_suite(__FILE__, tc);
}
