/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory windows, and RESIZE_CQ. */
#include <limits.h>
#include "tests.h"

static uint32_t pd, cq;

static void begin(void)
{
	ck_assert_int_eq(harness_begin(&h, &pd, &cq), 0);
}

static void assert_no_leak(void)
{
	uint32_t next;

	ck_assert_int_eq(harness_alloc_pd(&h, &next), 0);
	ck_assert_uint_eq(next, 2);
	ck_assert_int_eq(harness_dealloc_pd(&h, pd), 0);
}

static int alloc_mw(uint32_t pd_handle, uint8_t type, struct ib_uverbs_alloc_mw_resp *resp)
{
	struct ib_uverbs_alloc_mw cmd = { .pd_handle = pd_handle, .mw_type = type };

	return WRITE(&h, ALLOC_MW, &cmd, resp);
}

static int make_mw(struct uvd_mw *mw, struct uvd_udata *udata)
{
	mw->rkey = 0x1000 + mw->type;
	return mw->pd ? 0 : -EDOM;
}

START_TEST(test_alloc_mw_of_both_types_has_the_backends_key)
{
	struct ib_uverbs_alloc_mw_resp resp = {};

	begin();
	h.ops.alloc_mw = make_mw;
	ck_assert_int_eq(alloc_mw(pd, IBV_MW_TYPE_1, &resp), 0);
	ck_assert_uint_eq(resp.rkey, 0x1001);
	ck_assert_int_eq(alloc_mw(pd, IBV_MW_TYPE_2, &resp), 0);
	ck_assert_uint_eq(resp.rkey, 0x1002);
}
END_TEST

static int refuse_alloc(struct uvd_mw *mw, struct uvd_udata *udata)
{
	return -EDOM;
}

START_TEST(test_mw_that_fails_leaves_nothing)
{
	struct ib_uverbs_alloc_mw cmd = { .mw_type = IBV_MW_TYPE_1 };
	struct ib_uverbs_alloc_mw_resp resp;

	begin();
	cmd.pd_handle = pd;
	ck_assert_int_eq(harness_write(&h, IB_USER_VERBS_CMD_ALLOC_MW, &cmd, sizeof(cmd), BAD, sizeof(resp)), -EFAULT);
	h.ops.alloc_mw = refuse_alloc;
	ck_assert_int_eq(alloc_mw(pd, IBV_MW_TYPE_1, &resp), -EDOM);
	assert_no_leak();
}
END_TEST

static int dealloced;

static int count_dealloc(struct uvd_mw *mw)
{
	dealloced++;
	return 0;
}

START_TEST(test_close_deallocates_windows)
{
	struct ib_uverbs_alloc_mw_resp resp;

	begin();
	h.ops.dealloc_mw = count_dealloc;
	ck_assert_int_eq(alloc_mw(pd, IBV_MW_TYPE_1, &resp), 0);
	ck_assert_int_eq(alloc_mw(pd, IBV_MW_TYPE_2, &resp), 0);
	harness_close_file(&h);
	ck_assert_int_eq(dealloced, 2);
}
END_TEST

/* ---- RESIZE_CQ --------------------------------------------------------------------------------------------------- */

static int resize_cq(uint32_t handle, uint32_t cqe, struct ib_uverbs_resize_cq_resp *resp)
{
	struct ib_uverbs_resize_cq cmd = { .cq_handle = handle, .cqe = cqe };

	return WRITE(&h, RESIZE_CQ, &cmd, resp);
}

static int asked;

static int see_resize(struct uvd_cq *cq, int cqe, struct uvd_udata *udata)
{
	asked = cqe;
	cq->cqe = 127;
	return 0;
}

START_TEST(test_resize_cq_answers_what_the_backend_made)
{
	struct ib_uverbs_resize_cq_resp resp = { .reserved = 7 };

	begin();
	h.ops.resize_cq = see_resize;
	ck_assert_int_eq(resize_cq(cq, 100, &resp), 0);
	ck_assert_int_eq(asked, 100);
	ck_assert_uint_eq(resp.cqe, 127);
	ck_assert_uint_eq(resp.reserved, 0);
	ck_assert_int_eq(resize_cq(cq, UINT32_MAX, &resp), 0);
	ck_assert_int_eq(asked, INT_MAX);
}
END_TEST

/* A size below the number of queued completions is refused, and no completion is lost. */
START_TEST(test_resize_cq_below_its_completions_is_einval)
{
	struct ib_uverbs_create_qp_resp qp;
	struct {
		struct ib_uverbs_post_send cmd;
		struct ib_uverbs_send_wr wr[5];
	} list = {};
	struct ib_uverbs_post_send_resp posted;
	struct ib_uverbs_resize_cq_resp resp = {};
	struct ib_uverbs_poll_cq poll = { .ne = 8 };
	struct {
		struct ib_uverbs_poll_cq_resp resp;
		struct ib_uverbs_wc wc[8];
	} out;

	begin();
	ck_assert_int_eq(harness_create_qp(&h, IBV_QPT_RC, pd, cq, &qp), 0);
	list.cmd = (struct ib_uverbs_post_send){ .qp_handle = qp.qp_handle,
						 .wr_count = 5,
						 .wqe_size = sizeof(list.wr[0]) };
	for (int i = 0; i < 5; i++)
		list.wr[i] = (struct ib_uverbs_send_wr){ .wr_id = i,
							 .opcode = IBV_WR_SEND,
							 .send_flags = IBV_SEND_SIGNALED };
	ck_assert_int_eq(WRITE(&h, POST_SEND, &list, &posted), 0);
	ck_assert_int_eq(resize_cq(cq, 4, &resp), -EINVAL);
	ck_assert_int_eq(resize_cq(cq, 5, &resp), 0);
	poll.cq_handle = cq;
	ck_assert_int_eq(harness_write(&h, IB_USER_VERBS_CMD_POLL_CQ, &poll, sizeof(poll), &out, sizeof(out)), 0);
	ck_assert_uint_eq(out.resp.count, 5);
	for (int i = 0; i < 5; i++)
		ck_assert_uint_eq(out.wc[i].wr_id, i);
}
END_TEST

TEST_LIST(test_alloc_mw_of_both_types_has_the_backends_key, test_mw_that_fails_leaves_nothing,
	  test_close_deallocates_windows, test_resize_cq_answers_what_the_backend_made,
	  test_resize_cq_below_its_completions_is_einval)
