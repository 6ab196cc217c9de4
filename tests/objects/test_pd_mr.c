/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Protection domains and memory regions that the backend refuses. tests/abi/rules_mr.c has the other checks. */
#include "tests.h"

enum { PAGE = 4096 };

static uint32_t pd;

static void begin(void)
{
	ck_assert_int_eq(uv_get_context(h.fd, UV_WRITE, NULL, NULL), 0);
	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &pd), 0);
}

/* The next handle is the one after the PD's: a failed call has left no object. */
static void assert_no_leak(void)
{
	uint32_t next;

	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &next), 0);
	ck_assert_uint_eq(next, pd + 1);
	ck_assert_int_eq(uv_dealloc_pd(h.fd, UV_WRITE, next), 0);
	ck_assert_int_eq(h.file->handles.count, 1);
}

static uint64_t charged(void)
{
	struct uvd_mm *mm = uvd_mm_get(h.engine.mms, &h.call->caller);
	uint64_t pages = uvd_mm_charge(mm, 0);

	uvd_mm_put(mm);
	return pages;
}

static int refuse_pd(struct uvd_pd *pd, struct uvd_udata *udata)
{
	return -ENOSPC;
}

START_TEST(test_alloc_pd_that_the_backend_refuses_leaves_no_handle)
{
	uint32_t other;

	begin();
	h.ops.alloc_pd = refuse_pd;
	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &other), -ENOSPC);
	h.ops.alloc_pd = uvd_backend_null.alloc_pd;
	assert_no_leak();
}
END_TEST

static int refuse_mr(struct uvd_mr *mr, struct uvd_udata *udata)
{
	return -ENOSPC;
}

START_TEST(test_reg_mr_that_the_backend_refuses_is_unpinned)
{
	static uint8_t mem[PAGE];

	begin();
	h.ops.reg_mr = refuse_mr;
	ck_assert_int_eq(uv_reg_mr(h.fd, UV_WRITE, pd, mem, PAGE, IBV_ACCESS_LOCAL_WRITE, NULL), -ENOSPC);
	assert_no_leak();
	ck_assert_uint_eq(charged(), 0);
	ck_assert_int_eq(uv_dealloc_pd(h.fd, UV_WRITE, pd), 0);
}
END_TEST

TEST_LIST(test_alloc_pd_that_the_backend_refuses_leaves_no_handle, test_reg_mr_that_the_backend_refuses_is_unpinned)
