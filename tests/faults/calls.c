/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Makes the objects that calls need, by write(). */
#include "faults.h"

static int keep_granted(struct call *c)
{
	int fd = c->h.granted;

	c->h.granted = -1;
	return fd;
}

void call_context(struct call *c)
{
	struct ib_uverbs_get_context_resp resp;

	WORKS(harness_get_context(&c->h, &resp));
	c->async_fd = keep_granted(c);
}

void call_pd(struct call *c)
{
	WORKS(harness_alloc_pd(&c->h, &c->pd));
}

void call_cq(struct call *c)
{
	WORKS(harness_create_cq(&c->h, 1, 16, c->channel_fd, &c->cq));
}

void call_channel(struct call *c)
{
	struct ib_uverbs_create_comp_channel_resp resp;
	struct ib_uverbs_create_comp_channel cmd = {};

	WORKS(WRITE(&c->h, CREATE_COMP_CHANNEL, &cmd, &resp));
	c->channel_fd = keep_granted(c);
}

void call_srq(struct call *c)
{
	struct ib_uverbs_create_srq cmd = { .pd_handle = c->pd, .max_wr = 8, .max_sge = 2 };
	struct ib_uverbs_create_srq_resp resp;

	WORKS(WRITE(&c->h, CREATE_SRQ, &cmd, &resp));
	c->srq = resp.srq_handle;
}

static void modify(struct call *c, enum ibv_qp_state state, uint32_t mask)
{
	struct ib_uverbs_modify_qp cmd = {
		.attr_mask = IBV_QP_STATE | mask,
		.qp_handle = c->qp,
		.qp_state = state,
		.port_num = 1,
		.qkey = 1,
	};

	WORKS(WRITE_IN(&c->h, MODIFY_QP, &cmd));
}

void call_qp(struct call *c, uint8_t type, enum ibv_qp_state state)
{
	struct ib_uverbs_create_qp cmd = {
		.user_handle = 1,
		.max_send_wr = 128,
		.max_recv_wr = 64,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.max_inline_data = 64,
		.qp_type = type,
	};
	struct ib_uverbs_create_qp_resp resp;

	call_pd(c);
	call_cq(c);
	cmd.pd_handle = c->pd;
	cmd.send_cq_handle = cmd.recv_cq_handle = c->cq;
	WORKS(WRITE(&c->h, CREATE_QP, &cmd, &resp));
	c->qp = resp.qp_handle;
	if (state == IBV_QPS_RESET)
		return;
	modify(c, IBV_QPS_INIT,
	       IBV_QP_PORT | IBV_QP_PKEY_INDEX | (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
	if (state == IBV_QPS_INIT)
		return;
	modify(c, IBV_QPS_RTR, 0);
	modify(c, IBV_QPS_RTS, IBV_QP_SQ_PSN);
}

void call_ah(struct call *c)
{
	struct ib_uverbs_create_ah cmd = { .pd_handle = c->pd, .attr = { .dlid = 1, .port_num = 1 } };
	struct ib_uverbs_create_ah_resp resp;

	WORKS(WRITE(&c->h, CREATE_AH, &cmd, &resp));
	c->ah = resp.ah_handle;
}

void call_mr(struct call *c)
{
	struct ib_uverbs_reg_mr_resp resp;

	WORKS(harness_reg_mr(&c->h, c->pd, c->data, sizeof(c->data), IBV_ACCESS_LOCAL_WRITE, &resp));
	c->mr = resp.mr_handle;
}
