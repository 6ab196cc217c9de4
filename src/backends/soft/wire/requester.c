/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <endian.h>
#include <string.h>
#include "backends/soft/transport/transport.h"
#include "backends/soft/wire/requester.h"

enum {
	RNR_LEAST_NS = 100 * 1000,
	RNR_MOST_NS = 8 * 1000 * 1000, /* of waits that grow */
	RNR_PLAIN = 4, /* RNR NAKs in a row, before the wait grows */
};

static uint32_t psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & UVD_PSN_MASK;
}

static struct wire_flight *flight_of(struct wire_requester *r, unsigned int n)
{
	return &r->flight[(r->head + n) % WIRE_REQUESTS];
}

void wire_requester_init(struct wire_requester *r, const struct wire_requester_ops *ops, void *user,
			 const struct wire_connection *c, uint32_t psn, uint32_t window)
{
	memset(r, 0, sizeof(*r));
	r->ops = ops;
	r->user = user;
	r->c = *c;
	r->una = r->next = r->top = psn;
	wire_window_init(&r->window, window);
}

/* ---- what is in flight ------------------------------------------------------------------------------------------- */

uint32_t wire_requester_in_flight(const struct wire_requester *r)
{
	return uvd_psn_diff(r->next, r->una);
}

/* Requests that bring bytes back and are in flight, before the one at `at`: a slice of a READ counts as one. */
static unsigned int reads_in_flight(struct wire_requester *r)
{
	unsigned int num = 0;

	for (unsigned int n = 0; n < r->num && n <= r->at; n++) {
		const struct wire_flight *f = flight_of(r, n);
		const uint32_t sent = n < r->at ? f->packets : r->at_packet;

		/* After going back, what is to be asked for again is not in flight. */
		if (f->brings_back && sent > f->got)
			num += (sent + WIRE_SLICE - 1) / WIRE_SLICE - f->got / WIRE_SLICE;
	}
	return num;
}

static void arm_retry(struct wire_requester *r, uint64_t now)
{
	r->retry_at = r->timeout_ns && r->una != r->next ? now + r->timeout_ns : 0;
}

static void restore_retries(struct wire_requester *r)
{
	r->retries = r->retry_cnt;
	r->rnr_retries = r->rnr_retry;
	r->rnrs = 0;
}

/* Sends everything from una on again. */
static void go_back(struct wire_requester *r)
{
	r->next = r->una;
	r->at = 0;
	r->at_packet = r->num ? uvd_psn_diff(r->una, flight_of(r, 0)->psn) : 0;
	r->since_ack_req = 0;
}

/* The oldest request ends. */
static void complete_oldest(struct wire_requester *r, enum ibv_wc_status status)
{
	r->head = (r->head + 1) % WIRE_REQUESTS;
	r->num--;
	if (r->at)
		r->at--;
	else
		r->at_packet = 0;
	r->wants_read_again = false;
	r->ops->complete(r->user, status);
}

/* Fails the oldest request, which puts the QP into error: nothing is in flight any more. */
static void fail_oldest(struct wire_requester *r, enum ibv_wc_status status)
{
	r->retry_at = r->rnr_at = 0;
	r->num = r->at = r->at_packet = 0;
	r->una = r->next = r->top;
	r->ops->complete(r->user, status);
}

/* ---- packets ----------------------------------------------------------------------------------------------------- */

enum uvd_packet_message wire_message_of(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_SEND_WITH_IMM:
		return UVD_MESSAGE_SEND_WITH_IMMEDIATE;
	case IBV_WR_SEND_WITH_INV:
		return UVD_MESSAGE_SEND_WITH_INVALIDATE;
	case IBV_WR_RDMA_WRITE:
		return UVD_MESSAGE_WRITE;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return UVD_MESSAGE_WRITE_WITH_IMMEDIATE;
	default:
		return UVD_MESSAGE_SEND;
	}
}

static struct uvd_packet packet_of(const struct wire_requester *r, const struct soft_send_wqe *wqe, uint32_t operation)
{
	return (struct uvd_packet){
		.opcode = r->c.transport | operation,
		.migrated = true,
		.pkey = r->c.pkey,
		.dest_qpn = r->c.dest_qpn,
		.psn = r->next,
		.srqn = wqe->remote_srqn,
		.va = wqe->remote_addr,
		.rkey = wqe->rkey,
		.length = wqe->length,
	};
}

/* Must the packet ask for an acknowledgement: at least each half window does, and its end. */
static bool asks_for_ack(struct wire_requester *r, bool is_last)
{
	const bool asks = is_last || wire_requester_in_flight(r) + 1 >= r->window.size ||
			  r->since_ack_req + 1 >= r->window.size / 2;

	r->since_ack_req = asks ? 0 : r->since_ack_req + 1;
	return asks;
}

static void transmit(struct wire_requester *r, const struct uvd_packet *p, uint32_t psns)
{
	r->ops->transmit(r->user, p);
	r->next = psn_add(r->next, psns);
	if (uvd_psn_diff(r->next, r->top) > 0)
		r->top = r->next;
	r->at_packet += psns;
}

static void send_data_packet(struct wire_requester *r, const struct soft_send_wqe *wqe, const struct wire_flight *f,
			     const uint8_t *bytes, uint32_t len)
{
	const bool is_last = r->at_packet + 1 == f->packets;
	const uint8_t operation = wqe->opcode == IBV_WR_ATOMIC_WRITE
					  ? UVD_ATOMIC_WRITE
					  : uvd_operation_of(wire_message_of(wqe->opcode), !r->at_packet, is_last);
	struct uvd_packet p = packet_of(r, wqe, operation);

	p.payload = bytes;
	p.payload_len = len;
	p.solicited = is_last && wqe->send_flags & IBV_SEND_SOLICITED;
	p.ack_req = asks_for_ack(r, is_last);
	if (wqe->opcode == IBV_WR_SEND_WITH_INV)
		p.invalidate_rkey = wqe->invalidate_rkey;
	else
		p.imm = be32toh(wqe->imm_data);
	transmit(r, &p, 1);
}

/* The rest of a READ's slice, or an atomic: one packet, and an answer of `packets`. */
static void send_read(struct wire_requester *r, const struct soft_send_wqe *wqe, uint32_t packets)
{
	const uint32_t offset = r->at_packet * r->c.mtu, left = wqe->length - offset;
	struct uvd_packet p = packet_of(r, wqe, UVD_RDMA_READ_REQUEST);

	p.ack_req = true;
	if (wqe->opcode == IBV_WR_RDMA_READ) {
		p.va += offset;
		p.length = left < packets * r->c.mtu ? left : packets * r->c.mtu;
	} else {
		p.opcode =
			r->c.transport | (wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? UVD_COMPARE_SWAP : UVD_FETCH_ADD);
		p.compare = wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? wqe->compare_add : 0;
		p.swap_add = wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? wqe->swap : wqe->compare_add;
	}
	r->since_ack_req = 0;
	transmit(r, &p, packets);
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

static uint32_t window_left(const struct wire_requester *r)
{
	const uint32_t sent = wire_requester_in_flight(r);

	return sent < r->window.size ? r->window.size - sent : 0;
}

/* How many packets of the answer would the next READ request ask for? Slices end at multiples of WIRE_SLICE. */
static uint32_t slice_left(const struct wire_requester *r, const struct wire_flight *f)
{
	const uint32_t left = f->packets - r->at_packet, to_boundary = WIRE_SLICE - r->at_packet % WIRE_SLICE;

	return left < to_boundary ? left : to_boundary;
}

static bool may_read(struct wire_requester *r, uint32_t packets)
{
	/* An answer that is larger than the window comes alone. */
	if (packets > window_left(r) && wire_requester_in_flight(r))
		return false;
	return reads_in_flight(r) < r->max_rd_atomic;
}

/* Are reads or atomics, which a fence waits for, before the request that is to begin? */
static bool is_fenced(struct wire_requester *r, const struct soft_send_wqe *wqe)
{
	if (!(wqe->send_flags & IBV_SEND_FENCE))
		return false;
	for (unsigned int n = 0; n < r->num; n++)
		if (flight_of(r, n)->brings_back)
			return true;
	return false;
}

/* Is the request one that has no packets: it ends here, once all before it have completed? */
static bool is_packetless(const struct soft_send_wqe *wqe)
{
	return wqe->refusal != IBV_WC_SUCCESS || soft_is_local(wqe->opcode);
}

static bool may_begin(struct wire_requester *r, const struct soft_send_wqe *wqe)
{
	if (r->num == WIRE_REQUESTS || is_fenced(r, wqe) || (is_packetless(wqe) && r->num))
		return false;
	return is_packetless(wqe) || window_left(r);
}

static struct soft_outcome end_packetless(struct wire_requester *r, const struct soft_send_wqe *wqe)
{
	struct soft_outcome outcome = { .kind = SOFT_DONE, .status = wqe->refusal };

	if (soft_is_sent(outcome))
		outcome = r->ops->local(r->user, wqe);
	if (outcome.kind != SOFT_DONE)
		return outcome;
	if (soft_is_sent(outcome))
		r->ops->complete(r->user, IBV_WC_SUCCESS);
	else
		fail_oldest(r, outcome.status);
	return outcome;
}

/* Adds the request to those in flight. */
static struct soft_outcome begin(struct wire_requester *r, const struct soft_send_wqe *wqe)
{
	struct soft_outcome outcome;

	if (is_packetless(wqe))
		return end_packetless(r, wqe);
	outcome = r->ops->check(r->user, wqe);
	if (!soft_is_sent(outcome)) {
		/* Requests before it may still succeed: it is checked again when it is the oldest. */
		if (outcome.kind == SOFT_DONE && !r->num)
			fail_oldest(r, outcome.status);
		return outcome;
	}
	if (!r->num)
		restore_retries(r);
	*flight_of(r, r->num) = (struct wire_flight){
		.psn = r->next,
		.packets = soft_packets(r->c.mtu_code, wqe->length),
		.brings_back = soft_op_brings_back(wqe->opcode),
	};
	r->num++;
	return outcome;
}

static uint32_t least3(uint32_t a, uint32_t b, uint32_t c)
{
	const uint32_t least = a < b ? a : b;

	return least < c ? least : c;
}

/* Sends packets of one message with data that one access has read. */
static struct soft_outcome send_run_of(struct wire_requester *r, const struct soft_send_wqe *wqe, struct wire_flight *f)
{
	const uint32_t most = WIRE_RUN_BYTES / r->c.mtu < WIRE_RUN ? WIRE_RUN_BYTES / r->c.mtu : WIRE_RUN;
	const uint32_t packets = least3(window_left(r), f->packets - r->at_packet, most);
	const uint32_t offset = r->at_packet * r->c.mtu, left = wqe->length - offset;
	const uint32_t len = left < packets * r->c.mtu ? left : packets * r->c.mtu;
	const uint8_t *bytes = NULL;
	struct soft_outcome outcome = r->ops->gather(r->user, wqe, offset, len, &bytes);

	if (!soft_is_sent(outcome)) {
		if (outcome.kind == SOFT_DONE && !r->at)
			fail_oldest(r, outcome.status);
		return outcome;
	}
	for (uint32_t done = 0, n = 0; n < packets; n++) {
		const uint32_t size = len - done < r->c.mtu ? len - done : r->c.mtu;

		send_data_packet(r, wqe, f, bytes + done, size);
		done += size;
	}
	r->ops->flush(r->user);
	return outcome;
}

/* Sends some packets, or begins a request. Anything but soft_is_sent() ends the run. */
static struct soft_outcome send_some(struct wire_requester *r)
{
	const struct soft_send_wqe *wqe = r->ops->peek(r->user, r->at);
	struct wire_flight *f;

	if (!wqe)
		return soft_no_answer;
	if (r->at == r->num) {
		if (!may_begin(r, wqe))
			return soft_no_answer;
		return begin(r, wqe);
	}
	f = flight_of(r, r->at);
	if (!f->brings_back) {
		struct soft_outcome outcome = window_left(r) ? send_run_of(r, wqe, f) : soft_no_answer;

		if (!soft_is_sent(outcome))
			return outcome;
	} else {
		const uint32_t packets = slice_left(r, f);

		if (!may_read(r, packets))
			return soft_no_answer;
		send_read(r, wqe, packets);
		r->ops->flush(r->user);
	}
	if (r->at_packet == f->packets) {
		r->at++;
		r->at_packet = 0;
	}
	return soft_sent;
}

struct soft_outcome wire_requester_send(struct wire_requester *r, uint64_t now, uint32_t budget)
{
	const uint32_t before = r->next, most = budget / r->c.mtu + 1;
	struct soft_outcome outcome = soft_sent;

	while (!r->rnr_at && soft_is_sent(outcome) && (uint32_t)uvd_psn_diff(r->next, before) < most)
		outcome = send_some(r);
	if (outcome.kind == SOFT_LOST)
		return outcome;
	if (r->una != r->next && !r->retry_at)
		arm_retry(r, now);
	r->waits_for_older = outcome.kind == SOFT_DONE && !soft_is_sent(outcome) && r->num;
	return soft_sent;
}

bool wire_requester_may_send(struct wire_requester *r)
{
	const struct soft_send_wqe *wqe = r->rnr_at || r->waits_for_older ? NULL : r->ops->peek(r->user, r->at);

	if (!wqe)
		return false;
	if (r->at == r->num)
		return may_begin(r, wqe);
	if (flight_of(r, r->at)->brings_back)
		return may_read(r, slice_left(r, flight_of(r, r->at)));
	return window_left(r);
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

/*
 * Everything before psn has arrived at the responder. Stops at a request whose answer brings bytes: those are missing then. Returns
 * whether all of it is acknowledged.
 */
static bool acknowledge(struct wire_requester *r, uint32_t psn, uint64_t now)
{
	const uint32_t before = r->una;

	while (r->num && uvd_psn_diff(psn, r->una) > 0) {
		struct wire_flight *f = flight_of(r, 0);
		const uint32_t end = psn_add(f->psn, f->packets);

		if (f->brings_back && f->got < f->packets)
			break;
		r->una = uvd_psn_diff(psn, end) < 0 ? psn : end;
		if (r->una == end)
			complete_oldest(r, IBV_WC_SUCCESS);
	}
	if (r->una != before) {
		wire_window_acked(&r->window, uvd_psn_diff(r->una, before), r->una);
		restore_retries(r);
		/* An answer to a late copy: what goes out next is behind it. */
		if (uvd_psn_diff(r->una, r->next) > 0)
			go_back(r);
		arm_retry(r, now);
	}
	return uvd_psn_diff(psn, r->una) <= 0;
}

/* Sends from una on again, if the responder has told so. */
static void retry(struct wire_requester *r, uint64_t now, bool is_timeout)
{
	if (!r->num)
		return;
	if (!r->retries) {
		r->ops->count(r->user, UVD_PORT_RETRY_EXCEEDED);
		fail_oldest(r, IBV_WC_RETRY_EXC_ERR);
		return;
	}
	r->retries--;
	r->ops->count(r->user, UVD_PORT_RETRIES);
	wire_window_lost(&r->window, r->top, is_timeout);
	go_back(r);
	r->retry_at = is_timeout && r->timeout_ns ? now + r->timeout_ns : 0;
}

static enum ibv_wc_status status_of_nak(uint8_t syndrome)
{
	switch (syndrome) {
	case UVD_AETH_INVALID_REQUEST:
		return IBV_WC_REM_INV_REQ_ERR;
	case UVD_AETH_ACCESS_ERROR:
		return IBV_WC_REM_ACCESS_ERR;
	case UVD_AETH_OPERATION_ERROR:
		return IBV_WC_REM_OP_ERR;
	default:
		return IBV_WC_REM_OP_ERR;
	}
}

/*
 * How long to wait after an RNR NAK. rnr_retry 7 means retry forever: the wait grows then, because the requests of sleeping clients must
 * not keep the timer's thread busy.
 */
static uint64_t rnr_wait(struct wire_requester *r, unsigned int code)
{
	const uint64_t told = soft_rnr_ns(code), ns = told > RNR_LEAST_NS ? told : RNR_LEAST_NS;
	const unsigned int grown = r->rnr_retry == 7 && r->rnrs > RNR_PLAIN ? r->rnrs - RNR_PLAIN : 0;

	if (r->rnrs < RNR_PLAIN + 10)
		r->rnrs++;
	if (ns << grown < RNR_MOST_NS)
		return ns << grown;
	return ns > RNR_MOST_NS ? ns : RNR_MOST_NS;
}

static void take_rnr(struct wire_requester *r, const struct uvd_packet *p, uint64_t now)
{
	r->ops->count(r->user, UVD_PORT_RNR_RCVD);
	if (!r->rnr_retries) {
		r->ops->count(r->user, UVD_PORT_RNR_RETRY_EXCEEDED);
		fail_oldest(r, IBV_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	if (r->rnr_retry != 7)
		r->rnr_retries--;
	go_back(r);
	r->retry_at = 0;
	r->rnr_at = now + rnr_wait(r, p->syndrome & UVD_AETH_VALUE);
}

static void take_nak(struct wire_requester *r, const struct uvd_packet *p, uint64_t now)
{
	/* A NAK acknowledges all before it. If an answer is missing among these, that comes first. */
	if (!acknowledge(r, p->psn, now) || !r->num) {
		if (r->num)
			retry(r, now, false);
		return;
	}
	if ((p->syndrome & UVD_AETH_KIND) == UVD_AETH_RNR)
		take_rnr(r, p, now);
	else if (p->syndrome == UVD_AETH_SEQUENCE_ERROR)
		retry(r, now, false);
	else
		fail_oldest(r, status_of_nak(p->syndrome));
}

static void take_ack(struct wire_requester *r, const struct uvd_packet *p, uint64_t now)
{
	const uint8_t kind = p->syndrome & UVD_AETH_KIND;

	if (kind != UVD_AETH_ACK_KIND) {
		take_nak(r, p, now);
		return;
	}
	/* The responder has executed a READ or atomic whose answer has not arrived: it is lost (9.7.5.1.3). */
	if (!acknowledge(r, psn_add(p->psn, 1), now) && !r->wants_read_again) {
		r->wants_read_again = true;
		retry(r, now, false);
	}
}

/* Is the packet the next of the answer to the oldest request? */
static bool is_next_answer(struct wire_requester *r, const struct uvd_packet *p)
{
	const struct wire_flight *f = flight_of(r, 0);

	return r->num && f->brings_back && p->psn == psn_add(f->psn, f->got) && p->psn == r->una;
}

static uint32_t answer_length(const struct wire_requester *r, const struct wire_flight *f, uint32_t length)
{
	const uint32_t offset = f->got * r->c.mtu;

	return length - offset < r->c.mtu ? length - offset : r->c.mtu;
}

/*
 * Stores the payloads of the first packets that are the next ones of a READ's answer, by one access. Returns their number in *num; 0: the
 * first packet is not the next one. One of another length than it must have is an error of the request (hfi1's hfi1_rc_rcv_resp()).
 */
static struct soft_outcome take_read_run(struct wire_requester *r, const struct uvd_packet *packets, unsigned int *num)
{
	const struct soft_send_wqe *wqe = r->ops->peek(r->user, 0);
	const unsigned int most = *num;
	uint8_t *buffer = r->ops->buffer(r->user);
	struct wire_flight *f = flight_of(r, 0);
	const uint32_t offset = f->got * r->c.mtu;
	struct soft_outcome outcome = soft_sent;
	uint32_t len = 0;

	*num = 0;
	while (*num < most && f->got < f->packets && wqe && wqe->opcode == IBV_WR_RDMA_READ) {
		const struct uvd_packet *p = &packets[*num];

		if (!(uvd_opcode_info(p->opcode)->is & UVD_IS_READ) || !is_next_answer(r, p) ||
		    p->payload_len != answer_length(r, f, wqe->length) || len + p->payload_len > WIRE_RUN_BYTES)
			break;
		memcpy(buffer + len, p->payload, p->payload_len);
		len += p->payload_len;
		f->got++;
		r->una = psn_add(r->una, 1);
		++*num;
	}
	if (*num)
		outcome = r->ops->scatter(r->user, wqe, offset, len);
	else if (wqe && wqe->opcode == IBV_WR_RDMA_READ && packets->payload_len != answer_length(r, f, wqe->length))
		outcome = (struct soft_outcome){ .kind = SOFT_DONE, .status = IBV_WC_LOC_LEN_ERR };
	return outcome;
}

static struct soft_outcome take_atomic(struct wire_requester *r, const struct uvd_packet *p)
{
	const struct soft_send_wqe *wqe = r->ops->peek(r->user, 0);
	struct wire_flight *f = flight_of(r, 0);

	/* The value goes to the client's memory as its CPU stores it. */
	memcpy(r->ops->buffer(r->user), &p->original, sizeof(p->original));
	f->got = 1;
	r->una = psn_add(r->una, 1);
	return r->ops->scatter(r->user, wqe, 0, sizeof(p->original));
}

static void after_answers(struct wire_requester *r, unsigned int num, struct soft_outcome outcome, uint64_t now)
{
	if (outcome.kind == SOFT_DONE && outcome.status != IBV_WC_SUCCESS) {
		fail_oldest(r, outcome.status);
		return;
	}
	r->wants_read_again = false;
	wire_window_acked(&r->window, num, r->una);
	restore_retries(r);
	if (flight_of(r, 0)->got == flight_of(r, 0)->packets)
		complete_oldest(r, IBV_WC_SUCCESS);
	if (uvd_psn_diff(r->una, r->next) > 0)
		go_back(r);
	arm_retry(r, now);
}

/* Packets of an answer that do not come next: earlier ones are copies; after a gap the missing ones are asked for again, once. */
static void take_gap(struct wire_requester *r, const struct uvd_packet *p, uint64_t now)
{
	if (uvd_psn_diff(p->psn, r->una) <= 0 || uvd_psn_diff(p->psn, r->top) >= 0)
		return;
	if (acknowledge(r, p->psn, now) || r->wants_read_again)
		return;
	r->wants_read_again = true;
	retry(r, now, false);
}

/* An ATOMIC WRITE is answered as a READ of no bytes is. */
static bool is_answer_to_atomic_write(struct wire_requester *r, const struct uvd_packet *p)
{
	return r->num && r->ops->peek(r->user, 0)->opcode == IBV_WR_ATOMIC_WRITE && p->psn == r->una && !p->payload_len;
}

static struct soft_outcome take_answer(struct wire_requester *r, const struct uvd_packet *packets, unsigned int *num,
				       uint64_t now)
{
	const uint32_t is = uvd_opcode_info(packets->opcode)->is;
	struct soft_outcome outcome = soft_sent;
	unsigned int taken = *num;

	*num = 1;
	if (!(is & (UVD_IS_READ | UVD_IS_ATOMIC))) {
		/* A ghost: it answers what is answered already, or what was never sent. */
		if (uvd_psn_diff(packets->psn, r->una) >= 0 && uvd_psn_diff(packets->psn, r->top) < 0)
			take_ack(r, packets, now);
		return outcome;
	}
	/* An answer acknowledges the requests before its own. */
	if (uvd_psn_diff(packets->psn, r->una) > 0 && uvd_psn_diff(packets->psn, r->top) < 0)
		acknowledge(r, packets->psn, now);
	if (is_answer_to_atomic_write(r, packets)) {
		acknowledge(r, psn_add(packets->psn, 1), now);
		return outcome;
	}
	if (!is_next_answer(r, packets)) {
		take_gap(r, packets, now);
		return outcome;
	}
	if (is & UVD_IS_ATOMIC) {
		if (soft_op_is_atomic(r->ops->peek(r->user, 0)->opcode)) {
			outcome = take_atomic(r, packets);
			if (outcome.kind != SOFT_LOST)
				after_answers(r, 1, outcome, now);
		}
		return outcome;
	}
	outcome = take_read_run(r, packets, &taken);
	if (taken)
		*num = taken;
	else if (soft_is_sent(outcome))
		return outcome;
	if (outcome.kind != SOFT_LOST)
		after_answers(r, taken, outcome, now);
	return outcome;
}

struct soft_outcome wire_requester_answers(struct wire_requester *r, const struct uvd_packet *packets, unsigned int num,
					   uint64_t now)
{
	while (num && r->num) {
		unsigned int taken = num;
		struct soft_outcome outcome = take_answer(r, packets, &taken, now);

		if (outcome.kind == SOFT_LOST)
			return outcome;
		packets += taken;
		num -= taken;
	}
	return soft_sent;
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

struct soft_outcome wire_requester_tick(struct wire_requester *r, uint64_t now)
{
	if (r->rnr_at && now >= r->rnr_at)
		r->rnr_at = 0;
	if (r->retry_at && now >= r->retry_at) {
		r->wants_read_again = false;
		retry(r, now, true);
	}
	return soft_sent;
}

void wire_requester_resend(struct wire_requester *r)
{
	go_back(r);
	r->retry_at = 0;
}

uint64_t wire_requester_deadline(const struct wire_requester *r)
{
	if (r->rnr_at && (!r->retry_at || r->rnr_at < r->retry_at))
		return r->rnr_at;
	return r->retry_at;
}

bool wire_requester_sent(const struct wire_requester *r, uint32_t psn)
{
	return uvd_psn_diff(psn, r->una) >= 0 && uvd_psn_diff(psn, r->top) < 0;
}
