/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* MODIFY_QP: the checks of the kernel's core. The backend has the state machine. The rows are in qp.c. */
#include <linux/capability.h>
#include "objects/internal.h"

enum {
	MASK_STANDARD = 0x1fffff, /* IB_QP_ATTR_STANDARD_BITS */
	QKEY_PRIVILEGED = 1u << 31,
	PSN_MASK = 0xffffff,
};

struct modify_args {
	struct ib_uverbs_ex_modify_qp cmd;
	struct uvd_qp *qp;
	struct ibv_qp_attr attr;
};

static int decode_modify(struct uvd_req *req)
{
	struct ib_uverbs_modify_qp *cmd = &uvd_args(req, struct modify_args)->cmd.base;
	int ret = uvd_core_in(req, cmd);

	if (!ret && cmd->attr_mask & ~MASK_STANDARD)
		return uvd_bad(req, -EOPNOTSUPP, "attr_mask", cmd->attr_mask);
	return ret;
}

static int decode_modify_ex(struct uvd_req *req)
{
	struct ib_uverbs_ex_modify_qp *cmd = &uvd_args(req, struct modify_args)->cmd;
	int ret = uvd_core_in(req, cmd);

	if (!ret && cmd->base.attr_mask & ~(MASK_STANDARD | IBV_QP_RATE_LIMIT))
		return uvd_bad(req, -EOPNOTSUPP, "attr_mask", cmd->base.attr_mask);
	return ret;
}

static int qp_modify_find_qp(struct uvd_req *req)
{
	struct modify_args *args = uvd_args(req, struct modify_args);

	int ret = uvd_req_object(req, UVERBS_OBJECT_QP, args->cmd.base.qp_handle, &args->qp);

	if (!ret)
		uvd_req_about(req, "QP", args->qp->qp_num);
	return ret;
}

/* The port that the QP is bound to, or 0. Another thread may be modifying the QP, so each use reads it once. */
static uint8_t qp_port(struct uvd_qp *qp)
{
	return __atomic_load_n(&qp->port, __ATOMIC_RELAXED);
}

static int check_port(struct uvd_req *req, const char *field, uint8_t port)
{
	return uvd_check_range_of(req, field, port, 1, req->dev->config.num_ports);
}

static int check_same_port(struct uvd_req *req, const char *field, uint8_t port, uint8_t own)
{
	if (port == own)
		return 0;
	return uvd_refuse(req, -EINVAL, &uvd_why(MODIFY_PORT, { .word = field }, { port }, { own }));
}

/*
 * The port of an address vector must be the QP's port. A transition to RTR cannot change that port. In SQD, a command
 * may set both together; if it sets only the vector, the QP's port becomes the vector's (qp-10, qp-11).
 */
static int check_av_port(struct uvd_req *req)
{
	struct modify_args *args = uvd_args(req, struct modify_args);
	struct ib_uverbs_modify_qp *cmd = &args->cmd.base;
	uint8_t port = cmd->dest.port_num;
	int ret = check_port(req, "ah_attr.port_num", port);

	if (ret)
		return ret;
	if (cmd->attr_mask & IBV_QP_STATE && cmd->qp_state == IBV_QPS_RTR)
		return check_same_port(req, "ah_attr.port_num", port, qp_port(args->qp));
	if (cmd->attr_mask & IBV_QP_PORT)
		return check_same_port(req, "ah_attr.port_num", port, cmd->port_num);
	cmd->attr_mask |= IBV_QP_PORT;
	cmd->port_num = port;
	return 0;
}

static int check_ports_and_states(struct uvd_req *req)
{
	struct ib_uverbs_modify_qp *cmd = &uvd_args(req, struct modify_args)->cmd.base;
	int ret = 0;

	if (cmd->attr_mask & IBV_QP_PORT)
		ret = check_port(req, "port_num", cmd->port_num);
	if (!ret && cmd->attr_mask & IBV_QP_AV)
		ret = check_av_port(req);
	if (!ret && cmd->attr_mask & IBV_QP_ALT_PATH)
		ret = check_port(req, "alt_port_num", cmd->alt_port_num) ?:
		      check_port(req, "alt_ah_attr.port_num", cmd->alt_dest.port_num) ?:
		      check_same_port(req, "alt_ah_attr.port_num", cmd->alt_dest.port_num, cmd->alt_port_num);
	if (!ret && cmd->attr_mask & IBV_QP_CUR_STATE)
		ret = uvd_check_range_of(req, "cur_qp_state", cmd->cur_qp_state, 0, IBV_QPS_ERR);
	if (!ret && cmd->attr_mask & IBV_QP_STATE)
		ret = uvd_check_range_of(req, "qp_state", cmd->qp_state, 0, IBV_QPS_ERR);
	return ret;
}

/* qp-12: only privileged callers may use a Q_Key with the highest bit set; receivers trust datagrams that carry one. */
static int check_qkey(struct uvd_req *req)
{
	struct ib_uverbs_modify_qp *cmd = &uvd_args(req, struct modify_args)->cmd.base;

	if (cmd->attr_mask & IBV_QP_QKEY && cmd->qkey & QKEY_PRIVILEGED &&
	    !uvd_caller_capable(req->caller, CAP_NET_RAW))
		return uvd_refuse(req, -EPERM, &uvd_why(MODIFY_QKEY, { cmd->qkey }));
	return 0;
}

static void fill_av(struct ibv_ah_attr *attr, const struct ib_uverbs_qp_dest *dest)
{
	if (dest->is_global) {
		memcpy(attr->grh.dgid.raw, dest->dgid, sizeof(dest->dgid));
		attr->grh.flow_label = dest->flow_label;
		attr->grh.sgid_index = dest->sgid_index;
		attr->grh.hop_limit = dest->hop_limit;
		attr->grh.traffic_class = dest->traffic_class;
	}
	attr->is_global = !!dest->is_global;
	attr->dlid = dest->dlid;
	attr->sl = dest->sl;
	attr->src_path_bits = dest->src_path_bits;
	attr->static_rate = dest->static_rate;
	attr->port_num = dest->port_num;
}

/* Fields that the mask does not name stay 0. */
static int fill_attr(struct uvd_req *req)
{
	struct modify_args *args = uvd_args(req, struct modify_args);
	const struct ib_uverbs_modify_qp *cmd = &args->cmd.base;
	struct ibv_qp_attr *attr = &args->attr;

#define TAKE(bit, field) (cmd->attr_mask & (bit) ? (void)(attr->field = cmd->field) : (void)0)
	TAKE(IBV_QP_STATE, qp_state);
	TAKE(IBV_QP_CUR_STATE, cur_qp_state);
	TAKE(IBV_QP_PATH_MTU, path_mtu);
	TAKE(IBV_QP_PATH_MIG_STATE, path_mig_state);
	TAKE(IBV_QP_QKEY, qkey);
	TAKE(IBV_QP_RQ_PSN, rq_psn);
	TAKE(IBV_QP_SQ_PSN, sq_psn);
	TAKE(IBV_QP_DEST_QPN, dest_qp_num);
	TAKE(IBV_QP_ACCESS_FLAGS, qp_access_flags);
	TAKE(IBV_QP_PKEY_INDEX, pkey_index);
	TAKE(IBV_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
	TAKE(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	TAKE(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	TAKE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
	TAKE(IBV_QP_PORT, port_num);
	TAKE(IBV_QP_TIMEOUT, timeout);
	TAKE(IBV_QP_RETRY_CNT, retry_cnt);
	TAKE(IBV_QP_RNR_RETRY, rnr_retry);
	TAKE(IBV_QP_ALT_PATH, alt_port_num);
	TAKE(IBV_QP_ALT_PATH, alt_timeout);
	TAKE(IBV_QP_ALT_PATH, alt_pkey_index);
#undef TAKE
	attr->rq_psn &= PSN_MASK;
	attr->sq_psn &= PSN_MASK;
	if (cmd->attr_mask & IBV_QP_RATE_LIMIT)
		attr->rate_limit = args->cmd.rate_limit;
	if (cmd->attr_mask & IBV_QP_AV)
		fill_av(&attr->ah_attr, &cmd->dest);
	if (cmd->attr_mask & IBV_QP_ALT_PATH)
		fill_av(&attr->alt_ah_attr, &cmd->alt_dest);
	return 0;
}

static int check_paths(struct uvd_req *req)
{
	struct modify_args *args = uvd_args(req, struct modify_args);
	uint32_t mask = args->cmd.base.attr_mask;
	uint8_t port = mask & IBV_QP_PORT ? args->attr.port_num : qp_port(args->qp);
	int ret = 0;

	if (mask & IBV_QP_AV)
		ret = uvd_check_av(req, "ah_attr", &args->attr.ah_attr);
	if (ret || !(mask & IBV_QP_ALT_PATH))
		return ret;
	ret = uvd_check_av(req, "alt_ah_attr", &args->attr.alt_ah_attr);
	if (ret)
		return ret;
	/* Only InfiniBand ports support path migration. A QP that is bound to no port has no path to migrate from. */
	if (!port || !uvd_port_is_ib(req->dev, port) || !uvd_port_is_ib(req->dev, args->attr.alt_ah_attr.port_num))
		return uvd_refuse(req, -EINVAL, &uvd_why(MODIFY_ALT_PORT, { args->attr.alt_port_num }));
	return 0;
}

/* modify_qp_mask(): removes the attributes that an end of an XRC connection ignores */
static uint32_t useful_mask(enum ibv_qp_type type, uint32_t mask)
{
	if (type == IBV_QPT_XRC_SEND)
		return mask & ~(uint32_t)(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (type == IBV_QPT_XRC_RECV)
		return mask & ~(uint32_t)(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
	return mask;
}

static int modify_qp(struct uvd_req *req)
{
	struct modify_args *args = uvd_args(req, struct modify_args);
	uint32_t mask = useful_mask(args->qp->qp_type, args->cmd.base.attr_mask);
	int ret = uvd_req_modify_qp(req, args->qp, &args->attr, mask);

	if (ret)
		return ret;
	if (mask & IBV_QP_PORT)
		__atomic_store_n(&args->qp->port, args->attr.port_num, __ATOMIC_RELAXED);
	return 0;
}

static int answer_modify_ex(struct uvd_req *req)
{
	struct ib_uverbs_ex_modify_qp_resp resp = { .response_length = uvd_response_length(req, sizeof(resp)) };

	return uvd_core_out(req, &resp);
}

const uvd_step uvd_modify_qp_steps[] = {
	decode_modify, qp_modify_find_qp, check_ports_and_states, check_qkey, fill_attr, check_paths, modify_qp, NULL,
};
const uvd_step uvd_modify_qp_ex_steps[] = {
	decode_modify_ex, qp_modify_find_qp, check_ports_and_states, check_qkey, fill_attr,
	check_paths,	  modify_qp,	     answer_modify_ex,	     NULL,
};
