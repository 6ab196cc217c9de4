/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared receive queues: how QPs take receives from them, and wait for receives. */
#include "backends/soft/endpoint/endpoint.h"

/* Caller holds the lock of the SRQ that the QP waits at. */
static void unlink_waiter(struct soft_qp *qp)
{
	list_del_init(&qp->of_srq);
	atomic_store(&qp->waits_at, NULL);
}

static void link_waiter(struct soft_srq *srq, struct soft_qp *qp)
{
	if (atomic_load(&qp->waits_at))
		return;
	atomic_store(&qp->waits_at, srq);
	list_add_tail(&qp->of_srq, &srq->waiters);
}

void soft_srq_forget(struct soft_qp *qp)
{
	struct soft_srqn_table *table = &qp->dev->endpoints->srqns;
	struct soft_srq *srq;

	if (!atomic_load(&qp->waits_at))
		return;
	/* An XRC target has no reference to the SRQ. Destroying an SRQ dequeues its waiters under this lock first. */
	pthread_mutex_lock(&table->lock);
	srq = atomic_load(&qp->waits_at);
	if (srq) {
		pthread_mutex_lock(&srq->lock);
		if (atomic_load(&qp->waits_at))
			unlink_waiter(qp);
		pthread_mutex_unlock(&srq->lock);
	}
	pthread_mutex_unlock(&table->lock);
}

struct soft_qp *soft_srq_next_waiter(struct soft_srq *srq, bool in_vain)
{
	struct soft_qp *qp = NULL;

	pthread_mutex_lock(&srq->lock);
	if ((soft_rq_count(&srq->rq) || in_vain) && !list_empty(&srq->waiters)) {
		qp = list_first_entry(&srq->waiters, struct soft_qp, of_srq);
		/*
		 * Take the reference first: soft_srq_forget() of a QP that is destroyed returns at once if the QP waits
		 * nowhere, and then its references are waited for.
		 */
		soft_ref_get(&qp->ref);
		unlink_waiter(qp);
	}
	pthread_mutex_unlock(&srq->lock);
	return qp;
}

bool soft_srq_ready(struct soft_srq *srq, struct soft_qp *qp)
{
	bool ready;

	pthread_mutex_lock(&srq->lock);
	ready = soft_rq_count(&srq->rq);
	if (!ready)
		link_waiter(srq, qp);
	pthread_mutex_unlock(&srq->lock);
	return ready;
}

bool soft_srq_take(struct soft_srq *srq, struct soft_qp *qp, struct soft_due *due)
{
	struct soft_recv_wqe *wqe;

	pthread_mutex_lock(&srq->lock);
	wqe = soft_rq_peek(&srq->rq, 0);
	if (!wqe) {
		/* Only a reliable sender retries. */
		if (soft_is_reliable(qp))
			link_waiter(srq, qp);
	} else {
		soft_recv_copy(qp, wqe);
		soft_rq_pop(&srq->rq);
		if (soft_rq_count(&srq->rq) < srq->limit) {
			/* The event comes once: then the client has to set the limit again (IBTA 10.2.9.2). */
			srq->limit = 0;
			soft_due_srq_limit(due, &srq->srq);
		}
	}
	pthread_mutex_unlock(&srq->lock);
	return wqe;
}
