/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Requests of one kind at the head of an RC queue, carried out together: the peer is claimed once, and the data of all is read by one
 * access and written by one. A request that is not plain (another operation, no receive, a wrong key, an error) is left to rc.c, as are
 * those behind it.
 */
#include <string.h>
#include "backends/soft/transport/transport.h"

enum {
	SMALL_MOST = 4095, /* bytes of a small request */
	SMALL_BYTES = SOFT_CHUNK / 2, /* of a burst: half of the mover's buffer for what is read, half for what is written */
};

/*
 * SMALL: sends and writes. Neighbours in memory become one piece, which costs less than a piece each, so bytes are copied once more in
 * the buffer.
 * LARGE: the same operations; each byte goes through the buffer once.
 * READS: RDMA READs of any size.
 */
enum kind { SMALL, LARGE, READS, NOT_PLAIN };

struct burst {
	struct soft_mover *m;
	struct soft_burst *requests;
	enum kind kind;
	struct soft_qp *peer; /* claimed */
	struct soft_due due; /* the peer's */
	struct soft_pieces from, to;
	const uint8_t *data[SOFT_BURST]; /* of each request; not of READS */
};

static bool is_send(const struct soft_send_wqe *wqe)
{
	return wqe->opcode == IBV_WR_SEND || wqe->opcode == IBV_WR_SEND_WITH_IMM;
}

static enum kind kind_of(const struct soft_send_wqe *wqe)
{
	if (wqe->is_refused || wqe->num_sge > 1)
		return NOT_PLAIN;
	if (!is_send(wqe) && wqe->opcode != IBV_WR_RDMA_WRITE && wqe->opcode != IBV_WR_RDMA_READ)
		return NOT_PLAIN;
	if (wqe->opcode != IBV_WR_RDMA_READ && wqe->length <= SMALL_MOST)
		return SMALL;
	/* Bytes of the queue itself are not moved from a client's memory, and a READ cannot bring any there. */
	if (wqe->is_inline)
		return NOT_PLAIN;
	return wqe->opcode == IBV_WR_RDMA_READ ? READS : LARGE;
}

void soft_burst_collect(struct soft_qp *qp, struct soft_burst *burst)
{
	const struct soft_send_wqe *first = soft_sq_peek(qp, 0);
	const enum kind kind = kind_of(first);
	const uint32_t most = kind == SMALL ? SMALL_BYTES : SOFT_CHUNK;
	uint32_t bytes = 0;

	burst->num = 0;
	/* SQD ends the one that has begun, and no other. */
	if (kind == NOT_PLAIN || qp->qp.qp_type != IBV_QPT_RC || qp->state != IBV_QPS_RTS)
		return;
	while (burst->num < SOFT_BURST) {
		struct soft_send_wqe *wqe = soft_sq_peek(qp, burst->num);

		if (!wqe || kind_of(wqe) != kind || wqe->length > most - bytes)
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

/* access: that the key must give. *at: where the bytes are among all; not set where there are none. */
static bool add_local(struct burst *b, struct soft_pieces *pieces, const struct soft_send_wqe *wqe, unsigned int access, uint32_t *at)
{
	struct soft_seg seg;

	return !wqe->length || (!soft_seg_get(b->requests->req.qp->qp.pd, wqe->sge[0].lkey, wqe->sge[0].addr, wqe->length, access, &seg) &&
				soft_pieces_add(pieces, &seg, wqe->length, at));
}

static bool gather_one(struct burst *b, const struct soft_send_wqe *wqe, const uint8_t **data)
{
	uint32_t at = 0;

	*data = wqe->data;
	if (wqe->is_inline)
		return true;
	if (!add_local(b, &b->from, wqe, 0, &at))
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

/* access: that the QP and the key must give. */
static bool get_target(struct burst *b, const struct soft_send_wqe *wqe, unsigned int access, struct soft_seg *seg)
{
	if (!(b->peer->attr.qp_access_flags & access))
		return false;
	return !wqe->length || !soft_target_get(b->peer, wqe->rkey, wqe->remote_addr, wqe->length, access, seg);
}

static bool scatter_one(struct burst *b, const struct soft_send_wqe *wqe, const uint8_t *data, unsigned int sends)
{
	struct soft_seg seg;
	uint32_t at;

	if (is_send(wqe) ? !get_receive(b, wqe->length, sends, &seg) : !get_target(b, wqe, IBV_ACCESS_REMOTE_WRITE, &seg))
		return false;
	if (!wqe->length)
		return true;
	if (!soft_pieces_add(&b->to, &seg, wqe->length, &at))
		return false;
	if (b->kind == SMALL)
		memcpy(b->m->buffer + SMALL_BYTES + at, data, wqe->length);
	return true;
}

static bool aim_read(struct burst *b, const struct soft_send_wqe *wqe)
{
	struct soft_seg seg;
	uint32_t at;

	return get_target(b, wqe, IBV_ACCESS_REMOTE_READ, &seg) && (!wqe->length || soft_pieces_add(&b->from, &seg, wqe->length, &at));
}

/* Does the peer expect the first request, now? */
static bool is_admitted(const struct burst *b)
{
	/* The receive of a message that broke off comes before those in the queue. */
	return !b->peer->r_taken && soft_rc_admits(b->peer, &b->requests->req);
}

/* How many requests the peer takes as they are. */
static unsigned int aim(struct burst *b)
{
	struct soft_burst *requests = b->requests;
	unsigned int n = 0, sends = 0;

	if (!is_admitted(b) || (b->kind == READS && !b->peer->attr.max_dest_rd_atomic))
		return 0;
	for (; n < requests->num; n++) {
		const struct soft_send_wqe *wqe = requests->wqes[n];

		if (b->kind == READS ? !aim_read(b, wqe) : !scatter_one(b, wqe, b->data[n], sends))
			break;
		sends += is_send(wqe);
	}
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

/* Moves the data in or out, with the lock given up meanwhile. It is not held afterwards if the peer was taken away. */
static enum soft_copy_error move(struct burst *b)
{
	const bool read = b->kind == READS;
	struct soft_pieces *pieces = read ? &b->from : &b->to;
	enum soft_copy_error err;

	pthread_mutex_unlock(&b->peer->lock);
	soft_due_run(&b->due);
	err = soft_pieces_move(b->m, SOFT_AT_RESPONDER, pieces, b->m->buffer + (b->kind == SMALL ? SMALL_BYTES : 0), !read);
	soft_pieces_put(pieces);
	if (b->m->responder.qp)
		pthread_mutex_lock(&b->peer->lock);
	return err;
}

static enum soft_copy_error respond(struct burst *b)
{
	enum soft_copy_error err;

	if (!cut(b, aim(b)))
		return SOFT_COPY_BAD;
	soft_recv_established(b->peer, &b->due);
	/* If this fails, it fails as the first request: its receive tells the owner. */
	if (is_send(b->requests->wqes[0]))
		soft_recv_take(b->peer, &b->due);
	err = move(b);
	if (err || soft_gone(b->peer))
		return err ? err : SOFT_COPY_CUT;
	if (b->kind != READS)
		conclude(b);
	return SOFT_COPY_OK;
}

/* A READ changes nothing at the peer, so its PSN advances only when the bytes have arrived. Until then the peer may have been reset. */
static enum soft_copy_error conclude_reads(struct burst *b)
{
	if (!is_admitted(b))
		return SOFT_COPY_CUT;
	conclude(b);
	return SOFT_COPY_OK;
}

static enum soft_copy_error at_peer(struct burst *b, enum soft_copy_error (*step)(struct burst *b))
{
	const struct soft_request *req = &b->requests->req;
	enum soft_copy_error err;

	b->peer = soft_claim(b->m, req->qp->dev->ibdev->fabric, req->dest_qpn);
	if (!b->peer)
		return b->m->requester.qp ? SOFT_COPY_CUT : SOFT_COPY_LOST;
	err = step(b);
	soft_pieces_put(&b->from);
	soft_pieces_put(&b->to);
	if (!b->m->responder.qp)
		return SOFT_COPY_LOST;
	soft_unclaim(b->m, &b->due);
	return err;
}

/* ---- all of it ---------------------------------------------------------------------------------------------------- */

static enum soft_copy_error scatter_reads(struct burst *b)
{
	struct soft_burst *requests = b->requests;
	enum soft_copy_error err;
	unsigned int n = 0;
	uint32_t at;

	while (n < requests->num && add_local(b, &b->to, requests->wqes[n], IBV_ACCESS_LOCAL_WRITE, &at))
		n++;
	err = cut(b, n) ? soft_pieces_move(b->m, SOFT_AT_REQUESTER, &b->to, b->m->buffer, true) : SOFT_COPY_BAD;
	soft_pieces_put(&b->to);
	return err;
}

static enum soft_copy_error carry_out_reads(struct burst *b)
{
	enum soft_copy_error err = at_peer(b, respond);

	if (!err)
		err = scatter_reads(b);
	return err ? err : at_peer(b, conclude_reads);
}

static enum soft_copy_error carry_out(struct burst *b)
{
	enum soft_copy_error err = gather(b);

	return err ? err : at_peer(b, respond);
}

bool soft_rc_burst(struct soft_mover *m, struct soft_burst *requests)
{
	struct burst b = { .m = m, .requests = requests, .kind = kind_of(requests->wqes[0]) };
	enum soft_copy_error err;

	b.from.apart = b.to.apart = b.kind != SMALL;
	err = b.kind == READS ? carry_out_reads(&b) : carry_out(&b);
	if (err)
		requests->num = 0;
	return err != SOFT_COPY_LOST;
}
