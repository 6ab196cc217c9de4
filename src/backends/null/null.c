/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The null backend accepts everything at once. It serves to fuzz the layers above it, and to measure their cost. It
 * moves no data and accesses no memory. Keys and QP numbers are counters. QPs follow the state table. A signalled send
 * completes with success within the post, so programs that post and poll run, at the cost of a real queue. A receive is
 * accepted and never completes.
 */
#include <errno.h>
#include <string.h>
#include "backends/backends.h"
#include "backends/null/null.h"

struct null_cq {
	struct uvd_cq cq;
	struct uvd_cq_ring ring;
};

struct null_qp {
	struct uvd_qp qp;
	pthread_mutex_t lock; /* attr */
	struct ibv_qp_attr attr;
	bool sq_sig_all;
};

static int null_open(struct uvd_ibdev *dev)
{
	return 0;
}

static void null_close(struct uvd_ibdev *dev)
{
}

/* Allows as many work queues, and as many indirection tables, as QPs. */
static int null_query_device(struct uvd_ibdev *dev, struct ibv_device_attr_ex *attr, struct uvd_udata *udata)
{
	int ret = uvd_config_query_device(dev, attr, udata);

	if (ret)
		return ret;
	attr->orig_attr.device_cap_flags |= IBV_DEVICE_MANAGED_FLOW_STEERING;
	attr->device_cap_flags_ex |= IBV_DEVICE_MANAGED_FLOW_STEERING;
	attr->rss_caps.supported_qpts = 1 << IBV_QPT_UD | 1 << IBV_QPT_RAW_PACKET;
	attr->rss_caps.max_rwq_indirection_tables = dev->config.limits.max_qp;
	attr->rss_caps.max_rwq_indirection_table_size = 1 << 13;
	attr->max_wq_type_rq = dev->config.limits.max_qp;
	return 0;
}

static int null_alloc_context(struct uvd_context *context, struct uvd_udata *udata)
{
	return 0;
}

static void null_dealloc_context(struct uvd_context *context)
{
}

static int null_alloc_pd(struct uvd_pd *pd, struct uvd_udata *udata)
{
	return 0;
}

static int null_dealloc_pd(struct uvd_pd *pd)
{
	return 0;
}

static int null_reg_mr(struct uvd_mr *mr, struct uvd_udata *udata)
{
	static atomic_uint keys = 1;

	mr->lkey = mr->rkey = atomic_fetch_add_explicit(&keys, 1, memory_order_relaxed);
	return 0;
}

static int null_dereg_mr(struct uvd_mr *mr)
{
	return 0;
}

/* Another translation makes a new region, any other change does not: this exercises both code paths of the core. */
static int null_rereg_mr(struct uvd_mr *mr, int flags, struct uvd_mr *to, struct uvd_udata *udata)
{
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		null_reg_mr(to, udata);
		return UVD_REREG_NEW;
	}
	mr->pd = to->pd;
	mr->access = to->access;
	return UVD_REREG_CHANGED;
}

static int null_alloc_xrcd(struct uvd_xrcd *xrcd, struct uvd_udata *udata)
{
	return 0;
}

static int null_dealloc_xrcd(struct uvd_xrcd *xrcd)
{
	return 0;
}

static int null_alloc_mw(struct uvd_mw *mw, struct uvd_udata *udata)
{
	static atomic_uint keys = 1;

	mw->rkey = atomic_fetch_add_explicit(&keys, 1, memory_order_relaxed);
	return 0;
}

static int null_dealloc_mw(struct uvd_mw *mw)
{
	return 0;
}

static int null_create_ah(struct uvd_ah *ah, struct uvd_udata *udata)
{
	return 0;
}

static int null_destroy_ah(struct uvd_ah *ah)
{
	return 0;
}

static int null_create_cq(struct uvd_cq *cq, struct uvd_udata *udata)
{
	return uvd_cq_ring_init(&((struct null_cq *)cq)->ring, cq, cq->context->dev->config.limits.max_cqe, NULL);
}

static int null_destroy_cq(struct uvd_cq *cq)
{
	uvd_cq_ring_destroy(&((struct null_cq *)cq)->ring);
	return 0;
}

static uint64_t null_query_cq_lost(struct uvd_cq *cq)
{
	return uvd_cq_ring_lost(&((struct null_cq *)cq)->ring);
}

static int null_poll_cq(struct uvd_cq *cq, int n, struct ibv_wc *wc)
{
	return uvd_cq_ring_poll(&((struct null_cq *)cq)->ring, n, wc);
}

static int null_req_notify_cq(struct uvd_cq *cq, bool solicited_only)
{
	return uvd_cq_ring_arm(&((struct null_cq *)cq)->ring, solicited_only);
}

static int null_resize_cq(struct uvd_cq *cq, int cqe, struct uvd_udata *udata)
{
	return uvd_cq_ring_resize(&((struct null_cq *)cq)->ring, cq, cqe, cq->context->dev->config.limits.max_cqe,
				  udata);
}

static int null_create_qp(struct uvd_qp *base, struct uvd_qp_init_attr *init, struct uvd_udata *udata)
{
	static atomic_uint numbers;
	struct null_qp *qp = (struct null_qp *)base;

	/* Numbers 0 and 1 belong to the management QPs. */
	base->qp_num = 2 + atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) % 0xfffff0;
	qp->sq_sig_all = init->sq_sig_all;
	qp->attr.qp_state = IBV_QPS_RESET;
	qp->attr.cap = init->cap;
	pthread_mutex_init(&qp->lock, NULL);
	return 0;
}

static int null_destroy_qp(struct uvd_qp *base)
{
	pthread_mutex_destroy(&((struct null_qp *)base)->lock);
	return 0;
}

static int null_modify_qp(struct uvd_qp *base, const struct ibv_qp_attr *attr, int mask, struct uvd_udata *udata)
{
	struct null_qp *qp = (struct null_qp *)base;
	enum ibv_qp_state cur, next;
	struct uvd_why why;

	pthread_mutex_lock(&qp->lock);
	cur = mask & IBV_QP_CUR_STATE ? attr->cur_qp_state : qp->attr.qp_state;
	next = mask & IBV_QP_STATE ? attr->qp_state : cur;
	why = uvd_modify_qp_why(cur, next, base->qp_type, mask);
	if (!why.reason) {
		qp->attr.qp_state = next;
		if (mask & IBV_QP_PORT)
			qp->attr.port_num = attr->port_num;
		if (mask & IBV_QP_ACCESS_FLAGS)
			qp->attr.qp_access_flags = attr->qp_access_flags;
	}
	pthread_mutex_unlock(&qp->lock);
	return why.reason ? uvd_udata_refuse(udata, -EINVAL, &why) : 0;
}

static int null_query_qp(struct uvd_qp *base, struct ibv_qp_attr *attr, int mask, struct uvd_qp_init_attr *init)
{
	struct null_qp *qp = (struct null_qp *)base;

	pthread_mutex_lock(&qp->lock);
	*attr = qp->attr;
	pthread_mutex_unlock(&qp->lock);
	attr->cur_qp_state = attr->qp_state;
	init->cap = attr->cap;
	init->sq_sig_all = qp->sq_sig_all;
	return 0;
}

static int null_post_send(struct uvd_qp *base, const struct uvd_send_wr *wr, const struct uvd_send_wr **bad,
			  struct uvd_work *work)
{
	struct null_qp *qp = (struct null_qp *)base;
	struct null_cq *cq = (struct null_cq *)base->send_cq;
	bool notify = false;

	for (; wr && cq; wr = wr->next) {
		struct ibv_wc wc = {
			.wr_id = wr->wr_id,
			.status = IBV_WC_SUCCESS,
			.opcode = IBV_WC_SEND,
			.qp_num = base->qp_num,
		};

		uvd_comp_cntr_count(base, UVD_COMP_CNTR_SEND, true);
		if (qp->sq_sig_all || (wr->send_flags & IBV_SEND_SIGNALED))
			notify |= uvd_cq_ring_add(&cq->ring, &wc, false);
	}
	if (notify)
		uvd_cq_ring_notify(&cq->ring, &cq->cq);
	return 0;
}

static int null_post_recv(struct uvd_qp *qp, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad)
{
	return 0;
}

static int null_create_srq(struct uvd_srq *srq, const struct ibv_srq_init_attr *attr, struct uvd_udata *udata)
{
	static atomic_uint numbers;

	if ((unsigned int)srq->srq_type > IBV_SRQT_TM)
		return -EOPNOTSUPP;
	srq->attr = attr->attr;
	srq->srq_num = 1 + atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) % 0xffffff;
	return 0;
}

static int null_modify_srq(struct uvd_srq *srq, const struct ibv_srq_attr *attr, int mask, struct uvd_udata *udata)
{
	return 0;
}

static int null_query_srq(struct uvd_srq *srq, struct ibv_srq_attr *attr)
{
	*attr = srq->attr;
	return 0;
}

static int null_destroy_srq(struct uvd_srq *srq)
{
	return 0;
}

static int null_post_srq_recv(struct uvd_srq *srq, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad)
{
	return 0;
}

static int null_mcast(struct uvd_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return 0;
}

static int null_create_wq(struct uvd_wq *wq, struct ibv_wq_init_attr *init, struct uvd_udata *udata)
{
	static atomic_uint numbers;

	if (init->wq_type != IBV_WQT_RQ)
		return -EINVAL;
	if (init->create_flags >= IBV_WQ_FLAGS_RESERVED)
		return -EOPNOTSUPP;
	wq->wq_num = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) & 0xffffff;
	return 0;
}

/* As mlx4: a WQ in ERR must be reset before it can become RDY, and a WQ in RESET cannot go to ERR. */
static int null_modify_wq(struct uvd_wq *wq, const struct ibv_wq_attr *attr, struct uvd_udata *udata)
{
	uint32_t cur = attr->curr_wq_state;

	if (attr->wq_state == IBV_WQS_RDY && cur == IBV_WQS_ERR)
		return -EINVAL;
	if (attr->wq_state == IBV_WQS_ERR && cur == IBV_WQS_RESET)
		return -EINVAL;
	return atomic_compare_exchange_strong(&wq->state, &cur, attr->wq_state) ? 0 : -EINVAL;
}

static int null_destroy_wq(struct uvd_wq *wq)
{
	return 0;
}

static int null_create_rwq_ind_table(struct uvd_rwq_ind_table *table, struct uvd_udata *udata)
{
	static atomic_uint numbers;

	table->ind_tbl_num = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) & 0xffffff;
	return 0;
}

static int null_destroy_rwq_ind_table(struct uvd_rwq_ind_table *table)
{
	return 0;
}

static int null_create_flow(struct uvd_flow *flow, struct uvd_udata *udata)
{
	return flow->type > IBV_FLOW_ATTR_SNIFFER ? -EINVAL : 0;
}

static int null_destroy_flow(struct uvd_flow *flow)
{
	return 0;
}

static int null_destroy_flow_action(struct uvd_flow_action *action)
{
	return 0;
}

const struct uvd_backend uvd_backend_null = {
	.name = "null",
	.size_context = sizeof(struct uvd_context),
	.size_pd = sizeof(struct uvd_pd),
	.size_xrcd = sizeof(struct uvd_xrcd),
	.size_mr = sizeof(struct uvd_mr),
	.size_mw = sizeof(struct uvd_mw),
	.size_ah = sizeof(struct uvd_ah),
	.size_cq = sizeof(struct null_cq),
	.size_srq = sizeof(struct uvd_srq),
	.size_qp = sizeof(struct null_qp),
	.size_wq = sizeof(struct uvd_wq),
	.size_rwq_ind_table = sizeof(struct uvd_rwq_ind_table),
	.size_flow = sizeof(struct uvd_flow),
	.size_dm = sizeof(struct uvd_dm),
	.size_dmah = sizeof(struct uvd_dmah),
	.size_counters = sizeof(struct uvd_counters),
	.size_comp_cntr = sizeof(struct uvd_comp_cntr),
	.open = null_open,
	.close = null_close,
	.query_device = null_query_device,
	.query_port = uvd_config_query_port,
	.query_gid = uvd_config_query_gid,
	.alloc_context = null_alloc_context,
	.dealloc_context = null_dealloc_context,
	.alloc_pd = null_alloc_pd,
	.dealloc_pd = null_dealloc_pd,
	.reg_mr = null_reg_mr,
	.dereg_mr = null_dereg_mr,
	.rereg_mr = null_rereg_mr,
	.alloc_xrcd = null_alloc_xrcd,
	.dealloc_xrcd = null_dealloc_xrcd,
	.alloc_mw = null_alloc_mw,
	.dealloc_mw = null_dealloc_mw,
	.create_ah = null_create_ah,
	.destroy_ah = null_destroy_ah,
	.create_cq = null_create_cq,
	.destroy_cq = null_destroy_cq,
	.poll_cq = null_poll_cq,
	.query_cq_lost = null_query_cq_lost,
	.req_notify_cq = null_req_notify_cq,
	.resize_cq = null_resize_cq,
	.create_srq = null_create_srq,
	.modify_srq = null_modify_srq,
	.query_srq = null_query_srq,
	.destroy_srq = null_destroy_srq,
	.post_srq_recv = null_post_srq_recv,
	.create_wq = null_create_wq,
	.modify_wq = null_modify_wq,
	.destroy_wq = null_destroy_wq,
	.create_rwq_ind_table = null_create_rwq_ind_table,
	.destroy_rwq_ind_table = null_destroy_rwq_ind_table,
	.create_qp = null_create_qp,
	.modify_qp = null_modify_qp,
	.query_qp = null_query_qp,
	.destroy_qp = null_destroy_qp,
	.create_flow = null_create_flow,
	.destroy_flow = null_destroy_flow,
	.destroy_flow_action = null_destroy_flow_action,
	.post_send = null_post_send,
	.post_recv = null_post_recv,
	.attach_mcast = null_mcast,
	.detach_mcast = null_mcast,
	.query_context = null_query_context,
	.query_port_speed = uvd_config_query_port_speed,
	.modify_cq = null_modify_cq,
	.create_cq_umem = null_create_cq,
	.alloc_dm = null_dm,
	.dealloc_dm = null_dm,
	.reg_dm_mr = null_reg_mr,
	.reg_dmabuf_mr = null_reg_mr,
	.advise_mr = null_advise_mr,
	.alloc_dmah = null_dmah,
	.dealloc_dmah = null_dmah,
	.pgoff_to_mmap_entry = null_pgoff_to_mmap_entry,
	.create_counters = null_counters,
	.destroy_counters = null_counters,
	.read_counters = null_read_counters,
	.bind_counters = null_bind_counters,
	.create_comp_cntr = null_comp_cntr,
	.destroy_comp_cntr = null_comp_cntr,
	.modify_comp_cntr = uvd_comp_cntr_modify,
	.read_comp_cntr = uvd_comp_cntr_read,
	.qp_attach_comp_cntr = uvd_comp_cntr_attach,
	.query_comp_cntr_caps = uvd_comp_cntr_caps,
};
