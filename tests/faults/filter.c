/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A backend in front of another one: it fails when armed, and counts the objects that exist behind it.
 *
 * A new function of struct uvd_backend needs one line in OPS: its name, parameters, arguments, and the kind of object
 * that it makes (1) or destroys (-1), if any.
 */
#include "faults.h"

#define OPS(X) \
	X(query_device, (struct uvd_ibdev * dev, struct ibv_device_attr_ex * attr, struct uvd_udata * udata), \
	  (dev, attr, udata), T_NONE, 0) \
	X(query_port, (struct uvd_ibdev * dev, uint8_t port, struct ibv_port_attr * attr), (dev, port, attr), T_NONE, \
	  0) \
	X(query_gid, (struct uvd_ibdev * dev, uint8_t port, unsigned int index, struct ibv_gid_entry *entry), \
	  (dev, port, index, entry), T_NONE, 0) \
	X(alloc_context, (struct uvd_context * context, struct uvd_udata * udata), (context, udata), T_CONTEXT, 1) \
	X(alloc_pd, (struct uvd_pd * pd, struct uvd_udata * udata), (pd, udata), T_PD, 1) \
	X(dealloc_pd, (struct uvd_pd * pd), (pd), T_PD, -1) \
	X(reg_mr, (struct uvd_mr * mr, struct uvd_udata * udata), (mr, udata), T_MR, 1) \
	X(dereg_mr, (struct uvd_mr * mr), (mr), T_MR, -1) \
	X(alloc_xrcd, (struct uvd_xrcd * xrcd, struct uvd_udata * udata), (xrcd, udata), T_XRCD, 1) \
	X(dealloc_xrcd, (struct uvd_xrcd * xrcd), (xrcd), T_XRCD, -1) \
	X(alloc_mw, (struct uvd_mw * mw, struct uvd_udata * udata), (mw, udata), T_MW, 1) \
	X(dealloc_mw, (struct uvd_mw * mw), (mw), T_MW, -1) \
	X(create_ah, (struct uvd_ah * ah, struct uvd_udata * udata), (ah, udata), T_AH, 1) \
	X(destroy_ah, (struct uvd_ah * ah), (ah), T_AH, -1) \
	X(create_cq, (struct uvd_cq * cq, struct uvd_udata * udata), (cq, udata), T_CQ, 1) \
	X(destroy_cq, (struct uvd_cq * cq), (cq), T_CQ, -1) \
	X(poll_cq, (struct uvd_cq * cq, int n, struct ibv_wc *wc), (cq, n, wc), T_NONE, 0) \
	X(req_notify_cq, (struct uvd_cq * cq, bool solicited_only), (cq, solicited_only), T_NONE, 0) \
	X(resize_cq, (struct uvd_cq * cq, int cqe, struct uvd_udata *udata), (cq, cqe, udata), T_NONE, 0) \
	X(create_srq, (struct uvd_srq * srq, const struct ibv_srq_init_attr *attr, struct uvd_udata *udata), \
	  (srq, attr, udata), T_SRQ, 1) \
	X(modify_srq, (struct uvd_srq * srq, const struct ibv_srq_attr *attr, int mask, struct uvd_udata *udata), \
	  (srq, attr, mask, udata), T_NONE, 0) \
	X(query_srq, (struct uvd_srq * srq, struct ibv_srq_attr * attr), (srq, attr), T_NONE, 0) \
	X(destroy_srq, (struct uvd_srq * srq), (srq), T_SRQ, -1) \
	X(create_wq, (struct uvd_wq * wq, struct ibv_wq_init_attr * init, struct uvd_udata * udata), \
	  (wq, init, udata), T_WQ, 1) \
	X(modify_wq, (struct uvd_wq * wq, const struct ibv_wq_attr *attr, struct uvd_udata *udata), (wq, attr, udata), \
	  T_NONE, 0) \
	X(destroy_wq, (struct uvd_wq * wq), (wq), T_WQ, -1) \
	X(create_rwq_ind_table, (struct uvd_rwq_ind_table * table, struct uvd_udata * udata), (table, udata), \
	  T_RWQ_IND_TBL, 1) \
	X(destroy_rwq_ind_table, (struct uvd_rwq_ind_table * table), (table), T_RWQ_IND_TBL, -1) \
	X(create_flow, (struct uvd_flow * flow, struct uvd_udata * udata), (flow, udata), T_FLOW, 1) \
	X(destroy_flow, (struct uvd_flow * flow), (flow), T_FLOW, -1) \
	X(destroy_flow_action, (struct uvd_flow_action * action), (action), T_NONE, 0) \
	X(create_qp, (struct uvd_qp * qp, struct uvd_qp_init_attr * init, struct uvd_udata * udata), \
	  (qp, init, udata), T_QP, 1) \
	X(modify_qp, (struct uvd_qp * qp, const struct ibv_qp_attr *attr, int mask, struct uvd_udata *udata), \
	  (qp, attr, mask, udata), T_NONE, 0) \
	X(query_qp, (struct uvd_qp * qp, struct ibv_qp_attr * attr, int mask, struct uvd_qp_init_attr *init), \
	  (qp, attr, mask, init), T_NONE, 0) \
	X(destroy_qp, (struct uvd_qp * qp), (qp), T_QP, -1) \
	X(attach_mcast, (struct uvd_qp * qp, const union ibv_gid *gid, uint16_t lid), (qp, gid, lid), T_MCAST, 1) \
	X(detach_mcast, (struct uvd_qp * qp, const union ibv_gid *gid, uint16_t lid), (qp, gid, lid), T_MCAST, -1) \
	X(ring_doorbell, (struct uvd_qp * qp, struct uvd_work * work), (qp, work), T_NONE, 0) \
	X(replace_cq_queue, (struct uvd_cq * cq, struct uvd_queue * *queue), (cq, queue), T_NONE, 0) \
	X(replace_srq_queue, (struct uvd_srq * srq, struct uvd_queue * *queue), (srq, queue), T_NONE, 0) \
	X(query_context, (struct uvd_context * context), (context), T_NONE, 0) \
	X(query_port_speed, (struct uvd_ibdev * dev, uint8_t port, uint64_t * speed), (dev, port, speed), T_NONE, 0) \
	X(modify_cq, (struct uvd_cq * cq, uint16_t count, uint16_t period), (cq, count, period), T_NONE, 0) \
	X(create_cq_umem, (struct uvd_cq * cq, struct uvd_udata * udata), (cq, udata), T_CQ, 1) \
	X(alloc_dm, (struct uvd_dm * dm), (dm), T_DM, 1) \
	X(dealloc_dm, (struct uvd_dm * dm), (dm), T_DM, -1) \
	X(reg_dm_mr, (struct uvd_mr * mr, struct uvd_udata * udata), (mr, udata), T_MR, 1) \
	X(reg_dmabuf_mr, (struct uvd_mr * mr, struct uvd_udata * udata), (mr, udata), T_MR, 1) \
	X(advise_mr, \
	  (struct uvd_pd * pd, enum ibv_advise_mr_advice advice, uint32_t flags, const struct ibv_sge *sge, \
	   unsigned int num), \
	  (pd, advice, flags, sge, num), T_NONE, 0) \
	X(alloc_dmah, (struct uvd_dmah * dmah), (dmah), T_DMAH, 1) \
	X(dealloc_dmah, (struct uvd_dmah * dmah), (dmah), T_DMAH, -1) \
	X(pgoff_to_mmap_entry, (struct uvd_context * context, uint64_t pgoff, uint64_t * length), \
	  (context, pgoff, length), T_NONE, 0) \
	X(create_counters, (struct uvd_counters * counters), (counters), T_COUNTERS, 1) \
	X(destroy_counters, (struct uvd_counters * counters), (counters), T_COUNTERS, -1) \
	X(read_counters, (struct uvd_counters * counters, uint64_t * values, size_t num, uint32_t flags), \
	  (counters, values, num, flags), T_NONE, 0) \
	X(bind_counters, (struct uvd_qp * qp, struct uvd_counters * counters), (qp, counters), T_NONE, 0) \
	X(create_comp_cntr, (struct uvd_comp_cntr * cntr), (cntr), T_COMP_CNTR, 1) \
	X(destroy_comp_cntr, (struct uvd_comp_cntr * cntr), (cntr), T_COMP_CNTR, -1) \
	X(modify_comp_cntr, (struct uvd_comp_cntr * cntr, uint32_t entry, uint32_t op, uint64_t value), \
	  (cntr, entry, op, value), T_NONE, 0) \
	X(read_comp_cntr, (struct uvd_comp_cntr * cntr, uint32_t entry, uint64_t * value), (cntr, entry, value), \
	  T_NONE, 0) \
	X(qp_attach_comp_cntr, (struct uvd_qp * qp, struct uvd_comp_cntr * cntr, uint32_t mask), (qp, cntr, mask), \
	  T_NONE, 0) \
	X(query_comp_cntr_caps, (struct uvd_ibdev * dev, struct uvd_comp_cntr_caps * caps), (dev, caps), T_NONE, 0)

/* Functions that return the first work request that was not posted. */
#define POSTS(X) \
	X(post_recv, struct uvd_qp, struct uvd_recv_wr) \
	X(post_srq_recv, struct uvd_srq, struct uvd_recv_wr)

static struct uvd_backend behind;
int filter_live[NUM_THINGS];

static int counted(int ret, enum thing thing, int delta)
{
	if (ret >= 0)
		filter_live[thing] += delta;
	/* Destroying a QP detaches it from its groups; no call here has two QPs. */
	if (thing == T_QP && !filter_live[T_QP])
		filter_live[T_MCAST] = 0;
	return ret;
}

#define OP(op, params, args, thing, delta) \
	static int filter_##op params \
	{ \
		return counted(fault_here(FAULT_BACKEND) ? -BACKEND_ERRNO : behind.op args, thing, delta); \
	}
OPS(OP)

#define POST(op, queue, wr_type) \
	static int filter_##op(queue *q, const wr_type *wr, const wr_type **bad) \
	{ \
		*bad = wr; \
		return fault_here(FAULT_BACKEND) ? -BACKEND_ERRNO : behind.op(q, wr, bad); \
	}
POSTS(POST)

static int filter_post_send(struct uvd_qp *qp, const struct uvd_send_wr *wr, const struct uvd_send_wr **bad,
			    struct uvd_work *work)
{
	*bad = wr;
	return fault_here(FAULT_BACKEND) ? -BACKEND_ERRNO : behind.post_send(qp, wr, bad, work);
}

/* The backend may make a second region (UVD_REREG_NEW). The core then destroys one of the two. */
static int filter_rereg_mr(struct uvd_mr *mr, int flags, struct uvd_mr *to, struct uvd_udata *udata)
{
	int ret = fault_here(FAULT_BACKEND) ? -BACKEND_ERRNO : behind.rereg_mr(mr, flags, to, udata);

	return counted(ret, T_MR, ret == UVD_REREG_NEW);
}

static void filter_dealloc_context(struct uvd_context *context)
{
	filter_live[T_CONTEXT]--;
	behind.dealloc_context(context);
}

static bool is_filtered(const struct uvd_backend *ops, size_t offset)
{
	const char *ours = (const char *)ops + offset, *theirs = (const char *)&behind + offset;

	/* These do not run inside calls, or cannot fail. */
	if (offset == offsetof(struct uvd_backend, open) || offset == offsetof(struct uvd_backend, close) ||
	    offset == offsetof(struct uvd_backend, port_changed) ||
	    offset == offsetof(struct uvd_backend, carry_message) ||
	    offset == offsetof(struct uvd_backend, carry_completion) ||
	    offset == offsetof(struct uvd_backend, query_port_counters) ||
	    offset == offsetof(struct uvd_backend, drop_posts) ||
	    offset == offsetof(struct uvd_backend, query_qp_work) ||
	    offset == offsetof(struct uvd_backend, query_cq_lost) || offset == offsetof(struct uvd_backend, send_why))
		return true;
	return !*(void *const *)ours || *(void *const *)ours != *(void *const *)theirs;
}

const char *filter_install(struct uvd_backend *ops)
{
	static char text[80];

	behind = *ops;
	memset(filter_live, 0, sizeof(filter_live));
	ops->dealloc_context = filter_dealloc_context;
	if (behind.rereg_mr)
		ops->rereg_mr = filter_rereg_mr;
	if (behind.post_send)
		ops->post_send = filter_post_send;
#define PUT(op, ...) \
	if (behind.op) \
		ops->op = filter_##op;
	OPS(PUT)
	POSTS(PUT)
	for (size_t at = offsetof(struct uvd_backend, open); at < sizeof(*ops); at += sizeof(void *)) {
		if (is_filtered(ops, at))
			continue;
		snprintf(text, sizeof(text), "OPS in filter.c lacks function %zu of struct uvd_backend",
			 (at - offsetof(struct uvd_backend, open)) / sizeof(void *));
		return text;
	}
	return NULL;
}
