/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* QUERY_QP. Its row is in qp.c. */
#include "objects/internal.h"

struct query_args {
	struct uvd_qp *qp;
	uint32_t attr_mask;
};

static int qp_query_find_qp(struct uvd_req *req)
{
	struct query_args *args = uvd_args(req, struct query_args);
	struct ib_uverbs_query_qp cmd;
	int ret = uvd_core_in(req, &cmd);

	if (ret)
		return ret;
	args->attr_mask = cmd.attr_mask;
	return uvd_req_object(req, UVERBS_OBJECT_QP, cmd.qp_handle, &args->qp);
}

static void put_av(struct ib_uverbs_qp_dest *dest, const struct ibv_ah_attr *attr)
{
	dest->dlid = attr->dlid;
	dest->sl = attr->sl;
	dest->src_path_bits = attr->src_path_bits;
	dest->static_rate = attr->static_rate;
	dest->is_global = !!attr->is_global;
	if (dest->is_global) {
		memcpy(dest->dgid, attr->grh.dgid.raw, sizeof(dest->dgid));
		dest->flow_label = attr->grh.flow_label;
		dest->sgid_index = attr->grh.sgid_index;
		dest->hop_limit = attr->grh.hop_limit;
		dest->traffic_class = attr->grh.traffic_class;
	}
	dest->port_num = attr->port_num;
}

static int query_qp(struct uvd_req *req)
{
	struct query_args *args = uvd_args(req, struct query_args);
	struct ib_uverbs_query_qp_resp resp = {};
	struct uvd_qp_init_attr init = {};
	struct ibv_qp_attr attr = {};
	int ret = uvd_ops(req)->query_qp(args->qp, &attr, args->attr_mask, &init);

	if (ret)
		return ret;
	put_av(&resp.dest, &attr.ah_attr);
	put_av(&resp.alt_dest, &attr.alt_ah_attr);
	resp.max_send_wr = init.cap.max_send_wr;
	resp.max_recv_wr = init.cap.max_recv_wr;
	resp.max_send_sge = init.cap.max_send_sge;
	resp.max_recv_sge = init.cap.max_recv_sge;
	resp.max_inline_data = init.cap.max_inline_data;
	resp.sq_sig_all = init.sq_sig_all;
	resp.qkey = attr.qkey;
	resp.rq_psn = attr.rq_psn;
	resp.sq_psn = attr.sq_psn;
	resp.dest_qp_num = attr.dest_qp_num;
	resp.qp_access_flags = attr.qp_access_flags;
	resp.pkey_index = attr.pkey_index;
	resp.alt_pkey_index = attr.alt_pkey_index;
	resp.qp_state = attr.qp_state;
	resp.cur_qp_state = attr.cur_qp_state;
	resp.path_mtu = attr.path_mtu;
	resp.path_mig_state = attr.path_mig_state;
	resp.sq_draining = attr.sq_draining;
	resp.max_rd_atomic = attr.max_rd_atomic;
	resp.max_dest_rd_atomic = attr.max_dest_rd_atomic;
	resp.min_rnr_timer = attr.min_rnr_timer;
	resp.port_num = attr.port_num;
	resp.timeout = attr.timeout;
	resp.retry_cnt = attr.retry_cnt;
	resp.rnr_retry = attr.rnr_retry;
	resp.alt_port_num = attr.alt_port_num;
	resp.alt_timeout = attr.alt_timeout;
	return uvd_core_out(req, &resp);
}

const uvd_step uvd_query_qp_steps[] = { qp_query_find_qp, query_qp, NULL };
