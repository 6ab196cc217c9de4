/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What is refused, with the right status at both ends, and no byte touched. */
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
	bed_close(&bed);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static void expect_both_in_error(enum ibv_wc_status at_a)
{
	expect(a->scq, 0xa, at_a);
	ck_assert_int_eq(state_of(a), IBV_QPS_ERR);
	ck_assert_int_eq(state_of(b), IBV_QPS_ERR);
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
	ck_assert_int_eq(b->buf[1], 0);
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
	unsigned int access; /* of an MR that is used instead */
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
	ck_assert_int_eq(uvd_backend_soft.alloc_pd(pd), 0);
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
	/* Until its index comes round again. */
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

START_TEST(test_read_without_responder_resources)
{
	b->max_dest_rd_atomic = 0;
	bed_connect(&bed, IBV_QPT_RC);
	send_small(a, b, IBV_WR_RDMA_READ, 8);
	expect_both_in_error(IBV_WC_REM_INV_REQ_ERR);
}
END_TEST

START_TEST(test_memory_that_went_away_at_the_sender)
{
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 100), 0);
	mm_bad = (uintptr_t)a->buf;
	mm_bad_len = 10;
	send_small(a, b, IBV_WR_SEND, 100);
	expect(a->scq, 0xa, IBV_WC_LOC_PROT_ERR);
	/* The message broke off: the receive is still the peer's, and flushed with the rest. */
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
	tcase_add_test(t, test_read_without_responder_resources);
	tcase_add_test(t, test_memory_that_went_away_at_the_sender);
	tcase_add_test(t, test_memory_that_went_away_at_the_receiver);
}

int main(void)
{
	TCase *t = tcase_create("protection");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 30);
	add_tests(t);
	return run_suite("backends: soft protection", t);
}
