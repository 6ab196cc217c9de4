/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <uverbsd/log.h>
#include "account/account.h"
#include "backends/soft/memory/memory.h"
#include "util/util.h"

#define MS UINT64_C(1000000)

enum { TICK_NS = 10 * 1000 * 1000, IDLE_TICKS = 100, STUCK_NS = 2 * TICK_NS };

/* ---- the watcher ------------------------------------------------------------------------------------------------- */

/* The watcher has taken these QPs away from a mover, which was at `place`. */
struct taken {
	struct soft_qp *requester, *responder;
	enum soft_place place;
};

/* Marks a mover that does not come back from an access as lost. Caller holds m->lock. */
static void mover_lose(struct soft_mover *m)
{
	if (m->lost)
		return;
	m->lost = true;
	atomic_fetch_add(&m->movers->lost, 1);
	if (m->worker && m->worker->given_up && m->place == SOFT_AT_RESPONDER)
		m->worker->given_up(m->worker, m->owner);
}

/*
 * Takes the requester away, and the responder if responder_too. Caller holds m->lock. Returns false if there was none
 * to take.
 */
static bool mover_take(struct soft_mover *m, bool responder_too, struct taken *taken)
{
	*taken = (struct taken){ m->requester.qp, responder_too ? m->responder.qp : NULL, m->place };
	if (!taken->requester && !taken->responder)
		return false;
	m->requester.qp = NULL;
	if (responder_too)
		m->responder.qp = NULL;
	else if (m->responder.qp)
		atomic_store(m->responder.is_slow, true);
	mover_lose(m);
	return true;
}

/*
 * Is m blocked in a client's memory, or does it wait for a mover that is? On a busy machine a thread can be in an access
 * for long because it, or the mover that it waits for, waits for a processor. Caller holds m->lock.
 */
static bool is_blocked(struct soft_mover *m)
{
	return m->waits_for ? atomic_load(m->waits_for) : !uvd_thread_is_runnable(m->tid);
}

bool soft_mover_is_stuck(struct soft_mover *m, const struct soft_qp *qp)
{
	bool stuck;

	pthread_mutex_lock(&m->lock);
	stuck = m->place == SOFT_AT_RESPONDER && m->requester.qp == qp && m->nr == m->seen_nr &&
		uvd_now_ns() - m->seen_ns > STUCK_NS && is_blocked(m);
	pthread_mutex_unlock(&m->lock);
	return stuck;
}

/* ns: how long m has been in this access. Caller holds m->lock. Returns true if something was taken away. */
static bool watch_access(struct soft_mover *m, uint64_t ns, struct taken *taken)
{
	const struct soft_movers *movers = m->movers;

	if (ns > movers->held_up_ns && !m->told) {
		m->told = true;
		if (m->worker && m->worker->held_up)
			m->worker->held_up(m->worker);
	}
	if (ns > movers->patience_ns)
		return mover_take(m, true, taken);
	if (ns <= movers->drop_ns || !m->may_drop || m->place != SOFT_AT_RESPONDER)
		return false;
	return is_blocked(m) && mover_take(m, false, taken);
}

/* Returns true if m has been in one access for too long. Then *taken is what was taken away, with its references. */
static bool mover_watch(struct soft_mover *m, uint64_t now, struct taken *taken)
{
	bool over = false;

	pthread_mutex_lock(&m->lock);
	if (m->place == SOFT_NOWHERE || m->nr != m->seen_nr) {
		m->seen_nr = m->nr;
		m->seen_ns = now;
	} else {
		over = watch_access(m, now - m->seen_ns, taken);
	}
	pthread_mutex_unlock(&m->lock);
	return over;
}

/*
 * Caller holds movers->lock, which is released during give_up(). Only soft_movers_destroy() frees movers, so the list
 * stays valid.
 */
static void watch_all(struct soft_movers *movers)
{
	uint64_t now = uvd_now_ns();
	struct taken taken;

	for (struct soft_mover *m = movers->all; m; m = m->next) {
		if (!mover_watch(m, now, &taken))
			continue;
		pthread_mutex_unlock(&movers->lock);
		movers->give_up(taken.requester, taken.responder, taken.place);
		pthread_mutex_lock(&movers->lock);
	}
}

static void *watcher_thread(void *arg)
{
	struct soft_movers *movers = arg;
	unsigned int ticks = 0; /* since a mover was in use */

	pthread_mutex_lock(&movers->lock);
	while (!movers->stop) {
		ticks = movers->used ? 0 : ticks + 1;
		movers->idle = ticks > IDLE_TICKS;
		if (movers->idle)
			pthread_cond_wait(&movers->changed, &movers->lock);
		else
			uvd_cond_wait_until(&movers->changed, &movers->lock, uvd_now_ns() + TICK_NS);
		movers->idle = false;
		watch_all(movers);
	}
	pthread_mutex_unlock(&movers->lock);
	return NULL;
}

/* ---- movers ------------------------------------------------------------------------------------------------------ */

void soft_movers_init(struct soft_movers *movers,
		      void (*give_up)(struct soft_qp *requester, struct soft_qp *responder, enum soft_place place))
{
	movers->give_up = give_up;
	movers->held_up_ns = 20 * MS;
	movers->drop_ns = 100 * MS;
	movers->patience_ns = 4000 * MS;
	pthread_mutex_init(&movers->lock, NULL);
	uvd_cond_init(&movers->changed);
}

bool soft_movers_destroy(struct soft_movers *movers)
{
	struct soft_mover *next;
	unsigned int used;

	pthread_mutex_lock(&movers->lock);
	movers->stop = true;
	pthread_cond_signal(&movers->changed);
	pthread_mutex_unlock(&movers->lock);
	if (movers->watching)
		pthread_join(movers->watcher, NULL);
	pthread_mutex_lock(&movers->lock);
	used = movers->used;
	pthread_mutex_unlock(&movers->lock);
	if (used)
		return false;
	for (struct soft_mover *m = movers->all; m; m = next) {
		next = m->next;
		pthread_mutex_destroy(&m->lock);
		free(m);
	}
	pthread_cond_destroy(&movers->changed);
	pthread_mutex_destroy(&movers->lock);
	return true;
}

/* Caller holds movers->lock. */
static struct soft_mover *mover_new(struct soft_movers *movers)
{
	struct soft_mover *m = malloc(sizeof(*m));

	if (!m)
		return NULL;
	/* Do not clear the buffer: most messages are small, and its untouched pages cost nothing. */
	memset(m, 0, offsetof(struct soft_mover, buffer));
	m->movers = movers;
	m->index = movers->num++;
	pthread_mutex_init(&m->lock, NULL);
	return m;
}

struct soft_mover *soft_mover_get(struct soft_movers *movers, struct uvd_worker *worker)
{
	struct soft_mover *m;

	pthread_mutex_lock(&movers->lock);
	m = movers->free;
	if (m) {
		movers->free = m->next_free;
	} else {
		m = mover_new(movers);
		if (m) {
			m->next = movers->all;
			movers->all = m;
		}
	}
	if (m) {
		m->worker = worker;
		m->tid = uvd_thread_id();
		m->told = false;
		movers->used++;
		/* If the thread cannot start, a client's memory can keep a mover waiting without limit. */
		if (!movers->watching)
			movers->watching = !uvd_thread_start(&movers->watcher, 0, watcher_thread, movers);
		if (movers->idle)
			pthread_cond_signal(&movers->changed);
	}
	pthread_mutex_unlock(&movers->lock);
	return m;
}

void soft_mover_put(struct soft_mover *m)
{
	struct soft_movers *movers = m->movers;

	pthread_mutex_lock(&movers->lock);
	m->worker = NULL;
	m->next_free = movers->free;
	movers->free = m;
	movers->used--;
	pthread_mutex_unlock(&movers->lock);
}

/* ---- accesses ---------------------------------------------------------------------------------------------------- */

/*
 * Is a lost mover still in mm, or are SOFT_MOST_LOST of them in memory of this user, whose open files have an account each?
 * Then the caller would be lost there as well. user UVD_LOG_NO_USER: the second question is not asked.
 */
static bool is_lost_there(struct soft_movers *movers, const struct uvd_mm *mm, uid_t user)
{
	unsigned int of_user = 0;
	bool lost = false;

	pthread_mutex_lock(&movers->lock);
	for (struct soft_mover *m = movers->all; m && !lost; m = m->next) {
		pthread_mutex_lock(&m->lock);
		if (m->lost) {
			of_user += user != UVD_LOG_NO_USER && m->owner && m->owner_user == user;
			lost = (mm && m->mm == mm) || of_user == SOFT_MOST_LOST;
		}
		pthread_mutex_unlock(&m->lock);
	}
	pthread_mutex_unlock(&movers->lock);
	return lost;
}

static bool is_gone(const struct soft_party *party)
{
	int state = party->qp ? atomic_load_explicit(party->state, memory_order_relaxed) : IBV_QPS_RTS;

	return state == IBV_QPS_RESET || state == IBV_QPS_ERR;
}

enum soft_copy_error soft_mover_enter(struct soft_mover *m, enum soft_place place, struct uvd_mm *mm,
				      struct uvd_account *owner)
{
	const uid_t user = uvd_account_person(owner);
	/*
	 * The limit of lost movers is for other users' memory. Under `run` all process trees are one user. users.c limits
	 * how many threads a user can lose in memory of its own.
	 */
	const uid_t other = user == m->requester.user ? UVD_LOG_NO_USER : user;
	bool gone;

	if (atomic_load_explicit(&m->movers->lost, memory_order_relaxed) && is_lost_there(m->movers, mm, other))
		return place == SOFT_AT_REQUESTER ? SOFT_COPY_BAD : SOFT_COPY_CUT;
	pthread_mutex_lock(&m->lock);
	/*
	 * A thread that ends a QP sets its state before it takes m->lock to see m->place. So we see that state, or it
	 * sees our place.
	 */
	gone = is_gone(&m->requester) || is_gone(&m->responder);
	if (!gone) {
		m->place = place;
		m->mm = mm;
		m->owner = owner;
		m->owner_user = user;
		m->nr++;
	}
	pthread_mutex_unlock(&m->lock);
	return gone ? SOFT_COPY_CUT : SOFT_COPY_OK;
}

bool soft_mover_leave(struct soft_mover *m)
{
	bool goes_on;

	pthread_mutex_lock(&m->lock);
	goes_on = m->requester.qp || (m->may_drop && m->place == SOFT_AT_RESPONDER && m->responder.qp);
	m->place = SOFT_NOWHERE;
	m->mm = NULL;
	m->owner = NULL;
	if (m->lost)
		atomic_fetch_sub(&m->movers->lost, 1);
	m->lost = false;
	pthread_mutex_unlock(&m->lock);
	return goes_on;
}

bool soft_mover_take_requester(struct soft_mover *m, const struct soft_qp *qp)
{
	bool taken;

	pthread_mutex_lock(&m->lock);
	/* A mover that has lost qp may work for another QP by now. */
	taken = m->place == SOFT_AT_RESPONDER && m->requester.qp == qp;
	if (taken)
		m->requester.qp = NULL;
	pthread_mutex_unlock(&m->lock);
	return taken;
}
