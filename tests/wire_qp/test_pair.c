/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two ends with a link between them that loses, repeats and reorders packets, in virtual time: each byte arrives, each message is delivered
 * once and in order, and each atomic is executed once.
 */
#include <stdlib.h>
#include <string.h>
#include "tests/suite.h"
#include "tests/wire_qp/machine.h"

enum { SLOTS = 32, SLOT = 16384, ROUND_TRIP = 20000, LINK = 4096, BATCH = 16 };

/* A packet on its way, to end `to`. */
struct link_packet {
	uint64_t at, nr; /* when it arrives; in the order in which it was sent, unless it is delayed */
	struct uvd_packet packet;
	uint8_t payload[UVD_IB_MTU_MAX];
};

static struct machine ends[2]; /* 0 sends, 1 receives */
static struct link_packet link_packets[LINK];
static unsigned int link_order[LINK], link_num; /* by time of arrival */
static uint64_t link_sent, seed;
static unsigned int loss, posted, completed, received; /* loss: per thousand */
static uint64_t counter, added; /* the word that atomics add to, and the sum of what was to be added */
static uint32_t expected_length; /* of the next part of the message */
static bool counts_receives; /* the receiver's acknowledgements tell of few */
static bool took_copy; /* the last part that was taken is one of a copy */

static uint32_t rnd(uint32_t below)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return (uint32_t)(seed >> 33) % below;
}

static uint8_t byte_of(unsigned int message, uint32_t offset)
{
	return message * 31 + offset * 7 + offset / 251;
}

static bool has_bytes(const uint8_t *bytes, unsigned int message, uint32_t offset, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		if (bytes[i] != byte_of(message, offset + i))
			return false;
	return true;
}

static enum ibv_wr_opcode opcode_of(unsigned int message)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND,	  IBV_WR_SEND_WITH_IMM,	       IBV_WR_RDMA_WRITE,	  IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_WRITE,
	};

	return opcodes[message * 2654435761u >> 29];
}

static uint32_t length_of(unsigned int message)
{
	static const uint32_t lengths[] = { 0, 1, 256, 257, 1000, 4096, 5000, SLOT };

	if (soft_op_is_atomic(opcode_of(message)) || opcode_of(message) == IBV_WR_ATOMIC_WRITE)
		return 8;
	return lengths[(message * 40503u >> 4) % 8];
}

/* ---- the link ---------------------------------------------------------------------------------------------------- */

static bool is_before(const struct link_packet *a, const struct link_packet *b)
{
	return a->at < b->at || (a->at == b->at && a->nr < b->nr);
}

static void link_put(const struct uvd_packet *packet, uint64_t now)
{
	const unsigned int slot = link_order[link_num];
	struct link_packet *l = &link_packets[slot];
	unsigned int i = link_num;

	ck_assert_uint_lt(link_num, LINK - 1);
	/* Some are delayed, and overtaken by those that follow. */
	l->at = now + ROUND_TRIP / 2 + (rnd(1000) < loss ? rnd(ROUND_TRIP) : 0);
	l->nr = link_sent++;
	l->packet = *packet;
	if (counts_receives && packet->syndrome == UVD_AETH_ACK) {
		l->packet.syndrome = rnd(4);
		/* Not every peer counts messages as we do. */
		if (rnd(20) == 0)
			l->packet.msn = rnd(UVD_PSN_MASK);
	}
	if (packet->payload_len)
		memcpy(l->payload, packet->payload, packet->payload_len);
	l->packet.payload = l->payload;
	for (; i && is_before(l, &link_packets[link_order[i - 1]]); i--)
		link_order[i] = link_order[i - 1];
	link_order[i] = slot;
	link_num++;
}

static void link_sends(struct machine *m, const struct uvd_packet *packet)
{
	if (rnd(1000) < loss)
		return;
	link_put(packet, m->now);
	if (rnd(1000) < loss)
		link_put(packet, m->now);
}

static bool is_answer(const struct uvd_packet *packet)
{
	return uvd_opcode_info(packet->opcode)->is & UVD_IS_RESPONSE;
}

/* Delivers what arrives at this time. */
static void link_deliver(uint64_t now)
{
	struct uvd_packet packets[BATCH];
	unsigned int slots[BATCH], num = 0;
	bool answers;

	if (!link_num || link_packets[link_order[0]].at > now)
		return;
	answers = is_answer(&link_packets[link_order[0]].packet);
	while (num < BATCH && num < link_num && link_packets[link_order[num]].at <= now &&
	       is_answer(&link_packets[link_order[num]].packet) == answers) {
		slots[num] = link_order[num];
		packets[num] = link_packets[slots[num]].packet;
		num++;
	}
	/* Their places stay theirs until they have been taken: link_put() uses the place behind the last. */
	memmove(link_order, link_order + num, (LINK - num) * sizeof(link_order[0]));
	memcpy(link_order + LINK - num, slots, num * sizeof(slots[0]));
	link_num -= num;
	machine_receive(&ends[!answers], packets, num);
}

/* ---- the ends ---------------------------------------------------------------------------------------------------- */

static void post_next(void)
{
	const enum ibv_wr_opcode opcode = opcode_of(posted);
	const uint32_t length = length_of(posted), at = posted % SLOTS * SLOT;
	struct soft_send_wqe *wqe = machine_post(&ends[0], opcode, length);

	wqe->wr_id = at;
	wqe->remote_addr = at;
	wqe->imm_data = htobe32(posted);
	wqe->send_flags = posted % 5 ? 0 : IBV_SEND_FENCE;
	wqe->compare_add = opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? ~0ull : posted;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		added += posted;
	for (uint32_t i = 0; i < length; i++)
		ends[0].memory[at + i] = opcode == IBV_WR_RDMA_READ ? 0 : byte_of(posted, i);
	posted++;
}

static void end_completed(struct machine *m, const struct soft_send_wqe *wqe, enum ibv_wc_status status)
{
	ck_assert_msg(status == IBV_WC_SUCCESS, "message %u: %s", completed, ibv_wc_status_str(status));
	if (wqe->opcode == IBV_WR_RDMA_READ)
		ck_assert(has_bytes(m->memory + wqe->wr_id, completed, 0, wqe->length));
	completed++;
}

/* A READ brings bytes that its place in the receiver's memory never had: those of its number. */
static struct soft_outcome end_takes(struct machine *m, const struct soft_arrival *arrival, uint32_t offset,
				     uint32_t length, bool is_last, bool is_copy)
{
	unsigned int message = received;

	ck_assert_ptr_nonnull(arrival);
	took_copy = is_copy;
	if (arrival->opcode == IBV_WR_RDMA_READ) {
		const uint32_t begin = arrival->remote_addr % SLOT + offset, slot = arrival->remote_addr / SLOT;

		/* The newest message that has this slot, and is not newer than those which were posted. */
		while (message % SLOTS != slot)
			message += is_copy ? -1 : 1;
		if (!is_copy)
			ck_assert_uint_eq(opcode_of(message), IBV_WR_RDMA_READ);
		for (uint32_t i = 0; i < length; i++)
			m->buffer[i] = byte_of(message, begin + i);
		if (!is_copy && is_last)
			expected_length = begin + length;
		return soft_sent;
	}
	ck_assert(!is_copy);
	if (soft_op_is_atomic(arrival->opcode)) {
		memcpy(m->buffer, &counter, sizeof(counter));
		if (arrival->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			ck_assert_uint_eq(arrival->compare_add, message);
			counter += arrival->compare_add;
		}
		return soft_sent;
	}
	ck_assert_uint_eq(offset, expected_length);
	ck_assert(has_bytes(m->buffer, message, offset, length));
	expected_length = offset + length;
	if (!is_last)
		return soft_sent;
	ck_assert_int_eq(arrival->opcode, opcode_of(message));
	ck_assert_uint_eq(expected_length, length_of(message));
	if (arrival->opcode == IBV_WR_SEND_WITH_IMM || arrival->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		ck_assert_uint_eq(be32toh(arrival->imm_data), message);
	/* Now and then there is no receive yet. */
	if (soft_op_takes_receive(arrival->opcode) && rnd(100) == 0) {
		expected_length = offset;
		return (struct soft_outcome){ .kind = SOFT_RNR, .rnr_timer = 1 };
	}
	return soft_sent;
}

static void end_finished(struct machine *m)
{
	/* A READ is asked for in parts: its last one ends it. */
	if (took_copy || (opcode_of(received) == IBV_WR_RDMA_READ && expected_length < length_of(received)))
		return;
	received++;
	expected_length = 0;
}

static void set_up(uint32_t mtu, unsigned int reads)
{
	for (int i = 0; i < 2; i++) {
		machine_init(&ends[i], FIRST_PSN + i, FIRST_PSN + !i, mtu);
		ends[i].requester.max_rd_atomic = reads;
		ends[i].requester.retry_cnt = 7;
		ends[i].requester.rnr_retry = 7;
		ends[i].requester.timeout_ns = 10 * ROUND_TRIP;
		ends[i].sent = link_sends;
		ends[i].completed = end_completed;
		ends[i].take = end_takes;
		ends[i].finished = end_finished;
	}
	for (unsigned int i = 0; i < LINK; i++)
		link_order[i] = i;
	link_num = posted = completed = received = 0;
	counter = added = expected_length = link_sent = 0;
}

static void run_messages(unsigned int num)
{
	uint64_t now = 1, next;

	while (completed < num) {
		while (posted < num && ends[0].num < SLOTS - 1 && posted - completed < SLOTS - 1)
			post_next();
		ends[0].now = ends[1].now = now;
		link_deliver(now);
		machine_run(&ends[0]);
		if (link_num && link_packets[link_order[0]].at <= now)
			continue;
		next = wire_requester_deadline(&ends[0].requester);
		if (link_num && (!next || link_packets[link_order[0]].at < next))
			next = link_packets[link_order[0]].at;
		ck_assert_msg(completed == num || next, "message %u is stuck", completed);
		now = next > now ? next : now;
	}
	ck_assert_uint_eq(received, num);
	ck_assert_uint_eq(counter, added);
}

static const struct {
	uint32_t mtu;
	unsigned int reads, loss, messages;
} links[] = {
	{ 1024, 4, 0, 1000 }, { 1024, 4, 1, 3000 },  { 1024, 4, 10, 3000 }, { 1024, 4, 50, 10000 },
	{ 256, 1, 50, 2000 }, { 4096, 2, 50, 3000 }, { 512, 1, 10, 2000 },
};

START_TEST(test_lossy_link_loses_nothing)
{
	set_up(links[_i].mtu, links[_i].reads);
	loss = links[_i].loss;
	seed = 1 + _i;
	run_messages(links[_i].messages);
}
END_TEST

/* Any seed: many short runs. */
START_TEST(test_no_seed_gets_stuck)
{
	for (unsigned int i = 0; i < (suite_is_long() ? 3000 : 60); i++) {
		set_up(256 << i % 5, 1 + i % 4);
		loss = 20 + i % 100;
		seed = 1000 + i;
		run_messages(100);
	}
}
END_TEST

/* Whatever credits the receiver tells, something can always be sent. */
START_TEST(test_few_credits_stop_nothing)
{
	counts_receives = true;
	for (unsigned int i = 0; i < 40; i++) {
		set_up(256 << i % 5, 1 + i % 4);
		loss = i % 4 ? 10 * (i % 4) : 0;
		seed = 5000 + i;
		run_messages(100);
	}
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("pair");

	tcase_set_timeout(t, suite_is_long() ? 300 : 60);
	tcase_add_loop_test(t, test_lossy_link_loses_nothing, 0, sizeof(links) / sizeof(links[0]));
	tcase_add_test(t, test_no_seed_gets_stuck);
	tcase_add_test(t, test_few_credits_stop_nothing);
	return run_suite("soft: QPs on a lossy link", t);
}
