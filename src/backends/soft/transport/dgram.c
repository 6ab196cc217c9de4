/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Datagrams: UD messages and raw frames. A datagram is gathered whole, then delivered to each receiver. If a receiver
 * cannot take it, or a mover is stuck in its memory, the datagram is dropped there. The sender is not told.
 */
#include <string.h>
#include "backends/soft/transport/transport.h"

enum { GRH_BYTES = SOFT_GRH_BYTES, MOST_RECEIVERS = 16 };

struct message {
	struct soft_mover *m;
	struct soft_request *req;
	struct soft_send_wqe *wqe;
	struct soft_qp *peer; /* claimed */
	struct soft_due due; /* the peer's */
};

static bool is_to_many(const struct soft_request *req)
{
	return req->is_multicast || req->qp_type == IBV_QPT_RAW_PACKET;
}

/* Returns the payload's place in the buffer, behind the room for a GRH. */
static uint8_t *dgram_payload(struct message *msg)
{
	return msg->m->buffer + GRH_BYTES;
}

static struct soft_outcome dgram_gather(struct message *msg)
{
	struct soft_send_wqe *wqe = msg->wqe;
	struct soft_list list = { msg->req->qp->qp.pd, wqe->sge, wqe->num_sge, 0 };
	enum soft_copy_error err;

	if (wqe->is_inline) {
		memcpy(dgram_payload(msg), wqe->data, wqe->length);
		return soft_sent;
	}
	if (!soft_list_ok(&list))
		return soft_bad_memory;
	err = soft_list_move(msg->m, SOFT_AT_REQUESTER, &list, 0, dgram_payload(msg), wqe->length, false);
	return !err ? soft_sent : err == SOFT_COPY_LOST ? soft_lost : soft_bad_memory;
}

/* ---- counters ---------------------------------------------------------------------------------------------------- */

/* Is the datagram addressed to a group? The first bit on the wire of an Ethernet address says so. */
static bool dgram_is_multicast(struct message *msg)
{
	if (msg->req->qp_type == IBV_QPT_RAW_PACKET)
		return dgram_payload(msg)[0] & 1;
	return msg->req->is_multicast;
}

/* length: of the payload, which is one packet. */
static struct soft_traffic dgram_traffic(struct message *msg, uint32_t length)
{
	struct soft_traffic t = { .sends = 1, .receives = 1, .is_multicast = dgram_is_multicast(msg) };

	soft_traffic_add(&t, length, 1);
	return t;
}

static void dgram_count_out(struct message *msg)
{
	const struct soft_traffic t = dgram_traffic(msg, msg->wqe->length);

	if (!uvd_config_port_down(msg->req->port))
		soft_count_out(msg->m, msg->req, &t);
}

static void dgram_count_in(struct message *msg, uint32_t length)
{
	const struct soft_traffic t = dgram_traffic(msg, length);

	soft_count_in(msg->m, msg->peer, &t);
}

/* ---- one receiver ------------------------------------------------------------------------------------------------ */

/*
 * Writes `length` bytes to the receive, from its `offset` on, with the peer's lock released, and completes the receive.
 * Takes the lock again, unless the peer was taken from the mover. If the requester was taken, its request has completed.
 */
static void dgram_fill(struct message *msg, uint32_t offset, uint8_t *bytes, uint32_t length, struct ibv_wc *wc)
{
	const bool solicited = msg->wqe->send_flags & IBV_SEND_SOLICITED;
	const uint32_t payload = msg->wqe->length;
	struct soft_list list = soft_recv_list(msg->peer);
	enum soft_copy_error err;

	pthread_mutex_unlock(&msg->peer->lock);
	soft_due_run(&msg->due);
	err = soft_list_move(msg->m, SOFT_AT_RESPONDER, &list, offset, bytes, length, true);
	if (!msg->m->responder.qp)
		return;
	pthread_mutex_lock(&msg->peer->lock);
	if (err || soft_gone(msg->peer))
		return;
	if (msg->m->requester.qp && !is_to_many(msg->req))
		soft_send_arrived(msg->req->qp);
	dgram_count_in(msg, payload);
	soft_recv_complete(msg->peer, wc, solicited, &msg->due);
	if (msg->m->requester.qp && msg->peer->qp.qp_type == IBV_QPT_UD)
		soft_count_arrival(msg->peer, msg->req);
}

static struct ibv_wc ud_wc(struct message *msg)
{
	struct soft_request *req = msg->req;
	struct ibv_wc wc = soft_recv_wc(msg->peer, msg->wqe, msg->wqe->length + GRH_BYTES);

	wc.src_qp = req->qp->qp.qp_num;
	wc.slid = req->port->lid | req->ah.src_path_bits;
	wc.sl = req->port->link_layer == IBV_LINK_LAYER_ETHERNET ? soft_packet_type(req) : req->ah.sl;
	if (!req->is_multicast)
		wc.dlid_path_bits = req->ah.dlid - soft_qp_port(msg->peer)->lid;
	if (req->ah.is_global)
		wc.wc_flags |= IBV_WC_GRH;
	return wc;
}

/*
 * Caller has claimed the peer and holds its lock, here and in raw_deliver(). They return without it if dgram_fill()
 * does.
 */
static void ud_deliver(struct message *msg)
{
	const uint32_t length = msg->wqe->length;
	struct ibv_wc wc;

	if (!soft_recv_admits(msg->peer, msg->req) ||
	    !soft_recv_take_for(msg->peer, length + GRH_BYTES, true, &msg->due))
		return;
	wc = ud_wc(msg);
	if (msg->req->ah.is_global)
		dgram_fill(msg, 0, msg->m->buffer, GRH_BYTES + length, &wc);
	else /* the first 40 bytes of the receive stay what they were */
		dgram_fill(msg, GRH_BYTES, dgram_payload(msg), length, &wc);
}

/* Every other RAW_PACKET QP of the sender's port receives the frame. */
static void raw_deliver(struct message *msg)
{
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS, .opcode = IBV_WC_RECV, .byte_len = msg->wqe->length };
	struct soft_qp *peer = msg->peer;

	if (!soft_can_receive(peer->state) || soft_qp_port(peer) != msg->req->port ||
	    uvd_config_port_down(msg->req->port) || !soft_recv_take_for(peer, msg->wqe->length, true, &msg->due))
		return;
	dgram_fill(msg, 0, dgram_payload(msg), msg->wqe->length, &wc);
}

static void deliver_to(struct message *msg, uint32_t qpn)
{
	msg->peer = soft_claim(msg->m, msg->req->qp->dev->fabric, qpn);
	if (!msg->peer)
		return;
	if (msg->peer->qp.qp_type == IBV_QPT_RAW_PACKET && msg->req->qp->qp.qp_type == IBV_QPT_RAW_PACKET)
		raw_deliver(msg);
	else
		ud_deliver(msg);
	if (msg->m->responder.qp)
		soft_unclaim(msg->m, &msg->due);
}

/* ---- all receivers ----------------------------------------------------------------------------------------------- */

/*
 * Lists the receivers of a datagram to many, as soft_mcast_members() does: by number, so that destroying one of them
 * does not wait for the delivery to the others.
 */
static unsigned int dgram_receivers(struct message *msg, uint64_t *last, uint32_t *qpns)
{
	struct soft_qp *qp = msg->req->qp;

	if (qp->qp.qp_type == IBV_QPT_RAW_PACKET)
		return soft_raw_members(&qp->dev->endpoints->raw, last, qpns, MOST_RECEIVERS);
	return soft_mcast_members(qp->dev->fabric, &msg->req->ah, last, qpns, MOST_RECEIVERS);
}

/* Delivers to all receivers but the sender. */
static void deliver_to_many(struct message *msg)
{
	const uint32_t own = msg->req->qp->qp.qp_num;
	uint32_t qpns[MOST_RECEIVERS];
	uint64_t last = 0;
	unsigned int n;

	do {
		n = dgram_receivers(msg, &last, qpns);
		for (unsigned int i = 0; i < n && msg->m->requester.qp; i++)
			if (qpns[i] != own)
				deliver_to(msg, qpns[i]);
	} while (n == MOST_RECEIVERS && msg->m->requester.qp);
}

/* Does the network lose the datagram, or hold it back? */
static bool dgram_is_diverted(struct message *msg)
{
	if (msg->req->fate == UVD_FATE_HOLD)
		return soft_hold(msg->m, msg->req, GRH_BYTES + msg->wqe->length);
	return msg->req->fate == UVD_FATE_LOSE;
}

struct soft_outcome soft_datagram_deliver(struct soft_mover *m, struct soft_request *req)
{
	struct message msg = { .m = m, .req = req, .wqe = req->wqe };

	m->may_drop = true;
	if (is_to_many(req))
		deliver_to_many(&msg);
	else
		deliver_to(&msg, req->dest_qpn);
	m->may_drop = false;
	return m->requester.qp ? soft_sent : soft_lost;
}

struct soft_outcome soft_datagram_send(struct soft_mover *m, struct soft_request *req)
{
	struct message msg = { .m = m, .req = req, .wqe = req->wqe };
	struct soft_outcome outcome = dgram_gather(&msg);

	if (outcome.kind != SOFT_DONE || outcome.status != IBV_WC_SUCCESS)
		return outcome;
	if (req->ah.is_global)
		soft_make_grh(m->buffer, req);
	dgram_count_out(&msg);
	if (soft_is_captured(req) && !uvd_config_port_down(req->port))
		soft_capture_request(req, 0, dgram_payload(&msg), req->wqe->length);
	return dgram_is_diverted(&msg) ? soft_sent : soft_datagram_deliver(m, req);
}
