/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Datagrams in one engine, UD messages and raw frames: the sender, and the local network. A datagram is gathered whole, then delivered to
 * each receiver. If a mover is stuck in a receiver's memory, the datagram is dropped there. The sender is not told.
 */
#include <string.h>
#include "backends/soft/transport/transport.h"

enum { MOST_RECEIVERS = 16 };

struct message {
	struct soft_mover *m;
	struct soft_request *req;
	struct soft_inbound in; /* the datagram at a receiver */
};

static bool is_to_many(const struct soft_arrival *arrival)
{
	return arrival->is_multicast || arrival->qp_type == IBV_QPT_RAW_PACKET;
}

static struct message dgram_message(struct soft_mover *m, struct soft_request *req)
{
	return (struct message){
		.m = m,
		.req = req,
		.in = { .m = m, .arrival = &req->arrival, .length = req->arrival.length, .is_last = true },
	};
}

/* Returns the payload's place in the buffer, behind the room for a GRH. */
static uint8_t *dgram_payload(struct message *msg)
{
	return msg->m->buffer + SOFT_GRH_BYTES;
}

struct soft_outcome soft_datagram_gather(struct soft_mover *m, struct soft_request *req)
{
	struct soft_send_wqe *wqe = req->wqe;
	struct soft_list list = { req->qp->qp.pd, wqe->sge, wqe->num_sge, 0 };
	uint8_t *payload = m->buffer + SOFT_GRH_BYTES;
	enum soft_copy_error err;

	if (wqe->is_inline) {
		memcpy(payload, wqe->data, wqe->length);
		return soft_sent;
	}
	if (!soft_list_ok(&list))
		return soft_bad_memory;
	err = soft_list_move(m, SOFT_AT_REQUESTER, &list, 0, payload, wqe->length, false);
	return !err ? soft_sent : err == SOFT_COPY_LOST ? soft_lost : soft_bad_memory;
}

static void dgram_count_out(struct message *msg)
{
	const struct soft_traffic t = soft_inbound_traffic(&msg->in);

	if (!uvd_config_port_down(msg->req->arrival.port))
		soft_count_out(msg->m, msg->req, &t);
}

/* If the requester is taken from the mover meanwhile, its request has completed. */
static void deliver_to(struct message *msg, uint32_t qpn)
{
	struct uvd_fabric *fabric = msg->req->qp->dev->fabric;
	struct soft_inbound *in = &msg->in;
	struct soft_mover *m = msg->m;
	bool arrived;

	in->qp = soft_claim(m, fabric, qpn);
	if (!in->qp) {
		/* A datagram to many receivers finds no QP if one of them ends before it gets it. */
		if (m->requester.qp && !is_to_many(in->arrival) && !soft_fabric_has_qp(fabric, qpn))
			soft_explain_nowhere(m, qpn);
		return;
	}
	arrived = soft_datagram_take(in);
	if (!m->responder.qp)
		return;
	if (arrived) {
		if (m->requester.qp && !is_to_many(in->arrival))
			soft_send_arrived(msg->req->qp);
		soft_datagram_complete(in);
	}
	soft_unclaim(m, &in->due);
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
	return soft_mcast_members(qp->dev->fabric, &msg->req->arrival.ah, last, qpns, MOST_RECEIVERS);
}

/* Delivers to all receivers but the sender. */
static void deliver_to_many(struct message *msg)
{
	const uint32_t own = msg->req->arrival.src_qpn;
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
		return soft_hold(msg->m, msg->req, SOFT_GRH_BYTES + msg->req->arrival.length);
	return msg->req->fate == UVD_FATE_LOSE;
}

struct soft_outcome soft_datagram_deliver(struct soft_mover *m, struct soft_request *req)
{
	struct message msg = dgram_message(m, req);

	m->may_drop = true;
	if (is_to_many(&req->arrival))
		deliver_to_many(&msg);
	else
		deliver_to(&msg, req->dest_qpn);
	m->may_drop = false;
	return m->requester.qp ? soft_sent : soft_lost;
}

struct soft_outcome soft_datagram_send(struct soft_mover *m, struct soft_request *req)
{
	struct message msg = dgram_message(m, req);
	struct soft_outcome outcome = soft_datagram_gather(m, req);

	if (!soft_is_sent(outcome))
		return outcome;
	/* The first bit on the wire of an Ethernet address says that it is a group's. */
	if (req->arrival.qp_type == IBV_QPT_RAW_PACKET)
		req->arrival.is_multicast = dgram_payload(&msg)[0] & 1;
	if (req->arrival.ah.is_global)
		soft_make_grh(m->buffer, &req->arrival);
	dgram_count_out(&msg);
	if (soft_is_captured(req) && !uvd_config_port_down(req->arrival.port))
		soft_capture_request(req, 0, dgram_payload(&msg), req->arrival.length);
	return dgram_is_diverted(&msg) ? soft_sent : soft_datagram_deliver(m, req);
}
