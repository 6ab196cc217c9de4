/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Protection domains and memory regions. */
#include <sys/mman.h>
#include "tests.h"

enum { LW = IBV_ACCESS_LOCAL_WRITE, PAGE = 4096 };

static uint32_t pd, cq;
static uint8_t *mem; /* 16 pages */

static void begin(void)
{
	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	mem = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(mem, MAP_FAILED);
}

/* The next handle is 2, the one after the PD's and the CQ's: a failed call has left no object. */
static void assert_no_leak(void)
{
	uint32_t next;

	ck_assert_int_eq(harness_alloc_pd(&h, &next), 0);
	ck_assert_uint_eq(next, 2);
	ck_assert_int_eq(harness_dealloc_pd(&h, next), 0);
	ck_assert_int_eq(h.file->handles.count, 2);
}

static uint64_t charged(void)
{
	struct uvd_mm *mm = uvd_mm_get(h.engine.mms, &h.call->caller);
	uint64_t pages = uvd_mm_charge(mm, 0);

	uvd_mm_put(mm);
	return pages;
}

/* ---- PD ---------------------------------------------------------------------------------------------------------- */

START_TEST(test_handle_01_lowest_free_first)
{
	uint32_t a, b, c;

	begin();
	ck_assert_uint_eq(pd, 0);
	ck_assert_uint_eq(cq, 1);
	ck_assert_int_eq(harness_alloc_pd(&h, &a), 0);
	ck_assert_int_eq(harness_alloc_pd(&h, &b), 0);
	ck_assert_int_eq(harness_dealloc_pd(&h, a), 0);
	ck_assert_int_eq(harness_alloc_pd(&h, &c), 0);
	ck_assert_uint_eq(c, a);
	ck_assert_uint_eq(b, 3);
}
END_TEST

START_TEST(test_dealloc_pd_of_another_type_is_einval_and_of_none_enoent)
{
	begin();
	ck_assert_int_eq(harness_dealloc_pd(&h, cq), -EINVAL);
	ck_assert_int_eq(harness_dealloc_pd(&h, 77), -ENOENT);
	ck_assert_int_eq(harness_dealloc_pd(&h, pd), 0);
	ck_assert_int_eq(harness_dealloc_pd(&h, pd), -ENOENT);
}
END_TEST

START_TEST(test_pd_destroy_by_ioctl)
{
	struct uv_tree tree = {}, again = {};

	begin();
	uv_attr_obj(&tree, UVERBS_ATTR_DESTROY_PD_HANDLE, pd);
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, &tree), 0);
	uv_attr_obj(&again, UVERBS_ATTR_DESTROY_PD_HANDLE, pd);
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, &again), -ENOENT);
}
END_TEST

START_TEST(test_alloc_pd_by_invoke_write)
{
	struct ib_uverbs_alloc_pd cmd = {};
	struct ib_uverbs_alloc_pd_resp resp = {};

	begin();
	ck_assert_int_eq(INVOKE(&h, ALLOC_PD, &cmd, &resp), 0);
	ck_assert_uint_eq(resp.pd_handle, 2);
}
END_TEST

static int refuse_pd(struct uvd_pd *pd)
{
	return -ENOSPC;
}

START_TEST(test_alloc_pd_that_the_backend_refuses_leaves_no_handle)
{
	uint32_t other;

	begin();
	h.ops.alloc_pd = refuse_pd;
	ck_assert_int_eq(harness_alloc_pd(&h, &other), -ENOSPC);
	h.ops.alloc_pd = uvd_backend_null.alloc_pd;
	assert_no_leak();
}
END_TEST

/* The PD is made, and destroyed again because the response cannot be written. */
START_TEST(test_alloc_pd_with_a_bad_response_leaves_no_pd)
{
	struct ib_uverbs_alloc_pd cmd = {};

	begin();
	ck_assert_int_eq(harness_write(&h, IB_USER_VERBS_CMD_ALLOC_PD, &cmd, sizeof(cmd), BAD, 4), -EFAULT);
	assert_no_leak();
}
END_TEST

/* ---- MR ---------------------------------------------------------------------------------------------------------- */

START_TEST(test_reg_mr_charges_its_pages_until_dereg)
{
	struct ib_uverbs_reg_mr_resp resp = {}, again = {};
	struct ib_uverbs_dereg_mr dereg;

	begin();
	ck_assert_int_eq(harness_reg_mr(&h, pd, mem + 1, PAGE, LW, &resp), 0);
	ck_assert_uint_eq(resp.mr_handle, 2);
	ck_assert_uint_ne(resp.lkey, 0);
	ck_assert_uint_eq(charged(), 2);
	ck_assert_int_eq(harness_reg_mr(&h, pd, mem, PAGE, LW, &again), 0);
	ck_assert_uint_eq(charged(), 3);
	dereg.mr_handle = resp.mr_handle;
	ck_assert_int_eq(WRITE_IN(&h, DEREG_MR, &dereg), 0);
	ck_assert_uint_eq(charged(), 1);
	harness_close_file(&h);
	ck_assert_uint_eq(charged(), 0);
}
END_TEST

START_TEST(test_dealloc_pd_with_mr_is_ebusy)
{
	struct ib_uverbs_reg_mr_resp resp = {};
	struct uv_tree tree = {};

	begin();
	ck_assert_int_eq(harness_reg_mr(&h, pd, mem, PAGE, LW, &resp), 0);
	ck_assert_int_eq(harness_dealloc_pd(&h, pd), -EBUSY);
	uv_attr_obj(&tree, UVERBS_ATTR_DESTROY_MR_HANDLE, resp.mr_handle);
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, &tree), 0);
	ck_assert_int_eq(harness_dealloc_pd(&h, pd), 0);
}
END_TEST

/* Each call has two errors; the errno shows which one is checked first. */
START_TEST(test_reg_mr_checks_in_the_kernels_order)
{
	struct ib_uverbs_reg_mr_resp resp;
	struct ib_uverbs_reg_mr cmd = { .length = PAGE, .pd_handle = 77, .access_flags = LW };

	begin();
	/* mr-01: the offset in the page is checked before the PD */
	cmd.start = cmd.hca_va = (uintptr_t)mem;
	cmd.hca_va++;
	ck_assert_int_eq(WRITE(&h, REG_MR, &cmd, &resp), -EINVAL);
	cmd.hca_va--;
	/* mr-02: the access flags are checked before the PD */
	cmd.access_flags = IBV_ACCESS_REMOTE_WRITE;
	ck_assert_int_eq(WRITE(&h, REG_MR, &cmd, &resp), -EINVAL);
	cmd.access_flags = IBV_ACCESS_REMOTE_ATOMIC;
	ck_assert_int_eq(WRITE(&h, REG_MR, &cmd, &resp), -EINVAL);
	cmd.access_flags = 1 << 8;
	ck_assert_int_eq(WRITE(&h, REG_MR, &cmd, &resp), -EINVAL);
	cmd.access_flags = 1u << 30;
	ck_assert_int_eq(WRITE(&h, REG_MR, &cmd, &resp), -EINVAL);
	/* mr-03: on-demand paging, which the device does not have */
	cmd.access_flags = LW | IBV_ACCESS_ON_DEMAND;
	ck_assert_int_eq(WRITE(&h, REG_MR, &cmd, &resp), -EINVAL);
	/* the PD is checked before the memory */
	cmd.access_flags = LW;
	cmd.length = ~0ULL;
	ck_assert_int_eq(WRITE(&h, REG_MR, &cmd, &resp), -ENOENT);
	cmd.pd_handle = cq;
	ck_assert_int_eq(WRITE(&h, REG_MR, &cmd, &resp), -EINVAL);
	assert_no_leak();
}
END_TEST

START_TEST(test_mr_02_optional_flags_are_accepted)
{
	struct ib_uverbs_reg_mr_resp resp;

	begin();
	ck_assert_int_eq(harness_reg_mr(&h, pd, mem, PAGE, IB_UVERBS_ACCESS_OPTIONAL_RANGE, &resp), 0);
}
END_TEST

START_TEST(test_regression_03_reg_mr_that_wraps_is_einval)
{
	struct ib_uverbs_reg_mr_resp resp;

	begin();
	ck_assert_int_eq(harness_reg_mr(&h, pd, mem, ~0ULL, LW, &resp), -EINVAL);
	ck_assert_int_eq(harness_reg_mr(&h, pd, mem, -(uint64_t)(uintptr_t)mem - 1, LW, &resp), -EINVAL);
	assert_no_leak();
	ck_assert_uint_eq(charged(), 0);
}
END_TEST

START_TEST(test_reg_mr_of_unmapped_memory_is_efault)
{
	struct ib_uverbs_reg_mr_resp resp;

	begin();
	munmap(mem + 4 * PAGE, PAGE);
	ck_assert_int_eq(harness_reg_mr(&h, pd, mem, 8 * PAGE, LW, &resp), -EFAULT);
	assert_no_leak();
	ck_assert_uint_eq(charged(), 0);
}
END_TEST

static int refuse_mr(struct uvd_mr *mr)
{
	return -ENOSPC;
}

START_TEST(test_reg_mr_that_the_backend_refuses_is_unpinned)
{
	struct ib_uverbs_reg_mr_resp resp;

	begin();
	h.ops.reg_mr = refuse_mr;
	ck_assert_int_eq(harness_reg_mr(&h, pd, mem, PAGE, LW, &resp), -ENOSPC);
	assert_no_leak();
	ck_assert_uint_eq(charged(), 0);
	ck_assert_int_eq(harness_dealloc_pd(&h, pd), 0);
}
END_TEST

START_TEST(test_mr_09_query_mr_with_and_without_iova)
{
	struct ib_uverbs_reg_mr_resp resp = {};
	struct uv_tree tree = {}, with = {};
	uint32_t lkey = 0, rkey = 0;
	uint64_t length = 0, iova = 0;

	begin();
	ck_assert_int_eq(harness_reg_mr(&h, pd, mem + 7, 100, LW, &resp), 0);
	uv_attr_obj(&tree, UVERBS_ATTR_QUERY_MR_HANDLE, resp.mr_handle);
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_MR_RESP_LKEY, &lkey, sizeof(lkey));
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_MR_RESP_RKEY, &rkey, sizeof(rkey));
	uv_attr_out(&tree, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, &length, sizeof(length));
	with = tree;
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, &tree), 0);
	ck_assert_uint_eq(lkey, resp.lkey);
	ck_assert_uint_eq(rkey, resp.rkey);
	ck_assert_uint_eq(length, 100);
	uv_attr_out(&with, UVERBS_ATTR_QUERY_MR_RESP_IOVA, &iova, sizeof(iova));
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, &with), 0);
	ck_assert_uint_eq(iova, (uintptr_t)mem + 7);
}
END_TEST

TEST_LIST(test_handle_01_lowest_free_first, test_dealloc_pd_of_another_type_is_einval_and_of_none_enoent,
	  test_pd_destroy_by_ioctl, test_alloc_pd_by_invoke_write,
	  test_alloc_pd_that_the_backend_refuses_leaves_no_handle, test_alloc_pd_with_a_bad_response_leaves_no_pd,
	  test_reg_mr_charges_its_pages_until_dereg, test_dealloc_pd_with_mr_is_ebusy,
	  test_reg_mr_checks_in_the_kernels_order, test_mr_02_optional_flags_are_accepted,
	  test_regression_03_reg_mr_that_wraps_is_einval, test_reg_mr_of_unmapped_memory_is_efault,
	  test_reg_mr_that_the_backend_refuses_is_unpinned, test_mr_09_query_mr_with_and_without_iova)
