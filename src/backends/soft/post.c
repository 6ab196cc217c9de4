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

int soft_post_send(struct uvd_qp *base, const struct uvd_send_wr *wr, const struct uvd_send_wr **bad,
		   struct uvd_work *work)
{
	struct soft_qp *qp = soft_qp(base);
	bool queued = false;
	int err = 0;

	pthread_mutex_lock(&qp->lock);
	if (!soft_takes_requests(qp))
		err = -EINVAL;
	for (; !err && wr; wr = wr->next) {
		err = queue_send(qp, wr);
		if (err)
			break;
		queued = true;
	}
	if (queued)
		*work = soft_send_work(qp);
	pthread_mutex_unlock(&qp->lock);
	if (err)
		*bad = wr;
	return err;
}

void soft_send_why(struct uvd_qp *base, const struct uvd_send_wr *wr, struct uvd_why *why)
{
	struct soft_qp *qp = soft_qp(base);

	pthread_mutex_lock(&qp->lock);
	*why = soft_check_why(qp, wr);
	pthread_mutex_unlock(&qp->lock);
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
