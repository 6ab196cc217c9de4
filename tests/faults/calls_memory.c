/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Valid calls: protection domains, memory, windows, address handles. */
#include "faults.h"

static void alloc_pd(struct call *c)
{
	call_context(c);
	CALL_IN(c, struct ib_uverbs_alloc_pd, 0);
	CALL_OUT(c, struct ib_uverbs_alloc_pd_resp);
}

static void dealloc_pd(struct call *c)
{
	call_context(c);
	call_pd(c);
	CALL_IN(c, struct ib_uverbs_dealloc_pd, .pd_handle = c->pd);
}

static void pd_destroy(struct call *c)
{
	call_context(c);
	call_pd(c);
	uv_attr_obj(&c->tree, UVERBS_ATTR_DESTROY_PD_HANDLE, c->pd);
}

static void reg_mr(struct call *c)
{
	call_context(c);
	call_pd(c);
	CALL_IN(c, struct ib_uverbs_reg_mr, .start = (uintptr_t)c->data, .length = sizeof(c->data),
		.hca_va = (uintptr_t)c->data, .pd_handle = c->pd, .access_flags = IBV_ACCESS_LOCAL_WRITE);
	CALL_OUT(c, struct ib_uverbs_reg_mr_resp);
}

static void reg_mr_on_demand(struct call *c)
{
	reg_mr(c);
	((struct ib_uverbs_reg_mr *)c->in)->access_flags |= IBV_ACCESS_ON_DEMAND;
}

/* A first region exists, so the client's mm and its charge exist already. */
static void reg_second_mr(struct call *c)
{
	reg_mr(c);
	call_mr(c);
}

static void make_mr(struct call *c)
{
	call_context(c);
	call_pd(c);
	call_mr(c);
}

static void dereg_mr(struct call *c)
{
	make_mr(c);
	CALL_IN(c, struct ib_uverbs_dereg_mr, .mr_handle = c->mr);
}

static void mr_destroy(struct call *c)
{
	make_mr(c);
	uv_attr_obj(&c->tree, UVERBS_ATTR_DESTROY_MR_HANDLE, c->mr);
}

static void rereg_mr(struct call *c)
{
	make_mr(c);
	CALL_IN(c, struct ib_uverbs_rereg_mr, .mr_handle = c->mr, .flags = IBV_REREG_MR_CHANGE_TRANSLATION,
		.start = (uintptr_t)c->data, .length = sizeof(c->data), .hca_va = (uintptr_t)c->data);
	CALL_OUT(c, struct ib_uverbs_rereg_mr_resp);
}

static void rereg_mr_in_place(struct call *c)
{
	make_mr(c);
	CALL_IN(c, struct ib_uverbs_rereg_mr, .mr_handle = c->mr,
		.flags = IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS, .pd_handle = c->pd, .access_flags = 1);
	CALL_OUT(c, struct ib_uverbs_rereg_mr_resp);
}

static void query_mr(struct call *c)
{
	make_mr(c);
	uv_attr_obj(&c->tree, UVERBS_ATTR_QUERY_MR_HANDLE, c->mr);
	uv_attr_out(&c->tree, UVERBS_ATTR_QUERY_MR_RESP_LKEY, &c->out[0], sizeof(uint32_t));
	uv_attr_out(&c->tree, UVERBS_ATTR_QUERY_MR_RESP_RKEY, &c->out[1], sizeof(uint32_t));
	uv_attr_out(&c->tree, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, &c->out[2], sizeof(uint64_t));
	uv_attr_out(&c->tree, UVERBS_ATTR_QUERY_MR_RESP_IOVA, &c->out[3], sizeof(uint64_t));
}

static void alloc_mw(struct call *c)
{
	call_context(c);
	call_pd(c);
	CALL_IN(c, struct ib_uverbs_alloc_mw, .pd_handle = c->pd, .mw_type = IBV_MW_TYPE_1);
	CALL_OUT(c, struct ib_uverbs_alloc_mw_resp);
}

static void make_mw(struct call *c)
{
	struct ib_uverbs_alloc_mw cmd = { .mw_type = IBV_MW_TYPE_1 };
	struct ib_uverbs_alloc_mw_resp resp;

	call_context(c);
	call_pd(c);
	cmd.pd_handle = c->pd;
	WORKS(WRITE(&c->h, ALLOC_MW, &cmd, &resp));
	c->mw = resp.mw_handle;
}

static void dealloc_mw(struct call *c)
{
	make_mw(c);
	CALL_IN(c, struct ib_uverbs_dealloc_mw, .mw_handle = c->mw);
}

static void mw_destroy(struct call *c)
{
	make_mw(c);
	uv_attr_obj(&c->tree, UVERBS_ATTR_DESTROY_MW_HANDLE, c->mw);
}

static void create_ah(struct call *c)
{
	call_context(c);
	call_pd(c);
	CALL_IN(c, struct ib_uverbs_create_ah, .pd_handle = c->pd, .attr = { .dlid = 1, .port_num = 1 });
	CALL_OUT(c, struct ib_uverbs_create_ah_resp);
}

static void create_ah_with_grh(struct call *c)
{
	create_ah(c);
	((struct ib_uverbs_create_ah *)c->in)->attr.is_global = 1;
}

static void make_ah(struct call *c)
{
	call_context(c);
	call_pd(c);
	call_ah(c);
}

static void destroy_ah(struct call *c)
{
	make_ah(c);
	CALL_IN(c, struct ib_uverbs_destroy_ah, .ah_handle = c->ah);
}

static void ah_destroy(struct call *c)
{
	make_ah(c);
	uv_attr_obj(&c->tree, UVERBS_ATTR_DESTROY_AH_HANDLE, c->ah);
}

static const struct call_entry entries[] = {
	{ "IB_USER_VERBS_CMD_ALLOC_PD", alloc_pd },
	{ "IB_USER_VERBS_CMD_DEALLOC_PD", dealloc_pd, .destroys = true },
	{ "UVERBS_METHOD_PD_DESTROY", pd_destroy, .destroys = true },
	{ "IB_USER_VERBS_CMD_REG_MR", reg_mr },
	{ "IB_USER_VERBS_CMD_REG_MR", reg_mr_on_demand, .only = "soft", .tolerant = true },
	{ "IB_USER_VERBS_CMD_REG_MR", reg_second_mr },
	{ "IB_USER_VERBS_CMD_REREG_MR", rereg_mr, .tolerant = true }, /* the old region may stay */
	{ "IB_USER_VERBS_CMD_REREG_MR", rereg_mr_in_place },
	{ "IB_USER_VERBS_CMD_DEREG_MR", dereg_mr, .destroys = true },
	{ "UVERBS_METHOD_MR_DESTROY", mr_destroy, .destroys = true },
	{ "UVERBS_METHOD_QUERY_MR", query_mr },
	{ "IB_USER_VERBS_CMD_ALLOC_MW", alloc_mw },
	{ "IB_USER_VERBS_CMD_DEALLOC_MW", dealloc_mw, .destroys = true },
	{ "UVERBS_METHOD_MW_DESTROY", mw_destroy, .destroys = true },
	{ "IB_USER_VERBS_CMD_CREATE_AH", create_ah, .tolerant = true },
	{ "IB_USER_VERBS_CMD_CREATE_AH", create_ah_with_grh },
	{ "IB_USER_VERBS_CMD_DESTROY_AH", destroy_ah, .destroys = true },
	{ "UVERBS_METHOD_AH_DESTROY", ah_destroy, .destroys = true },
};

CALL_GROUP(calls_memory, entries);
