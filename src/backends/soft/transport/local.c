/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Requests that have no peer: memory window binds and local invalidations. */
#include "backends/soft/transport/transport.h"

struct soft_outcome soft_local_send(struct soft_request *req)
{
	struct soft_outcome outcome = { .kind = SOFT_DONE, .status = IBV_WC_SUCCESS };
	struct soft_send_wqe *wqe = req->wqe;
	struct soft_qp *qp = req->qp;
	struct soft_due due = { 0 };

	/*
	 * The peer accesses memory through a window of type 2 only with r_busy, so none of its accesses is in flight
	 * when this request completes. The wait is for memory of this QP's own client.
	 */
	pthread_mutex_lock(&qp->lock);
	soft_recv_claim(qp);
	if (wqe->opcode == IBV_WR_BIND_MW) {
		if (soft_bind_mw(qp->qp.pd, qp->qp.qp_num, &wqe->bind, wqe->rkey))
			outcome.status = IBV_WC_MW_BIND_ERR;
	} else if (soft_invalidate_mw(qp->qp.pd, qp->qp.qp_num, wqe->invalidate_rkey)) {
		outcome.status = IBV_WC_MW_BIND_ERR;
	}
	soft_recv_release(qp, &due);
	pthread_mutex_unlock(&qp->lock);
	soft_due_run(&due);
	return outcome;
}
