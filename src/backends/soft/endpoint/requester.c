/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The requester side of a QP, for all transport services: its queue, and how requests and claims end. */
#include <errno.h>
#include <stdlib.h>
#include <uverbsd/log.h>
#include "backends/soft/endpoint/endpoint.h"
#include "explain/explain.h"

/* ---- the queue ---------------------------------------------------------------------------------------------------- */

int soft_sq_init(struct soft_qp *qp)
{
	const struct ibv_qp_cap *cap = &qp->cap;
	size_t sges = cap->max_send_sge * sizeof(struct ibv_sge);
	size_t data = sges > cap->max_inline_data ? sges : cap->max_inline_data;

	if (data < sizeof(uint64_t))
		data = sizeof(uint64_t); /* for an atomic write */
	return soft_ring_init(&qp->sq, qp->qp.account,
			      qp->qp.sq ? soft_queue_copies(cap->max_send_wr) : cap->max_send_wr,
			      sizeof(struct soft_send_wqe) + data);
}

unsigned int soft_sq_count(const struct soft_qp *qp)
{
	return qp->qp.sq ? qp->qp.sq->ops->count(qp->qp.sq) : qp->sq.count;
}

/*
 * Copies the next request from the mapped queue to the ring. A request that POST_SEND would refuse is copied as one
 * that fails when it is tried. Returns false if there is no request, or no room.
 */
static bool load_send(struct soft_qp *qp)
{
	struct soft_send_wqe *wqe = soft_ring_next(&qp->sq);
	struct uvd_send_wr wr;

	if (!wqe || !qp->qp.sq->ops->peek_send(qp->qp.sq, qp->sq.count, &wr))
		return false;
	if (soft_fill_send(qp, &wr, wqe))
		soft_refuse_send(&wr, wqe);
	soft_ring_push(&qp->sq);
	return true;
}

struct soft_send_wqe *soft_sq_peek(struct soft_qp *qp, unsigned int n)
{
	while (qp->qp.sq && qp->sq.count <= n && load_send(qp))
		;
	return soft_ring_peek(&qp->sq, n);
}

static void sq_pop(struct soft_qp *qp)
{
	soft_ring_pop(&qp->sq);
	if (qp->qp.sq)
		qp->qp.sq->ops->pop(qp->qp.sq);
}

void soft_sq_clear(struct soft_qp *qp)
{
	soft_ring_clear(&qp->sq);
	if (!qp->qp.sq)
		return;
	soft_queue_skip(qp->qp.sq);
	/* The QP's next connection carries out nothing that the client added before it without a doorbell. */
	qp->qp.sq->ops->drop(qp->qp.sq);
}

/* ---- how requests end --------------------------------------------------------------------------------------------- */

bool soft_may_start(struct soft_qp *qp)
{
	if (qp->s_wait != SOFT_WAIT_NONE && !qp->s_kicked)
		return false;
	return qp->state == IBV_QPS_RTS || (qp->state == IBV_QPS_SQD && qp->s_started);
}

static enum ibv_wc_opcode wc_opcode(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	case IBV_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	case IBV_WR_ATOMIC_WRITE:
		return IBV_WC_ATOMIC_WRITE;
	default:
		return IBV_WC_SEND;
	}
}

static void requester_count(struct soft_qp *qp, enum ibv_wc_opcode opcode, bool ok)
{
	if (opcode == IBV_WC_SEND)
		uvd_comp_cntr_count(&qp->qp, UVD_COMP_CNTR_SEND, ok);
	else if (opcode == IBV_WC_RDMA_WRITE)
		uvd_comp_cntr_count(&qp->qp, UVD_COMP_CNTR_RDMA_WRITE, ok);
	else if (opcode == IBV_WC_RDMA_READ)
		uvd_comp_cntr_count(&qp->qp, UVD_COMP_CNTR_RDMA_READ, ok);
}

void soft_send_complete(struct soft_qp *qp, struct soft_send_wqe *wqe, enum ibv_wc_status status, struct soft_due *due)
{
	struct ibv_wc wc = {
		.wr_id = wqe->wr_id,
		.status = status,
		.opcode = wc_opcode(wqe->opcode),
		.byte_len = wqe->length,
		.qp_num = qp->qp.qp_num,
	};

	const bool is_told = qp->sq_sig_all || (wqe->send_flags & IBV_SEND_SIGNALED) || status != IBV_WC_SUCCESS;

	requester_count(qp, wc.opcode, status == IBV_WC_SUCCESS);
	if (status == IBV_WC_SUCCESS && (unsigned int)wqe->opcode < UVD_QP_WORK_OPCODES) {
		qp->s_work.done[wqe->opcode].messages++;
		qp->s_work.done[wqe->opcode].bytes += wqe->length;
	}
	/* Pop first: a client that sees the completion may use the place in the queue at once. */
	sq_pop(qp);
	if (is_told)
		soft_cq_add(qp->qp.send_cq, &wc, false, due);
	qp->s_started = qp->s_flight;
	if (qp->s_flight)
		qp->s_flight--;
	qp->s_retry = qp->attr.retry_cnt;
	qp->s_rnr_retry = qp->attr.rnr_retry;
	if (qp->s_draining && !qp->s_started) {
		qp->s_draining = false;
		if (qp->s_drained_event && qp->state == IBV_QPS_SQD)
			soft_due_event(due, &qp->qp, IBV_EVENT_SQ_DRAINED);
	}
}

void soft_send_flush(struct soft_qp *qp, struct soft_due *due)
{
	struct soft_send_wqe *wqe;

	/* Flush only the requests counted now: a client can refill a mapped queue without end. */
	for (unsigned int n = soft_sq_count(qp); n && (wqe = soft_sq_peek(qp, 0)); n--)
		soft_send_complete(qp, wqe, IBV_WC_WR_FLUSH_ERR, due);
}

void soft_send_fail(struct soft_qp *qp, struct soft_send_wqe *wqe, enum ibv_wc_status status, const struct uvd_why *why,
		    struct soft_due *due)
{
	soft_explain_send(qp, wqe, status, why, due);
	/* Do this in any state: a request that was tried reports its own status, also if the QP is in error by now. */
	soft_send_complete(qp, wqe, status, due);
	if (soft_is_reliable(qp))
		soft_qp_error(qp, due);
	else if (qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD)
		qp->state = IBV_QPS_SQE;
}

void soft_send_unwait(struct soft_qp *qp)
{
	if (qp->s_wait == SOFT_WAIT_NONE)
		return;
	qp->s_wait = SOFT_WAIT_NONE;
	qp->s_wait_nr++;
	soft_timer_disarm(&qp->dev->fabric->timers, qp);
}

struct soft_held *soft_held_take(struct soft_qp *qp)
{
	struct soft_held *held = qp->s_held;

	if (!held)
		return NULL;
	qp->s_held = NULL;
	soft_timer_disarm(&qp->dev->fabric->timers, qp);
	uvd_uncharge_bytes(qp->qp.account, held->charged);
	return held;
}

void soft_held_drop(struct soft_qp *qp)
{
	struct soft_held *held = soft_held_take(qp);

	if (!held)
		return;
	uvd_log_limited(qp->dev->ibdev->log, UVD_WARN, "%s: QP 0x%x: the message that a filter held back is lost: %s",
			qp->dev->ibdev->config.ibdev, qp->qp.qp_num,
			qp->state == IBV_QPS_ERR ? "its QP is in error" : "its QP is reset or destroyed");
	free(held);
}

void soft_send_settled(struct soft_qp *qp)
{
	if (!atomic_load_explicit(&qp->s_arrived, memory_order_relaxed))
		return;
	atomic_store_explicit(&qp->s_arrived, false, memory_order_relaxed);
	pthread_cond_broadcast(&qp->idle);
}

void soft_send_let_go(struct soft_qp *qp, struct soft_due *due)
{
	qp->s_busy = qp->s_delivers_held = false;
	qp->s_mover = NULL;
	/* The QP may have gone into error after the mover last looked at its state. */
	if (qp->state == IBV_QPS_ERR)
		soft_send_flush(qp, due);
	pthread_cond_broadcast(&qp->idle);
}

void soft_send_take_back(struct soft_qp *qp)
{
	if (!qp->s_busy || !soft_mover_take_requester(qp->s_mover, qp))
		return;
	qp->s_busy = qp->s_delivers_held = false;
	qp->s_mover = NULL;
	pthread_cond_broadcast(&qp->idle);
	/* The mover's reference. The caller keeps the QP valid. */
	soft_ref_put(&qp->ref);
}

/*
 * Ends the request whose transfer was given up at `place`. An unreliable QP learns nothing of the responder's memory:
 * its request counts as sent. If no request was tried, the mover was with a held message, which has completed. Caller
 * holds qp->lock.
 */
static void fail_given_up(struct soft_qp *qp, enum soft_place place, struct soft_due *due)
{
	const struct uvd_why stuck = uvd_why(PEER_STUCK, { qp->attr.dest_qp_num });
	struct soft_send_wqe *wqe = soft_sq_peek(qp, 0);

	if (!wqe || !qp->s_started || qp->state == IBV_QPS_RESET)
		return;
	if (place == SOFT_AT_REQUESTER)
		soft_send_fail(qp, wqe, IBV_WC_LOC_PROT_ERR, NULL, due);
	else if (soft_is_reliable(qp))
		soft_send_fail(qp, wqe, IBV_WC_RETRY_EXC_ERR, &stuck, due);
	else
		soft_send_complete(qp, wqe, IBV_WC_SUCCESS, due);
}

static void give_up_requester(struct soft_qp *qp, enum soft_place place)
{
	struct soft_due due = { 0 };

	pthread_mutex_lock(&qp->lock);
	fail_given_up(qp, place, &due);
	soft_send_let_go(qp, &due);
	qp->s_deferred = false;
	if (soft_sq_count(qp) && soft_may_start(qp))
		soft_defer(qp, false);
	pthread_mutex_unlock(&qp->lock);
	soft_due_run(&due);
	soft_ref_put(&qp->ref);
}

void soft_send_give_up(struct soft_qp *requester, struct soft_qp *responder, enum soft_place place)
{
	if (responder)
		soft_recv_give_up(responder);
	if (requester)
		give_up_requester(requester, place);
}

void soft_qp_error(struct soft_qp *qp, struct soft_due *due)
{
	if (soft_gone(qp))
		return;
	qp->state = IBV_QPS_ERR;
	soft_show_state(qp);
	soft_undefer(qp);
	soft_send_take_back(qp);
	soft_send_unwait(qp);
	qp->s_draining = false;
	qp->r_nak = false;
	if (!qp->s_busy)
		soft_send_flush(qp, due);
	if (!qp->r_busy)
		soft_recv_flush(qp, due);
	soft_error_watch(qp);
}
