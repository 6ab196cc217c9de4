/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which of a user's grants gets the next loan. No loan starts here: its thread is counted, and refused, or does nothing.
 */
#include <check.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uverbsd/registration.h>
#include "account/account.h"
#include "grant/grant.h"
#include "../suite.h"

enum { USER = 1000, OTHER = 1001 };

static struct uvd_accounts *accounts;
static struct uvd_privilege *privilege;
static struct uvd_grants *grants;
static unsigned int threads;
static bool starts; /* threads seem to start, but do nothing */
static bool watches; /* the watchdog starts indeed, and sees a borrowed thread whose call was answered */
static struct uvd_loan loan;

static void *do_nothing(void *arg)
{
	return NULL;
}

int __real_uvd_thread_start(pthread_t *thread, size_t stack, void *(*fn)(void *arg), void *arg);
int __wrap_uvd_thread_start(pthread_t *thread, size_t stack, void *(*fn)(void *arg), void *arg);

int __wrap_uvd_thread_start(pthread_t *thread, size_t stack, void *(*fn)(void *arg), void *arg)
{
	threads++;
	if (!starts)
		return -EAGAIN;
	if (thread && watches)
		return __real_uvd_thread_start(thread, stack, fn, arg);
	if (watches) {
		/* The caller holds the lock of the grants. */
		((struct uvd_grant_job *)arg)->answered = true;
		((struct uvd_grant_job *)arg)->loan = &loan;
	}
	/* The grants join the one thread that they keep, their watchdog. */
	return thread ? -pthread_create(thread, NULL, do_nothing, NULL) : 0;
}

/* A job, with its account and its turn. */
struct waiter {
	struct uvd_call call;
	struct uvd_grant_job job;
	struct uvd_grant_turn turn;
};

static void waiter_init(struct waiter *w, uid_t uid)
{
	memset(w, 0, sizeof(*w));
	w->call.caller.tid = 1;
	w->job = (struct uvd_grant_job){ .call = &w->call,
					 .account = uvd_account_get(accounts, &uid, 1),
					 .turn = &w->turn };
	ck_assert_ptr_nonnull(w->job.account);
}

static void waiter_end(struct waiter *w)
{
	uvd_grants_turn_end(grants, &w->turn);
	uvd_account_put(w->job.account);
}

/* Would the job get a loan now? */
static bool gets_loan(struct waiter *w)
{
	const unsigned int before = threads;

	ck_assert_int_eq(uvd_grants_start(grants, &w->job), -EAGAIN);
	return threads > before;
}

static struct waiter first, second, other;

static void setup(void)
{
	struct uvd_account_limits limits;

	starts = watches = false;
	uvd_account_limits_init(&limits);
	limits.max[UVD_RES_LOANS] = 1;
	accounts = uvd_accounts_new(&limits, NULL);
	privilege = uvd_local_new(NULL, NULL);
	grants = uvd_grants_new(true, privilege, NULL);
	waiter_init(&first, USER);
	waiter_init(&second, USER);
	waiter_init(&other, OTHER);
}

static void teardown(void)
{
	waiter_end(&first);
	waiter_end(&second);
	waiter_end(&other);
	uvd_grants_free(grants);
	uvd_local_free(privilege);
	uvd_accounts_free(accounts);
}

START_TEST(test_registration_that_has_waited_gets_the_next_loan)
{
	ck_assert_int_eq(uvd_account_charge(first.job.account, UVD_RES_LOANS, 1), 0);
	ck_assert(!gets_loan(&first));
	ck_assert(!gets_loan(&second));
	uvd_account_uncharge(first.job.account, UVD_RES_LOANS, 1);
	ck_assert(!gets_loan(&second));
	ck_assert(gets_loan(&first));
	ck_assert(!gets_loan(&second));
	uvd_grants_turn_end(grants, &first.turn);
	ck_assert(gets_loan(&second));
	ck_assert_uint_eq(uvd_account_used(first.job.account, UVD_RES_LOANS), 0);
}
END_TEST

START_TEST(test_grant_that_waits_holds_up_no_other_user)
{
	ck_assert_int_eq(uvd_account_charge(first.job.account, UVD_RES_LOANS, 1), 0);
	ck_assert(!gets_loan(&first));
	ck_assert(gets_loan(&other));
	uvd_account_uncharge(first.job.account, UVD_RES_LOANS, 1);
	ck_assert(!gets_loan(&second));
}
END_TEST

START_TEST(test_turn_that_ends_twice_ends_once)
{
	ck_assert_int_eq(uvd_account_charge(first.job.account, UVD_RES_LOANS, 1), 0);
	ck_assert(!gets_loan(&first));
	uvd_grants_turn_end(grants, &first.turn);
	uvd_grants_turn_end(grants, &first.turn);
	uvd_account_uncharge(first.job.account, UVD_RES_LOANS, 1);
	ck_assert(gets_loan(&second));
}
END_TEST

/* A turn ends with the start of its loan, before its owner says so. */
START_TEST(test_registration_that_has_its_loan_holds_up_no_other)
{
	ck_assert_int_eq(uvd_account_charge(first.job.account, UVD_RES_LOANS, 1), 0);
	ck_assert(!gets_loan(&first));
	ck_assert(!gets_loan(&second));
	uvd_account_uncharge(first.job.account, UVD_RES_LOANS, 1);
	starts = true;
	ck_assert_int_eq(uvd_grants_start(grants, &first.job), 0);
	starts = false;
	uvd_account_uncharge(first.job.account, UVD_RES_LOANS, 1);
	ck_assert(gets_loan(&second));
}
END_TEST

/* The owner of a turn that has ended frees it: its memory may belong to anything then. */
START_TEST(test_turn_that_has_ended_is_not_looked_at)
{
	ck_assert_int_eq(uvd_account_charge(first.job.account, UVD_RES_LOANS, 1), 0);
	ck_assert(!gets_loan(&first));
	uvd_account_uncharge(first.job.account, UVD_RES_LOANS, 1);
	if (_i) {
		starts = true;
		ck_assert_int_eq(uvd_grants_start(grants, &first.job), 0);
		starts = false;
		uvd_account_uncharge(first.job.account, UVD_RES_LOANS, 1);
	} else {
		uvd_grants_turn_end(grants, &first.turn);
	}
	first.turn.account = first.job.account;
	ck_assert(gets_loan(&second));
	first.turn.account = NULL;
}
END_TEST

/* Once its call has ended, the client can deregister the region, while its thread is not released yet. */
START_TEST(test_watchdog_does_not_look_at_a_registration_that_may_be_gone)
{
	struct uvd_registration *registration =
		mmap(NULL, sizeof(*registration), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(registration, MAP_FAILED);
	first.call.grant.registration = registration;
	starts = watches = true;
	ck_assert_int_eq(uvd_grants_start(grants, &first.job), 0);
	munmap(registration, sizeof(*registration));
	usleep(100000);
	uvd_account_uncharge(first.job.account, UVD_RES_LOANS, 1);
}
END_TEST

/* Waiting would be in vain. */
START_TEST(test_user_without_loans_does_not_wait_for_one)
{
	struct uvd_account_limits limits;
	struct uvd_accounts *none;
	const uid_t uid = USER;

	uvd_account_limits_init(&limits);
	limits.max[UVD_RES_LOANS] = 0;
	none = uvd_accounts_new(&limits, NULL);
	uvd_account_put(first.job.account);
	first.job.account = uvd_account_get(none, &uid, 1);
	ck_assert_int_eq(uvd_grants_start(grants, &first.job), -EPERM);
	ck_assert_ptr_null(first.turn.account);
	uvd_account_put(first.job.account);
	first.job.account = NULL;
	uvd_accounts_free(none);
}
END_TEST

/* The broker keeps its copy of the other end until it has reaped the loan's process, and may shut it down before. */
START_TEST(test_place_is_free_when_the_broker_has_closed_its_end)
{
	struct uvd_link *link = uvd_link_new(-1);
	struct uvd_privilege *p = uvd_link_privilege(link);
	struct uvd_loan_place place = { -1, -1 };
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	place.sock = pair[0];
	ck_assert(!p->ops->place_put(p, &place));
	shutdown(pair[_i], SHUT_WR);
	ck_assert(!p->ops->place_put(p, &place));
	close(pair[1]);
	ck_assert(p->ops->place_put(p, &place));
	ck_assert_int_eq(place.sock, -1);
	uvd_link_free(link);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("turns");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_registration_that_has_waited_gets_the_next_loan);
	tcase_add_test(t, test_grant_that_waits_holds_up_no_other_user);
	tcase_add_test(t, test_turn_that_ends_twice_ends_once);
	tcase_add_test(t, test_registration_that_has_its_loan_holds_up_no_other);
	tcase_add_loop_test(t, test_turn_that_has_ended_is_not_looked_at, 0, 2);
	tcase_add_test(t, test_watchdog_does_not_look_at_a_registration_that_may_be_gone);
	tcase_add_test(t, test_user_without_loans_does_not_wait_for_one);
	tcase_add_loop_test(t, test_place_is_free_when_the_broker_has_closed_its_end, 0, 2);
	return run_suite("turns of registrations that wait for a loan", t);
}
