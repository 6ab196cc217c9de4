/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The rules of the requester. Statements of a script: "post OPERATION LENGTH FLAGS" (F: fence, S: solicited, bad: its memory is not
 * accessible); "run"; "wait N" microseconds, and run; "set NAME N"; "resend"; or a batch of answers, after which it runs, too. The trace has
 * what is sent, and each completion. The path MTU is 256, the window 4 packets at first; the time-out is 1000 us, of which 3 retries are
 * made, as after RNR NAKs.
 */
#include <stdlib.h>
#include <string.h>
#include "tests/suite.h"
#include "tests/wire_qp/script.h"

static struct machine machine;

static const struct rule rules[] = {
#include "tests/wire_qp/requester_rules.h"
};

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
} operations[] = {
	{ "SEND", IBV_WR_SEND },
	{ "SEND_IMM", IBV_WR_SEND_WITH_IMM },
	{ "SEND_INV", IBV_WR_SEND_WITH_INV },
	{ "WRITE", IBV_WR_RDMA_WRITE },
	{ "WRITE_IMM", IBV_WR_RDMA_WRITE_WITH_IMM },
	{ "READ", IBV_WR_RDMA_READ },
	{ "SWAP", IBV_WR_ATOMIC_CMP_AND_SWP },
	{ "ADD", IBV_WR_ATOMIC_FETCH_AND_ADD },
	{ "ATOMIC_WRITE", IBV_WR_ATOMIC_WRITE },
	{ "LOCAL", IBV_WR_LOCAL_INV },
};
enum { OPERATIONS = sizeof(operations) / sizeof(operations[0]), BAD = 1 << 20 };

static void completed(struct machine *m, const struct soft_send_wqe *wqe, enum ibv_wc_status status)
{
	static const struct {
		enum ibv_wc_status status;
		const char *name;
	} names[] = { { IBV_WC_SUCCESS, "ok" },
		      { IBV_WC_RETRY_EXC_ERR, "retries" },
		      { IBV_WC_RNR_RETRY_EXC_ERR, "rnr retries" },
		      { IBV_WC_REM_ACCESS_ERR, "access" },
		      { IBV_WC_REM_OP_ERR, "op" },
		      { IBV_WC_REM_INV_REQ_ERR, "request" },
		      { IBV_WC_LOC_PROT_ERR, "memory" },
		      { IBV_WC_LOC_LEN_ERR, "length" } };

	for (int i = 0; i < OPERATIONS; i++)
		if (wqe->opcode == operations[i].opcode)
			trace("%s: ", operations[i].name);
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (status == names[i].status)
			trace("%s; ", names[i].name);
}

static struct soft_outcome check(struct machine *m, const struct soft_send_wqe *wqe)
{
	return wqe->send_flags & BAD ? soft_bad_memory : soft_sent;
}

static void post(char *words)
{
	const char *name = strtok_r(words, " ", &words), *length = strtok_r(NULL, " ", &words), *flag;
	struct soft_send_wqe *wqe = NULL;

	for (int i = 0; i < OPERATIONS; i++)
		if (!strcmp(name, operations[i].name))
			wqe = machine_post(&machine, operations[i].opcode, atoi(length));
	ck_assert_ptr_nonnull(wqe);
	wqe->imm_data = htobe32(9);
	if (wqe->opcode == IBV_WR_SEND_WITH_INV)
		wqe->invalidate_rkey = 8;
	wqe->compare_add = 3;
	while ((flag = strtok_r(NULL, " ", &words)))
		wqe->send_flags |= *flag == 'F' ? IBV_SEND_FENCE : *flag == 'S' ? IBV_SEND_SOLICITED : BAD;
}

static void set(const char *words)
{
	const int value = atoi(strchr(words, ' '));
	struct wire_requester *r = &machine.requester;

	if (!strncmp(words, "reads ", 6))
		r->max_rd_atomic = value;
	else if (!strncmp(words, "retries ", 8))
		r->retry_cnt = value;
	else if (!strncmp(words, "rnr ", 4))
		r->rnr_retry = value;
	else if (!strncmp(words, "window ", 7))
		r->window.size = value;
	else if (!strncmp(words, "share ", 6))
		r->share = value;
	else if (!strncmp(words, "timeout ", 8))
		r->timeout_ns = value;
	else
		ck_abort_msg("nothing to set: %s", words);
}

static void statement(char *text)
{
	struct uvd_packet packets[64];
	unsigned int num;

	if (!strncmp(text, "post ", 5)) {
		post(text + 5);
	} else if (!strncmp(text, "set ", 4)) {
		set(text + 4);
	} else if (!strncmp(text, "wait ", 5)) {
		machine.now += atoi(text + 5) * 1000ull;
		machine_run(&machine);
	} else if (!strcmp(text, "window")) {
		trace("window %u; ", machine.requester.window.size);
	} else if (!strcmp(text, "held")) {
		trace("held %u; ", wire_requester_held(&machine.requester));
	} else if (!strcmp(text, "resend")) {
		wire_requester_resend(&machine.requester);
		machine_run(&machine);
	} else if (!strcmp(text, "deadline")) {
		trace("in %ld us; ", (long)(wire_requester_deadline(&machine.requester) - machine.now) / 1000);
	} else if (!strcmp(text, "run")) {
		machine_run(&machine);
	} else {
		num = read_packets(text, packets, 64);
		ck_assert_uint_gt(num, 0);
		machine_receive(&machine, packets, num);
	}
}

START_TEST(test_requester_keeps_the_rule)
{
	machine_init(&machine, FIRST_PSN, 0, 256);
	machine.sent = trace_packet;
	machine.completed = completed;
	machine.check = check;
	run_rule(&rules[_i], statement);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("requester");

	tcase_add_loop_test(t, test_requester_keeps_the_rule, 0, sizeof(rules) / sizeof(rules[0]));
	return run_suite("soft: requester on the wire", t);
}
