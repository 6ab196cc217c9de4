/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Small sends and writes of an RC queue, carried out together: their data is gathered at once, the peer is claimed once, and the data
 * is written at once. What is not plain (another operation, no receive, a wrong key, an error) is left to rc.c, request by request, as
 * if nobody had tried.
 */
#include <string.h>
#include "backends/soft/transport/transport.h"

enum { BURST_BYTES = SOFT_CHUNK / 2 /* half of the mover's buffer for what is read, half for what is written */ };

struct burst {
	struct soft_mover *m;
	struct soft_burst *requests;
	struct soft_qp *peer; /* claimed */
	struct soft_due due; /* the peer's */
	struct soft_pieces from, to;
	const uint8_t *data[SOFT_BURST]; /* of each request */
};

static bool is_send(const struct soft_send_wqe *wqe)
{
	return wqe->opcode == IBV_WR_SEND || wqe->opcode == IBV_WR_SEND_WITH_IMM;
}

static bool is_plain(const struct soft_send_wqe *wqe)
{
	return (is_send(wqe) || wqe->opcode == IBV_WR_RDMA_WRITE) && !wqe->is_refused && wqe->num_sge <= 1;
}

void soft_burst_collect(struct soft_qp *qp, struct soft_burst *burst)
{
	uint32_t bytes = 0;

	burst->num = 0;
	/* SQD ends the one that has begun, and no other. */
	if (qp->qp.qp_type != IBV_QPT_RC || qp->state != IBV_QPS_RTS)
		return;
	while (burst->num < SOFT_BURST) {
		struct soft_send_wqe *wqe = soft_sq_peek(qp, burst->num);

		if (!wqe || !is_plain(wqe) || wqe->length > BURST_BYTES - bytes)
			break;
		bytes += wqe->length;
		burst->wqes[burst->num++] = wqe;
	}
}

/* Fewer than two requests are not worth it. */
static bool cut(struct burst *b, unsigned int num)
{
	b->requests->num = num;
	return num > 1;
}

/* ---- the requester's memory -------------------------------------------------------------------------------------- */

static bool gather_one(struct burst *b, const struct soft_send_wqe *wqe, const uint8_t **data)
{
	struct uvd_pd *pd = b->requests->req.qp->qp.pd;
	struct soft_seg seg;
	uint32_t at;

	*data = wqe->data;
	if (wqe->is_inline || !wqe->length)
		return true;
	if (soft_seg_get(pd, wqe->sge[0].lkey, wqe->sge[0].addr, wqe->length, 0, &seg) ||
	    !soft_pieces_add(&b->from, &seg, wqe->length, &at))
		return false;
	*data = b->m->buffer + at;
	return true;
}

static enum soft_copy_error gather(struct burst *b)
{
	struct soft_burst *requests = b->requests;
	enum soft_copy_error err;
	unsigned int n = 0;

	while (n < requests->num && gather_one(b, requests->wqes[n], &b->data[n]))
		n++;
	err = cut(b, n) ? soft_pieces_move(b->m, SOFT_AT_REQUESTER, &b->from, b->m->buffer, false) : SOFT_COPY_BAD;
	soft_pieces_put(&b->from);
	return err;
}

/* ---- at the peer, with its lock held, and claimed ---------------------------------------------------------------- */

/* The receive behind `sends` others. */
static bool get_receive(struct burst *b, uint32_t length, unsigned int sends, struct soft_seg *seg)
{
	const struct soft_recv_wqe *recv = soft_rq_peek(&b->peer->rq, sends);

	if (!recv || recv->num_sge != 1 || length > recv->sge[0].length)
		return false;
	return !length || !soft_seg_get(b->peer->qp.pd, recv->sge[0].lkey, recv->sge[0].addr, recv->sge[0].length,
					IBV_ACCESS_LOCAL_WRITE, seg);
}

static bool get_target(struct burst *b, const struct soft_send_wqe *wqe, struct soft_seg *seg)
{
	if (!(b->peer->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE))
		return false;
	return !wqe->length || !soft_target_get(b->peer, wqe->rkey, wqe->remote_addr, wqe->length, IBV_ACCESS_REMOTE_WRITE, seg);
}

static bool scatter_one(struct burst *b, const struct soft_send_wqe *wqe, const uint8_t *data, unsigned int sends)
{
	struct soft_seg seg;
	uint32_t at;

	if (is_send(wqe) ? !get_receive(b, wqe->length, sends, &seg) : !get_target(b, wqe, &seg))
		return false;
	if (!wqe->length)
		return true;
	if (!soft_pieces_add(&b->to, &seg, wqe->length, &at))
		return false;
	memcpy(b->m->buffer + BURST_BYTES + at, data, wqe->length);
	return true;
}

/* How many requests the peer takes as they are. */
static unsigned int aim(struct burst *b)
{
	struct soft_burst *requests = b->requests;
	unsigned int n = 0, sends = 0;

	/* The receive of a message that broke off comes before those in the queue. */
	if (b->peer->r_taken || !soft_rc_admits(b->peer, &requests->req))
		return 0;
	for (; n < requests->num && scatter_one(b, requests->wqes[n], b->data[n], sends); n++)
		sends += is_send(requests->wqes[n]);
	return n;
}

static void conclude_one(struct burst *b, struct soft_request *req)
{
	struct soft_qp *peer = b->peer;
	struct ibv_wc wc;

	peer->r_psn = (peer->r_psn + req->packets) & 0xffffff;
	if (is_send(req->wqe)) {
		soft_recv_take(peer, &b->due);
		wc = soft_recv_wc(peer, req->wqe, req->wqe->length);
		soft_recv_complete(peer, &wc, req->wqe->send_flags & IBV_SEND_SOLICITED, &b->due);
	}
	soft_count_arrival(peer, req);
}

static void conclude(struct burst *b)
{
	struct soft_burst *requests = b->requests;
	struct soft_request req = requests->req;

	for (unsigned int n = 0; n < requests->num; n++) {
		req.wqe = requests->wqes[n];
		req.packets = soft_packets(requests->mtu, req.wqe->length);
		conclude_one(b, &req);
	}
}

/* Called with the lock held, which is given up meanwhile, and is not held afterwards if the peer was taken away. */
static enum soft_copy_error respond(struct burst *b)
{
	struct soft_qp *peer = b->peer;
	enum soft_copy_error err;

	if (!cut(b, aim(b)))
		return SOFT_COPY_BAD;
	soft_recv_established(peer, &b->due);
	/* If this fails, it fails as the first request: its receive tells the owner. */
	if (is_send(b->requests->wqes[0]))
		soft_recv_take(peer, &b->due);
	pthread_mutex_unlock(&peer->lock);
	soft_due_run(&b->due);
	err = soft_pieces_move(b->m, SOFT_AT_RESPONDER, &b->to, b->m->buffer + BURST_BYTES, true);
	soft_pieces_put(&b->to);
	if (b->m->responder.qp)
		pthread_mutex_lock(&peer->lock);
	if (err || soft_gone(peer))
		return err ? err : SOFT_COPY_CUT;
	conclude(b);
	return SOFT_COPY_OK;
}

static enum soft_copy_error at_peer(struct burst *b)
{
	const struct soft_request *req = &b->requests->req;
	enum soft_copy_error err;

	b->peer = soft_claim(b->m, req->qp->dev->ibdev->fabric, req->dest_qpn);
	if (!b->peer)
		return b->m->requester.qp ? SOFT_COPY_CUT : SOFT_COPY_LOST;
	err = respond(b);
	soft_pieces_put(&b->to);
	if (!b->m->responder.qp)
		return SOFT_COPY_LOST;
	soft_unclaim(b->m, &b->due);
	return err;
}

bool soft_rc_burst(struct soft_mover *m, struct soft_burst *requests)
{
	struct burst b = { .m = m, .requests = requests };
	enum soft_copy_error err = gather(&b);

	if (!err)
		err = at_peer(&b);
	if (err)
		requests->num = 0;
	return err != SOFT_COPY_LOST;
}
