/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include "backends/soft/completion/completion.h"

static int max_cqe(struct uvd_cq *cq)
{
	return cq->context->dev->config.limits.max_cqe;
}

int soft_create_cq(struct uvd_cq *cq, struct uvd_udata *udata)
{
	struct soft_device *dev = soft_device(cq->context->dev);
	int err = uvd_cq_ring_init(&((struct soft_cq *)cq)->ring, cq, max_cqe(cq), &dev->later);

	if (err)
		return err;
	err = soft_count_told(&dev->num_cqs, dev->ibdev->config.limits.max_cq, "CQs", udata);
	if (err)
		uvd_cq_ring_destroy(&((struct soft_cq *)cq)->ring);
	return err;
}

int soft_destroy_cq(struct uvd_cq *cq)
{
	uvd_cq_ring_destroy(&((struct soft_cq *)cq)->ring);
	soft_device(cq->context->dev)->num_cqs--;
	return 0;
}

uint64_t soft_query_cq_lost(struct uvd_cq *cq)
{
	return uvd_cq_ring_lost(&((struct soft_cq *)cq)->ring);
}

int soft_poll_cq(struct uvd_cq *cq, int n, struct ibv_wc *wc)
{
	return uvd_cq_ring_poll(&((struct soft_cq *)cq)->ring, n, wc);
}

int soft_req_notify_cq(struct uvd_cq *cq, bool solicited_only)
{
	return uvd_cq_ring_arm(&((struct soft_cq *)cq)->ring, solicited_only);
}

int soft_resize_cq(struct uvd_cq *cq, int cqe, struct uvd_udata *udata)
{
	return uvd_cq_ring_resize(&((struct soft_cq *)cq)->ring, cq, cqe, max_cqe(cq), udata);
}

int soft_replace_cq_queue(struct uvd_cq *base, struct uvd_queue **queue)
{
	struct soft_cq *cq = (struct soft_cq *)base;
	struct uvd_queue *to = *queue;
	int err = 0;

	pthread_mutex_lock(&cq->ring.lock);
	if (to->ops->move(cq->ring.mapped, to)) {
		*queue = cq->ring.mapped;
		cq->ring.mapped = base->queue = to;
		base->cqe = to->shape.entries - 1;
	} else {
		err = -EINVAL;
	}
	pthread_mutex_unlock(&cq->ring.lock);
	return err;
}

void soft_cq_add(struct uvd_cq *base, const struct ibv_wc *wc, bool solicited, struct soft_due *due)
{
	struct soft_cq *cq = (struct soft_cq *)base;

	if (!cq || !uvd_cq_ring_add(&cq->ring, wc, solicited))
		return;
	for (unsigned int i = 0; i < due->num_cqs; i++)
		if (due->cqs[i] == cq)
			return;
	due->cqs[due->num_cqs++] = cq;
}

void soft_due_event(struct soft_due *due, struct uvd_qp *qp, enum ibv_event_type type)
{
	due->events[due->num_events].qp = qp;
	due->events[due->num_events++].type = type;
}

void soft_due_srq_limit(struct soft_due *due, struct uvd_srq *srq)
{
	due->limit_reached = srq;
}

void soft_due_explain(struct soft_due *due, struct soft_explained *e)
{
	soft_ref_get(e->ref);
	e->next = due->explained;
	due->explained = e;
}

/* Explains all, the oldest first, and frees them. */
static void due_explain_all(struct soft_due *due)
{
	struct soft_explained *oldest = NULL, *e;

	while ((e = due->explained)) {
		due->explained = e->next;
		e->next = oldest;
		oldest = e;
	}
	while ((e = oldest)) {
		oldest = e->next;
		uvd_explain(e->dev, e->context, &e->explained);
		soft_ref_put(e->ref);
		free(e);
	}
}

void soft_due_run(struct soft_due *due)
{
	struct uvd_srq *srq = due->limit_reached;

	/* Before the handlers: a client that sees its completion finds the explanation. */
	if (__builtin_expect(!!due->explained, 0))
		due_explain_all(due);

	for (unsigned int i = 0; i < due->num_cqs; i++)
		uvd_cq_ring_notify(&due->cqs[i]->ring, &due->cqs[i]->cq);
	for (unsigned int i = 0; i < due->num_events; i++)
		if (due->events[i].qp->event_handler)
			due->events[i].qp->event_handler(due->events[i].qp, due->events[i].type);
	if (srq && srq->event_handler)
		srq->event_handler(srq, IBV_EVENT_SRQ_LIMIT_REACHED);
	due->limit_reached = NULL;
	due->num_cqs = due->num_events = 0;
}
