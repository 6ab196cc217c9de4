/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The soft backend's counters, and its advise_mr(). */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tests/backends/bed.h"

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];
static const struct uvd_backend *const ops = &uvd_backend_soft;
static struct uvd_comp_cntr *cntr[2][UVD_COMP_CNTR_OPS]; /* one counter for each operation of each QP */
static struct uvd_counters *counters; /* of b's QP */

static void setup_type(enum ibv_qp_type type)
{
	bed_open(&bed, ops, IBV_LINK_LAYER_INFINIBAND);
	bed_connect(&bed, type);
	for (int e = 0; e < 2; e++) {
		for (int op = 0; op < UVD_COMP_CNTR_OPS; op++) {
			cntr[e][op] = calloc(1, ops->size_comp_cntr);
			cntr[e][op]->context = bed.side[e].context;
			ck_assert_int_eq(ops->create_comp_cntr(cntr[e][op]), 0);
			ck_assert_int_eq(ops->qp_attach_comp_cntr(bed.end[e].qp, cntr[e][op], 1 << op), 0);
			atomic_store(&bed.end[e].qp->comp_cntr[op], cntr[e][op]);
		}
	}
	counters = calloc(1, ops->size_counters);
	counters->context = b->side->context;
	ck_assert_int_eq(ops->create_counters(counters), 0);
	ck_assert_int_eq(ops->bind_counters(b->qp, counters), 0);
	atomic_store(&b->qp->counters, counters);
}

static void setup_rc(void)
{
	setup_type(IBV_QPT_RC);
}

static void setup_uc(void)
{
	setup_type(IBV_QPT_UC);
}

static void teardown(void)
{
	bed_close(&bed);
	for (int e = 0; e < 2; e++)
		for (int op = 0; op < UVD_COMP_CNTR_OPS; op++)
			free(cntr[e][op]);
	free(counters);
}

/* In the order of enum uvd_comp_cntr_op: sends, receives, reads, remote reads, writes, remote writes. */
static void expect_counts(int e, uint32_t entry, const uint64_t counts[UVD_COMP_CNTR_OPS])
{
	for (int op = 0; op < UVD_COMP_CNTR_OPS; op++) {
		uint64_t value;

		ck_assert_int_eq(ops->read_comp_cntr(cntr[e][op], entry, &value), 0);
		ck_assert_msg(value == counts[op], "QP %d, operation %d: %lu", e, op, (unsigned long)value);
	}
}

static void expect_arrived(uint64_t packets, uint64_t bytes)
{
	uint64_t values[3] = { 0, 0, 7 };

	ck_assert_int_eq(ops->read_counters(counters, values, 3, 0), 0);
	ck_assert_uint_eq(values[0], packets);
	ck_assert_uint_eq(values[1], bytes);
	ck_assert_uint_eq(values[2], 7);
}

static void request(enum ibv_wr_opcode opcode, uint32_t length, bool receives)
{
	if (receives)
		ck_assert_int_eq(post_recv_at(b, 1, 0, BUF_SIZE / 2), 0);
	send_small(a, b, opcode, length);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	if (receives)
		expect(b->rcq, 1, IBV_WC_SUCCESS);
}

START_TEST(test_completions_are_counted_by_operation_at_both_ends)
{
	const uint64_t none[UVD_COMP_CNTR_OPS] = { 0 };

	request(IBV_WR_SEND, 10, true);
	request(IBV_WR_SEND, 10, true);
	request(IBV_WR_RDMA_WRITE, 10, false);
	request(IBV_WR_RDMA_WRITE_WITH_IMM, 10, true);
	request(IBV_WR_RDMA_WRITE, 10, false);
	expect_counts(0, 0, (uint64_t[]){ 2, 0, 0, 0, 3, 0 });
	expect_counts(1, 0, (uint64_t[]){ 0, 3, 0, 0, 0, 3 });
	expect_counts(0, 1, none);
	expect_counts(1, 1, none);
}
END_TEST

START_TEST(test_requests_of_a_list_are_counted_each)
{
	struct ibv_sge sge = sge_at(a, 0, 5000); /* five packets */
	struct uvd_send_wr wrs[4];

	for (int i = 0; i < 4; i++) {
		wrs[i] = wr_to(b, i % 2 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, &sge, 1);
		wrs[i].next = i < 3 ? &wrs[i + 1] : NULL;
		if (i % 2)
			ck_assert_int_eq(post_recv_at(b, i, 0, 5000), 0);
	}
	ck_assert_int_eq(post_send_wr(a, wrs), 0);
	for (int i = 0; i < 4; i++)
		expect(a->scq, 0xa, IBV_WC_SUCCESS);
	expect_counts(0, 0, (uint64_t[]){ 2, 0, 0, 0, 2, 0 });
	expect_counts(1, 0, (uint64_t[]){ 0, 2, 0, 0, 0, 2 });
	expect_arrived(20, 20000);
}
END_TEST

START_TEST(test_reads_are_counted_at_both_ends)
{
	request(IBV_WR_RDMA_READ, 5000, false); /* b receives one packet; the response has five */
	expect_counts(0, 0, (uint64_t[]){ 0, 0, 1, 0, 0, 0 });
	expect_counts(1, 0, (uint64_t[]){ 0, 0, 0, 1, 0, 0 });
	expect_arrived(1, 0);
}
END_TEST

/* A request counts although it makes no completion. */
START_TEST(test_unsignalled_sends_are_counted)
{
	struct ibv_sge sge = sge_at(a, 0, 4);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_SEND, &sge, 1);

	wr.send_flags = 0;
	ck_assert_int_eq(post_recv_at(b, 1, 0, 100), 0);
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(b->rcq, 1, IBV_WC_SUCCESS);
	expect_nothing(a->scq);
	expect_counts(0, 0, (uint64_t[]){ 1, 0, 0, 0, 0, 0 });
}
END_TEST

/* Counted as errors: the request that fails, a flushed request, and the receives flushed at the peer. */
START_TEST(test_errors_are_counted_apart)
{
	struct ibv_sge sge = sge_at(a, 0, 4);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_RDMA_WRITE, &sge, 1);

	wr.rkey = 0x77;
	ck_assert_int_eq(post_recv_at(b, 1, 0, 100), 0);
	ck_assert_int_eq(post_recv_at(b, 2, 0, 100), 0);
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_REM_ACCESS_ERR);
	send_small(a, b, IBV_WR_SEND, 4);
	expect(a->scq, 0xa, IBV_WC_WR_FLUSH_ERR);
	expect(b->rcq, 1, IBV_WC_WR_FLUSH_ERR);
	expect(b->rcq, 2, IBV_WC_WR_FLUSH_ERR);
	expect_counts(0, 1, (uint64_t[]){ 1, 0, 0, 0, 1, 0 });
	expect_counts(1, 1, (uint64_t[]){ 0, 2, 0, 0, 0, 0 });
	expect_counts(1, 0, (uint64_t[UVD_COMP_CNTR_OPS]){ 0 });
	expect_arrived(0, 0);
}
END_TEST

/* The path's MTU is 1024. */
START_TEST(test_packets_and_bytes_that_arrive_are_counted)
{
	request(IBV_WR_SEND, 1024, true);
	expect_arrived(1, 1024);
	request(IBV_WR_RDMA_WRITE, 1025, false);
	expect_arrived(3, 2049);
	request(IBV_WR_SEND, 0, true);
	expect_arrived(4, 2049);
	ck_assert_int_eq(post_recv_at(a, 1, 0, 100), 0);
	send_small(b, a, IBV_WR_SEND, 50); /* arrives at a, so b's counters do not change */
	expect(a->rcq, 1, IBV_WC_SUCCESS);
	expect_arrived(4, 2049);
}
END_TEST

START_TEST(test_counters_need_room_for_all_values)
{
	uint64_t value;

	ck_assert_int_eq(ops->read_counters(counters, &value, 1, 0), -EINVAL);
	ck_assert_int_eq(ops->read_counters(counters, NULL, 0, 0), -EINVAL);
}
END_TEST

START_TEST(test_completion_counters_are_limited)
{
	struct uvd_comp_cntr more = { .context = a->side->context };
	struct uvd_comp_cntr_caps caps;
	unsigned int made = UVD_COMP_CNTR_OPS;

	ck_assert_int_eq(ops->query_comp_cntr_caps(&a->side->dev, &caps), 0);
	while (!ops->create_comp_cntr(&more))
		made++;
	ck_assert_uint_eq(made, caps.max_counters);
	ck_assert_int_eq(ops->destroy_comp_cntr(&more), 0);
	ck_assert_int_eq(ops->create_comp_cntr(&more), 0);
}
END_TEST

/* ---- advice ------------------------------------------------------------------------------------------------------ */

#define FETCH IBV_ADVISE_MR_ADVICE_PREFETCH
#define WRITE IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE
#define NO_FAULT IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT
#define FLUSH IBV_ADVISE_MR_FLAG_FLUSH

static int advise(struct uvd_mr *mr, enum ibv_advise_mr_advice advice, uint32_t flags, uint64_t offset, uint32_t length)
{
	struct ibv_sge list[2] = { { mr->iova, 1, mr->lkey }, { mr->iova + offset, length, mr->lkey } };

	return ops->advise_mr(a->side->pd, advice, flags, list, 2);
}

START_TEST(test_advice_says_whether_the_memory_could_be_fetched)
{
	struct uvd_mr *odp = make_mr(a, a->buf, 8192, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE);

	odp->umem.writable = true;
	ck_assert_int_eq(advise(odp, FETCH, FLUSH, 0, 8192), 0);
	ck_assert_int_eq(advise(odp, FETCH, FLUSH, 1, 8192), -EFAULT);
	ck_assert_int_eq(advise(odp, FETCH, FLUSH, -1, 2), -EFAULT);
	ck_assert_int_eq(advise(odp, NO_FAULT, FLUSH, 1, 8192), -EFAULT);
	ck_assert_int_eq(advise(odp, FETCH, 0, 1, 8192), 0); /* without FLUSH the result is not reported */
	mm_ro = (uintptr_t)a->buf + 4096;
	mm_ro_len = 4096;
	ck_assert_int_eq(advise(odp, FETCH, FLUSH, 4000, 1000), 0);
	ck_assert_int_eq(advise(odp, WRITE, FLUSH, 4000, 96), 0);
	ck_assert_int_eq(advise(odp, WRITE, FLUSH, 4000, 1000), -EFAULT);
	mm_ro_len = 0;
	mm_bad = (uintptr_t)a->buf + 4096;
	mm_bad_len = 1;
	ck_assert_int_eq(advise(odp, FETCH, FLUSH, 4000, 1000), -EFAULT);
	ck_assert_int_eq(advise(odp, NO_FAULT, FLUSH, 4000, 1000), 0);
	ck_assert_int_eq(advise(odp, FETCH, 0, 4000, 1000), 0);
	mm_bad_len = 0;
	free_mr(odp);
}
END_TEST

START_TEST(test_advice_is_for_regions_of_the_pd_that_are_on_demand)
{
	struct uvd_mr *odp = make_mr(a, a->buf, 8192, IBV_ACCESS_ON_DEMAND);
	struct uvd_pd *other = calloc(1, ops->size_pd), *own = odp->pd;
	struct ibv_sge sge = { odp->iova, 8, 0x77 };

	other->context = a->side->context;
	ck_assert_int_eq(ops->advise_mr(own, FETCH, 0, &sge, 1), -ENOENT);
	sge.lkey = a->mr->lkey;
	ck_assert_int_eq(ops->advise_mr(own, FETCH, 0, &sge, 1), -ENOENT);
	sge.lkey = odp->lkey;
	ck_assert_int_eq(ops->advise_mr(other, FETCH, 0, &sge, 1), -EPERM);
	ck_assert_int_eq(ops->advise_mr(own, WRITE, 0, &sge, 1), -EPERM);
	ck_assert_int_eq(ops->advise_mr(own, FETCH, 0, &sge, 1), 0);
	ck_assert_int_eq(ops->advise_mr(own, 3, 0, &sge, 1), -EOPNOTSUPP);
	free_mr(odp);
	free(other);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("backends: what soft counts");
	TCase *rc = tcase_create("RC"), *uc = tcase_create("UC");

	tcase_add_checked_fixture(rc, setup_rc, teardown);
	tcase_add_test(rc, test_completions_are_counted_by_operation_at_both_ends);
	tcase_add_test(rc, test_requests_of_a_list_are_counted_each);
	tcase_add_test(rc, test_reads_are_counted_at_both_ends);
	tcase_add_test(rc, test_unsignalled_sends_are_counted);
	tcase_add_test(rc, test_errors_are_counted_apart);
	tcase_add_test(rc, test_packets_and_bytes_that_arrive_are_counted);
	tcase_add_test(rc, test_counters_need_room_for_all_values);
	tcase_add_test(rc, test_completion_counters_are_limited);
	tcase_add_test(rc, test_advice_says_whether_the_memory_could_be_fetched);
	tcase_add_test(rc, test_advice_is_for_regions_of_the_pd_that_are_on_demand);
	tcase_add_checked_fixture(uc, setup_uc, teardown);
	tcase_add_test(uc, test_completions_are_counted_by_operation_at_both_ends);
	tcase_add_test(uc, test_packets_and_bytes_that_arrive_are_counted);
	suite_add_tcase(suite, rc);
	suite_add_tcase(suite, uc);
	return run_cases(suite);
}
