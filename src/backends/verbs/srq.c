/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared receive queues. */
#include <errno.h>
#include "backends/verbs/verbs.h"

int hca_create_srq(struct uvd_srq *base, const struct ibv_srq_init_attr *attr, struct uvd_udata *udata)
{
	struct hca_srq *srq = (struct hca_srq *)base;
	struct ibv_srq_init_attr request = { .srq_context = base, .attr = attr->attr };

	if (atomic_load(&hca_device(base->pd->context->dev)->dead))
		return -EIO;
	if (base->srq_type != IBV_SRQT_BASIC)
		return -EOPNOTSUPP;
	srq->adapter = ibv_create_srq(((struct hca_pd *)base->pd)->adapter, &request);
	if (!srq->adapter)
		return hca_errno();
	base->attr = request.attr;
	srq->max_sge = request.attr.max_sge;
	hca_queue_init(&srq->rq, request.attr.max_wr);
	return 0;
}

int hca_modify_srq(struct uvd_srq *base, const struct ibv_srq_attr *attr, int mask, struct uvd_udata *udata)
{
	struct ibv_srq_attr copy = *attr;

	if (atomic_load(&hca_device(base->pd->context->dev)->dead))
		return -EIO;
	return -ibv_modify_srq(((struct hca_srq *)base)->adapter, &copy, mask);
}

int hca_query_srq(struct uvd_srq *base, struct ibv_srq_attr *attr)
{
	if (atomic_load(&hca_device(base->pd->context->dev)->dead))
		return -EIO;
	return -ibv_query_srq(((struct hca_srq *)base)->adapter, attr);
}

int hca_destroy_srq(struct uvd_srq *base)
{
	struct hca_context *context = hca_context(base->pd->context);
	struct hca_srq *srq = (struct hca_srq *)base;
	int ret = -ibv_destroy_srq(srq->adapter);

	if (ret && !atomic_load(&hca_device(base->pd->context->dev)->dead))
		return ret;
	uvd_lock(&context->lock);
	hca_queue_drop(context, &srq->rq);
	uvd_unlock(&context->lock);
	return 0;
}
