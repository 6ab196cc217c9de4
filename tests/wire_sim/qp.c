/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The owner of both machines of a QP, as carrier.c is in the engine: an inbox, a timer, and operations that have no client memory but check
 * what arrives. Message n of a flow is at address n << 32 at the responder.
 */
#include <string.h>
#include "backends/soft/transport/transport.h"
#include "sim.h"

enum { STEP_BYTES = 64 << 10 }; /* as the engine's WIRE_STEP_BYTES */

static void sim_fault(struct sim_qp *qp)
{
	qp->sim->result.faults++;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static enum ibv_wr_opcode sim_opcode(const struct sim_flow *flow, uint64_t message)
{
	return flow->opcodes[message % flow->num_opcodes];
}

static uint32_t sim_length(const struct sim_flow *flow, uint64_t message)
{
	return soft_op_is_atomic(sim_opcode(flow, message)) ? 8 : flow->length;
}

/* The bytes of a message at an offset that is a multiple of 8. */
static uint64_t sim_word(const struct sim_qp *qp, uint64_t message, uint32_t offset)
{
	return ((uint64_t)(qp->number / 2) << 48 ^ message << 24 ^ offset >> 3) * UINT64_C(0x9e3779b97f4a7c15);
}

static void sim_fill(struct sim_qp *qp, uint64_t message, uint32_t offset, uint32_t len)
{
	for (uint32_t done = 0; qp->sim->c.checks && done < len; done += 8) {
		const uint64_t word = sim_word(qp, message, offset + done);

		memcpy(qp->sim->buffer + done, &word, len - done < 8 ? len - done : 8);
	}
}

static void sim_compare(struct sim_qp *qp, uint64_t message, uint32_t offset, uint32_t len)
{
	for (uint32_t done = 0; qp->sim->c.checks && done < len; done += 8) {
		const uint64_t word = sim_word(qp, message, offset + done);

		if (memcmp(qp->sim->buffer + done, &word, len - done < 8 ? len - done : 8)) {
			sim_fault(qp);
			return;
		}
	}
}

static void sim_count_bytes(struct sim_qp *qp, uint32_t bytes)
{
	if (qp->sim->now > qp->sim->c.duration_ns)
		return;
	qp->bytes += bytes;
	qp->sim->result.bytes += bytes;
}

/* ---- the requester's operations ---------------------------------------------------------------------------------- */

static const struct soft_send_wqe *sim_peek(void *user, unsigned int n)
{
	struct sim_qp *qp = user;
	const uint64_t message = qp->completed + n;
	struct soft_send_wqe *wqe = &qp->wqes[message % SIM_DEPTH];

	if (n >= SIM_DEPTH || qp->is_dead)
		return NULL;
	if (message == qp->filled) {
		if (qp->sim->now >= qp->sim->c.duration_ns || (qp->flow->most && message == qp->flow->most))
			return NULL;
		*wqe = (struct soft_send_wqe){
			.wr_id = message,
			.opcode = sim_opcode(qp->flow, message),
			.length = sim_length(qp->flow, message),
			.remote_addr = message << 32,
			.compare_add = 1,
		};
		qp->filled++;
	}
	return message < qp->filled ? wqe : NULL;
}

static struct soft_outcome sim_requester_check(void *user, const struct soft_send_wqe *wqe)
{
	return soft_sent;
}

static struct soft_outcome sim_gather(void *user, const struct soft_send_wqe *wqe, uint32_t offset, uint32_t len,
				      const uint8_t **bytes)
{
	struct sim_qp *qp = user;

	sim_fill(qp, wqe->wr_id, offset, len);
	*bytes = qp->sim->buffer;
	return soft_sent;
}

static uint8_t *sim_buffer(void *user)
{
	struct sim_qp *qp = user;

	return qp->sim->buffer;
}

static struct soft_outcome sim_scatter(void *user, const struct soft_send_wqe *wqe, uint32_t offset, uint32_t len)
{
	struct sim_qp *qp = user;
	uint64_t original;

	if (soft_op_is_atomic(wqe->opcode)) {
		memcpy(&original, qp->sim->buffer, sizeof(original));
		if (original != qp->atomics++)
			sim_fault(qp);
		return soft_sent;
	}
	if (offset != qp->scattered || wqe->wr_id != qp->completed)
		sim_fault(qp);
	sim_compare(qp, wqe->wr_id, offset, len);
	qp->scattered += len;
	sim_count_bytes(qp, len);
	return soft_sent;
}

static struct soft_outcome sim_local(void *user, const struct soft_send_wqe *wqe)
{
	sim_fault(user);
	return soft_sent;
}

static void sim_transmit(void *user, const struct uvd_packet *packet)
{
	struct sim_qp *qp = user;

	qp->sent_bytes += packet->payload_len;
	if (qp->sim->now <= qp->sim->c.duration_ns)
		qp->sim->result.sent_bytes += packet->payload_len;
	sim_send(qp->sim, qp->engine, qp->peer, packet);
}

static void sim_flush(void *user)
{
}

static void sim_complete(void *user, enum ibv_wc_status status)
{
	struct sim_qp *qp = user;
	const struct soft_send_wqe *wqe = sim_peek(qp, 0);

	if (!wqe) {
		sim_fault(qp);
		return;
	}
	if (status != IBV_WC_SUCCESS) {
		qp->sim->result.failures++;
		qp->is_dead = true;
		return;
	}
	if (wqe->opcode == IBV_WR_RDMA_READ && qp->scattered != wqe->length)
		sim_fault(qp);
	qp->scattered = 0;
	qp->completed++;
	qp->sim->result.messages++;
	qp->sim->result.end_ns = qp->sim->now;
}

static void sim_count(void *user, enum uvd_port_counter which)
{
	struct sim_qp *qp = user;

	if (which != UVD_PORT_RETRIES)
		return;
	if (qp->sim->is_timer)
		qp->sim->result.timeouts++;
	else
		qp->sim->result.naks++;
}

static const struct wire_requester_ops sim_requester_ops = {
	.peek = sim_peek,
	.check = sim_requester_check,
	.gather = sim_gather,
	.buffer = sim_buffer,
	.scatter = sim_scatter,
	.local = sim_local,
	.transmit = sim_transmit,
	.flush = sim_flush,
	.complete = sim_complete,
	.count = sim_count,
};

/* ---- the responder's operations ---------------------------------------------------------------------------------- */

/* A READ that was executed before: its bytes are the same. */
static void sim_take_copy(struct sim_qp *qp, const struct soft_arrival *arrival, uint32_t offset, uint32_t length)
{
	const uint64_t at = arrival->remote_addr + offset;

	if (arrival->opcode != IBV_WR_RDMA_READ || at >> 32 > qp->executed)
		sim_fault(qp);
	sim_fill(qp, at >> 32, (uint32_t)at, length);
}

/* Is the part the one that comes next? A READ's is a slice of the message. */
static bool sim_is_next(struct sim_qp *qp, const struct soft_arrival *arrival, uint32_t offset, uint32_t length)
{
	const enum ibv_wr_opcode opcode = sim_opcode(qp->flow, qp->executed);
	const uint64_t at = arrival->remote_addr + (opcode == IBV_WR_RDMA_READ ? offset : 0);

	if (arrival->opcode != opcode &&
	    !(opcode == IBV_WR_RDMA_WRITE_WITH_IMM && arrival->opcode == IBV_WR_RDMA_WRITE))
		return false;
	if (opcode == IBV_WR_RDMA_READ)
		return at == (qp->executed << 32 | qp->offset) && qp->offset + length <= qp->flow->length;
	return offset == qp->offset && arrival->psn == qp->psn && (soft_op_is_send(opcode) || at >> 32 == qp->executed);
}

static struct soft_outcome sim_take(void *user, const struct soft_arrival *arrival, uint32_t offset, uint32_t length,
				    bool is_last, bool is_copy)
{
	struct sim_qp *qp = user;

	if (!arrival) {
		sim_fault(qp);
		return soft_no_answer;
	}
	if (is_copy) {
		sim_take_copy(qp, arrival, offset, length);
		return soft_sent;
	}
	if (!sim_is_next(qp, arrival, offset, length))
		sim_fault(qp);
	if (soft_op_is_atomic(arrival->opcode)) {
		memcpy(qp->sim->buffer, &qp->counter, sizeof(qp->counter));
		qp->counter += arrival->compare_add;
	} else if (arrival->opcode == IBV_WR_RDMA_READ) {
		sim_fill(qp, qp->executed, qp->offset, length);
	} else {
		sim_compare(qp, qp->executed, offset, length);
		sim_count_bytes(qp, length);
	}
	qp->offset += length;
	if (is_last && qp->offset != sim_length(qp->flow, qp->executed) && arrival->opcode != IBV_WR_RDMA_READ)
		sim_fault(qp);
	if (is_last && qp->offset == sim_length(qp->flow, qp->executed)) {
		qp->psn = (qp->psn + soft_packets(qp->sim->c.mtu, qp->offset)) & UVD_PSN_MASK;
		qp->offset = 0;
		qp->executed++;
	}
	return soft_sent;
}

static void sim_finish(void *user)
{
}

static const struct wire_responder_ops sim_responder_ops = {
	.buffer = sim_buffer,
	.take = sim_take,
	.finish = sim_finish,
	.transmit = sim_transmit,
	.flush = sim_flush,
	.count = sim_count,
};

/* ---- a run ------------------------------------------------------------------------------------------------------- */

static bool sim_is_answer(const struct sim_packet *p)
{
	return uvd_opcode_info(p->packet.opcode)->is & UVD_IS_RESPONSE;
}

static void sim_inbox_drop(struct sim_qp *qp, unsigned int num)
{
	while (num--) {
		struct sim_packet *p = qp->inbox;

		qp->inbox = p->next;
		sim_put_packet(qp->sim, p);
		qp->num_inbox--;
	}
	if (!qp->inbox)
		qp->inbox_end = &qp->inbox;
}

/* Takes the packets at the head of the inbox that are of one kind. */
static void sim_take_some(struct sim_qp *qp)
{
	struct uvd_packet packets[UVD_SOCKET_BATCH];
	const bool answers = sim_is_answer(qp->inbox);
	struct soft_outcome outcome;
	unsigned int num = 0;

	for (struct sim_packet *p = qp->inbox; p && num < UVD_SOCKET_BATCH && sim_is_answer(p) == answers; p = p->next)
		packets[num++] = p->packet;
	if (answers)
		outcome = wire_requester_answers(&qp->requester, packets, num, qp->sim->now);
	else
		num = wire_responder_requests(&qp->responder, packets, num, &outcome);
	sim_inbox_drop(qp, num);
}

/* Takes what has arrived, and sends up to `budget` bytes of answers to READs. Returns whether that was all. */
static bool sim_take_all(struct sim_qp *qp, uint32_t budget)
{
	while (!qp->is_dead && (qp->inbox || wire_responder_is_reading(&qp->responder))) {
		if (!wire_responder_is_reading(&qp->responder)) {
			sim_take_some(qp);
			continue;
		}
		if (!budget)
			return false;
		budget -= budget < WIRE_RUN_BYTES ? budget : WIRE_RUN_BYTES;
		wire_responder_read(&qp->responder);
	}
	return true;
}

static bool sim_is_requester(const struct sim_qp *qp)
{
	return !(qp->number % 2);
}

static void sim_arm_timer(struct sim_qp *qp)
{
	const uint64_t at = wire_requester_deadline(&qp->requester);

	if (!at || (qp->timer_at && qp->timer_at <= at) || qp->is_dead)
		return;
	qp->timer_at = at;
	sim_schedule(qp->sim, at, SIM_TIMER, qp->number, NULL);
}

void sim_qp_wake(struct sim_qp *qp)
{
	struct sim *s = qp->sim;

	if (qp->runs_soon)
		return;
	qp->runs_soon = true;
	sim_schedule(s, s->now + s->c.wake_ns / 2 + sim_random(s) % (s->c.wake_ns + 1), SIM_RUNS, qp->number, NULL);
}

void sim_qp_runs(struct sim_qp *qp)
{
	struct sim *s = qp->sim;
	const uint64_t link_free = s->engines[qp->engine].link_free;
	bool more;

	qp->runs_soon = false;
	more = !sim_take_all(qp, STEP_BYTES);
	if (qp->is_dead)
		return;
	if (sim_is_requester(qp)) {
		s->is_timer = true;
		wire_requester_tick(&qp->requester, s->now);
		s->is_timer = false;
		wire_requester_send(&qp->requester, s->now, STEP_BYTES);
		sim_arm_timer(qp);
		more |= !qp->is_dead && wire_requester_may_send(&qp->requester, sim_peek(qp, qp->requester.at));
	}
	/* The thread of an engine waits for room in its socket before it goes on. */
	if (more) {
		qp->runs_soon = true;
		sim_schedule(s, link_free > s->now ? link_free : s->now + 1000, SIM_RUNS, qp->number, NULL);
	}
}

void sim_qp_timer(struct sim_qp *qp, uint64_t at)
{
	if (qp->timer_at != at)
		return; /* a later deadline, which an earlier one has replaced */
	qp->timer_at = 0;
	sim_qp_wake(qp);
}

void sim_qp_deliver(struct sim_qp *qp, struct sim_packet *p)
{
	if (qp->is_dead || qp->num_inbox == WIRE_INBOX) {
		qp->sim->result.dropped++;
		sim_put_packet(qp->sim, p);
		return;
	}
	p->next = NULL;
	*qp->inbox_end = p;
	qp->inbox_end = &p->next;
	if (++qp->num_inbox > qp->most_inbox)
		qp->most_inbox = qp->num_inbox;
	if (qp->num_inbox > qp->sim->result.most_inbox)
		qp->sim->result.most_inbox = qp->num_inbox;
	sim_qp_wake(qp);
}

void sim_qp_init(struct sim *s, unsigned int number)
{
	struct sim_qp *qp = &s->qps[number];

	*qp = (struct sim_qp){
		.sim = s,
		.number = number,
		.peer = number ^ 1,
		.flow = &s->flows[number / 2],
		.connection = { .transport = UVD_TRANSPORT_RC,
				.pkey = 0xffff,
				.dest_qpn = number ^ 1,
				.mtu = 128u << s->c.mtu,
				.mtu_code = s->c.mtu },
		.inbox_end = &qp->inbox,
		.psn = s->c.first_psn,
	};
	qp->engine = number % 2 ? qp->flow->to : qp->flow->from;
	wire_responder_init(&qp->responder, &sim_responder_ops, qp, &qp->connection, s->c.first_psn, qp->records,
			    s->c.rd_atomic);
	wire_requester_init(&qp->requester, &sim_requester_ops, qp, &qp->connection, s->c.first_psn, WIRE_WINDOW_MOST);
	qp->requester.timeout_ns = UINT64_C(4096) << s->c.timeout;
	qp->requester.retry_cnt = s->c.retry_cnt;
	qp->requester.rnr_retry = 7;
	qp->requester.max_rd_atomic = s->c.rd_atomic;
}

void sim_qp_check(struct sim_qp *qp)
{
	const struct sim_qp *peer = &qp->sim->qps[qp->peer];

	if (!sim_is_requester(qp) || qp->is_dead || peer->is_dead)
		return;
	if (qp->completed != qp->filled || peer->executed != qp->completed || peer->offset || qp->requester.num)
		sim_fault(qp);
}
