/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Protection domains and memory regions that the backend refuses. tests/abi/rules_mr.c has the other checks. */
#include <sys/mman.h>
#include <uverbsd/registration.h>
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

/* ---- regions that a thread of the client registers with an adapter ------------------------------------------------- */

enum { HANDLE = 77, LKEY = 0x1234, RKEY = 0x5678 };

static const enum uv_front fronts[] = { UV_WRITE, UV_INVOKE };
static struct uvd_registration registration;
static int64_t ended_with;
static int end_result;
static unsigned int deregs;
static void *unmap;

static int end_registration(struct uvd_mr *mr, int64_t result)
{
	ended_with = result;
	mr->lkey = LKEY;
	mr->rkey = RKEY;
	if (unmap)
		ck_assert_int_eq(munmap(unmap, PAGE), 0);
	return end_result;
}

static int begin_registration(struct uvd_mr *mr, struct uvd_udata *udata)
{
	registration = (struct uvd_registration){ .end = end_registration };
	mr->registration = &registration;
	return 0;
}

static int count_dereg(struct uvd_mr *mr)
{
	deregs++;
	return 0;
}

static void begin_registrations(void)
{
	begin();
	h.ops.reg_mr = begin_registration;
	h.ops.dereg_mr = count_dereg;
	h.registered = HANDLE;
	h.executes = true;
	end_result = deregs = 0;
	unmap = NULL;
}

START_TEST(test_registration_by_the_client_gives_its_keys)
{
	static uint8_t mem[PAGE];
	struct uv_mr mr;

	begin_registrations();
	for (unsigned int i = 0; i < sizeof(fronts) / sizeof(fronts[0]); i++) {
		ck_assert_int_eq(uv_reg_mr(h.fd, fronts[i], pd, mem, PAGE, IBV_ACCESS_LOCAL_WRITE, &mr), 0);
		ck_assert(ended_with == HANDLE && registration.executed);
		ck_assert_uint_eq(mr.lkey, LKEY);
		ck_assert_uint_eq(mr.rkey, RKEY);
		ck_assert_uint_eq(deregs, i);
		ck_assert_int_eq(uv_dealloc_pd(h.fd, UV_WRITE, pd), -EBUSY);
		ck_assert_int_eq(uv_dereg_mr(h.fd, fronts[i], mr.handle), 0);
		ck_assert_uint_eq(deregs, i + 1);
		ck_assert_uint_eq(charged(), 0);
	}
	assert_no_leak();
}
END_TEST

START_TEST(test_registration_that_the_client_does_not_make_leaves_no_region)
{
	static uint8_t mem[PAGE];
	struct uv_mr mr;

	begin_registrations();
	h.executes = false;
	h.registered = -EPERM;
	end_result = -EOPNOTSUPP;
	for (unsigned int i = 0; i < sizeof(fronts) / sizeof(fronts[0]); i++) {
		ck_assert_int_eq(uv_reg_mr(h.fd, fronts[i], pd, mem, PAGE, IBV_ACCESS_LOCAL_WRITE, &mr), -EOPNOTSUPP);
		ck_assert(ended_with == -EPERM && !registration.executed);
		ck_assert_uint_eq(deregs, i + 1);
		ck_assert_uint_eq(charged(), 0);
	}
	assert_no_leak();
	ck_assert_int_eq(uv_dealloc_pd(h.fd, UV_WRITE, pd), 0);
}
END_TEST

START_TEST(test_registration_whose_keys_cannot_be_written_is_undone)
{
	static uint8_t mem[PAGE];
	struct ib_uverbs_reg_mr cmd = { .start = (uintptr_t)mem,
					.length = PAGE,
					.hca_va = (uintptr_t)mem,
					.access_flags = IBV_ACCESS_LOCAL_WRITE };

	begin_registrations();
	cmd.pd_handle = pd;
	unmap = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_int_eq(WRITE(&h, REG_MR, &cmd, (struct ib_uverbs_reg_mr_resp *)unmap), -EFAULT);
	ck_assert_uint_eq(deregs, 1);
	unmap = NULL;
	ck_assert_uint_eq(charged(), 0);
	assert_no_leak();
}
END_TEST

/* Registers a page by INVOKE_WRITE. Returns its result; *flags: of the response's attribute afterwards. */
static int invoke_reg_mr(struct ib_uverbs_reg_mr_resp *resp, unsigned int *flags)
{
	static uint8_t mem[PAGE];
	const struct ib_uverbs_reg_mr cmd = { .start = (uintptr_t)mem,
					      .length = PAGE,
					      .hca_va = (uintptr_t)mem,
					      .pd_handle = pd,
					      .access_flags = IBV_ACCESS_LOCAL_WRITE };
	struct uv_tree tree;
	int ret;

	uv_tree_init(&tree, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	uv_attr_const(&tree, UVERBS_ATTR_WRITE_CMD, IB_USER_VERBS_CMD_REG_MR);
	uv_attr_in(&tree, UVERBS_ATTR_CORE_IN, &cmd, sizeof(cmd));
	uv_attr_out(&tree, UVERBS_ATTR_CORE_OUT, resp, sizeof(*resp));
	ret = uv_ioctl(h.fd, &tree);
	*flags = uv_attr_find(&tree, UVERBS_ATTR_CORE_OUT)->flags;
	return ret;
}

/* As with the kernel: a REG_MR that fails writes no response, and marks none as written. */
START_TEST(test_response_is_written_only_if_the_registration_succeeds)
{
	struct ib_uverbs_reg_mr_resp resp, untouched;
	unsigned int flags;

	begin_registrations();
	memset(&untouched, 0xa5, sizeof(untouched));
	resp = untouched;
	end_result = -EOPNOTSUPP;
	ck_assert_int_eq(invoke_reg_mr(&resp, &flags), -EOPNOTSUPP);
	ck_assert_uint_eq(flags & UVERBS_ATTR_F_VALID_OUTPUT, 0);
	ck_assert_mem_eq(&resp, &untouched, sizeof(resp));
	end_result = 0;
	ck_assert_int_eq(invoke_reg_mr(&resp, &flags), 0);
	ck_assert_uint_eq(flags & UVERBS_ATTR_F_VALID_OUTPUT, UVERBS_ATTR_F_VALID_OUTPUT);
	ck_assert_uint_eq(resp.lkey, LKEY);
}
END_TEST

static struct {
	int flags, result;
	struct uvd_mr to;
} asked;

static int change_registered(struct uvd_mr *mr, int flags, struct uvd_mr *to, struct uvd_udata *udata)
{
	asked.flags = flags;
	asked.to = *to;
	return asked.result;
}

static int rereg(const struct uv_mr *mr, uint32_t flags, uint64_t start, uint32_t access)
{
	struct ib_uverbs_rereg_mr cmd = { .mr_handle = mr->handle,
					  .flags = flags,
					  .start = start,
					  .length = 2 * PAGE,
					  .hca_va = start,
					  .access_flags = access };
	struct ib_uverbs_rereg_mr_resp resp;

	return WRITE(&h, REREG_MR, &cmd, &resp);
}

/* The pages are the adapter's: whether they can be written, whether they exist, and how much they are, is not the core's to check. */
START_TEST(test_region_that_the_kernel_has_pinned_changes_as_the_backend_says)
{
	static uint8_t mem[PAGE];
	const uint64_t nothing = 0x10000;
	struct uv_mr mr;

	begin_registrations();
	h.ops.rereg_mr = change_registered;
	asked.result = UVD_REREG_CHANGED;
	ck_assert_int_eq(uv_reg_mr(h.fd, UV_WRITE, pd, mem, PAGE, 0, &mr), 0);
	ck_assert_int_eq(rereg(&mr, IBV_REREG_MR_CHANGE_ACCESS, 0, IBV_ACCESS_LOCAL_WRITE), 0);
	ck_assert_uint_eq(asked.to.access, IBV_ACCESS_LOCAL_WRITE);
	ck_assert_uint_eq(asked.to.length, PAGE);
	asked.result = -EOPNOTSUPP;
	ck_assert_int_eq(rereg(&mr, IBV_REREG_MR_CHANGE_TRANSLATION, nothing, 0), -EOPNOTSUPP);
	ck_assert_uint_eq(asked.to.length, 2 * PAGE);
	ck_assert_ptr_null(asked.to.umem.mm);
	ck_assert_uint_eq(charged(), 0);
	ck_assert_int_eq(uv_dereg_mr(h.fd, UV_WRITE, mr.handle), 0);
	/* A region whose memory is not the kernel's is charged and checked. */
	h.executes = false;
	ck_assert_int_eq(uv_reg_mr(h.fd, UV_WRITE, pd, mem, PAGE, 0, &mr), 0);
	ck_assert_int_eq(rereg(&mr, IBV_REREG_MR_CHANGE_ACCESS, 0, IBV_ACCESS_LOCAL_WRITE), -EACCES);
	ck_assert_int_eq(rereg(&mr, IBV_REREG_MR_CHANGE_TRANSLATION, nothing, 0), -EFAULT);
	ck_assert_int_eq(uv_dereg_mr(h.fd, UV_WRITE, mr.handle), 0);
}
END_TEST

TEST_LIST(test_response_is_written_only_if_the_registration_succeeds,
	  test_region_that_the_kernel_has_pinned_changes_as_the_backend_says,
	  test_registration_by_the_client_gives_its_keys,
	  test_registration_that_the_client_does_not_make_leaves_no_region,
	  test_registration_whose_keys_cannot_be_written_is_undone,
	  test_alloc_pd_that_the_backend_refuses_leaves_no_handle, test_reg_mr_that_the_backend_refuses_is_unpinned)
