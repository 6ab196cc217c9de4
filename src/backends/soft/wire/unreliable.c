/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * UC and UD on the wire. A UC receiver drops a message of which a packet is missing (the InfiniBand specification, volume 1, 9.8.3); the
 * senders of both learn nothing.
 */
#include <endian.h>
#include <string.h>
#include "backends/soft/wire/internal.h"

/* ---- UC: the sender ---------------------------------------------------------------------------------------------- */

static void uc_transmit(struct soft_wire_qp *w, const struct soft_send_wqe *wqe, uint32_t psn, uint32_t offset,
			const uint8_t *bytes, uint32_t len)
{
	const bool is_last = offset + len == wqe->length;
	const struct uvd_packet p = {
		.opcode = UVD_TRANSPORT_UC | uvd_request_operation(wqe->opcode, !offset, is_last),
		.migrated = true,
		.solicited = is_last && wqe->send_flags & IBV_SEND_SOLICITED,
		.pkey = w->connection.pkey,
		.dest_qpn = w->connection.dest_qpn,
		.psn = psn & UVD_PSN_MASK,
		.va = wqe->remote_addr,
		.rkey = wqe->rkey,
		.length = wqe->length,
		.imm = be32toh(wqe->imm_data),
		.payload = bytes,
		.payload_len = len,
	};

	carrier_transmit(w, &p);
}

/* Sends the next part of the message, which has some packets. */
static struct soft_outcome uc_send_part(struct soft_wire_qp *w, const struct soft_send_wqe *wqe)
{
	const uint32_t mtu = w->connection.mtu, most = wire_packets_at_once(&w->connection) * mtu, offset = w->uc_sent;
	const uint32_t len = wqe->length - offset < most ? wqe->length - offset : most;
	const uint8_t *bytes;
	uint32_t done = 0;
	struct soft_outcome outcome = carrier_gather(w, wqe, offset, len, &bytes);

	if (!soft_is_sent(outcome))
		return outcome;
	do {
		const uint32_t size = len - done < mtu ? len - done : mtu;

		uc_transmit(w, wqe, w->qp->s_psn + (offset + done) / mtu, offset + done, bytes + done, size);
		done += size;
	} while (done < len);
	carrier_flush(w);
	w->uc_sent += len;
	return outcome;
}

/* Returns the oldest request, if it may be sent. */
static struct soft_send_wqe *uc_next(struct soft_wire_qp *w)
{
	struct soft_qp *qp = w->qp;
	struct soft_send_wqe *wqe = NULL;

	pthread_mutex_lock(&qp->lock);
	if (qp->state == IBV_QPS_RTS)
		wqe = soft_sq_peek(qp, 0);
	qp->s_started = wqe;
	pthread_mutex_unlock(&qp->lock);
	return wqe;
}

static void uc_end(struct soft_wire_qp *w, struct soft_send_wqe *wqe, enum ibv_wc_status status, uint32_t packets)
{
	struct soft_qp *qp = w->qp;

	pthread_mutex_lock(&qp->lock);
	if (qp->state != IBV_QPS_RESET) {
		if (status == IBV_WC_SUCCESS) {
			qp->s_psn = (qp->s_psn + packets) & UVD_PSN_MASK;
			wire_complete(qp, wqe, &w->due);
		} else {
			soft_send_fail(qp, wqe, status, NULL, &w->due);
		}
	}
	pthread_mutex_unlock(&qp->lock);
	soft_due_run(&w->due);
}

static struct soft_outcome uc_try(struct soft_wire_qp *w, const struct soft_send_wqe *wqe)
{
	const struct soft_list list = { w->qp->qp.pd, wqe->sge, wqe->num_sge, 0 };
	struct soft_request req = { .qp = w->qp, .wqe = (struct soft_send_wqe *)wqe };

	if (wqe->refusal != IBV_WC_SUCCESS)
		return (struct soft_outcome){ .kind = SOFT_DONE, .status = wqe->refusal };
	if (soft_is_local(wqe->opcode))
		return soft_local_send(w->m, &req);
	if (!w->uc_sent && !wqe->is_inline && !soft_list_ok(&list))
		return soft_bad_memory;
	return uc_send_part(w, wqe);
}

struct soft_outcome wire_uc_send(struct soft_wire_qp *w, uint32_t budget)
{
	struct soft_send_wqe *wqe;
	uint64_t sent = 0;

	while (sent <= budget && (wqe = uc_next(w))) {
		const bool is_local = soft_is_local(wqe->opcode);
		const uint32_t packets = is_local ? 0 : soft_packets(w->connection.mtu_code, wqe->length),
			       before = w->uc_sent;
		const struct soft_outcome outcome = uc_try(w, wqe);

		if (outcome.kind == SOFT_LOST)
			return outcome;
		if (outcome.kind != SOFT_DONE)
			break;
		sent += w->uc_sent - before + w->connection.mtu;
		if (soft_is_sent(outcome) && !is_local && w->uc_sent < wqe->length)
			continue;
		w->uc_sent = 0;
		uc_end(w, wqe, outcome.status, packets);
	}
	return soft_sent;
}

/* ---- UC: the receiver -------------------------------------------------------------------------------------------- */

/* Drops the message that has begun, or that begins with the packet: all up to the next first packet. Explains why. */
static void uc_drop_rest(struct soft_wire_qp *w, const struct uvd_packet *p, enum soft_drop why)
{
	const struct soft_arrival arrival = { .qp_type = IBV_QPT_UC, .psn = p->psn };

	w->uc.in_message = false;
	w->uc.is_dropped = true;
	w->uc.expected = (p->psn + 1) & UVD_PSN_MASK;
	pthread_mutex_lock(&w->qp->lock);
	if (!soft_gone(w->qp))
		soft_explain_message(w->qp, &arrival, why, &w->due);
	pthread_mutex_unlock(&w->qp->lock);
	soft_due_run(&w->due);
}

/* Does the packet go on with the message that has begun, or begin one? If not, the message is dropped. */
static bool uc_continues(struct soft_wire_qp *w, const struct uvd_packet *p, uint32_t is)
{
	struct wire_uc *uc = &w->uc;

	if (is & UVD_IS_FIRST) {
		if (uc->in_message)
			uc_drop_rest(w, p, SOFT_DROP_GAP);
		uc->is_dropped = false;
		return true;
	}
	if (p->psn == uc->expected && uc->is_dropped)
		uc->expected = (p->psn + 1) & UVD_PSN_MASK;
	else if (p->psn != uc->expected || !uc->in_message)
		uc_drop_rest(w, p, SOFT_DROP_GAP);
	else if (!(is & UVD_IS_WRITE) != soft_op_is_send(uc->arrival.opcode))
		uc_drop_rest(w, p, SOFT_DROP_PACKETS);
	return uc->in_message;
}

static void uc_extend(struct soft_wire_qp *w, const struct uvd_packet *p, uint32_t is, uint32_t len)
{
	struct wire_uc *uc = &w->uc;

	if (is & UVD_IS_FIRST) {
		uc->offset = 0;
		uc->arrival = (struct soft_arrival){
			.qp_type = IBV_QPT_UC,
			.src_qpn = w->connection.dest_qpn,
			.psn = p->psn,
			.pkey = p->pkey,
			.mtu = w->connection.mtu_code,
			.opcode = uvd_message_opcode(is),
			.length = p->length,
			.rkey = p->rkey,
			.remote_addr = p->va,
		};
	}
	uc->arrival.packets++;
	uc->expected = (p->psn + 1) & UVD_PSN_MASK;
	if (is & UVD_IS_LAST) {
		uc->arrival.opcode = uvd_message_opcode(is);
		uc->arrival.is_solicited = p->solicited;
		uc->arrival.imm_data = htobe32(p->imm);
	}
	if (!(is & UVD_IS_WRITE))
		uc->arrival.length = uc->offset + len;
}

/* Takes bytes of the buffer. Returns whether the message goes on; *outcome: SOFT_LOST, or soft_sent. */
static bool uc_take_bytes(struct soft_wire_qp *w, uint32_t len, bool is_last, struct soft_outcome *outcome)
{
	/* Ours: see responder_take(). */
	struct soft_inbound own = w->in, *in = &own;
	const struct soft_arrival arrival = w->uc.arrival;
	struct soft_mover *m = w->m;
	bool taken;

	*outcome = soft_sent;
	if (!w->uc.offset)
		*in = (struct soft_inbound){ .m = m, .has_late_receive = true, .is_from_wire = true };
	in->m = m;
	in->arrival = &arrival;
	in->offset = w->uc.offset;
	in->length = len;
	in->is_last = is_last;
	in->qp = soft_claim(m, w->wire->fabric, w->qp->qp.qp_num);
	if (!in->qp) {
		if (!m->requester.qp)
			*outcome = soft_lost;
		return false;
	}
	taken = soft_uc_take(in);
	if (!m->responder.qp) {
		*outcome = soft_lost;
		return false;
	}
	if (taken && is_last)
		soft_uc_complete(in);
	soft_unclaim(m, &in->due);
	if (!m->requester.qp)
		*outcome = soft_lost;
	else
		w->in = own;
	return taken;
}

/*
 * Does the message have the length that its first packet has told, with len more bytes? The key was checked for that length only. A SEND
 * tells none; it is limited as a request is.
 */
static bool uc_length_is_ok(const struct wire_uc *uc, uint32_t len, bool is_last)
{
	const uint64_t length = (uint64_t)uc->offset + len;

	if (soft_op_is_send(uc->arrival.opcode))
		return length <= INT32_MAX;
	return is_last ? length == uc->arrival.length : length < uc->arrival.length;
}

unsigned int wire_uc_take(struct soft_wire_qp *w, const struct uvd_packet *packets, unsigned int num,
			  struct soft_outcome *outcome)
{
	struct wire_uc *uc = &w->uc;
	unsigned int taken = 0;
	bool is_last = false, goes_on;
	uint32_t len = 0;

	*outcome = soft_sent;
	while (taken < num && !is_last && taken < wire_packets_at_once(&w->connection)) {
		const struct uvd_packet *p = &packets[taken];
		const uint32_t is = uvd_opcode_info(p->opcode)->is;

		if (taken && is & UVD_IS_FIRST)
			break;
		if (!uc_continues(w, p, is))
			return taken + 1;
		if (!uvd_packet_fits_mtu(p, w->connection.mtu)) {
			uc_drop_rest(w, p, SOFT_DROP_PACKETS);
			return taken + 1;
		}
		memcpy(w->m->buffer + len, p->payload, p->payload_len);
		len += p->payload_len;
		uc_extend(w, p, is, len);
		uc->in_message = true;
		is_last = is & UVD_IS_LAST;
		taken++;
	}
	if (!uc_length_is_ok(uc, len, is_last)) {
		uc_drop_rest(w, &packets[taken - 1], SOFT_DROP_PACKETS);
		return taken;
	}
	goes_on = uc_take_bytes(w, len, is_last, outcome);
	if (outcome->kind == SOFT_LOST)
		return taken;
	uc->in_message = goes_on && !is_last;
	uc->is_dropped = !goes_on;
	uc->offset += len;
	return taken;
}

/* ---- UD ---------------------------------------------------------------------------------------------------------- */

bool soft_wire_leads_to(const struct soft_request *req)
{
	const struct soft_arrival *a = &req->arrival;

	return a->qp_type == IBV_QPT_UD && !a->is_multicast && soft_wire_has_way(req->qp->dev, a->port, &a->ah);
}

static void ud_transmit(struct soft_request *req, const uint8_t *bytes)
{
	const struct soft_arrival *a = &req->arrival;
	const struct uvd_packet packet = {
		.opcode = UVD_TRANSPORT_UD | uvd_request_operation(a->opcode, true, true),
		.migrated = true,
		.solicited = a->is_solicited,
		.pkey = a->pkey,
		.dest_qpn = req->dest_qpn,
		.psn = a->psn,
		.qkey = a->qkey,
		.src_qpn = a->src_qpn,
		.imm = be32toh(a->imm_data),
		.payload = bytes,
		.payload_len = a->length,
	};
	struct soft_wire *wire = req->qp->dev->fabric->wire;
	struct uvd_socket *socket = wire_way_out(req->qp->dev, a->port, &a->ah);
	struct wire_sender *sender = socket ? wire_sender_get(wire) : NULL;

	if (!sender)
		return;
	sender->num = 1;
	sender->out[0] = (struct uvd_socket_out){
		.to = a->ah.grh.dgid,
		.num_iov = a->length ? 1 : 0,
		.iov = { { (void *)bytes, a->length } },
	};
	sender->out[0].head_len = uvd_packet_put_headers(&packet, sender->out[0].head);
	atomic_store_explicit(&req->qp->wire->sent_psn[0], packet.psn, memory_order_relaxed);
	if (!wire_later_takes(req->qp, socket, &sender->out[0], req->fate, req->hold_ns, req->delay_ns)) {
		wire_sender_flush(req->qp, sender, socket, true);
		wire_later_overtake(req->qp->wire);
		wire_later_flushed(req->qp->wire);
	}
	sender->num = 0;
	wire_sender_put(wire, sender);
}

struct soft_outcome soft_wire_send_datagram(struct soft_mover *m, struct soft_request *req)
{
	struct soft_outcome outcome = soft_datagram_gather(m, req);

	if (soft_is_sent(outcome))
		soft_count_at_port(req->qp->dev, req->arrival.port, UVD_PORT_SENDS, 1);
	if (soft_is_sent(outcome) && req->fate != UVD_FATE_LOSE && !uvd_config_port_down(req->arrival.port))
		ud_transmit(req, m->buffer + SOFT_GRH_BYTES);
	return outcome;
}

struct soft_outcome wire_ud_take(struct soft_wire_qp *w, const struct wire_letter *letter)
{
	enum { HOPS = 64 }; /* a socket does not tell the time to live */
	const struct uvd_packet *p = &letter->packet;
	struct soft_mover *m = w->m;
	const struct soft_arrival arrival = {
		.qp_type = IBV_QPT_UD,
		.src_qpn = p->src_qpn,
		.psn = p->psn,
		.packets = 1,
		.qkey = p->qkey,
		.from = letter->from,
		.ah = { .is_global = 1, .grh = { .dgid = letter->to, .hop_limit = HOPS } },
		.pkey = p->pkey,
		.is_solicited = p->solicited,
		.opcode = uvd_message_opcode(uvd_opcode_info(p->opcode)->is),
		.length = p->payload_len,
		.imm_data = htobe32(p->imm),
	};
	struct soft_inbound in = {
		.m = m, .arrival = &arrival, .length = p->payload_len, .is_last = true, .is_from_wire = true
	};
	bool arrived;

	in.qp = soft_claim(m, w->wire->fabric, w->qp->qp.qp_num);
	if (!in.qp)
		return m->requester.qp ? soft_sent : soft_lost;
	soft_make_grh(m->buffer, &arrival);
	memcpy(m->buffer + SOFT_GRH_BYTES, p->payload, p->payload_len);
	arrived = soft_datagram_take(&in);
	if (!m->responder.qp)
		return soft_lost;
	if (arrived)
		soft_datagram_complete(&in);
	soft_unclaim(m, &in.due);
	return m->requester.qp ? soft_sent : soft_lost;
}
