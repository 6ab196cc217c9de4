/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The rules of the responder. A statement of a script is a batch of packets, or "!" and the outcome of the next part: rnr5, access, op,
 * request, none (no answer); "!second" gives it to the one behind that. The trace has what is sent, "[SEND 0-256]" when a part is executed ("." behind the last), and "fin" when the
 * receive completes. The path MTU is 256; there are four records.
 */
#include <stdlib.h>
#include <string.h>
#include "tests/suite.h"
#include "tests/wire_qp/script.h"

static struct machine machine;
static struct soft_outcome next_outcome;
static bool is_second; /* the outcome is that of the part behind the next */
static uint64_t word; /* what atomics add to */

static const struct rule rules[] = {
#include "tests/wire_qp/responder_rules.h"
};

static const char *name_of(enum ibv_wr_opcode opcode)
{
	static const char *const names[] = {
		[IBV_WR_SEND] = "SEND",
		[IBV_WR_SEND_WITH_IMM] = "SEND_IMM",
		[IBV_WR_SEND_WITH_INV] = "SEND_INV",
		[IBV_WR_RDMA_WRITE] = "WRITE",
		[IBV_WR_RDMA_WRITE_WITH_IMM] = "WRITE_IMM",
		[IBV_WR_RDMA_READ] = "READ",
		[IBV_WR_ATOMIC_CMP_AND_SWP] = "SWAP",
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = "ADD",
		[IBV_WR_ATOMIC_WRITE] = "ATOMIC_WRITE",
	};

	return names[opcode];
}

static struct soft_outcome takes(struct machine *m, const struct soft_arrival *a, uint32_t offset, uint32_t length,
				 bool is_last, bool is_copy)
{
	const struct soft_outcome outcome = is_second ? soft_sent : next_outcome;

	if (!is_second)
		next_outcome = soft_sent;
	is_second = false;
	if (!a) {
		trace("[refused]; ");
		return soft_no_answer;
	}
	trace("[%s%s %u-%u%s", is_copy ? "copy " : "", name_of(a->opcode), offset, offset + length, is_last ? "." : "");
	if (is_last && (a->opcode == IBV_WR_SEND_WITH_IMM || a->opcode == IBV_WR_RDMA_WRITE_WITH_IMM))
		trace(" imm=%u", be32toh(a->imm_data));
	if (is_last && a->opcode == IBV_WR_SEND_WITH_INV)
		trace(" inv=%u", a->invalidate_rkey);
	if (a->opcode == IBV_WR_RDMA_READ || (!soft_op_is_send(a->opcode) && !offset))
		trace(" at=%lu", a->remote_addr);
	if (is_last && a->is_solicited)
		trace(" S");
	trace("]; ");
	if (soft_is_sent(outcome) && a->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		memcpy(m->buffer, &word, sizeof(word));
		word += a->compare_add;
	}
	return outcome;
}

static void finished(struct machine *m)
{
	trace("fin; ");
}

static struct soft_outcome outcome_named(const char *name)
{
	static const struct {
		const char *name;
		enum ibv_wc_status status;
	} names[] = { { "access", IBV_WC_REM_ACCESS_ERR },
		      { "op", IBV_WC_REM_OP_ERR },
		      { "request", IBV_WC_REM_INV_REQ_ERR } };

	if (!strncmp(name, "rnr", 3))
		return (struct soft_outcome){ .kind = SOFT_RNR, .rnr_timer = atoi(name + 3) };
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i].name))
			return (struct soft_outcome){ .kind = SOFT_DONE, .status = names[i].status };
	return !strcmp(name, "lost") ? soft_lost : soft_no_answer;
}

static void statement(char *text)
{
	struct uvd_packet packets[64];
	unsigned int num;

	if (!strcmp(text, "!second")) {
		is_second = true;
		return;
	}
	if (*text == '!') {
		next_outcome = outcome_named(text + 1);
		return;
	}
	num = read_packets(text, packets, 64);
	ck_assert_uint_gt(num, 0);
	machine_receive(&machine, packets, num);
}

START_TEST(test_responder_keeps_the_rule)
{
	machine_init(&machine, 0, FIRST_PSN, 256);
	machine.sent = trace_packet;
	machine.take = takes;
	machine.finished = finished;
	next_outcome = soft_sent;
	is_second = false;
	word = 10;
	run_rule(&rules[_i], statement);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("responder");

	tcase_add_loop_test(t, test_responder_keeps_the_rule, 0, sizeof(rules) / sizeof(rules[0]));
	return run_suite("soft: responder on the wire", t);
}
