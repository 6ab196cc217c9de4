/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Valid calls: work queues, RWQ indirection tables, flows. Their handles are kept in unused members of struct call. */
#include "faults.h"

static void create_wq_cmd(struct call *c)
{
	CALL_IN(c, struct ib_uverbs_ex_create_wq, .user_handle = 1, .wq_type = IBV_WQT_RQ, .pd_handle = c->pd,
		.cq_handle = c->cq, .max_wr = 8, .max_sge = 2);
	CALL_OUT(c, struct ib_uverbs_ex_create_wq_resp);
}

static void create_wq(struct call *c)
{
	call_context(c);
	call_pd(c);
	call_cq(c);
	create_wq_cmd(c);
}

static void wq_create(struct call *c)
{
	uint32_t max_wr = 8, max_sge = 2;
	uint64_t user_handle = 1, flags = 0;

	call_context(c);
	call_pd(c);
	call_cq(c);
	uv_attr_obj(&c->tree, UVERBS_ATTR_CREATE_WQ_HANDLE, 0);
	uv_attr_obj(&c->tree, UVERBS_ATTR_CREATE_WQ_PD_HANDLE, c->pd);
	uv_attr_obj(&c->tree, UVERBS_ATTR_CREATE_WQ_CQ_HANDLE, c->cq);
	uv_attr_const(&c->tree, UVERBS_ATTR_CREATE_WQ_TYPE, IBV_WQT_RQ);
	uv_attr_in(&c->tree, UVERBS_ATTR_CREATE_WQ_USER_HANDLE, &user_handle, sizeof(user_handle));
	uv_attr_in(&c->tree, UVERBS_ATTR_CREATE_WQ_MAX_WR, &max_wr, sizeof(max_wr));
	uv_attr_in(&c->tree, UVERBS_ATTR_CREATE_WQ_MAX_SGE, &max_sge, sizeof(max_sge));
	uv_attr_in(&c->tree, UVERBS_ATTR_CREATE_WQ_FLAGS, &flags, sizeof(flags));
	uv_attr_obj(&c->tree, UVERBS_ATTR_CREATE_WQ_EVENT_FD, c->async_fd);
	uv_attr_out(&c->tree, UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, &c->out[0], sizeof(uint32_t));
	uv_attr_out(&c->tree, UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE, &c->out[1], sizeof(uint32_t));
	uv_attr_out(&c->tree, UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, &c->out[2], sizeof(uint32_t));
}

/* ---- objects that calls need ------------------------------------------------------------------------------------- */

static uint32_t make_wq(struct call *c)
{
	struct ib_uverbs_ex_create_wq_resp resp;

	create_wq(c);
	WORKS(harness_write_ex(&c->h, IB_USER_VERBS_EX_CMD_CREATE_WQ, c->in, c->in_len, &resp, sizeof(resp)));
	return resp.wq_handle;
}

/* A table of two work queues. */
static void create_table_cmd(struct call *c)
{
	struct {
		struct ib_uverbs_ex_create_rwq_ind_table cmd;
		uint32_t handles[2];
	} table = { .cmd.log_ind_tbl_size = 1 };

	table.handles[0] = table.handles[1] = make_wq(c);
	call_in(c, &table, sizeof(table));
	CALL_OUT(c, struct ib_uverbs_ex_create_rwq_ind_table_resp);
}

static uint32_t make_table(struct call *c)
{
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp;

	create_table_cmd(c);
	WORKS(harness_write_ex(&c->h, IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL, c->in, c->in_len, &resp, sizeof(resp)));
	return resp.ind_tbl_handle;
}

/* No write command makes a flow action. */
static uint32_t make_flow_action(struct call *c)
{
	struct uvd_uobject *uobj;

	WORKS(uvd_uobject_begin(c->h.file, &uvd_object_flow_action, &uobj));
	uobj->object = calloc(1, sizeof(struct uvd_flow_action));
	uvd_uobject_commit(uobj);
	return uobj->id;
}

static void create_flow(struct call *c)
{
	struct {
		struct ib_uverbs_create_flow cmd;
		struct ib_uverbs_flow_spec_eth eth;
		struct ib_uverbs_flow_spec_action_handle action;
	} flow = {
		.cmd.flow_attr = { .size = sizeof(flow.eth) + sizeof(flow.action), .num_of_specs = 2, .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(flow.eth) },
		.action = { .type = IBV_FLOW_SPEC_ACTION_HANDLE, .size = sizeof(flow.action) },
	};

	call_context(c);
	call_qp(c, IBV_QPT_UD, IBV_QPS_RESET);
	flow.cmd.qp_handle = c->qp;
	flow.action.handle = make_flow_action(c);
	call_in(c, &flow, sizeof(flow));
	CALL_OUT(c, struct ib_uverbs_create_flow_resp);
}

static uint32_t make_flow(struct call *c)
{
	struct ib_uverbs_create_flow_resp resp;

	create_flow(c);
	WORKS(harness_write_ex(&c->h, IB_USER_VERBS_EX_CMD_CREATE_FLOW, c->in, c->in_len, &resp, sizeof(resp)));
	c->out_len = 0;
	return resp.flow_handle;
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

static void modify_wq(struct call *c)
{
	uint32_t wq = make_wq(c);

	CALL_IN(c, struct ib_uverbs_ex_modify_wq, .wq_handle = wq, .attr_mask = IBV_WQ_ATTR_STATE,
		.wq_state = IBV_WQS_RDY);
	c->out_len = 0;
}

static void destroy_wq(struct call *c)
{
	uint32_t wq = make_wq(c);

	CALL_IN(c, struct ib_uverbs_ex_destroy_wq, .wq_handle = wq);
	CALL_OUT(c, struct ib_uverbs_ex_destroy_wq_resp);
}

static void wq_destroy(struct call *c)
{
	uv_attr_obj(&c->tree, UVERBS_ATTR_DESTROY_WQ_HANDLE, make_wq(c));
	uv_attr_out(&c->tree, UVERBS_ATTR_DESTROY_WQ_RESP, c->out, sizeof(uint32_t));
}

static void destroy_table(struct call *c)
{
	uint32_t table = make_table(c);

	CALL_IN(c, struct ib_uverbs_ex_destroy_rwq_ind_table, .ind_tbl_handle = table);
	c->out_len = 0;
}

static void table_destroy(struct call *c)
{
	uv_attr_obj(&c->tree, UVERBS_ATTR_DESTROY_RWQ_IND_TBL_HANDLE, make_table(c));
}

static void destroy_flow(struct call *c)
{
	uint32_t flow = make_flow(c);

	CALL_IN(c, struct ib_uverbs_destroy_flow, .flow_handle = flow);
}

static void flow_destroy(struct call *c)
{
	uv_attr_obj(&c->tree, UVERBS_ATTR_DESTROY_FLOW_HANDLE, make_flow(c));
}

static void flow_action_destroy(struct call *c)
{
	call_context(c);
	uv_attr_obj(&c->tree, UVERBS_ATTR_DESTROY_FLOW_ACTION_HANDLE, make_flow_action(c));
}

static const struct call_entry entries[] = {
	{ "IB_USER_VERBS_EX_CMD_CREATE_WQ", create_wq },
	{ "UVERBS_METHOD_WQ_CREATE", wq_create },
	{ "IB_USER_VERBS_EX_CMD_MODIFY_WQ", modify_wq },
	{ "IB_USER_VERBS_EX_CMD_DESTROY_WQ", destroy_wq, .destroys = true },
	{ "UVERBS_METHOD_WQ_DESTROY", wq_destroy, .destroys = true },
	{ "IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL", create_table_cmd },
	{ "IB_USER_VERBS_EX_CMD_DESTROY_RWQ_IND_TBL", destroy_table },
	{ "UVERBS_METHOD_RWQ_IND_TBL_DESTROY", table_destroy },
	{ "IB_USER_VERBS_EX_CMD_CREATE_FLOW", create_flow },
	{ "IB_USER_VERBS_EX_CMD_DESTROY_FLOW", destroy_flow },
	{ "UVERBS_METHOD_FLOW_DESTROY", flow_destroy },
	{ "UVERBS_METHOD_FLOW_ACTION_DESTROY", flow_action_destroy },
};

CALL_GROUP(calls_wq, entries);
