/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Valid calls: features that few adapters have. */
#include <uverbsd/abi.h>
#include "faults.h"
#include <uverbsd/uapi_later.h>

enum { DMABUF_FD = 500 };

int __wrap_uvd_caller_dmabuf(struct uvd_caller *c, int fd, uint64_t *size);

/* This machine may have no dma-buf: accept any fd number as one. */
int __wrap_uvd_caller_dmabuf(struct uvd_caller *c, int fd, uint64_t *size)
{
	*size = 4096;
	if (fault_here(FAULT_PROC))
		return -PROC_ERRNO;
	return fd == DMABUF_FD ? 0 : -EBADF;
}

/* Makes an object by a method whose first attribute is the new handle. `tree`: all its attributes. */
static uint32_t make(struct call *c, uint16_t object, uint16_t method, struct uv_tree tree)
{
	WORKS(harness_ioctl(&c->h, object, method, &tree));
	return tree.hdr.attrs[0].data;
}

static struct uv_tree new_handle(void)
{
	struct uv_tree tree = {};

	uv_attr_obj(&tree, 0, 0);
	return tree;
}

/* ---- regions ----------------------------------------------------------------------------------------------------- */

static void reg_mr_tree(struct call *c, bool dmabuf)
{
	uint64_t addr = (uintptr_t)c->data, length = sizeof(c->data), zero = 0;
	uint32_t access = IBV_ACCESS_LOCAL_WRITE;

	call_context(c);
	call_pd(c);
	uv_attr_obj(&c->tree, UVERBS_ATTR_REG_MR_HANDLE, 0);
	uv_attr_obj(&c->tree, UVERBS_ATTR_REG_MR_PD_HANDLE, c->pd);
	uv_attr_in(&c->tree, UVERBS_ATTR_REG_MR_IOVA, &addr, sizeof(addr));
	uv_attr_in(&c->tree, UVERBS_ATTR_REG_MR_LENGTH, &length, sizeof(length));
	uv_attr_in(&c->tree, UVERBS_ATTR_REG_MR_ACCESS_FLAGS, &access, sizeof(access));
	uv_attr_out(&c->tree, UVERBS_ATTR_REG_MR_RESP_LKEY, &c->out[0], sizeof(uint32_t));
	uv_attr_out(&c->tree, UVERBS_ATTR_REG_MR_RESP_RKEY, &c->out[1], sizeof(uint32_t));
	if (dmabuf) {
		uv_attr_obj(&c->tree, UVERBS_ATTR_REG_MR_FD, DMABUF_FD);
		uv_attr_in(&c->tree, UVERBS_ATTR_REG_MR_FD_OFFSET, &zero, sizeof(zero));
	} else {
		uv_attr_in(&c->tree, UVERBS_ATTR_REG_MR_ADDR, &addr, sizeof(addr));
	}
}

static void reg_mr(struct call *c)
{
	reg_mr_tree(c, false);
}

static void reg_mr_of_dmabuf(struct call *c)
{
	reg_mr_tree(c, true);
}

static void reg_mr_with_dmah(struct call *c)
{
	reg_mr_tree(c, false);
	uv_attr_obj(&c->tree, UVERBS_ATTR_REG_MR_DMA_HANDLE,
		    make(c, UVERBS_OBJECT_DMAH, UVERBS_METHOD_DMAH_ALLOC, new_handle()));
}

static void reg_dmabuf_mr(struct call *c)
{
	uint64_t zero = 0, length = sizeof(c->data);
	uint32_t fd = DMABUF_FD;

	call_context(c);
	call_pd(c);
	uv_attr_obj(&c->tree, UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0);
	uv_attr_obj(&c->tree, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, c->pd);
	uv_attr_in(&c->tree, UVERBS_ATTR_REG_DMABUF_MR_OFFSET, &zero, sizeof(zero));
	uv_attr_in(&c->tree, UVERBS_ATTR_REG_DMABUF_MR_LENGTH, &length, sizeof(length));
	uv_attr_in(&c->tree, UVERBS_ATTR_REG_DMABUF_MR_IOVA, &zero, sizeof(zero));
	uv_attr_in(&c->tree, UVERBS_ATTR_REG_DMABUF_MR_FD, &fd, sizeof(fd));
	uv_attr_out(&c->tree, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, &c->out[0], sizeof(uint32_t));
	uv_attr_out(&c->tree, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, &c->out[1], sizeof(uint32_t));
}

static void alloc_dm(struct call *c)
{
	uint64_t length = 4096;
	uint32_t alignment = 3;

	call_context(c);
	uv_attr_obj(&c->tree, UVERBS_ATTR_ALLOC_DM_HANDLE, 0);
	uv_attr_in(&c->tree, UVERBS_ATTR_ALLOC_DM_LENGTH, &length, sizeof(length));
	uv_attr_in(&c->tree, UVERBS_ATTR_ALLOC_DM_ALIGNMENT, &alignment, sizeof(alignment));
}

static uint32_t make_dm(struct call *c)
{
	uint32_t dm;

	alloc_dm(c);
	dm = make(c, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, c->tree);
	memset(&c->tree, 0, sizeof(c->tree));
	return dm;
}

static void free_dm(struct call *c)
{
	uv_attr_obj(&c->tree, UVERBS_ATTR_FREE_DM_HANDLE, make_dm(c));
}

static void reg_dm_mr(struct call *c)
{
	uint64_t offset = 8, length = 16;
	uint32_t access = IBV_ACCESS_ZERO_BASED, dm = make_dm(c);

	call_pd(c);
	uv_attr_obj(&c->tree, UVERBS_ATTR_REG_DM_MR_HANDLE, 0);
	uv_attr_in(&c->tree, UVERBS_ATTR_REG_DM_MR_OFFSET, &offset, sizeof(offset));
	uv_attr_in(&c->tree, UVERBS_ATTR_REG_DM_MR_LENGTH, &length, sizeof(length));
	uv_attr_obj(&c->tree, UVERBS_ATTR_REG_DM_MR_PD_HANDLE, c->pd);
	uv_attr_in(&c->tree, UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, &access, sizeof(access));
	uv_attr_obj(&c->tree, UVERBS_ATTR_REG_DM_MR_DM_HANDLE, dm);
	uv_attr_out(&c->tree, UVERBS_ATTR_REG_DM_MR_RESP_LKEY, &c->out[0], sizeof(uint32_t));
	uv_attr_out(&c->tree, UVERBS_ATTR_REG_DM_MR_RESP_RKEY, &c->out[1], sizeof(uint32_t));
}

static void advise_mr(struct call *c)
{
	struct ib_uverbs_reg_mr_resp resp = {};
	struct ib_uverbs_sge *sge = (struct ib_uverbs_sge *)c->out;
	bool odp;

	call_context(c);
	call_pd(c);
	odp = !harness_reg_mr(&c->h, c->pd, c->data, sizeof(c->data), IBV_ACCESS_ON_DEMAND, &resp);
	*sge = (struct ib_uverbs_sge){ .addr = (uintptr_t)c->data, .length = 8, .lkey = odp ? resp.lkey : 0 };
	uv_attr_obj(&c->tree, UVERBS_ATTR_ADVISE_MR_PD_HANDLE, c->pd);
	uv_attr_const(&c->tree, UVERBS_ATTR_ADVISE_MR_ADVICE, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH);
	uv_attr_const(&c->tree, UVERBS_ATTR_ADVISE_MR_FLAGS, IB_UVERBS_ADVISE_MR_FLAG_FLUSH);
	uv_attr_in(&c->tree, UVERBS_ATTR_ADVISE_MR_SGE_LIST, sge, sizeof(*sge));
}

/* ---- DMA handles, dma-bufs --------------------------------------------------------------------------------------- */

static void alloc_dmah(struct call *c)
{
	uint32_t cpu = 0;
	uint8_t ph = 1;
	cpu_set_t mine;

	while (!sched_getaffinity(0, sizeof(mine), &mine) && !CPU_ISSET(cpu, &mine))
		cpu++;
	call_context(c);
	uv_attr_obj(&c->tree, UVERBS_ATTR_ALLOC_DMAH_HANDLE, 0);
	uv_attr_in(&c->tree, UVERBS_ATTR_ALLOC_DMAH_CPU_ID, &cpu, sizeof(cpu));
	uv_attr(&c->tree, UVERBS_ATTR_ALLOC_DMAH_TPH_MEM_TYPE, 0, 0)->attr_data.enum_data.elem_id = 1;
	uv_attr_in(&c->tree, UVERBS_ATTR_ALLOC_DMAH_PH, &ph, sizeof(ph));
}

static void free_dmah(struct call *c)
{
	call_context(c);
	uv_attr_obj(&c->tree, UVERBS_ATTR_FREE_DMA_HANDLE,
		    make(c, UVERBS_OBJECT_DMAH, UVERBS_METHOD_DMAH_ALLOC, new_handle()));
}

static void alloc_dmabuf(struct call *c)
{
	uint64_t pgoff = 0;

	call_context(c);
	uv_attr_obj(&c->tree, UVERBS_ATTR_ALLOC_DMABUF_HANDLE, 0);
	uv_attr_in(&c->tree, UVERBS_ATTR_ALLOC_DMABUF_PGOFF, &pgoff, sizeof(pgoff));
}

/* ---- counters ---------------------------------------------------------------------------------------------------- */

static void new_object(struct call *c)
{
	call_context(c);
	uv_attr_obj(&c->tree, 0, 0);
}

static uint32_t make_counters(struct call *c)
{
	call_context(c);
	return make(c, UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE, new_handle());
}

static void destroy_counters(struct call *c)
{
	uv_attr_obj(&c->tree, UVERBS_ATTR_DESTROY_COUNTERS_HANDLE, make_counters(c));
}

static void read_counters(struct call *c)
{
	uv_attr_obj(&c->tree, UVERBS_ATTR_READ_COUNTERS_HANDLE, make_counters(c));
	uv_attr_out(&c->tree, UVERBS_ATTR_READ_COUNTERS_BUFF, c->out, 2 * sizeof(uint64_t));
}

/* A flow uses the counters. */
static void read_counters_in_use(struct call *c)
{
	struct {
		struct ib_uverbs_create_flow cmd;
		struct ib_uverbs_flow_spec_eth eth;
		struct ib_uverbs_flow_spec_action_count count;
	} flow = {
		.cmd.flow_attr = { .size = sizeof(flow.eth) + sizeof(flow.count), .num_of_specs = 2, .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(flow.eth) },
		.count = { .type = IBV_FLOW_SPEC_ACTION_COUNT, .size = sizeof(flow.count) },
	};
	struct ib_uverbs_create_flow_resp resp;

	read_counters(c);
	call_qp(c, IBV_QPT_UD, IBV_QPS_RESET);
	flow.cmd.qp_handle = c->qp;
	flow.count.handle = c->tree.hdr.attrs[0].data;
	WORKS(harness_write_ex(&c->h, IB_USER_VERBS_EX_CMD_CREATE_FLOW, &flow, sizeof(flow), &resp, sizeof(resp)));
}

static void bind_counters(struct call *c)
{
	uv_attr_obj(&c->tree, UVERBSD_ATTR_COUNTERS_BIND_QP_HANDLE, make_counters(c));
	call_qp(c, IBV_QPT_RC, IBV_QPS_RESET);
	uv_attr_obj(&c->tree, UVERBSD_ATTR_COUNTERS_BIND_QP_QP_HANDLE, c->qp);
}

static uint32_t make_cntr(struct call *c)
{
	call_context(c);
	return make(c, UVERBS_OBJECT_COMP_CNTR, UVERBS_METHOD_COMP_CNTR_CREATE, new_handle());
}

static void destroy_cntr(struct call *c)
{
	uv_attr_obj(&c->tree, UVERBS_ATTR_DESTROY_COMP_CNTR_HANDLE, make_cntr(c));
}

static void modify_cntr(struct call *c)
{
	uint64_t value = 7;

	uv_attr_obj(&c->tree, UVERBS_ATTR_MODIFY_COMP_CNTR_HANDLE, make_cntr(c));
	uv_attr_const(&c->tree, UVERBS_ATTR_MODIFY_COMP_CNTR_ENTRY, 0);
	uv_attr_const(&c->tree, UVERBS_ATTR_MODIFY_COMP_CNTR_OP, 0);
	uv_attr_in(&c->tree, UVERBS_ATTR_MODIFY_COMP_CNTR_VALUE, &value, sizeof(value));
}

static void read_cntr(struct call *c)
{
	uv_attr_obj(&c->tree, UVERBS_ATTR_READ_COMP_CNTR_HANDLE, make_cntr(c));
	uv_attr_const(&c->tree, UVERBS_ATTR_READ_COMP_CNTR_ENTRY, 0);
	uv_attr_out(&c->tree, UVERBS_ATTR_READ_COMP_CNTR_RESP_VALUE, c->out, sizeof(uint64_t));
}

static void attach_cntr(struct call *c)
{
	uint32_t cntr = make_cntr(c), mask = 3;

	call_qp(c, IBV_QPT_RC, IBV_QPS_RESET);
	uv_attr_obj(&c->tree, UVERBS_ATTR_QP_ATTACH_COMP_CNTR_HANDLE, c->qp);
	uv_attr_obj(&c->tree, UVERBS_ATTR_QP_ATTACH_COMP_CNTR_CNTR_HANDLE, cntr);
	uv_attr_in(&c->tree, UVERBS_ATTR_QP_ATTACH_COMP_CNTR_OP_MASK, &mask, sizeof(mask));
}

/* ---- queries and queues ------------------------------------------------------------------------------------------ */

static void query_caps(struct call *c)
{
	call_context(c);
	uv_attr_out(&c->tree, UVERBS_ATTR_QUERY_COMP_CNTR_CAPS_MAX_COUNTERS, &c->out[0], sizeof(uint32_t));
	uv_attr_out(&c->tree, UVERBS_ATTR_QUERY_COMP_CNTR_CAPS_MAX_VALUE, &c->out[1], sizeof(uint64_t));
	uv_attr_out(&c->tree, UVERBS_ATTR_QUERY_COMP_CNTR_CAPS_SUPPORTED_QP_ATTACH_OPS, &c->out[2], sizeof(uint32_t));
}

static void query_port_speed(struct call *c)
{
	call_context(c);
	uv_attr_const(&c->tree, UVERBS_ATTR_QUERY_PORT_SPEED_PORT_NUM, 1);
	uv_attr_out(&c->tree, UVERBS_ATTR_QUERY_PORT_SPEED_RESP, c->out, sizeof(uint64_t));
}

static void modify_cq(struct call *c)
{
	call_context(c);
	call_cq(c);
	CALL_IN(c, struct ib_uverbs_ex_modify_cq, .cq_handle = c->cq, .attr_mask = IBV_CQ_ATTR_MODERATE);
}

static void cq_create_in(struct call *c, bool dmabuf)
{
	uint64_t addr = (uintptr_t)c->data, length = sizeof(c->data), zero = 0;
	uint32_t cqe = 16, vector = 0;

	call_context(c);
	uv_attr_obj(&c->tree, UVERBS_ATTR_CREATE_CQ_HANDLE, 0);
	uv_attr_in(&c->tree, UVERBS_ATTR_CREATE_CQ_CQE, &cqe, sizeof(cqe));
	uv_attr_in(&c->tree, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, &zero, sizeof(zero));
	uv_attr_in(&c->tree, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, &vector, sizeof(vector));
	uv_attr_out(&c->tree, UVERBS_ATTR_CREATE_CQ_RESP_CQE, c->out, sizeof(uint32_t));
	uv_attr_in(&c->tree, UVERBS_ATTR_CREATE_CQ_BUFFER_LENGTH, &length, sizeof(length));
	if (dmabuf) {
		uv_attr_obj(&c->tree, UVERBS_ATTR_CREATE_CQ_BUFFER_FD, DMABUF_FD);
		uv_attr_in(&c->tree, UVERBS_ATTR_CREATE_CQ_BUFFER_OFFSET, &zero, sizeof(zero));
	} else {
		uv_attr_in(&c->tree, UVERBS_ATTR_CREATE_CQ_BUFFER_VA, &addr, sizeof(addr));
	}
}

static void cq_create_in_memory(struct call *c)
{
	cq_create_in(c, false);
}

static void cq_create_in_dmabuf(struct call *c)
{
	cq_create_in(c, true);
}

static const struct call_entry entries[] = {
	{ "UVERBS_METHOD_REG_MR", reg_mr },
	{ "UVERBS_METHOD_REG_MR", reg_mr_with_dmah, .only = "null" },
	{ "UVERBS_METHOD_REG_MR", reg_mr_of_dmabuf, .only = "null" },
	{ "UVERBS_METHOD_REG_MR", reg_mr_of_dmabuf, .only = "soft", .result = -EOPNOTSUPP },
	{ "UVERBS_METHOD_REG_DMABUF_MR", reg_dmabuf_mr, .only = "null" },
	{ "UVERBS_METHOD_REG_DMABUF_MR", reg_dmabuf_mr, .only = "soft", .result = -EOPNOTSUPP },
	{ "UVERBS_METHOD_DM_MR_REG", reg_dm_mr },
	{ "UVERBS_METHOD_ADVISE_MR", advise_mr },
	{ "UVERBS_METHOD_DM_ALLOC", alloc_dm },
	{ "UVERBS_METHOD_DM_FREE", free_dm, .destroys = true },
	{ "UVERBS_METHOD_DMAH_ALLOC", alloc_dmah },
	{ "UVERBS_METHOD_DMAH_FREE", free_dmah, .destroys = true },
	{ "UVERBS_METHOD_DMABUF_ALLOC", alloc_dmabuf, .result = -EINVAL },
	{ "UVERBS_METHOD_COUNTERS_CREATE", new_object },
	{ "UVERBS_METHOD_COUNTERS_DESTROY", destroy_counters, .destroys = true },
	{ "UVERBS_METHOD_COUNTERS_READ", read_counters, .result = -EINVAL },
	{ "UVERBS_METHOD_COUNTERS_READ", read_counters_in_use, .only = "null" },
	{ "UVERBSD_METHOD_COUNTERS_BIND_QP", bind_counters },
	{ "UVERBS_METHOD_COMP_CNTR_CREATE", new_object },
	{ "UVERBS_METHOD_COMP_CNTR_DESTROY", destroy_cntr, .destroys = true },
	{ "UVERBS_METHOD_COMP_CNTR_MODIFY", modify_cntr },
	{ "UVERBS_METHOD_COMP_CNTR_READ", read_cntr },
	{ "UVERBS_METHOD_QP_ATTACH_COMP_CNTR", attach_cntr },
	{ "UVERBS_METHOD_QUERY_COMP_CNTR_CAPS", query_caps },
	{ "UVERBS_METHOD_QUERY_PORT_SPEED", query_port_speed },
	{ "IB_USER_VERBS_EX_CMD_MODIFY_CQ", modify_cq },
	{ "UVERBS_METHOD_CQ_CREATE", cq_create_in_memory, .only = "null" },
	{ "UVERBS_METHOD_CQ_CREATE", cq_create_in_dmabuf, .only = "null" },
};

CALL_GROUP(calls_rare, entries);
