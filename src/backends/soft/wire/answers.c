/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The requester's answers: acknowledgements, NAKs, and the data of READs and atomics. */
#include <string.h>
#include "backends/soft/transport/transport.h"
#include "backends/soft/wire/requester_parts.h"

enum {
	RNR_LEAST_NS = 100 * 1000,
	RNR_MOST_NS = 8 * 1000 * 1000, /* of waits that grow */
	RNR_PLAIN = 4, /* RNR NAKs in a row, before the wait grows */
};

/*
 * Everything before psn has arrived at the responder. Stops at a request whose answer brings bytes: those are missing then. Returns
 * whether all of it is acknowledged.
 */
static bool acknowledge(struct wire_requester *r, uint32_t psn, uint64_t now)
{
	const uint32_t before = r->una;

	while (r->num && uvd_psn_diff(psn, r->una) > 0) {
		struct wire_flight *f = wire_flight_of(r, 0);
		const uint32_t end = uvd_psn_add(f->psn, f->packets);

		if (f->brings_back && f->got < f->packets)
			break;
		r->una = uvd_psn_diff(psn, end) < 0 ? psn : end;
		if (r->una == end)
			wire_requester_end_oldest(r, IBV_WC_SUCCESS);
	}
	if (r->una != before) {
		wire_window_acked(&r->window, uvd_psn_diff(r->una, before), r->una);
		wire_requester_restore(r);
		/* An answer to a late copy: what goes out next is behind it. */
		if (uvd_psn_diff(r->una, r->next) > 0)
			wire_requester_go_back(r);
		wire_requester_arm(r, now);
	}
	return uvd_psn_diff(psn, r->una) <= 0;
}

/* Sends from una on again, if the responder has told so. */
void wire_requester_retry(struct wire_requester *r, uint64_t now, bool is_timeout)
{
	if (!r->num)
		return;
	if (!r->retries) {
		r->ops->count(r->user, UVD_PORT_RETRY_EXCEEDED);
		wire_requester_fail_oldest(r, IBV_WC_RETRY_EXC_ERR);
		return;
	}
	r->retries--;
	r->ops->count(r->user, UVD_PORT_RETRIES);
	wire_window_lost(&r->window, r->top, is_timeout);
	wire_requester_go_back(r);
	r->retry_at = is_timeout && r->timeout_ns ? now + r->timeout_ns : 0;
	wire_requester_arm_probe(r, now);
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
		wire_requester_fail_oldest(r, IBV_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	if (r->rnr_retry != 7)
		r->rnr_retries--;
	wire_requester_go_back(r);
	r->retry_at = r->probe_at = 0;
	r->rnr_at = now + rnr_wait(r, p->syndrome & UVD_AETH_VALUE);
}

static void take_nak(struct wire_requester *r, const struct uvd_packet *p, uint64_t now)
{
	if (p->syndrome == UVD_AETH_SEQUENCE_ERROR)
		r->ops->count(r->user, UVD_PORT_SEQUENCE_NAKS);
	/* A NAK acknowledges all before it. If an answer is missing among these, that comes first. */
	if (!acknowledge(r, p->psn, now) || !r->num) {
		if (r->num)
			wire_requester_retry(r, now, false);
		return;
	}
	if ((p->syndrome & UVD_AETH_KIND) == UVD_AETH_RNR)
		take_rnr(r, p, now);
	else if (p->syndrome == UVD_AETH_SEQUENCE_ERROR)
		wire_requester_retry(r, now, false);
	else
		wire_requester_fail_oldest(r, status_of_nak(p->syndrome));
}

static void take_ack(struct wire_requester *r, const struct uvd_packet *p, uint64_t now)
{
	const uint8_t kind = p->syndrome & UVD_AETH_KIND;

	if (kind != UVD_AETH_ACK_KIND) {
		take_nak(r, p, now);
		return;
	}
	/* The responder has executed a READ or atomic whose answer has not arrived: it is lost (9.7.5.1.3). */
	if (!acknowledge(r, uvd_psn_add(p->psn, 1), now) && !r->wants_read_again) {
		r->wants_read_again = true;
		wire_requester_retry(r, now, false);
	}
}

/* Is the packet the next of the answer to the oldest request? */
static bool is_next_answer(struct wire_requester *r, const struct uvd_packet *p)
{
	const struct wire_flight *f = wire_flight_of(r, 0);

	return r->num && f->brings_back && p->psn == uvd_psn_add(f->psn, f->got) && p->psn == r->una;
}

static uint32_t answer_length(const struct wire_requester *r, const struct wire_flight *f, uint32_t length)
{
	const uint32_t offset = f->got * r->c.mtu;

	return length - offset < r->c.mtu ? length - offset : r->c.mtu;
}

/*
 * Stores the payloads of the first packets that are the next ones of a READ's answer, by one access. Returns their number in *num; 0: the
 * first packet is not the next one. One of another length than it must have is an error of the request (hfi1's rc_rcv_resp()).
 */
static struct soft_outcome take_read_run(struct wire_requester *r, const struct uvd_packet *packets, unsigned int *num)
{
	const struct soft_send_wqe *wqe = r->ops->peek(r->user, 0);
	const unsigned int most = *num;
	uint8_t *buffer = r->ops->buffer(r->user);
	struct wire_flight *f = wire_flight_of(r, 0);
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
		r->una = uvd_psn_add(r->una, 1);
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
	struct wire_flight *f = wire_flight_of(r, 0);

	/* The value goes to the client's memory as its CPU stores it. */
	memcpy(r->ops->buffer(r->user), &p->original, sizeof(p->original));
	f->got = 1;
	r->una = uvd_psn_add(r->una, 1);
	return r->ops->scatter(r->user, wqe, 0, sizeof(p->original));
}

static void after_answers(struct wire_requester *r, unsigned int num, struct soft_outcome outcome, uint64_t now)
{
	if (outcome.kind == SOFT_DONE && outcome.status != IBV_WC_SUCCESS) {
		wire_requester_fail_oldest(r, outcome.status);
		return;
	}
	r->wants_read_again = false;
	wire_window_acked(&r->window, num, r->una);
	wire_requester_restore(r);
	if (wire_flight_of(r, 0)->got == wire_flight_of(r, 0)->packets)
		wire_requester_end_oldest(r, IBV_WC_SUCCESS);
	if (uvd_psn_diff(r->una, r->next) > 0)
		wire_requester_go_back(r);
	wire_requester_arm(r, now);
}

/* Packets of an answer that do not come next: earlier ones are copies; after a gap the missing ones are asked for again, once. */
static void take_gap(struct wire_requester *r, const struct uvd_packet *p, uint64_t now)
{
	if (uvd_psn_diff(p->psn, r->una) <= 0 || uvd_psn_diff(p->psn, r->top) >= 0)
		return;
	if (acknowledge(r, p->psn, now) || r->wants_read_again)
		return;
	r->wants_read_again = true;
	wire_requester_retry(r, now, false);
}

/* An ATOMIC WRITE is answered as a READ of no bytes is. */
static bool is_answer_to_atomic_write(struct wire_requester *r, const struct uvd_packet *p)
{
	return r->num && r->ops->peek(r->user, 0)->opcode == IBV_WR_ATOMIC_WRITE && p->psn == r->una && !p->payload_len;
}

/* The credits of an acknowledgement. One that acknowledges nothing new may bring some, too (hfi1's rc_rcv_resp()). */
static void take_credits(struct wire_requester *r, const struct uvd_packet *p)
{
	if (!(uvd_opcode_info(p->opcode)->is & UVD_HAS_AETH) || (p->syndrome & UVD_AETH_KIND) != UVD_AETH_ACK_KIND)
		return;
	if (uvd_psn_diff(p->psn, r->una) >= -1 && uvd_psn_diff(p->psn, r->top) < 0)
		wire_credits_told(&r->credits, p->syndrome & UVD_AETH_VALUE, p->msn);
}

static struct soft_outcome take_answer(struct wire_requester *r, const struct uvd_packet *packets, unsigned int *num,
				       uint64_t now)
{
	const uint32_t is = uvd_opcode_info(packets->opcode)->is;
	struct soft_outcome outcome = soft_sent;
	unsigned int taken = *num;

	*num = 1;
	take_credits(r, packets);
	if (!r->num)
		return outcome;
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
		acknowledge(r, uvd_psn_add(packets->psn, 1), now);
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
	while (num) {
		unsigned int taken = num;
		struct soft_outcome outcome = take_answer(r, packets, &taken, now);

		if (outcome.kind == SOFT_LOST)
			return outcome;
		/* The answer to a READ has them in its first packet and in its last one. */
		take_credits(r, &packets[taken - 1]);
		packets += taken;
		num -= taken;
	}
	return soft_sent;
}
