/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* QUERY_DEVICE, QUERY_PORT and QUERY_PORT_SPEED. Their rows are in device.c. */
#include <stdio.h>
#include <uverbsd/uapi_later.h>
#include "account/account.h"
#include "objects/internal.h"

/* "1.27.0" becomes 1 << 32 | 27 << 16 | 0, which providers decode to the same text. */
static uint64_t fw_ver_number(const char *fw_ver)
{
	unsigned int major = 0, minor = 0, sub = 0;

	sscanf(fw_ver, "%u.%u.%u", &major, &minor, &sub);
	return (uint64_t)(major & 0xffff) << 32 | (minor & 0xffff) << 16 | (sub & 0xffff);
}

static void fill_device(struct uvd_req *req, const struct ibv_device_attr_ex *ex,
			struct ib_uverbs_query_device_resp *resp)
{
	const struct ibv_device_attr *attr = &ex->orig_attr;

	resp->fw_ver = fw_ver_number(attr->fw_ver);
	resp->node_guid = attr->node_guid;
	resp->sys_image_guid = attr->sys_image_guid;
	resp->max_mr_size = attr->max_mr_size;
	resp->page_size_cap = attr->page_size_cap;
	resp->vendor_id = attr->vendor_id;
	resp->vendor_part_id = attr->vendor_part_id;
	resp->hw_ver = attr->hw_ver;
	resp->max_qp = attr->max_qp;
	resp->max_qp_wr = attr->max_qp_wr;
	resp->device_cap_flags = attr->device_cap_flags & ~req->dev->ib.config.hidden_caps;
	resp->max_sge = attr->max_sge;
	resp->max_sge_rd = attr->max_sge_rd;
	resp->max_cq = attr->max_cq;
	resp->max_cqe = attr->max_cqe;
	resp->max_mr = attr->max_mr;
	resp->max_pd = attr->max_pd;
	resp->max_qp_rd_atom = attr->max_qp_rd_atom;
	resp->max_ee_rd_atom = attr->max_ee_rd_atom;
	resp->max_res_rd_atom = attr->max_res_rd_atom;
	resp->max_qp_init_rd_atom = attr->max_qp_init_rd_atom;
	resp->max_ee_init_rd_atom = attr->max_ee_init_rd_atom;
	resp->atomic_cap = attr->atomic_cap;
	resp->max_ee = attr->max_ee;
	resp->max_rdd = attr->max_rdd;
	resp->max_mw = attr->max_mw;
	resp->max_raw_ipv6_qp = attr->max_raw_ipv6_qp;
	resp->max_raw_ethy_qp = attr->max_raw_ethy_qp;
	resp->max_mcast_grp = attr->max_mcast_grp;
	resp->max_mcast_qp_attach = attr->max_mcast_qp_attach;
	resp->max_total_mcast_qp_attach = attr->max_total_mcast_qp_attach;
	resp->max_ah = attr->max_ah;
	resp->max_srq = attr->max_srq;
	resp->max_srq_wr = attr->max_srq_wr;
	resp->max_srq_sge = attr->max_srq_sge;
	resp->max_pkeys = attr->max_pkeys;
	resp->local_ca_ack_delay = attr->local_ca_ack_delay;
	resp->phys_port_cnt = req->dev->config.num_ports;
}

/* ---- what this client can make ----------------------------------------------------------------------------------- */

/*
 * A number that a device announces, and the resource that limits it for each user. others: the objects that a client has
 * beside those, which count as `objects`, too: an asynchronous event file, and what one object of the type needs.
 */
struct announced {
	enum uvd_resource res;
	unsigned int others;
	size_t at; /* a 32-bit field of struct ib_uverbs_query_device_resp */
};

#define ANNOUNCED(type, m, n) \
	{ \
		UVD_RES_OBJECT + UVERBS_OBJECT_##type, n, offsetof(struct ib_uverbs_query_device_resp, m) \
	}
static const struct announced announced_objects[] = {
	ANNOUNCED(PD, max_pd, 1),	   ANNOUNCED(CQ, max_cq, 1),	      ANNOUNCED(MR, max_mr, 2), /* a PD */
	ANNOUNCED(MW, max_mw, 2),	   ANNOUNCED(AH, max_ah, 2),	      ANNOUNCED(SRQ, max_srq, 2),
	ANNOUNCED(QP, max_qp, 3), /* a PD and a CQ */
	ANNOUNCED(QP, max_raw_ipv6_qp, 3), ANNOUNCED(QP, max_raw_ethy_qp, 3),
};
#undef ANNOUNCED

enum { OTHERS_OF_WQ = 3 /* as of a QP */, OTHERS_OF_RWQ_IND_TBL = 4 /* a WQ more */ };

static uint32_t query_least(const struct uvd_account *account, enum uvd_resource res, uint32_t num)
{
	const uint64_t most = uvd_account_most(account, res);

	return most < num ? most : num;
}

/* The same for objects: they count as objects of all types, too. */
static uint32_t query_least_objects(const struct uvd_account *account, enum uvd_resource res, unsigned int others,
				    uint32_t num)
{
	const uint64_t all = uvd_account_most(account, UVD_RES_OBJECTS), left = all > others ? all - others : 0;

	num = query_least(account, res, num);
	return left < num ? left : num;
}

/*
 * Replaces what the device has by what the opener can have of it, alone in its account and of one type at a time: the
 * least of the device, the user's limits and share, and the quota.
 */
static void query_limit(const struct uvd_account *account, struct ib_uverbs_query_device_resp *resp)
{
	const uint64_t rd_atomics = (uint64_t)resp->max_qp_rd_atom;
	const uint32_t device_qps = resp->max_qp;

	for (size_t i = 0; i < UVD_COUNT(announced_objects); i++) {
		const struct announced *a = &announced_objects[i];
		uint32_t *at = (uint32_t *)((char *)resp + a->at);

		*at = query_least_objects(account, a->res, a->others, *at);
	}
	/* Each QP has its own: fewer QPs have fewer. */
	if (resp->max_qp < device_qps && resp->max_res_rd_atom > rd_atomics * resp->max_qp)
		resp->max_res_rd_atom = rd_atomics * resp->max_qp;
	/* One attachment is the least that a group costs. */
	resp->max_mcast_grp = query_least(account, UVD_RES_ATTACHMENTS, resp->max_mcast_grp);
	resp->max_total_mcast_qp_attach = query_least(account, UVD_RES_ATTACHMENTS, resp->max_total_mcast_qp_attach);
	resp->max_mcast_qp_attach = query_least(account, UVD_RES_MEMBERS, resp->max_mcast_qp_attach);
	resp->max_mcast_qp_attach = query_least(account, UVD_RES_ATTACHMENTS, resp->max_mcast_qp_attach);
	resp->max_mcast_qp_attach = query_least_objects(account, UVD_RES_OBJECT + UVERBS_OBJECT_QP, OTHERS_OF_WQ,
							resp->max_mcast_qp_attach);
}

static void query_limit_ex(const struct uvd_account *account, struct ib_uverbs_ex_query_device_resp *resp)
{
	const uint64_t dm_bytes = uvd_account_most(account, UVD_RES_DM_BYTES);

	query_limit(account, &resp->base);
	resp->max_wq_type_rq =
		query_least_objects(account, UVD_RES_OBJECT + UVERBS_OBJECT_WQ, OTHERS_OF_WQ, resp->max_wq_type_rq);
	resp->rss_caps.max_rwq_indirection_tables =
		query_least_objects(account, UVD_RES_OBJECT + UVERBS_OBJECT_RWQ_IND_TBL, OTHERS_OF_RWQ_IND_TBL,
				    resp->rss_caps.max_rwq_indirection_tables);
	resp->max_dm_size = dm_bytes < resp->max_dm_size ? dm_bytes : resp->max_dm_size;
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static int query_device(struct uvd_req *req)
{
	struct ib_uverbs_query_device_resp resp = {};
	struct ib_uverbs_query_device cmd;
	struct ibv_device_attr_ex attr = {};
	int ret;

	ret = uvd_core_in(req, &cmd);
	if (!ret)
		ret = uvd_ops(req)->query_device(&req->dev->ib, &attr, NULL);
	if (ret)
		return ret;
	fill_device(req, &attr, &resp);
	query_limit(req->file->account, &resp);
	return uvd_core_out(req, &resp);
}

static void fill_device_ex(struct uvd_req *req, const struct ibv_device_attr_ex *attr,
			   struct ib_uverbs_ex_query_device_resp *resp)
{
	resp->odp_caps.general_caps = attr->odp_caps.general_caps;
	resp->odp_caps.per_transport_caps.rc_odp_caps = attr->odp_caps.per_transport_caps.rc_odp_caps;
	resp->odp_caps.per_transport_caps.uc_odp_caps = attr->odp_caps.per_transport_caps.uc_odp_caps;
	resp->odp_caps.per_transport_caps.ud_odp_caps = attr->odp_caps.per_transport_caps.ud_odp_caps;
	resp->xrc_odp_caps = attr->xrc_odp_caps;
	resp->timestamp_mask = attr->completion_timestamp_mask;
	resp->hca_core_clock = attr->hca_core_clock;
	resp->device_cap_flags_ex = attr->device_cap_flags_ex & ~(uint64_t)req->dev->ib.config.hidden_caps;
	resp->rss_caps.supported_qpts = attr->rss_caps.supported_qpts;
	resp->rss_caps.max_rwq_indirection_tables = attr->rss_caps.max_rwq_indirection_tables;
	resp->rss_caps.max_rwq_indirection_table_size = attr->rss_caps.max_rwq_indirection_table_size;
	resp->max_wq_type_rq = attr->max_wq_type_rq;
	resp->raw_packet_caps = attr->raw_packet_caps;
	resp->tm_caps.max_rndv_hdr_size = attr->tm_caps.max_rndv_hdr_size;
	resp->tm_caps.max_num_tags = attr->tm_caps.max_num_tags;
	resp->tm_caps.max_ops = attr->tm_caps.max_ops;
	resp->tm_caps.max_sge = attr->tm_caps.max_sge;
	resp->tm_caps.flags = attr->tm_caps.flags;
	resp->cq_moderation_caps.max_cq_moderation_count = attr->cq_mod_caps.max_cq_count;
	resp->cq_moderation_caps.max_cq_moderation_period = attr->cq_mod_caps.max_cq_period;
	resp->max_dm_size = attr->max_dm_size;
}

static int query_device_ex(struct uvd_req *req)
{
	struct ib_uverbs_ex_query_device_resp resp = {};
	struct ib_uverbs_ex_query_device cmd;
	struct ibv_device_attr_ex attr = {};
	int ret;

	ret = uvd_core_in(req, &cmd);
	if (ret)
		return ret;
	if (cmd.comp_mask)
		return uvd_bad(req, -EINVAL, "comp_mask", cmd.comp_mask);
	if (cmd.reserved)
		return uvd_bad(req, -EINVAL, "reserved", cmd.reserved);
	ret = uvd_ops(req)->query_device(&req->dev->ib, &attr, uvd_req_udata(req));
	if (ret)
		return ret;
	fill_device(req, &attr, &resp.base);
	fill_device_ex(req, &attr, &resp);
	query_limit_ex(req->file->account, &resp);
	resp.response_length = uvd_response_length(req, sizeof(resp));
	return uvd_core_out(req, &resp);
}

/* ---- ports ------------------------------------------------------------------------------------------------------- */

struct port_args {
	uint32_t port_num;
	struct ibv_port_attr attr;
};

static int decode_port_write(struct uvd_req *req)
{
	struct ib_uverbs_query_port cmd;
	int ret = uvd_core_in(req, &cmd);

	if (ret)
		return ret;
	uvd_args(req, struct port_args)->port_num = cmd.port_num;
	return 0;
}

static int decode_port_ioctl(struct uvd_req *req)
{
	uint64_t port;
	int ret = uvd_attr_const(req, UVERBS_ATTR_QUERY_PORT_PORT_NUM, UINT8_MAX, &port);

	if (!ret)
		uvd_args(req, struct port_args)->port_num = port;
	return ret;
}

static int query_port(struct uvd_req *req)
{
	struct port_args *args = uvd_args(req, struct port_args);

	if (!uvd_port_valid(req->dev, args->port_num))
		return uvd_bad(req, -EINVAL, "port_num", args->port_num);
	return uvd_ops(req)->query_port(&req->dev->ib, args->port_num, &args->attr);
}

static void query_fill_port(const struct ibv_port_attr *attr, struct ib_uverbs_query_port_resp *resp)
{
	resp->port_cap_flags = attr->port_cap_flags; /* bit 26 already is IP_BASED_GIDS in ibv_port_attr */
	resp->max_msg_sz = attr->max_msg_sz;
	resp->bad_pkey_cntr = attr->bad_pkey_cntr;
	resp->qkey_viol_cntr = attr->qkey_viol_cntr;
	resp->gid_tbl_len = attr->gid_tbl_len;
	resp->pkey_tbl_len = attr->pkey_tbl_len;
	resp->lid = attr->lid;
	resp->sm_lid = attr->sm_lid;
	resp->state = attr->state;
	resp->max_mtu = attr->max_mtu;
	resp->active_mtu = attr->active_mtu;
	resp->lmc = attr->lmc;
	resp->max_vl_num = attr->max_vl_num;
	resp->sm_sl = attr->sm_sl;
	resp->subnet_timeout = attr->subnet_timeout;
	resp->init_type_reply = attr->init_type_reply;
	resp->active_width = attr->active_width;
	resp->active_speed = attr->active_speed;
	resp->phys_state = attr->phys_state;
	resp->link_layer = attr->link_layer;
	if (attr->flags & IBV_QPF_GRH_REQUIRED)
		resp->flags |= IB_UVERBS_QPF_GRH_REQUIRED;
}

static int answer_port_write(struct uvd_req *req)
{
	struct ib_uverbs_query_port_resp resp = {};

	query_fill_port(&uvd_args(req, struct port_args)->attr, &resp);
	return uvd_core_out(req, &resp);
}

static int answer_port_ioctl(struct uvd_req *req)
{
	struct port_args *args = uvd_args(req, struct port_args);
	struct ib_uverbs_query_port_resp_ex resp = {};

	query_fill_port(&args->attr, &resp.legacy_resp);
	resp.port_cap_flags2 = args->attr.port_cap_flags2;
	return uvd_attr_copy_to_or_zero(req, UVERBS_ATTR_QUERY_PORT_RESP, &resp);
}

static int query_port_speed(struct uvd_req *req)
{
	uint64_t port, speed;
	int ret;

	if (!uvd_ops(req)->query_port_speed)
		return -EOPNOTSUPP;
	ret = uvd_attr_const(req, UVERBS_ATTR_QUERY_PORT_SPEED_PORT_NUM, UINT32_MAX, &port);
	if (ret)
		return ret;
	if (!uvd_port_valid(req->dev, port))
		return uvd_bad(req, -EINVAL, "port_num", port);
	ret = uvd_ops(req)->query_port_speed(&req->dev->ib, port, &speed);
	return ret ? ret : uvd_attr_copy_to(req, UVERBS_ATTR_QUERY_PORT_SPEED_RESP, &speed);
}

const uvd_step uvd_query_device_steps[] = { uvd_step_context, query_device, NULL };
const uvd_step uvd_query_device_ex_steps[] = { uvd_step_context, query_device_ex, NULL };
const uvd_step uvd_query_port_write_steps[] = {
	uvd_step_context, decode_port_write, query_port, answer_port_write, NULL,
};
const uvd_step uvd_query_port_ioctl_steps[] = {
	uvd_step_context, decode_port_ioctl, query_port, answer_port_ioctl, NULL,
};
const uvd_step uvd_query_port_speed_steps[] = { uvd_step_context, query_port_speed, NULL };
