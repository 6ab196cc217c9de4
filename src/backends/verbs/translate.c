/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What is forwarded, by tables: capabilities, QP types, opcodes. Attributes of QPs, ports and address handles are
 * structs of libibverbs on both sides, so they need no translation.
 */
#include <errno.h>
#include "backends/verbs/verbs.h"

/* Capabilities of the adapter that clients can use through this backend. */
static const uint32_t forwarded_caps = IBV_DEVICE_RESIZE_MAX_WR | IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR |
				       IBV_DEVICE_AUTO_PATH_MIG | IBV_DEVICE_CHANGE_PHY_PORT |
				       IBV_DEVICE_UD_AV_PORT_ENFORCE | IBV_DEVICE_CURR_QP_STATE_MOD |
				       IBV_DEVICE_SHUTDOWN_PORT | IBV_DEVICE_PORT_ACTIVE_EVENT |
				       IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE |
				       IBV_DEVICE_N_NOTIFY_CQ | IBV_DEVICE_UD_IP_CSUM | IBV_DEVICE_RC_IP_CSUM;

/* The same, where peers can access clients' memory. */
static const uint32_t window_caps =
	IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B;

/* The same, where the device has the feature. */
static const struct {
	enum hca_feature feature;
	uint32_t caps;
} feature_caps[] = {
	{ HCA_XRC, IBV_DEVICE_XRC },
	{ HCA_FLOW, IBV_DEVICE_MANAGED_FLOW_STEERING },
	{ HCA_RAW, IBV_DEVICE_RAW_IP_CSUM },
};

/* The same of the upper half of device_cap_flags_ex. Padding is a flag of QPs and work queues of any type. */
static uint64_t caps_ex_of_features(unsigned int features)
{
	return IBV_DEVICE_PCI_WRITE_END_PADDING | (features & HCA_RAW ? IBV_DEVICE_RAW_SCATTER_FCS : 0);
}

static uint32_t caps_of_features(unsigned int features)
{
	uint32_t caps = 0;

	for (size_t i = 0; i < sizeof(feature_caps) / sizeof(feature_caps[0]); i++)
		if (features & feature_caps[i].feature)
			caps |= feature_caps[i].caps;
	return caps;
}

/* The types of QPs that are forwarded, and the feature that each needs: 0, none. */
static const struct {
	enum ibv_qp_type type;
	unsigned int feature;
} qp_types[] = {
	{ IBV_QPT_RC, 0 },
	{ IBV_QPT_UC, 0 },
	{ IBV_QPT_UD, 0 },
	{ IBV_QPT_XRC_SEND, HCA_XRC },
	{ IBV_QPT_XRC_RECV, HCA_XRC },
	{ IBV_QPT_RAW_PACKET, HCA_RAW },
};

static bool qp_type_is_forwarded(enum ibv_qp_type type, unsigned int features)
{
	for (size_t i = 0; i < sizeof(qp_types) / sizeof(qp_types[0]); i++)
		if (qp_types[i].type == type)
			return !(qp_types[i].feature & ~features);
	return false;
}

/* Offloads of raw packets, by flags of QPs, work queues, send requests and completions. */
static const uint32_t forwarded_raw_caps = IBV_RAW_PACKET_CAP_CVLAN_STRIPPING | IBV_RAW_PACKET_CAP_SCATTER_FCS |
					   IBV_RAW_PACKET_CAP_IP_CSUM | IBV_RAW_PACKET_CAP_DELAY_DROP;

/* The common ABI has no field for the headers that an adapter hashes. */
static void mask_rss(struct ibv_device_attr_ex *attr, const struct ibv_device_attr_ex *all, unsigned int features)
{
	attr->max_wq_type_rq = all->max_wq_type_rq;
	attr->rss_caps.max_rwq_indirection_tables = all->rss_caps.max_rwq_indirection_tables;
	attr->rss_caps.max_rwq_indirection_table_size = all->rss_caps.max_rwq_indirection_table_size;
	for (unsigned int type = 0; type < 32; type++)
		if (qp_type_is_forwarded(type, features))
			attr->rss_caps.supported_qpts |= all->rss_caps.supported_qpts & UINT32_C(1) << type;
}

void hca_mask_device(struct ibv_device_attr_ex *attr, bool remote, unsigned int features)
{
	struct ibv_device_attr *orig = &attr->orig_attr;
	const struct ibv_device_attr_ex all = *attr;

	*attr = (struct ibv_device_attr_ex){ .orig_attr = all.orig_attr, .phys_port_cnt_ex = all.phys_port_cnt_ex };
	if (features & HCA_DM)
		attr->max_dm_size = all.max_dm_size;
	if (features & HCA_RAW)
		attr->raw_packet_caps = all.raw_packet_caps & forwarded_raw_caps;
	if (features & HCA_RSS)
		mask_rss(attr, &all, features);
	orig->device_cap_flags &= forwarded_caps | caps_of_features(features);
	attr->device_cap_flags_ex = orig->device_cap_flags;
	if (remote) {
		orig->device_cap_flags |= all.orig_attr.device_cap_flags & window_caps;
		attr->device_cap_flags_ex = orig->device_cap_flags;
	} else {
		orig->atomic_cap = IBV_ATOMIC_NONE;
		orig->max_mw = 0;
	}
	attr->device_cap_flags_ex |= all.device_cap_flags_ex & caps_ex_of_features(features);
	orig->max_raw_ipv6_qp = 0;
	if (!(features & HCA_RAW))
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

/*
 * An XRC target has no PD and no queues, and an XRC initiator has only a send queue: the adapter gets nothing of them. An SRQ
 * that the client names for a target is in the client's context, where the target's has no handle of it.
 */
static void qp_request_xrc(const struct hca_qp *qp, struct ibv_qp_init_attr_ex *out)
{
	if (out->qp_type == IBV_QPT_XRC_RECV) {
		out->comp_mask = IBV_QP_INIT_ATTR_XRCD;
		out->xrcd = ((struct hca_xrcd *)qp->qp.xrcd)->adapter;
		out->srq = NULL;
		out->cap = (struct ibv_qp_cap){};
	} else {
		out->cap.max_recv_wr = 0;
		out->cap.max_recv_sge = 0;
	}
}

/* The table has the receive queues, and the CQs that they complete in. */
static void qp_request_table(const struct uvd_rwq_ind_table *table, struct uverbsd_rx_hash *hash,
			     struct ibv_qp_init_attr_ex *out)
{
	out->comp_mask |= IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
	out->rwq_ind_tbl = ((const struct hca_rwq_ind_table *)table)->adapter;
	out->rx_hash_conf = (struct ibv_rx_hash_conf){
		.rx_hash_function = hash->function,
		.rx_hash_key_len = hash->key_len,
		.rx_hash_key = hash->key,
		.rx_hash_fields_mask = hash->fields_mask,
	};
}

/* The flags of QPs that libibverbs has. Their numbers are the kernel's. The adapter decides which QPs may have them. */
static const uint32_t forwarded_qp_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_SCATTER_FCS |
					   IBV_QP_CREATE_CVLAN_STRIPPING | IBV_QP_CREATE_SOURCE_QPN |
					   IBV_QP_CREATE_PCI_WRITE_END_PADDING;

static void qp_request_flags(const struct uvd_qp_init_attr *init, struct ibv_qp_init_attr_ex *out)
{
	if (!init->create_flags)
		return;
	out->comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	out->create_flags = init->create_flags;
	if (init->create_flags & IBV_QP_CREATE_SOURCE_QPN)
		out->source_qpn = init->source_qpn;
}

int hca_qp_request(struct hca_qp *qp, const struct uvd_qp_init_attr *init, unsigned int features,
		   struct uverbsd_rx_hash *hash, struct ibv_qp_init_attr_ex *out)
{
	if (!qp_type_is_forwarded(init->qp_type, features))
		return -EOPNOTSUPP;
	if (init->create_flags & ~forwarded_qp_flags)
		return -EOPNOTSUPP;
	/* The target is in a context of the engine, and the table in the client's: the adapter would not find it. */
	if (init->rwq_ind_tbl && !qp->qp.pd)
		return -EOPNOTSUPP;
	if (init->cap.max_inline_data > HCA_MAX_INLINE)
		return -EINVAL;
	*out = (struct ibv_qp_init_attr_ex){
		.qp_context = &qp->qp,
		.send_cq = init->send_cq ? ((struct hca_cq *)init->send_cq)->adapter : NULL,
		.recv_cq = init->recv_cq ? ((struct hca_cq *)init->recv_cq)->adapter : NULL,
		.srq = init->srq ? ((struct hca_srq *)init->srq)->adapter : NULL,
		.cap = init->cap,
		.qp_type = init->qp_type,
		.sq_sig_all = init->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = qp->qp.pd ? ((struct hca_pd *)qp->qp.pd)->adapter : NULL,
	};
	if (init->qp_type == IBV_QPT_XRC_SEND || init->qp_type == IBV_QPT_XRC_RECV)
		qp_request_xrc(qp, out);
	qp_request_flags(init, out);
	if (init->rwq_ind_tbl)
		qp_request_table(init->rwq_ind_tbl, hash, out);
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
		.send_flags =
			wr->send_flags & (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_IP_CSUM),
	};
	out->qp_type.xrc.remote_srqn = wr->remote_srqn;
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
