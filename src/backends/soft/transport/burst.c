/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Carries out requests of one kind at the head of an RC queue together: claims the peer once (for READs twice), reads
 * the data of all by one access, and writes it by one. The first request that is not plain (another operation, no
 * receive, an invalid key, an error) ends the burst. It is left to rc.c, as are those behind it.
 */
#include <string.h>
#include "backends/soft/transport/transport.h"

enum {
	SMALL_MOST = 4095, /* bytes of a small request, at most */
	SMALL_BYTES = SOFT_CHUNK / 2, /* of a small burst: half of the mover's buffer for reading, half for writing */
};

/*
 * SMALL: sends and writes of up to SMALL_MOST bytes. Neighbours in memory become one piece, as each piece costs time.
 * The layouts of source and target can differ then, so the bytes are copied once more within the buffer.
 * LARGE: sends and writes of more bytes. Each byte goes through the buffer once.
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

static bool burst_is_send(const struct soft_send_wqe *wqe)
{
	return wqe->opcode == IBV_WR_SEND || wqe->opcode == IBV_WR_SEND_WITH_IMM;
}

static enum kind kind_of(const struct soft_send_wqe *wqe)
{
	if (wqe->refusal || wqe->num_sge > 1)
		return NOT_PLAIN;
	if (!burst_is_send(wqe) && wqe->opcode != IBV_WR_RDMA_WRITE && wqe->opcode != IBV_WR_RDMA_READ)
		return NOT_PLAIN;
	if (wqe->opcode != IBV_WR_RDMA_READ && wqe->length <= SMALL_MOST)
		return SMALL;
	/* LARGE is gathered from client memory alone. A READ cannot return data to its own work request. */
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
	/* In SQD only a request that has been tried already may go on. */
	if (kind == NOT_PLAIN || qp->qp.qp_type != IBV_QPT_RC || qp->state != IBV_QPS_RTS)
		return;
	/* Only those that are carried out alone are captured, and shown to filters. */
	if (qp->dev->fabric->capture || soft_is_filtered(qp))
		return;
	while (burst->num < SOFT_BURST) {
		struct soft_send_wqe *wqe = soft_sq_peek(qp, burst->num);

		if (!wqe || kind_of(wqe) != kind || wqe->length > most - bytes)
			break;
		bytes += wqe->length;
		burst->wqes[burst->num++] = wqe;
	}
}

/* Shortens the burst to num requests. Returns false if fewer than two are left: rc.c carries out a single one. */
static bool burst_cut(struct burst *b, unsigned int num)
{
	b->requests->num = num;
	return num > 1;
}

/* ---- the requester's memory -------------------------------------------------------------------------------------- */

/*
 * Adds the request's own memory to the pieces. access: rights that the key must grant. *at: offset of the request's
 * bytes among those of all pieces; not set if the request has none.
 */
static bool add_local(struct burst *b, struct soft_pieces *pieces, const struct soft_send_wqe *wqe, unsigned int access,
		      uint32_t *at)
{
	struct soft_seg seg;

	return !wqe->length || (!soft_seg_get(b->requests->req.qp->qp.pd, wqe->sge[0].lkey, wqe->sge[0].addr,
					      wqe->length, access, &seg) &&
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

static enum soft_copy_error burst_gather(struct burst *b)
{
	struct soft_burst *requests = b->requests;
	enum soft_copy_error err;
	unsigned int n = 0;

	while (n < requests->num && gather_one(b, requests->wqes[n], &b->data[n]))
		n++;
	err = burst_cut(b, n) ? soft_pieces_move(b->m, SOFT_AT_REQUESTER, &b->from, b->m->buffer, false)
			      : SOFT_COPY_BAD;
	soft_pieces_put(&b->from);
	return err;
}

/* ---- at the peer, with its lock held, and claimed ---------------------------------------------------------------- */

/* Finds the memory of the receive behind `sends` others. False: it is not plain, or too short. Length 0 sets no seg. */
static bool get_receive(struct burst *b, uint32_t length, unsigned int sends, struct soft_seg *seg)
{
	const struct soft_recv_wqe *recv = soft_rq_peek(&b->peer->rq, sends);

	if (!recv || recv->num_sge != 1 || length > recv->sge[0].length)
		return false;
	if (!length)
		return soft_list_ok(&(struct soft_list){ b->peer->qp.pd, recv->sge, 1, IBV_ACCESS_LOCAL_WRITE });
	return !soft_seg_get(b->peer->qp.pd, recv->sge[0].lkey, recv->sge[0].addr, recv->sge[0].length,
			     IBV_ACCESS_LOCAL_WRITE, seg);
}

/* access: rights that both the QP and the key must grant. Length 0 sets no seg. */
static bool burst_get_target(struct burst *b, const struct soft_send_wqe *wqe, unsigned int access,
			     struct soft_seg *seg)
{
	if (!(b->peer->attr.qp_access_flags & access))
		return false;
	return !wqe->length || !soft_target_get(b->peer, wqe->rkey, wqe->remote_addr, wqe->length, access, seg);
}

static bool scatter_one(struct burst *b, const struct soft_send_wqe *wqe, const uint8_t *data, unsigned int sends)
{
	struct soft_seg seg;
	uint32_t at;

	if (burst_is_send(wqe) ? !get_receive(b, wqe->length, sends, &seg)
			       : !burst_get_target(b, wqe, IBV_ACCESS_REMOTE_WRITE, &seg))
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

	return burst_get_target(b, wqe, IBV_ACCESS_REMOTE_READ, &seg) &&
	       (!wqe->length || soft_pieces_add(&b->from, &seg, wqe->length, &at));
}

/* Does the peer expect the first request now? */
static bool is_admitted(const struct burst *b)
{
	/* A message that was cut off has left its receive, which comes before those in the queue. */
	return !b->peer->r_taken && soft_rc_admits(b->peer, &b->requests->req.arrival);
}

/* Collects the pieces of the peer's memory. Returns the number of requests at the head that the peer accepts. */
static unsigned int burst_aim(struct burst *b)
{
	struct soft_burst *requests = b->requests;
	unsigned int n = 0, sends = 0;

	if (!is_admitted(b) || (b->kind == READS && !b->peer->attr.max_dest_rd_atomic))
		return 0;
	for (; n < requests->num; n++) {
		const struct soft_send_wqe *wqe = requests->wqes[n];

		if (!soft_packets_fit(b->peer, requests->req.arrival.mtu, wqe->length))
			break;
		if (b->kind == READS ? !aim_read(b, wqe) : !scatter_one(b, wqe, b->data[n], sends))
			break;
		sends += burst_is_send(wqe);
	}
	return n;
}

static void conclude_one(struct burst *b, const struct soft_arrival *arrival)
{
	struct soft_qp *peer = b->peer;
	struct ibv_wc wc;

	peer->r_psn = (peer->r_psn + arrival->packets) & 0xffffff;
	if (soft_op_is_send(arrival->opcode)) {
		soft_recv_take(peer, &b->due);
		wc = soft_recv_wc(peer, arrival, arrival->length);
		soft_recv_complete(peer, &wc, arrival->is_solicited, &b->due);
	}
	soft_count_arrival(peer, arrival);
}

static void burst_count(const struct burst *b)
{
	const struct soft_burst *requests = b->requests;
	struct soft_traffic t = { .is_fetched = b->kind == READS };

	for (unsigned int n = 0; n < requests->num; n++) {
		const struct soft_send_wqe *wqe = requests->wqes[n];

		soft_traffic_add(&t, wqe->length, soft_packets(requests->req.arrival.mtu, wqe->length));
		t.sends += burst_is_send(wqe);
	}
	t.receives = t.sends;
	t.requests = requests->num;
	soft_count_out(b->m, &requests->req, &t);
	soft_count_in(b->m, b->peer, &t);
}

static void burst_conclude(struct burst *b)
{
	struct soft_burst *requests = b->requests;
	struct soft_arrival arrival = requests->req.arrival;

	burst_count(b);
	if (b->kind != READS)
		soft_send_arrived(requests->req.qp);
	for (unsigned int n = 0; n < requests->num; n++) {
		soft_arrival_set(&arrival, requests->wqes[n]);
		conclude_one(b, &arrival);
	}
}

/* Moves the data with the peer's lock released. Takes it again, unless the peer was taken from the mover. */
static enum soft_copy_error burst_move(struct burst *b)
{
	const bool read = b->kind == READS;
	struct soft_pieces *pieces = read ? &b->from : &b->to;
	enum soft_copy_error err;

	pthread_mutex_unlock(&b->peer->lock);
	soft_due_run(&b->due);
	err = soft_pieces_move(b->m, SOFT_AT_RESPONDER, pieces, b->m->buffer + (b->kind == SMALL ? SMALL_BYTES : 0),
			       !read);
	soft_pieces_put(pieces);
	if (b->m->responder.qp)
		pthread_mutex_lock(&b->peer->lock);
	return err;
}

static enum soft_copy_error burst_respond(struct burst *b)
{
	enum soft_copy_error err;

	if (!burst_cut(b, burst_aim(b)))
		return SOFT_COPY_BAD;
	soft_recv_established(b->peer, &b->due);
	/* Take the first receive now: it reports the error to the peer's owner if this transfer is given up. */
	if (burst_is_send(b->requests->wqes[0]))
		soft_recv_take(b->peer, &b->due);
	err = burst_move(b);
	if (err || soft_gone(b->peer))
		return err ? err : SOFT_COPY_CUT;
	if (b->kind != READS)
		burst_conclude(b);
	return SOFT_COPY_OK;
}

/*
 * A READ changes nothing at the peer, so the peer's PSN advances only after the bytes have arrived. The peer may have
 * been reset meanwhile, so this checks it again.
 */
static enum soft_copy_error conclude_reads(struct burst *b)
{
	if (!is_admitted(b))
		return SOFT_COPY_CUT;
	burst_conclude(b);
	return SOFT_COPY_OK;
}

static enum soft_copy_error burst_at_peer(struct burst *b, enum soft_copy_error (*step)(struct burst *b))
{
	const struct soft_request *req = &b->requests->req;
	enum soft_copy_error err;

	b->peer = soft_claim(b->m, req->qp->dev->fabric, req->dest_qpn);
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

/* ---- the whole burst --------------------------------------------------------------------------------------------- */

static enum soft_copy_error scatter_reads(struct burst *b)
{
	struct soft_burst *requests = b->requests;
	enum soft_copy_error err;
	unsigned int n = 0;
	uint32_t at;

	while (n < requests->num && add_local(b, &b->to, requests->wqes[n], IBV_ACCESS_LOCAL_WRITE, &at))
		n++;
	err = burst_cut(b, n) ? soft_pieces_move(b->m, SOFT_AT_REQUESTER, &b->to, b->m->buffer, true) : SOFT_COPY_BAD;
	soft_pieces_put(&b->to);
	return err;
}

static enum soft_copy_error carry_out_reads(struct burst *b)
{
	enum soft_copy_error err = burst_at_peer(b, burst_respond);

	if (!err)
		err = scatter_reads(b);
	return err ? err : burst_at_peer(b, conclude_reads);
}

static enum soft_copy_error burst_carry_out(struct burst *b)
{
	enum soft_copy_error err = burst_gather(b);

	return err ? err : burst_at_peer(b, burst_respond);
}

bool soft_rc_burst(struct soft_mover *m, struct soft_burst *requests)
{
	struct burst b = { .m = m, .requests = requests, .kind = kind_of(requests->wqes[0]) };
	enum soft_copy_error err;

	b.from.apart = b.to.apart = b.kind != SMALL;
	err = b.kind == READS ? carry_out_reads(&b) : burst_carry_out(&b);
	if (err)
		requests->num = 0;
	return err != SOFT_COPY_LOST;
}
