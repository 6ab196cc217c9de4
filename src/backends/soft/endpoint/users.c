/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Users' threads, which carry out requests that exceed a call's budget, and requests that had to wait. A user with
 * deferred send queues has one thread. It gets more while QPs wait for a thread, up to most_active, and a replacement
 * for each thread that is held up in a client's memory, up to most_threads in all: then the user's QPs wait until a thread
 * is back. The threads run the user's QPs in turn, each for one budget. A thread without work exits after IDLE_MS.
 *
 * A client posts to a mapped receive queue without telling anybody, also if the QP is in ERR: then the receive has to be flushed. So a
 * thread of the user looks at those QPs, and stays while there are any.
 */
#include <errno.h>
#include <stdlib.h>
#include "account/account.h"
#include "backends/soft/endpoint/endpoint.h"
#include "util/util.h"

enum {
	/* A thread keeps its stack and the mover's buffer. All devices of the daemon share its limit of tasks. */
	MOST_THREADS = 64,
	IDLE_MS = 1000,
	END_MS = 3000, /* how long soft_users_destroy() waits for threads in a client's memory */
	LOOK_FIRST_NS = 20 * 1000,
	LOOK_MOST_NS = 10 * 1000 * 1000,
	/* One look ends after so many QPs or flushed receives. The next one goes on with the other QPs. */
	LOOK_QPS = 256,
	LOOK_RECEIVES = 1024,
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
	struct list_head
		in_error; /* QPs in ERR with a mapped receive queue; the one that was looked at last is the last */
	unsigned int num_in_error;
	uint64_t look_end,
		look_ns; /* when the next look is due, CLOCK_MONOTONIC; and the time from the last one to it */
	bool looks, hurried; /* a thread looks at this moment; soft_error_hurry() was called since it began */
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
 * Returns the key of a user with threads: with a user namespace its owner, or each of the ids that an owner has mapped would
 * have threads of its own. Without accounts each context is a user.
 */
static uint64_t user_key(const struct uvd_account *account, const struct uvd_context *context)
{
	return account ? uvd_account_person(account) : (uintptr_t)context;
}

static uint64_t soft_qp_user(const struct soft_qp *qp)
{
	/* An XRC target has no PD. Without an account it is its device's own user. */
	if (!qp->qp.account && !qp->qp.pd)
		return (uintptr_t)qp->dev;
	return user_key(qp->qp.account, qp->qp.account ? NULL : qp->qp.pd->context);
}

void soft_users_init(struct soft_users *users, void (*run)(struct soft_qp *qp, struct uvd_worker *worker))
{
	users->run = run;
	users->most_active = 1;
	users->most_threads = MOST_THREADS;
	users->look_first_ns = LOOK_FIRST_NS;
	users->look_most_ns = LOOK_MOST_NS;
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

/* ---- looks at QPs in ERR ----------------------------------------------------------------------------------------- */

/* Charges the account for the CPU time so far, and puts its reference. Returns `next` with a reference. */
static struct uvd_account *look_change_account(struct soft_thread *thread, struct uvd_account *account,
					       struct uvd_account *next)
{
	thread_spend(thread, account);
	uvd_account_put(account);
	return next ? uvd_account_ref(next) : NULL;
}

/*
 * Looks at QPs of the user, those first whose last look is longest ago. Returns how many receives it has flushed. Caller holds the
 * users' lock, which is released meanwhile.
 */
static unsigned int thread_look_at_qps(struct soft_thread *thread)
{
	struct soft_user *user = thread->user;
	const unsigned int active = user->active;
	struct uvd_account *account = NULL;
	unsigned int found = 0;

	for (unsigned int n = user->num_in_error < LOOK_QPS ? user->num_in_error : LOOK_QPS;
	     n && found < LOOK_RECEIVES && !list_empty(&user->in_error); n--) {
		struct soft_qp *qp = list_first_entry(&user->in_error, struct soft_qp, in_error);

		list_del_init(&qp->in_error);
		list_add_tail(&qp->in_error, &user->in_error);
		/* The QP is in the list, so it is valid: its destruction calls soft_error_unwatch() first. */
		soft_ref_get(&qp->ref);
		pthread_mutex_unlock(&user->users->lock);
		if (qp->qp.account != account) {
			account = look_change_account(thread, account, qp->qp.account);
			thread_set_nice(thread, uvd_account_nice(account, active));
		}
		found += soft_recv_look(qp, LOOK_RECEIVES - found);
		soft_ref_put(&qp->ref);
		pthread_mutex_lock(&user->users->lock);
	}
	pthread_mutex_unlock(&user->users->lock);
	look_change_account(thread, account, NULL);
	pthread_mutex_lock(&user->users->lock);
	return found;
}

/* Makes the next look come after `ns`, and those behind it soon. Caller holds the users' lock. */
static void user_look_soon(struct soft_user *user, uint64_t ns)
{
	user->look_ns = user->users->look_first_ns;
	user->look_end = uvd_now_ns() + ns;
	user->hurried = true;
	pthread_cond_broadcast(&user->changed);
}

/* Looks if that is due. Caller holds the users' lock, which is released meanwhile. */
static void thread_look(struct soft_thread *thread)
{
	struct soft_user *user = thread->user;
	const uint64_t most = user->users->look_most_ns;

	if (user->looks || list_empty(&user->in_error) || uvd_now_ns() < user->look_end)
		return;
	user->looks = true;
	user->hurried = false;
	user->working++;
	/* A client may have armed a CQ meanwhile: that look must not be put off. */
	if (thread_look_at_qps(thread) && !user->hurried)
		user_look_soon(user, user->users->look_first_ns);
	user->working--;
	user->looks = false;
	if (user->hurried)
		return;
	user->look_ns = user->look_ns * 2 < most ? user->look_ns * 2 : most;
	user->look_end = uvd_now_ns() + user->look_ns;
}

/* Returns when a thread that has been idle until `end` has something to do, or may exit. Caller holds the users' lock. */
static uint64_t user_idle_end(const struct soft_user *user, uint64_t end)
{
	if (user->looks || list_empty(&user->in_error))
		return end;
	/* The last thread stays for the looks. */
	return user->active == 1 || user->look_end < end ? user->look_end : end;
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

/*
 * Dequeues the user's next QP, with its reference. Returns NULL if there was none for IDLE_MS, or at the end. Caller
 * holds the users' lock, which is released meanwhile.
 */
static struct soft_qp *thread_next(struct soft_thread *thread)
{
	struct soft_user *user = thread->user;
	uint64_t end = uvd_now_ns() + IDLE_MS * UINT64_C(1000000);
	struct soft_qp *qp;

	thread_look(thread);
	while (list_empty(&user->deferred) && !user->users->end &&
	       (uvd_now_ns() < end || (user->active == 1 && !list_empty(&user->in_error)))) {
		uvd_cond_wait_until(&user->changed, &user->users->lock, user_idle_end(user, end));
		thread_look(thread);
	}
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

/* May the user have one more thread? Caller holds the users' lock. */
static bool user_may_start(const struct soft_user *user)
{
	return user->active < user->users->most_active && user->threads < user->users->most_threads;
}

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

/* struct uvd_worker.held_up: starts another thread if QPs of the user wait, or have to be looked at. */
static void thread_held_up(struct uvd_worker *worker)
{
	struct soft_thread *thread = (struct soft_thread *)worker;
	struct soft_user *user = thread->user;

	pthread_mutex_lock(&user->users->lock);
	thread->held_up = true;
	user->active--;
	user->working--;
	if ((user->queued || user->num_in_error) && user_may_start(user))
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

/*
 * Returns the user with an active thread, or with as many as may be held up; NULL: there is no memory or no thread. Caller
 * holds the users' lock.
 */
static struct soft_user *users_get(struct soft_users *users, uint64_t key)
{
	struct soft_user *user = users_find(users, key);

	if (user)
		return user->active || !user_may_start(user) || user_start_thread(user) ? user : NULL;
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->users = users;
	user->key = key;
	INIT_LIST_HEAD(&user->deferred);
	INIT_LIST_HEAD(&user->in_error);
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
	if (user->queued + user->working >= user->active + by_user_thread && user_may_start(user))
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

void soft_error_watch(struct soft_qp *qp)
{
	struct soft_users *users = &qp->dev->fabric->users;
	struct soft_user *user;

	if (!qp->qp.rq || qp->e_user)
		return;
	pthread_mutex_lock(&users->lock);
	user = users_get(users, soft_qp_user(qp));
	if (user) {
		qp->e_user = user;
		list_add_tail(&qp->in_error, &user->in_error);
		user->num_in_error++;
		users->num_in_error++;
		user_look_soon(user, users->look_first_ns);
	}
	pthread_mutex_unlock(&users->lock);
	if (!user)
		soft_timer_arm(&qp->dev->fabric->timers, qp, LOOK_MOST_NS);
}

void soft_error_unwatch(struct soft_qp *qp)
{
	struct soft_users *users = &qp->dev->fabric->users;

	if (!qp->e_user)
		return;
	pthread_mutex_lock(&users->lock);
	list_del_init(&qp->in_error);
	qp->e_user->num_in_error--;
	users->num_in_error--;
	qp->e_user = NULL;
	pthread_mutex_unlock(&users->lock);
}

void soft_error_timeout(struct soft_qp *qp)
{
	if (qp->state != IBV_QPS_ERR)
		return;
	pthread_mutex_lock(&qp->lock);
	if (qp->state == IBV_QPS_ERR)
		soft_error_watch(qp);
	pthread_mutex_unlock(&qp->lock);
}

void soft_error_hurry(struct soft_users *users, const struct uvd_context *context)
{
	struct soft_user *user;

	/* Clients call this for each event that they wait for, and QPs in ERR are rare. */
	if (!users->num_in_error)
		return;
	pthread_mutex_lock(&users->lock);
	user = users_find(users, user_key(context->account, context));
	if (user && user->num_in_error)
		user_look_soon(user, 0);
	pthread_mutex_unlock(&users->lock);
}
