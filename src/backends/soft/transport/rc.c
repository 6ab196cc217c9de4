/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RC and XRC: carries out one request at its peer, or refuses it as a responder would. The peer is claimed for one
 * chunk at a time, and never while the mover is in the requester's memory.
 */
#include <string.h>
#include "backends/soft/transport/transport.h"

struct rc {
	struct soft_mover *m;
	struct soft_request *req;
	struct soft_send_wqe *wqe;
	struct soft_qp *peer; /* claimed */
	struct soft_due due; /* the peer's */
	struct soft_list local; /* the requester's own memory */
	uint32_t moved; /* bytes, before this chunk */
	unsigned int epoch; /* the peer's r_epoch when the request arrived */
	struct soft_seg seg; /* the memory that the R_Key names */
	bool has_seg;
	struct soft_foreign foreign; /* this chunk, if it is copied directly and not through the mover's buffer */
	struct soft_srq *srq, *old_srq; /* references, put after the claim; or NULL */
};

static struct soft_outcome rc_done(enum ibv_wc_status status)
{
	return (struct soft_outcome){ .kind = SOFT_DONE, .status = status };
}

static bool has_mapped_receives(const struct soft_qp *peer)
{
	return peer->r_srq ? peer->r_srq->rq.mapped : peer->rq.mapped;
}

static struct soft_outcome rc_rnr(const struct soft_qp *peer)
{
	return (struct soft_outcome){
		.kind = SOFT_RNR,
		.rnr_timer = peer->attr.min_rnr_timer,
		.is_mapped = has_mapped_receives(peer),
	};
}

/* Counts an RNR NAK at both ports. Caller holds peer->lock, and the peer admits the request. */
static void rc_count_rnr(const struct soft_request *req, struct soft_qp *peer)
{
	soft_count_at_port(peer->dev, soft_qp_port(peer), UVD_PORT_RNR_SENT, 1);
	soft_count_at_port(req->qp->dev, req->port, UVD_PORT_RNR_RCVD, 1);
}

static struct soft_outcome rc_send_rnr(const struct soft_request *req, struct soft_qp *peer)
{
	rc_count_rnr(req, peer);
	return rc_rnr(peer);
}

static const struct soft_outcome no_answer = { .kind = SOFT_NO_ANSWER };
static const struct soft_outcome lost_on_way = { .kind = SOFT_NO_ANSWER, .is_lost = true };
static const struct soft_outcome go_on = { .kind = SOFT_DONE, .status = IBV_WC_SUCCESS };

static bool is_atomic(const struct soft_send_wqe *wqe)
{
	return wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool brings_back(const struct soft_send_wqe *wqe)
{
	return wqe->opcode == IBV_WR_RDMA_READ || is_atomic(wqe);
}

static bool is_xrc(const struct soft_qp *qp)
{
	return qp->qp.qp_type == IBV_QPT_XRC_RECV;
}

static bool rc_is_send(const struct soft_send_wqe *wqe)
{
	return wqe->opcode == IBV_WR_SEND || wqe->opcode == IBV_WR_SEND_WITH_IMM || wqe->opcode == IBV_WR_SEND_WITH_INV;
}

static bool takes_receive(const struct soft_send_wqe *wqe)
{
	return rc_is_send(wqe) || wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* The right that both the QP and the MR at the peer must grant; 0: none is needed. */
static unsigned int right_needed(const struct soft_send_wqe *wqe)
{
	if (rc_is_send(wqe))
		return 0;
	if (is_atomic(wqe))
		return IBV_ACCESS_REMOTE_ATOMIC;
	return wqe->opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
}

bool soft_rc_admits(struct soft_qp *peer, const struct soft_request *req)
{
	/* A request out of sequence is dropped, and so are its retries. */
	return !peer->r_silent && soft_recv_admits(peer, req) && peer->r_psn == req->psn;
}

static bool is_first(const struct rc *rc)
{
	return !rc->moved;
}

static uint32_t rc_chunk(const struct rc *rc)
{
	uint32_t left = rc->wqe->length - rc->moved;

	return left < SOFT_CHUNK ? left : SOFT_CHUNK;
}

static bool is_last(const struct rc *rc)
{
	return rc->moved + rc_chunk(rc) == rc->wqe->length;
}

/* Returns the chunk's bytes for a write, and tells the mover whether they are foreign. */
static void *bytes_of(struct rc *rc)
{
	rc->m->is_foreign = rc->foreign.view;
	return rc->foreign.view ? (void *)rc->foreign.at : rc->m->buffer;
}

/* ---- at the peer, with its lock held, and claimed ---------------------------------------------------------------- */

/* Does one access move the data of the whole list? Then that access checks the key, and no check is needed before. */
static bool is_asked_once(const struct rc *rc, int num_sge)
{
	return num_sge == 1 && rc->wqe->length && rc->wqe->length <= SOFT_CHUNK;
}

/* Puts the peer into error with soft_recv_fail(). Returns the requester's outcome. */
static struct soft_outcome rc_refuse(struct rc *rc, enum ibv_wc_status at_peer, enum ibv_event_type event,
				     enum ibv_wc_status at_requester)
{
	/* If the link has gone down since the request arrived, for example by an unplug, the NAK is lost. */
	if (!soft_port_joined(rc->req->port, soft_qp_port(rc->peer)))
		return no_answer;
	soft_recv_fail(rc->peer, at_peer, event, &rc->due);
	return rc_done(at_requester);
}

/* The responder's checks of rights, resources and alignment, which it makes before it executes the request. */
static struct soft_outcome check_rights(struct rc *rc)
{
	struct soft_send_wqe *wqe = rc->wqe;
	struct soft_qp *peer = rc->peer;
	unsigned int right = right_needed(wqe);

	if ((peer->attr.qp_access_flags & right) != right)
		goto invalid;
	if ((brings_back(wqe) || wqe->opcode == IBV_WR_ATOMIC_WRITE) && !peer->attr.max_dest_rd_atomic)
		goto invalid;
	if (!brings_back(wqe) && !soft_packets_fit(peer, rc->req->mtu, wqe->length))
		goto invalid;
	if ((is_atomic(wqe) || wqe->opcode == IBV_WR_ATOMIC_WRITE) && wqe->remote_addr % sizeof(uint64_t))
		goto invalid;
	return go_on;
invalid:
	return rc_refuse(rc, IBV_WC_LOC_QP_OP_ERR, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
}

/*
 * The receive that an RDMA WRITE with immediate data has taken ends with LOC_ACCESS_ERR. As in the kernel's rxe, a message
 * of several packets takes it with the last one, and the first has the key.
 */
static struct soft_outcome rc_refuse_key(struct rc *rc)
{
	if (takes_receive(rc->wqe) && rc->req->packets == 1 && !soft_recv_take(rc->peer, &rc->due))
		return rc_send_rnr(rc->req, rc->peer);
	return rc_refuse(rc, IBV_WC_LOC_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR);
}

static struct soft_outcome rc_refuse_receive(struct rc *rc)
{
	return rc_refuse(rc, IBV_WC_LOC_PROT_ERR, IBV_EVENT_QP_FATAL, IBV_WC_REM_OP_ERR);
}

/* The XRC request names no SRQ of the target's domain. */
static struct soft_outcome rc_refuse_srq(struct rc *rc)
{
	return rc_refuse(rc, IBV_WC_LOC_QP_OP_ERR, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
}

static struct soft_outcome take_receive(struct rc *rc)
{
	struct soft_qp *peer = rc->peer;
	struct soft_recv_wqe *recv = peer->r_wqe;
	struct soft_list list;

	if (!soft_recv_take(peer, &rc->due))
		return rc_send_rnr(rc->req, peer);
	if (!rc_is_send(rc->wqe))
		return go_on;
	if (rc->wqe->length > soft_sge_length(recv->sge, recv->num_sge))
		return rc_refuse(rc, IBV_WC_LOC_LEN_ERR, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
	list = soft_recv_list(peer);
	return is_asked_once(rc, list.num_sge) || soft_list_ok(&list) ? go_on : rc_refuse_receive(rc);
}

/*
 * Looks up the R_Key for the memory of the whole request, again for each chunk, as it can be invalidated in between.
 * Not for a request without bytes, whose R_Key means nothing.
 */
static bool rc_get_target(struct rc *rc)
{
	const struct soft_send_wqe *wqe = rc->wqe;

	if (!rc->has_seg)
		rc->has_seg = !soft_target_get(rc->peer, wqe->rkey, wqe->remote_addr, wqe->length, right_needed(wqe),
					       &rc->seg);
	return rc->has_seg;
}

static void rc_put_target(struct rc *rc)
{
	if (rc->has_seg)
		soft_seg_put(&rc->seg);
	rc->has_seg = false;
}

/* The responder accepts or refuses a request that begins. */
static struct soft_outcome rc_arrive(struct rc *rc)
{
	struct soft_qp *peer = rc->peer;
	struct soft_outcome outcome;

	if (!soft_rc_admits(peer, rc->req))
		return no_answer;
	rc->epoch = peer->r_epoch;
	soft_recv_established(peer, &rc->due);
	if (is_xrc(peer) && !peer->r_srq)
		return rc_refuse_srq(rc);
	outcome = check_rights(rc);
	if (outcome.status == IBV_WC_SUCCESS && right_needed(rc->wqe) && rc->wqe->length && !rc_get_target(rc))
		return rc_refuse_key(rc);
	if (outcome.status == IBV_WC_SUCCESS && !soft_packets_fit(peer, rc->req->mtu, rc->wqe->length))
		return rc_done(IBV_WC_LOC_LEN_ERR); /* packets of the answer to a READ */
	if (outcome.status == IBV_WC_SUCCESS && takes_receive(rc->wqe))
		outcome = take_receive(rc);
	return outcome;
}

/* For further chunks: is the request still the one that the responder executes? */
static struct soft_outcome rc_come_again(struct rc *rc)
{
	struct soft_qp *peer = rc->peer;

	if (!soft_rc_admits(peer, rc->req) || peer->r_epoch != rc->epoch)
		return no_answer;
	/* The SRQ has been destroyed since the last chunk, and with it the PD of the R_Key may be gone. */
	if (is_xrc(peer) && !peer->r_srq)
		return rc_refuse_srq(rc);
	return takes_receive(rc->wqe) && !peer->r_taken ? no_answer : go_on;
}

static enum soft_copy_error rc_move_target(struct rc *rc)
{
	struct soft_send_wqe *wqe = rc->wqe;
	struct soft_mover *m = rc->m;
	struct soft_atomic_op op = { wqe->opcode, wqe->compare_add, wqe->swap, 0 };
	enum soft_copy_error err = SOFT_COPY_OK;

	if (wqe->opcode == IBV_WR_RDMA_READ) {
		if (!soft_is_captured(rc->req))
			err = soft_seg_view(m, SOFT_AT_RESPONDER, &rc->seg, rc->moved, rc_chunk(rc), &rc->foreign);
		if (err || rc->foreign.view)
			return err;
		return soft_seg_move(m, SOFT_AT_RESPONDER, &rc->seg, rc->moved, m->buffer, rc_chunk(rc), false);
	}
	if (!is_atomic(wqe) && wqe->opcode != IBV_WR_ATOMIC_WRITE)
		return soft_seg_move(m, SOFT_AT_RESPONDER, &rc->seg, rc->moved, bytes_of(rc), rc_chunk(rc), true);
	memcpy(&op.value, m->buffer, sizeof(op.value));
	err = soft_atomic(m, &rc->req->qp->dev->fabric->atomics, &rc->seg, &op);
	if (!err)
		memcpy(m->buffer, &op.value, sizeof(op.value));
	return err;
}

/* Moves a chunk with the peer's lock released. Takes it again, unless the peer was taken from the mover. */
static enum soft_copy_error rc_move(struct rc *rc)
{
	const bool to_receive = rc_is_send(rc->wqe);
	enum soft_copy_error err = SOFT_COPY_OK;
	struct soft_qp *peer = rc->peer;
	struct soft_list list;

	if (!rc_chunk(rc))
		return SOFT_COPY_OK;
	if (to_receive)
		list = soft_recv_list(peer);
	else if (!rc_get_target(rc))
		return SOFT_COPY_BAD;
	pthread_mutex_unlock(&peer->lock);
	soft_due_run(&rc->due);
	if (to_receive)
		err = soft_list_move(rc->m, SOFT_AT_RESPONDER, &list, rc->moved, bytes_of(rc), rc_chunk(rc), true);
	else
		err = rc_move_target(rc);
	rc_put_target(rc);
	if (rc->m->responder.qp)
		pthread_mutex_lock(&peer->lock);
	return err;
}

/* Counts a chunk that has been moved. */
static void rc_count(const struct rc *rc)
{
	struct soft_traffic t = {
		.is_fetched = brings_back(rc->wqe),
		.requests = is_first(rc),
		.sends = is_last(rc) && rc_is_send(rc->wqe),
		.receives = is_last(rc) && takes_receive(rc->wqe),
	};

	/* All chunks but the last have whole packets. */
	soft_traffic_add(&t, rc_chunk(rc), soft_packets(rc->req->mtu, rc_chunk(rc)));
	soft_count_out(rc->m, rc->req, &t);
	soft_count_in(rc->m, rc->peer, &t);
	if (soft_is_captured(rc->req))
		soft_capture_chunk(rc->req, rc->peer, rc->moved, rc->m->buffer, rc_chunk(rc));
}

/* Ends a request at the responder, after its last chunk. */
static struct soft_outcome rc_conclude(struct rc *rc)
{
	struct soft_send_wqe *wqe = rc->wqe;
	struct soft_qp *peer = rc->peer;

	/*
	 * Class J: the receive ends in error, and no NAK goes out. No acknowledgement does, either: the requester would take the
	 * request for carried out, as it does with the kernel's rxe, which acknowledges it (RC-40 of docs/conformance.md).
	 */
	if (wqe->opcode == IBV_WR_SEND_WITH_INV &&
	    soft_invalidate_mw(soft_target_pd(peer), peer->qp.qp_num, wqe->invalidate_rkey)) {
		soft_recv_fail(peer, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR, &rc->due);
		return no_answer;
	}
	peer->r_psn = (peer->r_psn + rc->req->packets) & 0xffffff;
	if (soft_is_captured(rc->req))
		soft_capture_end(rc->req, peer);
	if (takes_receive(wqe)) {
		struct ibv_wc wc = soft_recv_wc(peer, wqe, wqe->length);

		soft_send_arrived(rc->req->qp);
		soft_recv_complete(peer, &wc, wqe->send_flags & IBV_SEND_SOLICITED, &rc->due);
	}
	soft_count_arrival(peer, rc->req);
	return go_on;
}

static struct soft_outcome rc_respond(struct rc *rc)
{
	struct soft_outcome outcome = is_first(rc) ? rc_arrive(rc) : rc_come_again(rc);
	enum soft_copy_error err;

	if (outcome.kind != SOFT_DONE || outcome.status != IBV_WC_SUCCESS)
		return outcome;
	err = rc_move(rc);
	if (err == SOFT_COPY_LOST)
		return soft_lost;
	if (err == SOFT_COPY_CUT || soft_gone(rc->peer))
		return no_answer;
	if (err == SOFT_COPY_DEAD) {
		/*
		 * The peer's process has exited, and its QPs will be destroyed soon. Until then this one does not
		 * answer.
		 */
		rc->peer->r_silent = true;
		return no_answer;
	}
	if (err == SOFT_COPY_SOURCE)
		return rc_done(IBV_WC_LOC_PROT_ERR);
	if (err == SOFT_COPY_BAD)
		return rc_refuse_receive(rc);
	rc_count(rc);
	return is_last(rc) ? rc_conclude(rc) : go_on;
}

/* ---- XRC: a claimed target uses the SRQ that the request names --------------------------------------------------- */

/* Returns the SRQ that the request names, with a reference, or NULL. */
static struct soft_srq *named_srq(struct soft_qp *peer, const struct soft_request *req)
{
	return soft_srqn_get(peer->dev, peer->qp.xrcd, req->wqe->remote_srqn);
}

/*
 * An earlier message was cut off between two chunks: flushes its receive. If the SRQ of that has been destroyed
 * meanwhile, the receive is gone without a completion.
 */
static void drop_taken(struct rc *rc)
{
	struct ibv_wc wc = { .status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV };
	struct soft_qp *peer = rc->peer;

	rc->old_srq = soft_srqn_get(peer->dev, peer->qp.xrcd, peer->r_srqn);
	peer->r_srq = rc->old_srq;
	if (peer->r_srq)
		soft_recv_complete(peer, &wc, true, &rc->due);
	peer->r_taken = false;
}

static void use_srq(struct rc *rc)
{
	struct soft_qp *peer = rc->peer;

	if (!is_xrc(peer))
		return;
	if (is_first(rc) && peer->r_taken)
		drop_taken(rc);
	rc->srq = named_srq(peer, rc->req);
	if (atomic_load(&peer->waits_at) != rc->srq)
		soft_srq_forget(peer);
	peer->r_srq = rc->srq;
	peer->r_srqn = rc->srq ? rc->srq->srq.srq_num : 0;
	/* The SRQ has been destroyed, and with it the receive that the message took. */
	if (!rc->srq)
		peer->r_taken = false;
}

/* Ends the use of the SRQ. Flushes the receive of a message that was cut off, as the next one may name another SRQ. */
static void leave_srq(struct rc *rc, bool goes_on)
{
	struct ibv_wc wc = { .status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV };

	if (rc->peer->r_taken && rc->srq && !goes_on)
		soft_recv_complete(rc->peer, &wc, true, &rc->due);
	rc->peer->r_srq = NULL;
}

static void put_srqs(struct rc *rc)
{
	if (rc->srq)
		soft_ref_put(&rc->srq->ref);
	if (rc->old_srq)
		soft_ref_put(&rc->old_srq->ref);
	rc->srq = rc->old_srq = NULL;
}

/* ---- the requester ----------------------------------------------------------------------------------------------- */

static struct soft_outcome rc_at_peer(struct rc *rc)
{
	struct soft_outcome outcome;

	rc->peer = soft_claim(rc->m, rc->req->qp->dev->fabric, rc->req->dest_qpn);
	if (!rc->peer)
		return rc->m->requester.qp ? no_answer : soft_lost;
	use_srq(rc);
	outcome = rc_respond(rc);
	if (rc->m->responder.qp && rc->m->requester.qp && soft_is_captured(rc->req))
		soft_capture_refusal(rc->req, rc->peer, rc->moved, rc->m->buffer, rc_chunk(rc), outcome);
	rc_put_target(rc);
	if (rc->m->responder.qp) {
		if (is_xrc(rc->peer))
			leave_srq(rc, outcome.kind == SOFT_DONE && outcome.status == IBV_WC_SUCCESS);
		soft_unclaim(rc->m, &rc->due);
	} else {
		/* Whoever has taken the peer from the mover has its SRQ, too: see soft_recv_give_up(). */
		rc->srq = NULL;
		outcome = soft_lost;
	}
	put_srqs(rc);
	return outcome;
}

static struct soft_outcome of_requester(enum soft_copy_error err)
{
	if (err == SOFT_COPY_LOST)
		return soft_lost;
	if (err == SOFT_COPY_CUT)
		return no_answer;
	/* The source of a READ is the responder's memory. */
	return rc_done(err == SOFT_COPY_SOURCE ? IBV_WC_REM_OP_ERR : IBV_WC_LOC_PROT_ERR);
}

static enum soft_copy_error rc_gather(struct rc *rc)
{
	enum soft_copy_error err = SOFT_COPY_OK;

	if (brings_back(rc->wqe))
		return SOFT_COPY_OK;
	if (rc->wqe->is_inline) {
		memcpy(rc->m->buffer, rc->wqe->data + rc->moved, rc_chunk(rc));
		return SOFT_COPY_OK;
	}
	/* A capture needs the bytes in the mover's buffer. */
	if (rc->wqe->opcode != IBV_WR_ATOMIC_WRITE && !soft_is_captured(rc->req))
		err = soft_list_view(rc->m, SOFT_AT_REQUESTER, &rc->local, rc->moved, rc_chunk(rc), &rc->foreign);
	if (err || rc->foreign.view)
		return err;
	return soft_list_move(rc->m, SOFT_AT_REQUESTER, &rc->local, rc->moved, rc->m->buffer, rc_chunk(rc), false);
}

static enum soft_copy_error rc_scatter(struct rc *rc)
{
	if (!brings_back(rc->wqe))
		return SOFT_COPY_OK;
	return soft_list_move(rc->m, SOFT_AT_REQUESTER, &rc->local, rc->moved, bytes_of(rc), rc_chunk(rc), true);
}

static struct soft_outcome move_chunk(struct rc *rc)
{
	enum soft_copy_error err = rc_gather(rc);
	struct soft_outcome outcome;

	if (err)
		return of_requester(err);
	if (rc->req->fate == UVD_FATE_LOSE)
		return lost_on_way;
	outcome = rc_at_peer(rc);
	if (outcome.kind != SOFT_DONE || outcome.status != IBV_WC_SUCCESS)
		return outcome;
	/* The request goes out before its answer is stored: the responder's error wins, and an atomic is carried out. */
	if (is_first(rc) && brings_back(rc->wqe) && !soft_list_ok(&rc->local))
		return rc_done(IBV_WC_LOC_PROT_ERR);
	err = rc_scatter(rc);
	return err ? of_requester(err) : outcome;
}

static struct soft_outcome send_chunk(struct rc *rc)
{
	struct soft_outcome outcome = move_chunk(rc);

	soft_foreign_put(&rc->foreign);
	rc->m->is_foreign = false;
	return outcome;
}

struct soft_outcome soft_rc_send(struct soft_mover *m, struct soft_request *req)
{
	struct soft_send_wqe *wqe = req->wqe;
	struct rc rc = {
		.m = m,
		.req = req,
		.wqe = wqe,
		.local = { req->qp->qp.pd, wqe->sge, wqe->num_sge, brings_back(wqe) ? IBV_ACCESS_LOCAL_WRITE : 0 },
	};
	struct soft_outcome outcome;
	bool is_over;

	if (!brings_back(wqe) && !is_asked_once(&rc, wqe->num_sge) && !soft_list_ok(&rc.local))
		return rc_done(IBV_WC_LOC_PROT_ERR);
	do {
		outcome = send_chunk(&rc);
		if (outcome.kind != SOFT_DONE || outcome.status != IBV_WC_SUCCESS)
			return outcome;
		is_over = is_last(&rc);
		rc.moved += rc_chunk(&rc);
	} while (!is_over);
	return outcome;
}

/* Is there a receive for the request, or will it be refused? Caller holds peer->lock. */
static bool is_ready(struct soft_qp *peer, const struct soft_request *req)
{
	struct soft_srq *srq;
	bool ready;

	if (!takes_receive(req->wqe))
		return true;
	if (!is_xrc(peer))
		return soft_recv_ready(peer);
	srq = named_srq(peer, req);
	/* Keep the SRQ reference until the peer is queued: destruction waits for it, then wakes all waiters. */
	if (!srq)
		return true;
	if (atomic_load(&peer->waits_at) != srq)
		soft_srq_forget(peer);
	peer->r_srq = srq;
	ready = soft_recv_ready(peer);
	peer->r_srq = NULL;
	soft_ref_put(&srq->ref);
	return ready;
}

struct soft_outcome soft_rc_probe(struct soft_request *req, bool is_retry)
{
	struct soft_qp *peer = soft_fabric_get_qp(req->qp->dev->fabric, req->dest_qpn);
	struct soft_outcome outcome = no_answer;

	if (!peer)
		return outcome;
	pthread_mutex_lock(&peer->lock);
	if (peer->r_busy) {
		outcome = go_on;
	} else if (soft_rc_admits(peer, req)) {
		outcome = go_on;
		if (!is_ready(peer, req))
			outcome = is_retry ? rc_send_rnr(req, peer) : rc_rnr(peer);
		outcome.is_mapped = has_mapped_receives(peer);
	}
	pthread_mutex_unlock(&peer->lock);
	soft_ref_put(&peer->ref);
	return outcome;
}
