/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared receive queues. */
#include <errno.h>
#include "backends/verbs/verbs.h"

/*
 * Makes the SRQ on the adapter, in the client's context. An XRC SRQ needs the domain there, too, and has a number.
 * Returns 0, or a negative errno and leaves nothing on the adapter.
 */
static int srq_make(struct hca_srq *srq, struct ibv_srq_init_attr_ex *request)
{
	struct hca_context *context = hca_context(srq->srq.pd->context);
	int ret;

	if (srq->srq.srq_type == IBV_SRQT_XRC) {
		srq->xrcd = hca_xrcd_open(context, srq->srq.xrcd);
		if (!srq->xrcd)
			return hca_errno();
		request->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
		request->xrcd = srq->xrcd;
		request->cq = ((struct hca_cq *)srq->srq.cq)->adapter;
	}
	srq->adapter = ibv_create_srq_ex(context->adapter, request);
	if (!srq->adapter) {
		ret = hca_errno();
		goto close;
	}
	ret = srq->xrcd ? hca_result(ibv_get_srq_num(srq->adapter, &srq->srq.srq_num)) : 0;
	if (!ret)
		return 0;
	ibv_destroy_srq(srq->adapter);
close:
	hca_xrcd_close(srq->xrcd);
	return ret;
}

int hca_create_srq(struct uvd_srq *base, const struct ibv_srq_init_attr *attr, struct uvd_udata *udata)
{
	const struct hca_device *dev = hca_device(base->pd->context->dev);
	struct hca_srq *srq = (struct hca_srq *)base;
	struct ibv_srq_init_attr_ex request = {
		.srq_context = base,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = base->srq_type,
		.pd = ((struct hca_pd *)base->pd)->adapter,
	};
	int ret;

	if (atomic_load(&dev->dead))
		return -EIO;
	if (base->srq_type != IBV_SRQT_BASIC && !(base->srq_type == IBV_SRQT_XRC && dev->features & HCA_XRC))
		return -EOPNOTSUPP;
	srq->charged = hca_srq_bytes(attr->attr.max_wr, attr->attr.max_sge);
	ret = hca_charge_rings(base->pd->context, HCA_SRQ_RINGS, srq->charged);
	if (ret)
		return ret;
	ret = srq_make(srq, &request);
	if (ret) {
		hca_uncharge_rings(base->pd->context, HCA_SRQ_RINGS, srq->charged);
		return ret;
	}
	base->attr = request.attr;
	srq->max_sge = request.attr.max_sge;
	hca_queue_init(&srq->rq, request.attr.max_wr);
	hca_object_add(hca_context(base->pd->context), &srq->object, HCA_SRQ, srq->adapter);
	return 0;
}

int hca_modify_srq(struct uvd_srq *base, const struct ibv_srq_attr *attr, int mask, struct uvd_udata *udata)
{
	struct hca_context *context = hca_context(base->pd->context);
	struct hca_srq *srq = (struct hca_srq *)base;
	const uint64_t bytes = mask & IBV_SRQ_MAX_WR ? hca_srq_bytes(attr->max_wr, srq->max_sge) : 0;
	struct ibv_srq_attr copy = *attr;
	uint64_t old;
	int ret;

	if (atomic_load(&hca_device(base->pd->context->dev)->dead))
		return -EIO;
	if (!bytes)
		return hca_result(ibv_modify_srq(srq->adapter, &copy, mask));
	ret = hca_charge_rings(base->pd->context, HCA_SRQ_RINGS, bytes);
	if (ret)
		return ret;
	/* Two threads may modify an SRQ at once: it is charged for the size that the adapter had last. */
	uvd_lock(&context->lock);
	ret = hca_result(ibv_modify_srq(srq->adapter, &copy, mask));
	old = ret ? bytes : srq->charged;
	if (!ret)
		srq->charged = bytes;
	uvd_unlock(&context->lock);
	hca_uncharge_rings(base->pd->context, HCA_SRQ_RINGS, old);
	return ret;
}

int hca_query_srq(struct uvd_srq *base, struct ibv_srq_attr *attr)
{
	if (atomic_load(&hca_device(base->pd->context->dev)->dead))
		return -EIO;
	return hca_result(ibv_query_srq(((struct hca_srq *)base)->adapter, attr));
}

static int srq_end(void *adapter)
{
	return ibv_destroy_srq(adapter);
}

int hca_destroy_srq(struct uvd_srq *base)
{
	struct hca_context *context = hca_context(base->pd->context);
	struct hca_srq *srq = (struct hca_srq *)base;
	int ret = hca_object_destroy(context, &srq->object, srq_end);

	if (ret)
		return ret;
	hca_xrcd_close(srq->xrcd);
	uvd_lock(&context->lock);
	hca_queue_drop(context, &srq->rq);
	uvd_unlock(&context->lock);
	hca_uncharge_rings(base->pd->context, HCA_SRQ_RINGS, srq->charged);
	return 0;
}
