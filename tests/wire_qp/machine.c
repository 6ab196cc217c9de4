/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include "tests/wire_qp/machine.h"

static void machine_expect(bool holds)
{
	if (!holds)
		abort();
}

/* ---- both machines ----------------------------------------------------------------------------------------------- */

static uint8_t *machine_buffer(void *user)
{
	struct machine *m = user;

	return m->buffer;
}

static void machine_transmit(void *user, const struct uvd_packet *packet)
{
	struct machine *m = user;

	m->sent(m, packet);
}

static void machine_flush(void *user)
{
}

static void machine_count(void *user, enum uvd_port_counter which)
{
	struct machine *m = user;

	m->counts[which]++;
}

/* ---- the requester ----------------------------------------------------------------------------------------------- */

static const struct soft_send_wqe *machine_peek(void *user, unsigned int n)
{
	struct machine *m = user;

	return n < m->num && !m->has_failed ? &m->requests[(m->head + n) % MACHINE_REQUESTS] : NULL;
}

static struct soft_outcome machine_check(void *user, const struct soft_send_wqe *wqe)
{
	struct machine *m = user;

	return m->check ? m->check(m, wqe) : soft_sent;
}

static struct soft_outcome machine_gather(void *user, const struct soft_send_wqe *wqe, uint32_t offset, uint32_t len,
					  const uint8_t **bytes)
{
	struct machine *m = user;

	machine_expect((uint64_t)offset + len <= wqe->length && len <= WIRE_RUN_BYTES);
	memcpy(m->buffer, m->memory + wqe->wr_id + offset, len);
	*bytes = m->buffer;
	return soft_sent;
}

static struct soft_outcome machine_scatter(void *user, const struct soft_send_wqe *wqe, uint32_t offset, uint32_t len)
{
	struct machine *m = user;

	machine_expect((uint64_t)offset + len <= wqe->length && len <= WIRE_RUN_BYTES);
	memcpy(m->memory + wqe->wr_id + offset, m->buffer, len);
	return soft_sent;
}

static struct soft_outcome machine_local(void *user, const struct soft_send_wqe *wqe)
{
	return soft_sent;
}

static void machine_complete(void *user, enum ibv_wc_status status)
{
	struct machine *m = user;
	const struct soft_send_wqe *wqe = machine_peek(m, 0);

	machine_expect(wqe);
	m->has_failed = status != IBV_WC_SUCCESS;
	m->head++;
	m->num--;
	m->completed(m, wqe, status);
}

static const struct wire_requester_ops requester_ops = {
	.peek = machine_peek,
	.check = machine_check,
	.gather = machine_gather,
	.buffer = machine_buffer,
	.scatter = machine_scatter,
	.local = machine_local,
	.transmit = machine_transmit,
	.flush = machine_flush,
	.complete = machine_complete,
	.count = machine_count,
};

struct soft_send_wqe *machine_post(struct machine *m, enum ibv_wr_opcode opcode, uint32_t length)
{
	struct soft_send_wqe *wqe = &m->requests[(m->head + m->num++) % MACHINE_REQUESTS];

	machine_expect(m->num <= MACHINE_REQUESTS);
	*wqe = (struct soft_send_wqe){ .opcode = opcode, .length = length, .rkey = 7 };
	return wqe;
}

/* ---- the responder ----------------------------------------------------------------------------------------------- */

static struct soft_outcome machine_take(void *user, const struct soft_arrival *arrival, uint32_t offset,
					uint32_t length, bool is_last, bool is_copy)
{
	struct machine *m = user;

	return m->take(m, arrival, offset, length, is_last, is_copy);
}

static void machine_finish(void *user)
{
	struct machine *m = user;

	m->finished(m);
}

static const struct wire_responder_ops responder_ops = {
	.buffer = machine_buffer,
	.take = machine_take,
	.finish = machine_finish,
	.transmit = machine_transmit,
	.flush = machine_flush,
	.count = machine_count,
};

/* ---- a run ------------------------------------------------------------------------------------------------------- */

void machine_init(struct machine *m, uint32_t psn, uint32_t peer_psn, uint32_t mtu)
{
	struct wire_connection c = { .transport = UVD_TRANSPORT_RC, .pkey = 0xffff, .dest_qpn = 5, .mtu = mtu };

	memset(m, 0, sizeof(*m));
	for (c.mtu_code = IBV_MTU_256; 128u << c.mtu_code < mtu; c.mtu_code++)
		;
	wire_requester_init(&m->requester, &requester_ops, m, &c, psn, WIRE_WINDOW_MOST);
	m->requester.max_rd_atomic = MACHINE_RECORDS;
	m->requester.timeout_ns = 1000000;
	m->requester.retry_cnt = 3;
	m->requester.rnr_retry = 3;
	wire_responder_init(&m->responder, &responder_ops, m, &c, peer_psn, m->records, MACHINE_RECORDS);
	m->now = 1;
}

void machine_run(struct machine *m)
{
	unsigned int rounds = 0;

	if (m->has_failed)
		return;
	do {
		machine_expect(rounds++ < 1000); /* it says that it may send, and does not */
		wire_requester_tick(&m->requester, m->now);
		if (!m->has_failed)
			wire_requester_send(&m->requester, m->now, UINT32_MAX / 2);
	} while (!m->has_failed && wire_requester_may_send(&m->requester, machine_peek(m, m->requester.at)));
}

void machine_receive(struct machine *m, const struct uvd_packet *packets, unsigned int num)
{
	const bool are_answers = uvd_opcode_info(packets->opcode)->is & UVD_IS_RESPONSE;
	struct soft_outcome outcome;
	unsigned int taken = 0;

	if (are_answers) {
		wire_requester_answers(&m->requester, packets, num, m->now);
		machine_run(m);
		return;
	}
	while (taken < num || wire_responder_is_reading(&m->responder)) {
		if (wire_responder_is_reading(&m->responder))
			outcome = wire_responder_read(&m->responder);
		else
			taken += wire_responder_requests(&m->responder, packets + taken, num - taken, &outcome);
		if (outcome.kind == SOFT_LOST)
			return;
	}
}
