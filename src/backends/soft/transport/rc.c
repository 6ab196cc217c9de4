/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RC and XRC in one engine: the requester, and the local network as a carrier, which brings a request to its responder chunk by chunk.
 * The responder is claimed for one chunk at a time, and never while the mover is in the requester's memory.
 */
#include <string.h>
#include "backends/soft/transport/transport.h"
#include "explain/explain.h"

struct rc {
	struct soft_mover *m;
	struct soft_request *req;
	struct soft_send_wqe *wqe;
	struct soft_inbound in; /* the request at its responder */
	struct soft_list local; /* the requester's own memory */
};

static const struct soft_outcome lost_on_way = { .kind = SOFT_NO_ANSWER, .is_lost = true };

static struct soft_outcome rc_failed(enum ibv_wc_status status)
{
	return (struct soft_outcome){ .kind = SOFT_DONE, .status = status };
}

static uint32_t rc_offset(const struct rc *rc)
{
	return rc->in.offset;
}

static uint32_t rc_length(const struct rc *rc)
{
	return rc->in.length;
}

static bool rc_brings_back(const struct rc *rc)
{
	return soft_op_brings_back(rc->wqe->opcode);
}

/* Sets the chunk that begins at this offset. */
static void rc_begin_chunk(struct rc *rc, uint32_t offset)
{
	const uint32_t left = rc->wqe->length - offset;

	rc->in.offset = offset;
	rc->in.length = left < SOFT_CHUNK ? left : SOFT_CHUNK;
	rc->in.is_last = rc->in.length == left;
}

/* ---- the local network ------------------------------------------------------------------------------------------- */

/* Tells what has gone over the network. Caller holds the responder's lock, here and in the next two functions. */
static void rc_count_out(const struct rc *rc)
{
	const struct soft_traffic t = soft_inbound_traffic(&rc->in);

	soft_count_out(rc->m, rc->req, &t);
	if (soft_is_captured(rc->req))
		soft_capture_chunk(rc->req, rc->in.qp, rc_offset(rc), rc->m->buffer, rc_length(rc));
}

/* The chunk reaches nobody who answers. */
static void rc_drop(const struct rc *rc)
{
	if (rc->m->requester.qp && soft_is_captured(rc->req))
		soft_capture_dropped(rc->req, rc_offset(rc), rc->m->buffer, rc_length(rc));
}

/* Ends a request at the responder, after its last chunk. */
static struct soft_outcome rc_conclude(struct rc *rc)
{
	struct soft_outcome outcome = soft_rc_execute(&rc->in);

	if (!soft_is_sent(outcome))
		return outcome;
	if (soft_is_captured(rc->req))
		soft_capture_end(rc->req, rc->in.qp);
	if (soft_op_takes_receive(rc->wqe->opcode))
		soft_send_arrived(rc->req->qp);
	soft_rc_complete(&rc->in);
	return outcome;
}

static struct soft_outcome rc_deliver(struct rc *rc)
{
	struct soft_outcome outcome = soft_rc_take(&rc->in);

	if (outcome.kind == SOFT_NO_ANSWER)
		rc_drop(rc);
	if (soft_is_sent(outcome)) {
		rc_count_out(rc);
		if (rc->in.is_last)
			outcome = rc_conclude(rc);
	}
	if (outcome.kind == SOFT_RNR)
		soft_count_at_port(rc->req->qp->dev, rc->req->arrival.port, UVD_PORT_RNR_RCVD, 1);
	if (rc->m->responder.qp && rc->m->requester.qp && soft_is_captured(rc->req))
		soft_capture_refusal(rc->req, rc->in.qp, rc_offset(rc), rc->m->buffer, rc_length(rc), outcome);
	return outcome;
}

static struct soft_outcome rc_at_responder(struct rc *rc)
{
	struct soft_inbound *in = &rc->in;
	struct soft_outcome outcome;

	in->qp = soft_claim(rc->m, rc->req->qp->dev->fabric, rc->req->dest_qpn);
	if (!in->qp) {
		rc_drop(rc);
		return rc->m->requester.qp ? soft_no_answer : soft_lost;
	}
	soft_rc_use_srq(in);
	outcome = rc_deliver(rc);
	if (rc->m->responder.qp) {
		soft_rc_leave_srq(in, soft_is_sent(outcome));
		soft_unclaim(rc->m, &in->due);
	} else {
		/* Whoever has taken the responder from the mover has its SRQ, too: see soft_recv_give_up(). */
		in->srq = NULL;
		outcome = soft_lost;
	}
	soft_rc_put_srqs(in);
	return outcome;
}

/* ---- the requester ----------------------------------------------------------------------------------------------- */

/* The source of a READ, in the responder's memory, is gone: notes that for the responder's user. */
static struct soft_outcome rc_source_gone(struct rc *rc)
{
	struct soft_qp *peer = soft_fabric_get_qp(rc->req->qp->dev->fabric, rc->req->dest_qpn);

	if (peer) {
		rc->m->why = uvd_why(MEMORY_GONE, { .word = "r_key" }, { rc->wqe->rkey });
		rc->m->why_user = uvd_account_person(peer->qp.account);
		soft_ref_put(&peer->ref);
	}
	return rc_failed(IBV_WC_REM_OP_ERR);
}

static struct soft_outcome of_requester(struct rc *rc, enum soft_copy_error err)
{
	if (err == SOFT_COPY_LOST)
		return soft_lost;
	if (err == SOFT_COPY_CUT)
		return soft_no_answer;
	return err == SOFT_COPY_SOURCE ? rc_source_gone(rc) : rc_failed(IBV_WC_LOC_PROT_ERR);
}

static enum soft_copy_error rc_gather(struct rc *rc)
{
	enum soft_copy_error err = SOFT_COPY_OK;

	if (rc_brings_back(rc))
		return SOFT_COPY_OK;
	if (rc->wqe->is_inline) {
		memcpy(rc->m->buffer, rc->wqe->data + rc_offset(rc), rc_length(rc));
		return SOFT_COPY_OK;
	}
	/* A capture needs the bytes in the mover's buffer. */
	if (rc->wqe->opcode != IBV_WR_ATOMIC_WRITE && rc->in.may_view)
		err = soft_list_view(rc->m, SOFT_AT_REQUESTER, &rc->local, rc_offset(rc), rc_length(rc),
				     &rc->in.foreign);
	if (err || rc->in.foreign.view)
		return err;
	return soft_list_move(rc->m, SOFT_AT_REQUESTER, &rc->local, rc_offset(rc), rc->m->buffer, rc_length(rc), false);
}

static enum soft_copy_error rc_scatter(struct rc *rc)
{
	if (!rc_brings_back(rc))
		return SOFT_COPY_OK;
	return soft_list_move(rc->m, SOFT_AT_REQUESTER, &rc->local, rc_offset(rc), soft_inbound_bytes(&rc->in),
			      rc_length(rc), true);
}

static struct soft_outcome move_chunk(struct rc *rc)
{
	enum soft_copy_error err = rc_gather(rc);
	struct soft_outcome outcome;

	if (err)
		return of_requester(rc, err);
	if (rc->req->fate == UVD_FATE_LOSE)
		return lost_on_way;
	outcome = rc_at_responder(rc);
	if (!soft_is_sent(outcome))
		return outcome;
	/* The request goes out before its answer is stored: the responder's error wins, and an atomic is carried out. */
	if (!rc_offset(rc) && rc_brings_back(rc) && !soft_list_ok(&rc->local))
		return rc_failed(IBV_WC_LOC_PROT_ERR);
	err = rc_scatter(rc);
	return err ? of_requester(rc, err) : outcome;
}

static struct soft_outcome send_chunk(struct rc *rc)
{
	struct soft_outcome outcome = move_chunk(rc);

	soft_foreign_put(&rc->in.foreign);
	rc->m->is_foreign = false;
	return outcome;
}

/* Must the whole list be checked first, as more than one access moves its data? */
static bool rc_is_checked_first(const struct soft_send_wqe *wqe)
{
	return !soft_op_brings_back(wqe->opcode) && (wqe->num_sge != 1 || !wqe->length || wqe->length > SOFT_CHUNK);
}

struct soft_outcome soft_rc_send(struct soft_mover *m, struct soft_request *req)
{
	struct soft_send_wqe *wqe = req->wqe;
	const unsigned int access = soft_op_brings_back(wqe->opcode) ? IBV_ACCESS_LOCAL_WRITE : 0;
	struct rc rc = {
		.m = m,
		.req = req,
		.wqe = wqe,
		.in = { .m = m, .arrival = &req->arrival, .may_view = !soft_is_captured(req) },
		.local = { req->qp->qp.pd, wqe->sge, wqe->num_sge, access },
	};
	struct soft_outcome outcome;
	uint32_t offset = 0;

	if (rc_is_checked_first(wqe) && !soft_list_ok(&rc.local))
		return rc_failed(IBV_WC_LOC_PROT_ERR);
	do {
		rc_begin_chunk(&rc, offset);
		outcome = send_chunk(&rc);
		if (!soft_is_sent(outcome))
			return outcome;
		offset += rc_length(&rc);
	} while (!rc.in.is_last);
	return outcome;
}

struct soft_outcome soft_rc_probe(struct soft_request *req, bool is_retry)
{
	struct soft_qp *peer = soft_fabric_get_qp(req->qp->dev->fabric, req->dest_qpn);
	struct soft_outcome outcome;

	if (!peer)
		return soft_no_answer;
	pthread_mutex_lock(&peer->lock);
	outcome = soft_rc_look(peer, &req->arrival, is_retry);
	pthread_mutex_unlock(&peer->lock);
	if (outcome.kind == SOFT_RNR && is_retry)
		soft_count_at_port(req->qp->dev, req->arrival.port, UVD_PORT_RNR_RCVD, 1);
	soft_ref_put(&peer->ref);
	return outcome;
}
