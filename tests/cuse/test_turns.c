/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Requests that wait for their turn (src/cuse/turns.h): shares, queues, interrupts, and concurrent threads. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cuse/turns.h"
#include "../steps.h"
#include "../suite.h"

enum { SHARE = 2 };

static struct uvd_turns turns;
static struct uvd_accounts *accounts;
/* One account of each user. The reference keeps the user's charges when a test puts its own account. */
static struct uvd_account *known[3];

static void set_up_with(uint64_t share, uint64_t bytes)
{
	struct uvd_account_limits limits;

	uvd_account_limits_init(&limits);
	limits.max[UVD_RES_CALLS] = share;
	limits.max[UVD_RES_BYTES] = bytes;
	accounts = uvd_accounts_new(&limits, NULL);
	ck_assert_ptr_nonnull(accounts);
	for (uid_t i = 0; i < 3; i++)
		known[i] = uvd_account_get(accounts, &(uid_t){ 1000 + i }, 1);
	uvd_turns_init(&turns);
}

static void set_up(void)
{
	set_up_with(SHARE, 1 << 24);
}

static void count_use(void *arg, uid_t uid, enum uvd_resource res, uint64_t used, uint64_t max)
{
	++*(int *)arg;
}

/* Checks that no user is charged and no request waits, then frees everything. */
static void tear_down(void)
{
	int used = 0;

	uvd_accounts_each(accounts, count_use, &used);
	ck_assert_int_eq(used, 0);
	for (int i = 0; i < 3; i++)
		uvd_account_put(known[i]);
	ck_assert(!uvd_turns_any(&turns) && list_empty(&turns.users) && !turns.num_users);
	uvd_turns_fini(&turns);
	memset(&turns, 0, sizeof(turns));
	uvd_accounts_free(accounts);
}

static struct uvd_account *user(uid_t uid)
{
	return uvd_account_get(accounts, &uid, 1);
}

static int enter(struct uvd_account *account, uint64_t unique)
{
	return uvd_turns_enter(&turns, account, false, unique, &unique, sizeof(unique));
}

static int close_of(struct uvd_account *account, uint64_t unique)
{
	return uvd_turns_enter(&turns, account, true, unique, &unique, sizeof(unique));
}

static void leave(struct uvd_account *account)
{
	uvd_turns_leave(&turns, account, false);
}

/* Takes the next request, which is in progress from then on. Returns its number, or 0 if there is none. */
static uint64_t take(void)
{
	struct uvd_turn *turn = uvd_turns_take(&turns);
	uint64_t unique = 0;

	if (!turn)
		return 0;
	ck_assert_uint_eq(turn->size, sizeof(unique));
	memcpy(&unique, turn->request, sizeof(unique));
	ck_assert_uint_eq(unique, turn->unique);
	uvd_account_put(turn->account);
	free(turn);
	return unique;
}

START_TEST(test_a_users_calls_beyond_the_share_wait_in_order_and_others_do_not)
{
	struct uvd_account *one = user(1000), *other = user(1001);

	for (uint64_t i = 2; i <= 12; i += 2)
		ck_assert_int_eq(enter(one, i), i <= 2 * SHARE ? 0 : 1);
	ck_assert_uint_eq(take(), 0);
	ck_assert_int_eq(enter(other, 20), 0);
	leave(other);
	for (uint64_t i = 2 * SHARE + 2; i <= 12; i += 2) {
		leave(one);
		/* A call that arrives now does not overtake those that wait. */
		if (i == 6)
			ck_assert_int_eq(enter(one, 30), 1);
		ck_assert_uint_eq(take(), i);
		ck_assert_uint_eq(take(), 0);
	}
	leave(one);
	ck_assert_uint_eq(take(), 30);
	leave(one);
	leave(one);
	uvd_account_put(one);
	uvd_account_put(other);
}
END_TEST

START_TEST(test_queues_take_turns)
{
	struct uvd_account *one = user(1000), *other = user(1001);

	for (uint64_t i = 2; i <= 10; i += 2) {
		enter(one, i);
		enter(other, 100 + i);
	}
	for (int i = 0; i < SHARE; i++) {
		leave(one);
		leave(other);
	}
	ck_assert_uint_eq(take(), 6);
	ck_assert_uint_eq(take(), 106);
	ck_assert_uint_eq(take(), 8);
	ck_assert_uint_eq(take(), 108);
	ck_assert_uint_eq(take(), 0);
	leave(one);
	leave(other);
	ck_assert_uint_eq(take(), 10);
	ck_assert_uint_eq(take(), 110);
	for (int i = 0; i < SHARE; i++) {
		leave(one);
		leave(other);
	}
	uvd_account_put(one);
	uvd_account_put(other);
}
END_TEST

START_TEST(test_an_interrupt_takes_a_call_out_of_the_queue_and_no_close)
{
	struct uvd_account *one = user(1000);
	struct uvd_turn *turn;

	for (uint64_t i = 2; i <= 8; i += 2)
		enter(one, i);
	for (uint64_t i = 0; i <= UVD_TURN_CLOSES; i++)
		ck_assert_int_eq(close_of(one, 100 + 2 * i), i < UVD_TURN_CLOSES ? 0 : 1);
	ck_assert(!uvd_turns_interrupt(&turns, 2, &turn) && !turn); /* in progress */
	ck_assert(uvd_turns_interrupt(&turns, 6, &turn) && turn && turn->unique == 6);
	uvd_turn_free(turn);
	ck_assert(!uvd_turns_interrupt(&turns, 6, &turn) && !turn);
	ck_assert(uvd_turns_interrupt(&turns, 100 + 2 * UVD_TURN_CLOSES, &turn) && !turn);
	leave(one);
	ck_assert_uint_eq(take(), 8);
	ck_assert_uint_eq(take(), 0);
	leave(one);
	leave(one);
	uvd_turns_leave(&turns, one, true);
	ck_assert_uint_eq(take(), 100 + 2 * UVD_TURN_CLOSES);
	for (int i = 0; i < UVD_TURN_CLOSES; i++)
		uvd_turns_leave(&turns, one, true);
	uvd_account_put(one);
}
END_TEST

START_TEST(test_a_close_takes_nothing_of_the_share_and_no_bytes)
{
	struct uvd_account *one = user(1000);
	struct uvd_turn *turn;
	uint64_t n = 2;

	enter(one, n += 2);
	enter(one, n += 2);
	while (enter(one, n += 2) == 1)
		;
	ck_assert_int_eq(enter(one, n), -ENOMEM);
	for (int i = 0; i < UVD_TURN_CLOSES; i++)
		ck_assert_int_eq(close_of(one, n += 2), 0);
	ck_assert_int_eq(close_of(one, n += 2), 1);
	while ((turn = uvd_turns_end(&turns)))
		uvd_turn_free(turn);
	ck_assert_int_eq(enter(one, n += 2), -EIO);
	leave(one);
	ck_assert_int_eq(enter(one, n += 2), 0); /* a call that need not wait is still carried out */
	leave(one);
	leave(one);
	for (int i = 0; i < UVD_TURN_CLOSES; i++)
		uvd_turns_leave(&turns, one, true);
	uvd_account_put(one);
}
END_TEST

START_TEST(test_a_call_without_a_thread_is_the_first_of_those_that_wait)
{
	struct uvd_account *one = user(1000);
	uint64_t n = 4;

	ck_assert_int_eq(enter(one, 2), 0);
	ck_assert_int_eq(enter(one, n), 0);
	ck_assert_int_eq(enter(one, 6), 1);
	ck_assert_int_eq(uvd_turns_postpone(&turns, one, false, n, &n, sizeof(n)), 1);
	ck_assert_int_eq(enter(one, 8), 1);
	for (n = 4; n <= 8; n += 2) {
		ck_assert_uint_eq(take(), n);
		leave(one);
	}
	leave(one);
	uvd_account_put(one);
}
END_TEST

/* ---- events while a request is being copied ---------------------------------------------------------------------- */

static __thread void (*while_copying)(void);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	void (*fn)(void) = while_copying;

	while_copying = NULL;
	if (fn)
		fn();
	return __real_malloc(size);
}

static void leave_all(void)
{
	for (int i = 0; i < SHARE; i++) {
		leave(known[0]);
		ck_assert_uint_eq(take(), 0);
	}
}

START_TEST(test_a_call_does_not_wait_when_the_last_of_the_others_has_just_ended)
{
	for (uint64_t i = 2; i <= 2 * SHARE; i += 2)
		ck_assert_int_eq(enter(known[0], i), 0);
	while_copying = leave_all;
	ck_assert_int_eq(enter(known[0], 100), 0);
	ck_assert_ptr_null(while_copying);
	leave(known[0]);
}
END_TEST

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { THREADS = 4, USERS = 3, CALLS = 3000 /* for each user */ };

static atomic_uint next_call[USERS], in_progress[USERS], carried_out[USERS], dropped[USERS], seen[USERS][CALLS + 1];
static atomic_ulong all;

static uint64_t unique_of(unsigned int who, unsigned int call)
{
	return 2 * (call * USERS + who) + 2;
}

static void carry_out(struct uvd_account *account, uint64_t unique)
{
	unsigned int who = (unique / 2 - 1) % USERS, call = (unique / 2 - 1) / USERS;

	ck_assert_uint_le(atomic_fetch_add(&in_progress[who], 1) + 1, SHARE);
	ck_assert_uint_eq(atomic_fetch_add(&seen[who][call], 1), 0);
	sched_yield();
	atomic_fetch_sub(&in_progress[who], 1);
	atomic_fetch_add(&carried_out[who], 1);
	atomic_fetch_add(&all, 1);
	leave(account);
}

/* Like a worker, which carries out waiting requests before it reads a new one. */
static void carry_out_waiting(void)
{
	struct uvd_turn *turn;

	while (uvd_turns_any(&turns) && (turn = uvd_turns_take(&turns))) {
		carry_out(turn->account, turn->unique);
		uvd_account_put(turn->account);
		free(turn);
	}
}

static void *thread(void *arg)
{
	unsigned int seed = (uintptr_t)arg, who, call;
	struct uvd_account *account;
	struct uvd_turn *turn;
	uint64_t unique;
	int ret;

	for (int i = 0; i < USERS * CALLS / THREADS; i++) {
		carry_out_waiting();
		who = rand_r(&seed) % USERS;
		call = atomic_fetch_add(&next_call[who], 1);
		if (call > CALLS)
			continue;
		account = user(1000 + who);
		unique = unique_of(who, call);
		ret = enter(account, unique);
		if (!ret)
			carry_out(account, unique);
		if (ret == 1 && rand_r(&seed) % 8 == 0 && uvd_turns_interrupt(&turns, unique, &turn) && turn) {
			atomic_fetch_add(&dropped[who], 1);
			uvd_turn_free(turn);
		}
		uvd_account_put(account);
	}
	carry_out_waiting();
	return NULL;
}

START_TEST(test_threads_lose_no_call_and_carry_out_none_twice)
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, thread, (void *)(i + 1)), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert(!uvd_turns_any(&turns));
	for (int who = 0; who < USERS; who++) {
		unsigned int calls = next_call[who] < CALLS + 1 ? next_call[who] : CALLS + 1;

		ck_assert_uint_eq(carried_out[who] + dropped[who], calls);
	}
	ck_assert_uint_gt(all, CALLS);
}
END_TEST

/* ---- mapped ids -------------------------------------------------------------------------------------------------- */

static struct uvd_account *mapped_id(uid_t i)
{
	const uid_t uids[] = { 100000 + i, 1000 };

	return uvd_account_get(accounts, uids, 2);
}

START_TEST(test_mapped_ids_have_one_queue_and_one_turn)
{
	struct uvd_account *other = user(1001), *id[6];

	for (uid_t i = 0; i < 6; i++) {
		id[i] = mapped_id(i);
		ck_assert_int_eq(enter(id[i], 2 + 2 * i), i < SHARE ? 0 : 1);
	}
	ck_assert_uint_eq(turns.num_users, 1);
	for (int i = 0; i <= SHARE; i++)
		ck_assert_int_eq(enter(other, 100 + 2 * i), i < SHARE ? 0 : 1);
	leave(id[0]);
	leave(other);
	/* One of the ids begins; then it is the other user's turn, and no id's. */
	ck_assert_uint_eq(take(), 6);
	ck_assert_uint_eq(take(), 104);
	ck_assert_uint_eq(take(), 0);
	for (uid_t i = 1; i < 6; i++) {
		leave(id[i]);
		ck_assert_uint_eq(take(), i < 4 ? 6 + 2 * i : 0);
	}
	leave(other);
	leave(other);
	for (uid_t i = 0; i < 6; i++)
		uvd_account_put(id[i]);
	uvd_account_put(other);
}
END_TEST

START_TEST(test_mapped_ids_have_the_closes_of_one_user)
{
	struct uvd_account *one = mapped_id(0), *two = mapped_id(1);

	for (uint64_t i = 0; i < UVD_TURN_CLOSES; i++)
		ck_assert_int_eq(close_of(i % 2 ? one : two, 2 + 2 * i), 0);
	ck_assert_int_eq(close_of(one, 100), 1);
	uvd_turns_leave(&turns, two, true);
	ck_assert_uint_eq(take(), 100);
	for (uint64_t i = 0; i < UVD_TURN_CLOSES; i++)
		uvd_turns_leave(&turns, one, true);
	uvd_account_put(one);
	uvd_account_put(two);
}
END_TEST

#ifdef TEST_HAS_STEPS
enum { MAPPED = 30000 };

static void victims_call(void *victim)
{
	ck_assert_int_eq(enter(victim, 1000000), 0);
	leave(victim);
}

START_TEST(test_mapped_ids_make_no_other_users_call_longer)
{
	struct uvd_account *victim = user(1001), *id;
	unsigned long alone, among_many;
	struct uvd_turn *turn;

	/* A call waits in both cases: else the victim's takes no lock. */
	id = mapped_id(0);
	for (uint64_t i = 0; i <= SHARE; i++)
		ck_assert_int_eq(enter(id, 2 + 2 * i), i < SHARE ? 0 : 1);
	alone = steps_of(victims_call, victim);
	for (uid_t i = 0; i < MAPPED; i++) {
		struct uvd_account *many = mapped_id(1 + i);

		ck_assert_int_eq(enter(many, 100 + 2 * i), 1);
		uvd_account_put(many);
	}
	among_many = steps_of(victims_call, victim);
	while ((turn = uvd_turns_end(&turns)))
		uvd_turn_free(turn);
	ck_assert_uint_gt(alone, 20);
	ck_assert_uint_le(among_many, 2 * alone + 100);
	for (int i = 0; i < SHARE; i++)
		leave(id);
	uvd_account_put(id);
	uvd_account_put(victim);
}
END_TEST
#endif

int main(void)
{
	TCase *t = tcase_create("turns");

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, test_a_users_calls_beyond_the_share_wait_in_order_and_others_do_not);
	tcase_add_test(t, test_queues_take_turns);
	tcase_add_test(t, test_an_interrupt_takes_a_call_out_of_the_queue_and_no_close);
	tcase_add_test(t, test_a_close_takes_nothing_of_the_share_and_no_bytes);
	tcase_add_test(t, test_a_call_without_a_thread_is_the_first_of_those_that_wait);
	tcase_add_test(t, test_a_call_does_not_wait_when_the_last_of_the_others_has_just_ended);
	tcase_add_test(t, test_mapped_ids_have_one_queue_and_one_turn);
	tcase_add_test(t, test_mapped_ids_have_the_closes_of_one_user);
#ifdef TEST_HAS_STEPS
	tcase_add_test(t, test_mapped_ids_make_no_other_users_call_longer);
#endif
	tcase_add_test(t, test_threads_lose_no_call_and_carry_out_none_twice);
	tcase_set_timeout(t, 120);
	return run_suite("cuse: turns", t);
}
