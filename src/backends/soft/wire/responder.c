/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <endian.h>
#include <string.h>
#include "backends/soft/transport/transport.h"
#include "backends/soft/wire/responder.h"

static uint32_t properties(const struct uvd_packet *p)
{
	return uvd_opcode_info(p->opcode)->is;
}

static uint8_t operation(const struct uvd_packet *p)
{
	return p->opcode & UVD_OPERATION_MASK;
}

void wire_responder_init(struct wire_responder *r, const struct wire_responder_ops *ops, void *user,
			 const struct wire_connection *c, uint32_t psn, struct wire_record *records,
			 unsigned int num_records)
{
	*r = (struct wire_responder){
		.ops = ops,
		.user = user,
		.c = *c,
		.expected = psn,
		.records = records,
		.num_records = num_records,
	};
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static struct uvd_packet answer_of(const struct wire_responder *r, uint8_t op, uint32_t psn, uint8_t syndrome)
{
	return (struct uvd_packet){
		.opcode = r->c.transport | op,
		.migrated = true,
		.pkey = r->c.pkey,
		.dest_qpn = r->c.dest_qpn,
		.psn = psn,
		.syndrome = syndrome,
		.msn = r->msn,
	};
}

static void send_answer(struct wire_responder *r, uint8_t op, uint32_t psn, uint8_t syndrome)
{
	const struct uvd_packet p = answer_of(r, op, psn, syndrome);

	r->ops->transmit(r->user, &p);
}

/* Acknowledges all before `expected`. */
static void acknowledge_all(struct wire_responder *r)
{
	if (r->is_owed)
		send_answer(r, UVD_ACKNOWLEDGE, uvd_psn_add(r->expected, -1), UVD_AETH_ACK);
	r->is_owed = false;
}

/* A NAK acknowledges all before it. The next packet but the expected one gets no other. */
static void send_nak_of(struct wire_responder *r, uint32_t psn, uint8_t syndrome)
{
	r->is_owed = false;
	r->is_silent = true;
	send_answer(r, UVD_ACKNOWLEDGE, psn, syndrome);
}

static void send_nak(struct wire_responder *r, uint8_t syndrome)
{
	send_nak_of(r, r->expected, syndrome);
}

/* The packets of the next request contradict each other, or their lengths do. */
static struct soft_outcome responder_refuse(struct wire_responder *r)
{
	struct soft_outcome outcome = r->ops->take(r->user, NULL, 0, 0, true, false);

	if (outcome.kind != SOFT_LOST)
		send_nak(r, UVD_AETH_INVALID_REQUEST);
	return outcome;
}

static uint8_t syndrome_of(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_REM_ACCESS_ERR:
		return UVD_AETH_ACCESS_ERROR;
	case IBV_WC_REM_OP_ERR:
		return UVD_AETH_OPERATION_ERROR;
	default:
		return UVD_AETH_INVALID_REQUEST;
	}
}

/* The request that comes next was not executed. */
static void answer_refusal(struct wire_responder *r, struct soft_outcome outcome)
{
	/* A READ whose first packets were sent has an answer up to there. */
	const uint32_t psn = r->reads ? r->read_psn : r->expected;

	r->reads = false;
	if (outcome.kind == SOFT_RNR)
		send_nak_of(r, psn, UVD_AETH_RNR | (outcome.rnr_timer & UVD_AETH_VALUE));
	else if (outcome.kind == SOFT_DONE)
		send_nak_of(r, psn, syndrome_of(outcome.status));
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static struct wire_record *add_record(struct wire_responder *r, uint8_t op, const struct soft_arrival *a,
				      uint32_t packets)
{
	struct wire_record *record = &r->records[r->next_record];

	r->next_record = (r->next_record + 1) % r->num_records;
	*record = (struct wire_record){
		.psn = a->psn,
		.packets = packets,
		.operation = op,
		.rkey = a->rkey,
		.length = a->length,
		.va = a->remote_addr,
	};
	return record;
}

/* One that was refused leaves no record, and may be asked for again. */
static void record_read(struct wire_responder *r)
{
	add_record(r, UVD_RDMA_READ_REQUEST, &r->read, r->read.packets);
}

/* Returns the record of the operation that has this PSN, or NULL. */
static const struct wire_record *find_record(const struct wire_responder *r, const struct uvd_packet *p)
{
	for (unsigned int i = 0; i < r->num_records; i++) {
		const struct wire_record *record = &r->records[i];
		const int32_t diff = uvd_psn_diff(p->psn, record->psn);

		if (record->operation == operation(p) && diff >= 0 && (uint32_t)diff < record->packets)
			return record;
	}
	return NULL;
}

/* ---- READs ------------------------------------------------------------------------------------------------------- */

static struct soft_arrival arrival_of(const struct wire_responder *r, const struct uvd_packet *p,
				      enum ibv_wr_opcode opcode)
{
	return (struct soft_arrival){
		.qp_type = r->c.transport == UVD_TRANSPORT_XRC ? IBV_QPT_XRC_SEND : IBV_QPT_RC,
		.src_qpn = r->c.dest_qpn,
		.psn = p->psn,
		.packets = 1,
		.pkey = p->pkey,
		.mtu = r->c.mtu_code,
		.is_solicited = p->solicited,
		.opcode = opcode,
		.length = p->length,
		.rkey = p->rkey,
		.remote_srqn = p->srqn,
		.remote_addr = p->va,
	};
}

static void begin_read(struct wire_responder *r, const struct uvd_packet *p, bool is_copy)
{
	r->read = arrival_of(r, p, IBV_WR_RDMA_READ);
	r->read.packets = soft_packets(r->c.mtu_code, p->length);
	r->read_offset = 0;
	r->read_psn = p->psn;
	r->reads = true;
	r->is_copy = is_copy;
}

static void send_read_part(struct wire_responder *r, uint32_t length, bool is_last)
{
	const uint8_t *bytes = r->ops->buffer(r->user);
	uint32_t done = 0;

	do {
		const uint32_t size = length - done < r->c.mtu ? length - done : r->c.mtu;
		const bool ends = is_last && done + size == length;
		struct uvd_packet p =
			answer_of(r, uvd_operation_of(UVD_MESSAGE_READ_RESPONSE, r->read_psn == r->read.psn, ends),
				  r->read_psn, UVD_AETH_ACK);

		p.payload = bytes + done;
		p.payload_len = size;
		r->ops->transmit(r->user, &p);
		r->read_psn = uvd_psn_add(r->read_psn, 1);
		done += size;
	} while (done < length);
	r->ops->flush(r->user);
}

static uint32_t read_part(const struct wire_responder *r)
{
	const uint32_t packets = wire_packets_at_once(&r->c);
	const uint32_t left = r->read.length - r->read_offset;

	return left < packets * r->c.mtu ? left : packets * r->c.mtu;
}

struct soft_outcome wire_responder_read(struct wire_responder *r)
{
	const uint32_t length = read_part(r);
	const bool is_last = r->read_offset + length == r->read.length;
	struct soft_outcome outcome = r->ops->take(r->user, &r->read, r->read_offset, length, is_last, r->is_copy);

	if (outcome.kind == SOFT_LOST)
		return outcome;
	if (!soft_is_sent(outcome)) {
		/* A copy is refused in silence: its requester has the answer, or asks once more. */
		if (r->is_copy)
			r->reads = false;
		else
			answer_refusal(r, outcome);
		r->ops->flush(r->user);
		return soft_sent;
	}
	if (is_last && !r->is_copy) {
		record_read(r);
		r->msn = uvd_psn_add(r->msn, 1);
		r->expected = uvd_psn_add(r->expected, r->read.packets);
	}
	send_read_part(r, length, is_last);
	r->read_offset += length;
	if (is_last) {
		r->reads = false;
		r->ops->finish(r->user);
	}
	return soft_sent;
}

/* ---- requests of one packet with an answer of their own ---------------------------------------------------------- */

static void send_original(struct wire_responder *r, uint32_t psn, uint64_t original)
{
	struct uvd_packet p = answer_of(r, UVD_ATOMIC_ACKNOWLEDGE, psn, UVD_AETH_ACK);

	p.original = original;
	r->ops->transmit(r->user, &p);
}

static struct soft_outcome take_atomic_request(struct wire_responder *r, const struct uvd_packet *p)
{
	const bool swaps = operation(p) == UVD_COMPARE_SWAP;
	struct soft_outcome outcome;
	uint64_t original;

	r->arrival = arrival_of(r, p, swaps ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD);
	r->arrival.length = sizeof(original);
	r->arrival.compare_add = swaps ? p->compare : p->swap_add;
	r->arrival.swap = swaps ? p->swap_add : 0;
	outcome = r->ops->take(r->user, &r->arrival, 0, sizeof(original), true, false);
	if (!soft_is_sent(outcome)) {
		if (outcome.kind != SOFT_LOST)
			answer_refusal(r, outcome);
		return outcome;
	}
	memcpy(&original, r->ops->buffer(r->user), sizeof(original));
	add_record(r, operation(p), &r->arrival, 1)->original = original;
	r->expected = uvd_psn_add(r->expected, 1);
	r->msn = uvd_psn_add(r->msn, 1);
	r->is_owed = false;
	send_original(r, p->psn, original);
	r->ops->flush(r->user);
	r->ops->finish(r->user);
	return outcome;
}

static struct soft_outcome take_atomic_write(struct wire_responder *r, const struct uvd_packet *p)
{
	struct soft_outcome outcome;

	r->arrival = arrival_of(r, p, IBV_WR_ATOMIC_WRITE);
	r->arrival.length = p->payload_len;
	memcpy(r->ops->buffer(r->user), p->payload, p->payload_len);
	outcome = r->ops->take(r->user, &r->arrival, 0, p->payload_len, true, false);
	if (!soft_is_sent(outcome)) {
		if (outcome.kind != SOFT_LOST)
			answer_refusal(r, outcome);
		return outcome;
	}
	r->expected = uvd_psn_add(r->expected, 1);
	r->msn = uvd_psn_add(r->msn, 1);
	r->is_owed = false;
	send_answer(r, UVD_RDMA_READ_RESPONSE_ONLY, p->psn, UVD_AETH_ACK);
	r->ops->flush(r->user);
	r->ops->finish(r->user);
	return outcome;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* May a packet of this kind come next: the first of a message, or one that continues the message? (9.7.4.1.2) */
static bool continues(const struct wire_responder *r, uint32_t is)
{
	if (!r->in_message)
		return is & UVD_IS_FIRST;
	return !(is & UVD_IS_FIRST) && !(is & UVD_IS_WRITE) == soft_op_is_send(r->arrival.opcode);
}

/* A part of a message: packets in a row. */
struct part {
	unsigned int num;
	uint32_t length; /* bytes, in the buffer */
	bool is_last, asks; /* the requester asks for an acknowledgement */
	bool is_solicited;
};

/* Adds the payloads of the packets that come next to the part, up to the end of the message. */
static void collect(struct wire_responder *r, const struct uvd_packet *packets, unsigned int num, struct part *part)
{
	uint8_t *buffer = r->ops->buffer(r->user);

	while (part->num < num && part->num < WIRE_RUN && !part->is_last) {
		const struct uvd_packet *p = &packets[part->num];
		const uint32_t is = properties(p);

		if (p->psn != uvd_psn_add(r->expected, part->num) || !(is & (UVD_IS_SEND | UVD_IS_WRITE)) ||
		    (part->num &&
		     (is & UVD_IS_FIRST || !(is & UVD_IS_WRITE) != !(properties(packets) & UVD_IS_WRITE))) ||
		    !uvd_packet_fits_mtu(p, r->c.mtu) || part->length + p->payload_len > WIRE_RUN_BYTES)
			break;
		memcpy(buffer + part->length, p->payload, p->payload_len);
		part->length += p->payload_len;
		part->is_last = is & UVD_IS_LAST;
		part->asks |= p->ack_req;
		part->is_solicited = p->solicited;
		part->num++;
	}
}

/* Sets the arrival to what is known of the message with this part. Returns false if a WRITE has another length than it said. */
static bool extend_arrival(struct wire_responder *r, const struct uvd_packet *packets, const struct part *part)
{
	const struct uvd_packet *last = &packets[part->num - 1];
	const uint32_t is = properties(last);
	const uint64_t length = (uint64_t)r->offset + part->length;

	if (!r->in_message) {
		r->arrival = arrival_of(r, packets, uvd_message_opcode(properties(packets)));
		r->arrival.packets = 0;
	}
	r->arrival.packets += part->num;
	/* The last packet says what the whole message is. */
	if (part->is_last) {
		r->arrival.opcode = uvd_message_opcode(is);
		r->arrival.is_solicited = part->is_solicited;
		if (is & UVD_HAS_IETH)
			r->arrival.invalidate_rkey = last->invalidate_rkey;
		else
			r->arrival.imm_data = htobe32(last->imm);
	}
	if (is & UVD_IS_WRITE)
		return part->is_last ? length == r->arrival.length : length < r->arrival.length;
	r->arrival.length = length;
	return length <= INT32_MAX;
}

/* The message has been executed up to the end of the part. */
static void advance(struct wire_responder *r, const struct part *part, bool is_end_of_batch)
{
	r->expected = uvd_psn_add(r->expected, part->num);
	r->offset += part->length;
	r->in_message = !part->is_last;
	r->is_owed |= part->asks;
	if (!part->is_last)
		return;
	r->offset = 0;
	r->msn = uvd_psn_add(r->msn, 1);
	/* The client first, which waits for this; it cannot answer by this QP before the acknowledgement, as this thread has the QP. */
	r->ops->finish(r->user);
	/* In the middle of a batch one acknowledgement serves more. */
	if (is_end_of_batch) {
		acknowledge_all(r);
		r->ops->flush(r->user);
	}
}

/* Takes the next part of a message. Returns the number of its packets, at least 1. */
static unsigned int take_part(struct wire_responder *r, const struct uvd_packet *packets, unsigned int num,
			      struct soft_outcome *outcome)
{
	const struct soft_arrival before = r->arrival;
	struct part part = { 0 };

	if (continues(r, properties(packets)))
		collect(r, packets, num, &part);
	if (!part.num || !extend_arrival(r, packets, &part)) {
		*outcome = responder_refuse(r);
		return num;
	}
	*outcome = r->ops->take(r->user, &r->arrival, r->offset, part.length, part.is_last, false);
	if (outcome->kind == SOFT_LOST)
		return num;
	if (soft_is_sent(*outcome)) {
		advance(r, &part, part.num == num);
	} else {
		r->arrival = before;
		answer_refusal(r, *outcome);
		if (outcome->kind != SOFT_RNR)
			return num;
	}
	return part.num;
}

/* ---- the order of requests --------------------------------------------------------------------------------------- */

/* A request that was executed before: its answer is repeated (9.7.1). */
static void take_copy(struct wire_responder *r, const struct uvd_packet *p)
{
	const struct wire_record *record = find_record(r, p);
	uint64_t offset;

	if (properties(p) & (UVD_IS_SEND | UVD_IS_WRITE)) {
		r->is_owed = true;
		return;
	}
	/* Its answer brings nothing back, so it needs no record, which would push out another request's. */
	if (operation(p) == UVD_ATOMIC_WRITE) {
		send_answer(r, UVD_RDMA_READ_RESPONSE_ONLY, p->psn, UVD_AETH_ACK);
		return;
	}
	if (!record)
		return;
	if (properties(p) & UVD_IS_ATOMIC) {
		send_original(r, p->psn, record->original);
	} else {
		/* It was asked for before: the same bytes, or the rest of them. */
		offset = (uint64_t)uvd_psn_diff(p->psn, record->psn) * r->c.mtu;
		if (p->rkey == record->rkey && p->va == record->va + offset && p->length <= record->length - offset)
			begin_read(r, p, true);
	}
}

/* Takes the request that is expected. Returns the number of packets that were taken. */
static unsigned int take_expected(struct wire_responder *r, const struct uvd_packet *packets, unsigned int num,
				  struct soft_outcome *outcome)
{
	const uint32_t is = properties(packets);

	r->is_silent = false;
	if (is & (UVD_IS_SEND | UVD_IS_WRITE))
		return take_part(r, packets, num, outcome);
	if (r->in_message || !uvd_packet_fits_mtu(packets, r->c.mtu)) {
		*outcome = responder_refuse(r);
		return num;
	}
	if (is & UVD_IS_READ) {
		acknowledge_all(r);
		begin_read(r, packets, false);
	} else if (operation(packets) == UVD_ATOMIC_WRITE) {
		*outcome = take_atomic_write(r, packets);
	} else {
		*outcome = take_atomic_request(r, packets);
	}
	return 1;
}

unsigned int wire_responder_requests(struct wire_responder *r, const struct uvd_packet *packets, unsigned int num,
				     struct soft_outcome *outcome)
{
	unsigned int taken = 0;

	*outcome = soft_sent;
	while (taken < num && !r->reads) {
		const struct uvd_packet *p = &packets[taken];
		const int32_t diff = uvd_psn_diff(p->psn, r->expected);

		if (!diff) {
			taken += take_expected(r, p, num - taken, outcome);
			if (outcome->kind == SOFT_LOST)
				return taken;
			continue;
		}
		if (diff < 0) {
			r->ops->count(r->user, UVD_PORT_DUPLICATES);
			take_copy(r, p);
		} else if (!r->is_silent) {
			r->ops->count(r->user, UVD_PORT_OUT_OF_SEQUENCE);
			send_nak(r, UVD_AETH_SEQUENCE_ERROR);
		}
		taken++;
	}
	acknowledge_all(r);
	r->ops->flush(r->user);
	*outcome = soft_sent;
	return taken;
}
