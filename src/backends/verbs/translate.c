/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What is forwarded, by tables: capabilities, QP types, opcodes. Attributes of QPs, ports and address handles are
 * structs of libibverbs on both sides, so they need no translation.
 */
#include <errno.h>
#include "backends/verbs/verbs.h"

/* Capabilities of the adapter that clients can use through this backend. */
static const uint32_t forwarded_caps =
	IBV_DEVICE_RESIZE_MAX_WR | IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR | IBV_DEVICE_AUTO_PATH_MIG |
	IBV_DEVICE_CHANGE_PHY_PORT | IBV_DEVICE_UD_AV_PORT_ENFORCE | IBV_DEVICE_CURR_QP_STATE_MOD |
	IBV_DEVICE_SHUTDOWN_PORT | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
	IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_N_NOTIFY_CQ;

/* The same, where peers can access clients' memory. */
static const uint32_t window_caps =
	IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B;

void hca_mask_device(struct ibv_device_attr_ex *attr, bool remote)
{
	struct ibv_device_attr *orig = &attr->orig_attr;
	const struct ibv_device_attr_ex all = *attr;

	*attr = (struct ibv_device_attr_ex){ .orig_attr = all.orig_attr, .phys_port_cnt_ex = all.phys_port_cnt_ex };
	orig->device_cap_flags &= forwarded_caps;
	attr->device_cap_flags_ex = orig->device_cap_flags;
	if (remote) {
		orig->device_cap_flags |= all.orig_attr.device_cap_flags & window_caps;
		attr->device_cap_flags_ex = orig->device_cap_flags;
	} else {
		orig->atomic_cap = IBV_ATOMIC_NONE;
		orig->max_mw = 0;
	}
	orig->max_raw_ipv6_qp = 0;
	orig->max_raw_ethy_qp = 0;
	orig->max_ee = 0;
	orig->max_rdd = 0;
}

bool hca_has_qp(const struct ibv_device_attr *attr)
{
	return attr->max_qp > 0;
}

bool hca_has_srq(const struct ibv_device_attr *attr)
{
	return attr->max_srq > 0;
}

bool hca_has_mcast(const struct ibv_device_attr *attr)
{
	return attr->max_mcast_grp > 0;
}

bool hca_has_remote(const struct ibv_device_attr *attr)
{
	return attr->atomic_cap != IBV_ATOMIC_NONE;
}

int hca_qp_request(struct hca_qp *qp, const struct uvd_qp_init_attr *init, struct ibv_qp_init_attr *out)
{
	if (init->qp_type != IBV_QPT_RC && init->qp_type != IBV_QPT_UC && init->qp_type != IBV_QPT_UD)
		return -EOPNOTSUPP;
	if (init->create_flags || init->rwq_ind_tbl)
		return -EOPNOTSUPP;
	if (init->cap.max_inline_data > HCA_MAX_INLINE)
		return -EINVAL;
	*out = (struct ibv_qp_init_attr){
		.qp_context = &qp->qp,
		.send_cq = init->send_cq ? ((struct hca_cq *)init->send_cq)->adapter : NULL,
		.recv_cq = init->recv_cq ? ((struct hca_cq *)init->recv_cq)->adapter : NULL,
		.srq = init->srq ? ((struct hca_srq *)init->srq)->adapter : NULL,
		.cap = init->cap,
		.qp_type = init->qp_type,
		.sq_sig_all = init->sq_sig_all,
	};
	return 0;
}

void hca_qp_limit_inline(struct ibv_qp_cap *cap)
{
	if (cap->max_inline_data > HCA_MAX_INLINE)
		cap->max_inline_data = HCA_MAX_INLINE;
}

int hca_send_request(const struct uvd_send_wr *wr, struct ibv_send_wr *out)
{
	*out = (struct ibv_send_wr){
		.opcode = wr->opcode,
		/* Inline data is in the buffer, as all data is. */
		.send_flags = wr->send_flags & (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED),
	};
	switch (wr->opcode) {
	case IBV_WR_SEND_WITH_IMM:
		out->imm_data = wr->imm_data;
		/* fall through */
	case IBV_WR_SEND:
		if (wr->ah) {
			out->wr.ud.ah = ((struct hca_ah *)wr->ah)->adapter;
			out->wr.ud.remote_qpn = wr->remote_qpn;
			out->wr.ud.remote_qkey = wr->remote_qkey;
		}
		return 0;
	case IBV_WR_SEND_WITH_INV:
		out->invalidate_rkey = wr->invalidate_rkey;
		return 0;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		out->imm_data = wr->imm_data;
		/* fall through */
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
		out->wr.rdma.remote_addr = wr->remote_addr;
		out->wr.rdma.rkey = wr->rkey;
		return 0;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		out->wr.atomic.remote_addr = wr->remote_addr;
		out->wr.atomic.rkey = wr->rkey;
		out->wr.atomic.compare_add = wr->compare_add;
		out->wr.atomic.swap = wr->swap;
		return 0;
	default:
		return -EINVAL;
	}
}
