/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <endian.h>
#include <string.h>
#include "backends/soft/transport/transport.h"
#include "backends/soft/wire/requester_parts.h"

void wire_requester_init(struct wire_requester *r, const struct wire_requester_ops *ops, void *user,
			 const struct wire_connection *c, uint32_t psn, uint32_t window)
{
	memset(r, 0, sizeof(*r));
	r->ops = ops;
	r->user = user;
	r->c = *c;
	r->una = r->next = r->top = psn;
	r->share = UINT32_MAX;
	wire_window_init(&r->window, window);
	wire_rtt_init(&r->rtt, psn ^ c->dest_qpn << 8);
}

/* ---- what is in flight ------------------------------------------------------------------------------------------- */

uint32_t wire_requester_in_flight(const struct wire_requester *r)
{
	return uvd_psn_diff(r->next, r->una);
}

/* How many READs does one of so many packets become? */
static uint32_t slices_of(uint32_t packets)
{
	return (packets + WIRE_SLICE - 1) / WIRE_SLICE;
}

uint32_t wire_requester_held(const struct wire_requester *r)
{
	const uint32_t sent = uvd_psn_diff(r->top, r->una), in_flight = wire_requester_in_flight(r);
	const uint32_t lost = sent < r->window.size ? sent : r->window.size;

	return lost > in_flight ? lost : in_flight;
}

static uint32_t most_in_flight(const struct wire_requester *r)
{
	return r->share < r->window.size ? r->share : r->window.size;
}

/* Requests that bring bytes back and are in flight, before the one at `at`: a slice of a READ counts as one. */
static unsigned int reads_in_flight(struct wire_requester *r)
{
	unsigned int num = 0;

	for (unsigned int n = 0; n < r->num && n <= r->at; n++) {
		const struct wire_flight *f = wire_flight_of(r, n);
		const uint32_t sent = n < r->at ? f->packets : r->at_packet;

		/* After going back, what is to be asked for again is not in flight. */
		if (f->brings_back && sent > f->got)
			num += slices_of(sent) - f->got / WIRE_SLICE;
	}
	return num;
}

void wire_requester_arm_probe(struct wire_requester *r, uint64_t now)
{
	const uint64_t at = now + wire_rtt_wait(&r->rtt);

	r->probe_at = at < r->retry_at ? at : 0;
}

void wire_requester_arm(struct wire_requester *r, uint64_t now)
{
	wire_rtt_acked(&r->rtt, r->una, now);
	r->retry_at = r->timeout_ns && r->una != r->next ? now + r->timeout_ns : 0;
	wire_requester_arm_probe(r, now);
}

void wire_requester_restore(struct wire_requester *r)
{
	r->retries = r->retry_cnt;
	r->rnr_retries = r->rnr_retry;
	r->rnrs = 0;
}

/* Sends everything from una on again. */
void wire_requester_go_back(struct wire_requester *r)
{
	wire_rtt_cancel(&r->rtt);
	r->next = r->una;
	r->at = 0;
	r->at_packet = r->num ? uvd_psn_diff(r->una, wire_flight_of(r, 0)->psn) : 0;
	r->since_ack_req = 0;
}

/* The oldest request ends. */
void wire_requester_end_oldest(struct wire_requester *r, enum ibv_wc_status status)
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
void wire_requester_fail_oldest(struct wire_requester *r, enum ibv_wc_status status)
{
	r->retry_at = r->rnr_at = r->probe_at = 0;
	r->num = r->at = r->at_packet = 0;
	r->una = r->next = r->top;
	r->ops->complete(r->user, status);
}

/* ---- packets ----------------------------------------------------------------------------------------------------- */

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

/*
 * Does the request wait for a receive of the responder's? Once its first packet has been acknowledged, it has one, or its last packet
 * will see.
 */
static bool lacks_credit(const struct wire_requester *r, const struct wire_flight *f)
{
	return f->takes_receive && uvd_psn_diff(r->una, f->psn) <= 0 && wire_credits_lack(&r->credits, f->ssn);
}

/* Must the packet ask for an acknowledgement: at least each half window does, and its end. */
static bool asks_for_ack(struct wire_requester *r, bool must_ask)
{
	const bool asks = must_ask || wire_requester_in_flight(r) + 1 >= most_in_flight(r) ||
			  r->since_ack_req + 1 >= most_in_flight(r) / 2;

	r->since_ack_req = asks ? 0 : r->since_ack_req + 1;
	return asks;
}

static void transmit(struct wire_requester *r, const struct uvd_packet *p, uint32_t psns)
{
	r->ops->transmit(r->user, p);
	r->next = uvd_psn_add(r->next, psns);
	if (uvd_psn_diff(r->next, r->top) > 0) {
		r->top = r->next;
		if (p->ack_req)
			wire_rtt_sent(&r->rtt, uvd_psn_add(p->psn, 1), r->now);
	}
	r->at_packet += psns;
}

static void send_data_packet(struct wire_requester *r, const struct soft_send_wqe *wqe, const struct wire_flight *f,
			     const uint8_t *bytes, uint32_t len)
{
	const bool is_last = r->at_packet + 1 == f->packets;
	const bool must_ask = is_last || lacks_credit(r, f);
	struct uvd_packet p = packet_of(r, wqe, uvd_request_operation(wqe->opcode, !r->at_packet, is_last));

	p.payload = bytes;
	p.payload_len = len;
	p.solicited = is_last && wqe->send_flags & IBV_SEND_SOLICITED;
	p.ack_req = asks_for_ack(r, must_ask);
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
	struct uvd_packet p = packet_of(r, wqe, uvd_request_operation(wqe->opcode, true, true));

	p.ack_req = true;
	if (wqe->opcode == IBV_WR_RDMA_READ) {
		p.va += offset;
		p.length = left < packets * r->c.mtu ? left : packets * r->c.mtu;
	} else {
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

	return sent < most_in_flight(r) ? most_in_flight(r) - sent : 0;
}

/* How many packets of the message, which has begun, may be sent now? */
static uint32_t may_send_of(const struct wire_requester *r, const struct wire_flight *f)
{
	const uint32_t left = window_left(r);

	if (!lacks_credit(r, f))
		return left;
	return left && !r->at_packet;
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
	if (!r->share || (packets > window_left(r) && wire_requester_in_flight(r)))
		return false;
	return reads_in_flight(r) < r->max_rd_atomic;
}

/* Are reads or atomics, which a fence waits for, before the request that is to begin? */
static bool is_fenced(struct wire_requester *r, const struct soft_send_wqe *wqe)
{
	if (!(wqe->send_flags & IBV_SEND_FENCE))
		return false;
	for (unsigned int n = 0; n < r->num; n++)
		if (wire_flight_of(r, n)->brings_back)
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
	if (is_packetless(wqe))
		return true;
	if (soft_op_takes_receive(wqe->opcode) && !wire_credits_may_begin(&r->credits, r->num))
		return false;
	return window_left(r);
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
		wire_requester_fail_oldest(r, outcome.status);
	return outcome;
}

/* Adds the request to those in flight. */
static struct soft_outcome begin(struct wire_requester *r, const struct soft_send_wqe *wqe)
{
	struct soft_outcome outcome;
	struct wire_flight *f = wire_flight_of(r, r->num);

	if (is_packetless(wqe))
		return end_packetless(r, wqe);
	outcome = r->ops->check(r->user, wqe);
	if (!soft_is_sent(outcome)) {
		/* Requests before it may still succeed: it is checked again when it is the oldest. */
		if (outcome.kind == SOFT_DONE && !r->num)
			wire_requester_fail_oldest(r, outcome.status);
		return outcome;
	}
	if (!r->num)
		wire_requester_restore(r);
	*f = (struct wire_flight){
		.psn = r->next,
		.packets = soft_packets(r->c.mtu_code, wqe->length),
		.brings_back = soft_op_brings_back(wqe->opcode),
		.takes_receive = soft_op_takes_receive(wqe->opcode),
	};
	f->ssn = wire_credits_begin(&r->credits, f->brings_back ? slices_of(f->packets) : 1, f->takes_receive);
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
	const uint32_t packets = least3(may_send_of(r, f), f->packets - r->at_packet, wire_packets_at_once(&r->c));
	const uint32_t offset = r->at_packet * r->c.mtu, left = wqe->length - offset;
	const uint32_t len = left < packets * r->c.mtu ? left : packets * r->c.mtu;
	const uint8_t *bytes = NULL;
	struct soft_outcome outcome = r->ops->gather(r->user, wqe, offset, len, &bytes);

	if (!soft_is_sent(outcome)) {
		if (outcome.kind == SOFT_DONE && !r->at)
			wire_requester_fail_oldest(r, outcome.status);
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
	f = wire_flight_of(r, r->at);
	if (!f->brings_back) {
		struct soft_outcome outcome = may_send_of(r, f) ? send_run_of(r, wqe, f) : soft_no_answer;

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

	r->now = now;
	/* After SOFT_LOST the machine may be gone. */
	while (soft_is_sent(outcome) && !r->rnr_at && (uint32_t)uvd_psn_diff(r->next, before) < most)
		outcome = send_some(r);
	if (outcome.kind == SOFT_LOST)
		return outcome;
	if (r->una != r->next && !r->retry_at)
		wire_requester_arm(r, now);
	r->waits_for_older = outcome.kind == SOFT_DONE && !soft_is_sent(outcome) && r->num;
	return soft_sent;
}

bool wire_requester_may_send(struct wire_requester *r, const struct soft_send_wqe *wqe)
{
	if (!wqe || r->rnr_at || r->waits_for_older)
		return false;
	if (r->at == r->num)
		return may_begin(r, wqe);
	if (wire_flight_of(r, r->at)->brings_back)
		return may_read(r, slice_left(r, wire_flight_of(r, r->at)));
	return may_send_of(r, wire_flight_of(r, r->at));
}

bool wire_requester_starves(const struct wire_requester *r, const struct soft_send_wqe *wqe)
{
	return !r->share && !r->rnr_at && !r->waits_for_older && wqe;
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

/* An answer is late, but not yet for the QP's timeout. */
static void probe(struct wire_requester *r, uint64_t now)
{
	r->ops->count(r->user, UVD_PORT_RETRIES);
	r->wants_read_again = false;
	/* Before a round trip is known, the answer may just be on its way. */
	if (r->rtt.mean)
		wire_window_lost(&r->window, r->top, true);
	wire_requester_go_back(r);
	wire_rtt_probed(&r->rtt);
	wire_requester_arm_probe(r, now);
}

struct soft_outcome wire_requester_tick(struct wire_requester *r, uint64_t now)
{
	if (r->rnr_at && now >= r->rnr_at)
		r->rnr_at = 0;
	if (r->retry_at && now >= r->retry_at) {
		r->wants_read_again = false;
		wire_requester_retry(r, now, true);
	} else if (r->probe_at && now >= r->probe_at) {
		probe(r, now);
	}
	return soft_sent;
}

void wire_requester_resend(struct wire_requester *r)
{
	wire_requester_go_back(r);
	r->retry_at = r->probe_at = 0;
}

uint64_t wire_requester_deadline(const struct wire_requester *r)
{
	uint64_t at = r->probe_at ?: r->retry_at; /* a probe comes before the timeout, or not at all */

	if (r->rnr_at && (!at || r->rnr_at < at))
		at = r->rnr_at;
	return at;
}

bool wire_requester_sent(const struct wire_requester *r, uint32_t psn)
{
	return uvd_psn_diff(psn, r->una) >= 0 && uvd_psn_diff(psn, r->top) < 0;
}
