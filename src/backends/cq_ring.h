/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A completion queue in our own memory, for the backends that make completions themselves.
 *
 * The completion handler may not be called under a lock, but completions are added under the locks of queue pairs. So
 * adding one only notes that the handler is due, and whoever added it calls uvd_cq_ring_notify() after unlocking.
 */
#ifndef UVD_CQ_RING_H
#define UVD_CQ_RING_H

#include <pthread.h>
#include <uverbsd/backend.h>

struct uvd_cq_ring {
	pthread_mutex_t lock; /* taken last: nothing else is locked under it */
	struct ibv_wc *wc;
	struct uvd_queue *mapped; /* where completions go instead of wc */
	unsigned int size, head, count; /* head: the oldest */
	struct uvd_account *account; /* who pays for wc: the context's */
	enum { UVD_CQ_IDLE, UVD_CQ_SOLICITED, UVD_CQ_NEXT } armed;
	unsigned int due; /* calls of the completion handler */
	bool overrun, overrun_due;
};

/* -EINVAL: cqe is 0 or over max. -ENOMEM: or the user has no bytes left. Sets cq->cqe. */
int uvd_cq_ring_init(struct uvd_cq_ring *ring, struct uvd_cq *cq, int max);
void uvd_cq_ring_destroy(struct uvd_cq_ring *ring);
/* -EINVAL as above, or cqe is less than what waits to be polled. */
int uvd_cq_ring_resize(struct uvd_cq_ring *ring, struct uvd_cq *cq, int cqe, int max);
int uvd_cq_ring_poll(struct uvd_cq_ring *ring, int n, struct ibv_wc *wc);
int uvd_cq_ring_arm(struct uvd_cq_ring *ring, bool solicited_only);
/*
 * A full queue loses the completion, and is in error from then on (IBTA 11.6.2: overrun). True if uvd_cq_ring_notify()
 * has something to call.
 */
bool uvd_cq_ring_add(struct uvd_cq_ring *ring, const struct ibv_wc *wc, bool solicited);
/* Calls the handlers that are due. No lock is held. */
void uvd_cq_ring_notify(struct uvd_cq_ring *ring, struct uvd_cq *cq);

#endif
