/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Requests that are refused: the status at both ends, and that no byte is changed. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/backends/bed.h"

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];

static void setup(void)
{
	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_INFINIBAND);
	for (int i = 0; i < BUF_SIZE; i++)
		a->buf[i] = i * 7 + i / 251;
}

static void teardown(void)
{
	mm_bad_len = mm_ro_len = 0;
	mm_gone = false;
	bed_close(&bed);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static void expect_untouched(void)
{
	bool same = true;

	for (int i = 0; i < BUF_SIZE; i++)
		same &= a->buf[i] == (char)(i * 7 + i / 251) && b->buf[i] == 0;
	ck_assert(same);
}

static void expect_both_in_error(enum ibv_wc_status at_a)
{
	expect(a->scq, 0xa, at_a);
	ck_assert_int_eq(state_of(a), IBV_QPS_ERR);
	ck_assert_int_eq(state_of(b), IBV_QPS_ERR);
	expect_untouched();
}

START_TEST(test_message_longer_than_the_receive)
{
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 99), 0);
	ck_assert_int_eq(post_recv_at(b, 0xc, 0, 99), 0);
	send_small(a, b, IBV_WR_SEND, 100);
	expect_both_in_error(IBV_WC_REM_INV_REQ_ERR);
	expect(b->rcq, 0xb, IBV_WC_LOC_LEN_ERR);
	expect(b->rcq, 0xc, IBV_WC_WR_FLUSH_ERR);
}
END_TEST

START_TEST(test_receive_with_a_bad_key)
{
	struct ibv_sge sge = sge_at(b, 0, 100);

	bed_connect(&bed, IBV_QPT_RC);
	sge.lkey ^= 1;
	ck_assert_int_eq(post_recv_list(b, 0xb, &sge, 1), 0);
	send_small(a, b, IBV_WR_SEND, 100);
	expect_both_in_error(IBV_WC_REM_OP_ERR);
	expect(b->rcq, 0xb, IBV_WC_LOC_PROT_ERR);
}
END_TEST

START_TEST(test_send_with_a_bad_key_does_not_reach_the_peer)
{
	struct ibv_sge sge = sge_at(a, 0, 100);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_SEND, &sge, 1);

	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 100), 0);
	sge.lkey ^= 1;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(state_of(a), IBV_QPS_ERR);
	ck_assert_int_eq(state_of(b), IBV_QPS_RTS);
	expect_nothing(b->rcq);
}
END_TEST

/* Each row breaks one thing about a write or a read. */
static const struct {
	const char *what;
	bool read;
	int addr, length;
	uint32_t key;
	unsigned int access; /* not 0: use another MR, with these rights */
} violations[] = {
	{ "before the MR", false, -1, 8, 0, 0 },
	{ "one byte beyond", false, BUF_SIZE - 7, 8, 0, 0 },
	{ "far beyond", false, 1 << 30, 8, 0, 0 },
	{ "read beyond", true, BUF_SIZE - 7, 8, 0, 0 },
	{ "other tag", false, 0, 8, 1, 0 },
	{ "other index", true, 0, 8, 1u << 20, 0 },
	{ "write to what may be read", false, 0, 8, 0, IBV_ACCESS_REMOTE_READ },
	{ "read of what may be written", true, 0, 8, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE },
};

START_TEST(test_access_violation)
{
	struct ibv_sge sge = sge_at(a, 0, violations[_i].length);
	struct uvd_send_wr wr = wr_to(b, violations[_i].read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, &sge, 1);
	struct uvd_mr *mr = NULL;

	bed_connect(&bed, IBV_QPT_RC);
	wr.remote_addr += violations[_i].addr;
	wr.rkey ^= violations[_i].key;
	if (violations[_i].access) {
		mr = make_mr(b, b->buf, BUF_SIZE, violations[_i].access);
		wr.rkey = mr->rkey;
	}
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 100), 0);
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect_both_in_error(IBV_WC_REM_ACCESS_ERR);
	ck_assert_int_eq(b->qp_event[IBV_EVENT_QP_ACCESS_ERR], 1);
	expect(b->rcq, 0xb, IBV_WC_WR_FLUSH_ERR);
	if (mr)
		free_mr(mr);
}
END_TEST

START_TEST(test_address_that_wraps_is_a_violation)
{
	struct ibv_sge sge = sge_at(a, 0, 4096);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_RDMA_WRITE, &sge, 1);

	bed_connect(&bed, IBV_QPT_RC);
	wr.remote_addr = UINT64_MAX - 100;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect_both_in_error(IBV_WC_REM_ACCESS_ERR);
}
END_TEST

START_TEST(test_key_of_another_pd_is_a_violation)
{
	struct uvd_pd *pd = calloc(1, uvd_backend_soft.size_pd), *old = b->side->pd;
	struct ibv_sge sge = sge_at(a, 0, 8);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_RDMA_WRITE, &sge, 1);
	struct uvd_mr *mr;

	pd->context = b->side->context;
	ck_assert_int_eq(uvd_backend_soft.alloc_pd(pd, NULL), 0);
	b->side->pd = pd;
	mr = make_mr(b, b->buf, BUF_SIZE, b->access);
	b->side->pd = old;
	bed_connect(&bed, IBV_QPT_RC);
	wr.rkey = mr->rkey;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect_both_in_error(IBV_WC_REM_ACCESS_ERR);
	free_mr(mr);
	ck_assert_int_eq(uvd_backend_soft.dealloc_pd(pd), 0);
	free(pd);
}
END_TEST

START_TEST(test_key_is_stale_after_dereg)
{
	struct uvd_mr *mr = make_mr(b, b->buf, BUF_SIZE, b->access);
	struct ibv_sge sge = sge_at(a, 0, 8);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_RDMA_WRITE, &sge, 1);

	wr.rkey = mr->rkey;
	free_mr(mr);
	/* Register regions until one has the same index. */
	for (int i = 0; i < 1000; i++) {
		mr = make_mr(b, b->buf, BUF_SIZE, b->access);
		if (mr->rkey >> 8 == wr.rkey >> 8)
			break;
		free_mr(mr);
	}
	ck_assert_uint_eq(mr->rkey >> 8, wr.rkey >> 8);
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect_both_in_error(IBV_WC_REM_ACCESS_ERR);
	free_mr(mr);
}
END_TEST

START_TEST(test_operation_that_the_qp_does_not_allow)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_RDMA_WRITE_WITH_IMM,
	};

	b->access = IBV_ACCESS_LOCAL_WRITE;
	bed_connect(&bed, IBV_QPT_RC);
	send_small(a, b, opcodes[_i], 8);
	expect_both_in_error(IBV_WC_REM_INV_REQ_ERR);
	ck_assert_int_eq(b->qp_event[IBV_EVENT_QP_REQ_ERR], 1);
}
END_TEST

START_TEST(test_read_and_atomic_write_without_responder_resources)
{
	static const char data[8];
	struct uvd_send_wr wr = wr_to(b, IBV_WR_ATOMIC_WRITE, NULL, 0);

	wr.inline_data = data;
	wr.inline_len = sizeof(data);
	b->max_dest_rd_atomic = 0;
	bed_connect(&bed, IBV_QPT_RC);
	if (_i)
		ck_assert_int_eq(post_send_wr(a, &wr), 0);
	else
		send_small(a, b, IBV_WR_RDMA_READ, 8);
	expect_both_in_error(IBV_WC_REM_INV_REQ_ERR);
}
END_TEST

/* Each row breaks one thing about the requester's own memory. READs and atomics need LOCAL_WRITE there. */
static const struct {
	const char *what;
	enum ibv_wr_opcode opcode;
	uint32_t key;
	int addr, length;
	unsigned int access;
	bool other_pd;
} own[] = {
	{ "wrong key", IBV_WR_RDMA_WRITE, 1, 0, 8 },
	{ "wrong index", IBV_WR_SEND, 1u << 20, 0, 8 },
	{ "beyond", IBV_WR_RDMA_WRITE, 0, BUF_SIZE - 7, 8 },
	{ "before", IBV_WR_RDMA_READ, 0, -8, 8 },
	{ "read into what may only be read", IBV_WR_RDMA_READ, 0, 0, 8, IBV_ACCESS_REMOTE_READ },
	{ "atomic into what may only be read", IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 8, IBV_ACCESS_REMOTE_READ },
	{ "another PD's", IBV_WR_RDMA_WRITE, 0, 0, 8, IBV_ACCESS_LOCAL_WRITE, true },
};

START_TEST(test_own_memory_violation_stays_at_home)
{
	struct uvd_pd *pd = calloc(1, uvd_backend_soft.size_pd), *old = a->side->pd;
	struct ibv_sge sge = { (uintptr_t)a->buf + own[_i].addr, own[_i].length, a->mr->lkey ^ own[_i].key };
	struct uvd_send_wr wr = wr_to(b, own[_i].opcode, &sge, 1);
	struct uvd_mr *mr = NULL;

	pd->context = a->side->context;
	ck_assert_int_eq(uvd_backend_soft.alloc_pd(pd, NULL), 0);
	if (own[_i].other_pd)
		a->side->pd = pd;
	if (own[_i].access) {
		mr = make_mr(a, a->buf, BUF_SIZE, own[_i].access);
		sge.lkey = mr->lkey;
	}
	a->side->pd = old;
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 100), 0);
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(state_of(a), IBV_QPS_ERR);
	ck_assert_int_eq(state_of(b), IBV_QPS_RTS);
	expect_nothing(b->rcq);
	expect_untouched();
	if (mr)
		free_mr(mr);
	ck_assert_int_eq(uvd_backend_soft.dealloc_pd(pd), 0);
	free(pd);
}
END_TEST

/* The request goes out before its answer is stored. */
START_TEST(test_read_and_atomic_with_both_keys_wrong_report_the_responders_error)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
						      IBV_WR_ATOMIC_CMP_AND_SWP };
	const bool no_right = _i >= 3;
	struct ibv_sge sge = sge_at(a, 0, 8);
	struct uvd_send_wr wr = wr_to(b, opcodes[_i % 3], &sge, 1);

	if (no_right)
		b->access = IBV_ACCESS_LOCAL_WRITE;
	else
		wr.rkey ^= 1;
	sge.lkey ^= 1;
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect_both_in_error(no_right ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_ACCESS_ERR);
}
END_TEST

/* An adapter stores the answer after the responder has carried out the atomic. */
START_TEST(test_atomic_whose_answer_cannot_be_stored_is_carried_out)
{
	struct ibv_sge sge = sge_at(a, 0, 8);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 1);
	uint64_t value;

	sge.lkey ^= 1;
	wr.compare_add = 5;
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_LOC_PROT_ERR);
	memcpy(&value, b->buf, sizeof(value));
	ck_assert_uint_eq(value, 5);
	ck_assert_int_eq(state_of(b), IBV_QPS_RTS);
}
END_TEST

/* The receive is taken with the last packet, and the first has the key. */
START_TEST(test_write_with_immediate_and_a_wrong_key_ends_the_receive_that_it_took)
{
	const bool one_packet = !_i;
	struct ibv_sge sge = sge_at(a, 0, one_packet ? 100 : 10000);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_RDMA_WRITE_WITH_IMM, &sge, 1);

	wr.rkey ^= 1;
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 100), 0);
	ck_assert_int_eq(post_recv_at(b, 0xc, 0, 100), 0);
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect_both_in_error(IBV_WC_REM_ACCESS_ERR);
	expect(b->rcq, 0xb, one_packet ? IBV_WC_LOC_ACCESS_ERR : IBV_WC_WR_FLUSH_ERR);
	expect(b->rcq, 0xc, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(b->qp_event[IBV_EVENT_QP_ACCESS_ERR], !one_packet);
}
END_TEST

START_TEST(test_receive_into_what_may_only_be_read)
{
	struct uvd_mr *mr = make_mr(b, b->buf, BUF_SIZE, IBV_ACCESS_REMOTE_READ);
	struct ibv_sge sge = { (uintptr_t)b->buf, 100, mr->lkey };

	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_recv_list(b, 0xb, &sge, 1), 0);
	send_small(a, b, IBV_WR_SEND, 100);
	expect_both_in_error(IBV_WC_REM_OP_ERR);
	expect(b->rcq, 0xb, IBV_WC_LOC_PROT_ERR);
	free_mr(mr);
}
END_TEST

/* A peer in RESET, INIT or ERR does not answer: SEND and RDMA WRITE. */
START_TEST(test_peer_in_a_state_that_receives_nothing)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_ERR };

	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 100), 0);
	ck_assert_int_eq(to_state(b, states[_i % 3] == IBV_QPS_ERR ? IBV_QPS_ERR : IBV_QPS_RESET), 0);
	if (states[_i % 3] == IBV_QPS_INIT)
		ck_assert_int_eq(to_init(b), 0);
	send_small(a, b, _i < 3 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, 100);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
	expect_untouched();
}
END_TEST

START_TEST(test_partitions)
{
	/* P_Key table: 0: full member; 1: limited member of the same partition; 2: full member of another one. */
	static const struct {
		int a, b;
		bool meet;
	} rows[] = { { 0, 0, true }, { 0, 1, true }, { 1, 0, true }, { 1, 1, false }, { 0, 2, false }, { 2, 2, true } };

	a->pkey_index = rows[_i].a;
	b->pkey_index = rows[_i].b;
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 100), 0);
	send_small(a, b, IBV_WR_SEND, 100);
	expect(a->scq, 0xa, rows[_i].meet ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR);
	if (!rows[_i].meet)
		expect_untouched();
}
END_TEST

/* ---- on demand --------------------------------------------------------------------------------------------------- */

/* A write fails if it touches a page that the client itself may only read at that time. */
START_TEST(test_on_demand_memory_allows_what_its_pages_do)
{
	struct ibv_sge sge = sge_at(a, 0, 100);
	struct uvd_send_wr wr;
	struct uvd_mr *mr;

	mr = make_mr(b, b->buf, BUF_SIZE, b->access | IBV_ACCESS_ON_DEMAND);
	mm_ro = (uintptr_t)b->buf + 50;
	mm_ro_len = 1;
	bed_connect(&bed, IBV_QPT_RC);
	wr = wr_to(b, IBV_WR_RDMA_WRITE, &sge, 1);
	wr.rkey = mr->rkey;
	wr.remote_addr += 51;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	memset(b->buf, 0, 200);
	wr.remote_addr--;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect_both_in_error(IBV_WC_REM_OP_ERR);
	free_mr(mr);
}
END_TEST

START_TEST(test_on_demand_reads_need_no_right_to_write)
{
	struct ibv_sge sge = sge_at(a, 0, 100);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_RDMA_READ, &sge, 1);
	struct uvd_mr *mr = make_mr(b, b->buf, BUF_SIZE, b->access | IBV_ACCESS_ON_DEMAND);

	mm_ro = (uintptr_t)b->buf;
	mm_ro_len = BUF_SIZE;
	bed_connect(&bed, IBV_QPT_RC);
	wr.rkey = mr->rkey;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.compare_add = 1;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_REM_OP_ERR);
	ck_assert_int_eq(b->buf[0], 0);
	free_mr(mr);
}
END_TEST

START_TEST(test_implicit_region_is_all_of_memory)
{
	struct ibv_sge sge = sge_at(a, 0, 100);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_RDMA_WRITE, &sge, 1);
	struct uvd_mr *mr = make_mr(b, NULL, UINT64_MAX, b->access | IBV_ACCESS_ON_DEMAND);

	ck_assert_ptr_nonnull(mr);
	ck_assert_ptr_null(make_mr(b, NULL, UINT64_MAX, b->access));
	bed_connect(&bed, IBV_QPT_RC);
	wr.rkey = mr->rkey;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(a->buf, b->buf, 100), 0);
	memset(b->buf, 0, 100);
	mm_bad = 4096;
	mm_bad_len = 4096;
	wr.remote_addr = 8191;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect_both_in_error(IBV_WC_REM_OP_ERR);
	free_mr(mr);
}
END_TEST

/* ---- memory that is gone ----------------------------------------------------------------------------------------- */

START_TEST(test_memory_that_went_away_at_the_sender)
{
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 100), 0);
	mm_bad = (uintptr_t)a->buf;
	mm_bad_len = 10;
	send_small(a, b, IBV_WR_SEND, 100);
	expect(a->scq, 0xa, IBV_WC_LOC_PROT_ERR);
	/* The message was not delivered: its receive stays with the peer, and is flushed when that goes into error. */
	expect_nothing(b->rcq);
	ck_assert_int_eq(to_state(b, IBV_QPS_ERR), 0);
	expect(b->rcq, 0xb, IBV_WC_WR_FLUSH_ERR);
}
END_TEST

START_TEST(test_memory_that_went_away_at_the_receiver)
{
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 100), 0);
	mm_bad = (uintptr_t)b->buf;
	mm_bad_len = 10;
	send_small(a, b, IBV_WR_SEND, 100);
	expect_both_in_error(IBV_WC_REM_OP_ERR);
	expect(b->rcq, 0xb, IBV_WC_LOC_PROT_ERR);
}
END_TEST

/* b's processes have exited, but their file is still open: b's QP does not answer. */
START_TEST(test_process_that_is_gone_is_no_answer)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						      IBV_WR_ATOMIC_FETCH_AND_ADD };

	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 100), 0);
	mm_bad = (uintptr_t)b->buf;
	mm_bad_len = 10;
	mm_gone = true;
	send_small(a, b, opcodes[_i], 8);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
	expect_why(a, "peer-process", "wire-silent");
	expect_nothing(b->rcq);
	ck_assert_int_eq(state_of(b), IBV_QPS_RTS);
}
END_TEST

static void connect_anew(struct end *end, struct end *peer)
{
	ck_assert_int_eq(to_state(end, IBV_QPS_RESET), 0);
	ck_assert_int_eq(to_init(end), 0);
	ck_assert_int_eq(to_rtr(end, peer), 0);
	ck_assert_int_eq(to_rts(end), 0);
}

/* The first request finds that b's processes have exited. The second gets no answer, although it accesses no memory. */
START_TEST(test_process_that_is_gone_never_answers_again)
{
	bed_connect(&bed, IBV_QPT_RC);
	mm_bad = (uintptr_t)b->buf;
	mm_bad_len = 10;
	mm_gone = true;
	send_small(a, b, IBV_WR_RDMA_WRITE, 8);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
	connect_anew(a, b);
	send_small(a, b, IBV_WR_RDMA_WRITE, 0);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
}
END_TEST

static void b_is_unplugged(void)
{
	b->side->dev.config.ports[0].down = true;
}

/*
 * A device under removal takes its ports down, and then destroys its regions. A request that arrived before that finds
 * its region gone, but the NAK has no link: the requester learns no error of memory that it was allowed to access.
 */
START_TEST(test_peer_of_a_device_under_removal_gets_no_nak_although_its_region_goes_first)
{
	bed_connect(&bed, IBV_QPT_RC);
	mm_bad = (uintptr_t)b->buf;
	mm_bad_len = 10;
	mm_failed = b_is_unplugged;
	send_small(a, b, IBV_WR_RDMA_WRITE, 8);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
	expect_why(a, "link-down", "wire-silent");
	mm_failed = NULL;
	ck_assert_int_eq(state_of(b), IBV_QPS_RTS);
	b->side->dev.config.ports[0].down = false;
}
END_TEST

/* Another process may still have the file open, and reset and connect the QP. */
START_TEST(test_qp_that_did_not_answer_answers_after_a_reset)
{
	bed_connect(&bed, IBV_QPT_RC);
	mm_bad = (uintptr_t)b->buf;
	mm_bad_len = 10;
	mm_gone = true;
	send_small(a, b, IBV_WR_RDMA_WRITE, 8);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
	mm_gone = false;
	mm_bad_len = 0;
	connect_anew(a, b);
	connect_anew(b, a);
	send_small(a, b, IBV_WR_RDMA_WRITE, 8);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
}
END_TEST

static void add_tests(TCase *t)
{
	tcase_add_test(t, test_message_longer_than_the_receive);
	tcase_add_test(t, test_receive_with_a_bad_key);
	tcase_add_test(t, test_send_with_a_bad_key_does_not_reach_the_peer);
	tcase_add_loop_test(t, test_access_violation, 0, sizeof(violations) / sizeof(violations[0]));
	tcase_add_test(t, test_address_that_wraps_is_a_violation);
	tcase_add_test(t, test_key_of_another_pd_is_a_violation);
	tcase_add_test(t, test_key_is_stale_after_dereg);
	tcase_add_loop_test(t, test_operation_that_the_qp_does_not_allow, 0, 4);
	tcase_add_loop_test(t, test_read_and_atomic_write_without_responder_resources, 0, 2);
	tcase_add_loop_test(t, test_own_memory_violation_stays_at_home, 0, sizeof(own) / sizeof(own[0]));
	tcase_add_loop_test(t, test_read_and_atomic_with_both_keys_wrong_report_the_responders_error, 0, 6);
	tcase_add_test(t, test_atomic_whose_answer_cannot_be_stored_is_carried_out);
	tcase_add_loop_test(t, test_write_with_immediate_and_a_wrong_key_ends_the_receive_that_it_took, 0, 2);
	tcase_add_test(t, test_receive_into_what_may_only_be_read);
	tcase_add_loop_test(t, test_peer_in_a_state_that_receives_nothing, 0, 6);
	tcase_add_loop_test(t, test_partitions, 0, 6);
	tcase_add_test(t, test_on_demand_memory_allows_what_its_pages_do);
	tcase_add_test(t, test_on_demand_reads_need_no_right_to_write);
	tcase_add_test(t, test_implicit_region_is_all_of_memory);
	tcase_add_test(t, test_memory_that_went_away_at_the_sender);
	tcase_add_test(t, test_memory_that_went_away_at_the_receiver);
	tcase_add_loop_test(t, test_process_that_is_gone_is_no_answer, 0, 4);
	tcase_add_test(t, test_process_that_is_gone_never_answers_again);
	tcase_add_test(t, test_peer_of_a_device_under_removal_gets_no_nak_although_its_region_goes_first);
	tcase_add_test(t, test_qp_that_did_not_answer_answers_after_a_reset);
}

int main(void)
{
	TCase *t = tcase_create("protection");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 30);
	add_tests(t);
	return run_suite("backends: soft protection", t);
}
