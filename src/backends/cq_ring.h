/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A completion queue in the engine's memory, or a mapped one, for the backends that generate completions themselves.
 *
 * The completion handler must not be called under a lock, but completions are added under QP locks. So
 * uvd_cq_ring_add() only notes that the handler is due, and its caller calls uvd_cq_ring_notify() after it has released
 * its locks.
 */
#ifndef UVD_CQ_RING_H
#define UVD_CQ_RING_H

#include <pthread.h>
#include <uverbsd/backend.h>
#include "backends/cq_later.h"

struct uvd_cq_ring {
	pthread_mutex_t lock; /* no other lock is taken under it, but those of filters */
	struct ibv_wc *wc;
	struct uvd_queue *mapped; /* not NULL: completions go there, not to wc */
	unsigned int size, head, count; /* head: the oldest */
	struct uvd_cq *cq;
	struct uvd_account *account; /* charged for wc: the context's */
	enum { UVD_CQ_IDLE, UVD_CQ_SOLICITED, UVD_CQ_NEXT } armed;
	unsigned int due; /* calls of the completion handler */
	uint64_t lost; /* completions that found no room */
	bool overrun_due;
	struct uvd_cq_wait wait; /* completions that filters delay */
};

/*
 * Makes the ring of cq, with cq->cqe entries. Returns 0; -EOPNOTSUPP for any cq->flags; -EINVAL if cq->cqe is below 1
 * or over max; -ENOMEM if there is no memory, or the user may have no more. later: the device's, which outlives the
 * ring; NULL: filters cannot delay completions.
 */
int uvd_cq_ring_init(struct uvd_cq_ring *ring, struct uvd_cq *cq, int max, struct uvd_cq_later *later);
void uvd_cq_ring_destroy(struct uvd_cq_ring *ring);
/*
 * Sets cq->cqe. Returns 0; -EINVAL as above, or if more than cqe completions wait to be polled; -ENOMEM as above;
 * -EOPNOTSUPP if the queue is mapped.
 */
int uvd_cq_ring_resize(struct uvd_cq_ring *ring, struct uvd_cq *cq, int cqe, int max, struct uvd_udata *udata);
/* Returns the number of completions, n at most. */
int uvd_cq_ring_poll(struct uvd_cq_ring *ring, int n, struct ibv_wc *wc);
/* Returns how many completions were lost so far. */
uint64_t uvd_cq_ring_lost(struct uvd_cq_ring *ring);
int uvd_cq_ring_arm(struct uvd_cq_ring *ring, bool solicited_only);
/*
 * Passes the completion to the filters, then queues it, at once or later. If the queue is full, the completion is lost,
 * and the first time IBV_EVENT_CQ_ERR becomes due (IBTA 11.6.2: overrun). Returns true if the caller must call
 * uvd_cq_ring_notify().
 */
bool uvd_cq_ring_add(struct uvd_cq_ring *ring, const struct ibv_wc *completion, bool solicited);
/* The same without filters, for cq_later.c. Caller holds ring->lock. */
bool uvd_cq_ring_put(struct uvd_cq_ring *ring, const struct ibv_wc *wc, bool solicited);
/* Calls the handlers that are due. Caller holds no lock. */
void uvd_cq_ring_notify(struct uvd_cq_ring *ring, struct uvd_cq *cq);

#endif
