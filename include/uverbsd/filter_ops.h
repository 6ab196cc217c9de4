/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The operations of struct uvd_backend that a filter can wrap: all but open and close, in whose place a filter has init
 * and exit. One list makes struct uvd_filter, the functions uvd_next_*(), and the core's stack of filters. A new
 * operation of a backend needs one entry at the end of UVD_FILTER_OPS_LATER, or the core does not compile: struct uvd_filter
 * has other fields behind UVD_FILTER_OPS_FIRST, whose places older plug-ins know.
 *
 * X(type of the result, operation, its device, (parameters), (arguments))
 */
#ifndef UVERBSD_FILTER_OPS_H
#define UVERBSD_FILTER_OPS_H

/* Removes the parentheses of one of the lists. */
#define UVD_FILTER_LIST(...) __VA_ARGS__

/* clang-format off */
#define UVD_FILTER_OPS(X) \
	UVD_FILTER_OPS_FIRST(X) \
	UVD_FILTER_OPS_LATER(X)
#define UVD_FILTER_OPS_LATER(X)
#define UVD_FILTER_OPS_FIRST(X) \
	X(int, query_device, dev, (struct uvd_ibdev *dev, struct ibv_device_attr_ex *attr, struct uvd_udata *udata), \
	  (dev, attr, udata)) \
	X(void, port_changed, dev, (struct uvd_ibdev *dev, uint8_t port, bool up), (dev, port, up)) \
	X(int, query_port, dev, (struct uvd_ibdev *dev, uint8_t port, struct ibv_port_attr *attr), (dev, port, attr)) \
	X(int, query_gid, dev, \
	  (struct uvd_ibdev *dev, uint8_t port, unsigned int index, struct ibv_gid_entry *entry), \
	  (dev, port, index, entry)) \
	X(int, alloc_context, context->dev, (struct uvd_context *context, struct uvd_udata *udata), (context, udata)) \
	X(void, dealloc_context, context->dev, (struct uvd_context *context), (context)) \
	X(int, alloc_pd, pd->context->dev, (struct uvd_pd *pd, struct uvd_udata *udata), (pd, udata)) \
	X(int, dealloc_pd, pd->context->dev, (struct uvd_pd *pd), (pd)) \
	X(int, reg_mr, mr->pd->context->dev, (struct uvd_mr *mr, struct uvd_udata *udata), (mr, udata)) \
	X(int, dereg_mr, mr->pd->context->dev, (struct uvd_mr *mr), (mr)) \
	X(int, rereg_mr, mr->pd->context->dev, \
	  (struct uvd_mr *mr, int flags, struct uvd_mr *to, struct uvd_udata *udata), (mr, flags, to, udata)) \
	X(int, alloc_xrcd, xrcd->dev, (struct uvd_xrcd *xrcd, struct uvd_udata *udata), (xrcd, udata)) \
	X(int, dealloc_xrcd, xrcd->dev, (struct uvd_xrcd *xrcd), (xrcd)) \
	X(int, alloc_mw, mw->pd->context->dev, (struct uvd_mw *mw, struct uvd_udata *udata), (mw, udata)) \
	X(int, dealloc_mw, mw->pd->context->dev, (struct uvd_mw *mw), (mw)) \
	X(int, create_ah, ah->pd->context->dev, (struct uvd_ah *ah, struct uvd_udata *udata), (ah, udata)) \
	X(int, destroy_ah, ah->pd->context->dev, (struct uvd_ah *ah), (ah)) \
	X(int, create_cq, cq->context->dev, (struct uvd_cq *cq, struct uvd_udata *udata), (cq, udata)) \
	X(int, destroy_cq, cq->context->dev, (struct uvd_cq *cq), (cq)) \
	X(int, poll_cq, cq->context->dev, (struct uvd_cq *cq, int n, struct ibv_wc *wc), (cq, n, wc)) \
	X(int, req_notify_cq, cq->context->dev, (struct uvd_cq *cq, bool solicited_only), (cq, solicited_only)) \
	X(int, resize_cq, cq->context->dev, (struct uvd_cq *cq, int cqe, struct uvd_udata *udata), (cq, cqe, udata)) \
	X(int, create_srq, srq->pd->context->dev, \
	  (struct uvd_srq *srq, const struct ibv_srq_init_attr *attr, struct uvd_udata *udata), (srq, attr, udata)) \
	X(int, modify_srq, srq->pd->context->dev, \
	  (struct uvd_srq *srq, const struct ibv_srq_attr *attr, int mask, struct uvd_udata *udata), \
	  (srq, attr, mask, udata)) \
	X(int, query_srq, srq->pd->context->dev, (struct uvd_srq *srq, struct ibv_srq_attr *attr), (srq, attr)) \
	X(int, destroy_srq, srq->pd->context->dev, (struct uvd_srq *srq), (srq)) \
	X(int, post_srq_recv, srq->pd->context->dev, \
	  (struct uvd_srq *srq, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad), (srq, wr, bad)) \
	X(int, create_wq, wq->pd->context->dev, \
	  (struct uvd_wq *wq, struct ibv_wq_init_attr *init, struct uvd_udata *udata), (wq, init, udata)) \
	X(int, modify_wq, wq->pd->context->dev, \
	  (struct uvd_wq *wq, const struct ibv_wq_attr *attr, struct uvd_udata *udata), (wq, attr, udata)) \
	X(int, destroy_wq, wq->pd->context->dev, (struct uvd_wq *wq), (wq)) \
	X(int, create_rwq_ind_table, table->context->dev, \
	  (struct uvd_rwq_ind_table *table, struct uvd_udata *udata), (table, udata)) \
	X(int, destroy_rwq_ind_table, table->context->dev, (struct uvd_rwq_ind_table *table), (table)) \
	X(int, create_qp, uvd_qp_device(qp), \
	  (struct uvd_qp *qp, struct uvd_qp_init_attr *init, struct uvd_udata *udata), (qp, init, udata)) \
	X(int, modify_qp, uvd_qp_device(qp), \
	  (struct uvd_qp *qp, const struct ibv_qp_attr *attr, int mask, struct uvd_udata *udata), \
	  (qp, attr, mask, udata)) \
	X(int, query_qp, uvd_qp_device(qp), \
	  (struct uvd_qp *qp, struct ibv_qp_attr *attr, int mask, struct uvd_qp_init_attr *init), \
	  (qp, attr, mask, init)) \
	X(int, destroy_qp, uvd_qp_device(qp), (struct uvd_qp *qp), (qp)) \
	X(int, create_flow, uvd_qp_device(flow->qp), (struct uvd_flow *flow, struct uvd_udata *udata), (flow, udata)) \
	X(int, destroy_flow, uvd_qp_device(flow->qp), (struct uvd_flow *flow), (flow)) \
	X(int, destroy_flow_action, action->context->dev, (struct uvd_flow_action *action), (action)) \
	X(int, post_send, uvd_qp_device(qp), \
	  (struct uvd_qp *qp, const struct uvd_send_wr *wr, const struct uvd_send_wr **bad, struct uvd_work *work), \
	  (qp, wr, bad, work)) \
	X(int, post_recv, uvd_qp_device(qp), \
	  (struct uvd_qp *qp, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad), (qp, wr, bad)) \
	X(int, attach_mcast, uvd_qp_device(qp), (struct uvd_qp *qp, const union ibv_gid *gid, uint16_t lid), \
	  (qp, gid, lid)) \
	X(int, detach_mcast, uvd_qp_device(qp), (struct uvd_qp *qp, const union ibv_gid *gid, uint16_t lid), \
	  (qp, gid, lid)) \
	X(int, ring_doorbell, uvd_qp_device(qp), (struct uvd_qp *qp, struct uvd_work *work), (qp, work)) \
	X(int, replace_cq_queue, cq->context->dev, (struct uvd_cq *cq, struct uvd_queue **queue), (cq, queue)) \
	X(int, replace_srq_queue, srq->pd->context->dev, (struct uvd_srq *srq, struct uvd_queue **queue), (srq, queue)) \
	X(int, query_context, context->dev, (struct uvd_context *context), (context)) \
	X(int, query_port_speed, dev, (struct uvd_ibdev *dev, uint8_t port, uint64_t *speed), (dev, port, speed)) \
	X(int, query_port_counters, dev, \
	  (struct uvd_ibdev *dev, uint8_t port, uint64_t values[UVD_PORT_COUNTERS]), (dev, port, values)) \
	X(int, modify_cq, cq->context->dev, (struct uvd_cq *cq, uint16_t count, uint16_t period), (cq, count, period)) \
	X(int, create_cq_umem, cq->context->dev, (struct uvd_cq *cq, struct uvd_udata *udata), (cq, udata)) \
	X(int, alloc_dm, dm->context->dev, (struct uvd_dm *dm), (dm)) \
	X(int, dealloc_dm, dm->context->dev, (struct uvd_dm *dm), (dm)) \
	X(int, reg_dm_mr, mr->pd->context->dev, (struct uvd_mr *mr, struct uvd_udata *udata), (mr, udata)) \
	X(int, reg_dmabuf_mr, mr->pd->context->dev, (struct uvd_mr *mr, struct uvd_udata *udata), (mr, udata)) \
	X(int, advise_mr, pd->context->dev, \
	  (struct uvd_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, const struct ibv_sge *sg_list, \
	   unsigned int num_sge), \
	  (pd, advice, flags, sg_list, num_sge)) \
	X(int, alloc_dmah, dmah->context->dev, (struct uvd_dmah *dmah), (dmah)) \
	X(int, dealloc_dmah, dmah->context->dev, (struct uvd_dmah *dmah), (dmah)) \
	X(int, pgoff_to_mmap_entry, context->dev, (struct uvd_context *context, uint64_t pgoff, uint64_t *length), \
	  (context, pgoff, length)) \
	X(int, create_counters, counters->context->dev, (struct uvd_counters *counters), (counters)) \
	X(int, destroy_counters, counters->context->dev, (struct uvd_counters *counters), (counters)) \
	X(int, read_counters, counters->context->dev, \
	  (struct uvd_counters *counters, uint64_t *values, size_t num, uint32_t flags), \
	  (counters, values, num, flags)) \
	X(int, bind_counters, uvd_qp_device(qp), (struct uvd_qp *qp, struct uvd_counters *counters), (qp, counters)) \
	X(int, create_comp_cntr, cntr->context->dev, (struct uvd_comp_cntr *cntr), (cntr)) \
	X(int, destroy_comp_cntr, cntr->context->dev, (struct uvd_comp_cntr *cntr), (cntr)) \
	X(int, modify_comp_cntr, cntr->context->dev, \
	  (struct uvd_comp_cntr *cntr, uint32_t entry, uint32_t op, uint64_t value), (cntr, entry, op, value)) \
	X(int, read_comp_cntr, cntr->context->dev, \
	  (struct uvd_comp_cntr *cntr, uint32_t entry, uint64_t *value), (cntr, entry, value)) \
	X(int, qp_attach_comp_cntr, uvd_qp_device(qp), \
	  (struct uvd_qp *qp, struct uvd_comp_cntr *cntr, uint32_t op_mask), (qp, cntr, op_mask)) \
	X(int, query_comp_cntr_caps, dev, (struct uvd_ibdev *dev, struct uvd_comp_cntr_caps *caps), (dev, caps)) \
	X(void, carry_message, uvd_qp_device(message->qp), (struct uvd_message *message), (message)) \
	X(void, carry_completion, completion->cq->context->dev, (struct uvd_completion *completion), (completion))
/* clang-format on */

#endif
