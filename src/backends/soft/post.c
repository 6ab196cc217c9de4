/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Posts work requests, and checks them. The errors are those of the kernel's rdmavt. */
#include <errno.h>
#include <string.h>
#include "backends/soft/soft.h"

/* ---- send queue -------------------------------------------------------------------------------------------------- */

static int queue_send(struct soft_qp *qp, const struct uvd_send_wr *wr)
{
	struct soft_send_wqe *wqe = soft_ring_next(&qp->sq);
	uint32_t length;
	int err;

	/* An invalid request gets the error of its check, even if the queue is full. */
	if (!wqe)
		return soft_check_send(qp, wr, &length) ?: -ENOMEM;
	err = soft_fill_send(qp, wr, wqe);
	if (!err)
		soft_ring_push(&qp->sq);
	return err;
}

static bool takes_requests(const struct soft_qp *qp)
{
	return qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD || qp->state == IBV_QPS_SQE ||
	       qp->state == IBV_QPS_ERR;
}

static void run_work(void *arg, struct uvd_worker *worker)
{
	soft_send_run(arg, worker);
}

/* Caller holds qp->lock. The work takes a reference to qp. */
static struct uvd_work work_of(struct soft_qp *qp)
{
	soft_ref_get(&qp->ref);
	return (struct uvd_work){ run_work, qp };
}

int soft_post_send(struct uvd_qp *base, const struct uvd_send_wr *wr, const struct uvd_send_wr **bad,
		   struct uvd_work *work)
{
	struct soft_qp *qp = soft_qp(base);
	bool queued = false;
	int err = 0;

	pthread_mutex_lock(&qp->lock);
	if (!takes_requests(qp))
		err = -EINVAL;
	for (; !err && wr; wr = wr->next) {
		err = queue_send(qp, wr);
		if (err)
			break;
		queued = true;
	}
	if (queued)
		*work = work_of(qp);
	pthread_mutex_unlock(&qp->lock);
	if (err)
		*bad = wr;
	return err;
}

int soft_ring_doorbell(struct uvd_qp *base, struct uvd_work *work)
{
	struct soft_qp *qp = soft_qp(base);
	int err = 0;

	pthread_mutex_lock(&qp->lock);
	if (!takes_requests(qp))
		err = -EINVAL;
	else
		*work = work_of(qp);
	pthread_mutex_unlock(&qp->lock);
	return err;
}

/* ---- receive queue ----------------------------------------------------------------------------------------------- */

int soft_post_recv(struct uvd_qp *base, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad)
{
	struct soft_qp *qp = soft_qp(base);
	struct soft_due due = { 0 };
	bool kick = false;
	int err = 0;

	pthread_mutex_lock(&qp->lock);
	/* XRC QPs and QPs with an SRQ have no receives of their own; a mapped queue takes none by a call. */
	if (qp->state == IBV_QPS_RESET || base->srq || !base->recv_cq || base->rq)
		err = -EINVAL;
	for (; !err && wr; wr = wr->next) {
		err = soft_queue_recv(&qp->rq.ring, qp->cap.max_recv_sge, wr);
		if (err)
			break;
		kick = qp->r_nak;
	}
	if (err)
		*bad = wr;
	if (kick)
		qp->r_nak = false;
	if (qp->state == IBV_QPS_ERR && !qp->r_busy)
		soft_recv_flush(qp, &due);
	pthread_mutex_unlock(&qp->lock);

	soft_due_run(&due);
	if (kick)
		soft_kick_peer(qp);
	return err;
}
