/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Explains requests and receives that fail, and the events of their QPs. */
#include <stdlib.h>
#include <string.h>
#include "backends/soft/endpoint/endpoint.h"
#include "explain/explain.h"

static bool is_same_user(const struct uvd_account *a, const struct uvd_account *b)
{
	return uvd_account_person(a) == uvd_account_person(b);
}

/* ---- a request --------------------------------------------------------------------------------------------------- */

/* Why does the responder not answer this request? No reason: it would now. Caller holds peer->lock. */
static struct uvd_why why_peer(struct soft_qp *peer, const struct soft_arrival *arrival, uint32_t retries)
{
	const uint32_t qpn = peer->qp.qp_num;

	if (peer->r_silent)
		return uvd_why(PEER_PROCESS, { qpn }, { retries });
	if (!soft_peer_types(peer->qp.qp_type, arrival->qp_type))
		return uvd_why(PEER_TYPE, { qpn }, { retries });
	if (!soft_can_receive(peer->state))
		return uvd_why(PEER_STATE, { qpn }, { peer->state }, { retries });
	if (!soft_arrival_is_linked(arrival, soft_qp_port(peer)))
		return uvd_why(LINK_DOWN, { retries });
	if (peer->attr.dest_qp_num != arrival->src_qpn)
		return uvd_why(PEER_OTHER, { qpn }, { peer->attr.dest_qp_num }, { retries });
	if (!soft_same_partition(soft_port_pkey(soft_qp_port(peer), peer->attr.pkey_index), arrival->pkey))
		return uvd_why(PEER_PKEY, { qpn }, { retries });
	if (!soft_recv_admits(peer, arrival))
		return uvd_why(PEER_ADDRESS, { qpn }, { retries });
	if (peer->r_psn != arrival->psn)
		return uvd_why(PEER_PSN, { arrival->psn }, { qpn }, { peer->r_psn }, { retries });
	return (struct uvd_why){ NULL };
}

void soft_silence_look(const struct soft_request *req, struct soft_silence *silence)
{
	const uint32_t retries = req->retry_cnt;
	struct soft_qp *peer = soft_fabric_get_qp(req->qp->dev->fabric, req->dest_qpn);

	silence->why = uvd_why(PEER_SILENT, { req->dest_qpn }, { retries });
	if (!peer)
		return;
	pthread_mutex_lock(&peer->lock);
	silence->at_peer = why_peer(peer, &req->arrival, retries);
	pthread_mutex_unlock(&peer->lock);
	if (silence->at_peer.reason && !is_same_user(peer->qp.account, req->qp->qp.account)) {
		silence->peer = peer;
		return;
	}
	if (silence->at_peer.reason)
		silence->why = silence->at_peer;
	soft_ref_put(&peer->ref);
}

void soft_silence_put(struct soft_silence *silence)
{
	if (silence->peer)
		soft_ref_put(&silence->peer->ref);
}

/* To the user of the QP, which has a PD. Caller holds qp->lock, or has a reference. */
static void explain_drop(struct soft_qp *qp, struct uvd_why why, struct soft_due *due)
{
	struct soft_explained *e = calloc(1, sizeof(*e));

	if (!e)
		return;
	e->dev = qp->dev->ibdev;
	e->context = qp->qp.pd->context;
	e->ref = &qp->ref;
	e->explained = (struct uvd_explained){
		.kind = UVD_EXPLAINED_DROP,
		.why = why,
		.object = "QP",
		.number = qp->qp.qp_num,
	};
	soft_due_explain(due, e);
}

void soft_explain_drop(const struct soft_silence *silence, struct soft_due *due)
{
	if (silence->peer && silence->peer->qp.pd)
		explain_drop(silence->peer, silence->at_peer, due);
}

/* Why there was no answer, as far as this end knows. Caller holds qp->lock. */
static struct uvd_why why_no_answer(struct soft_qp *qp)
{
	const union ibv_gid *gid = &qp->attr.ah_attr.grh.dgid;

	if (qp->s_lost)
		return uvd_why(NETWORK_LOST, { qp->attr.retry_cnt });
	if (qp->wire)
		return uvd_why(WIRE_SILENT, { be64toh(gid->global.subnet_prefix) },
			       { be64toh(gid->global.interface_id) }, { qp->attr.dest_qp_num }, { qp->attr.retry_cnt });
	if (uvd_config_port_down(soft_qp_port(qp)))
		return uvd_why(LINK_DOWN, { qp->attr.retry_cnt });
	return (struct uvd_why){ NULL };
}

/* Returns the reason as far as the request itself shows it. Caller holds qp->lock. */
static struct uvd_why why_send(struct soft_qp *qp, const struct soft_send_wqe *wqe, enum ibv_wc_status status)
{
	const struct soft_list list = { qp->qp.pd, wqe->sge, wqe->num_sge,
					soft_op_brings_back(wqe->opcode) ? IBV_ACCESS_LOCAL_WRITE : 0 };

	switch (status) {
	case IBV_WC_LOC_PROT_ERR:
		return soft_why_list(&list);
	case IBV_WC_LOC_LEN_ERR:
		if (soft_op_is_atomic(wqe->opcode))
			return uvd_why(ATOMIC_LENGTH);
		return uvd_why(SEND_LENGTH, { wqe->length }, { 128u << soft_qp_port(qp)->active_mtu });
	case IBV_WC_LOC_QP_OP_ERR:
		return uvd_why(SEND_REFUSED);
	case IBV_WC_MW_BIND_ERR:
		if (wqe->opcode == IBV_WR_BIND_MW)
			return uvd_why(BIND_REFUSED);
		return uvd_why(INVALIDATE_REFUSED, { wqe->invalidate_rkey });
	case IBV_WC_RETRY_EXC_ERR:
		return why_no_answer(qp);
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return uvd_why(RNR, { qp->attr.dest_qp_num }, { qp->attr.rnr_retry });
	case IBV_WC_REM_INV_REQ_ERR:
		return uvd_why(REMOTE_REFUSED, { qp->attr.dest_qp_num }, { .word = "invalid request" });
	case IBV_WC_REM_ACCESS_ERR:
		return uvd_why(REMOTE_REFUSED, { qp->attr.dest_qp_num }, { .word = "remote access error" });
	case IBV_WC_REM_OP_ERR:
		return uvd_why(REMOTE_REFUSED, { qp->attr.dest_qp_num }, { .word = "remote operational error" });
	default:
		return (struct uvd_why){ NULL };
	}
}

const struct uvd_why *soft_why_refused(const struct soft_mover *m, const struct soft_qp *requester)
{
	return m->why.reason && m->why_user == uvd_account_person(requester->qp.account) ? &m->why : NULL;
}

void soft_explain_send(struct soft_qp *qp, struct soft_send_wqe *wqe, enum ibv_wc_status status,
		       const struct uvd_why *why, struct soft_due *due)
{
	struct soft_explained *e = calloc(1, sizeof(*e));

	if (!e)
		return;
	e->dev = qp->dev->ibdev;
	e->context = qp->qp.pd->context;
	e->ref = &qp->ref;
	e->explained = (struct uvd_explained){
		.kind = UVD_EXPLAINED_COMPLETION,
		.why = why_send(qp, wqe, status),
		.object = "QP",
		.number = qp->qp.qp_num,
		.status = status,
		.opcode = wqe->opcode,
		.wr_id = wqe->wr_id,
		.length = wqe->length,
	};
	if (why && why->reason && !(status == IBV_WC_RETRY_EXC_ERR && e->explained.why.reason))
		e->explained.why = *why;
	soft_due_explain(due, e);
}

/* ---- a receive, or the event of a QP that has taken none --------------------------------------------------------- */

void soft_explain_recv(struct soft_qp *qp, enum ibv_wc_status status, enum ibv_event_type event,
		       const struct uvd_why *why, struct soft_due *due)
{
	struct soft_srq *srq = qp->qp.pd ? NULL : qp->r_srq;
	struct soft_explained *e;

	/* An XRC target has no user of its own, and between two requests no SRQ. */
	if (!qp->qp.pd && !srq)
		return;
	e = calloc(1, sizeof(*e));
	if (!e)
		return;
	e->dev = qp->dev->ibdev;
	e->context = srq ? srq->srq.pd->context : qp->qp.pd->context;
	e->ref = srq ? &srq->ref : &qp->ref;
	e->explained = (struct uvd_explained){
		.kind = qp->r_taken ? UVD_EXPLAINED_COMPLETION : UVD_EXPLAINED_EVENT,
		.object = "QP",
		.number = qp->qp.qp_num,
		.status = status,
		.event = event,
		.is_recv = true,
		.wr_id = qp->r_taken ? qp->r_wqe->wr_id : 0,
	};
	if (why && why->reason) {
		e->explained.why = *why;
	} else if (status == IBV_WC_LOC_PROT_ERR && qp->r_taken) {
		const struct soft_list list = soft_recv_list(qp);

		e->explained.why = soft_why_list(&list);
	}
	soft_due_explain(due, e);
}

/* ---- messages of UC and UD, which are dropped in silence --------------------------------------------------------- */

struct uvd_why soft_why_r_key(struct soft_qp *qp, const struct soft_arrival *arrival)
{
	const struct soft_key_use use = {
		.pd = soft_target_pd(qp),
		.which = "r_key",
		.is_remote = true,
		.qpn = qp->qp.qp_num,
		.key = arrival->rkey,
		.addr = arrival->remote_addr,
		.length = arrival->length,
		.access = soft_op_right(arrival->opcode),
	};
	const struct uvd_why why = soft_why_key(&use);

	/* The key may have become valid since. */
	return why.reason ? why : uvd_why(KEY_UNKNOWN, { arrival->rkey }, { .word = "r_key" });
}

struct uvd_why soft_why_mtu(struct soft_qp *qp, const struct soft_arrival *arrival)
{
	return uvd_why(PATH_MTU, { 128u << arrival->mtu }, { qp->qp.qp_num }, { 128u << qp->attr.path_mtu });
}

/* Looks in the order of soft_recv_admits(). */
static enum soft_drop drop_of(struct soft_qp *qp, const struct soft_arrival *arrival)
{
	const struct uvd_port_config *port;

	if (qp->state == IBV_QPS_ERR)
		return SOFT_DROP_LOOK;
	if (!soft_can_receive(qp->state))
		return SOFT_DROP_STATE;
	if (!soft_peer_types(qp->qp.qp_type, arrival->qp_type))
		return SOFT_DROP_TYPE;
	port = soft_qp_port(qp);
	if (!soft_arrival_is_linked(arrival, port))
		return SOFT_DROP_LOOK;
	if (arrival->port && !arrival->is_multicast && !soft_port_reaches(arrival->port, &arrival->ah, port))
		return SOFT_DROP_ADDRESS;
	if (!soft_same_partition(soft_port_pkey(port, qp->attr.pkey_index), arrival->pkey))
		return SOFT_DROP_PKEY;
	if (qp->qp.qp_type == IBV_QPT_UD && qp->attr.qkey != arrival->qkey)
		return SOFT_DROP_QKEY;
	if (qp->qp.qp_type == IBV_QPT_UC && qp->attr.dest_qp_num != arrival->src_qpn)
		return SOFT_DROP_PEER;
	if (!soft_recv_admits(qp, arrival))
		return SOFT_DROP_ADDRESS;
	return qp->r_taken ? SOFT_DROP_SHORT : SOFT_DROP_NO_RECEIVE;
}

static uint16_t own_pkey(struct soft_qp *qp)
{
	return soft_port_pkey(soft_qp_port(qp), qp->attr.pkey_index);
}

/* The list of a receive is at fault, or the memory that an R_Key names. */
static struct uvd_why why_memory(struct soft_qp *qp, const struct soft_arrival *arrival)
{
	const struct soft_list list = soft_recv_list(qp);

	return soft_op_is_send(arrival->opcode) ? soft_why_list(&list)
						: uvd_why(MEMORY_GONE, { .word = "r_key" }, { arrival->rkey });
}

static struct uvd_why why_datagram(struct soft_qp *qp, const struct soft_arrival *arrival, enum soft_drop drop)
{
	const uint32_t qpn = qp->qp.qp_num;
	struct soft_list list;

	switch (drop) {
	case SOFT_DROP_STATE:
		return uvd_why(DATAGRAM_STATE, { qpn }, { qp->state });
	case SOFT_DROP_TYPE:
		return uvd_why(DATAGRAM_TYPE, { qpn });
	case SOFT_DROP_ADDRESS:
		return uvd_why(DATAGRAM_ADDRESS, { qpn });
	case SOFT_DROP_PKEY:
		return uvd_why(DATAGRAM_PKEY, { arrival->pkey }, { qpn }, { own_pkey(qp) });
	case SOFT_DROP_QKEY:
		return uvd_why(DATAGRAM_QKEY, { arrival->qkey }, { qpn }, { qp->attr.qkey });
	case SOFT_DROP_SHORT:
		list = soft_recv_list(qp);
		return uvd_why(DATAGRAM_SHORT, { arrival->length + 40 }, { soft_sge_length(list.sge, list.num_sge) });
	case SOFT_DROP_MEMORY:
		return why_memory(qp, arrival);
	default:
		return uvd_why(DATAGRAM_NO_RECEIVE, { qpn });
	}
}

static struct uvd_why why_uc(struct soft_qp *qp, const struct soft_arrival *arrival, enum soft_drop drop)
{
	const uint32_t qpn = qp->qp.qp_num;
	struct soft_list list;

	switch (drop) {
	case SOFT_DROP_STATE:
		return uvd_why(MESSAGE_STATE, { qpn }, { qp->state });
	case SOFT_DROP_TYPE:
		return uvd_why(MESSAGE_TYPE, { qpn });
	case SOFT_DROP_ADDRESS:
		return uvd_why(MESSAGE_ADDRESS, { qpn });
	case SOFT_DROP_PKEY:
		return uvd_why(MESSAGE_PKEY, { arrival->pkey }, { qpn }, { own_pkey(qp) });
	case SOFT_DROP_PEER:
		return uvd_why(MESSAGE_PEER, { qp->attr.dest_qp_num }, { qpn });
	case SOFT_DROP_SHORT:
		list = soft_recv_list(qp);
		return uvd_why(RECV_SHORT, { arrival->length }, { soft_sge_length(list.sge, list.num_sge) });
	case SOFT_DROP_MTU:
		return soft_why_mtu(qp, arrival);
	case SOFT_DROP_ACCESS:
		return uvd_why(QP_ACCESS, { qpn }, { soft_op_right(arrival->opcode) });
	case SOFT_DROP_KEY:
		return soft_why_r_key(qp, arrival);
	case SOFT_DROP_MEMORY:
		return why_memory(qp, arrival);
	case SOFT_DROP_GAP:
		return uvd_why(MESSAGE_GAP, { arrival->psn }, { qpn });
	case SOFT_DROP_PACKETS:
		return uvd_why(PACKETS, { qp->attr.dest_qp_num });
	default:
		return uvd_why(MESSAGE_NO_RECEIVE, { qpn });
	}
}

void soft_explain_message(struct soft_qp *qp, const struct soft_arrival *arrival, enum soft_drop drop,
			  struct soft_due *due)
{
	if (drop == SOFT_DROP_LOOK)
		drop = drop_of(qp, arrival);
	if (drop == SOFT_DROP_LOOK || qp->r_told >> drop & 1 || !qp->qp.pd)
		return;
	qp->r_told |= 1 << drop;
	explain_drop(qp, arrival->qp_type == IBV_QPT_UC ? why_uc(qp, arrival, drop) : why_datagram(qp, arrival, drop),
		     due);
}

void soft_explain_nowhere(struct soft_mover *m, uint32_t qpn)
{
	struct soft_due due = { .num_cqs = 0 };
	struct soft_qp *qp = m->requester.qp;
	struct uvd_why why = uvd_why(DATAGRAM_NOWHERE, { qpn });

	if (atomic_load_explicit(&qp->dev->fabric->is_shared, memory_order_relaxed))
		return;
	if (qp->qp.qp_type == IBV_QPT_UC)
		why = uvd_why(MESSAGE_NOWHERE, { qpn });
	pthread_mutex_lock(&qp->lock);
	if (!qp->s_told && qp->state != IBV_QPS_RESET)
		explain_drop(qp, why, &due);
	qp->s_told = true;
	pthread_mutex_unlock(&qp->lock);
	soft_due_run(&due);
}
