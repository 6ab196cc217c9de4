/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "cuse/turns.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uverbsd/backend.h>

enum { MAX_LOOKS = 64 /* users that one uvd_turns_take() looks at */ };

/*
 * A user with all mapped ids of its namespaces: the calls of all of them are charged to the same share, so they wait in
 * one queue. With a queue for each id, a user with many ids would have as many turns, and the search for a queue would
 * take as long.
 */
struct turn_user {
	struct list_head of_turns;
	struct turn_user *next; /* in its bucket */
	uid_t uid; /* uvd_account_person() */
	struct list_head calls, closes; /* turns that wait */
	unsigned int closing; /* closes in progress */
	unsigned int parked; /* calls: when one of them is ready, there must be no need for memory */
};

void uvd_turns_init(struct uvd_turns *t)
{
	atomic_init(&t->waiting, 0);
	pthread_mutex_init(&t->lock, NULL);
	INIT_LIST_HEAD(&t->users);
	INIT_LIST_HEAD(&t->parked);
	for (int i = 0; i < UVD_TURN_BUCKETS; i++) {
		INIT_LIST_HEAD(&t->buckets[i]);
		t->user_buckets[i] = NULL;
	}
}

void uvd_turns_fini(struct uvd_turns *t)
{
	pthread_mutex_destroy(&t->lock);
}

/* ---- users ------------------------------------------------------------------------------------------------------- */

/* Caller holds t->lock, for this and the other functions of this section. */
static struct turn_user **turn_user_bucket(struct uvd_turns *t, uid_t uid)
{
	return &t->user_buckets[uid % UVD_TURN_BUCKETS];
}

static struct turn_user *turn_user_find(struct uvd_turns *t, const struct uvd_account *account)
{
	const uid_t uid = uvd_account_person(account);
	struct turn_user *user = *turn_user_bucket(t, uid);

	while (user && user->uid != uid)
		user = user->next;
	return user;
}

/* turn_user_settle() must follow, once the user has what it is needed for. */
static struct turn_user *turn_user_get(struct uvd_turns *t, const struct uvd_account *account)
{
	struct turn_user *user = turn_user_find(t, account), **bucket;

	if (user)
		return user;
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->uid = uvd_account_person(account);
	INIT_LIST_HEAD(&user->of_turns);
	INIT_LIST_HEAD(&user->calls);
	INIT_LIST_HEAD(&user->closes);
	bucket = turn_user_bucket(t, user->uid);
	user->next = *bucket;
	*bucket = user;
	return user;
}

static void turn_user_free(struct uvd_turns *t, struct turn_user *user)
{
	struct turn_user **p = turn_user_bucket(t, user->uid);

	while (*p != user)
		p = &(*p)->next;
	*p = user->next;
	free(user);
}

/*
 * Call it after each change of what the user has. A user with nothing but parked calls takes no turns: many of them would keep
 * uvd_turns_take() from finding the others. A user with nothing at all is freed.
 */
static void turn_user_settle(struct uvd_turns *t, struct turn_user *user)
{
	const bool takes_turns = !list_empty(&user->calls) || !list_empty(&user->closes) || user->closing;

	if (takes_turns && list_empty(&user->of_turns)) {
		list_add_tail(&user->of_turns, &t->users);
		t->num_users++;
	} else if (!takes_turns && !list_empty(&user->of_turns)) {
		list_del_init(&user->of_turns);
		t->num_users--;
	}
	if (!takes_turns && !user->parked)
		turn_user_free(t, user);
}

/* Charges the request if it may begin now, and returns true then. No request overtakes another one of its user. */
static bool turn_user_begin(struct turn_user *user, struct uvd_account *account, bool close)
{
	if (!close)
		return list_empty(&user->calls) && uvd_account_try(account, UVD_RES_CALLS, 1);
	if (!list_empty(&user->closes) || user->closing >= UVD_TURN_CLOSES)
		return false;
	user->closing++;
	return true;
}

/* ---- waiting requests -------------------------------------------------------------------------------------------- */

struct uvd_turn *uvd_turn_copy(struct uvd_account *account, uint64_t unique, const void *request, size_t size)
{
	struct uvd_turn *turn = malloc(sizeof(*turn) + size);

	if (!turn)
		return NULL;
	*turn = (struct uvd_turn){ .account = uvd_account_ref(account), .unique = unique, .size = size };
	memcpy(turn->request, request, size);
	return turn;
}

/* A close is charged no bytes: it cannot be refused, and there is only one per file. */
static struct uvd_turn *turn_new(struct uvd_account *account, bool close, uint64_t unique, const void *request,
				 size_t size)
{
	struct uvd_turn *turn;

	if (!close && uvd_account_charge(account, UVD_RES_BYTES, sizeof(*turn) + size))
		return NULL;
	turn = uvd_turn_copy(account, unique, request, size);
	if (!turn) {
		if (!close)
			uvd_account_uncharge(account, UVD_RES_BYTES, sizeof(*turn) + size);
		return NULL;
	}
	turn->close = close;
	turn->charged = !close;
	return turn;
}

static void turn_uncharge(struct uvd_turn *turn)
{
	if (turn->charged)
		uvd_account_uncharge(turn->account, UVD_RES_BYTES, sizeof(*turn) + turn->size);
	turn->charged = false;
}

void uvd_turn_free(struct uvd_turn *turn)
{
	if (!turn)
		return;
	turn_uncharge(turn);
	if (turn->held)
		uvd_account_uncharge(turn->account, UVD_RES_PARKED, 1);
	uvd_account_put(turn->account);
	free(turn);
}

static struct list_head *turn_bucket(struct uvd_turns *t, uint64_t unique)
{
	return &t->buckets[unique / 2 % UVD_TURN_BUCKETS]; /* the kernel's numbers are even */
}

/* turn_user_settle() must follow, for this and the next function. */
static void turn_link(struct uvd_turns *t, struct turn_user *user, struct uvd_turn *turn, bool first)
{
	struct list_head *queue = turn->close ? &user->closes : &user->calls;

	if (first)
		list_add(&turn->of_user, queue);
	else
		list_add_tail(&turn->of_user, queue);
	list_add(&turn->of_bucket, turn_bucket(t, turn->unique));
	turn->state = UVD_TURN_QUEUED;
}

static void turn_unlink(struct uvd_turns *t, struct turn_user *user, struct uvd_turn *turn)
{
	list_del_init(&turn->of_user);
	list_del_init(&turn->of_bucket);
	if (turn->state == UVD_TURN_PARKED) {
		turn->state = UVD_TURN_ENDS;
		user->parked--;
	} else {
		atomic_fetch_sub_explicit(&t->waiting, 1, memory_order_relaxed);
	}
}

/* ---- requests begin or wait -------------------------------------------------------------------------------------- */

/* Caller holds t->lock. */
static bool turns_begin(struct uvd_turns *t, struct uvd_account *account, bool close)
{
	struct turn_user *user = close ? turn_user_get(t, account) : turn_user_find(t, account);
	bool begins;

	if (!user) /* without memory for a user, closes are neither counted nor limited */
		return close || uvd_account_try(account, UVD_RES_CALLS, 1);
	begins = turn_user_begin(user, account, close);
	turn_user_settle(t, user);
	return begins;
}

/*
 * Caller holds t->lock. Returns 1: the request waits; 0: it begins after all; or a negative errno.
 *
 * This function counts the request before it tries the share again, and uvd_turns_leave() gives the share back before
 * the count is read. So either this function gets the share, or the thread that gave it back sees the request.
 */
static int turns_queue(struct uvd_turns *t, struct uvd_turn *turn, bool first)
{
	struct turn_user *user;

	if (t->ended)
		return -EIO;
	atomic_fetch_add_explicit(&t->waiting, 1, memory_order_acq_rel);
	if (!first && turns_begin(t, turn->account, turn->close)) {
		atomic_fetch_sub_explicit(&t->waiting, 1, memory_order_relaxed);
		return 0;
	}
	user = turn_user_get(t, turn->account);
	if (!user) {
		atomic_fetch_sub_explicit(&t->waiting, 1, memory_order_relaxed);
		return -ENOMEM;
	}
	turn_link(t, user, turn, first);
	turn_user_settle(t, user);
	return 1;
}

static int turns_copy(struct uvd_turns *t, struct uvd_turn *turn, bool first)
{
	int ret;

	if (!turn)
		return -ENOMEM;
	uvd_lock(&t->lock);
	ret = turns_queue(t, turn, first);
	uvd_unlock(&t->lock);
	if (ret <= 0)
		uvd_turn_free(turn);
	return ret;
}

int uvd_turns_enter(struct uvd_turns *t, struct uvd_account *account, bool close, uint64_t unique, const void *request,
		    size_t size)
{
	bool begins;

	if (!close && !uvd_turns_any(t) && uvd_account_try(account, UVD_RES_CALLS, 1))
		return 0;
	uvd_lock(&t->lock);
	begins = turns_begin(t, account, close);
	uvd_unlock(&t->lock);
	return begins ? 0 : turns_copy(t, turn_new(account, close, unique, request, size), false);
}

/* Gives the share back. */
static void turns_uncharge(struct uvd_turns *t, struct uvd_account *account, bool close)
{
	struct turn_user *user;

	if (!close) {
		uvd_account_uncharge(account, UVD_RES_CALLS, 1);
		return;
	}
	uvd_lock(&t->lock);
	user = turn_user_find(t, account);
	if (user && user->closing) {
		user->closing--;
		turn_user_settle(t, user);
	}
	uvd_unlock(&t->lock);
}

int uvd_turns_postpone(struct uvd_turns *t, struct uvd_account *account, bool close, uint64_t unique,
		       const void *request, size_t size)
{
	turns_uncharge(t, account, close);
	return turns_copy(t, turn_new(account, close, unique, request, size), true);
}

void uvd_turns_leave(struct uvd_turns *t, struct uvd_account *account, bool close)
{
	turns_uncharge(t, account, close);
	/* See turns_queue(): a thread that increments the count after this sees that the share was given back. */
	atomic_fetch_add_explicit(&t->waiting, 0, memory_order_acq_rel);
}

/* ---- requests leave their queues --------------------------------------------------------------------------------- */

/* Charges and returns the user's next request that may begin; NULL: none. Closes go first: they free resources. */
static struct uvd_turn *turn_user_next(struct turn_user *user)
{
	struct uvd_turn *turn;

	if (!list_empty(&user->closes) && user->closing < UVD_TURN_CLOSES) {
		user->closing++;
		return list_first_entry(&user->closes, struct uvd_turn, of_user);
	}
	if (list_empty(&user->calls))
		return NULL;
	turn = list_first_entry(&user->calls, struct uvd_turn, of_user);
	return uvd_account_try(turn->account, UVD_RES_CALLS, 1) ? turn : NULL;
}

struct uvd_turn *uvd_turns_take(struct uvd_turns *t)
{
	struct uvd_turn *turn = NULL;
	struct turn_user *user;

	uvd_lock(&t->lock);
	for (unsigned int i = 0, n = t->num_users < MAX_LOOKS ? t->num_users : MAX_LOOKS; i < n && !turn; i++) {
		user = list_first_entry(&t->users, struct turn_user, of_turns);
		list_del_init(&user->of_turns);
		list_add_tail(&user->of_turns, &t->users);
		turn = turn_user_next(user);
		if (turn) {
			turn_unlink(t, user, turn);
			turn_user_settle(t, user);
		}
	}
	uvd_unlock(&t->lock);
	if (turn && !turn->held)
		turn_uncharge(turn);
	return turn;
}

/* Caller holds t->lock. */
static struct uvd_turn *turn_find(struct uvd_turns *t, uint64_t unique)
{
	struct list_head *bucket = turn_bucket(t, unique);
	struct uvd_turn *turn;

	list_for_each_entry(turn, bucket, of_bucket)
		if (turn->unique == unique)
			return turn;
	return NULL;
}

/* Caller holds t->lock. */
static void turn_take_out(struct uvd_turns *t, struct uvd_turn *turn)
{
	struct turn_user *user = turn_user_find(t, turn->account);

	turn_unlink(t, user, turn);
	turn_user_settle(t, user);
}

bool uvd_turns_interrupt(struct uvd_turns *t, uint64_t unique, struct uvd_turn **turn)
{
	struct uvd_turn *found;
	bool waits;

	uvd_lock(&t->lock);
	found = turn_find(t, unique);
	waits = found;
	if (found && found->close)
		found = NULL;
	if (found)
		turn_take_out(t, found);
	uvd_unlock(&t->lock);
	*turn = found;
	return waits;
}

/* Caller holds t->lock. Returns a turn that is parked or queued; NULL: there is none. */
static struct uvd_turn *turns_any_turn(struct uvd_turns *t)
{
	struct turn_user *user;

	if (!list_empty(&t->parked))
		return list_first_entry(&t->parked, struct uvd_turn, of_user);
	list_for_each_entry(user, &t->users, of_turns) {
		if (!list_empty(&user->calls))
			return list_first_entry(&user->calls, struct uvd_turn, of_user);
		if (!list_empty(&user->closes))
			return list_first_entry(&user->closes, struct uvd_turn, of_user);
	}
	return NULL;
}

struct uvd_turn *uvd_turns_end(struct uvd_turns *t)
{
	struct uvd_turn *turn;

	uvd_lock(&t->lock);
	t->ended = true;
	turn = turns_any_turn(t);
	if (turn)
		turn_take_out(t, turn);
	uvd_unlock(&t->lock);
	return turn;
}

/* ---- calls that wait for an event -------------------------------------------------------------------------------- */

int uvd_turn_hold(struct uvd_turn *turn)
{
	int err = 0;

	if (!turn->held) {
		err = uvd_account_charge(turn->account, UVD_RES_BYTES, sizeof(*turn) + turn->size);
		turn->charged = !err;
		err = err ? err : uvd_account_charge(turn->account, UVD_RES_PARKED, 1);
		turn->held = !err;
	}
	turn->state = UVD_TURN_PARKING;
	return err;
}

int uvd_turns_park(struct uvd_turns *t, struct uvd_turn *turn, bool waits)
{
	struct turn_user *user = NULL;
	int ret = -EIO;

	uvd_lock(&t->lock);
	if (!t->ended) {
		user = turn_user_get(t, turn->account);
		ret = !user ? -ENOMEM : !waits || turn->state == UVD_TURN_READY;
	}
	if (!ret) {
		turn->state = UVD_TURN_PARKED;
		user->parked++;
		list_add_tail(&turn->of_user, &t->parked);
		list_add(&turn->of_bucket, turn_bucket(t, turn->unique));
	} else if (ret > 0) {
		atomic_fetch_add_explicit(&t->waiting, 1, memory_order_acq_rel);
		turn_link(t, user, turn, true);
	}
	if (user)
		turn_user_settle(t, user);
	uvd_unlock(&t->lock);
	return ret;
}

bool uvd_turns_ready(struct uvd_turns *t, struct uvd_turn *turn)
{
	struct turn_user *user;
	bool queued;

	uvd_lock(&t->lock);
	queued = turn->state == UVD_TURN_PARKED;
	if (queued) {
		user = turn_user_find(t, turn->account);
		list_del_init(&turn->of_user);
		list_del_init(&turn->of_bucket);
		user->parked--;
		/* As in turns_queue(): the request is counted before a worker tries the share. */
		atomic_fetch_add_explicit(&t->waiting, 1, memory_order_acq_rel);
		turn_link(t, user, turn, false);
		turn_user_settle(t, user);
	} else if (turn->state == UVD_TURN_PARKING) {
		turn->state = UVD_TURN_READY;
	}
	uvd_unlock(&t->lock);
	return queued;
}
