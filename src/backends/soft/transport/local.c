/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Requests that have no peer: memory window binds and local invalidations. */
#include "backends/soft/transport/transport.h"

/* Caller has claimed the QP and holds its lock. */
static struct soft_outcome local_carry_out(struct soft_qp *qp, const struct soft_send_wqe *wqe)
{
	struct soft_outcome outcome = { .kind = SOFT_DONE, .status = IBV_WC_SUCCESS };

	if (wqe->opcode == IBV_WR_BIND_MW) {
		if (soft_bind_mw(qp->qp.pd, qp->qp.qp_num, &wqe->bind, wqe->rkey))
			outcome.status = IBV_WC_MW_BIND_ERR;
	} else if (soft_invalidate_mw(qp->qp.pd, qp->qp.qp_num, wqe->invalidate_rkey)) {
		outcome.status = IBV_WC_MW_BIND_ERR;
	}
	return outcome;
}

struct soft_outcome soft_local_send(struct soft_mover *m, struct soft_request *req)
{
	struct soft_outcome outcome = { .kind = SOFT_LOST };
	struct soft_qp *qp = req->qp;
	struct soft_due due = { 0 };

	/*
	 * The peer accesses memory through a window of type 2 only with r_busy, so none of its accesses is in flight
	 * when this request completes. The wait is for memory of this QP's own client.
	 */
	soft_ref_get(&qp->ref);
	pthread_mutex_lock(&qp->lock);
	if (soft_recv_claim(m, qp)) {
		outcome = local_carry_out(qp, req->wqe);
		soft_recv_release(qp, &due);
	} else if (m->requester.qp) {
		outcome.kind = SOFT_NO_ANSWER;
	}
	pthread_mutex_unlock(&qp->lock);
	soft_due_run(&due);
	soft_ref_put(&qp->ref);
	return outcome;
}
