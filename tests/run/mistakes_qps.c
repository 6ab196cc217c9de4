/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* mistakes.c: makes and connects the two QPs. */
#include "mistakes.h"

struct ibv_qp *qp_new(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV ? NULL : srq,
		.cap = { 32, 32, 1, 1, 0 },
		.qp_type = type,
		.sq_sig_all = 1,
		.comp_mask = type == IBV_QPT_XRC_RECV ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD,
		.pd = pd,
		.xrcd = xrcd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(ctx, &init);

	CHECK(qp);
	return qp;
}

static void qp_init(struct ibv_qp *qp, uint16_t pkey)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .pkey_index = pkey,
				    .port_num = 1,
				    .qkey = QKEY,
				    .qp_access_flags = plan.qp_access };
	const int mask = qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;

	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | mask));
}

void av_set(struct ibv_ah_attr *av)
{
	*av = (struct ibv_ah_attr){ .port_num = 1,
				    .dlid = port.lid,
				    .is_global = port.link_layer == IBV_LINK_LAYER_ETHERNET };
	if (plan.gid_byte)
		av->is_global = 1;
	av->grh.dgid = gid;
	av->grh.dgid.raw[15] ^= plan.gid_byte;
	av->grh.hop_limit = 1;
}

static void qp_rtr(struct ibv_qp *qp, uint32_t dest, enum ibv_mtu mtu, uint32_t psn)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
				    .path_mtu = mtu,
				    .rq_psn = psn,
				    .dest_qp_num = dest,
				    .max_dest_rd_atomic = plan.dest_rd_atomic,
				    .min_rnr_timer = 1 };
	int mask = IBV_QP_STATE;

	av_set(&attr.ah_attr);
	if (qp->qp_type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_RQ_PSN | IBV_QP_DEST_QPN;
	if (qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	CHECK(!ibv_modify_qp(qp, &attr, mask));
}

static void qp_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .timeout = 10, .retry_cnt = 3, .rnr_retry = 2, .max_rd_atomic = 1
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_SEND)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	if (qp->qp_type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_TIMEOUT;
	CHECK(!ibv_modify_qp(qp, &attr, mask));
}

void both_connect(void)
{
	qp_init(a, 0);
	qp_rtr(a, b->qp_num + plan.dest_a, IBV_MTU_1024, 0);
	qp_rts(a);
	if (plan.b_state == IBV_QPS_RESET)
		return;
	qp_init(b, plan.pkey_b);
	if (plan.b_state == IBV_QPS_INIT)
		return;
	qp_rtr(b, a->qp_num + plan.dest_b, plan.mtu_b, plan.psn_b);
	qp_rts(b);
}
