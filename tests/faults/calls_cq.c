/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Valid calls: completion queues. */
#include "faults.h"

static void create_cq(struct call *c)
{
	call_context(c);
	CALL_IN(c, struct ib_uverbs_create_cq, .user_handle = 1, .cqe = 16, .comp_channel = -1);
	CALL_OUT(c, struct ib_uverbs_create_cq_resp);
}

static void create_cq_with_channel(struct call *c)
{
	create_cq(c);
	call_channel(c);
	((struct ib_uverbs_create_cq *)c->in)->comp_channel = c->channel_fd;
}

static void create_cq_ex(struct call *c)
{
	call_context(c);
	call_channel(c);
	CALL_IN(c, struct ib_uverbs_ex_create_cq, .user_handle = 1, .cqe = 16, .comp_channel = c->channel_fd);
	CALL_OUT(c, struct ib_uverbs_ex_create_cq_resp);
}

static void cq_create(struct call *c)
{
	uint64_t user_handle = 1;
	uint32_t cqe = 16, vector = 0;

	call_context(c);
	call_channel(c);
	uv_attr_obj(&c->tree, UVERBS_ATTR_CREATE_CQ_HANDLE, 0);
	uv_attr_in(&c->tree, UVERBS_ATTR_CREATE_CQ_CQE, &cqe, sizeof(cqe));
	uv_attr_in(&c->tree, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, &user_handle, sizeof(user_handle));
	uv_attr_obj(&c->tree, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, c->channel_fd);
	uv_attr_in(&c->tree, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, &vector, sizeof(vector));
	uv_attr_out(&c->tree, UVERBS_ATTR_CREATE_CQ_RESP_CQE, c->out, sizeof(uint32_t));
	uv_attr_obj(&c->tree, UVERBS_ATTR_CREATE_CQ_EVENT_FD, c->async_fd);
}

static void make_cq(struct call *c)
{
	call_context(c);
	call_channel(c);
	call_cq(c);
}

static void destroy_cq(struct call *c)
{
	make_cq(c);
	CALL_IN(c, struct ib_uverbs_destroy_cq, .cq_handle = c->cq);
	CALL_OUT(c, struct ib_uverbs_destroy_cq_resp);
}

static void cq_destroy(struct call *c)
{
	make_cq(c);
	uv_attr_obj(&c->tree, UVERBS_ATTR_DESTROY_CQ_HANDLE, c->cq);
	uv_attr_out(&c->tree, UVERBS_ATTR_DESTROY_CQ_RESP, c->out, sizeof(struct ib_uverbs_destroy_cq_resp));
}

static void resize_cq(struct call *c)
{
	make_cq(c);
	CALL_IN(c, struct ib_uverbs_resize_cq, .cq_handle = c->cq, .cqe = 32);
	CALL_OUT(c, struct ib_uverbs_resize_cq_resp);
}

static void poll_cq(struct call *c)
{
	make_cq(c);
	CALL_IN(c, struct ib_uverbs_poll_cq, .cq_handle = c->cq, .ne = 4);
	c->out_len = sizeof(struct ib_uverbs_poll_cq_resp) + 4 * sizeof(struct ib_uverbs_wc);
}

static void req_notify_cq(struct call *c)
{
	make_cq(c);
	CALL_IN(c, struct ib_uverbs_req_notify_cq, .cq_handle = c->cq);
}

static const struct call_entry entries[] = {
	{ "IB_USER_VERBS_CMD_CREATE_CQ", create_cq },
	{ "IB_USER_VERBS_CMD_CREATE_CQ", create_cq_with_channel },
	{ "IB_USER_VERBS_EX_CMD_CREATE_CQ", create_cq_ex },
	{ "UVERBS_METHOD_CQ_CREATE", cq_create },
	{ "IB_USER_VERBS_CMD_DESTROY_CQ", destroy_cq, .destroys = true },
	{ "UVERBS_METHOD_CQ_DESTROY", cq_destroy, .destroys = true },
	{ "IB_USER_VERBS_CMD_RESIZE_CQ", resize_cq },
	{ "IB_USER_VERBS_CMD_POLL_CQ", poll_cq },
	{ "IB_USER_VERBS_CMD_REQ_NOTIFY_CQ", req_notify_cq, .tolerant = true },
};

CALL_GROUP(calls_cq, entries);
