/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A QP's requester and responder on the wire, and a peer that sends any packets. The input is a list of steps of STEP bytes: a packet, a
 * request, a wait, or the outcome of the next part that is executed. Packets of one kind in a row are a batch.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/gen.h"
#include "tests/wire_qp/machine.h"

enum { STEP = 8, BATCH = 16, MTU = 256, ROUNDS = 1000 };

enum step { STEP_REQUEST, STEP_ANSWER, STEP_POST, STEP_WAIT, STEP_OUTCOME, STEPS };

static struct machine wire_machine;
static struct uvd_packet wire_batch[BATCH];
static unsigned int wire_num; /* of the batch */
static uint8_t wire_payload[UVD_IB_MTU_MAX];
static struct soft_outcome wire_outcome; /* of the next part */
/* READs that were executed, in a ring of as many as there are records. */
static struct soft_arrival wire_reads[MACHINE_RECORDS];
static unsigned int wire_num_reads;
/* The machines have sent this since the batch came. */
static unsigned int wire_acks, wire_answers, wire_originals, wire_sent_requests;
static const char *wire_result;

static void wire_expect(bool holds)
{
	if (!holds)
		abort();
}

/* ---- the ends ---------------------------------------------------------------------------------------------------- */

static void wire_sent(struct machine *m, const struct uvd_packet *p)
{
	const struct uvd_opcode_info *info = uvd_opcode_info(p->opcode);

	wire_expect(info->name && p->payload_len <= MTU && p->psn <= UVD_PSN_MASK && uvd_packet_fits_mtu(p, MTU));
	wire_acks += p->opcode == UVD_RC_ACKNOWLEDGE;
	wire_originals += p->opcode == UVD_RC_ATOMIC_ACKNOWLEDGE;
	wire_answers += info->is & UVD_IS_RESPONSE && info->is & UVD_IS_READ;
	wire_sent_requests += info->is & UVD_IS_REQUEST ? 1 : 0;
}

static void wire_completed(struct machine *m, const struct soft_send_wqe *wqe, enum ibv_wc_status status)
{
	wire_result = ibv_wc_status_str(status);
}

static void wire_finished(struct machine *m)
{
}

/* Is the copy a part of a READ that was executed? */
static bool wire_was_read(const struct soft_arrival *a)
{
	for (unsigned int i = 0; i < MACHINE_RECORDS && i < wire_num_reads; i++) {
		const struct soft_arrival *read = &wire_reads[i];
		const uint64_t offset = a->remote_addr - read->remote_addr;

		if (a->rkey == read->rkey && offset + a->length <= read->length && offset <= read->length)
			return true;
	}
	return false;
}

static struct soft_outcome wire_take(struct machine *m, const struct soft_arrival *a, uint32_t offset, uint32_t length,
				     bool is_last, bool is_copy)
{
	const struct soft_outcome outcome = wire_outcome;

	wire_outcome = soft_sent;
	if (!a)
		return soft_no_answer;
	wire_expect(length <= WIRE_RUN_BYTES && (uint64_t)offset + length <= a->length);
	wire_expect(is_last == (offset + length == a->length) || (soft_op_is_send(a->opcode) && !is_last));
	/* Whatever is executed is what comes next; a copy is of a READ, and of one that was executed. */
	if (is_copy)
		wire_expect(a->opcode == IBV_WR_RDMA_READ && wire_was_read(a) &&
			    uvd_psn_diff(a->psn, m->responder.expected) < 0);
	else if (soft_op_brings_back(a->opcode) || a->opcode == IBV_WR_ATOMIC_WRITE)
		wire_expect(a->psn == m->responder.expected);
	if (is_last && !is_copy && a->opcode == IBV_WR_RDMA_READ && soft_is_sent(outcome))
		wire_reads[wire_num_reads++ % MACHINE_RECORDS] = *a;
	return outcome;
}

/* These hold whatever the peer sends. */
static void wire_check(void)
{
	const struct wire_requester *r = &wire_machine.requester;
	const int32_t in_flight = uvd_psn_diff(r->next, r->una);

	wire_expect(in_flight >= 0 && in_flight <= WIRE_WINDOW_MOST && uvd_psn_diff(r->top, r->next) >= 0);
	wire_expect(r->window.size >= WIRE_WINDOW_LEAST && r->window.size <= WIRE_WINDOW_MOST);
	wire_expect(r->num <= WIRE_REQUESTS && r->at <= r->num);
	/* Whatever is in flight has a deadline. */
	wire_expect(wire_machine.has_failed || !in_flight || wire_requester_deadline(r));
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* The batch has at most one acknowledgement for a packet, an answer for an atomic, and those of the READs that are in it. */
static void wire_deliver_batch(void)
{
	uint64_t reads = 0;
	unsigned int atomics = 0;
	const unsigned int num = wire_num;

	if (!num)
		return;
	wire_num = wire_acks = wire_answers = wire_originals = wire_sent_requests = 0;
	for (unsigned int i = 0; i < num; i++) {
		const struct uvd_packet *p = &wire_batch[i];

		if (p->opcode == UVD_RC_RDMA_READ_REQUEST)
			reads += p->length / MTU + 1;
		reads += p->opcode == UVD_RC_ATOMIC_WRITE;
		atomics += p->opcode == UVD_RC_COMPARE_SWAP || p->opcode == UVD_RC_FETCH_ADD;
	}
	machine_receive(&wire_machine, wire_batch, num);
	wire_expect(wire_acks <= num && wire_answers <= reads && wire_originals <= atomics);
	wire_expect(uvd_opcode_info(wire_batch->opcode)->is & UVD_IS_REQUEST ? !wire_sent_requests : !wire_acks);
	/* An answer sends at most a window once more. */
	wire_expect(wire_sent_requests <= 2 * WIRE_WINDOW_MOST);
	wire_check();
}

static void wire_add_packet(const uint8_t *s, bool is_answer)
{
	static const uint8_t requests[] = {
		UVD_SEND_FIRST,
		UVD_SEND_MIDDLE,
		UVD_SEND_LAST,
		UVD_SEND_LAST_WITH_IMMEDIATE,
		UVD_SEND_ONLY,
		UVD_SEND_ONLY_WITH_IMMEDIATE,
		UVD_RDMA_WRITE_FIRST,
		UVD_RDMA_WRITE_MIDDLE,
		UVD_RDMA_WRITE_LAST,
		UVD_RDMA_WRITE_LAST_WITH_IMMEDIATE,
		UVD_RDMA_WRITE_ONLY,
		UVD_RDMA_WRITE_ONLY_WITH_IMMEDIATE,
		UVD_RDMA_READ_REQUEST,
		UVD_COMPARE_SWAP,
		UVD_FETCH_ADD,
		UVD_SEND_LAST_WITH_INVALIDATE,
		UVD_SEND_ONLY_WITH_INVALIDATE,
		UVD_ATOMIC_WRITE,
	};
	static const uint8_t answers[] = { UVD_ACKNOWLEDGE,
					   UVD_ACKNOWLEDGE,
					   UVD_ATOMIC_ACKNOWLEDGE,
					   UVD_RDMA_READ_RESPONSE_FIRST,
					   UVD_RDMA_READ_RESPONSE_MIDDLE,
					   UVD_RDMA_READ_RESPONSE_LAST,
					   UVD_RDMA_READ_RESPONSE_ONLY };
	const uint32_t lengths[] = { MTU, 0, 8, s[4], s[4] << 5, MTU + 1, UVD_IB_MTU_MAX, 1 };
	const uint32_t from = is_answer ? wire_machine.requester.una : wire_machine.responder.expected;
	struct uvd_packet *p = &wire_batch[wire_num];

	if (wire_num == BATCH ||
	    (wire_num && is_answer != !!(uvd_opcode_info(wire_batch->opcode)->is & UVD_IS_RESPONSE))) {
		wire_deliver_batch();
		p = wire_batch;
	}
	*p = (struct uvd_packet){
		.opcode = is_answer ? answers[s[1] % sizeof(answers)] : requests[s[1] % sizeof(requests)],
		/* Most come in their turn: behind those of the batch. */
		.psn = (from + (s[2] == 0x80 ? 1 << 23 : (int8_t)s[2]) + (s[3] & 0x80 ? wire_num : 0)) & UVD_PSN_MASK,
		.ack_req = s[5] & 1,
		.solicited = s[5] & 2,
		.length = s[5] & 4 ? (uint32_t)s[6] << 12 : (uint32_t)(s[6] << 4 | s[7] >> 4),
		.va = s[7] & 3,
		.rkey = s[7] >> 2 & 1,
		.syndrome = s[6],
		.payload = wire_payload,
	};
	if (uvd_opcode_info(p->opcode)->is & UVD_HAS_PAYLOAD)
		p->payload_len = lengths[s[3] & 7] > UVD_IB_MTU_MAX ? UVD_IB_MTU_MAX : lengths[s[3] & 7];
	wire_num++;
}

static void wire_post(const uint8_t *s)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND,	  IBV_WR_SEND_WITH_IMM,	       IBV_WR_SEND_WITH_INV,	  IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_WRITE,
		IBV_WR_LOCAL_INV,
	};
	const enum ibv_wr_opcode opcode = opcodes[s[1] % (sizeof(opcodes) / sizeof(opcodes[0]))];
	const bool is_word = soft_op_is_atomic(opcode) || opcode == IBV_WR_ATOMIC_WRITE;
	struct soft_send_wqe *wqe;

	if (wire_machine.num == MACHINE_REQUESTS)
		return;
	wqe = machine_post(&wire_machine, opcode, is_word ? 8 : s[2] << 8 | s[3]);
	wqe->send_flags = s[4] & 1 ? IBV_SEND_FENCE : 0;
	if (s[4] & 0x80)
		machine_run(&wire_machine);
}

static void wire_step(const uint8_t *s)
{
	static const struct soft_outcome outcomes[] = {
		{ .kind = SOFT_RNR, .rnr_timer = 5 },
		{ .kind = SOFT_DONE, .status = IBV_WC_REM_ACCESS_ERR },
		{ .kind = SOFT_NO_ANSWER },
	};
	const enum step step = s[0] % STEPS;

	if (step <= STEP_ANSWER) {
		wire_add_packet(s, step == STEP_ANSWER);
		return;
	}
	wire_deliver_batch();
	if (step == STEP_POST) {
		wire_post(s);
	} else if (step == STEP_WAIT) {
		wire_machine.now += (s[1] << 8 | s[2]) * 1000ull;
		machine_run(&wire_machine);
	} else {
		wire_outcome = outcomes[s[1] % 3];
	}
	wire_check();
}

static void wire_run(const uint8_t *data, size_t size)
{
	machine_init(&wire_machine, FIRST_PSN, FIRST_PSN + 1, MTU);
	wire_machine.sent = wire_sent;
	wire_machine.completed = wire_completed;
	wire_machine.take = wire_take;
	wire_machine.finished = wire_finished;
	wire_outcome = soft_sent;
	wire_num = wire_num_reads = 0;
	wire_result = "nothing completed";
	if (size) {
		wire_machine.requester.max_rd_atomic = 1 + data[0] % MACHINE_RECORDS;
		wire_machine.requester.rnr_retry = data[0] >> 2 & 7;
		wire_machine.requester.retry_cnt = data[0] >> 5;
	}
	for (size_t at = 1; at + STEP <= size && at < ROUNDS * STEP; at += STEP)
		wire_step(data + at);
	wire_deliver_batch();
}

/* Steps in their turn: random bytes would seldom be the packet that is expected. */
static size_t wire_mutate(struct fuzz_gen *gen, uint8_t *data, size_t size, size_t max)
{
	uint8_t *step;

	if (size < 1 + STEP || fuzz_chance(gen, 30)) {
		if (size + STEP > max || !size)
			return fuzz_mutate_bytes(gen, data, size, max);
		size = 1 + (size - 1) / STEP * STEP + STEP;
		step = data + size - STEP;
		for (int i = 0; i < STEP; i++)
			step[i] = fuzz_any(gen, 256);
		step[2] = step[0] % STEPS <= STEP_ANSWER && fuzz_chance(gen, 70) ? 0 : step[2];
		step[3] |= fuzz_chance(gen, 70) ? 0x80 : 0;
		return size;
	}
	if (fuzz_chance(gen, 60)) {
		step = data + 1 + fuzz_any(gen, (size - 1) / STEP) * STEP;
		step[fuzz_any(gen, STEP)] = fuzz_any(gen, 256);
		return size;
	}
	return fuzz_mutate_bytes(gen, data, size, max);
}

/* Each operation of the requester, answered; and each request to the responder. */
static size_t wire_seed(unsigned int n, uint8_t *data, size_t max, char name[64])
{
	const uint8_t steps[] = { STEP_POST,	n, 3,	0,    0x80, 0, 0,  0, STEP_ANSWER,  n,	   1, 0, 0, 0, 0x1f, 0,
				  STEP_WAIT,	4, 0,	0,    0,    0, 0,  0, STEP_REQUEST, n,	   0, 0, 0, 1, 16,   0,
				  STEP_REQUEST, n, 255, 0x80, 0,    1, 16, 0, STEP_OUTCOME, n % 3, 0, 0, 0, 0, 0,    0,
				  STEP_REQUEST, 4, 0,	0x82, 8,    1, 0,  0 };

	if (n >= 18 || max < 1 + sizeof(steps))
		return 0;
	snprintf(name, 64, "operation-%u", n);
	data[0] = 0x7f;
	memcpy(data + 1, steps, sizeof(steps));
	return 1 + sizeof(steps);
}

static void wire_tell(void)
{
	puts(wire_result);
}

const struct fuzz_target fuzz_target = {
	.name = "fuzz_wire",
	.run = wire_run,
	.mutate = wire_mutate,
	.seed = wire_seed,
	.tell = wire_tell,
};
