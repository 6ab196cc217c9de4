/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <stdlib.h>
#include "backends/cq_later.h"
#include "backends/cq_ring.h"

enum { FIRST_HELD = 64 /* entries that a ring gets at first; later up to its number of CQEs */ };

/* ---- what a ring holds: caller holds ring->lock ------------------------------------------------------------------ */

void uvd_cq_carry_completion(struct uvd_completion *completion)
{
}

/* Returns for how many ns the filters delay the completion. */
static uint64_t cq_wait_delay(struct uvd_cq_ring *ring, const struct ibv_wc *wc)
{
	const struct uvd_backend *ops = atomic_load_explicit(&ring->cq->context->dev->ops, memory_order_acquire);
	struct uvd_completion completion = { .cq = ring->cq, .wc = wc };

	if (ops->carry_completion == uvd_cq_carry_completion || !ops->carry_completion)
		return 0;
	ops->carry_completion(&completion);
	return completion.delay_ns;
}

/* Doubles the room, up to the number of CQEs. Returns false if there is no memory, or the client's share is used up. */
static bool cq_wait_grow(struct uvd_cq_ring *ring)
{
	struct uvd_cq_wait *w = &ring->wait;
	const unsigned int most = ring->cq->cqe;
	unsigned int size = w->size ? 2 * w->size : FIRST_HELD;
	struct uvd_cq_held *held;

	if (size > most)
		size = most;
	if (size <= w->num || uvd_charge_bytes(ring->account, size * sizeof(*held)))
		return false;
	held = calloc(size, sizeof(*held));
	if (!held) {
		uvd_uncharge_bytes(ring->account, size * sizeof(*held));
		return false;
	}
	for (unsigned int i = 0; i < w->num; i++)
		held[i] = w->held[(w->head + i) % w->size];
	free(w->held);
	uvd_uncharge_bytes(ring->account, w->size * sizeof(*held));
	w->held = held;
	w->size = size;
	w->head = 0;
	return true;
}

/* Queues the oldest held completion. Returns true if uvd_cq_ring_notify() is due. */
static bool cq_wait_release_one(struct uvd_cq_ring *ring)
{
	struct uvd_cq_wait *w = &ring->wait;
	const struct uvd_cq_held *held = &w->held[w->head];

	w->head = (w->head + 1) % w->size;
	w->num--;
	return uvd_cq_ring_put(ring, &held->wc, held->solicited);
}

/* Enters the ring into the list while it holds completions. */
static void cq_wait_list(struct uvd_cq_ring *ring)
{
	struct uvd_cq_wait *w = &ring->wait;

	pthread_mutex_lock(&w->later->lock);
	if (w->num)
		w->due_ns = w->held[w->head].due_ns;
	if (w->num && !w->listed) {
		list_add_tail(&w->of_later, &w->later->rings);
		pthread_cond_broadcast(&w->later->changed);
	} else if (!w->num && w->listed) {
		list_del_init(&w->of_later);
	}
	w->listed = w->num;
	pthread_mutex_unlock(&w->later->lock);
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

/* Queues the completions of a ring whose time has come, and calls its handlers. */
static void cq_later_release(struct uvd_cq_ring *ring)
{
	struct uvd_cq_wait *w = &ring->wait;
	const uint64_t now = uvd_now_ns();
	bool notify = false;

	pthread_mutex_lock(&ring->lock);
	while (w->num && w->held[w->head].due_ns <= now)
		notify |= cq_wait_release_one(ring);
	cq_wait_list(ring);
	pthread_mutex_unlock(&ring->lock);
	if (notify)
		uvd_cq_ring_notify(ring, ring->cq);
}

/* Returns the ring whose oldest completion is due first, or NULL. Caller holds later->lock. */
static struct uvd_cq_ring *cq_later_first(struct uvd_cq_later *later)
{
	struct uvd_cq_wait *w, *first = NULL;

	list_for_each_entry(w, &later->rings, of_later)
		if (!first || w->due_ns < first->due_ns)
			first = w;
	return first ? container_of(first, struct uvd_cq_ring, wait) : NULL;
}

static void *cq_later_thread(void *arg)
{
	struct uvd_cq_later *later = arg;
	struct uvd_cq_ring *ring;

	pthread_mutex_lock(&later->lock);
	while (!later->stop) {
		ring = cq_later_first(later);
		if (!ring) {
			pthread_cond_wait(&later->changed, &later->lock);
		} else if (ring->wait.due_ns > uvd_now_ns()) {
			uvd_cond_wait_until(&later->changed, &later->lock, ring->wait.due_ns);
		} else {
			later->current = ring;
			pthread_mutex_unlock(&later->lock);
			cq_later_release(ring);
			pthread_mutex_lock(&later->lock);
			later->current = NULL;
			pthread_cond_broadcast(&later->changed);
		}
	}
	pthread_mutex_unlock(&later->lock);
	return NULL;
}

/* Returns whether the thread runs. */
static bool cq_later_start(struct uvd_cq_later *later)
{
	bool running;

	pthread_mutex_lock(&later->lock);
	if (!later->running)
		later->running = !uvd_thread_start(&later->thread, 0, cq_later_thread, later);
	running = later->running;
	pthread_mutex_unlock(&later->lock);
	return running;
}

/* ---- the ring's side --------------------------------------------------------------------------------------------- */

bool uvd_cq_later_holds(struct uvd_cq_ring *ring, const struct ibv_wc *wc, bool solicited, bool *notify)
{
	struct uvd_cq_wait *w = &ring->wait;
	const uint64_t delay = cq_wait_delay(ring, wc);

	if (!delay && !w->num)
		return false;
	if (!cq_later_start(w->later) || (w->num == w->size && !cq_wait_grow(ring))) {
		/* No room: the held ones come early, as completions keep their order. */
		while (w->num)
			*notify |= cq_wait_release_one(ring);
		cq_wait_list(ring);
		return false;
	}
	w->held[(w->head + w->num++) % w->size] =
		(struct uvd_cq_held){ .wc = *wc, .due_ns = uvd_now_ns() + delay, .solicited = solicited };
	cq_wait_list(ring);
	return true;
}

void uvd_cq_later_forget(struct uvd_cq_ring *ring)
{
	struct uvd_cq_wait *w = &ring->wait;
	struct uvd_cq_later *later = w->later;

	if (!later)
		return;
	pthread_mutex_lock(&later->lock);
	while (later->current == ring)
		pthread_cond_wait(&later->changed, &later->lock);
	if (w->listed)
		list_del_init(&w->of_later);
	w->listed = false;
	pthread_mutex_unlock(&later->lock);
	free(w->held);
	uvd_uncharge_bytes(ring->account, w->size * sizeof(*w->held));
}

void uvd_cq_later_init(struct uvd_cq_later *later)
{
	pthread_mutex_init(&later->lock, NULL);
	uvd_cond_init(&later->changed);
	INIT_LIST_HEAD(&later->rings);
}

void uvd_cq_later_fini(struct uvd_cq_later *later)
{
	pthread_mutex_lock(&later->lock);
	later->stop = true;
	pthread_cond_broadcast(&later->changed);
	pthread_mutex_unlock(&later->lock);
	if (later->running)
		pthread_join(later->thread, NULL);
	pthread_cond_destroy(&later->changed);
	pthread_mutex_destroy(&later->lock);
}
