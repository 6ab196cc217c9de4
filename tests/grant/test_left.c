/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a loan leaves stays charged until it is gone: a sender, or the broker's process, that waits for a file of the client's. No
 * thread is borrowed here: the loan fails, and its place is free when the test says so.
 */
#include <check.h>
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>
#include "account/account.h"
#include "dispatch/dispatch.h"
#include "grant/grant.h"
#include "util/util.h"
#include "../suite.h"

enum { USER = 1000, SOON_MS = 10000 };

static struct uvd_accounts *accounts;
static struct uvd_account *account;
static struct uvd_grants *grants;
static atomic_bool place_is_free, done;

long __wrap_uvd_call_granted(struct uvd_call *call, int64_t fd);

static int toy_place_take(struct uvd_privilege *p, struct uvd_loan_place *place, pid_t tid,
			  const struct uvd_owners *owners)
{
	return place_is_free ? 0 : -EAGAIN;
}

static bool toy_place_put(struct uvd_privilege *p, struct uvd_loan_place *place)
{
	return place_is_free;
}

static void toy_place_wait(struct uvd_privilege *p, const struct uvd_loan_place *place, unsigned int ms)
{
}

static void toy_place_drop(struct uvd_privilege *p, struct uvd_loan_place *place)
{
}

static int toy_seize(struct uvd_privilege *p, struct uvd_loan *l, pid_t tid, int nice)
{
	place_is_free = false;
	return -EPERM;
}

static void toy_close(struct uvd_privilege *p, struct uvd_loan *l)
{
}

static bool toy_dying(struct uvd_privilege *p, pid_t tid)
{
	return false;
}

static void toy_end_loans(struct uvd_privilege *p)
{
}

static const struct uvd_privilege_ops toy_ops = {
	.place_take = toy_place_take,
	.place_put = toy_place_put,
	.place_wait = toy_place_wait,
	.place_drop = toy_place_drop,
	.seize = toy_seize,
	.close = toy_close,
	.dying = toy_dying,
	.end_loans = toy_end_loans,
};
static struct uvd_privilege toy = { &toy_ops };

long __wrap_uvd_call_granted(struct uvd_call *call, int64_t fd)
{
	return fd;
}

static int job_reply(struct uvd_grant_job *job, long result)
{
	return 0;
}

static void job_ended(struct uvd_grant_job *job)
{
}

static void job_done(struct uvd_grant_job *job)
{
	done = true;
}

static bool caller_waits(struct uvd_caller *c)
{
	return true;
}

static struct uvd_call call = { .caller.tid = 1, .caller.waits = caller_waits };
static struct uvd_grant_turn turn;
static struct uvd_grant_job job;

static uint64_t charged(void)
{
	return uvd_account_used(account, UVD_RES_LOANS);
}

static void run_job(void)
{
	place_is_free = true;
	job = (struct uvd_grant_job){ .call = &call,
				      .account = account,
				      .turn = &turn,
				      .reply = job_reply,
				      .ended = job_ended,
				      .done = job_done };
	ck_assert_int_eq(uvd_grants_start(grants, &job), 0);
	for (int ms = 0; !done && ms < SOON_MS; ms++)
		usleep(1000);
	ck_assert(done);
}

static void setup(void)
{
	const uid_t uid = USER;
	struct uvd_account_limits limits;

	uvd_account_limits_init(&limits);
	accounts = uvd_accounts_new(&limits, NULL);
	account = uvd_account_get(accounts, &uid, 1);
	grants = uvd_grants_new(true, &toy, NULL);
	done = false;
}

static void teardown(void)
{
	uvd_grants_free(grants);
	ck_assert_uint_eq(charged(), 0);
	uvd_account_put(account);
	uvd_accounts_free(accounts);
}

START_TEST(test_loan_is_charged_until_its_place_is_free)
{
	run_job();
	ck_assert_uint_eq(charged(), 1);
	/* The watchdog looks five times in this time. */
	usleep(1000000);
	ck_assert_uint_eq(charged(), 1);
	place_is_free = true;
	for (int ms = 0; charged() && ms < SOON_MS; ms++)
		usleep(1000);
	ck_assert_uint_eq(charged(), 0);
}
END_TEST

START_TEST(test_end_waits_for_no_place)
{
	const uint64_t began = uvd_now_ns();

	run_job();
	ck_assert(uvd_grants_drain(grants, SOON_MS));
	ck_assert_uint_lt((uvd_now_ns() - began) / 1000000, SOON_MS);
	ck_assert_uint_eq(charged(), 1);
}
END_TEST

START_TEST(test_refused_place_is_not_charged)
{
	job = (struct uvd_grant_job){ .call = &call, .account = account, .turn = &turn };
	place_is_free = false;
	ck_assert_int_eq(uvd_grants_start(grants, &job), -EAGAIN);
	ck_assert_uint_eq(charged(), 0);
	uvd_grants_turn_end(grants, &turn);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("left");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_loan_is_charged_until_its_place_is_free);
	tcase_add_test(t, test_end_waits_for_no_place);
	tcase_add_test(t, test_refused_place_is_not_charged);
	return run_suite("what loans leave", t);
}
