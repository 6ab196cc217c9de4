/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "account/account.h"
#include "../suite.h"
#include "storm.h"

static struct uvd_account_limits limits;
static struct uvd_accounts *accounts;

static void set_up(void)
{
	uvd_account_limits_init(&limits);
	limits.max[UVD_RES_BYTES] = 100;
	limits.max[UVD_RES_FILES] = 4;
	accounts = uvd_accounts_new(&limits, NULL);
}

static void tear_down(void)
{
	uvd_accounts_free(accounts);
}

static struct uvd_account *account_of(uid_t a, uid_t b)
{
	uid_t uids[] = { a, b };

	return uvd_account_get(accounts, uids, 2);
}

static unsigned int num_seen;

static void see(void *arg, uid_t uid, enum uvd_resource res, uint64_t used, uint64_t max)
{
	num_seen++;
}

START_TEST(test_charge_beyond_the_limit_is_the_errno_of_its_row_and_charges_nothing)
{
	struct uvd_account *a = account_of(1000, 1000);

	ck_assert_int_eq(uvd_account_charge(a, UVD_RES_BYTES, 100), 0);
	ck_assert_int_eq(uvd_account_charge(a, UVD_RES_BYTES, 1), -ENOMEM);
	ck_assert_int_eq(uvd_account_charge(a, UVD_RES_BYTES, UINT64_MAX), -ENOMEM);
	ck_assert_int_eq(uvd_account_charge(a, UVD_RES_FILES, 5), -EMFILE);
	ck_assert_uint_eq(uvd_account_used(a, UVD_RES_BYTES), 100);
	ck_assert_uint_eq(uvd_account_used(a, UVD_RES_FILES), 0);
	uvd_account_uncharge(a, UVD_RES_BYTES, 1);
	ck_assert_int_eq(uvd_account_charge(a, UVD_RES_BYTES, 1), 0);
	uvd_account_uncharge(a, UVD_RES_BYTES, 100);
	uvd_account_put(a);
}
END_TEST

START_TEST(test_mapped_user_ids_share_the_share_of_the_namespaces_owner)
{
	struct uvd_account *a[5];

	for (uid_t i = 0; i < 5; i++) {
		a[i] = account_of(100000 + i, 1000);
		ck_assert_int_eq(uvd_account_charge(a[i], UVD_RES_FILES, 1), i < 4 ? 0 : -EMFILE);
	}
	/* The mapped user is not charged if the namespace's owner is over its limit. */
	ck_assert_uint_eq(uvd_account_used(a[4], UVD_RES_FILES), 0);
	for (int i = 0; i < 5; i++) {
		if (i < 4)
			uvd_account_uncharge(a[i], UVD_RES_FILES, 1);
		uvd_account_put(a[i]);
	}
	uvd_accounts_each(accounts, see, NULL);
	ck_assert_uint_eq(num_seen, 0);
}
END_TEST

START_TEST(test_one_user_leaves_the_others_their_share)
{
	struct uvd_account *a = account_of(1000, 1000), *b = account_of(1001, 1001);

	ck_assert_int_eq(uvd_account_charge(a, UVD_RES_FILES, 4), 0);
	ck_assert_int_eq(uvd_account_charge(b, UVD_RES_FILES, 4), 0);
	ck_assert(!uvd_account_try(a, UVD_RES_FILES, 1));
	uvd_account_uncharge(a, UVD_RES_FILES, 4);
	uvd_account_uncharge(b, UVD_RES_FILES, 4);
	uvd_account_put(a);
	uvd_account_put(b);
}
END_TEST

START_TEST(test_one_user_in_two_accounts_has_one_share)
{
	struct uvd_account *a = account_of(1000, 1000), *b = account_of(1000, 1000);

	ck_assert_int_eq(uvd_account_charge(a, UVD_RES_FILES, 3), 0);
	ck_assert_int_eq(uvd_account_charge(b, UVD_RES_FILES, 2), -EMFILE);
	/* A charge outlives the reference that it was made by, as long as another one to the same user exists. */
	uvd_account_put(a);
	ck_assert_uint_eq(uvd_account_used(b, UVD_RES_FILES), 3);
	uvd_account_uncharge(b, UVD_RES_FILES, 3);
	uvd_account_put(b);
}
END_TEST

START_TEST(test_root_is_limited_only_when_told)
{
	struct uvd_account *a = account_of(0, 0);

	ck_assert_int_eq(uvd_account_charge(a, UVD_RES_FILES, 1000), 0);
	ck_assert_uint_eq(uvd_account_used(a, UVD_RES_FILES), 1000);
	uvd_account_uncharge(a, UVD_RES_FILES, 1000);
	uvd_account_put(a);
	uvd_accounts_free(accounts);
	limits.limit_root = true;
	accounts = uvd_accounts_new(&limits, NULL);
	a = account_of(0, 0);
	ck_assert_int_eq(uvd_account_charge(a, UVD_RES_FILES, 5), -EMFILE);
	uvd_account_put(a);
}
END_TEST

START_TEST(test_owner_named_root_does_not_exempt_the_user)
{
	struct uvd_account *a = account_of(1000, 0), *b = account_of(0, 1000);

	ck_assert_int_eq(uvd_account_charge(a, UVD_RES_FILES, 5), -EMFILE);
	ck_assert_int_eq(uvd_account_charge(b, UVD_RES_FILES, 5), -EMFILE);
	uvd_account_put(a);
	uvd_account_put(b);
}
END_TEST

START_TEST(test_line_in_the_log_names_limit_and_option)
{
	char text[512] = "";
	int fds[2];
	struct uvd_log *log;
	struct uvd_account *a;

	ck_assert_int_eq(pipe(fds), 0);
	log = uvd_log_new(fds[1], "test", UVD_WARN);
	uvd_accounts_free(accounts);
	accounts = uvd_accounts_new(&limits, log);
	a = account_of(1000, 1000);
	ck_assert(!uvd_account_try(a, UVD_RES_FILES, 5));
	ck_assert_int_eq(uvd_account_charge(a, UVD_RES_FILES, 5), -EMFILE);
	ck_assert_int_gt(read(fds[0], text, sizeof(text) - 1), 0);
	ck_assert(strstr(text, "user 1000") && strstr(text, "--limit-files") && strstr(text, "limit of 4"));
	ck_assert_ptr_eq(strchr(text, '\n'), strrchr(text, '\n'));
	uvd_account_put(a);
	uvd_log_free(log);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

START_TEST(test_every_limit_but_those_that_wait_has_an_errno_and_a_name_of_its_own)
{
	for (int i = 0; i < UVD_NUM_RES; i++) {
		const struct uvd_limit_row *row = &uvd_limit_rows[i];

		if (!row->name)
			continue;
		ck_assert(row->err < 0 || i == UVD_RES_CALLS || i == UVD_RES_LOANS || i == UVD_RES_FLIGHT);
		for (int k = 0; k < i; k++)
			ck_assert(!uvd_limit_rows[k].name || strcmp(uvd_limit_rows[k].name, row->name));
	}
	ck_assert_str_eq(uvd_limit_rows[UVD_RES_OBJECT + UVERBS_OBJECT_QP].name, "qps");
}
END_TEST

/* Threads of two mapped users of one owner: together they never hold more than the limit, and no charge is left. */
START_TEST(test_threads_never_hold_more_than_the_limit)
{
	struct uvd_account *a = account_of(100000, 1000), *b = account_of(100001, 1000);
	struct storm of_a = { a, UVD_RES_FILES }, of_b = { b, UVD_RES_FILES };
	pthread_t threads[8];

	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, storm_run, i % 2 ? &of_a : &of_b);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	ck_assert_int_le(storm_most, 4);
	ck_assert_uint_eq(uvd_account_used(a, UVD_RES_FILES), 0);
	uvd_account_put(a);
	uvd_account_put(b);
}
END_TEST

enum { WINDOW = 50 * 1000 * 1000 }; /* SPENT_NS of account.c */

START_TEST(test_user_for_whom_more_is_spent_than_for_the_mean_is_ahead)
{
	struct uvd_account *a = account_of(1000, 1000), *b = account_of(1001, 1001), *c = account_of(1002, 1002);

	uvd_account_spend(b, WINDOW / 10);
	uvd_account_spend(c, WINDOW / 10);
	ck_assert(!uvd_account_is_ahead(a));
	uvd_account_spend(a, 8 * WINDOW);
	ck_assert(uvd_account_is_ahead(a) && !uvd_account_is_ahead(b) && !uvd_account_is_ahead(c));
	/* Each comparison halves the time on record. */
	for (int i = 0; i < 4; i++)
		uvd_account_spend(b, WINDOW);
	ck_assert(!uvd_account_is_ahead(a) && uvd_account_is_ahead(b));
	uvd_account_put(a);
	uvd_account_put(b);
	uvd_account_put(c);
}
END_TEST

START_TEST(test_user_alone_is_not_ahead_nor_is_root)
{
	struct uvd_account *a = account_of(1000, 1000), *idle = account_of(1001, 1001), *root = account_of(0, 0);

	for (int i = 0; i < 10; i++)
		uvd_account_spend(a, WINDOW);
	ck_assert(!uvd_account_is_ahead(a));
	uvd_account_spend(idle, 1);
	for (int i = 0; i < 10; i++)
		uvd_account_spend(root, WINDOW);
	ck_assert(!uvd_account_is_ahead(root));
	uvd_account_spend(a, WINDOW);
	ck_assert(!uvd_account_is_ahead(a));
	ck_assert(!uvd_account_is_ahead(NULL));
	uvd_account_spend(NULL, WINDOW);
	uvd_account_put(a);
	uvd_account_put(idle);
	uvd_account_put(root);
}
END_TEST

static atomic_bool was_ahead;

static void *spend(void *arg)
{
	for (int i = 0; i < 20000; i++) {
		uvd_account_spend(arg, WINDOW);
		if (uvd_account_is_ahead(arg))
			atomic_store(&was_ahead, true);
	}
	return NULL;
}

/* Many idle users make the comparison slow. */
START_TEST(test_user_alone_whose_threads_spend_during_the_comparison_is_not_ahead)
{
	enum { IDLE = 100 };
	struct uvd_account *a = account_of(1000, 1000), *idle[IDLE];
	pthread_t threads[4];

	for (unsigned int i = 0; i < IDLE; i++)
		idle[i] = account_of(2000 + i, 2000 + i);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, spend, a);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	ck_assert(!was_ahead);
	for (unsigned int i = 0; i < IDLE; i++)
		uvd_account_put(idle[i]);
	uvd_account_put(a);
}
END_TEST

START_TEST(test_threads_of_a_user_who_is_ahead_weigh_as_two)
{
	struct uvd_account *a = account_of(1000, 1000), *b = account_of(1001, 1001);

	ck_assert_int_eq(uvd_account_charge(a, UVD_RES_CALLS, 2), 0);
	ck_assert_int_eq(uvd_account_nice(a, 5), 0);
	uvd_account_spend(b, WINDOW / 10);
	uvd_account_spend(a, 8 * WINDOW);
	ck_assert_int_eq(uvd_account_nice(b, 5), 0);
	/* Up to two threads run without a nice value. */
	ck_assert_int_eq(uvd_account_nice(a, 0), 0);
	ck_assert_int_eq(uvd_account_nice(a, 2), 3);
	ck_assert_int_eq(uvd_account_charge(a, UVD_RES_LOANS, 6), 0);
	ck_assert_int_eq(uvd_account_nice(a, 0), 6);
	ck_assert_int_eq(uvd_account_nice(a, 1000000), 19);
	uvd_account_uncharge(a, UVD_RES_LOANS, 6);
	uvd_account_uncharge(a, UVD_RES_CALLS, 2);
	ck_assert_int_eq(uvd_account_nice(a, 2), 0);
	ck_assert_int_eq(uvd_account_nice(NULL, 3), 0);
	uvd_account_put(a);
	uvd_account_put(b);
}
END_TEST

START_TEST(test_user_without_an_account_for_a_moment_is_still_ahead)
{
	struct uvd_account *a = account_of(1000, 1000), *b = account_of(1001, 1001);

	uvd_account_spend(b, WINDOW / 10);
	for (int i = 0; i < 4; i++) {
		uvd_account_spend(a, WINDOW);
		uvd_account_put(a);
		a = account_of(1000, 1000);
		ck_assert(uvd_account_is_ahead(a));
	}
	/* Without an account, while others spend, the user's record decays. */
	uvd_account_put(a);
	for (int i = 0; i < 20; i++)
		uvd_account_spend(b, WINDOW);
	a = account_of(1000, 1000);
	ck_assert(!uvd_account_is_ahead(a));
	uvd_account_put(a);
	uvd_account_put(b);
}
END_TEST

START_TEST(test_many_mapped_ids_are_ahead_together)
{
	struct uvd_account *other = account_of(1001, 1001), *a[20];

	uvd_account_spend(other, WINDOW / 2);
	for (uid_t i = 0; i < 20; i++) {
		a[i] = account_of(100000 + i, 1000);
		uvd_account_spend(a[i], WINDOW / 10);
	}
	ck_assert(!uvd_account_is_ahead(other));
	for (int i = 0; i < 20; i++) {
		ck_assert(uvd_account_is_ahead(a[i]));
		uvd_account_put(a[i]);
	}
	uvd_account_put(other);
}
END_TEST

START_TEST(test_time_on_record_decays_and_the_user_can_be_ahead_again)
{
	struct uvd_account *a = account_of(1000, 1000), *b = account_of(1001, 1001);

	for (int round = 0; round < 2; round++) {
		uvd_account_spend(b, WINDOW / 5);
		for (int i = 0; i < 3; i++)
			uvd_account_spend(a, WINDOW);
		ck_assert(uvd_account_is_ahead(a) && !uvd_account_is_ahead(b));
		/* The other one spends alone until nothing of this one is on record. */
		for (int i = 0; i < 40; i++)
			uvd_account_spend(b, WINDOW);
		ck_assert(!uvd_account_is_ahead(a) && !uvd_account_is_ahead(b));
	}
	uvd_account_put(a);
	uvd_account_put(b);
}
END_TEST

struct report {
	unsigned int seen[200];
};

/* If the lock was held, the account could not be had. */
static void report_one(void *arg, uid_t uid, enum uvd_resource res, uint64_t used, uint64_t max)
{
	struct uvd_account *a = account_of(5000, 5000);

	ck_assert_uint_eq(res, UVD_RES_FILES);
	ck_assert_uint_ge(uid, 1000);
	ck_assert_uint_lt(uid, 1200);
	((struct report *)arg)->seen[uid - 1000]++;
	uvd_account_put(a);
}

START_TEST(test_report_leaves_the_lock_to_others_and_reports_each_once)
{
	struct uvd_account *a[200];
	struct report report = {};

	for (uid_t i = 0; i < 200; i++) {
		a[i] = account_of(1000 + i, 1000 + i);
		ck_assert_int_eq(uvd_account_charge(a[i], UVD_RES_FILES, 1), 0);
	}
	uvd_accounts_each(accounts, report_one, &report);
	for (int i = 0; i < 200; i++) {
		ck_assert_uint_eq(report.seen[i], 1);
		uvd_account_uncharge(a[i], UVD_RES_FILES, 1);
		uvd_account_put(a[i]);
	}
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("account");

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, test_charge_beyond_the_limit_is_the_errno_of_its_row_and_charges_nothing);
	tcase_add_test(t, test_mapped_user_ids_share_the_share_of_the_namespaces_owner);
	tcase_add_test(t, test_one_user_leaves_the_others_their_share);
	tcase_add_test(t, test_one_user_in_two_accounts_has_one_share);
	tcase_add_test(t, test_root_is_limited_only_when_told);
	tcase_add_test(t, test_owner_named_root_does_not_exempt_the_user);
	tcase_add_test(t, test_line_in_the_log_names_limit_and_option);
	tcase_add_test(t, test_every_limit_but_those_that_wait_has_an_errno_and_a_name_of_its_own);
	tcase_add_test(t, test_threads_never_hold_more_than_the_limit);
	tcase_add_test(t, test_user_for_whom_more_is_spent_than_for_the_mean_is_ahead);
	tcase_add_test(t, test_threads_of_a_user_who_is_ahead_weigh_as_two);
	tcase_add_test(t, test_user_alone_is_not_ahead_nor_is_root);
	tcase_add_test(t, test_user_alone_whose_threads_spend_during_the_comparison_is_not_ahead);
	tcase_add_test(t, test_user_without_an_account_for_a_moment_is_still_ahead);
	tcase_add_test(t, test_many_mapped_ids_are_ahead_together);
	tcase_add_test(t, test_time_on_record_decays_and_the_user_can_be_ahead_again);
	tcase_add_test(t, test_report_leaves_the_lock_to_others_and_reports_each_once);
	return run_suite("account", t);
}
