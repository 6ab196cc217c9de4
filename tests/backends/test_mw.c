/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory windows: binding, the accesses that they allow and to which QPs, and invalidation by either end. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tests/backends/bed.h"

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];
static const struct uvd_backend *const ops = &uvd_backend_soft;
static struct uvd_mr *mr; /* b's MR, to which windows are bound */
static struct uvd_mw *mw;

enum { START = 4096, LENGTH = 1000 };
enum { RW = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE };

static struct uvd_mw *make_mw(struct end *end, enum ibv_mw_type type)
{
	struct uvd_mw *new = calloc(1, ops->size_mw);

	new->pd = end->side->pd;
	new->type = type;
	if (!ops->alloc_mw(new, NULL))
		return new;
	free(new);
	return NULL;
}

static void free_mw(struct uvd_mw *old)
{
	ck_assert_int_eq(ops->dealloc_mw(old), 0);
	free(old);
}

static void setup(void)
{
	bed_open(&bed, ops, IBV_LINK_LAYER_INFINIBAND);
	memset(a->buf, 0x11, BUF_SIZE);
	mr = make_mr(b, b->buf, BUF_SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	bed_connect(&bed, IBV_QPT_RC);
}

static void teardown(void)
{
	if (mw)
		free_mw(mw);
	mw = NULL;
	if (mr)
		free_mr(mr);
	bed_close(&bed);
}

static struct uvd_send_wr bind_of(uint64_t start, uint64_t length, unsigned int access, uint8_t tag)
{
	return (struct uvd_send_wr){
		.wr_id = 0xb1,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.rkey = tag,
		.bind = { mw, mr, (uintptr_t)b->buf + start, length, access },
	};
}

static void bind_ok(unsigned int access, uint8_t tag)
{
	struct uvd_send_wr wr = bind_of(START, LENGTH, access, tag);

	ck_assert_int_eq(post_send_wr(b, &wr), 0);
	ck_assert_int_eq(expect(b->scq, 0xb1, IBV_WC_SUCCESS).opcode, IBV_WC_BIND_MW);
	ck_assert_uint_eq(mw->rkey & 0xff, tag);
}

static void access_from(struct end *end, enum ibv_wr_opcode opcode, uint64_t addr, uint32_t length,
			enum ibv_wc_status status)
{
	struct ibv_sge sge = sge_at(end, 0, length);
	struct uvd_send_wr wr = wr_to(b, opcode, &sge, 1);

	wr.rkey = mw->rkey;
	wr.remote_addr = addr;
	ck_assert_int_eq(post_send_wr(end, &wr), 0);
	expect(end->scq, 0xa, status);
}

static void access_at(enum ibv_wr_opcode opcode, uint64_t addr, uint32_t length, enum ibv_wc_status status)
{
	access_from(a, opcode, addr, length, status);
}

static void access_window(enum ibv_wr_opcode opcode, int64_t offset, uint32_t length, enum ibv_wc_status status)
{
	access_at(opcode, (uintptr_t)b->buf + START + offset, length, status);
}

/* Expects a's bytes in this part of b's buffer and nowhere else. */
static void expect_filled(int start, int length)
{
	bool right = true;

	for (int i = 0; i < BUF_SIZE; i++)
		right &= b->buf[i] == (i >= start && i < start + length ? 0x11 : 0);
	ck_assert(right);
}

START_TEST(test_window_opens_what_was_bound)
{
	mw = make_mw(b, _i);
	bind_ok(RW, 7);
	access_window(IBV_WR_RDMA_WRITE, 0, LENGTH, IBV_WC_SUCCESS);
	access_window(IBV_WR_RDMA_WRITE, LENGTH - 1, 1, IBV_WC_SUCCESS);
	access_window(IBV_WR_RDMA_READ, 1, LENGTH - 1, IBV_WC_SUCCESS);
	expect_filled(START, LENGTH);
	ck_assert_int_eq(ops->dereg_mr(mr), -EINVAL);
}
END_TEST

static const struct {
	const char *what;
	int64_t offset;
	uint32_t length;
	unsigned int access;
	enum ibv_wr_opcode opcode;
	bool unbound;
} violations[] = {
	{ "one byte before", -1, 2, RW, IBV_WR_RDMA_WRITE },
	{ "one byte beyond", LENGTH - 1, 2, RW, IBV_WR_RDMA_READ },
	{ "longer than all", 0, LENGTH + 1, RW, IBV_WR_RDMA_WRITE },
	{ "no right to write", 0, 8, IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_WRITE },
	{ "no right to read", 0, 8, IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_READ },
	{ "no right to atomics", 0, 8, RW, IBV_WR_ATOMIC_FETCH_AND_ADD },
	{ "never bound", 0, 8, RW, IBV_WR_RDMA_READ, true },
};

START_TEST(test_window_violation)
{
	mw = make_mw(b, 1 + _i % 2);
	if (!violations[_i / 2].unbound)
		bind_ok(violations[_i / 2].access, 7);
	access_window(violations[_i / 2].opcode, violations[_i / 2].offset, violations[_i / 2].length,
		      IBV_WC_REM_ACCESS_ERR);
	ck_assert_int_eq(state_of(b), IBV_QPS_ERR);
	expect_filled(0, 0);
}
END_TEST

START_TEST(test_zero_based_window_begins_at_0)
{
	mw = make_mw(b, IBV_MW_TYPE_2);
	bind_ok(RW | IBV_ACCESS_ZERO_BASED, 7);
	access_at(IBV_WR_RDMA_WRITE, 0, 1, IBV_WC_SUCCESS);
	access_at(IBV_WR_RDMA_WRITE, LENGTH - 1, 1, IBV_WC_SUCCESS);
	ck_assert_int_eq(b->buf[START], 0x11);
	ck_assert_int_eq(b->buf[START + LENGTH - 1], 0x11);
	access_at(IBV_WR_RDMA_WRITE, LENGTH, 1, IBV_WC_REM_ACCESS_ERR);
}
END_TEST

START_TEST(test_key_of_a_window_is_no_lkey)
{
	struct ibv_sge sge = sge_at(b, START, 8);
	struct uvd_send_wr wr = wr_to(a, IBV_WR_RDMA_WRITE, &sge, 1);

	mw = make_mw(b, _i);
	bind_ok(RW, 7);
	sge.lkey = mw->rkey;
	ck_assert_int_eq(post_send_wr(b, &wr), 0);
	expect(b->scq, 0xa, IBV_WC_LOC_PROT_ERR);
}
END_TEST

/* Each row breaks one rule of binding. */
static const struct {
	const char *what;
	int64_t start;
	uint64_t length;
	unsigned int access, mr_access;
	int type;
	bool twice, other_pd, mr_of_other_pd;
} bad_binds[] = {
	{ "before the MR", -1, 8, RW },
	{ "beyond the MR", BUF_SIZE - 7, 8, RW },
	{ "wraps", 8, UINT64_MAX, RW },
	{ "an MR that may not be bound", 0, 8, RW, IBV_ACCESS_LOCAL_WRITE },
	{ "writes to an MR that is read only", 0, 8, RW, IBV_ACCESS_MW_BIND },
	{ "type 1, zero based", 0, 8, RW | IBV_ACCESS_ZERO_BASED, 0, 1 },
	{ "an access flag that does not exist", 0, 8, RW | 1u << 30 },
	{ "type 2, of length 0", 0, 0, RW, 0, 2 },
	{ "type 2, bound already", 0, 8, RW, 0, 2, true },
	{ "another PD's window", 0, 8, RW, .other_pd = true },
	{ "another PD's MR", 0, 8, RW, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND, .mr_of_other_pd = true },
};

START_TEST(test_bad_bind_is_bind_error)
{
	struct uvd_pd *pd = calloc(1, ops->size_pd), *old = b->side->pd;
	struct uvd_send_wr wr;

	pd->context = b->side->context;
	ck_assert_int_eq(ops->alloc_pd(pd, NULL), 0);
	if (bad_binds[_i].other_pd)
		b->side->pd = pd;
	mw = make_mw(b, bad_binds[_i].type ? bad_binds[_i].type : 2);
	b->side->pd = old;
	if (bad_binds[_i].mr_access) {
		free_mr(mr);
		b->side->pd = bad_binds[_i].mr_of_other_pd ? pd : old;
		mr = make_mr(b, b->buf, BUF_SIZE, bad_binds[_i].mr_access);
		b->side->pd = old;
	}
	if (bad_binds[_i].twice)
		bind_ok(RW, 7);
	wr = bind_of(bad_binds[_i].start, bad_binds[_i].length, bad_binds[_i].access, 9);
	ck_assert_int_eq(post_send_wr(b, &wr), 0);
	expect(b->scq, 0xb1, IBV_WC_MW_BIND_ERR);
	ck_assert_int_eq(state_of(b), IBV_QPS_ERR);
	free_mw(mw);
	mw = NULL;
	if (bad_binds[_i].mr_of_other_pd) {
		free_mr(mr);
		mr = NULL;
	}
	ck_assert_int_eq(ops->dealloc_pd(pd), 0);
	free(pd);
}
END_TEST

START_TEST(test_type_1_is_bound_again_and_unbound)
{
	struct uvd_send_wr wr;
	uint32_t old;

	mw = make_mw(b, IBV_MW_TYPE_1);
	bind_ok(RW, 1);
	access_window(IBV_WR_RDMA_WRITE, 0, 8, IBV_WC_SUCCESS);
	bind_ok(RW, 2);
	access_window(IBV_WR_RDMA_WRITE, 0, 8, IBV_WC_SUCCESS);
	old = mw->rkey;
	wr = bind_of(0, 0, 0, 3);
	ck_assert_int_eq(post_send_wr(b, &wr), 0);
	expect(b->scq, 0xb1, IBV_WC_SUCCESS);
	free_mr(mr); /* no window is bound to it any more */
	mr = make_mr(b, b->buf, BUF_SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	ck_assert_uint_ne(mw->rkey, old);
	access_window(IBV_WR_RDMA_WRITE, 0, 8, IBV_WC_REM_ACCESS_ERR);
}
END_TEST

static void invalidate_locally(uint32_t key, enum ibv_wc_status status)
{
	ck_assert_int_eq(send_wr(b, .wr_id = 0xc, .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = key,
				 .send_flags = IBV_SEND_SIGNALED),
			 0);
	expect(b->scq, 0xc, status);
}

START_TEST(test_local_invalidate_closes_a_type_2_window)
{
	mw = make_mw(b, IBV_MW_TYPE_2);
	bind_ok(RW, 7);
	access_window(IBV_WR_RDMA_WRITE, 0, 8, IBV_WC_SUCCESS);
	invalidate_locally(mw->rkey, IBV_WC_SUCCESS);
	bind_ok(RW, 8);
	access_window(IBV_WR_RDMA_WRITE, 0, 8, IBV_WC_SUCCESS);
	invalidate_locally(mw->rkey, IBV_WC_SUCCESS);
	access_window(IBV_WR_RDMA_WRITE, 0, 8, IBV_WC_REM_ACCESS_ERR);
}
END_TEST

START_TEST(test_local_invalidate_of_anything_else_is_a_bind_error)
{
	mw = make_mw(b, _i == 0 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
	bind_ok(RW, 7);
	invalidate_locally(_i == 0 ? mw->rkey : _i == 1 ? mr->rkey : mw->rkey ^ 1, IBV_WC_MW_BIND_ERR);
	ck_assert_int_eq(state_of(b), IBV_QPS_ERR);
}
END_TEST

static void send_with_inv(uint32_t key)
{
	struct ibv_sge sge = sge_at(a, 0, 100);

	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 100), 0);
	ck_assert_int_eq(send_wr(a, .wr_id = 0xa, .opcode = IBV_WR_SEND_WITH_INV, .sg_list = &sge, .num_sge = 1,
				 .invalidate_rkey = key, .send_flags = IBV_SEND_SIGNALED),
			 0);
}

START_TEST(test_send_with_invalidate_closes_the_window)
{
	struct ibv_wc wc;

	mw = make_mw(b, IBV_MW_TYPE_2);
	bind_ok(RW, 7);
	send_with_inv(mw->rkey);
	ck_assert_int_eq(expect(a->scq, 0xa, IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
	wc = expect(b->rcq, 0xb, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.wc_flags, IBV_WC_WITH_INV);
	ck_assert_uint_eq(wc.invalidated_rkey, mw->rkey);
	ck_assert_int_eq(b->buf[99], 0x11);
	access_window(IBV_WR_RDMA_READ, 0, 8, IBV_WC_REM_ACCESS_ERR);
}
END_TEST

START_TEST(test_send_with_invalidate_of_a_wrong_key_ends_the_receive_without_an_answer)
{
	mw = make_mw(b, IBV_MW_TYPE_2);
	bind_ok(RW, 7);
	send_with_inv(_i ? mr->rkey : mw->rkey ^ 1);
	expect(b->rcq, 0xb, IBV_WC_REM_INV_REQ_ERR);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
	ck_assert_int_eq(state_of(b), IBV_QPS_ERR);
}
END_TEST

START_TEST(test_type_2_window_is_for_the_peer_of_its_qp_only)
{
	struct uvd_qp_init_attr init = { .cap = bed.cap };
	struct end c = *a, d = *b;
	int err;

	c.qp = make_qp(&c, IBV_QPT_RC, &init, &err);
	init = (struct uvd_qp_init_attr){ .cap = bed.cap };
	d.qp = make_qp(&d, IBV_QPT_RC, &init, &err);
	ck_assert_int_eq(to_init(&c) | to_rtr(&c, &d) | to_rts(&c), 0);
	ck_assert_int_eq(to_init(&d) | to_rtr(&d, &c) | to_rts(&d), 0);
	mw = make_mw(b, _i);
	bind_ok(RW, 7);
	access_from(&c, IBV_WR_RDMA_WRITE, (uintptr_t)b->buf + START, 8,
		    _i == IBV_MW_TYPE_1 ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
	free_qp(&c);
	free_qp(&d);
}
END_TEST

START_TEST(test_window_is_closed_to_qps_of_another_pd)
{
	struct uvd_pd *pd = calloc(1, ops->size_pd), *old = b->side->pd;
	struct uvd_qp_init_attr init = { .cap = bed.cap };
	struct end c = *a, d = *b;
	int err;

	pd->context = b->side->context;
	ck_assert_int_eq(ops->alloc_pd(pd, NULL), 0);
	c.qp = make_qp(&c, IBV_QPT_RC, &init, &err);
	b->side->pd = pd;
	init = (struct uvd_qp_init_attr){ .cap = bed.cap };
	d.qp = make_qp(&d, IBV_QPT_RC, &init, &err);
	b->side->pd = old;
	ck_assert_int_eq(to_init(&c) | to_rtr(&c, &d) | to_rts(&c), 0);
	ck_assert_int_eq(to_init(&d) | to_rtr(&d, &c) | to_rts(&d), 0);
	mw = make_mw(b, _i);
	bind_ok(RW, 7);
	access_from(&c, IBV_WR_RDMA_WRITE, (uintptr_t)b->buf + START, 8, IBV_WC_REM_ACCESS_ERR);
	expect_filled(0, 0);
	free_qp(&c);
	free_qp(&d);
	ck_assert_int_eq(ops->dealloc_pd(pd), 0);
	free(pd);
}
END_TEST

START_TEST(test_key_is_stale_after_dealloc)
{
	uint32_t key;

	mw = make_mw(b, _i);
	/* The tag that the index would have next: it is the client's choice, so the next key must not be made of it. */
	bind_ok(RW, (mw->rkey + 1) & 0xff);
	key = mw->rkey;
	free_mw(mw);
	for (int i = 0; i < 1000; i++) {
		mw = make_mw(b, _i);
		if (mw->rkey >> 8 == key >> 8)
			break;
		free_mw(mw);
	}
	ck_assert_uint_eq(mw->rkey >> 8, key >> 8);
	ck_assert_uint_ne(mw->rkey, key);
	bind_ok(RW, mw->rkey);

	struct ibv_sge sge = sge_at(a, 0, 8);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_RDMA_WRITE, &sge, 1);

	wr.rkey = key;
	wr.remote_addr += START;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_REM_ACCESS_ERR);
}
END_TEST

START_TEST(test_bind_that_waits_may_outlive_its_window)
{
	struct uvd_send_wr wr;

	/* The bind is queued behind a send that waits for a receive. */
	send_small(b, a, IBV_WR_SEND, 100);
	mw = make_mw(b, IBV_MW_TYPE_2);
	wr = bind_of(START, LENGTH, RW, 7);
	ck_assert_int_eq(post_send_wr(b, &wr), 0);
	free_mw(mw);
	mw = make_mw(b, IBV_MW_TYPE_2);
	ck_assert_int_eq(post_recv_at(a, 1, 0, 100), 0);
	expect(b->scq, 0xa, IBV_WC_SUCCESS);
	expect(b->scq, 0xb1, IBV_WC_MW_BIND_ERR);
}
END_TEST

START_TEST(test_windows_are_limited)
{
	struct uvd_mw *mws[101];

	for (int i = 0; i < 100; i++)
		ck_assert_ptr_nonnull(mws[i] = make_mw(b, 1 + i % 2));
	ck_assert_ptr_null(make_mw(b, 1));
	for (int i = 0; i < 100; i++)
		free_mw(mws[i]);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("mw");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, test_window_opens_what_was_bound, 1, 3);
	tcase_add_loop_test(t, test_window_violation, 0, 2 * sizeof(violations) / sizeof(violations[0]));
	tcase_add_test(t, test_zero_based_window_begins_at_0);
	tcase_add_loop_test(t, test_key_of_a_window_is_no_lkey, 1, 3);
	tcase_add_loop_test(t, test_bad_bind_is_bind_error, 0, sizeof(bad_binds) / sizeof(bad_binds[0]));
	tcase_add_test(t, test_type_1_is_bound_again_and_unbound);
	tcase_add_test(t, test_local_invalidate_closes_a_type_2_window);
	tcase_add_loop_test(t, test_local_invalidate_of_anything_else_is_a_bind_error, 0, 3);
	tcase_add_test(t, test_send_with_invalidate_closes_the_window);
	tcase_add_loop_test(t, test_send_with_invalidate_of_a_wrong_key_ends_the_receive_without_an_answer, 0, 2);
	tcase_add_loop_test(t, test_type_2_window_is_for_the_peer_of_its_qp_only, 1, 3);
	tcase_add_loop_test(t, test_window_is_closed_to_qps_of_another_pd, 1, 3);
	tcase_add_loop_test(t, test_key_is_stale_after_dealloc, 1, 3);
	tcase_add_test(t, test_bind_that_waits_may_outlive_its_window);
	tcase_add_test(t, test_windows_are_limited);
	return run_suite("backends: soft memory windows", t);
}
