/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* REREG_MR: the changes, the handles, and the charge. tests/abi/rules_mr.c has the checks. */
#include <sys/mman.h>
#include "tests.h"

enum {
	LW = IBV_ACCESS_LOCAL_WRITE,
	PAGE = 4096,
	TRANS = IBV_REREG_MR_CHANGE_TRANSLATION,
	PD = IBV_REREG_MR_CHANGE_PD,
	ACCESS = IBV_REREG_MR_CHANGE_ACCESS,
};

static uint32_t pd, cq;
static uint8_t *mem; /* 16 pages */
static struct ib_uverbs_reg_mr_resp mr; /* the first 3 pages of mem, writable */

static void begin(void)
{
	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
	mem = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(mem, MAP_FAILED);
	ck_assert_int_eq(harness_reg_mr(&h, pd, mem, 3 * PAGE, LW, &mr), 0);
	ck_assert_uint_eq(mr.mr_handle, 2);
}

static uint64_t charged(void)
{
	struct uvd_mm *mm = uvd_mm_get(h.engine.mms, &h.call->caller);
	uint64_t pages = uvd_mm_charge(mm, 0);

	uvd_mm_put(mm);
	return pages;
}

/* With TRANS, the new MR has 2 pages from page 8 on. */
static struct ib_uverbs_rereg_mr rereg_cmd(uint32_t flags)
{
	return (struct ib_uverbs_rereg_mr){
		.mr_handle = mr.mr_handle,
		.flags = flags,
		.start = (uintptr_t)mem + 8 * PAGE,
		.length = 2 * PAGE,
		.hca_va = 0x7000,
		.pd_handle = pd,
		.access_flags = LW,
	};
}

static int rereg(struct ib_uverbs_rereg_mr cmd, struct ib_uverbs_rereg_mr_resp *resp)
{
	struct ib_uverbs_rereg_mr_resp unused;

	return WRITE(&h, REREG_MR, &cmd, resp ? resp : &unused);
}

static struct uvd_mr *mr_of(uint32_t handle)
{
	struct uvd_uobject *uobj;
	struct uvd_mr *found;

	ck_assert_int_eq(uvd_uobject_get(h.file, &uvd_object_mr, handle, UVD_UOBJ_READ, &uobj), 0);
	found = uobj->object;
	uvd_uobject_put(uobj, UVD_UOBJ_READ);
	return found;
}

/* The MR is unchanged, no more pages are charged, and no handle was added. */
static void assert_unchanged(void)
{
	const struct uvd_mr *now = mr_of(mr.mr_handle);

	ck_assert_uint_eq(now->lkey, mr.lkey);
	ck_assert_uint_eq(now->length, 3 * PAGE);
	ck_assert_uint_eq(now->iova, (uintptr_t)mem);
	ck_assert_uint_eq(now->access, LW);
	ck_assert_uint_eq(charged(), 3);
	ck_assert_uint_eq(h.file->handles.count, 3);
}

/* ---- refused calls, and the order of checks ---------------------------------------------------------------------- */

START_TEST(test_mr_04_rereg_of_a_region_in_use_is_ebusy)
{
	struct uvd_uobject *uobj;

	begin();
	ck_assert_int_eq(uvd_uobject_get(h.file, &uvd_object_mr, mr.mr_handle, UVD_UOBJ_READ, &uobj), 0);
	ck_assert_int_eq(rereg(rereg_cmd(TRANS), NULL), -EBUSY);
	uvd_uobject_put(uobj, UVD_UOBJ_READ);
	assert_unchanged();
	ck_assert_int_eq(rereg(rereg_cmd(TRANS), NULL), 0);
}
END_TEST

START_TEST(test_rereg_does_not_turn_pinned_memory_into_memory_on_demand)
{
	struct ib_uverbs_rereg_mr cmd;

	harness_close(&h);
	harness_open_with(&h, "soft", &uvd_mem_process);
	begin();
	cmd = rereg_cmd(ACCESS);
	cmd.access_flags = LW | IBV_ACCESS_ON_DEMAND;
	ck_assert_int_eq(rereg(cmd, NULL), -EOPNOTSUPP);
	assert_unchanged();
	cmd.flags |= TRANS;
	ck_assert_int_eq(rereg(cmd, NULL), 0);
	ck_assert_uint_eq(charged(), 0);
}
END_TEST

START_TEST(test_rereg_to_memory_that_is_not_there_changes_nothing)
{
	struct ib_uverbs_rereg_mr cmd;

	begin();
	munmap(mem + 9 * PAGE, PAGE);
	ck_assert_int_eq(rereg(rereg_cmd(TRANS), NULL), -EFAULT);
	cmd = rereg_cmd(TRANS);
	cmd.length = -PAGE;
	ck_assert_int_eq(rereg(cmd, NULL), -EINVAL);
	assert_unchanged();
}
END_TEST

static int refuse(struct uvd_mr *old, int flags, struct uvd_mr *to, struct uvd_udata *udata)
{
	ck_assert_uint_eq(charged(), 5);
	return -EDOM;
}

START_TEST(test_rereg_that_the_backend_refuses_changes_nothing)
{
	begin();
	h.ops.rereg_mr = refuse;
	ck_assert_int_eq(rereg(rereg_cmd(TRANS), NULL), -EDOM);
	assert_unchanged();
}
END_TEST

/* ---- changes ----------------------------------------------------------------------------------------------------- */

START_TEST(test_handle_12_a_new_region_keeps_the_handle_and_is_the_newest_object)
{
	struct ib_uverbs_rereg_mr_resp resp = {};
	uint32_t other, ids[4];
	struct uvd_mr *now;

	begin();
	ck_assert_int_eq(harness_alloc_pd(&h, &other), 0);
	ck_assert_int_eq(rereg(rereg_cmd(TRANS), &resp), 0);
	now = mr_of(mr.mr_handle);
	ck_assert_uint_ne(resp.lkey, mr.lkey);
	ck_assert_uint_eq(resp.lkey, now->lkey);
	ck_assert_uint_eq(resp.rkey, now->rkey);
	ck_assert_uint_eq(now->length, 2 * PAGE);
	ck_assert_uint_eq(now->iova, 0x7000);
	ck_assert_uint_eq(now->umem.addr, (uintptr_t)mem + 8 * PAGE);
	ck_assert_uint_eq(now->access, LW);
	ck_assert_uint_eq(charged(), 2);
	ck_assert_uint_eq(h.file->handles.count, 4);
	ck_assert_uint_eq(list_first_entry(&h.file->objects, struct uvd_uobject, of_file)->id, mr.mr_handle);
	ck_assert_uint_eq(uvd_file_list(h.file, &uvd_object_mr, ids, 4), 1);
	ck_assert_uint_eq(ids[0], mr.mr_handle);
	/* The temporary handle of the old MR is free again. */
	ck_assert_int_eq(harness_alloc_pd(&h, &other), 0);
	ck_assert_uint_eq(other, 4);
	harness_close_file(&h);
}
END_TEST

static uint32_t last_flags;

static int see_flags(struct uvd_mr *old, int flags, struct uvd_mr *to, struct uvd_udata *udata)
{
	last_flags = flags;
	return uvd_backend_null.rereg_mr(old, flags, to, NULL);
}

START_TEST(test_rereg_moves_the_region_to_another_pd)
{
	struct ib_uverbs_rereg_mr cmd;
	uint32_t other;

	begin();
	h.ops.rereg_mr = see_flags;
	ck_assert_int_eq(harness_alloc_pd(&h, &other), 0);
	cmd = rereg_cmd(PD);
	cmd.pd_handle = other;
	ck_assert_int_eq(rereg(cmd, NULL), 0);
	ck_assert_uint_eq(last_flags, PD);
	ck_assert_int_eq(harness_dealloc_pd(&h, other), -EBUSY);
	ck_assert_int_eq(harness_dealloc_pd(&h, pd), 0);
	/* If the PD is the same, the core drops the PD flag (mr-04). */
	ck_assert_int_eq(rereg(cmd, NULL), 0);
	ck_assert_uint_eq(last_flags, 0);
	cmd.flags = PD | ACCESS;
	ck_assert_int_eq(rereg(cmd, NULL), 0);
	ck_assert_uint_eq(last_flags, ACCESS);
	/* The PD also changes if the backend makes a new MR. */
	ck_assert_int_eq(harness_alloc_pd(&h, &pd), 0);
	cmd = rereg_cmd(PD | TRANS);
	ck_assert_int_eq(rereg(cmd, NULL), 0);
	ck_assert_int_eq(harness_dealloc_pd(&h, other), 0);
	ck_assert_int_eq(harness_dealloc_pd(&h, pd), -EBUSY);
}
END_TEST

START_TEST(test_rereg_of_access_keeps_keys_and_memory)
{
	struct ib_uverbs_rereg_mr_resp resp = {};
	struct ib_uverbs_rereg_mr cmd;

	begin();
	cmd = rereg_cmd(ACCESS);
	cmd.access_flags = LW | IBV_ACCESS_REMOTE_WRITE;
	ck_assert_int_eq(INVOKE(&h, REREG_MR, &cmd, &resp), 0);
	ck_assert_uint_eq(resp.lkey, mr.lkey);
	ck_assert_uint_eq(resp.rkey, mr.rkey);
	ck_assert_uint_eq(mr_of(mr.mr_handle)->access, LW | IBV_ACCESS_REMOTE_WRITE);
	ck_assert_uint_eq(mr_of(mr.mr_handle)->length, 3 * PAGE);
	ck_assert_uint_eq(charged(), 3);
}
END_TEST

/* The operation of a backend that changes the MR in place. */
static int in_place(struct uvd_mr *old, int flags, struct uvd_mr *to, struct uvd_udata *udata)
{
	struct uvd_umem umem = old->umem;

	old->umem = to->umem;
	to->umem = umem;
	old->iova = to->iova;
	old->length = to->length;
	return UVD_REREG_CHANGED;
}

START_TEST(test_rereg_in_place_charges_the_new_memory_alone)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct uvd_mr *before;

	begin();
	before = mr_of(mr.mr_handle);
	h.ops.rereg_mr = in_place;
	ck_assert_int_eq(rereg(rereg_cmd(TRANS), &resp), 0);
	ck_assert_ptr_eq(mr_of(mr.mr_handle), before);
	ck_assert_uint_eq(resp.lkey, mr.lkey);
	ck_assert_uint_eq(before->umem.addr, (uintptr_t)mem + 8 * PAGE);
	ck_assert_uint_eq(charged(), 2);
	harness_close_file(&h);
	ck_assert_uint_eq(charged(), 0);
}
END_TEST

/* As with a destroy, the change is already done when the response is written. */
START_TEST(test_rereg_whose_answer_faults_is_done)
{
	struct ib_uverbs_rereg_mr cmd;

	begin();
	cmd = rereg_cmd(TRANS);
	ck_assert_int_eq(harness_write(&h, IB_USER_VERBS_CMD_REREG_MR, &cmd, sizeof(cmd), BAD, 8), -EFAULT);
	ck_assert_uint_eq(mr_of(mr.mr_handle)->length, 2 * PAGE);
	ck_assert_uint_eq(charged(), 2);
	ck_assert_uint_eq(h.file->handles.count, 3);
}
END_TEST

static int keep(struct uvd_mr *old)
{
	return old->length == 3 * PAGE ? -EDOM : 0;
}

START_TEST(test_handle_12_an_old_region_that_the_backend_keeps_gets_the_new_number)
{
	begin();
	h.ops.dereg_mr = keep;
	ck_assert_int_eq(rereg(rereg_cmd(TRANS), NULL), 0);
	ck_assert_uint_eq(mr_of(mr.mr_handle)->length, 2 * PAGE);
	ck_assert_uint_eq(mr_of(3)->length, 3 * PAGE);
	ck_assert_uint_eq(charged(), 5);
	ck_assert_int_eq(harness_dealloc_pd(&h, pd), -EBUSY);
	h.ops.dereg_mr = uvd_backend_null.dereg_mr;
	harness_close_file(&h);
	ck_assert_uint_eq(charged(), 0);
}
END_TEST

TEST_LIST(test_mr_04_rereg_of_a_region_in_use_is_ebusy, test_rereg_does_not_turn_pinned_memory_into_memory_on_demand,
	  test_rereg_to_memory_that_is_not_there_changes_nothing, test_rereg_that_the_backend_refuses_changes_nothing,
	  test_handle_12_a_new_region_keeps_the_handle_and_is_the_newest_object,
	  test_rereg_moves_the_region_to_another_pd, test_rereg_of_access_keeps_keys_and_memory,
	  test_rereg_in_place_charges_the_new_memory_alone, test_rereg_whose_answer_faults_is_done,
	  test_handle_12_an_old_region_that_the_backend_keeps_gets_the_new_number)
