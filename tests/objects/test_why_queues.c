/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The log's words about refused posts, and about refused calls for CQs and SRQs. */
#include "why_qps.h"

static char memory[4096] __attribute__((aligned(4096)));

/* A request of the QP that qp_in() has made, with entries of this length. */
static int post_wr(struct ib_uverbs_send_wr wr, uint32_t length)
{
	struct ib_uverbs_sge sge[8];

	for (int i = 0; i < 8; i++)
		sge[i] = (struct ib_uverbs_sge){ .addr = (uintptr_t)memory + 8 * i, .length = length };
	return uv_post_send(h.fd, UV_WRITE, qp.handle, &wr, 1, sge, wr.num_sge, NULL);
}

#define POST(length, ...) post_wr((struct ib_uverbs_send_wr){ __VA_ARGS__ }, length)

static int post_send(unsigned int num_sge, uint32_t flags)
{
	struct ib_uverbs_send_wr wr = { .opcode = IBV_WR_SEND, .num_sge = num_sge, .send_flags = flags };
	struct ib_uverbs_sge sge[8] = {};

	for (int i = 0; i < 8; i++)
		sge[i] = (struct ib_uverbs_sge){ .addr = (uintptr_t)memory, .length = flags ? 200 : 0 };
	return uv_post_send(h.fd, UV_WRITE, qp.handle, &wr, 1, sge, num_sge, NULL);
}

static int post_recv(unsigned int num_sge)
{
	struct ib_uverbs_recv_wr wr = { .num_sge = num_sge };
	struct ib_uverbs_sge sge[8] = {};

	return uv_post_recv(h.fd, UV_WRITE, qp.handle, &wr, 1, sge, num_sge, NULL);
}

static int send_in_init(void)
{
	qp_in(IBV_QPT_RC, IBV_QPS_INIT);
	return post_send(0, 0);
}

static int recv_in_reset(void)
{
	make_qp_of(IBV_QPT_RC);
	return post_recv(0);
}

static int many_posted_sges(void)
{
	qp_in(IBV_QPT_RC, IBV_QPS_RTS);
	return post_send(8, 0);
}

static int many_posted_recv_sges(void)
{
	qp_in(IBV_QPT_RC, IBV_QPS_INIT);
	return post_recv(8);
}

#define POST_RC(length, ...) (qp_in(IBV_QPT_RC, IBV_QPS_RTS), POST(length, __VA_ARGS__))
CALL(atomic_without_entry, POST_RC(0, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD))
CALL(short_atomic, POST_RC(4, .opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .num_sge = 1))
CALL(long_send, POST_RC(0x60000000, .opcode = IBV_WR_SEND, .num_sge = 2))
CALL(long_inline, POST_RC(1 << 20, .opcode = IBV_WR_SEND, .num_sge = 1, .send_flags = IBV_SEND_INLINE))
CALL(inline_above_cap, POST_RC(200, .opcode = IBV_WR_SEND, .num_sge = 1, .send_flags = IBV_SEND_INLINE))
CALL(inline_read, POST_RC(0, .opcode = IBV_WR_RDMA_READ, .num_sge = 1, .send_flags = IBV_SEND_INLINE))
CALL(no_operation, POST_RC(0, .opcode = 99))
static int read_without_rd_atomic(void)
{
	struct ib_uverbs_modify_qp cmd = to_rts();

	cmd.max_rd_atomic = 0;
	qp_in(IBV_QPT_RC, IBV_QPS_RTR);
	ck_assert_int_eq(modify(cmd), 0);
	return POST(8, .opcode = IBV_WR_RDMA_READ, .num_sge = 1);
}

/* A UC QP. */
static int read_of_uc(void)
{
	struct ib_uverbs_modify_qp cmd = to_rtr();

	make_qp_of(IBV_QPT_UC);
	cmd.attr_mask &= ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	ck_assert_int_eq(modify(to_init()) | modify(cmd), 0);
	cmd = (struct ib_uverbs_modify_qp){ .attr_mask = IBV_QP_STATE | IBV_QP_SQ_PSN, .qp_state = IBV_QPS_RTS };
	ck_assert_int_eq(modify(cmd), 0);
	return POST(8, .opcode = IBV_WR_RDMA_READ, .num_sge = 1);
}

/* A UD QP, and an address handle of another PD. */
static int ah_of_other_pd(void)
{
	struct ib_uverbs_modify_qp cmd = { .attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
					   .qp_state = IBV_QPS_INIT,
					   .port_num = 1 };
	struct ib_uverbs_ah_attr attr = { .port_num = 1, .dlid = 1 };
	uint32_t other, ah;

	make_qp_of(IBV_QPT_UD);
	ck_assert_int_eq(modify(cmd), 0);
	cmd = (struct ib_uverbs_modify_qp){ .attr_mask = IBV_QP_STATE, .qp_state = IBV_QPS_RTR };
	ck_assert_int_eq(modify(cmd), 0);
	cmd = (struct ib_uverbs_modify_qp){ .attr_mask = IBV_QP_STATE | IBV_QP_SQ_PSN, .qp_state = IBV_QPS_RTS };
	ck_assert_int_eq(modify(cmd), 0);
	ck_assert_int_eq(uv_alloc_pd(h.fd, UV_WRITE, &other), 0);
	ck_assert_int_eq(uv_create_ah(h.fd, UV_WRITE, other, &attr, &ah), 0);
	return POST(8, .opcode = IBV_WR_SEND, .num_sge = 1, .wr.ud.ah = ah);
}

static int recv_of_xrc_send(void)
{
	make_qp_of(IBV_QPT_XRC_SEND);
	ck_assert_int_eq(modify(to_init()), 0);
	return post_recv(0);
}

/* In SQD requests wait. */
static int full_send_queue(void)
{
	struct ib_uverbs_modify_qp cmd = { .attr_mask = IBV_QP_STATE, .qp_state = IBV_QPS_SQD };
	int ret = 0;

	qp_in(IBV_QPT_RC, IBV_QPS_RTS);
	ck_assert_int_eq(modify(cmd), 0);
	for (int i = 0; i < 1000 && !ret; i++)
		ret = post_send(0, 0);
	return ret;
}

static int full_recv_queue(void)
{
	int ret = 0;

	qp_in(IBV_QPT_RC, IBV_QPS_INIT);
	for (int i = 0; i < 1000 && !ret; i++)
		ret = post_recv(0);
	return ret;
}

static int recv_beside_srq(void)
{
	struct uv_srq_attr srq_attr = { .pd = pd, .max_wr = 4, .max_sge = 1 };
	struct ib_uverbs_create_qp cmd = {
		.pd_handle = pd,
		.send_cq_handle = cq,
		.recv_cq_handle = cq,
		.max_send_wr = 1,
		.is_srq = 1,
		.qp_type = IBV_QPT_RC,
	};
	struct ib_uverbs_create_qp_resp resp;
	struct uv_srq srq;

	ck_assert_int_eq(uv_create_srq(h.fd, UV_WRITE, &srq_attr, &srq), 0);
	cmd.srq_handle = srq.handle;
	ck_assert_int_eq(WRITE(&h, CREATE_QP, &cmd, &resp), 0);
	qp.handle = resp.qp_handle;
	qp.qpn = resp.qpn;
	ck_assert_int_eq(modify(to_init()), 0);
	return post_recv(0);
}

/* ---- SRQs -------------------------------------------------------------------------------------------------------- */

static struct uv_srq srq;

static void make_srq(void)
{
	const struct uv_srq_attr attr = { .pd = pd, .max_wr = 8, .max_sge = 2 };

	ck_assert_int_eq(uv_create_srq(h.fd, UV_WRITE, &attr, &srq), 0);
}

static int modify_srq(uint32_t mask, uint32_t max_wr, uint32_t limit)
{
	make_srq();
	return uv_modify_srq(h.fd, UV_WRITE, srq.handle, mask, max_wr, limit);
}

static int post_srq(uint32_t num_sge)
{
	struct {
		struct ib_uverbs_post_srq_recv core;
		struct ib_uverbs_recv_wr wr;
		struct ib_uverbs_sge sge[3];
	} cmd = { .core = { .srq_handle = srq.handle, .wr_count = 1, .sge_count = 3, .wqe_size = sizeof(cmd.wr) },
		  .wr.num_sge = num_sge };
	struct ib_uverbs_post_srq_recv_resp resp;

	return WRITE(&h, POST_SRQ_RECV, &cmd, &resp);
}

CALL(srq_above_most, modify_srq(IBV_SRQ_MAX_WR, 1 << 30, 0))
CALL(srq_limit_above_size, modify_srq(IBV_SRQ_LIMIT, 0, 100))
CALL(srq_limit_above_new_size, modify_srq(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT, 20, 21))
static int srq_below_what_it_holds(void)
{
	make_srq();
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(post_srq(0), 0);
	return uv_modify_srq(h.fd, UV_WRITE, srq.handle, IBV_SRQ_MAX_WR, 4, 0);
}

static int many_srq_sges(void)
{
	const struct uv_srq_attr attr = { .pd = pd, .max_wr = 8, .max_sge = 1000 };

	return uv_create_srq(h.fd, UV_WRITE, &attr, &srq);
}

static int one_srq_too_many(void)
{
	const struct uv_srq_attr attr = { .pd = pd, .max_wr = 8, .max_sge = 1 };

	h.dev->ib.config.limits.max_srq = 1;
	make_srq();
	return uv_create_srq(h.fd, UV_WRITE, &attr, &srq);
}

static int many_srq_recv_sges(void)
{
	make_srq();
	return post_srq(3);
}

static int full_srq(void)
{
	int ret = 0;

	make_srq();
	for (int i = 0; i < 100 && !ret; i++)
		ret = post_srq(0);
	return ret;
}

static int tm_srq(void)
{
	const struct uv_srq_attr attr = { .pd = pd, .max_wr = 8, .max_sge = 1, .type = IB_UVERBS_SRQT_TM, .cq = cq };

	return uv_create_xsrq(h.fd, UV_WRITE, &attr, &srq);
}

/* By ioctl, and without an object that the type needs. */
static int xrc_srq(bool has_cq)
{
	const struct uv_srq_attr attr = { .pd = pd, .max_wr = 8, .max_sge = 1, .type = IB_UVERBS_SRQT_XRC };
	const uint64_t user = 0;
	uint32_t num[3];
	struct uv_tree tree;

	uv_tree_init(&tree, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_SRQ_HANDLE, 0);
	uv_attr_obj(&tree, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, pd);
	uv_attr_const(&tree, UVERBS_ATTR_CREATE_SRQ_TYPE, attr.type);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, &user, 8);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_SRQ_MAX_WR, &attr.max_wr, 4);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, &attr.max_sge, 4);
	uv_attr_in(&tree, UVERBS_ATTR_CREATE_SRQ_LIMIT, &attr.limit, 4);
	uv_attr_out(&tree, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &num[0], 4);
	uv_attr_out(&tree, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &num[1], 4);
	if (has_cq)
		uv_attr_obj(&tree, UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, cq);
	return uv_ioctl(h.fd, &tree);
}

CALL(xrc_srq_without_cq, xrc_srq(false))
CALL(xrc_srq_without_domain, xrc_srq(true))

/* ---- CQs --------------------------------------------------------------------------------------------------------- */

static int resize(uint32_t cqe)
{
	return uv_resize_cq(h.fd, UV_WRITE, cq, cqe, NULL);
}

CALL(cq_of_nothing, resize(0))
CALL(cq_above_most, resize(1 << 30))
/* Three receives are flushed. */
static int cq_below_what_it_holds(void)
{
	struct ib_uverbs_modify_qp cmd = { .attr_mask = IBV_QP_STATE, .qp_state = IBV_QPS_ERR };

	qp_in(IBV_QPT_RC, IBV_QPS_INIT);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(post_recv(0), 0);
	ck_assert_int_eq(modify(cmd), 0);
	return resize(2);
}

static int many_srq_wrs(void)
{
	struct uv_srq_attr attr = { .pd = pd, .max_wr = 1 << 30, .max_sge = 1 };

	return uv_create_srq(h.fd, UV_WRITE, &attr, &srq);
}

/* ---- their lines ------------------------------------------------------------------------------------------------- */

static const struct why_case cases[] = {
	{ send_in_init, EINVAL,
	  "POST_SEND: EINVAL: QP 0x%x: a send cannot be posted in INIT; move the QP to RTS first" },
	{ recv_in_reset, EINVAL,
	  "POST_RECV: EINVAL: QP 0x%x: a receive cannot be posted in RESET; move the QP to INIT first" },
	{ many_posted_sges, EINVAL, "POST_SEND: EINVAL: QP 0x%x: num_sge 8 is not within 0 to 4; " },
	{ many_posted_recv_sges, EINVAL, "POST_RECV: EINVAL: QP 0x%x: num_sge 8 is not within 0 to 4; " },
	{ atomic_without_entry, EINVAL,
	  "POST_SEND: EINVAL: QP 0x%x: the old value of FETCH_AND_ADD needs an entry of 8 bytes at a multiple of 8, not one "
	  "of 0 bytes at 0x0; pass such an entry in sg_list" },
	{ short_atomic, EINVAL,
	  "the old value of CMP_AND_SWP needs an entry of 8 bytes at a multiple of 8, not one of 4 " },
	{ long_send, EINVAL, "POST_SEND: EINVAL: QP 0x%x: the length 3221225472 is not within 0 to 2147483648; " },
	{ long_inline, EINVAL, "POST_SEND: EINVAL: inline data 1048576 is not within 0 to 512; " },
	{ inline_above_cap, EINVAL, "POST_SEND: EINVAL: QP 0x%x: inline data 200 is not within 0 to 0; " },
	{ inline_read, EINVAL,
	  "POST_SEND: EINVAL: QP 0x%x: RDMA READ takes no inline data; leave IBV_SEND_INLINE out of " },
	{ no_operation, EINVAL, "POST_SEND: EINVAL: opcode is wrong (99, 0x63)" },
	{ read_without_rd_atomic, EINVAL,
	  "QP 0x%x: the QP has max_rd_atomic 0 and sends no RDMA READ; set max_rd_atomic " },
	{ read_of_uc, EINVAL, "QP 0x%x: a QP of type UC has no operation RDMA READ; see ibv_post_send(3) " },
	{ ah_of_other_pd, EINVAL,
	  "QP 0x%x: the address handle belongs to another PD than the QP, or there is none; set wr.ud.ah " },
	{ recv_of_xrc_send, EINVAL,
	  "POST_RECV: EINVAL: QP 0x%x: the QP takes no receives by this call; post to the queue " },
	{ srq_above_most, EINVAL, "MODIFY_SRQ: EINVAL: SRQ 0x2: max_wr 1073741824 is not within 0 to 16384; " },
	{ srq_limit_above_size, EINVAL, "MODIFY_SRQ: EINVAL: SRQ 0x2: srq_limit 100 is not within 0 to 8; " },
	{ srq_limit_above_new_size, EINVAL, "MODIFY_SRQ: EINVAL: SRQ 0x2: srq_limit 21 is not within 0 to 20; " },
	{ srq_below_what_it_holds, EINVAL,
	  "MODIFY_SRQ: EINVAL: SRQ 0x2: max_wr 4 is less than the queue holds now; take out " },
	{ many_srq_sges, EINVAL, "CREATE_SRQ: EINVAL: max_sge 1000 is not within 1 to 32; " },
	{ one_srq_too_many, ENOMEM, "CREATE_SRQ: ENOMEM: the device has 1 SRQs, and can have no more; " },
	{ many_srq_recv_sges, EINVAL, "POST_SRQ_RECV: EINVAL: num_sge 3 is not within 0 to 2; " },
	{ full_srq, ENOMEM, "POST_SRQ_RECV: ENOMEM: the shared receive queue has 8 entries, all in use; " },
	{ tm_srq, EOPNOTSUPP, "CREATE_XSRQ: srq_type 0x2: the device does not support this: EOPNOTSUPP" },
	{ xrc_srq_without_cq, ENOENT, "SRQ_CREATE: ENOENT: UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE is missing; " },
	{ xrc_srq_without_domain, ENOENT, "SRQ_CREATE: ENOENT: UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE is missing; " },
	{ cq_of_nothing, EINVAL, "RESIZE_CQ: EINVAL: CQ 0x1: cqe 0 is not within 1 to 1048575; " },
	{ cq_above_most, EINVAL, "RESIZE_CQ: EINVAL: CQ 0x1: cqe 1073741824 is not within 1 to 1048575; " },
	{ cq_below_what_it_holds, EINVAL,
	  "RESIZE_CQ: EINVAL: CQ 0x1: cqe 2 is less than the queue holds now; take out what " },
	{ full_send_queue, ENOMEM,
	  "POST_SEND: ENOMEM: QP 0x%x: the send queue has 16 entries, all in use; poll completions before the next post" },
	{ full_recv_queue, ENOMEM, "POST_RECV: ENOMEM: QP 0x%x: the receive queue has 12 entries, all in use; " },
	{ recv_beside_srq, EINVAL,
	  "POST_RECV: EINVAL: QP 0x%x: the QP takes its receives from an SRQ; post them by ibv_post_srq_recv()" },
	{ many_srq_wrs, EINVAL, "CREATE_SRQ: EINVAL: max_wr 1073741824 is not within 1 to 16384; " },
};

START_TEST(test_a_refused_call_names_the_attribute_the_rule_and_the_remedy)
{
	why_check(&cases[_i], &qp.qpn);
}
END_TEST

/* A filter makes the post fail: the queue is not full, and the request not wrong. */
START_TEST(test_a_post_that_a_filter_refuses_gets_no_reason_of_the_device)
{
	static const char *const filters[] = { "error:post_send=ENOMEM", "error:post_send=EINVAL" };
	char error[UVD_PLUGIN_ERROR] = "";

	qp_in(IBV_QPT_RC, IBV_QPS_RTS);
	ck_assert_msg(!uvd_device_filter_add(h.dev, filters[_i], error), "%s", error);
	ck_assert_int_eq(post_send(0, 0), _i ? -EINVAL : -ENOMEM);
	ck_assert_msg(!strstr(said(), "POST_SEND"), "%s", said());
}
END_TEST

/* ---- MODIFY_CQ, which the soft engine does not have -------------------------------------------------------------- */

static void null_setup(void)
{
	harness_open_with(&h, "null", &uvd_mem_process);
	log_begin();
	ck_assert_int_eq(uv_get_context(h.fd, UV_WRITE, NULL, NULL), 0);
	ck_assert_int_eq(uv_create_cq(h.fd, UV_WRITE, &uv_cq_default, &cq, NULL), 0);
}

static int modify_cq(uint32_t mask, uint32_t reserved)
{
	struct ib_uverbs_ex_modify_cq cmd = { .cq_handle = cq, .attr_mask = mask, .reserved = reserved };

	return WRITE_EX_IN(&h, MODIFY_CQ, &cmd);
}

CALL(cq_attr_none, modify_cq(0, 5))
CALL(cq_attr_reserved, modify_cq(IBV_CQ_ATTR_MODERATE, 5))
CALL(cq_attr_unknown, modify_cq(2, 0))

static const struct why_case null_cases[] = {
	{ cq_attr_none, EINVAL, "MODIFY_CQ: EINVAL: attr_mask is wrong (0, 0x0)" },
	{ cq_attr_reserved, EINVAL, "MODIFY_CQ: EINVAL: reserved is wrong (5, 0x5)" },
	{ cq_attr_unknown, EOPNOTSUPP, "MODIFY_CQ: attr_mask (2, 0x2) is not supported: EOPNOTSUPP" },
};

START_TEST(test_a_refused_moderation_names_the_attribute)
{
	why_check(&null_cases[_i], &qp.qpn);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("why: queues");
	TCase *tc = tcase_create("calls"), *null = tcase_create("null");

	tcase_add_checked_fixture(tc, why_setup, why_teardown);
	tcase_add_loop_test(tc, test_a_refused_call_names_the_attribute_the_rule_and_the_remedy, 0, UVD_COUNT(cases));
	tcase_add_loop_test(tc, test_a_post_that_a_filter_refuses_gets_no_reason_of_the_device, 0, 2);
	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(null, null_setup, why_teardown);
	tcase_add_loop_test(null, test_a_refused_moderation_names_the_attribute, 0, UVD_COUNT(null_cases));
	suite_add_tcase(s, null);
	return run_cases(s);
}
