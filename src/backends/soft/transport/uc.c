/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* UC. A message that the peer cannot take is dropped there, and the sender is not told. Chunks are as in rc.c. */
#include <string.h>
#include "backends/soft/transport/transport.h"

struct uc {
	struct soft_mover *m;
	struct soft_request *req;
	struct soft_send_wqe *wqe;
	struct soft_qp *peer; /* claimed */
	struct soft_due due; /* the peer's */
	struct soft_list local;
	uint32_t moved; /* bytes, before this chunk */
	unsigned int epoch; /* the peer's r_epoch when the message arrived */
};

static bool is_write(const struct soft_send_wqe *wqe)
{
	return wqe->opcode == IBV_WR_RDMA_WRITE || wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static uint32_t uc_chunk(const struct uc *uc)
{
	uint32_t left = uc->wqe->length - uc->moved;

	return left < SOFT_CHUNK ? left : SOFT_CHUNK;
}

static bool uc_get_target(struct uc *uc, struct soft_seg *seg)
{
	const struct soft_send_wqe *wqe = uc->wqe;

	return !soft_target_get(uc->peer, wqe->rkey, wqe->remote_addr, wqe->length, IBV_ACCESS_REMOTE_WRITE, seg);
}

/* ---- at the peer, with its lock held, and claimed ---------------------------------------------------------------- */

static bool may_write(struct uc *uc)
{
	struct soft_seg seg;

	if (!(uc->peer->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE))
		return false;
	if (!uc->wqe->length)
		return true;
	if (!uc_get_target(uc, &seg))
		return false;
	soft_seg_put(&seg);
	return true;
}

static bool uc_arrive(struct uc *uc)
{
	struct soft_qp *peer = uc->peer;

	if (!soft_recv_admits(peer, uc->req))
		return false;
	uc->epoch = peer->r_epoch;
	soft_recv_established(peer, &uc->due);
	if (!soft_packets_fit(peer, uc->req->mtu, uc->wqe->length))
		return false;
	if (is_write(uc->wqe) && !may_write(uc))
		return false;
	if (uc->wqe->opcode == IBV_WR_RDMA_WRITE)
		return true;
	return soft_recv_take_for(peer, uc->wqe->length, !is_write(uc->wqe), &uc->due);
}

static bool uc_come_again(struct uc *uc)
{
	struct soft_qp *peer = uc->peer;

	return soft_recv_admits(peer, uc->req) && peer->r_epoch == uc->epoch &&
	       (uc->wqe->opcode == IBV_WR_RDMA_WRITE || peer->r_taken);
}

/* Moves a chunk with the peer's lock released. Takes it again, unless the peer was taken from the mover. */
static enum soft_copy_error uc_move(struct uc *uc)
{
	const bool to_target = is_write(uc->wqe);
	enum soft_copy_error err;
	struct soft_list list;
	struct soft_seg seg;

	if (!uc_chunk(uc))
		return SOFT_COPY_OK;
	if (!to_target)
		list = soft_recv_list(uc->peer);
	else if (!uc_get_target(uc, &seg))
		return SOFT_COPY_BAD;
	pthread_mutex_unlock(&uc->peer->lock);
	soft_due_run(&uc->due);
	if (to_target) {
		err = soft_seg_move(uc->m, SOFT_AT_RESPONDER, &seg, uc->moved, uc->m->buffer, uc_chunk(uc), true);
		soft_seg_put(&seg);
	} else {
		err = soft_list_move(uc->m, SOFT_AT_RESPONDER, &list, uc->moved, uc->m->buffer, uc_chunk(uc), true);
	}
	if (uc->m->responder.qp)
		pthread_mutex_lock(&uc->peer->lock);
	return err;
}

/* length: bytes that leave the port, from uc->moved on. */
static struct soft_traffic uc_traffic(const struct uc *uc, uint32_t length)
{
	const bool is_last = uc->moved + length == uc->wqe->length;
	struct soft_traffic t = {
		.sends = is_last && !is_write(uc->wqe),
		.receives = is_last && uc->wqe->opcode != IBV_WR_RDMA_WRITE,
	};

	soft_traffic_add(&t, length, soft_packets(uc->req->mtu, length));
	return t;
}

static void uc_count_in(const struct uc *uc)
{
	const struct soft_traffic t = uc_traffic(uc, uc_chunk(uc));

	soft_count_in(uc->m, uc->peer, &t);
}

/* The requester's port sends all of the message, also what does not arrive. */
static void uc_count_out(const struct uc *uc)
{
	const struct soft_traffic t = uc_traffic(uc, uc->wqe->length);

	if (!uvd_config_port_down(uc->req->port))
		soft_count_out(uc->m, uc->req, &t);
}

static void uc_conclude(struct uc *uc)
{
	struct soft_send_wqe *wqe = uc->wqe;
	struct soft_qp *peer = uc->peer;

	/* UC does not check the PSN: a responder accepts the first packet of any message and continues from there. */
	peer->r_psn = (uc->req->psn + uc->req->packets) & 0xffffff;
	if (wqe->opcode != IBV_WR_RDMA_WRITE) {
		struct ibv_wc wc = soft_recv_wc(peer, wqe, wqe->length);

		soft_send_arrived(uc->req->qp);
		soft_recv_complete(peer, &wc, wqe->send_flags & IBV_SEND_SOLICITED, &uc->due);
	}
	soft_count_arrival(peer, uc->req);
}

/* Returns false if the rest of the message need not be sent. */
static bool uc_respond(struct uc *uc)
{
	if (uc->moved ? !uc_come_again(uc) : !uc_arrive(uc))
		return false;
	if (uc_move(uc) || soft_gone(uc->peer))
		return false;
	uc_count_in(uc);
	if (uc->moved + uc_chunk(uc) == uc->wqe->length)
		uc_conclude(uc);
	return true;
}

/* ---- the requester ----------------------------------------------------------------------------------------------- */

static bool uc_at_peer(struct uc *uc)
{
	bool arrived;

	uc->peer = soft_claim(uc->m, uc->req->qp->dev->fabric, uc->req->dest_qpn);
	if (!uc->peer)
		return false;
	arrived = uc_respond(uc);
	if (!uc->m->responder.qp)
		return false;
	soft_unclaim(uc->m, &uc->due);
	return arrived;
}

static enum soft_copy_error uc_gather(struct uc *uc)
{
	if (!uc->wqe->is_inline)
		return soft_list_move(uc->m, SOFT_AT_REQUESTER, &uc->local, uc->moved, uc->m->buffer, uc_chunk(uc),
				      false);
	memcpy(uc->m->buffer, uc->wqe->data + uc->moved, uc_chunk(uc));
	return SOFT_COPY_OK;
}

/* Does the network lose the message, or hold it back? */
static bool uc_is_diverted(struct uc *uc)
{
	if (uc->req->fate == UVD_FATE_HOLD)
		return soft_hold(uc->m, uc->req, uc->wqe->length);
	return uc->req->fate == UVD_FATE_LOSE;
}

struct soft_outcome soft_uc_deliver(struct soft_mover *m, struct soft_request *req)
{
	struct uc uc = { .m = m, .req = req, .wqe = req->wqe };

	uc_at_peer(&uc);
	return m->requester.qp ? soft_sent : soft_lost;
}

struct soft_outcome soft_uc_send(struct soft_mover *m, struct soft_request *req)
{
	struct soft_send_wqe *wqe = req->wqe;
	struct uc uc = { .m = m, .req = req, .wqe = wqe, .local = { req->qp->qp.pd, wqe->sge, wqe->num_sge, 0 } };
	enum soft_copy_error err;
	bool arrived;

	if (!soft_list_ok(&uc.local))
		return soft_bad_memory;
	do {
		err = uc_gather(&uc);
		if (err == SOFT_COPY_BAD || err == SOFT_COPY_DEAD)
			return soft_bad_memory;
		if (!err && !uc.moved)
			uc_count_out(&uc);
		if (!err && soft_is_captured(req) && !uvd_config_port_down(req->port))
			soft_capture_request(req, uc.moved, m->buffer, uc_chunk(&uc));
		arrived = !err && !uc_is_diverted(&uc) && uc_at_peer(&uc);
		if (!m->requester.qp)
			return soft_lost;
		uc.moved += uc_chunk(&uc);
	} while (arrived && uc.moved < wqe->length);
	return soft_sent;
}
