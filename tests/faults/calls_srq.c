/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Valid calls: shared receive queues. */
#include "faults.h"

static void create_srq(struct call *c)
{
	call_context(c);
	call_pd(c);
	CALL_IN(c, struct ib_uverbs_create_srq, .user_handle = 1, .pd_handle = c->pd, .max_wr = 8, .max_sge = 2);
	CALL_OUT(c, struct ib_uverbs_create_srq_resp);
}

static void create_xsrq(struct call *c)
{
	call_context(c);
	call_pd(c);
	CALL_IN(c, struct ib_uverbs_create_xsrq, .user_handle = 1, .srq_type = IB_UVERBS_SRQT_BASIC, .pd_handle = c->pd,
		.max_wr = 8, .max_sge = 2);
	CALL_OUT(c, struct ib_uverbs_create_srq_resp);
}

static void srq_create(struct call *c)
{
	uint32_t max_wr = 8, max_sge = 2, limit = 0;
	uint64_t user_handle = 1;

	call_context(c);
	call_pd(c);
	uv_attr_obj(&c->tree, UVERBS_ATTR_CREATE_SRQ_HANDLE, 0);
	uv_attr_obj(&c->tree, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, c->pd);
	uv_attr_const(&c->tree, UVERBS_ATTR_CREATE_SRQ_TYPE, IB_UVERBS_SRQT_BASIC);
	uv_attr_in(&c->tree, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, &user_handle, sizeof(user_handle));
	uv_attr_in(&c->tree, UVERBS_ATTR_CREATE_SRQ_MAX_WR, &max_wr, sizeof(max_wr));
	uv_attr_in(&c->tree, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, &max_sge, sizeof(max_sge));
	uv_attr_in(&c->tree, UVERBS_ATTR_CREATE_SRQ_LIMIT, &limit, sizeof(limit));
	uv_attr_obj(&c->tree, UVERBS_ATTR_CREATE_SRQ_EVENT_FD, c->async_fd);
	uv_attr_out(&c->tree, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &c->out[0], sizeof(uint32_t));
	uv_attr_out(&c->tree, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &c->out[1], sizeof(uint32_t));
	uv_attr_out(&c->tree, UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, &c->out[2], sizeof(uint32_t));
}

static void make_srq(struct call *c)
{
	call_context(c);
	call_pd(c);
	call_srq(c);
}

static void destroy_srq(struct call *c)
{
	make_srq(c);
	CALL_IN(c, struct ib_uverbs_destroy_srq, .srq_handle = c->srq);
	CALL_OUT(c, struct ib_uverbs_destroy_srq_resp);
}

static void srq_destroy(struct call *c)
{
	make_srq(c);
	uv_attr_obj(&c->tree, UVERBS_ATTR_DESTROY_SRQ_HANDLE, c->srq);
	uv_attr_out(&c->tree, UVERBS_ATTR_DESTROY_SRQ_RESP, c->out, sizeof(struct ib_uverbs_destroy_srq_resp));
}

static void modify_srq(struct call *c)
{
	make_srq(c);
	CALL_IN(c, struct ib_uverbs_modify_srq, .srq_handle = c->srq, .attr_mask = IBV_SRQ_LIMIT, .srq_limit = 1);
}

static void query_srq(struct call *c)
{
	make_srq(c);
	CALL_IN(c, struct ib_uverbs_query_srq, .srq_handle = c->srq);
	CALL_OUT(c, struct ib_uverbs_query_srq_resp);
}

static void post_srq_recv(struct call *c)
{
	struct {
		struct ib_uverbs_post_srq_recv cmd;
		struct ib_uverbs_recv_wr wr;
	} post = { { .wr_count = 1, .wqe_size = sizeof(post.wr) } };

	make_srq(c);
	post.cmd.srq_handle = c->srq;
	call_in(c, &post, sizeof(post));
	CALL_OUT(c, struct ib_uverbs_post_srq_recv_resp);
}

static const struct call_entry entries[] = {
	{ "IB_USER_VERBS_CMD_CREATE_SRQ", create_srq },
	{ "IB_USER_VERBS_CMD_CREATE_XSRQ", create_xsrq },
	{ "UVERBS_METHOD_SRQ_CREATE", srq_create },
	{ "IB_USER_VERBS_CMD_DESTROY_SRQ", destroy_srq, .destroys = true },
	{ "UVERBS_METHOD_SRQ_DESTROY", srq_destroy, .destroys = true },
	{ "IB_USER_VERBS_CMD_MODIFY_SRQ", modify_srq },
	{ "IB_USER_VERBS_CMD_QUERY_SRQ", query_srq },
	{ "IB_USER_VERBS_CMD_POST_SRQ_RECV", post_srq_recv },
};

CALL_GROUP(calls_srq, entries);
