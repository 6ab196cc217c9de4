/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The responder side of a QP, for all transport services. */
#include <string.h>
#include "backends/soft/endpoint/endpoint.h"

bool soft_recv_claim(struct soft_mover *m, struct soft_qp *qp)
{
	/* Each claim of another mover is an access of its own: m is given up only if one of them is not. */
	while (qp->r_busy) {
		if (soft_mover_enter(m, SOFT_AT_REQUESTER, NULL, NULL))
			return false;
		pthread_cond_wait(&qp->idle, &qp->lock);
		if (!soft_mover_leave(m))
			return false;
	}
	qp->r_busy = true;
	return true;
}

void soft_recv_release(struct soft_qp *qp, struct soft_due *due)
{
	if (qp->state == IBV_QPS_ERR)
		soft_recv_flush(qp, due);
	qp->r_busy = false;
	atomic_store_explicit(&qp->r_slow, false, memory_order_relaxed);
	pthread_cond_broadcast(&qp->idle);
}

/* May no message be delivered to the QP now? Caller holds its lock. */
static bool recv_is_held(struct soft_qp *qp)
{
	return qp->r_busy || atomic_load_explicit(&qp->s_arrived, memory_order_acquire);
}

/*
 * Waits until the peer can be claimed. Caller holds peer->lock. The mover with the claim may be stuck in the peer's
 * memory, so this wait is registered like an access to it: the requester can then be taken from m.
 */
static bool wait_to_claim(struct soft_mover *m, struct soft_qp *peer)
{
	bool claimed = false;

	m->waits_for = &peer->r_slow;
	if (!soft_mover_enter(m, SOFT_AT_RESPONDER, NULL, NULL)) {
		while (recv_is_held(peer) && !soft_gone(peer) && !(m->may_drop && atomic_load(&peer->r_slow)))
			pthread_cond_wait(&peer->idle, &peer->lock);
		claimed = soft_mover_leave(m) && !recv_is_held(peer);
	}
	m->waits_for = NULL;
	return claimed;
}

struct soft_qp *soft_claim(struct soft_mover *m, struct uvd_fabric *fabric, uint32_t qpn)
{
	struct soft_qp *peer = soft_fabric_get_qp(fabric, qpn);

	if (!peer)
		return NULL;
	pthread_mutex_lock(&peer->lock);
	if (recv_is_held(peer) && !wait_to_claim(m, peer)) {
		pthread_mutex_unlock(&peer->lock);
		soft_ref_put(&peer->ref);
		return NULL;
	}
	peer->r_busy = true;
	m->responder = (struct soft_party){ .qp = peer, .state = &peer->state, .is_slow = &peer->r_slow };
	return peer;
}

void soft_unclaim(struct soft_mover *m, struct soft_due *due)
{
	struct soft_qp *peer = m->responder.qp;

	m->responder.qp = NULL;
	soft_recv_release(peer, due);
	pthread_mutex_unlock(&peer->lock);
	soft_due_run(due);
	soft_ref_put(&peer->ref);
}

void soft_recv_fail(struct soft_qp *qp, enum ibv_wc_status status, enum ibv_event_type event, const struct uvd_why *why,
		    struct soft_due *due)
{
	if (qp->r_taken || qp->state != IBV_QPS_ERR)
		soft_explain_recv(qp, status, event, why, due);
	if (qp->r_taken) {
		struct ibv_wc wc = { .status = status, .opcode = IBV_WC_RECV };

		soft_recv_complete(qp, &wc, true, due);
	} else if (qp->state != IBV_QPS_ERR) {
		soft_due_event(due, &qp->qp, event);
	}
	soft_qp_error(qp, due);
}

void soft_recv_give_up(struct soft_qp *qp)
{
	struct soft_srq *srq = NULL;
	struct soft_due due = { 0 };

	pthread_mutex_lock(&qp->lock);
	if (!soft_gone(qp))
		soft_recv_fail(qp, IBV_WC_LOC_PROT_ERR, IBV_EVENT_QP_FATAL, NULL, &due);
	if (qp->qp.qp_type == IBV_QPT_XRC_RECV) {
		srq = qp->r_srq;
		qp->r_srq = NULL;
	}
	soft_recv_release(qp, &due);
	pthread_mutex_unlock(&qp->lock);
	soft_due_run(&due);
	/* Not before: the SRQ keeps the CQ. The mover has left its reference to us. */
	if (srq)
		soft_ref_put(&srq->ref);
	soft_ref_put(&qp->ref);
}

void soft_recv_copy(struct soft_qp *qp, const struct soft_recv_wqe *wqe)
{
	memcpy(qp->r_wqe, wqe, sizeof(*wqe) + wqe->num_sge * sizeof(wqe->sge[0]));
	qp->r_taken = true;
}

static bool take_own(struct soft_qp *qp)
{
	struct soft_recv_wqe *wqe = soft_rq_peek(&qp->rq, 0);

	if (!wqe)
		return false;
	soft_recv_copy(qp, wqe);
	soft_rq_pop(&qp->rq);
	return true;
}

int soft_target_get(struct soft_qp *qp, uint32_t key, uint64_t addr, uint32_t length, unsigned int access,
		    struct soft_seg *seg)
{
	return soft_remote_seg_get(soft_target_pd(qp), qp->qp.qp_num, key, addr, length, access, seg);
}

bool soft_recv_take(struct soft_qp *qp, struct soft_due *due)
{
	/* A message that was cut off leaves its receive to the next message. */
	if (qp->r_taken)
		return true;
	if (qp->r_srq)
		return soft_srq_take(qp->r_srq, qp, due);
	if (take_own(qp))
		return true;
	qp->r_nak = qp->qp.qp_type == IBV_QPT_RC;
	return false;
}

struct soft_list soft_recv_list(struct soft_qp *qp)
{
	return (struct soft_list){ soft_recv_pd(qp), qp->r_wqe->sge, qp->r_wqe->num_sge, IBV_ACCESS_LOCAL_WRITE };
}

bool soft_recv_take_for(struct soft_qp *qp, uint32_t length, bool data, struct soft_due *due)
{
	struct soft_list list;

	if (!soft_recv_take(qp, due))
		return false;
	if (!data)
		return true;
	list = soft_recv_list(qp);
	if (length > soft_sge_length(list.sge, list.num_sge))
		return false;
	if (soft_list_ok(&list))
		return true;
	/* The receiver posted an invalid receive, so the receiver goes into error. The sender learns nothing. */
	soft_recv_fail(qp, IBV_WC_LOC_PROT_ERR, IBV_EVENT_QP_FATAL, NULL, due);
	return false;
}

bool soft_recv_ready(struct soft_qp *qp)
{
	if (qp->r_taken)
		return true;
	if (qp->r_srq)
		return soft_srq_ready(qp->r_srq, qp);
	if (soft_rq_count(&qp->rq))
		return true;
	qp->r_nak = true;
	return false;
}

void soft_recv_established(struct soft_qp *qp, struct soft_due *due)
{
	if (qp->state != IBV_QPS_RTR || qp->r_established)
		return;
	qp->r_established = true;
	soft_due_event(due, &qp->qp, IBV_EVENT_COMM_EST);
}

void soft_recv_complete(struct soft_qp *qp, struct ibv_wc *wc, bool solicited, struct soft_due *due)
{
	wc->wr_id = qp->r_wqe->wr_id;
	wc->qp_num = qp->qp.qp_num;
	qp->r_taken = false;
	qp->s_work.received++;
	uvd_comp_cntr_count(&qp->qp, UVD_COMP_CNTR_RECV, wc->status == IBV_WC_SUCCESS);
	soft_cq_add(qp->qp.qp_type == IBV_QPT_XRC_RECV ? qp->r_srq->srq.cq : qp->qp.recv_cq, wc, solicited, due);
}

/* Flushes `most` queued receives at most, beside the one that a message has taken. Returns their number. */
static unsigned int recv_flush_some(struct soft_qp *qp, unsigned int most, struct soft_due *due)
{
	unsigned int num = 0;

	/* An XRC target between two chunks has no reference to the SRQ, nor to its CQ: the receive cannot complete. */
	if (qp->qp.qp_type == IBV_QPT_XRC_RECV && !qp->r_srq)
		qp->r_taken = false;
	/* Receives in an SRQ stay there for other QPs. */
	while (qp->r_taken || (num < most && take_own(qp) && ++num)) {
		struct ibv_wc wc = { .status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV };

		soft_recv_complete(qp, &wc, true, due);
	}
	return num;
}

void soft_recv_flush(struct soft_qp *qp, struct soft_due *due)
{
	/* Flush only the receives counted now: a client can refill a mapped queue without end. */
	recv_flush_some(qp, soft_rq_count(&qp->rq), due);
	if ((qp->qp.srq || qp->qp.qp_type == IBV_QPT_XRC_RECV) && !qp->r_last_wqe) {
		qp->r_last_wqe = true;
		soft_due_event(due, &qp->qp, IBV_EVENT_QP_LAST_WQE_REACHED);
	}
}

unsigned int soft_recv_look(struct soft_qp *qp, unsigned int most)
{
	struct soft_due due = { 0 };
	unsigned int num = 0;

	pthread_mutex_lock(&qp->lock);
	/* The thread that has claimed it flushes when the claim ends. */
	if (qp->state == IBV_QPS_ERR && !qp->r_busy)
		num = recv_flush_some(qp, most, &due);
	pthread_mutex_unlock(&qp->lock);
	soft_due_run(&due);
	return num;
}

bool soft_same_partition(uint16_t a, uint16_t b)
{
	/* The top bit marks a full member. Two limited members may not communicate. */
	return (a & 0x7fff) && !((a ^ b) & 0x7fff) && ((a | b) & 0x8000);
}

bool soft_peer_types(enum ibv_qp_type receiver, enum ibv_qp_type sender)
{
	return receiver == IBV_QPT_XRC_RECV ? sender == IBV_QPT_XRC_SEND : receiver == sender;
}

/* Did it come from a port that reaches this one? */
static bool came_here(const struct soft_arrival *arrival, const struct uvd_port_config *port)
{
	if (!arrival->port || arrival->is_multicast)
		return soft_arrival_is_linked(arrival, port);
	return soft_port_reaches(arrival->port, &arrival->ah, port);
}

/* Is it of the QP that this one is connected to? */
static bool is_of_peer(struct soft_qp *qp, const struct soft_arrival *arrival)
{
	return qp->attr.dest_qp_num == arrival->src_qpn &&
	       (!arrival->port || soft_port_reaches(soft_qp_port(qp), &qp->attr.ah_attr, arrival->port));
}

bool soft_recv_admits(struct soft_qp *qp, const struct soft_arrival *arrival)
{
	const struct uvd_port_config *port;

	if (!soft_can_receive(qp->state) || !soft_peer_types(qp->qp.qp_type, arrival->qp_type))
		return false;
	port = soft_qp_port(qp);
	if (!came_here(arrival, port) || !soft_same_partition(soft_port_pkey(port, qp->attr.pkey_index), arrival->pkey))
		return false;
	return qp->qp.qp_type == IBV_QPT_UD ? qp->attr.qkey == arrival->qkey : is_of_peer(qp, arrival);
}

bool soft_packets_fit(const struct soft_qp *qp, enum ibv_mtu mtu, uint32_t length)
{
	enum ibv_mtu own = qp->attr.path_mtu;

	return own == mtu || length <= 128u << (own < mtu ? own : mtu);
}

struct ibv_wc soft_recv_wc(struct soft_qp *qp, const struct soft_arrival *arrival, uint32_t byte_len)
{
	struct ibv_wc wc = {
		.status = IBV_WC_SUCCESS,
		.opcode = arrival->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
		.byte_len = byte_len,
		.pkey_index = qp->attr.pkey_index,
		.src_qp = qp->attr.dest_qp_num,
		.slid = qp->attr.ah_attr.dlid,
		.sl = qp->attr.ah_attr.sl,
	};

	if (arrival->opcode == IBV_WR_SEND_WITH_IMM || arrival->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
		wc.wc_flags |= IBV_WC_WITH_IMM;
		wc.imm_data = arrival->imm_data;
	} else if (arrival->opcode == IBV_WR_SEND_WITH_INV) {
		wc.wc_flags |= IBV_WC_WITH_INV;
		wc.invalidated_rkey = arrival->invalidate_rkey;
	}
	return wc;
}
