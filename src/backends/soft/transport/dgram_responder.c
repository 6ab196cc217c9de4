/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Datagrams: the receiver, and the traffic that the parts of an arrival are. If the receiver cannot take a datagram, it is dropped. All
 * functions expect the QP's lock, and the claim.
 */
#include "backends/soft/transport/transport.h"

static bool is_datagram(const struct soft_arrival *arrival)
{
	return arrival->qp_type == IBV_QPT_UD || arrival->qp_type == IBV_QPT_RAW_PACKET;
}

struct soft_traffic soft_inbound_traffic(const struct soft_inbound *in)
{
	const struct soft_arrival *a = in->arrival;
	struct soft_traffic t = {
		.is_multicast = a->is_multicast,
		.is_fetched = soft_op_brings_back(a->opcode),
		.requests = !in->offset && !in->is_from_wire,
		.sends = in->is_last && soft_op_is_send(a->opcode),
		.receives = in->is_last && soft_op_takes_receive(a->opcode),
	};

	if (!in->is_from_wire)
		soft_traffic_add(&t, in->length, is_datagram(a) ? 1 : soft_packets(a->mtu, in->length));
	return t;
}

static struct ibv_wc ud_wc(struct soft_inbound *in)
{
	const struct soft_arrival *a = in->arrival;
	struct ibv_wc wc = soft_recv_wc(in->qp, a, a->length + SOFT_GRH_BYTES);

	wc.src_qp = a->src_qpn;
	wc.slid = a->port ? a->port->lid | a->ah.src_path_bits : 0;
	wc.sl = !a->port || a->port->link_layer == IBV_LINK_LAYER_ETHERNET ? soft_packet_type(a) : a->ah.sl;
	if (!a->is_multicast)
		wc.dlid_path_bits = a->ah.dlid - soft_qp_port(in->qp)->lid;
	if (a->ah.is_global)
		wc.wc_flags |= IBV_WC_GRH;
	return wc;
}

static struct ibv_wc raw_wc(struct soft_inbound *in)
{
	return (struct ibv_wc){ .status = IBV_WC_SUCCESS, .opcode = IBV_WC_RECV, .byte_len = in->arrival->length };
}

static bool ud_admits(struct soft_inbound *in)
{
	if (soft_recv_admits(in->qp, in->arrival) &&
	    soft_recv_take_for(in->qp, in->arrival->length + SOFT_GRH_BYTES, true, &in->due))
		return true;
	soft_explain_message(in->qp, in->arrival, SOFT_DROP_LOOK, &in->due);
	return false;
}

/* Every RAW_PACKET QP of the sender's port receives the frame. */
static bool raw_admits(struct soft_inbound *in)
{
	const struct soft_arrival *a = in->arrival;
	struct soft_qp *qp = in->qp;

	return soft_can_receive(qp->state) && soft_qp_port(qp) == a->port && !uvd_config_port_down(a->port) &&
	       soft_recv_take_for(qp, a->length, true, &in->due);
}

/*
 * Writes `length` bytes to the receive, from its `offset` on, with the QP's lock released. Takes the lock again, unless the QP was taken
 * from the mover.
 */
static bool dgram_fill(struct soft_inbound *in, uint32_t offset, uint8_t *bytes, uint32_t length)
{
	struct soft_list list = soft_recv_list(in->qp);
	enum soft_copy_error err;

	pthread_mutex_unlock(&in->qp->lock);
	soft_due_run(&in->due);
	err = soft_list_move(in->m, SOFT_AT_RESPONDER, &list, offset, bytes, length, true);
	if (!in->m->responder.qp)
		return false;
	pthread_mutex_lock(&in->qp->lock);
	if (err == SOFT_COPY_BAD && !soft_gone(in->qp))
		soft_explain_message(in->qp, in->arrival, SOFT_DROP_MEMORY, &in->due);
	return !err && !soft_gone(in->qp);
}

bool soft_datagram_take(struct soft_inbound *in)
{
	const bool is_raw = in->qp->qp.qp_type == IBV_QPT_RAW_PACKET && in->arrival->qp_type == IBV_QPT_RAW_PACKET;
	const uint32_t length = in->arrival->length;
	uint8_t *grh = in->m->buffer, *payload = grh + SOFT_GRH_BYTES;

	if (is_raw ? !raw_admits(in) : !ud_admits(in))
		return false;
	/* Now: the sender's port may be gone once the bytes have been moved. */
	in->wc = is_raw ? raw_wc(in) : ud_wc(in);
	if (is_raw)
		return dgram_fill(in, 0, payload, length);
	if (in->arrival->ah.is_global)
		return dgram_fill(in, 0, grh, SOFT_GRH_BYTES + length);
	/* The first 40 bytes of the receive stay what they were. */
	return dgram_fill(in, SOFT_GRH_BYTES, payload, length);
}

void soft_datagram_complete(struct soft_inbound *in)
{
	const struct soft_traffic t = soft_inbound_traffic(in);

	soft_count_in(in->m, in->qp, &t);
	soft_recv_complete(in->qp, &in->wc, in->arrival->is_solicited, &in->due);
	if (in->qp->qp.qp_type == IBV_QPT_UD)
		soft_count_arrival(in->qp, in->arrival);
}
