/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Work queues, indirection tables, and QPs with a table. rxe and the soft backend have none: there the tests only check
 * that they are absent. For the null backend the standard is docs/abi-rules.md, which was derived from the kernel's
 * source.
 */
#include <infiniband/verbs.h>
#include "abi.h"

static const enum uv_front fronts[] = { UV_WRITE, UV_INVOKE, UV_METHOD };

/* Returns false if the driver has no work queues, after checking that the commands and methods are absent. */
static bool has_wqs(int fd)
{
	if (has_ex(fd, UV_EX(CREATE_WQ)))
		return true;
	expect_absent(fd, UV_EX(CREATE_WQ), UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE);
	expect_absent(fd, UV_EX(MODIFY_WQ), UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_DESTROY);
	expect_absent(fd, UV_EX(CREATE_RWQ_IND_TBL), UVERBS_OBJECT_RWQ_IND_TBL, UVERBS_METHOD_RWQ_IND_TBL_DESTROY);
	return false;
}

/* ---- verbs ------------------------------------------------------------------------------------------------------- */

struct wq_attr {
	uint32_t pd, cq, type, flags, comp_mask;
	bool no_cq, no_num; /* UV_METHOD omits the CQ, or the output of the number */
};

static int create_method(int fd, const struct wq_attr *attr, uint32_t *handle)
{
	uint32_t max_wr = 10, max_sge = 2, got[3] = {};
	uint64_t user_handle = 1;
	struct uv_tree tree;
	int ret;

	uv_tree_init(&tree, UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_WQ_HANDLE, 0);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_WQ_PD_HANDLE, attr->pd);
	if (!attr->no_cq)
		uv_attr_obj(&tree, UVERBS_ATTR_CREATE_WQ_CQ_HANDLE, attr->cq);
	uv_attr_const(&tree, UVERBS_ATTR_CREATE_WQ_TYPE, attr->type);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_WQ_USER_HANDLE, &user_handle, 8);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_WQ_MAX_WR, &max_wr, 4);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_WQ_MAX_SGE, &max_sge, 4);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_WQ_FLAGS, &attr->flags, 4);
	uv_attr_out(&tree, UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, &got[0], 4);
	uv_attr_out(&tree, UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE, &got[1], 4);
	if (!attr->no_num)
		uv_attr_out(&tree, UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, &got[2], 4);
	ret = uv_ioctl(fd, &tree);
	*handle = uv_attr_find(&tree, UVERBS_ATTR_CREATE_WQ_HANDLE)->data;
	if (!ret) {
		ck_assert_uint_ge(got[0], max_wr);
		ck_assert_uint_ge(got[1], max_sge);
	}
	return ret;
}

static int create_wq(int fd, enum uv_front front, const struct wq_attr *attr, uint32_t *handle)
{
	struct ib_uverbs_ex_create_wq cmd = { .comp_mask = attr->comp_mask,
					      .wq_type = attr->type,
					      .user_handle = 1,
					      .pd_handle = attr->pd,
					      .cq_handle = attr->cq,
					      .max_wr = 10,
					      .max_sge = 2,
					      .create_flags = attr->flags };
	struct ib_uverbs_ex_create_wq_resp resp = {};
	int ret;

	if (front == UV_METHOD)
		return create_method(fd, attr, handle);
	ret = uv_cmd(fd, front, &(struct uv_cmd){ UV_EX(CREATE_WQ), &cmd, sizeof(cmd), &resp, sizeof(resp) });
	*handle = resp.wq_handle;
	if (!ret) {
		ck_assert_uint_eq(resp.response_length, sizeof(resp));
		ck_assert_uint_ge(resp.max_wr, 10);
		ck_assert_uint_ge(resp.max_sge, 2);
	}
	return ret;
}

static int destroy_wq(int fd, enum uv_front front, uint32_t handle)
{
	struct ib_uverbs_ex_destroy_wq cmd = { .wq_handle = handle };
	struct ib_uverbs_ex_destroy_wq_resp resp = { .events_reported = 9 };
	struct uv_tree tree;
	int ret;

	if (front == UV_METHOD) {
		uv_tree_init(&tree, UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_DESTROY);
		uv_attr_obj(&tree, UVERBS_ATTR_DESTROY_WQ_HANDLE, handle);
		uv_attr_out(&tree, UVERBS_ATTR_DESTROY_WQ_RESP, &resp.events_reported, 4);
		ret = uv_ioctl(fd, &tree);
	} else {
		ret = uv_cmd(fd, front, &(struct uv_cmd){ UV_EX(DESTROY_WQ), &cmd, sizeof(cmd), &resp, sizeof(resp) });
	}
	if (!ret)
		ck_assert_uint_eq(resp.events_reported, 0);
	return ret;
}

static int modify_wq(int fd, enum uv_front front, uint32_t handle, uint32_t mask, uint32_t state, uint32_t cur)
{
	struct ib_uverbs_ex_modify_wq cmd = {
		.attr_mask = mask, .wq_handle = handle, .wq_state = state, .curr_wq_state = cur
	};

	return uv_cmd(fd, front, &(struct uv_cmd){ UV_EX(MODIFY_WQ), &cmd, sizeof(cmd) });
}

struct table {
	struct ib_uverbs_ex_create_rwq_ind_table cmd;
	uint32_t wqs[6];
};

/* len: of the command, a multiple of 8 bytes. */
static int create_table(int fd, enum uv_front front, const struct table *table, size_t len, uint32_t *handle)
{
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = {};
	int ret = uv_cmd(fd, front, &(struct uv_cmd){ UV_EX(CREATE_RWQ_IND_TBL), table, len, &resp, sizeof(resp) });

	*handle = resp.ind_tbl_handle;
	if (!ret)
		ck_assert_uint_eq(resp.response_length, sizeof(resp));
	return ret;
}

static int destroy_table(int fd, enum uv_front front, uint32_t handle)
{
	struct ib_uverbs_ex_destroy_rwq_ind_table cmd = { .ind_tbl_handle = handle };
	struct uv_tree tree;

	if (front != UV_METHOD)
		return uv_cmd(fd, front, &(struct uv_cmd){ UV_EX(DESTROY_RWQ_IND_TBL), &cmd, sizeof(cmd) });
	uv_tree_init(&tree, UVERBS_OBJECT_RWQ_IND_TBL, UVERBS_METHOD_RWQ_IND_TBL_DESTROY);
	uv_attr_obj(&tree, UVERBS_ATTR_DESTROY_RWQ_IND_TBL_HANDLE, handle);
	return uv_ioctl(fd, &tree);
}

/* Makes a PD (handle 0) and a CQ (handle 1). Returns false if the driver has no work queues. */
static bool make_wq_bed(int *fd, struct wq_attr *attr)
{
	*attr = (struct wq_attr){ .type = IBV_WQT_RQ };
	*fd = open_context(NULL);
	if (!has_wqs(*fd))
		return false;
	expect_ok(uv_alloc_pd(*fd, UV_WRITE, &attr->pd));
	expect_ok(uv_create_cq(*fd, UV_WRITE, &uv_cq_default, &attr->cq, NULL));
	return true;
}

/* ---- work queues ------------------------------------------------------------------------------------------------- */

START_TEST(test_wq_keeps_its_pd_and_cq_in_use)
{
	struct wq_attr attr;
	uint32_t wq;
	int fd;

	if (!make_wq_bed(&fd, &attr))
		SKIP("the device has no work queues");
	expect_ok(create_wq(fd, fronts[_i], &attr, &wq));
	ck_assert_uint_eq(wq, 2);
	expect(uv_dealloc_pd(fd, UV_WRITE, attr.pd), EBUSY);
	expect(uv_destroy_cq(fd, UV_WRITE, attr.cq, NULL), EBUSY);
	expect(destroy_wq(fd, fronts[_i], attr.cq), EINVAL);
	expect_ok(destroy_wq(fd, fronts[_i], wq));
	expect(destroy_wq(fd, fronts[_i], wq), ENOENT);
	expect_ok(uv_destroy_cq(fd, UV_WRITE, attr.cq, NULL));
	expect_ok(uv_dealloc_pd(fd, UV_WRITE, attr.pd));
}
END_TEST

START_TEST(test_wq_01_comp_mask_pd_cq_in_this_order)
{
	struct wq_attr attr;
	uint32_t wq, pd;
	int fd;

	if (!make_wq_bed(&fd, &attr))
		SKIP("the device has no work queues");
	pd = attr.pd;
	attr.comp_mask = 1;
	attr.pd = 99;
	attr.cq = 98;
	expect(create_wq(fd, _i, &attr, &wq), EOPNOTSUPP);
	attr.comp_mask = 0;
	expect(create_wq(fd, _i, &attr, &wq), ENOENT);
	attr.pd = 1;
	expect(create_wq(fd, _i, &attr, &wq), EINVAL);
	attr.pd = pd;
	expect(create_wq(fd, _i, &attr, &wq), ENOENT);
	attr.cq = pd;
	expect(create_wq(fd, _i, &attr, &wq), EINVAL);
	ck_assert_uint_eq(next_handle(fd), 2);
}
END_TEST

START_TEST(test_wq_01_method_takes_receive_queues_only)
{
	struct wq_attr attr;
	uint32_t wq;
	int fd;

	if (!make_wq_bed(&fd, &attr))
		SKIP("the device has no work queues");
	attr.flags = 1 << 4;
	expect(create_wq(fd, UV_METHOD, &attr, &wq), EINVAL);
	attr.flags = (1 << 4) - 1;
	attr.type = IBV_WQT_RQ + 1;
	expect(create_wq(fd, UV_METHOD, &attr, &wq), EINVAL);
	attr.type = IBV_WQT_RQ;
	attr.no_num = true;
	expect(create_wq(fd, UV_METHOD, &attr, &wq), ENOENT);
	ck_assert_uint_eq(next_handle(fd), 2);
	attr.no_num = false;
	expect_ok(create_wq(fd, UV_METHOD, &attr, &wq));
	/* Only on our devices: the kernel would use the ERR_PTR of the failed look-up as a CQ. */
	attr.no_cq = true;
	if (target()->where & ON_OURS)
		expect(create_wq(fd, UV_METHOD, &attr, &wq), ENOENT);
}
END_TEST

START_TEST(test_wq_02_modify_checks_mask_then_queue_then_states)
{
	enum { STATE = IBV_WQ_ATTR_STATE, CUR = IBV_WQ_ATTR_CURR_STATE };
	struct wq_attr attr;
	uint32_t wq;
	int fd;

	if (!make_wq_bed(&fd, &attr))
		SKIP("the device has no work queues");
	expect_ok(create_wq(fd, UV_WRITE, &attr, &wq));
	expect(modify_wq(fd, _i, 99, 0, 0, 0), EINVAL);
	expect(modify_wq(fd, _i, 99, 8, 0, 0), EINVAL);
	expect(modify_wq(fd, _i, 99, STATE, 3, 0), ENOENT);
	expect(modify_wq(fd, _i, attr.pd, STATE, 3, 0), EINVAL);
	expect_ok(modify_wq(fd, _i, wq, STATE | CUR, IBV_WQS_RDY, IBV_WQS_RESET));
	expect_ok(modify_wq(fd, _i, wq, STATE, IBV_WQS_ERR, 99));
	/* The kernel leaves the WQ locked after these errors. Our devices do not repeat this bug. */
	expect(modify_wq(fd, _i, wq, STATE, 3, 0), EINVAL);
	expect(modify_wq(fd, _i, wq, CUR, 0, 3), EINVAL);
	expect(modify_wq(fd, _i, wq, STATE | CUR, 3, 1), EINVAL);
	expect(modify_wq(fd, _i, wq, STATE | CUR, 1, 3), EINVAL);
	if (!(target()->where & ON_OURS))
		return;
	expect_ok(modify_wq(fd, _i, wq, CUR, 9, IBV_WQS_ERR)); /* a field that the mask does not name is ignored */
	expect_ok(destroy_wq(fd, _i, wq));
}
END_TEST

START_TEST(test_wq_short_answer_says_how_long_it_is)
{
	struct ib_uverbs_ex_create_wq cmd = { .wq_type = IBV_WQT_RQ, .max_wr = 10, .max_sge = 2, .reserved = 1 };
	struct ib_uverbs_ex_create_wq_resp resp = { .comp_mask = 9, .max_sge = 77 };
	struct wq_attr attr;
	int fd;

	if (!make_wq_bed(&fd, &attr))
		SKIP("the device has no work queues");
	cmd.pd_handle = attr.pd;
	cmd.cq_handle = attr.cq;
	expect_ok(uv_cmd(fd, _i, &(struct uv_cmd){ UV_EX(CREATE_WQ), &cmd, sizeof(cmd), &resp, 16 }));
	ck_assert_uint_eq(resp.comp_mask, 0);
	ck_assert_uint_eq(resp.response_length, 16);
	ck_assert_uint_eq(resp.wq_handle, 2);
	ck_assert_uint_eq(resp.max_wr, 10);
	ck_assert_uint_eq(resp.max_sge, 77);
}
END_TEST

START_TEST(test_wq_destruction_with_a_comp_mask_is_eopnotsupp)
{
	struct ib_uverbs_ex_destroy_wq cmd = { .comp_mask = 1 };
	struct ib_uverbs_ex_destroy_wq_resp resp = { .reserved = 7 };
	struct uv_cmd destroy = { UV_EX(DESTROY_WQ), &cmd, sizeof(cmd), &resp, sizeof(resp) };
	struct wq_attr attr;
	int fd;

	if (!make_wq_bed(&fd, &attr))
		SKIP("the device has no work queues");
	expect_ok(create_wq(fd, _i, &attr, &cmd.wq_handle));
	expect(uv_cmd(fd, _i, &destroy), EOPNOTSUPP);
	cmd.comp_mask = 0;
	expect_ok(uv_cmd(fd, _i, &destroy));
	ck_assert_uint_eq(resp.response_length, sizeof(resp));
	ck_assert_uint_eq(resp.reserved, 0);
	ck_assert_uint_eq(next_handle(fd), 2);
}
END_TEST

/* ---- indirection tables ------------------------------------------------------------------------------------------ */

START_TEST(test_wq_03_order_of_checks)
{
	struct table table = { .cmd = { .comp_mask = 1, .log_ind_tbl_size = 99 } };
	struct ib_uverbs_ex_destroy_rwq_ind_table destroy = { .comp_mask = 1 };
	struct wq_attr attr;
	uint32_t wq, handle;
	int fd;

	if (!make_wq_bed(&fd, &attr))
		SKIP("the device has no work queues");
	expect_ok(create_wq(fd, UV_WRITE, &attr, &wq));
	table.wqs[0] = wq;
	table.wqs[1] = 99;
	expect(create_table(fd, _i, &table, 0, &handle), ENOSPC);
	expect(create_table(fd, _i, &table, 8, &handle), EOPNOTSUPP);
	table.cmd.comp_mask = 0;
	expect(create_table(fd, _i, &table, 8, &handle), EINVAL);
	table.cmd.log_ind_tbl_size = 14;
	expect(create_table(fd, _i, &table, 8, &handle), EINVAL);
	table.cmd.log_ind_tbl_size = 13;
	expect(create_table(fd, _i, &table, sizeof(table), &handle), ENOSPC);
	table.cmd.log_ind_tbl_size = 1;
	expect(create_table(fd, _i, &table, 8, &handle), ENOSPC);
	table.wqs[3] = 1;
	expect(create_table(fd, _i, &table, 24, &handle), EOPNOTSUPP);
	table.wqs[3] = 0;
	expect(create_table(fd, _i, &table, 24, &handle), ENOENT);
	table.wqs[1] = attr.cq;
	expect(create_table(fd, _i, &table, 24, &handle), EINVAL);
	ck_assert_uint_eq(next_handle(fd), 3);
	table.wqs[1] = wq;
	expect_ok(create_table(fd, _i, &table, 24, &handle));
	ck_assert_uint_eq(handle, 3);
	destroy.ind_tbl_handle = handle;
	expect(uv_cmd(fd, _i, &(struct uv_cmd){ UV_EX(DESTROY_RWQ_IND_TBL), &destroy, sizeof(destroy) }), EOPNOTSUPP);
	expect_ok(destroy_table(fd, _i, handle));
}
END_TEST

START_TEST(test_wq_03_table_keeps_its_queues_in_use)
{
	enum uv_front front = fronts[_i], plain = front == UV_METHOD ? UV_WRITE : front;
	struct table table = { .cmd.log_ind_tbl_size = 1 };
	struct wq_attr attr;
	uint32_t wq, handle;
	int fd;

	if (!make_wq_bed(&fd, &attr))
		SKIP("the device has no work queues");
	expect_ok(create_wq(fd, front, &attr, &wq));
	table.wqs[0] = table.wqs[1] = wq;
	expect_ok(create_table(fd, plain, &table, 16, &handle));
	expect(destroy_wq(fd, front, wq), EBUSY);
	expect(destroy_table(fd, front, wq), EINVAL);
	expect_ok(destroy_table(fd, front, handle));
	expect(destroy_table(fd, front, handle), ENOENT);
	expect_ok(destroy_wq(fd, front, wq));
}
END_TEST

START_TEST(test_wq_03_table_may_have_8192_entries)
{
	static struct {
		struct ib_uverbs_ex_create_rwq_ind_table cmd;
		uint32_t wqs[8192];
	} table;
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = { .comp_mask = 9 };
	struct uv_cmd create = { UV_EX(CREATE_RWQ_IND_TBL), &table, sizeof(table), &resp, sizeof(resp) };
	struct wq_attr attr;
	uint32_t wq;
	int fd;

	if (!make_wq_bed(&fd, &attr))
		SKIP("the device has no work queues");
	expect_ok(create_wq(fd, UV_WRITE, &attr, &wq));
	table.cmd.log_ind_tbl_size = 13;
	for (unsigned int i = 0; i < UV_ARRAY_SIZE(table.wqs); i++)
		table.wqs[i] = wq;
	expect_ok(uv_cmd(fd, _i, &create));
	ck_assert_uint_eq(resp.comp_mask, 0);
	expect(destroy_wq(fd, _i, wq), EBUSY);
	expect_ok(destroy_table(fd, _i, resp.ind_tbl_handle));
	table.wqs[8191] = 99;
	expect(uv_cmd(fd, _i, &create), ENOENT);
	expect_ok(destroy_wq(fd, _i, wq));
}
END_TEST

/* The kernel reads an ioctl's input piece by piece: an error in an earlier piece wins over a fault in a later one. */
START_TEST(test_wq_03_error_before_unmapped_memory_wins)
{
	struct table table = { .cmd.log_ind_tbl_size = 14 };
	struct wq_attr attr;
	uint32_t handle;
	int fd;

	if (!make_wq_bed(&fd, &attr))
		SKIP("the device has no work queues");
	expect_ok(create_wq(fd, UV_WRITE, &attr, &table.wqs[0]));
	table.wqs[1] = table.wqs[0];
	/* Only the struct can be read. It is checked before the queues' handles are read. */
	expect(create_table(fd, UV_INVOKE, uv_guard(&table, 8), 16, &handle), EINVAL);
	table.cmd.log_ind_tbl_size = 1;
	expect(create_table(fd, UV_INVOKE, uv_guard(&table, 8), 16, &handle), EFAULT);
	expect(create_table(fd, UV_INVOKE, uv_guard(&table, 4), 16, &handle), EFAULT);
	/* The struct and the handles can be read, what follows cannot. */
	expect(create_table(fd, UV_INVOKE, uv_guard(&table, 16), 24, &handle), EOPNOTSUPP);
	expect_ok(create_table(fd, UV_INVOKE, uv_guard(&table, 16), 16, &handle));
}
END_TEST

/* ---- QPs with an indirection table ------------------------------------------------------------------------------- */

struct table_qp {
	uint32_t table, send_cq, recv_cq, srq, max_send_wr, max_recv_wr, max_recv_sge;
	bool has_send_cq, has_recv_cq, is_srq;
};

static int create_qp_method(int fd, uint32_t pd, const struct table_qp *q, uint32_t *handle)
{
	struct ib_uverbs_qp_cap cap = { .max_send_wr = q->max_send_wr,
					.max_recv_wr = q->max_recv_wr,
					.max_recv_sge = q->max_recv_sge };
	uint64_t user_handle = 1;
	struct uv_tree tree;
	uint32_t qpn;
	int ret;

	uv_tree_init(&tree, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_QP_HANDLE, 0);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_QP_PD_HANDLE, pd);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE, q->table);
	uv_attr_const(&tree, UVERBS_ATTR_CREATE_QP_TYPE, IBV_QPT_UD);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_QP_USER_HANDLE, &user_handle, 8);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof(cap));
	uv_attr_out(&tree, UVERBS_ATTR_CREATE_QP_RESP_CAP, &cap, sizeof(cap));
	uv_attr_out(&tree, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &qpn, 4);
	if (q->has_send_cq)
		uv_attr_obj(&tree, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, q->send_cq);
	if (q->has_recv_cq)
		uv_attr_obj(&tree, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, q->recv_cq);
	if (q->is_srq)
		uv_attr_obj(&tree, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, q->srq);
	ret = uv_ioctl(fd, &tree);
	*handle = uv_attr_find(&tree, UVERBS_ATTR_CREATE_QP_HANDLE)->data;
	return ret;
}

static int create_table_qp(int fd, enum uv_front front, uint32_t pd, const struct table_qp *q, uint32_t *handle)
{
	struct ib_uverbs_ex_create_qp cmd = { .pd_handle = pd,
					      .send_cq_handle = q->send_cq,
					      .recv_cq_handle = q->recv_cq,
					      .srq_handle = q->srq,
					      .is_srq = q->is_srq,
					      .max_send_wr = q->max_send_wr,
					      .max_recv_wr = q->max_recv_wr,
					      .max_recv_sge = q->max_recv_sge,
					      .qp_type = IBV_QPT_UD,
					      .comp_mask = IB_UVERBS_CREATE_QP_MASK_IND_TABLE,
					      .rwq_ind_tbl_handle = q->table };
	struct ib_uverbs_ex_create_qp_resp resp = {};
	int ret;

	if (front == UV_METHOD)
		return create_qp_method(fd, pd, q, handle);
	ret = uv_cmd(fd, front, &(struct uv_cmd){ UV_EX(CREATE_QP), &cmd, sizeof(cmd), &resp, sizeof(resp) });
	*handle = resp.base.qp_handle;
	return ret;
}

START_TEST(test_qp_03_table_with_receives_of_its_own_is_einval)
{
	struct table table = {};
	struct table_qp q = {};
	struct uv_srq_attr srq_attr;
	enum uv_front front = fronts[_i];
	struct uv_srq srq;
	struct wq_attr attr;
	uint32_t wq, qp;
	int fd;

	if (!make_wq_bed(&fd, &attr))
		SKIP("the device has no work queues");
	expect_ok(create_wq(fd, UV_WRITE, &attr, &wq));
	table.wqs[0] = wq;
	expect_ok(create_table(fd, UV_WRITE, &table, 16, &q.table));
	srq_attr = uv_srq_attr(attr.pd);
	expect_ok(uv_create_srq(fd, UV_WRITE, &srq_attr, &srq));
	q.send_cq = q.recv_cq = attr.cq;
	q.srq = srq.handle;
	q.max_recv_wr = 1;
	expect(create_table_qp(fd, front, attr.pd, &q, &qp), EINVAL);
	q.max_recv_wr = 0;
	q.max_recv_sge = 1;
	expect(create_table_qp(fd, front, attr.pd, &q, &qp), EINVAL);
	q.max_recv_sge = 0;
	q.is_srq = true;
	expect(create_table_qp(fd, front, attr.pd, &q, &qp), EINVAL);
	q.is_srq = false;
	q.has_recv_cq = true;
	if (front == UV_METHOD)
		expect(create_table_qp(fd, front, attr.pd, &q, &qp), EINVAL);
	q.has_recv_cq = false;
	q.recv_cq = 98;
	/* The send CQ is looked up only if max_send_wr is not 0. */
	q.send_cq = 99;
	expect_ok(create_table_qp(fd, front, attr.pd, &q, &qp));
	expect(destroy_table(fd, front, q.table), EBUSY);
	expect_ok(uv_destroy_qp(fd, UV_WRITE, qp, NULL));
	q.max_send_wr = 1;
	expect(create_table_qp(fd, front, attr.pd, &q, &qp), ENOENT);
	q.send_cq = attr.cq;
	q.has_send_cq = true;
	expect_ok(create_table_qp(fd, front, attr.pd, &q, &qp));
	expect_ok(uv_destroy_qp(fd, UV_WRITE, qp, NULL));
	q.table = 99;
	expect(create_table_qp(fd, front, attr.pd, &q, &qp), ENOENT);
	q.table = wq;
	expect(create_table_qp(fd, front, attr.pd, &q, &qp), EINVAL);
}
END_TEST

TCase *case_wq(void)
{
	TCase *tc = tcase_create("wq");

	tcase_set_tags(tc, "null");
	tcase_add_loop_test(tc, test_wq_keeps_its_pd_and_cq_in_use, 0, UV_ARRAY_SIZE(fronts));
	tcase_add_loop_test(tc, test_wq_01_comp_mask_pd_cq_in_this_order, 0, UV_PLAIN_FRONTS);
	tcase_add_test(tc, test_wq_01_method_takes_receive_queues_only);
	tcase_add_loop_test(tc, test_wq_02_modify_checks_mask_then_queue_then_states, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_wq_short_answer_says_how_long_it_is, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_wq_destruction_with_a_comp_mask_is_eopnotsupp, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_wq_03_order_of_checks, 0, UV_PLAIN_FRONTS);
	tcase_add_loop_test(tc, test_wq_03_table_may_have_8192_entries, 0, UV_PLAIN_FRONTS);
	tcase_add_test(tc, test_wq_03_error_before_unmapped_memory_wins);
	tcase_add_loop_test(tc, test_wq_03_table_keeps_its_queues_in_use, 0, UV_ARRAY_SIZE(fronts));
	tcase_add_loop_test(tc, test_qp_03_table_with_receives_of_its_own_is_einval, 0, UV_ARRAY_SIZE(fronts));
	return tc;
}
