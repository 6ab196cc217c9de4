/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* rereg_mr(): the keys, range, PD and rights of a region afterwards. The region is b's, and a writes to it. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "backends/soft/memory/memory.h"
#include "tests/backends/bed.h"

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];
static const struct uvd_backend *const ops = &uvd_backend_soft;
static struct uvd_mr *mr;

enum {
	LENGTH = 1000,
	NEW = 8192,
	TRANS = IBV_REREG_MR_CHANGE_TRANSLATION,
	PD = IBV_REREG_MR_CHANGE_PD,
	ACCESS = IBV_REREG_MR_CHANGE_ACCESS,
	RW = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
};

static void setup(void)
{
	bed_open(&bed, ops, IBV_LINK_LAYER_INFINIBAND);
	memset(a->buf, 0x11, BUF_SIZE);
	bed_connect(&bed, IBV_QPT_RC);
	mr = make_mr(b, b->buf, LENGTH, RW);
}

static void teardown(void)
{
	free_mr(mr);
	bed_close(&bed);
}

/* Does what the core does. `to` describes the complete new region. */
static int rereg(int flags, struct uvd_mr to)
{
	struct uvd_mr *new = calloc(1, ops->size_mr);
	int ret;

	*new = to;
	ret = ops->rereg_mr(mr, flags, new, NULL);
	if (ret == UVD_REREG_NEW) {
		free_mr(mr);
		mr = new;
	} else {
		free(new);
	}
	return ret;
}

static struct uvd_mr moved(void)
{
	return (struct uvd_mr){ .pd = b->side->pd,
				.umem.addr = (uintptr_t)b->buf + NEW,
				.umem.length = LENGTH,
				.iova = 0x10000,
				.length = LENGTH,
				.access = RW };
}

static enum ibv_wc_status write_to(uint64_t addr, uint32_t rkey)
{
	struct ibv_sge sge = sge_at(a, 0, 8);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_RDMA_WRITE, &sge, 1);

	wr.remote_addr = addr;
	wr.rkey = rkey;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	return wait_wc(a->scq).status;
}

START_TEST(test_new_translation_has_new_keys_and_the_old_ones_are_dead)
{
	uint32_t old = mr->rkey;

	ck_assert_int_eq(rereg(TRANS, moved()), UVD_REREG_NEW);
	ck_assert_uint_ne(mr->rkey, old);
	ck_assert_int_eq(write_to(0x10000, mr->rkey), IBV_WC_SUCCESS);
	ck_assert_int_eq(b->buf[NEW], 0x11);
	ck_assert_int_eq(b->buf[0], 0);
	ck_assert_int_eq(write_to((uintptr_t)b->buf, _i ? mr->rkey : old), IBV_WC_REM_ACCESS_ERR);
	ck_assert_int_eq(b->buf[0], 0);
}
END_TEST

START_TEST(test_access_changes_under_the_same_keys)
{
	struct uvd_mr to = *mr;
	uint32_t old = mr->rkey;

	to.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
	to.access |= _i ? IBV_ACCESS_REMOTE_WRITE : 0;
	ck_assert_int_eq(write_to((uintptr_t)b->buf, old), IBV_WC_SUCCESS);
	memset(b->buf, 0, 8);
	ck_assert_int_eq(rereg(ACCESS, to), UVD_REREG_CHANGED);
	ck_assert_uint_eq(mr->rkey, old);
	ck_assert_int_eq(write_to((uintptr_t)b->buf, old), _i ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
	ck_assert_int_eq(b->buf[0], _i ? 0x11 : 0);
}
END_TEST

START_TEST(test_region_of_another_pd_is_closed_to_the_qp)
{
	struct uvd_pd *pd = calloc(1, ops->size_pd);
	struct uvd_mr to = *mr;

	pd->context = b->side->context;
	ck_assert_int_eq(ops->alloc_pd(pd, NULL), 0);
	to.pd = pd;
	ck_assert_int_eq(rereg(PD, to), UVD_REREG_CHANGED);
	ck_assert_ptr_eq(mr->pd, pd);
	ck_assert_int_eq(write_to((uintptr_t)b->buf, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	to.pd = b->side->pd;
	ck_assert_int_eq(rereg(PD, to), UVD_REREG_CHANGED);
	ck_assert_int_eq(ops->dealloc_pd(pd), 0);
	free(pd);
}
END_TEST

START_TEST(test_region_with_a_window_stays_as_it_is)
{
	struct uvd_mw *mw = calloc(1, ops->size_mw);
	struct uvd_mr to = *mr;

	to.access |= IBV_ACCESS_MW_BIND;
	ck_assert_int_eq(rereg(ACCESS, to), UVD_REREG_CHANGED);
	mw->pd = b->side->pd;
	mw->type = IBV_MW_TYPE_1;
	ck_assert_int_eq(ops->alloc_mw(mw, NULL), 0);
	ck_assert_int_eq(send_wr(b, .wr_id = 1, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
				 .bind = { mw, mr, (uintptr_t)b->buf, 8, IBV_ACCESS_REMOTE_READ }),
			 0);
	expect(b->scq, 1, IBV_WC_SUCCESS);
	ck_assert_int_eq(rereg(TRANS, moved()), -EINVAL);
	ck_assert_int_eq(rereg(ACCESS, *mr), -EINVAL);
	ck_assert_int_eq(write_to((uintptr_t)b->buf, mr->rkey), IBV_WC_SUCCESS);
	ck_assert_int_eq(ops->dealloc_mw(mw), 0);
	free(mw);
	ck_assert_int_eq(rereg(TRANS, moved()), UVD_REREG_NEW);
}
END_TEST

START_TEST(test_translation_that_is_none_is_refused)
{
	struct uvd_mr to = moved();

	to.iova = UINT64_MAX - 10;
	ck_assert_int_eq(rereg(TRANS, to), -EINVAL);
	to = moved();
	to.length = (1ull << 40) + 1;
	ck_assert_int_eq(rereg(TRANS, to), -EINVAL);
	ck_assert_int_eq(write_to((uintptr_t)b->buf, mr->rkey), IBV_WC_SUCCESS);
}
END_TEST

/* The table of regions keeps free places in a list, and grows when there is none. */
START_TEST(test_no_region_gets_the_place_of_one_that_lives)
{
	enum { REGIONS = 300, EARLY = 3, LATER = 9 };
	struct uvd_mr *mrs[REGIONS];

	for (int i = 0; i < REGIONS; i++) {
		mrs[i] = make_mr(b, b->buf, LENGTH, RW);
		if (i == LATER)
			free_mr(mrs[EARLY]);
	}
	mrs[EARLY] = make_mr(b, b->buf, LENGTH, RW);
	for (int i = 0; i < REGIONS; i++)
		for (int k = 0; k < i; k++)
			ck_assert_uint_ne(mrs[i]->rkey >> SOFT_TAG_BITS, mrs[k]->rkey >> SOFT_TAG_BITS);
	for (int i = 0; i < REGIONS; i++)
		free_mr(mrs[i]);
}
END_TEST

/* The new region takes the old one's place, so it needs no other free one. */
START_TEST(test_rereg_at_the_limit_of_regions)
{
	struct uvd_mr *all[1000], *first, *second;
	int n = 0;

	while (n < 1000 && (all[n] = make_mr(b, b->buf, 8, 0)))
		n++;
	ck_assert_int_lt(n, 1000);
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(rereg(TRANS, moved()), UVD_REREG_NEW);
	ck_assert_ptr_null(make_mr(b, b->buf, 8, 0));
	/* While a region and its successor exist, there is no place for another successor. */
	first = calloc(2, ops->size_mr);
	second = (struct uvd_mr *)((char *)first + ops->size_mr);
	*first = *second = moved();
	ck_assert_int_eq(ops->rereg_mr(mr, TRANS, first, NULL), UVD_REREG_NEW);
	ck_assert_int_eq(ops->rereg_mr(all[0], TRANS, second, NULL), -ENOMEM);
	ck_assert_int_eq(ops->dereg_mr(first), 0);
	ck_assert_int_eq(rereg(TRANS, moved()), UVD_REREG_NEW);
	free(first);
	while (n)
		free_mr(all[--n]);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("rereg");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, test_new_translation_has_new_keys_and_the_old_ones_are_dead, 0, 2);
	tcase_add_loop_test(t, test_access_changes_under_the_same_keys, 0, 2);
	tcase_add_test(t, test_region_of_another_pd_is_closed_to_the_qp);
	tcase_add_test(t, test_region_with_a_window_stays_as_it_is);
	tcase_add_test(t, test_translation_that_is_none_is_refused);
	tcase_add_test(t, test_no_region_gets_the_place_of_one_that_lives);
	tcase_add_test(t, test_rereg_at_the_limit_of_regions);
	return run_suite("soft: rereg", t);
}
