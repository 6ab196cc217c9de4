/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Valid calls: queue pairs. */
#include "faults.h"

static void create_qp(struct call *c)
{
	call_context(c);
	call_pd(c);
	call_cq(c);
	CALL_IN(c, struct ib_uverbs_create_qp, .user_handle = 1, .pd_handle = c->pd, .send_cq_handle = c->cq,
		.recv_cq_handle = c->cq, .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1,
		.qp_type = IBV_QPT_RC);
	CALL_OUT(c, struct ib_uverbs_create_qp_resp);
}

static void create_qp_with_srq(struct call *c)
{
	struct ib_uverbs_create_qp *in = (struct ib_uverbs_create_qp *)c->in;

	create_qp(c);
	call_srq(c);
	in->is_srq = 1;
	in->srq_handle = c->srq;
}

static void create_qp_ex(struct call *c)
{
	call_context(c);
	call_pd(c);
	call_cq(c);
	CALL_IN(c, struct ib_uverbs_ex_create_qp, .user_handle = 1, .pd_handle = c->pd, .send_cq_handle = c->cq,
		.recv_cq_handle = c->cq, .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1,
		.qp_type = IBV_QPT_UD);
	CALL_OUT(c, struct ib_uverbs_ex_create_qp_resp);
}

static void qp_create(struct call *c)
{
	struct ib_uverbs_qp_cap *cap = (struct ib_uverbs_qp_cap *)c->data;
	uint64_t user_handle = 1;

	call_context(c);
	call_pd(c);
	call_cq(c);
	*cap = (struct ib_uverbs_qp_cap){ 4, 4, 1, 1, 0 };
	uv_attr_obj(&c->tree, UVERBS_ATTR_CREATE_QP_HANDLE, 0);
	uv_attr_obj(&c->tree, UVERBS_ATTR_CREATE_QP_PD_HANDLE, c->pd);
	uv_attr_obj(&c->tree, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, c->cq);
	uv_attr_obj(&c->tree, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, c->cq);
	uv_attr_in(&c->tree, UVERBS_ATTR_CREATE_QP_USER_HANDLE, &user_handle, sizeof(user_handle));
	uv_attr_in(&c->tree, UVERBS_ATTR_CREATE_QP_CAP, cap, sizeof(*cap));
	uv_attr_const(&c->tree, UVERBS_ATTR_CREATE_QP_TYPE, IBV_QPT_RC);
	uv_attr_obj(&c->tree, UVERBS_ATTR_CREATE_QP_EVENT_FD, c->async_fd);
	uv_attr_out(&c->tree, UVERBS_ATTR_CREATE_QP_RESP_CAP, c->out, sizeof(*cap));
	uv_attr_out(&c->tree, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &c->out[8], sizeof(uint32_t));
}

static void make_qp(struct call *c)
{
	call_context(c);
	call_qp(c, IBV_QPT_RC, IBV_QPS_RESET);
}

static void destroy_qp(struct call *c)
{
	make_qp(c);
	CALL_IN(c, struct ib_uverbs_destroy_qp, .qp_handle = c->qp);
	CALL_OUT(c, struct ib_uverbs_destroy_qp_resp);
}

static void qp_destroy(struct call *c)
{
	make_qp(c);
	uv_attr_obj(&c->tree, UVERBS_ATTR_DESTROY_QP_HANDLE, c->qp);
	uv_attr_out(&c->tree, UVERBS_ATTR_DESTROY_QP_RESP, c->out, sizeof(struct ib_uverbs_destroy_qp_resp));
}

static void query_qp(struct call *c)
{
	make_qp(c);
	CALL_IN(c, struct ib_uverbs_query_qp, .qp_handle = c->qp, .attr_mask = IBV_QP_STATE);
	CALL_OUT(c, struct ib_uverbs_query_qp_resp);
}

static void modify_qp(struct call *c)
{
	make_qp(c);
	CALL_IN(c, struct ib_uverbs_modify_qp, .qp_handle = c->qp, .qp_state = IBV_QPS_INIT, .port_num = 1,
		.attr_mask = IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS);
}

static void modify_qp_ex(struct call *c)
{
	modify_qp(c);
	c->in_len = sizeof(struct ib_uverbs_ex_modify_qp);
	CALL_OUT(c, struct ib_uverbs_ex_modify_qp_resp);
}

/* The core checks the path, which takes queries of the backend. */
static void modify_qp_to_rtr(struct call *c)
{
	call_context(c);
	call_qp(c, IBV_QPT_RC, IBV_QPS_INIT);
	CALL_IN(c, struct ib_uverbs_modify_qp, .qp_handle = c->qp, .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
		.dest = { .dlid = 1, .port_num = 1, .is_global = 1 }, .dest_qp_num = 5, .max_dest_rd_atomic = 1,
		.attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static void post_recv(struct call *c)
{
	struct {
		struct ib_uverbs_post_recv cmd;
		struct ib_uverbs_recv_wr wr[2];
	} post = { .cmd = { .wr_count = 2, .wqe_size = sizeof(post.wr[0]) } };

	call_context(c);
	call_qp(c, IBV_QPT_RC, IBV_QPS_INIT);
	post.cmd.qp_handle = c->qp;
	call_in(c, &post, sizeof(post));
	CALL_OUT(c, struct ib_uverbs_post_recv_resp);
}

/* With inline data, which the core copies from the client. */
static void post_send(struct call *c)
{
	struct {
		struct ib_uverbs_post_send cmd;
		struct ib_uverbs_send_wr wr;
		struct ib_uverbs_sge sge;
	} post = {
		.cmd = { .wr_count = 1, .sge_count = 1, .wqe_size = sizeof(post.wr) },
		.wr = { .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE },
		.sge = { .addr = (uintptr_t)c->data, .length = 8 },
	};

	call_context(c);
	call_qp(c, IBV_QPT_UD, IBV_QPS_RTS);
	call_ah(c);
	post.cmd.qp_handle = c->qp;
	post.wr.wr.ud.ah = c->ah;
	call_in(c, &post, sizeof(post));
	CALL_OUT(c, struct ib_uverbs_post_send_resp);
}

/* So many requests that the core must allocate memory; each names an address handle. */
static void post_many_sends(struct call *c)
{
	struct {
		struct ib_uverbs_post_send cmd;
		struct ib_uverbs_send_wr wr[48];
	} *post = (void *)c->in;

	call_context(c);
	call_qp(c, IBV_QPT_UD, IBV_QPS_RTS);
	call_ah(c);
	_Static_assert(sizeof(*post) <= sizeof(c->in), "room");
	c->in_len = sizeof(*post);
	post->cmd = (struct ib_uverbs_post_send){
		.qp_handle = c->qp,
		.wr_count = UVD_COUNT(post->wr),
		.wqe_size = sizeof(post->wr[0]),
	};
	for (unsigned int i = 0; i < UVD_COUNT(post->wr); i++) {
		post->wr[i].opcode = IBV_WR_SEND;
		post->wr[i].wr.ud.ah = c->ah;
	}
	CALL_OUT(c, struct ib_uverbs_post_send_resp);
}

static const union ibv_gid group = { .raw = { 0xff, 0x12, [15] = 1 } };

static void attach_mcast(struct call *c)
{
	call_context(c);
	call_qp(c, IBV_QPT_UD, IBV_QPS_INIT);
	CALL_IN(c, struct ib_uverbs_attach_mcast, .qp_handle = c->qp, .mlid = 0xc001);
	memcpy(((struct ib_uverbs_attach_mcast *)c->in)->gid, group.raw, sizeof(group));
}

static void detach_mcast(struct call *c)
{
	struct ib_uverbs_attach_mcast attach;

	attach_mcast(c);
	memcpy(&attach, c->in, sizeof(attach));
	WORKS(WRITE_IN(&c->h, ATTACH_MCAST, &attach));
	_Static_assert(sizeof(struct ib_uverbs_attach_mcast) == sizeof(struct ib_uverbs_detach_mcast), "same fields");
}

static const struct call_entry entries[] = {
	{ "IB_USER_VERBS_CMD_CREATE_QP", create_qp },
	{ "IB_USER_VERBS_CMD_CREATE_QP", create_qp_with_srq },
	{ "IB_USER_VERBS_EX_CMD_CREATE_QP", create_qp_ex },
	{ "UVERBS_METHOD_QP_CREATE", qp_create },
	{ "IB_USER_VERBS_CMD_DESTROY_QP", destroy_qp, .destroys = true },
	{ "UVERBS_METHOD_QP_DESTROY", qp_destroy, .destroys = true },
	{ "IB_USER_VERBS_CMD_QUERY_QP", query_qp },
	{ "IB_USER_VERBS_CMD_MODIFY_QP", modify_qp },
	{ "IB_USER_VERBS_CMD_MODIFY_QP", modify_qp_to_rtr },
	{ "IB_USER_VERBS_EX_CMD_MODIFY_QP", modify_qp_ex },
	{ "IB_USER_VERBS_CMD_POST_RECV", post_recv },
	{ "IB_USER_VERBS_CMD_POST_SEND", post_send },
	{ "IB_USER_VERBS_CMD_POST_SEND", post_many_sends },
	{ "IB_USER_VERBS_CMD_ATTACH_MCAST", attach_mcast },
	{ "IB_USER_VERBS_CMD_DETACH_MCAST", detach_mcast, .destroys = true, .forgets = true },
};

CALL_GROUP(calls_qp, entries);
