/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Device memory of the soft backend: RDMA accesses it like client memory. A device has a fixed amount of it. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tests/backends/bed.h"

enum { DM_SIZE = 8192, OFFSET = 4000, LENGTH = 1000, MAX_DM = 64 << 10, LARGE = 32 << 10 };
enum { ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC };

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];
static const struct uvd_backend *const ops = &uvd_backend_soft;
static struct uvd_dm *dm; /* of b's device */
static struct uvd_mr *whole, *part;

static struct uvd_dm *make_dm(struct end *end, uint64_t length, uint32_t alignment, int *err)
{
	struct uvd_dm *new = calloc(1, ops->size_dm);

	new->context = end->side->context;
	new->length = length;
	new->alignment = alignment;
	*err = ops->alloc_dm(new);
	if (!*err)
		return new;
	free(new);
	return NULL;
}

static void free_dm(struct uvd_dm *old)
{
	ck_assert_int_eq(ops->dealloc_dm(old), 0);
	free(old);
}

static struct uvd_mr *reg_dm(struct end *end, struct uvd_dm *of, uint64_t offset, uint64_t length, unsigned int access)
{
	struct uvd_mr *mr = calloc(1, ops->size_mr);

	mr->pd = end->side->pd;
	mr->dm = of;
	mr->dm_offset = offset;
	mr->length = length;
	mr->access = access | IBV_ACCESS_ZERO_BASED;
	ck_assert_int_eq(ops->reg_dm_mr(mr, NULL), 0);
	return mr;
}

static void setup(void)
{
	int err;

	bed_open(&bed, ops, IBV_LINK_LAYER_INFINIBAND);
	for (int i = 0; i < BUF_SIZE; i++)
		a->buf[i] = i * 7 + 1;
	dm = make_dm(b, DM_SIZE, 0, &err);
	ck_assert_ptr_nonnull(dm);
	whole = reg_dm(b, dm, 0, DM_SIZE, ALL);
	part = reg_dm(b, dm, OFFSET, LENGTH, ALL);
	bed_connect(&bed, IBV_QPT_RC);
}

static void teardown(void)
{
	free_mr(part);
	free_mr(whole);
	free_dm(dm);
	bed_close(&bed);
}

static void access_dm(struct uvd_mr *mr, enum ibv_wr_opcode opcode, uint64_t addr, size_t local, uint32_t length,
		      enum ibv_wc_status status)
{
	struct ibv_sge sge = sge_at(a, local, length);
	struct uvd_send_wr wr = wr_to(b, opcode, &sge, 1);

	wr.rkey = mr->rkey;
	wr.remote_addr = addr;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, status);
}

START_TEST(test_what_is_written_is_read_back_by_any_region_of_it)
{
	access_dm(part, IBV_WR_RDMA_WRITE, 0, 0, LENGTH, IBV_WC_SUCCESS);
	memset(a->buf + 10000, 0xee, DM_SIZE);
	access_dm(whole, IBV_WR_RDMA_READ, 0, 10000, DM_SIZE, IBV_WC_SUCCESS);
	for (int i = 0; i < DM_SIZE; i++)
		ck_assert_int_eq(a->buf[10000 + i], i >= OFFSET && i < OFFSET + LENGTH ? a->buf[i - OFFSET] : 0);
	access_dm(part, IBV_WR_RDMA_READ, LENGTH - 1, 10000, 1, IBV_WC_SUCCESS);
	ck_assert_int_eq(a->buf[10000], a->buf[LENGTH - 1]);
}
END_TEST

static const struct {
	uint64_t addr;
	uint32_t length;
} beyond[] = { { LENGTH, 1 }, { LENGTH - 1, 2 }, { 0, LENGTH + 1 }, { UINT64_MAX, 1 }, { UINT64_MAX, 2 } };

START_TEST(test_beyond_a_region_there_is_nothing)
{
	access_dm(part, IBV_WR_RDMA_WRITE, beyond[_i].addr, 0, beyond[_i].length, IBV_WC_REM_ACCESS_ERR);
}
END_TEST

START_TEST(test_rights_are_those_of_the_region)
{
	struct uvd_mr *ro = reg_dm(b, dm, 0, 64, IBV_ACCESS_REMOTE_READ);

	access_dm(ro, IBV_WR_RDMA_READ, 0, 0, 64, IBV_WC_SUCCESS);
	access_dm(ro, IBV_WR_RDMA_WRITE, 0, 0, 64, IBV_WC_REM_ACCESS_ERR);
	free_mr(ro);
}
END_TEST

START_TEST(test_atomics_change_it)
{
	uint64_t *result = (uint64_t *)a->buf;
	struct ibv_sge sge = sge_at(a, 0, 8);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 1);

	wr.rkey = part->rkey;
	wr.remote_addr = 16;
	wr.compare_add = 5;
	for (unsigned int i = 0; i < 3; i++) {
		ck_assert_int_eq(post_send_wr(a, &wr), 0);
		expect(a->scq, 0xa, IBV_WC_SUCCESS);
		ck_assert_uint_eq(*result, 5 * i);
	}
	access_dm(whole, IBV_WR_RDMA_READ, OFFSET + 16, 0, 8, IBV_WC_SUCCESS);
	ck_assert_uint_eq(*result, 15);
}
END_TEST

/* A receive fills device memory, and a send reads it. */
START_TEST(test_it_is_memory_of_sends_and_receives)
{
	struct ibv_sge in = { 100, 200, part->lkey }, out = { OFFSET + 100, 200, whole->lkey };
	struct uvd_send_wr wr = wr_to(a, IBV_WR_SEND, &out, 1);

	ck_assert_int_eq(post_recv_list(b, 1, &in, 1), 0);
	send_small(a, b, IBV_WR_SEND, 200);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	expect(b->rcq, 1, IBV_WC_SUCCESS);
	ck_assert_int_eq(post_recv_at(a, 2, 20000, 200), 0);
	ck_assert_int_eq(post_send_wr(b, &wr), 0);
	expect(b->scq, 0xa, IBV_WC_SUCCESS);
	expect(a->rcq, 2, IBV_WC_SUCCESS);
	ck_assert_mem_eq(a->buf + 20000, a->buf, 200);
}
END_TEST

/* A client can truncate a file that the engine has mapped. The copy into device memory must survive that. */
START_TEST(test_it_is_written_from_a_view_that_may_be_gone)
{
	struct uvd_mr *large;
	struct uvd_dm *more;
	char *view = malloc(BUF_SIZE);
	int err;

	memset(view, 0x55, BUF_SIZE);
	mm_views[0] = (struct fake_view){ (uintptr_t)a->buf, BUF_SIZE, view, false };
	a->mr->umem.shared = true;
	more = make_dm(b, LARGE, 0, &err);
	ck_assert_ptr_nonnull(more);
	large = reg_dm(b, more, 0, LARGE, ALL);
	access_dm(large, IBV_WR_RDMA_WRITE, 0, 0, LARGE, IBV_WC_SUCCESS);
	access_dm(large, IBV_WR_RDMA_READ, 0, 0, LARGE / 4, IBV_WC_SUCCESS);
	ck_assert_mem_eq(a->buf, view, LARGE / 4);
	mm_bad = (uintptr_t)view;
	mm_bad_len = 1;
	access_dm(large, IBV_WR_RDMA_WRITE, 0, 0, LARGE, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(state_of(b), IBV_QPS_RTS);
	mm_bad_len = 0;
	free_mr(large);
	free_dm(more);
	mm_views[0].len = 0;
}
END_TEST

/*
 * A receive of two SGEs: the first is device memory, the second faults. The engine must not call uvd_mm_alive() for the
 * first, as device memory belongs to no process.
 */
START_TEST(test_fault_beside_device_memory_is_reported)
{
	struct ibv_sge parts[2] = { { 0, 8, part->lkey }, sge_at(b, 0, 100) };

	mm_bad = (uintptr_t)b->buf;
	mm_bad_len = 100;
	ck_assert_int_eq(post_recv_list(b, 1, parts, 2), 0);
	send_small(a, b, IBV_WR_SEND, 50);
	expect(a->scq, 0xa, IBV_WC_REM_OP_ERR);
	expect(b->rcq, 1, IBV_WC_LOC_PROT_ERR);
	mm_bad_len = 0;
}
END_TEST

START_TEST(test_a_zero_based_region_takes_no_window)
{
	struct uvd_mw *mw = calloc(1, ops->size_mw);
	struct uvd_send_wr wr = {
		.wr_id = 0xb1,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.rkey = 1,
		.bind = { mw, reg_dm(b, dm, 0, 64, ALL | IBV_ACCESS_MW_BIND), 0, 64, IBV_ACCESS_REMOTE_READ },
	};

	mw->pd = b->side->pd;
	mw->type = IBV_MW_TYPE_1;
	ck_assert_int_eq(ops->alloc_mw(mw, NULL), 0);
	ck_assert_int_eq(post_send_wr(b, &wr), 0);
	expect(b->scq, 0xb1, IBV_WC_MW_BIND_ERR);
	ck_assert_int_eq(ops->dealloc_mw(mw), 0);
	free_mr(wr.bind.mr);
	free(mw);
}
END_TEST

/* Each device has its own memory. Freed memory can be allocated again, and is zeroed then. */
START_TEST(test_there_is_so_much_and_no_more)
{
	struct uvd_dm *all, *one, *other;
	struct uvd_mr *mr;
	int err;

	all = make_dm(b, MAX_DM - DM_SIZE, 12, &err);
	ck_assert_ptr_nonnull(all);
	ck_assert_ptr_null(make_dm(b, 1, 0, &err));
	ck_assert_int_eq(err, -ENOMEM);
	other = make_dm(a, MAX_DM, 0, &err);
	ck_assert_ptr_nonnull(other);
	mr = reg_dm(b, all, 0, MAX_DM - DM_SIZE, ALL);
	access_dm(mr, IBV_WR_RDMA_WRITE, 0, 0, MAX_DM - DM_SIZE, IBV_WC_SUCCESS);
	free_mr(mr);
	free_dm(all);
	one = make_dm(b, MAX_DM - DM_SIZE, 0, &err);
	ck_assert_ptr_nonnull(one);
	mr = reg_dm(b, one, 0, MAX_DM - DM_SIZE, ALL);
	access_dm(mr, IBV_WR_RDMA_READ, 0, 0, MAX_DM - DM_SIZE, IBV_WC_SUCCESS);
	for (int i = 0; i < MAX_DM - DM_SIZE; i++)
		ck_assert_int_eq(a->buf[i], 0);
	free_mr(mr);
	free_dm(one);
	free_dm(other);
}
END_TEST

START_TEST(test_what_cannot_be_allocated)
{
	int err;

	ck_assert_ptr_null(make_dm(b, 0, 0, &err));
	ck_assert_int_eq(err, -EINVAL);
	ck_assert_ptr_null(make_dm(b, 16, 13, &err));
	ck_assert_int_eq(err, -EINVAL);
	ck_assert_ptr_null(make_dm(b, UINT64_MAX, 0, &err));
	ck_assert_int_eq(err, -ENOMEM);
}
END_TEST

START_TEST(test_the_device_tells_how_much_there_is)
{
	struct ibv_device_attr_ex attr;

	ck_assert_int_eq(ops->query_device(&b->side->dev, &attr, NULL), 0);
	ck_assert_uint_eq(attr.max_dm_size, MAX_DM);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("dm");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 30);
	tcase_add_test(t, test_what_is_written_is_read_back_by_any_region_of_it);
	tcase_add_loop_test(t, test_beyond_a_region_there_is_nothing, 0, sizeof(beyond) / sizeof(beyond[0]));
	tcase_add_test(t, test_rights_are_those_of_the_region);
	tcase_add_test(t, test_atomics_change_it);
	tcase_add_test(t, test_it_is_memory_of_sends_and_receives);
	tcase_add_test(t, test_it_is_written_from_a_view_that_may_be_gone);
	tcase_add_test(t, test_fault_beside_device_memory_is_reported);
	tcase_add_test(t, test_a_zero_based_region_takes_no_window);
	tcase_add_test(t, test_there_is_so_much_and_no_more);
	tcase_add_test(t, test_what_cannot_be_allocated);
	tcase_add_test(t, test_the_device_tells_how_much_there_is);
	return run_suite("backends: soft device memory", t);
}
