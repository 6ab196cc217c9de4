/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* XRC target QPs with several handles, and XRC SRQs. */
#include "xrc.h"

/* ---- target QPs -------------------------------------------------------------------------------------------------- */

START_TEST(test_destroyed_target_is_the_backends_and_lets_its_domain_go)
{
	struct ib_uverbs_create_qp_resp resp;
	struct uv_tree tree = {};
	uint32_t xrcd;

	begin();
	count();
	ck_assert_int_eq(open_xrcd(-1, 0, &xrcd), 0);
	ck_assert_int_eq(create_target(xrcd, &resp), 0);
	uv_attr_obj(&tree, UVERBS_ATTR_DESTROY_XRCD_HANDLE, xrcd);
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_XRCD, UVERBS_METHOD_XRCD_DESTROY, &tree), -EBUSY);
	ck_assert_int_eq(destroy_qp(resp.qp_handle, NULL), 0);
	ck_assert_uint_eq(num_destroyed, 1);
	ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_XRCD, UVERBS_METHOD_XRCD_DESTROY, &tree), 0);
	ck_assert_uint_eq(num_dealloc, 1);
}
END_TEST

static int see_target(struct uvd_qp *qp, struct uvd_qp_init_attr *init, struct uvd_udata *udata)
{
	ck_assert_ptr_null(qp->pd);
	ck_assert_ptr_null(qp->send_cq);
	ck_assert_ptr_null(qp->recv_cq);
	ck_assert_ptr_null(qp->srq);
	ck_assert_ptr_nonnull(qp->xrcd);
	return init->srq ? -EXDEV : -EDOM;
}

START_TEST(test_target_by_method)
{
	struct ib_uverbs_create_xsrq srq = { .max_wr = 4, .max_sge = 1, .srq_type = IB_UVERBS_SRQT_XRC };
	struct ib_uverbs_create_srq_resp srq_resp;
	struct ib_uverbs_qp_cap cap = {}, resp_cap;
	uint64_t user_handle = 1;
	uint32_t xrcd, qpn;

	begin();
	ck_assert_int_eq(open_xrcd(-1, 0, &xrcd), 0);
	srq.pd_handle = pd;
	srq.cq_handle = cq;
	srq.xrcd_handle = xrcd;
	ck_assert_int_eq(WRITE(&h, CREATE_XSRQ, &srq, &srq_resp), 0);
	srq.srq_type = IB_UVERBS_SRQT_BASIC;
	ck_assert_int_eq(WRITE(&h, CREATE_XSRQ, &srq, &srq_resp), 0);
	h.ops.create_qp = see_target;
	for (int i = 0; i < 4; i++) {
		/* No SRQ; an XRC SRQ (handle 3); a basic SRQ (handle 4, qp-05); no domain. */
		static const int want[] = { -EDOM, -EXDEV, -EINVAL, -ENOENT };
		struct uv_tree tree = {};

		uv_attr_obj(&tree, UVERBS_ATTR_CREATE_QP_HANDLE, 0);
		uv_attr_const(&tree, UVERBS_ATTR_CREATE_QP_TYPE, IBV_QPT_XRC_RECV);
		uv_attr_in(&tree, UVERBS_ATTR_CREATE_QP_USER_HANDLE, &user_handle, sizeof(user_handle));
		uv_attr_in(&tree, UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof(cap));
		uv_attr_out(&tree, UVERBS_ATTR_CREATE_QP_RESP_CAP, &resp_cap, sizeof(resp_cap));
		uv_attr_out(&tree, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &qpn, sizeof(qpn));
		if (i < 3)
			uv_attr_obj(&tree, UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, xrcd);
		if (i == 1 || i == 2)
			uv_attr_obj(&tree, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, 2 + i);
		ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, &tree), want[i]);
	}
}
END_TEST

START_TEST(test_target_lives_until_its_last_handle_is_gone)
{
	struct ib_uverbs_query_qp query = {};
	struct ib_uverbs_query_qp_resp queried;
	struct ib_uverbs_create_qp_resp resp;
	int fd = memfd_create("domain", 0);
	struct uvd_file *second;
	uint32_t a, b, qp;

	begin();
	count();
	ck_assert_int_eq(open_xrcd(fd, O_CREAT, &a), 0);
	ck_assert_int_eq(create_target(a, &resp), 0);
	second = second_file();
	ck_assert_int_eq(open_xrcd(fd, 0, &b), 0);
	ck_assert_int_eq(open_target(b, resp.qpn, &qp), 0);
	use(h.file);
	ck_assert_int_eq(destroy_qp(resp.qp_handle, NULL), 0);
	ck_assert_uint_eq(num_destroyed, 0);
	ck_assert_int_eq(close_xrcd(a), 0); /* nothing uses the domain by this handle any more */
	ck_assert_int_eq(open_xrcd(fd, 0, &a), 0);
	ck_assert_int_eq(open_target(a, resp.qpn, &resp.qp_handle), 0);
	harness_close_file(&h);
	use(second);
	query.qp_handle = qp;
	ck_assert_int_eq(WRITE(&h, QUERY_QP, &query, &queried), 0);
	ck_assert_uint_eq(queried.qp_state, IBV_QPS_RESET);
	ck_assert_int_eq(close_xrcd(b), -EBUSY);
	ck_assert_uint_eq(num_destroyed, 0);
	uvd_file_close(second);
	ck_assert_uint_eq(num_destroyed, 1);
	ck_assert_uint_eq(num_dealloc, 1);
	close(fd);
}
END_TEST

static int refuse_destroy(struct uvd_qp *qp)
{
	return -EDOM;
}

START_TEST(test_target_that_the_backend_keeps_stays_as_it_was)
{
	struct ib_uverbs_create_qp_resp resp;
	uint32_t xrcd, qp;

	begin();
	ck_assert_int_eq(open_xrcd(-1, 0, &xrcd), 0);
	ck_assert_int_eq(create_target(xrcd, &resp), 0);
	h.ops.destroy_qp = refuse_destroy;
	ck_assert_int_eq(destroy_qp(resp.qp_handle, NULL), -EDOM);
	ck_assert_int_eq(open_target(xrcd, resp.qpn, &qp), 0);
	ck_assert_int_eq(destroy_qp(resp.qp_handle, NULL), 0);
	ck_assert_int_eq(destroy_qp(qp, NULL), -EDOM);
	ck_assert_int_eq(close_xrcd(xrcd), -EBUSY);
	h.ops.destroy_qp = uvd_backend_null.destroy_qp;
	ck_assert_int_eq(destroy_qp(qp, NULL), 0);
	ck_assert_int_eq(close_xrcd(xrcd), 0);
}
END_TEST

static int refuse_qp(struct uvd_qp *qp, struct uvd_qp_init_attr *init, struct uvd_udata *udata)
{
	return -EDOM;
}

START_TEST(test_target_that_fails_leaves_nothing)
{
	struct ib_uverbs_create_qp cmd = { .qp_type = IBV_QPT_XRC_RECV };
	struct ib_uverbs_create_qp_resp resp;
	uint32_t xrcd;

	begin();
	count();
	ck_assert_int_eq(open_xrcd(-1, 0, &xrcd), 0);
	cmd.pd_handle = xrcd;
	ck_assert_int_eq(harness_write(&h, IB_USER_VERBS_CMD_CREATE_QP, &cmd, sizeof(cmd), BAD, sizeof(resp)), -EFAULT);
	ck_assert_uint_eq(num_destroyed, 1);
	h.ops.create_qp = refuse_qp;
	ck_assert_int_eq(create_target(xrcd, &resp), -EDOM);
	ck_assert_int_eq(close_xrcd(xrcd), 0);
}
END_TEST

/* ---- XRC SRQs ---------------------------------------------------------------------------------------------------- */

START_TEST(test_srq_01_xrc_srq_by_method_answers_its_number)
{
	uint32_t max_wr = 10, max_sge = 2, limit = 0, out_wr, out_sge, srqn = 0, xrcd;
	uint64_t user_handle = 1;

	begin();
	ck_assert_int_eq(open_xrcd(-1, 0, &xrcd), 0);
	/* Without RESP_SRQ_NUM the call fails, after the SRQ has been made. */
	for (int i = 0; i < 2; i++) {
		struct uv_tree tree = {};

		uv_attr_obj(&tree, UVERBS_ATTR_CREATE_SRQ_HANDLE, 0);
		uv_attr_obj(&tree, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, pd);
		uv_attr_obj(&tree, UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE, xrcd);
		uv_attr_obj(&tree, UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, cq);
		uv_attr_const(&tree, UVERBS_ATTR_CREATE_SRQ_TYPE, IB_UVERBS_SRQT_XRC);
		uv_attr_in(&tree, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, &user_handle, sizeof(user_handle));
		uv_attr_in(&tree, UVERBS_ATTR_CREATE_SRQ_MAX_WR, &max_wr, sizeof(max_wr));
		uv_attr_in(&tree, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, &max_sge, sizeof(max_sge));
		uv_attr_in(&tree, UVERBS_ATTR_CREATE_SRQ_LIMIT, &limit, sizeof(limit));
		uv_attr_out(&tree, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &out_wr, sizeof(out_wr));
		uv_attr_out(&tree, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &out_sge, sizeof(out_sge));
		if (i)
			uv_attr_out(&tree, UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, &srqn, sizeof(srqn));
		ck_assert_int_eq(harness_ioctl(&h, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, &tree),
				 i ? 0 : -ENOENT);
		ck_assert_int_eq(close_xrcd(xrcd), i ? -EBUSY : 0);
		if (!i)
			ck_assert_int_eq(open_xrcd(-1, 0, &xrcd), 0);
	}
	ck_assert_uint_ne(srqn, 0);
}
END_TEST

/* ---- removal ----------------------------------------------------------------------------------------------------- */

/* Two clients share the domain and the target, and have closed neither. */
START_TEST(test_unplug_ends_shared_domains_and_targets_once)
{
	struct ib_uverbs_create_qp_resp resp;
	int fd = memfd_create("domain", 0);
	struct uvd_file *second;
	uint32_t a, b, qp;

	begin();
	count();
	ck_assert_int_eq(open_xrcd(fd, O_CREAT, &a), 0);
	ck_assert_int_eq(create_target(a, &resp), 0);
	second = second_file();
	ck_assert_int_eq(open_xrcd(fd, 0, &b), 0);
	ck_assert_int_eq(open_target(b, resp.qpn, &qp), 0);
	uvd_device_remove(h.dev);
	ck_assert_uint_eq(num_destroyed, 1);
	ck_assert_uint_eq(num_dealloc, 1);
	ck_assert_ptr_null(h.dev->xrcds);
	ck_assert_int_eq(open_xrcd(fd, O_CREAT, &a), -EIO);
	/* The handles can still be destroyed (handle-08). */
	ck_assert_int_eq(destroy_qp(qp, NULL), 0);
	ck_assert_int_eq(close_xrcd(b), 0);
	use(h.file);
	ck_assert_int_eq(destroy_qp(resp.qp_handle, NULL), 0);
	uvd_file_close(second);
	close(fd);
}
END_TEST

TEST_LIST(test_destroyed_target_is_the_backends_and_lets_its_domain_go, test_target_by_method,
	  test_target_lives_until_its_last_handle_is_gone, test_target_that_the_backend_keeps_stays_as_it_was,
	  test_target_that_fails_leaves_nothing, test_srq_01_xrc_srq_by_method_answers_its_number,
	  test_unplug_ends_shared_domains_and_targets_once)
