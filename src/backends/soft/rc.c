/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reliable connection, XRC as well: one request carried out at its peer, or refused as a responder would refuse it. */
#include "backends/soft/soft.h"

struct rc {
	struct soft_request *req;
	struct soft_send_wqe *wqe;
	struct soft_qp *peer;
	struct soft_due due; /* the peer's */
	struct soft_seg *local; /* the requester's own memory */
	int num_local;
	struct soft_seg remote; /* that the R_Key names */
	bool has_remote;
	int num_recv; /* segments of the receive, in peer->r_segs */
};

static struct soft_outcome done(enum ibv_wc_status status)
{
	return (struct soft_outcome){ .kind = SOFT_DONE, .status = status };
}

static bool has_mapped_receives(const struct soft_qp *peer)
{
	return peer->r_srq ? peer->r_srq->rq.mapped : peer->rq.mapped;
}

static struct soft_outcome rnr(const struct soft_qp *peer)
{
	return (struct soft_outcome){
		.kind = SOFT_RNR,
		.rnr_timer = peer->attr.min_rnr_timer,
		.is_mapped = has_mapped_receives(peer),
	};
}

static const struct soft_outcome no_answer = { .kind = SOFT_NO_ANSWER };

static bool is_atomic(const struct soft_send_wqe *wqe)
{
	return wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool is_xrc(const struct soft_qp *qp)
{
	return qp->qp.qp_type == IBV_QPT_XRC_RECV;
}

static bool is_send(const struct soft_send_wqe *wqe)
{
	return wqe->opcode == IBV_WR_SEND || wqe->opcode == IBV_WR_SEND_WITH_IMM ||
	       wqe->opcode == IBV_WR_SEND_WITH_INV;
}

static bool takes_receive(const struct soft_send_wqe *wqe)
{
	return is_send(wqe) || wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* The right that both the QP and the MR at the peer must grant; 0: none is needed. */
static unsigned int right_needed(const struct soft_send_wqe *wqe)
{
	if (is_send(wqe))
		return 0;
	if (is_atomic(wqe))
		return IBV_ACCESS_REMOTE_ATOMIC;
	return wqe->opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
}

static bool admits(struct soft_qp *peer, struct soft_request *req)
{
	/* A request out of sequence is dropped, and so would be all that repeat it. */
	return !peer->r_silent && soft_recv_admits(peer, req) && peer->r_psn == req->psn;
}

/* The peer goes into error, and tells its owner: by the receive that the message took, else by an event. */
static struct soft_outcome refuse(struct rc *rc, enum ibv_wc_status at_peer, enum ibv_event_type event,
				  enum ibv_wc_status at_requester)
{
	/* A link that went down since the request came in, as an unplugged device's does: the NAK is lost. */
	if (!soft_port_joined(rc->req->port, soft_qp_port(rc->peer)))
		return no_answer;
	if (rc->peer->r_taken) {
		struct ibv_wc wc = { .status = at_peer, .opcode = IBV_WC_RECV };

		soft_recv_complete(rc->peer, &wc, true, &rc->due);
	} else if (rc->peer->state != IBV_QPS_ERR) {
		soft_due_event(&rc->due, rc->peer, event);
	}
	soft_qp_error(rc->peer, &rc->due);
	return done(at_requester);
}

/* With the peer's lock held: the checks that a responder makes before it executes. */
static struct soft_outcome check_rights(struct rc *rc)
{
	struct soft_send_wqe *wqe = rc->wqe;
	struct soft_qp *peer = rc->peer;
	unsigned int right = right_needed(wqe);

	if ((peer->attr.qp_access_flags & right) != right)
		goto invalid;
	if ((is_atomic(wqe) || wqe->opcode == IBV_WR_RDMA_READ) && !peer->attr.max_dest_rd_atomic)
		goto invalid;
	if ((is_atomic(wqe) || wqe->opcode == IBV_WR_ATOMIC_WRITE) && wqe->remote_addr % sizeof(uint64_t))
		goto invalid;
	/* Without bytes the key and the address mean nothing. */
	if (right && wqe->length) {
		if (soft_target_get(peer, wqe->rkey, wqe->remote_addr, wqe->length, right, &rc->remote))
			return refuse(rc, IBV_WC_LOC_PROT_ERR, IBV_EVENT_QP_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR);
		rc->has_remote = true;
	}
	return done(IBV_WC_SUCCESS);
invalid:
	return refuse(rc, IBV_WC_LOC_QP_OP_ERR, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
}

/* With the peer's lock held. */
static struct soft_outcome take_receive(struct rc *rc)
{
	struct soft_qp *peer = rc->peer;
	struct soft_recv_wqe *recv = peer->r_wqe;

	if (!soft_recv_take(peer, &rc->due))
		return rnr(peer);
	if (!is_send(rc->wqe))
		return done(IBV_WC_SUCCESS);
	if (rc->wqe->length > soft_sge_length(recv->sge, recv->num_sge))
		return refuse(rc, IBV_WC_LOC_LEN_ERR, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
	rc->num_recv = soft_segs_get(soft_recv_pd(peer), recv->sge, recv->num_sge, IBV_ACCESS_LOCAL_WRITE, peer->r_segs);
	if (rc->num_recv < 0) {
		rc->num_recv = 0;
		return refuse(rc, IBV_WC_LOC_PROT_ERR, IBV_EVENT_QP_FATAL, IBV_WC_REM_OP_ERR);
	}
	return done(IBV_WC_SUCCESS);
}

static enum soft_copy_error move_atomic(struct rc *rc)
{
	struct soft_span local = { .segs = rc->local, .num_segs = rc->num_local };
	struct soft_qp *qp = rc->req->qp;
	uint64_t old;

	if (soft_atomic(qp->dev->ibdev->fabric, &rc->remote, rc->wqe, &old))
		return SOFT_COPY_DST;
	if (soft_copy(local, (struct soft_span){ .bytes = (uint8_t *)&old }, sizeof(old), qp, rc->peer) ==
	    SOFT_COPY_DST)
		return SOFT_COPY_SRC;
	return SOFT_COPY_OK;
}

/* No lock is held. DST is the peer's memory, SRC the requester's, whichever way the data goes. */
static enum soft_copy_error move(struct rc *rc)
{
	struct soft_send_wqe *wqe = rc->wqe;
	struct soft_span local = { .bytes = wqe->is_inline ? wqe->data : NULL };
	struct soft_span remote = { .segs = &rc->remote, .num_segs = 1 };
	enum soft_copy_error err;

	local.segs = rc->local;
	local.num_segs = rc->num_local;
	if (is_atomic(wqe))
		return move_atomic(rc);
	if (wqe->opcode == IBV_WR_ATOMIC_WRITE)
		return soft_atomic(rc->req->qp->dev->ibdev->fabric, &rc->remote, wqe, NULL) ? SOFT_COPY_DST : SOFT_COPY_OK;
	if (is_send(wqe)) {
		remote.segs = rc->peer->r_segs;
		remote.num_segs = rc->num_recv;
	}
	if (wqe->opcode != IBV_WR_RDMA_READ)
		return soft_copy(remote, local, wqe->length, rc->req->qp, rc->peer);
	err = soft_copy(local, remote, wqe->length, rc->req->qp, rc->peer);
	if (err == SOFT_COPY_SRC)
		return SOFT_COPY_DST;
	return err == SOFT_COPY_DST ? SOFT_COPY_SRC : err;
}

/* The peer's process has died. Its QPs are closed soon, and until then they answer no more than afterwards. */
static bool process_is_gone(struct rc *rc)
{
	struct soft_seg *seg = is_send(rc->wqe) ? rc->peer->r_segs : &rc->remote;

	return !seg->mr->mr.dm && !uvd_mm_alive(seg->mr->mr.umem.mm);
}

/* With the peer's lock held: the data is there, or is not. */
static struct soft_outcome conclude(struct rc *rc, enum soft_copy_error err)
{
	struct soft_send_wqe *wqe = rc->wqe;
	struct soft_qp *peer = rc->peer;

	if (err == SOFT_COPY_CUT || soft_gone(peer))
		return no_answer;
	if (err == SOFT_COPY_SRC)
		return done(IBV_WC_LOC_PROT_ERR);
	if (err == SOFT_COPY_DST && process_is_gone(rc)) {
		peer->r_silent = true;
		return no_answer;
	}
	if (err == SOFT_COPY_DST)
		return refuse(rc, IBV_WC_LOC_PROT_ERR, IBV_EVENT_QP_FATAL, IBV_WC_REM_OP_ERR);

	if (wqe->opcode == IBV_WR_SEND_WITH_INV && soft_invalidate(peer, wqe->invalidate_rkey))
		return refuse(rc, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_OP_ERR);
	peer->r_psn = (peer->r_psn + rc->req->packets) & 0xffffff;
	if (takes_receive(wqe)) {
		struct ibv_wc wc = soft_recv_wc(peer, wqe, wqe->length);

		soft_recv_complete(peer, &wc, wqe->send_flags & IBV_SEND_SOLICITED, &rc->due);
	}
	soft_count_arrival(peer, rc->req);
	return done(IBV_WC_SUCCESS);
}

/* With the peer's lock held, and its r_busy; both are when this returns. */
static struct soft_outcome respond(struct rc *rc)
{
	struct soft_outcome outcome;
	enum soft_copy_error err;

	if (!admits(rc->peer, rc->req))
		return no_answer;
	soft_recv_established(rc->peer, &rc->due);
	/* An XRC request whose SRQ is none, or of another domain. */
	if (is_xrc(rc->peer) && !rc->peer->r_srq)
		return refuse(rc, IBV_WC_LOC_QP_OP_ERR, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
	outcome = check_rights(rc);
	if (outcome.status == IBV_WC_SUCCESS && takes_receive(rc->wqe))
		outcome = take_receive(rc);
	if (outcome.kind == SOFT_DONE && outcome.status == IBV_WC_SUCCESS) {
		pthread_mutex_unlock(&rc->peer->lock);
		err = move(rc);
		pthread_mutex_lock(&rc->peer->lock);
		outcome = conclude(rc, err);
	}
	return outcome;
}

/* The SRQ that the request names, with a reference, or NULL. */
static struct soft_srq *named_srq(struct soft_qp *peer, const struct soft_request *req)
{
	return soft_srqn_get(peer->dev, peer->qp.xrcd, req->wqe->remote_srqn);
}

/* With the peer's lock held, and its r_busy: the SRQ is the target's for the time of a request. */
static void use_srq(struct soft_qp *peer, struct soft_srq *srq)
{
	if (atomic_load(&peer->waits_at) != srq)
		soft_srq_forget(peer);
	peer->r_srq = srq;
}

/* The SRQ, to be put when nothing of it is used any more. */
static struct soft_srq *leave_srq(struct rc *rc)
{
	struct ibv_wc wc = { .status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV };
	struct soft_srq *srq = rc->peer->r_srq;

	/* A message that broke off: the next one may be another SRQ's. */
	if (rc->peer->r_taken)
		soft_recv_complete(rc->peer, &wc, true, &rc->due);
	rc->peer->r_srq = NULL;
	return srq;
}

static struct soft_outcome at_peer(struct rc *rc)
{
	struct soft_qp *peer = rc->peer;
	struct soft_srq *srq = NULL;
	struct soft_outcome outcome;

	pthread_mutex_lock(&peer->lock);
	soft_recv_claim(peer);
	if (is_xrc(peer))
		use_srq(peer, named_srq(peer, rc->req));
	outcome = respond(rc);
	soft_segs_put(peer->r_segs, rc->num_recv);
	if (rc->has_remote)
		soft_segs_put(&rc->remote, 1);
	if (is_xrc(peer))
		srq = leave_srq(rc);
	soft_recv_release(peer, &rc->due);
	pthread_mutex_unlock(&peer->lock);
	soft_due_run(&rc->due);
	if (srq)
		soft_ref_put(&srq->ref);
	return outcome;
}

struct soft_outcome soft_rc_send(struct soft_request *req)
{
	struct rc rc = { .req = req, .wqe = req->wqe, .local = req->qp->s_segs };
	unsigned int access = 0;
	struct soft_outcome outcome;

	if (rc.wqe->opcode == IBV_WR_RDMA_READ || is_atomic(rc.wqe))
		access = IBV_ACCESS_LOCAL_WRITE;
	rc.num_local = soft_segs_get(req->qp->qp.pd, rc.wqe->sge, rc.wqe->num_sge, access, rc.local);
	if (rc.num_local < 0)
		return done(IBV_WC_LOC_PROT_ERR);

	outcome = no_answer;
	rc.peer = soft_fabric_get_qp(req->qp->dev->ibdev->fabric, req->dest_qpn);
	if (rc.peer) {
		outcome = at_peer(&rc);
		soft_ref_put(&rc.peer->ref);
	}
	soft_segs_put(rc.local, rc.num_local);
	return outcome;
}

/* With the peer's lock held: is there a receive for the request? A request that will be refused needs none. */
static bool is_ready(struct soft_qp *peer, const struct soft_request *req)
{
	struct soft_srq *srq;
	bool ready;

	if (!takes_receive(req->wqe))
		return true;
	if (!is_xrc(peer))
		return soft_recv_ready(peer);
	srq = named_srq(peer, req);
	/* Who ends it sends those away that wait at it, and must find the peer among them. */
	if (!srq)
		return true;
	use_srq(peer, srq);
	ready = soft_recv_ready(peer);
	peer->r_srq = NULL;
	soft_ref_put(&srq->ref);
	return ready;
}

struct soft_outcome soft_rc_probe(struct soft_request *req)
{
	struct soft_qp *peer = soft_fabric_get_qp(req->qp->dev->ibdev->fabric, req->dest_qpn);
	struct soft_outcome outcome = no_answer;

	if (!peer)
		return outcome;
	pthread_mutex_lock(&peer->lock);
	if (peer->r_busy) {
		outcome = done(IBV_WC_SUCCESS);
	} else if (admits(peer, req)) {
		outcome = done(IBV_WC_SUCCESS);
		if (!is_ready(peer, req))
			outcome = rnr(peer);
		outcome.is_mapped = has_mapped_receives(peer);
	}
	pthread_mutex_unlock(&peer->lock);
	soft_ref_put(&peer->ref);
	return outcome;
}
