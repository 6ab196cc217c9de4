/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Calls that wait for an event of their file (src/cuse/turns.h): no thread waits with them, and each is answered once. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "cuse/turns.h"
#include "../suite.h"

enum { SHARE = 2, PARKED = 8, SIZE = 80 /* bytes of a request */, BYTES = 1 << 16, USERS = 3 };

static struct uvd_turns turns;
static struct uvd_accounts *accounts;
static struct uvd_account *users[USERS];

static void set_up(void)
{
	struct uvd_account_limits limits;

	uvd_account_limits_init(&limits);
	limits.max[UVD_RES_CALLS] = SHARE;
	limits.max[UVD_RES_PARKED] = PARKED;
	limits.max[UVD_RES_BYTES] = BYTES;
	accounts = uvd_accounts_new(&limits, NULL);
	ck_assert_ptr_nonnull(accounts);
	for (uid_t i = 0; i < USERS; i++)
		users[i] = uvd_account_get(accounts, &(uid_t){ 1000 + i }, 1);
	uvd_turns_init(&turns);
}

static void count_use(void *arg, uid_t uid, enum uvd_resource res, uint64_t used, uint64_t max)
{
	++*(int *)arg;
}

/* Checks that no user is charged, and that nothing is left in the tables. */
static void tear_down(void)
{
	int used = 0;

	uvd_accounts_each(accounts, count_use, &used);
	ck_assert_int_eq(used, 0);
	for (int i = 0; i < USERS; i++)
		uvd_account_put(users[i]);
	ck_assert(!uvd_turns_any(&turns) && list_empty(&turns.users) && !turns.num_users && list_empty(&turns.parked));
	for (int i = 0; i < UVD_TURN_BUCKETS; i++)
		ck_assert(!turns.user_buckets[i] && list_empty(&turns.buckets[i]));
	uvd_turns_fini(&turns);
	memset(&turns, 0, sizeof(turns));
	uvd_accounts_free(accounts);
}

static uint64_t parked_calls(unsigned int who)
{
	return uvd_account_used(users[who], UVD_RES_PARKED);
}

/* A worker has carried the call out without an answer. */
static struct uvd_turn *held(unsigned int who, uint64_t unique)
{
	unsigned char request[SIZE] = { 0 };
	struct uvd_turn *turn;

	memcpy(request, &unique, sizeof(unique));
	turn = uvd_turn_copy(users[who], unique, request, sizeof(request));
	ck_assert_ptr_nonnull(turn);
	ck_assert_int_eq(uvd_turn_hold(turn), 0);
	return turn;
}

static struct uvd_turn *parked(unsigned int who, uint64_t unique)
{
	struct uvd_turn *turn = held(who, unique);

	ck_assert_int_eq(uvd_turns_park(&turns, turn, true), 0);
	return turn;
}

static int enter(unsigned int who, uint64_t unique)
{
	return uvd_turns_enter(&turns, users[who], false, unique, &unique, sizeof(unique));
}

static void leave(unsigned int who)
{
	uvd_turns_leave(&turns, users[who], false);
}

/* Checks that the next turn is that of this call, which is in progress then. */
static struct uvd_turn *take(uint64_t unique)
{
	struct uvd_turn *turn = uvd_turns_take(&turns);

	ck_assert(turn && turn->unique == unique && !memcmp(turn->request, &unique, sizeof(unique)));
	return turn;
}

START_TEST(test_a_parked_call_holds_nothing_of_the_share_until_its_event_has_come)
{
	struct uvd_turn *turn = parked(0, 2), *again;

	ck_assert_uint_eq(parked_calls(0), 1);
	ck_assert_uint_eq(uvd_account_used(users[0], UVD_RES_CALLS), 0);
	ck_assert_uint_eq(uvd_account_used(users[0], UVD_RES_BYTES), sizeof(*turn) + SIZE);
	ck_assert(!uvd_turns_any(&turns) && !uvd_turns_take(&turns));
	for (uint64_t i = 0; i < SHARE; i++)
		ck_assert_int_eq(enter(0, 4 + 2 * i), 0);
	for (int i = 0; i < SHARE; i++)
		leave(0);
	ck_assert(uvd_turns_ready(&turns, turn));
	again = take(2);
	ck_assert_ptr_eq(again, turn);
	ck_assert_uint_eq(uvd_account_used(users[0], UVD_RES_CALLS), 1);
	ck_assert_uint_eq(parked_calls(0), 1);
	leave(0);
	uvd_turn_free(again);
}
END_TEST

START_TEST(test_a_call_whose_event_another_one_took_is_parked_again_without_a_new_charge)
{
	struct uvd_turn *turn = parked(0, 2), *others[PARKED - 1];

	for (uint64_t i = 0; i < PARKED - 1; i++)
		others[i] = parked(0, 4 + 2 * i);
	for (int i = 0; i < 3; i++) {
		ck_assert(uvd_turns_ready(&turns, turn));
		ck_assert_ptr_eq(take(2), turn);
		leave(0);
		ck_assert_int_eq(uvd_turn_hold(turn), 0);
		ck_assert_int_eq(uvd_turns_park(&turns, turn, true), 0);
		ck_assert_uint_eq(parked_calls(0), PARKED);
	}
	for (uint64_t i = 0; i < PARKED - 1; i++)
		ck_assert(uvd_turns_interrupt(&turns, 4 + 2 * i, &others[i]) && others[i]);
	for (int i = 0; i < PARKED - 1; i++)
		uvd_turn_free(others[i]);
	ck_assert(uvd_turns_interrupt(&turns, 2, &turn) && turn);
	uvd_turn_free(turn);
}
END_TEST

START_TEST(test_an_event_that_comes_before_the_call_is_parked_is_not_lost)
{
	struct uvd_turn *turn = held(0, 2);

	ck_assert(!uvd_turns_ready(&turns, turn));
	ck_assert_int_eq(uvd_turns_park(&turns, turn, true), 1);
	ck_assert_ptr_eq(take(2), turn);
	leave(0);
	/* The same where the file had an event already, and the waiter did not wait. */
	ck_assert_int_eq(uvd_turn_hold(turn), 0);
	ck_assert_int_eq(uvd_turns_park(&turns, turn, false), 1);
	ck_assert_ptr_eq(take(2), turn);
	leave(0);
	uvd_turn_free(turn);
}
END_TEST

START_TEST(test_an_interrupt_takes_a_parked_call_whose_waiter_must_end_first)
{
	struct uvd_turn *turn = parked(0, 2), *taken;

	ck_assert(uvd_turns_interrupt(&turns, 2, &taken));
	ck_assert(taken == turn && turn->state == UVD_TURN_ENDS);
	/* The event comes before the waiter has ended: the turn belongs to the thread that has taken it. */
	ck_assert(!uvd_turns_ready(&turns, turn) && !uvd_turns_any(&turns));
	ck_assert(!uvd_turns_interrupt(&turns, 2, &taken) && !taken);
	ck_assert_uint_eq(parked_calls(0), 1);
	uvd_turn_free(turn);
}
END_TEST

START_TEST(test_an_interrupt_finds_no_call_that_a_worker_has)
{
	struct uvd_turn *turn = held(0, 2), *taken;

	ck_assert(!uvd_turns_interrupt(&turns, 2, &taken) && !taken);
	ck_assert_int_eq(uvd_turns_park(&turns, turn, true), 0);
	ck_assert(uvd_turns_ready(&turns, turn));
	take(2);
	ck_assert(!uvd_turns_interrupt(&turns, 2, &taken) && !taken);
	leave(0);
	uvd_turn_free(turn);
}
END_TEST

START_TEST(test_an_interrupt_of_a_call_whose_event_has_come_has_no_waiter_to_end)
{
	struct uvd_turn *turn = parked(0, 2), *taken;

	ck_assert(uvd_turns_ready(&turns, turn));
	ck_assert(uvd_turns_interrupt(&turns, 2, &taken));
	ck_assert(taken == turn && turn->state == UVD_TURN_QUEUED);
	uvd_turn_free(taken);
}
END_TEST

START_TEST(test_an_event_that_wakes_several_calls_gives_each_its_turn_in_order)
{
	struct uvd_turn *turn[4];

	for (uint64_t i = 0; i < 4; i++)
		turn[i] = parked(0, 2 + 2 * i);
	for (int i = 0; i < 4; i++)
		ck_assert(uvd_turns_ready(&turns, turn[i]));
	for (uint64_t i = 0; i < 4; i++) {
		if (i >= SHARE) {
			ck_assert_ptr_null(uvd_turns_take(&turns));
			leave(0);
		}
		uvd_turn_free(take(2 + 2 * i));
	}
	for (int i = 0; i < SHARE; i++)
		leave(0);
}
END_TEST

START_TEST(test_a_call_whose_user_has_no_share_left_waits_for_it)
{
	struct uvd_turn *turn = parked(0, 2);

	for (uint64_t i = 0; i < SHARE; i++)
		ck_assert_int_eq(enter(0, 10 + 2 * i), 0);
	ck_assert(uvd_turns_ready(&turns, turn));
	ck_assert(uvd_turns_any(&turns) && !uvd_turns_take(&turns));
	/* A call that arrives now does not overtake it. */
	ck_assert_int_eq(enter(0, 20), 1);
	leave(0);
	uvd_turn_free(take(2));
	leave(0);
	uvd_turn_free(take(20));
	leave(0);
	leave(0);
}
END_TEST

START_TEST(test_beyond_a_users_limit_a_call_is_enomem_and_charges_nothing)
{
	struct uvd_turn *more;
	uint64_t bytes;

	for (uint64_t i = 0; i < PARKED; i++)
		parked(0, 2 + 2 * i);
	bytes = uvd_account_used(users[0], UVD_RES_BYTES);
	more = uvd_turn_copy(users[0], 100, &bytes, sizeof(bytes));
	ck_assert_int_eq(uvd_turn_hold(more), -ENOMEM);
	uvd_turn_free(more);
	ck_assert_uint_eq(uvd_account_used(users[0], UVD_RES_BYTES), bytes);
	ck_assert_uint_eq(parked_calls(0), PARKED);
	/* Others are not refused, but for their own bytes. */
	uvd_account_charge_anyway(users[1], UVD_RES_BYTES, BYTES);
	more = uvd_turn_copy(users[1], 100, &bytes, sizeof(bytes));
	ck_assert_int_eq(uvd_turn_hold(more), -ENOMEM);
	uvd_account_uncharge(users[1], UVD_RES_BYTES, BYTES);
	ck_assert_int_eq(uvd_turn_hold(more), 0);
	uvd_turn_free(more);
	while ((more = uvd_turns_end(&turns))) {
		ck_assert_int_eq(more->state, UVD_TURN_ENDS);
		uvd_turn_free(more);
	}
}
END_TEST

START_TEST(test_after_the_end_no_call_is_parked_and_none_is_left)
{
	struct uvd_turn *late = held(1, 100), *turn;
	int ended = 0;

	for (uint64_t i = 0; i < 4; i++)
		turn = parked(0, 2 + 2 * i);
	ck_assert(uvd_turns_ready(&turns, turn));
	while ((turn = uvd_turns_end(&turns))) {
		ended++;
		ck_assert_int_eq(turn->state, turn->unique == 8 ? UVD_TURN_QUEUED : UVD_TURN_ENDS);
		uvd_turn_free(turn);
	}
	ck_assert_int_eq(ended, 4);
	ck_assert_int_eq(uvd_turns_park(&turns, late, true), -EIO);
	uvd_turn_free(late);
	late = held(1, 102);
	ck_assert(!uvd_turns_ready(&turns, late));
	ck_assert_int_eq(uvd_turns_park(&turns, late, false), -EIO);
	uvd_turn_free(late);
}
END_TEST

enum { MANY = 1000 };

START_TEST(test_users_with_nothing_but_parked_calls_keep_nobody_from_its_turn)
{
	struct uvd_account *many[MANY];
	struct uvd_turn *turn;
	uint64_t unique;

	for (uid_t i = 0; i < MANY; i++) {
		unique = 100 + 2 * i;
		many[i] = uvd_account_get(accounts, &(uid_t){ 2000 + i }, 1);
		turn = uvd_turn_copy(many[i], unique, &unique, sizeof(unique));
		ck_assert_int_eq(uvd_turn_hold(turn), 0);
		ck_assert_int_eq(uvd_turns_park(&turns, turn, true), 0);
	}
	ck_assert_uint_eq(turns.num_users, 0);
	for (uint64_t i = 0; i <= SHARE; i++)
		ck_assert_int_eq(enter(0, 2 + 2 * i), i < SHARE ? 0 : 1);
	leave(0);
	turn = uvd_turns_take(&turns);
	ck_assert(turn && turn->unique == 2 + 2 * SHARE);
	uvd_turn_free(turn);
	for (int i = 0; i < SHARE; i++)
		leave(0);
	while ((turn = uvd_turns_end(&turns)))
		uvd_turn_free(turn);
	for (int i = 0; i < MANY; i++)
		uvd_account_put(many[i]);
}
END_TEST

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static __thread bool no_memory;
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_malloc(size_t size)
{
	return no_memory ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return no_memory ? NULL : __real_calloc(n, size);
}

START_TEST(test_an_event_needs_no_memory)
{
	struct uvd_turn *turn = parked(0, 2), *late;
	bool queued;
	int ret;

	no_memory = true;
	queued = uvd_turns_ready(&turns, turn);
	turn = uvd_turns_take(&turns);
	no_memory = false;
	ck_assert(queued && turn);
	leave(0);
	uvd_turn_free(turn);
	/* Without memory for the user the call is not parked, and still the worker's. */
	late = held(1, 4);
	no_memory = true;
	ret = uvd_turns_park(&turns, late, true);
	no_memory = false;
	ck_assert_int_eq(ret, -ENOMEM);
	uvd_turn_free(late);
}
END_TEST

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { THREADS = 4, CALLS = 20000 };

/* A file with events, as src/cm has it: its lock is the outer one. */
static struct {
	pthread_mutex_t lock;
	struct list_head waiters;
	unsigned long events;
} file = { .lock = PTHREAD_MUTEX_INITIALIZER };

static atomic_ulong next_call, answered, succeeded, interrupted, made;
static atomic_uchar answers[CALLS + 1];

static void file_ready(struct uvd_cm_waiter *waiter)
{
	uvd_turns_ready(&turns, container_of(waiter, struct uvd_turn, waiter));
}

static void file_event(void)
{
	struct uvd_cm_waiter *waiter;

	uvd_lock(&file.lock);
	file.events++;
	while (!list_empty(&file.waiters)) {
		waiter = list_first_entry(&file.waiters, struct uvd_cm_waiter, of_file);
		list_del_init(&waiter->of_file);
		waiter->ready(waiter);
	}
	uvd_unlock(&file.lock);
}

static bool file_take_event(void)
{
	bool taken;

	uvd_lock(&file.lock);
	taken = file.events;
	file.events -= taken;
	uvd_unlock(&file.lock);
	return taken;
}

static bool file_wait(struct uvd_turn *turn)
{
	bool waits;

	turn->waiter.ready = file_ready;
	uvd_lock(&file.lock);
	waits = !file.events;
	if (waits)
		list_add_tail(&turn->waiter.of_file, &file.waiters);
	else
		INIT_LIST_HEAD(&turn->waiter.of_file);
	uvd_unlock(&file.lock);
	return waits;
}

static void file_wait_end(struct uvd_turn *turn)
{
	uvd_lock(&file.lock);
	list_del_init(&turn->waiter.of_file);
	uvd_unlock(&file.lock);
}

static void answer(struct uvd_turn *turn, atomic_ulong *counter)
{
	ck_assert_uint_eq(atomic_fetch_add(&answers[turn->unique / 2], 1), 0);
	atomic_fetch_add(counter, 1);
	atomic_fetch_add(&answered, 1);
	memset(turn->request, 0xdd, turn->size);
	uvd_turn_free(turn);
}

/* Carries the call out, whose share is charged. */
static void carry_out(struct uvd_turn *turn)
{
	const bool done = file_take_event();
	bool waits;

	uvd_turns_leave(&turns, turn->account, false);
	if (done) {
		answer(turn, &succeeded);
		return;
	}
	if (uvd_turn_hold(turn)) {
		answer(turn, &interrupted);
		return;
	}
	waits = file_wait(turn);
	if (uvd_turns_park(&turns, turn, waits) >= 0)
		return;
	if (waits)
		file_wait_end(turn);
	answer(turn, &interrupted);
}

static void interrupt(uint64_t unique)
{
	struct uvd_turn *turn;

	if (!uvd_turns_interrupt(&turns, unique, &turn) || !turn)
		return;
	if (turn->state == UVD_TURN_ENDS)
		file_wait_end(turn);
	answer(turn, &interrupted);
}

static void new_call(unsigned int *seed)
{
	const uint64_t call = atomic_fetch_add(&next_call, 1), unique = 2 * (call + 1);
	struct uvd_account *account = users[rand_r(seed) % USERS];
	int ret;

	if (call >= CALLS)
		return;
	ret = uvd_turns_enter(&turns, account, false, unique, &unique, sizeof(unique));
	if (!ret)
		carry_out(uvd_turn_copy(account, unique, &unique, sizeof(unique)));
	else if (ret < 0)
		answer(uvd_turn_copy(account, unique, &unique, sizeof(unique)), &interrupted);
}

static void *worker(void *arg)
{
	unsigned int seed = (uintptr_t)arg;
	struct uvd_turn *turn;

	while (atomic_load(&answered) < CALLS) {
		while (uvd_turns_any(&turns) && (turn = uvd_turns_take(&turns)))
			carry_out(turn);
		switch (rand_r(&seed) % 8) {
		case 0:
			interrupt(2 + 2 * (rand_r(&seed) % CALLS));
			break;
		case 1 ... 3:
			atomic_fetch_add(&made, 1);
			file_event();
			break;
		default:
			new_call(&seed);
		}
	}
	return NULL;
}

START_TEST(test_threads_answer_each_call_once_and_lose_no_event)
{
	pthread_t threads[THREADS];

	INIT_LIST_HEAD(&file.waiters);
	for (uintptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, worker, (void *)(i + 1)), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 1; i <= CALLS; i++)
		ck_assert_uint_eq(answers[i], 1);
	ck_assert_uint_eq(succeeded + interrupted, CALLS);
	ck_assert_uint_eq(succeeded + file.events, made);
	ck_assert_uint_gt(succeeded, CALLS / 4);
	ck_assert(list_empty(&file.waiters));
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("parked");

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, test_a_parked_call_holds_nothing_of_the_share_until_its_event_has_come);
	tcase_add_test(t, test_a_call_whose_event_another_one_took_is_parked_again_without_a_new_charge);
	tcase_add_test(t, test_an_event_that_comes_before_the_call_is_parked_is_not_lost);
	tcase_add_test(t, test_an_interrupt_takes_a_parked_call_whose_waiter_must_end_first);
	tcase_add_test(t, test_an_interrupt_finds_no_call_that_a_worker_has);
	tcase_add_test(t, test_an_interrupt_of_a_call_whose_event_has_come_has_no_waiter_to_end);
	tcase_add_test(t, test_an_event_that_wakes_several_calls_gives_each_its_turn_in_order);
	tcase_add_test(t, test_a_call_whose_user_has_no_share_left_waits_for_it);
	tcase_add_test(t, test_beyond_a_users_limit_a_call_is_enomem_and_charges_nothing);
	tcase_add_test(t, test_after_the_end_no_call_is_parked_and_none_is_left);
	tcase_add_test(t, test_users_with_nothing_but_parked_calls_keep_nobody_from_its_turn);
	tcase_add_test(t, test_an_event_needs_no_memory);
	tcase_add_test(t, test_threads_answer_each_call_once_and_lose_no_event);
	tcase_set_timeout(t, 120);
	return run_suite("cuse: parked calls", t);
}
