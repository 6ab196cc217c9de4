/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The budget of a call, and the threads that carry out what lies beyond it: one for each user with deferred send queues. A
 * user's thread runs the user's QPs in turn, each for a budget. It starts with the first deferred QP and exits with the
 * last; the next deferral, or the end of the fabric, joins it.
 */
#include <stdlib.h>
#include "account/account.h"
#include "backends/soft/soft.h"
#include "util/util.h"

enum {
	/* A budget ends at either of these. */
	BUDGET_BYTES = 64 << 20,
	BUDGET_NS = 20 * 1000 * 1000,
	/* The clock is read once in so many requests or bytes. */
	LOOK_REQUESTS = 64,
	LOOK_BYTES = 256 << 10,
};

struct soft_user {
	struct soft_user *next;
	struct soft_users *users;
	uint64_t key;
	struct soft_qp *first, *last; /* deferred QPs, each with a reference */
	pthread_t thread;
	int nice; /* of the thread */
	uint64_t cpu_ns; /* that it had used when that was last charged */
	bool ended; /* the thread has found no QP, and takes no lock any more */
};

/* ---- budgets ----------------------------------------------------------------------------------------------------- */

/* False: the time is over. The first look starts the clock. */
static bool budget_look(struct soft_budget *budget)
{
	uint64_t now = uvd_now_ns();

	budget->new_requests = 0;
	budget->new_bytes = 0;
	if (!budget->start)
		budget->start = now;
	return now - budget->start < BUDGET_NS;
}

bool soft_budget_take(struct soft_budget *budget, uint64_t bytes, bool to_many)
{
	bool first = !budget->begun;

	budget->begun = true;
	budget->bytes += bytes;
	budget->new_bytes += bytes;
	budget->new_requests++;
	/* One request can be larger than a budget. A user's thread has to carry it out all the same. */
	if (budget->bytes > BUDGET_BYTES && !(first && budget->of_user_thread))
		budget->spent = true;
	else if (to_many || budget->new_requests > LOOK_REQUESTS || budget->new_bytes > LOOK_BYTES)
		budget->spent = !budget_look(budget);
	return !budget->spent;
}

/* ---- users ------------------------------------------------------------------------------------------------------- */

/* The user whose thread runs the send queue of this QP once it is deferred. Where nobody pays, each context is a user. */
static uint64_t soft_qp_user(const struct soft_qp *qp)
{
	return qp->qp.account ? uvd_account_uid(qp->qp.account) : (uintptr_t)qp->qp.pd->context;
}

void soft_users_init(struct soft_users *users)
{
	pthread_mutex_init(&users->lock, NULL);
}

void soft_users_destroy(struct soft_users *users)
{
	struct soft_user *user;

	/* All QPs are destroyed, so each thread exits as soon as it looks, and nobody adds a user. */
	while ((user = users->first)) {
		pthread_join(user->thread, NULL);
		users->first = user->next;
		free(user);
	}
	pthread_mutex_destroy(&users->lock);
}

/* Caller holds the user's lock. */
static void user_append(struct soft_user *user, struct soft_qp *qp)
{
	soft_ref_get(&qp->ref);
	qp->d_user = user;
	qp->d_prev = user->last;
	qp->d_next = NULL;
	if (user->last)
		user->last->d_next = qp;
	else
		user->first = qp;
	user->last = qp;
}

/* Caller holds the user's lock, and takes over the list's reference. */
static void user_unlink(struct soft_user *user, struct soft_qp *qp)
{
	if (qp->d_prev)
		qp->d_prev->d_next = qp->d_next;
	else
		user->first = qp->d_next;
	if (qp->d_next)
		qp->d_next->d_prev = qp->d_prev;
	else
		user->last = qp->d_prev;
	qp->d_prev = qp->d_next = NULL;
	qp->d_user = NULL;
}

/* Where it cannot be raised again it stays low. */
static void user_set_nice(struct soft_user *user, int nice)
{
	if (nice != user->nice && uvd_thread_set_nice(nice))
		user->nice = nice;
}

static void user_spend(struct soft_user *user, const struct soft_qp *qp)
{
	uint64_t now = uvd_thread_cpu_ns();

	uvd_account_spend(qp->qp.account, now - user->cpu_ns);
	user->cpu_ns = now;
}

static void *user_thread(void *arg)
{
	struct soft_user *user = arg;
	pthread_mutex_t *lock = &user->users->lock;
	struct soft_qp *qp;

	pthread_mutex_lock(lock);
	while ((qp = user->first)) {
		user_unlink(user, qp);
		pthread_mutex_unlock(lock);
		user_set_nice(user, uvd_account_is_ahead(qp->qp.account) ? UVD_NICE_AHEAD : 0);
		soft_send_run_deferred(qp);
		user_spend(user, qp);
		soft_ref_put(&qp->ref);
		pthread_mutex_lock(lock);
	}
	user->ended = true;
	pthread_mutex_unlock(lock);
	return NULL;
}

/* Caller holds the lock. Frees users whose threads have ended: joining such a thread does not wait for the lock. */
static void users_reap(struct soft_users *users)
{
	for (struct soft_user *user, **p = &users->first; (user = *p);) {
		if (!user->ended) {
			p = &user->next;
			continue;
		}
		pthread_join(user->thread, NULL);
		*p = user->next;
		free(user);
	}
}

/* Caller holds the lock. NULL: no memory, or no thread. */
static struct soft_user *users_get(struct soft_users *users, uint64_t key)
{
	struct soft_user *user;

	users_reap(users);
	for (user = users->first; user; user = user->next)
		if (user->key == key)
			return user;
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->users = users;
	user->key = key;
	if (uvd_thread_start(&user->thread, 0, user_thread, user)) {
		free(user);
		return NULL;
	}
	user->next = users->first;
	users->first = user;
	return user;
}

bool soft_defer(struct soft_qp *qp)
{
	struct soft_users *users = &qp->dev->ibdev->fabric->users;
	struct soft_user *user;

	pthread_mutex_lock(&users->lock);
	user = qp->d_user;
	if (!user) {
		user = users_get(users, soft_qp_user(qp));
		if (user)
			user_append(user, qp);
	}
	pthread_mutex_unlock(&users->lock);
	if (!user)
		return false;
	qp->s_deferred = true;
	return true;
}

void soft_undefer(struct soft_qp *qp)
{
	struct soft_users *users = &qp->dev->ibdev->fabric->users;

	if (!qp->s_deferred)
		return;
	qp->s_deferred = false;
	pthread_mutex_lock(&users->lock);
	if (qp->d_user) {
		user_unlink(qp->d_user, qp);
		soft_ref_put(&qp->ref);
	}
	pthread_mutex_unlock(&users->lock);
}
