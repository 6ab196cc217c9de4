/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <uverbsd/filter.h>
#include <uverbsd/queue.h>
#include "backends/cq_ring.h"
#include "explain/explain.h"

/* Charges the account for all entries, even if they are never touched. Returns NULL if out of memory or limit. */
static struct ibv_wc *cq_ring_alloc(struct uvd_account *account, int cqe)
{
	struct ibv_wc *wc;

	if (uvd_charge_bytes(account, cqe * sizeof(*wc)))
		return NULL;
	wc = calloc(cqe, sizeof(*wc));
	if (!wc)
		uvd_uncharge_bytes(account, cqe * sizeof(*wc));
	return wc;
}

static void cq_ring_free(struct uvd_account *account, struct ibv_wc *wc, unsigned int size)
{
	free(wc);
	uvd_uncharge_bytes(account, size * sizeof(*wc));
}

int uvd_cq_ring_init(struct uvd_cq_ring *ring, struct uvd_cq *cq, int max, struct uvd_cq_later *later)
{
	/* As rvt_create_cq(): no flag is supported (timestamps, ignored overruns). */
	if (cq->flags)
		return -EOPNOTSUPP;
	/* The core checked the length of a mapped queue before it rounded that up, perhaps beyond the limit. */
	if (cq->cqe < 1 || (!cq->queue && cq->cqe > max))
		return -EINVAL;
	pthread_mutex_init(&ring->lock, NULL);
	ring->cq = cq;
	ring->account = cq->context->account;
	ring->mapped = cq->queue;
	ring->wait = (struct uvd_cq_wait){ .later = later };
	if (ring->mapped)
		return 0;
	ring->wc = cq_ring_alloc(ring->account, cq->cqe);
	if (!ring->wc) {
		pthread_mutex_destroy(&ring->lock);
		return -ENOMEM;
	}
	ring->size = cq->cqe;
	return 0;
}

void uvd_cq_ring_destroy(struct uvd_cq_ring *ring)
{
	uvd_cq_later_forget(ring);
	pthread_mutex_destroy(&ring->lock);
	cq_ring_free(ring->account, ring->wc, ring->size);
}

static unsigned int cq_ring_pop(struct uvd_cq_ring *ring, unsigned int n, struct ibv_wc *wc)
{
	unsigned int i;

	for (i = 0; i < n && ring->count; i++, ring->count--) {
		wc[i] = ring->wc[ring->head];
		if (++ring->head == ring->size)
			ring->head = 0;
	}
	return i;
}

int uvd_cq_ring_resize(struct uvd_cq_ring *ring, struct uvd_cq *cq, int cqe, int max, struct uvd_udata *udata)
{
	struct ibv_wc *wc, *old;
	unsigned int old_size;

	if (cqe < 1 || cqe > max)
		return -EINVAL;
	if (ring->mapped)
		return -EOPNOTSUPP;
	wc = cq_ring_alloc(ring->account, cqe);
	if (!wc)
		return -ENOMEM;

	pthread_mutex_lock(&ring->lock);
	if (ring->count > (unsigned int)cqe) {
		pthread_mutex_unlock(&ring->lock);
		cq_ring_free(ring->account, wc, cqe);
		return uvd_udata_refuse(udata, -EINVAL, &uvd_why(QUEUE_HOLDS, { .word = "cqe" }, { cqe }));
	}
	old = ring->wc;
	old_size = ring->size;
	ring->count = cq_ring_pop(ring, ring->count, wc);
	ring->wc = wc;
	ring->head = 0;
	ring->size = cqe;
	cq->cqe = cqe;
	pthread_mutex_unlock(&ring->lock);
	cq_ring_free(ring->account, old, old_size);
	return 0;
}

int uvd_cq_ring_poll(struct uvd_cq_ring *ring, int n, struct ibv_wc *wc)
{
	pthread_mutex_lock(&ring->lock);
	n = n > 0 ? cq_ring_pop(ring, n, wc) : 0;
	pthread_mutex_unlock(&ring->lock);
	return n;
}

uint64_t uvd_cq_ring_lost(struct uvd_cq_ring *ring)
{
	uint64_t lost;

	pthread_mutex_lock(&ring->lock);
	lost = ring->lost;
	pthread_mutex_unlock(&ring->lock);
	return lost;
}

int uvd_cq_ring_arm(struct uvd_cq_ring *ring, bool solicited_only)
{
	pthread_mutex_lock(&ring->lock);
	/* A CQ armed for any completion stays so: a later, narrower request must not lose an event (IBTA C11-31). */
	if (ring->armed != UVD_CQ_NEXT)
		ring->armed = solicited_only ? UVD_CQ_SOLICITED : UVD_CQ_NEXT;
	pthread_mutex_unlock(&ring->lock);
	return 0;
}

/* Caller holds ring->lock. Returns false if the queue is full. */
static bool cq_ring_push(struct uvd_cq_ring *ring, const struct ibv_wc *wc)
{
	if (ring->mapped)
		return ring->mapped->ops->push_wc(ring->mapped, wc);
	if (ring->count == ring->size)
		return false;
	ring->wc[(ring->head + (uint64_t)ring->count++) % ring->size] = *wc;
	return true;
}

bool uvd_cq_ring_put(struct uvd_cq_ring *ring, const struct ibv_wc *wc, bool solicited)
{
	bool notify = false;

	if (!cq_ring_push(ring, wc)) {
		/* Raise one event in all: with one for each lost completion a client could fill its event file. */
		notify = !ring->lost++;
		ring->overrun_due |= notify;
		return notify;
	}
	if (ring->armed == UVD_CQ_NEXT ||
	    (ring->armed == UVD_CQ_SOLICITED && (solicited || wc->status != IBV_WC_SUCCESS))) {
		ring->armed = UVD_CQ_IDLE;
		ring->due++;
		notify = true;
	}
	return notify;
}

bool uvd_cq_ring_add(struct uvd_cq_ring *ring, const struct ibv_wc *completion, bool solicited)
{
	struct ibv_wc wc = *completion;
	bool notify = false;

	pthread_mutex_lock(&ring->lock);
	uvd_filter_completion(ring->cq, &wc);
	if (!ring->wait.later || !uvd_cq_later_holds(ring, &wc, solicited, &notify))
		notify |= uvd_cq_ring_put(ring, &wc, solicited);
	pthread_mutex_unlock(&ring->lock);
	return notify;
}

void uvd_cq_ring_notify(struct uvd_cq_ring *ring, struct uvd_cq *cq)
{
	unsigned int due;
	bool overrun;

	pthread_mutex_lock(&ring->lock);
	due = ring->due;
	overrun = ring->overrun_due;
	ring->due = 0;
	ring->overrun_due = false;
	pthread_mutex_unlock(&ring->lock);

	while (due--)
		if (cq->comp_handler)
			cq->comp_handler(cq);
	if (overrun && cq->event_handler)
		cq->event_handler(cq, IBV_EVENT_CQ_ERR);
}
