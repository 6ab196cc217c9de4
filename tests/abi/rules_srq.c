/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared receive queues. */
#include <infiniband/verbs.h>
#include "abi.h"

/* The fronts of these verbs, which have no extended commands. */
static const enum uv_front fronts[] = { UV_WRITE, UV_INVOKE, UV_METHOD };

/* ---- SRQ --------------------------------------------------------------------------------------------------------- */

START_TEST(test_srq_create_query_destroy)
{
	struct ib_uverbs_query_srq_resp query = { .reserved = 7 };
	int fd = open_context(NULL);
	struct uv_srq_attr attr;
	uint32_t pd, events = 9;
	struct uv_srq srq;

	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	attr = uv_srq_attr(pd);
	expect_ok(uv_create_srq(fd, fronts[_i], &attr, &srq));
	ck_assert_uint_eq(srq.handle, 1);
	ck_assert_uint_ge(srq.max_wr, attr.max_wr);
	ck_assert_uint_ge(srq.max_sge, attr.max_sge);
	expect_ok(uv_query_srq(fd, UV_WRITE, srq.handle, &query));
	ck_assert_uint_ge(query.max_wr, attr.max_wr);
	ck_assert_uint_eq(query.srq_limit, 0);
	ck_assert_uint_eq(query.reserved, 0);
	expect(uv_dealloc_pd(fd, UV_WRITE, pd), EBUSY);
	expect_ok(uv_destroy_srq(fd, fronts[_i], srq.handle, &events));
	ck_assert_uint_eq(events, 0);
	expect(uv_destroy_srq(fd, fronts[_i], srq.handle, NULL), ENOENT);
	expect_ok(uv_dealloc_pd(fd, UV_WRITE, pd));
}
END_TEST

START_TEST(test_srq_sizes_beyond_the_limits_are_einval)
{
	struct ib_uverbs_query_device_resp dev = {};
	int fd = open_context(NULL);
	struct uv_srq_attr attr;
	struct uv_srq srq;
	uint32_t pd;

	expect_ok(uv_query_device(fd, UV_WRITE, &dev));
	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	attr = uv_srq_attr(pd);
	attr.max_wr = 0;
	expect(uv_create_srq(fd, fronts[_i], &attr, &srq), EINVAL);
	attr.max_wr = dev.max_srq_wr + 1;
	expect(uv_create_srq(fd, fronts[_i], &attr, &srq), EINVAL);
	attr = uv_srq_attr(pd);
	attr.max_sge = dev.max_srq_sge + 1;
	expect(uv_create_srq(fd, fronts[_i], &attr, &srq), EINVAL);
	attr = uv_srq_attr(99);
	expect(uv_create_srq(fd, fronts[_i], &attr, &srq), ENOENT);
	ck_assert_uint_eq(next_handle(fd), 1);
}
END_TEST

/* Order of checks: the objects that the type needs (XRCD, CQ), the PD, and last whether the driver has the type. */
START_TEST(test_srq_01_types_by_command)
{
	struct uv_srq_attr attr = uv_srq_attr(99);
	int fd = open_context(NULL);
	struct uv_srq srq;
	uint32_t pd, cq;

	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	expect_ok(uv_create_cq(fd, UV_WRITE, &uv_cq_default, &cq, NULL));
	attr.type = IB_UVERBS_SRQT_XRC;
	attr.xrcd = attr.cq = 98;
	expect(uv_create_xsrq(fd, _i, &attr, &srq), EINVAL);
	attr.type = IB_UVERBS_SRQT_TM;
	expect(uv_create_xsrq(fd, _i, &attr, &srq), ENOENT);
	attr.cq = pd;
	expect(uv_create_xsrq(fd, _i, &attr, &srq), EINVAL);
	attr.cq = cq;
	expect(uv_create_xsrq(fd, _i, &attr, &srq), ENOENT);
	attr.pd = cq;
	expect(uv_create_xsrq(fd, _i, &attr, &srq), EINVAL);
	attr.pd = pd;
	expect(uv_create_xsrq(fd, _i, &attr, &srq), EOPNOTSUPP);
	attr.type = 17;
	expect(uv_create_xsrq(fd, _i, &attr, &srq), EOPNOTSUPP);
	attr.type = IB_UVERBS_SRQT_BASIC;
	expect_ok(uv_create_xsrq(fd, _i, &attr, &srq));
	ck_assert_uint_eq(srq.handle, 2);
}
END_TEST

START_TEST(test_srq_01_types_by_method)
{
	int fd = open_context(NULL);
	struct uv_srq_attr attr;
	struct uv_srq srq;
	uint32_t pd, cq;

	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	expect_ok(uv_create_cq(fd, UV_WRITE, &uv_cq_default, &cq, NULL));
	attr = uv_srq_attr(pd);
	attr.type = 17;
	expect(uv_create_srq(fd, UV_METHOD, &attr, &srq), EINVAL);
	attr.type = IB_UVERBS_SRQT_XRC;
	expect(uv_create_srq(fd, UV_METHOD, &attr, &srq), ENOENT);
	attr.cq = cq;
	expect(uv_create_srq(fd, UV_METHOD, &attr, &srq), ENOENT);
	attr.type = IB_UVERBS_SRQT_TM;
	expect(uv_create_srq(fd, UV_METHOD, &attr, &srq), ENOENT);
	attr.tags = 4;
	expect(uv_create_srq(fd, UV_METHOD, &attr, &srq), EOPNOTSUPP);
	ck_assert_uint_eq(next_handle(fd), 2);
}
END_TEST

START_TEST(test_srq_limit_is_queried_as_it_was_set)
{
	struct ib_uverbs_query_srq_resp query = {};
	int fd = open_context(NULL);
	struct uv_srq_attr attr;
	struct uv_srq srq;
	uint32_t pd;

	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	attr = uv_srq_attr(pd);
	expect_ok(uv_create_srq(fd, UV_WRITE, &attr, &srq));
	expect_ok(uv_modify_srq(fd, _i, srq.handle, IBV_SRQ_LIMIT, 0, 7));
	expect_ok(uv_query_srq(fd, _i, srq.handle, &query));
	ck_assert_uint_eq(query.srq_limit, 7);
	expect(uv_modify_srq(fd, _i, srq.handle, IBV_SRQ_LIMIT, 0, 1000000), EINVAL);
	expect_ok(uv_query_srq(fd, _i, srq.handle, &query));
	ck_assert_uint_eq(query.srq_limit, 7);
	expect(uv_modify_srq(fd, _i, 99, IBV_SRQ_LIMIT, 0, 7), ENOENT);
	expect(uv_query_srq(fd, _i, 99, &query), ENOENT);
	expect(uv_query_srq(fd, _i, pd, &query), EINVAL);
	expect(uv_modify_srq(fd, _i, pd, IBV_SRQ_LIMIT, 0, 7), EINVAL);
}
END_TEST

/* Creates a QP with an SRQ, by the plain command: uv_create_qp() does not support SRQs. */
static int create_qp_with(int fd, uint32_t pd, uint32_t cq, uint32_t srq, uint32_t *qp)
{
	struct ib_uverbs_create_qp cmd = { .pd_handle = pd,
					   .send_cq_handle = cq,
					   .recv_cq_handle = cq,
					   .max_send_wr = 4,
					   .max_send_sge = 1,
					   .qp_type = IBV_QPT_RC,
					   .is_srq = 1,
					   .srq_handle = srq };
	struct ib_uverbs_create_qp_resp resp = {};
	uint8_t uhw_out[256];
	int ret = uv_cmd(fd, UV_WRITE,
			 &(struct uv_cmd){ IB_USER_VERBS_CMD_CREATE_QP, &cmd, sizeof(cmd), &resp, sizeof(resp), NULL, 0,
					   uhw_out, uv_room.create_qp });

	*qp = resp.qp_handle;
	return ret;
}

START_TEST(test_srq_of_a_qp_is_ebusy)
{
	int fd = open_context(NULL);
	struct uv_srq_attr attr;
	uint32_t pd, cq, qp;
	struct uv_srq srq;

	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	expect_ok(uv_create_cq(fd, UV_WRITE, &uv_cq_default, &cq, NULL));
	attr = uv_srq_attr(pd);
	expect_ok(uv_create_srq(fd, UV_WRITE, &attr, &srq));
	expect(create_qp_with(fd, pd, cq, 99, &qp), ENOENT);
	expect(create_qp_with(fd, pd, cq, cq, &qp), EINVAL);
	expect_ok(create_qp_with(fd, pd, cq, srq.handle, &qp));
	expect(uv_destroy_srq(fd, fronts[_i], srq.handle, NULL), EBUSY);
	expect_ok(uv_destroy_qp(fd, UV_WRITE, qp, NULL));
	expect_ok(uv_destroy_srq(fd, fronts[_i], srq.handle, NULL));
}
END_TEST

/* ---- POST_SRQ_RECV ----------------------------------------------------------------------------------------------- */

enum { MOST = 100 };

struct receives {
	struct ib_uverbs_post_srq_recv cmd;
	struct ib_uverbs_recv_wr wr[MOST];
	struct ib_uverbs_sge sge[MOST];
};

/* num receives with one entry each, packed as in the command. Returns the command's length. */
static size_t fill_receives(struct receives *list, uint32_t srq, unsigned int num)
{
	struct ib_uverbs_sge *sge = (void *)&list->wr[num];

	*list = (struct receives){
		.cmd = { .srq_handle = srq, .wr_count = num, .sge_count = num, .wqe_size = sizeof(list->wr[0]) }
	};
	for (unsigned int i = 0; i < num; i++) {
		list->wr[i] = (struct ib_uverbs_recv_wr){ .wr_id = i, .num_sge = 1 };
		sge[i] = (struct ib_uverbs_sge){ .addr = 0x1111, .length = 1 };
	}
	return sizeof(list->cmd) + num * (sizeof(list->wr[0]) + sizeof(list->sge[0]));
}

static int post_receives(int fd, enum uv_front front, const struct receives *list, size_t len, uint32_t *bad_wr)
{
	struct ib_uverbs_post_srq_recv_resp resp = { 77 };
	int ret =
		uv_cmd(fd, front, &(struct uv_cmd){ IB_USER_VERBS_CMD_POST_SRQ_RECV, list, len, &resp, sizeof(resp) });

	if (bad_wr)
		*bad_wr = resp.bad_wr;
	return ret;
}

START_TEST(test_qp_16_receives_of_an_srq_are_checked_before_its_handle)
{
	int fd = open_context(NULL);
	struct receives list;
	size_t len;
	uint32_t pd;

	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	len = fill_receives(&list, 99, 2);
	list.cmd.wqe_size = sizeof(list.wr[0]) - 1;
	list.cmd.wr_count = 1000;
	expect_choice("post-recv", post_receives(fd, _i, &list, len, NULL), EINVAL);
	list.cmd.wqe_size = sizeof(list.wr[0]);
	expect_choice("post-recv", post_receives(fd, _i, &list, len, NULL), ENOSPC);
	len = fill_receives(&list, 99, 2);
	list.cmd.sge_count = 3;
	expect_choice("post-recv", post_receives(fd, _i, &list, len, NULL), ENOSPC);
	list.cmd.sge_count = 1;
	expect_choice("post-recv", post_receives(fd, _i, &list, len, NULL), EOPNOTSUPP); /* a tail that is not zero */
	len = fill_receives(&list, 99, 2);
	list.wr[1].num_sge = 2;
	expect_choice("post-recv", post_receives(fd, _i, &list, len, NULL), EINVAL);
	len = fill_receives(&list, 99, 2);
	expect_choice("post-recv", post_receives(fd, _i, &list, len, NULL), ENOENT);
	len = fill_receives(&list, pd, 2);
	expect_choice("post-recv", post_receives(fd, _i, &list, len, NULL), EINVAL);
}
END_TEST

START_TEST(test_qp_16_full_srq_tells_which_receive_did_not_fit)
{
	int fd = open_context(NULL);
	struct uv_srq_attr attr;
	struct receives list;
	struct uv_srq srq;
	uint32_t pd, bad;
	size_t len;

	expect_ok(uv_alloc_pd(fd, UV_WRITE, &pd));
	attr = uv_srq_attr(pd);
	expect_ok(uv_create_srq(fd, UV_WRITE, &attr, &srq));
	ck_assert_uint_lt(srq.max_wr, MOST);
	len = fill_receives(&list, srq.handle, srq.max_wr + 1);
	expect_choice("post-recv", post_receives(fd, _i, &list, len, &bad), ENOMEM);
	if (!choice("post-recv"))
		ck_assert_uint_eq(bad, srq.max_wr + 1);
}
END_TEST

TCase *case_srq(void)
{
	TCase *tc = tcase_create("srq");

	tcase_add_loop_test(tc, test_srq_create_query_destroy, 0, UV_ARRAY_SIZE(fronts));
	tcase_add_loop_test(tc, test_srq_sizes_beyond_the_limits_are_einval, 0, UV_ARRAY_SIZE(fronts));
	tcase_add_loop_test(tc, test_srq_01_types_by_command, 0, UV_PLAIN_FRONTS);
	tcase_add_test(tc, test_srq_01_types_by_method);
	tcase_add_loop_test(tc, test_srq_limit_is_queried_as_it_was_set, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_srq_of_a_qp_is_ebusy, 0, UV_ARRAY_SIZE(fronts));
	tcase_add_loop_test(tc, test_qp_16_receives_of_an_srq_are_checked_before_its_handle, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_qp_16_full_srq_tells_which_receive_did_not_fit, 0, UV_PLAIN_FRONTS);
	return tc;
}
