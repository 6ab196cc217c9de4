/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How many instructions a user's calls take while another user has tens of thousands of mapped ids. And two charges at
 * once, in every order: the first one runs a single machine instruction at a time, and after each of them, in
 * turn, the second one is made as a whole. Threads would meet in the few instructions that matter only now and then.
 */
#include <check.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <ucontext.h>
#include "account/account.h"
#include "../steps.h"
#include "../suite.h"

enum { MOST = 4, MAPPED = 30000, SPENT = 50 * 1000 * 1000 /* ns after which users are compared */ };

static struct uvd_accounts *accounts;
static struct uvd_account *first, *second; /* of two mapped users of one owner */

static void set_up(void)
{
	const uid_t one[] = { 100000, 1000 }, other[] = { 100001, 1000 };
	struct uvd_account_limits limits;

	uvd_account_limits_init(&limits);
	limits.max[UVD_RES_FILES] = MOST;
	accounts = uvd_accounts_new(&limits, NULL);
	first = uvd_account_get(accounts, one, 2);
	second = uvd_account_get(accounts, other, 2);
}

static void tear_down(void)
{
	uvd_account_put(first);
	uvd_account_put(second);
	uvd_accounts_free(accounts);
}

#ifdef TEST_HAS_STEPS
#include <x86intrin.h>

enum { TRAP_FLAG = 1 << 8 };

static volatile unsigned int steps, interrupt_at;
static volatile bool second_has;

static void step_taken(int sig, siginfo_t *info, void *arg)
{
	ucontext_t *context = arg;

	if (++steps < interrupt_at)
		return;
	second_has = uvd_account_try(second, UVD_RES_FILES, 1);
	context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

/* Charges the first account, and the second one after so many instructions. Returns false if it has taken fewer. */
static bool charge_both(unsigned int at, bool *first_has)
{
	steps = 0;
	interrupt_at = at;
	second_has = false;
	/* The compiler must not move what the handler uses across the flag. */
	atomic_signal_fence(memory_order_seq_cst);
	__writeeflags(__readeflags() | TRAP_FLAG);
	atomic_signal_fence(memory_order_seq_cst);
	*first_has = uvd_account_try(first, UVD_RES_FILES, 1);
	atomic_signal_fence(memory_order_seq_cst);
	__writeeflags(__readeflags() & ~(unsigned long long)TRAP_FLAG);
	atomic_signal_fence(memory_order_seq_cst);
	return steps >= at;
}

/* One place is left: one of the two gets it, and the other changes nothing. */
START_TEST(test_of_two_charges_at_once_one_gets_the_last_place)
{
	const struct sigaction on_trap = { .sa_sigaction = step_taken, .sa_flags = SA_SIGINFO };
	unsigned int at = 1;
	bool has, again;

	ck_assert_int_eq(sigaction(SIGTRAP, &on_trap, NULL), 0);
	ck_assert(uvd_account_try(first, UVD_RES_FILES, MOST - 1));
	do {
		again = charge_both(at++, &has);
		ck_assert_msg(has + second_has == 1 || !again, "%d of both charges succeeded after %u instructions",
			      has + second_has, at - 1);
		uvd_account_uncharge(first, UVD_RES_FILES, has);
		uvd_account_uncharge(second, UVD_RES_FILES, second_has);
		ck_assert_uint_eq(uvd_account_used(first, UVD_RES_FILES), MOST - 1);
		ck_assert_uint_eq(uvd_account_used(second, UVD_RES_FILES), 0);
	} while (again);
	/* The steps were those of the charge, and not of a few instructions around it. */
	ck_assert_uint_gt(at, 20);
	uvd_account_uncharge(first, UVD_RES_FILES, MOST - 1);
	for (int i = 0; i < MOST; i++)
		ck_assert(uvd_account_try(second, UVD_RES_FILES, 1));
	uvd_account_uncharge(second, UVD_RES_FILES, MOST);
}
END_TEST

/* ---- many users -------------------------------------------------------------------------------------------------- */

static struct uvd_account *mapped[MAPPED];

static void many_come(void)
{
	for (uid_t i = 0; i < MAPPED; i++) {
		const uid_t uids[] = { 100000 + i, 1000 };

		mapped[i] = uvd_account_get(accounts, uids, 2);
		ck_assert_ptr_nonnull(mapped[i]);
	}
}

static void many_go(void)
{
	for (uid_t i = 0; i < MAPPED; i++)
		uvd_account_put(mapped[i]);
}

static void open_and_close(void *arg)
{
	uvd_account_put(uvd_account_get(accounts, &(uid_t){ 2000 }, 1));
}

static void spend_and_compare(void *arg)
{
	uvd_account_spend(arg, SPENT);
}

static void check_that_many_cost_nothing(void (*fn)(void *arg), void *arg)
{
	unsigned long alone, among_many;

	fn(arg);
	alone = steps_of(fn, arg);
	many_come();
	among_many = steps_of(fn, arg);
	many_go();
	ck_assert_uint_gt(alone, 20);
	/* malloc() may take another way. */
	ck_assert_uint_le(among_many, 2 * alone + 100);
}

START_TEST(test_mapped_ids_make_no_other_users_open_longer)
{
	check_that_many_cost_nothing(open_and_close, NULL);
}
END_TEST

START_TEST(test_users_without_time_on_record_are_not_compared)
{
	struct uvd_account *spender = uvd_account_get(accounts, &(uid_t){ 2000 }, 1);

	check_that_many_cost_nothing(spend_and_compare, spender);
	uvd_account_put(spender);
}
END_TEST
#endif

int main(void)
{
	TCase *t = tcase_create("steps");

	tcase_add_checked_fixture(t, set_up, tear_down);
#ifdef TEST_HAS_STEPS
	tcase_add_test(t, test_of_two_charges_at_once_one_gets_the_last_place);
	tcase_add_test(t, test_mapped_ids_make_no_other_users_open_longer);
	tcase_add_test(t, test_users_without_time_on_record_are_not_compared);
#endif
	return run_suite("charges of an account, step by step", t);
}
