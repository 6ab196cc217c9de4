/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Users' threads, which carry out requests that exceed a call's budget, and requests that had to wait. A user with
 * deferred send queues has one thread. It gets more while QPs wait for a thread, up to most_active, and a replacement
 * for each thread that is held up in a client's memory. The threads run the user's QPs in turn, each for one budget. A
 * thread without work exits after IDLE_MS.
 */
#include <errno.h>
#include <stdlib.h>
#include "account/account.h"
#include "backends/soft/endpoint/endpoint.h"
#include "util/util.h"

enum {
	IDLE_MS = 1000,
	END_MS = 3000, /* how long soft_users_destroy() waits for threads in a client's memory */
};

struct soft_user {
	struct soft_user *next;
	struct soft_users *users;
	uint64_t key;
	pthread_cond_t changed;
	struct list_head deferred; /* QPs, each with a reference */
	unsigned int queued; /* in `deferred` */
	unsigned int threads; /* all */
	unsigned int active; /* threads that are not held up */
	unsigned int working; /* active threads that run a QP */
};

/* One of a user's threads. */
struct soft_thread {
	struct uvd_worker worker;
	struct soft_user *user;
	int nice;
	uint64_t cpu_ns; /* the thread's CPU time when it was last charged */
	bool held_up; /* the users' lock */
};

/* ---- users ------------------------------------------------------------------------------------------------------- */

/*
 * Returns the key of the user whose threads run this QP. Without accounts each context is a user. All mapped ids of a
 * user's namespaces are one user: with threads for each id, a user with many ids would have as many threads.
 */
static uint64_t soft_qp_user(const struct soft_qp *qp)
{
	return qp->qp.account ? uvd_account_person(qp->qp.account) : (uintptr_t)qp->qp.pd->context;
}

void soft_users_init(struct soft_users *users, void (*run)(struct soft_qp *qp, struct uvd_worker *worker))
{
	users->run = run;
	users->most_active = 1;
	pthread_mutex_init(&users->lock, NULL);
	uvd_cond_init(&users->ended);
}

bool soft_users_destroy(struct soft_users *users)
{
	uint64_t end = uvd_now_ns() + END_MS * UINT64_C(1000000);
	bool all;

	/* All QPs are destroyed: each thread exits as soon as it looks at its list, and no user is added. */
	pthread_mutex_lock(&users->lock);
	users->end = true;
	for (struct soft_user *user = users->first; user; user = user->next)
		pthread_cond_broadcast(&user->changed);
	while (users->first && uvd_now_ns() < end)
		uvd_cond_wait_until(&users->ended, &users->lock, end);
	all = !users->first;
	pthread_mutex_unlock(&users->lock);
	if (!all)
		return false;
	pthread_cond_destroy(&users->ended);
	pthread_mutex_destroy(&users->lock);
	return true;
}

/* Caller holds the users' lock. */
static void user_append(struct soft_user *user, struct soft_qp *qp)
{
	soft_ref_get(&qp->ref);
	qp->d_user = user;
	list_add_tail(&qp->of_user, &user->deferred);
	user->queued++;
}

/* Caller holds the users' lock, and takes over the list's reference. */
static void user_unlink(struct soft_user *user, struct soft_qp *qp)
{
	list_del_init(&qp->of_user);
	qp->d_user = NULL;
	user->queued--;
}

/* Best effort: without the privilege the thread cannot raise its priority again. */
static void thread_set_nice(struct soft_thread *thread, int nice)
{
	if (nice != thread->nice && uvd_thread_set_nice(nice))
		thread->nice = nice;
}

static void thread_spend(struct soft_thread *thread, struct uvd_account *account)
{
	uvd_account_spend(account, uvd_thread_cpu_since(&thread->cpu_ns));
}

/*
 * Runs a QP and charges its account for the CPU time. active: the user's active threads. Takes over the reference to
 * qp, which may be freed before the account is charged; so this function takes a reference to the account. Caller holds
 * no lock.
 */
static void thread_run(struct soft_thread *thread, struct soft_qp *qp, unsigned int active)
{
	struct uvd_account *account = qp->qp.account ? uvd_account_ref(qp->qp.account) : NULL;

	thread_set_nice(thread, uvd_account_nice(account, active));
	thread->user->users->run(qp, &thread->worker);
	thread_spend(thread, account);
	uvd_account_put(account);
}

/* Call after thread_run(), with the users' lock held. Returns false if the user has enough threads without this one. */
static bool thread_is_back(struct soft_thread *thread)
{
	if (!thread->held_up) {
		thread->user->working--;
		return true;
	}
	thread->held_up = false;
	if (thread->user->active >= thread->user->users->most_active)
		return false;
	thread->user->active++;
	return true;
}

/*
 * Dequeues the user's next QP, with its reference. Returns NULL if there was none for IDLE_MS, or at the end. Caller
 * holds the users' lock, which is released meanwhile.
 */
static struct soft_qp *thread_next(struct soft_thread *thread)
{
	struct soft_user *user = thread->user;
	uint64_t end = uvd_now_ns() + IDLE_MS * UINT64_C(1000000);
	struct soft_qp *qp;

	while (list_empty(&user->deferred) && !user->users->end && uvd_now_ns() < end)
		uvd_cond_wait_until(&user->changed, &user->users->lock, end);
	if (list_empty(&user->deferred))
		return NULL;
	qp = list_first_entry(&user->deferred, struct soft_qp, of_user);
	user_unlink(user, qp);
	user->working++;
	return qp;
}

/* Caller holds the users' lock. */
static void soft_user_free(struct soft_user *user)
{
	struct soft_user **p = &user->users->first;

	while (*p != user)
		p = &(*p)->next;
	*p = user->next;
	pthread_cond_destroy(&user->changed);
	if (!user->users->first)
		pthread_cond_signal(&user->users->ended);
	free(user);
}

static void *user_thread(void *arg)
{
	struct soft_thread *thread = arg;
	struct soft_user *user = thread->user;
	pthread_mutex_t *lock = &user->users->lock;
	struct soft_qp *qp;
	unsigned int active;
	bool is_needed = true;

	pthread_detach(pthread_self());
	pthread_mutex_lock(lock);
	while (is_needed && (qp = thread_next(thread))) {
		active = user->active;
		pthread_mutex_unlock(lock);
		thread_run(thread, qp, active);
		pthread_mutex_lock(lock);
		is_needed = thread_is_back(thread);
	}
	if (is_needed)
		user->active--;
	if (!--user->threads)
		soft_user_free(user);
	pthread_mutex_unlock(lock);
	free(thread);
	return NULL;
}

static void thread_held_up(struct uvd_worker *worker);

/* Caller holds the users' lock. */
static bool user_start_thread(struct soft_user *user)
{
	struct soft_thread *thread = calloc(1, sizeof(*thread));
	pthread_t id;

	if (!thread)
		return false;
	thread->worker.held_up = thread_held_up;
	thread->user = user;
	user->threads++;
	user->active++;
	if (!uvd_thread_start(&id, 0, user_thread, thread))
		return true;
	user->threads--;
	user->active--;
	free(thread);
	return false;
}

/* struct uvd_worker.held_up: starts another thread if QPs of the user wait. */
static void thread_held_up(struct uvd_worker *worker)
{
	struct soft_thread *thread = (struct soft_thread *)worker;
	struct soft_user *user = thread->user;

	pthread_mutex_lock(&user->users->lock);
	thread->held_up = true;
	user->active--;
	user->working--;
	if (user->queued && user->active < user->users->most_active)
		user_start_thread(user);
	pthread_mutex_unlock(&user->users->lock);
}

/* Caller holds the lock. Returns NULL if none of the user's QPs is deferred, and no thread is left. */
static struct soft_user *users_find(struct soft_users *users, uint64_t key)
{
	struct soft_user *user = users->first;

	while (user && user->key != key)
		user = user->next;
	return user;
}

/* Returns the user with an active thread, or NULL if there is no memory or no thread. Caller holds the users' lock. */
static struct soft_user *users_get(struct soft_users *users, uint64_t key)
{
	struct soft_user *user = users_find(users, key);

	if (user)
		return user->active || user_start_thread(user) ? user : NULL;
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->users = users;
	user->key = key;
	INIT_LIST_HEAD(&user->deferred);
	if (!user_start_thread(user)) {
		free(user);
		return NULL;
	}
	uvd_cond_init(&user->changed);
	user->next = users->first;
	users->first = user;
	return user;
}

/*
 * Appends a QP to the user's list, and starts another thread if all have work. by_user_thread: one of them is the
 * caller, which is free next. Caller holds the users' lock.
 */
static void user_queue_qp(struct soft_user *user, struct soft_qp *qp, bool by_user_thread)
{
	if (user->queued + user->working >= user->active + by_user_thread && user->active < user->users->most_active)
		user_start_thread(user);
	user_append(user, qp);
	pthread_cond_signal(&user->changed);
}

bool soft_defer(struct soft_qp *qp, bool by_user_thread)
{
	struct soft_users *users = &qp->dev->fabric->users;
	struct soft_user *user;

	pthread_mutex_lock(&users->lock);
	user = qp->d_user;
	if (!user) {
		user = users_get(users, soft_qp_user(qp));
		if (user)
			user_queue_qp(user, qp, by_user_thread);
	}
	pthread_mutex_unlock(&users->lock);
	if (!user)
		return false;
	qp->s_deferred = true;
	return true;
}

void soft_undefer(struct soft_qp *qp)
{
	struct soft_users *users = &qp->dev->fabric->users;

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

bool soft_user_has_more(struct soft_qp *qp)
{
	struct soft_users *users = &qp->dev->fabric->users;
	const struct soft_user *user;
	bool more;

	pthread_mutex_lock(&users->lock);
	user = users_find(users, soft_qp_user(qp));
	more = user && user->queued;
	pthread_mutex_unlock(&users->lock);
	return more;
}
