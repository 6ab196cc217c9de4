/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared receive queues. The errors are those of the kernel's rdmavt. */
#include <errno.h>
#include <string.h>
#include "backends/soft/soft.h"
#include "explain/explain.h"

int soft_create_srq(struct uvd_srq *base, const struct ibv_srq_init_attr *init, struct uvd_udata *udata)
{
	struct soft_device *dev = soft_device(base->pd->context->dev);
	const struct uvd_limits *limits = &dev->ibdev->config.limits;
	const struct ibv_srq_attr *attr = &init->attr;
	struct soft_srq *srq = soft_srq(base);
	int err;

	if (base->srq_type != IBV_SRQT_BASIC && base->srq_type != IBV_SRQT_XRC)
		return uvd_udata_refuse(udata, -EOPNOTSUPP,
					&uvd_why(UNSUPPORTED, { .word = "srq_type" }, { base->srq_type }));
	if (!attr->max_sge || attr->max_sge > (uint32_t)limits->max_srq_sge || !attr->max_wr ||
	    (!base->queue && attr->max_wr > (uint32_t)limits->max_srq_wr))
		return -EINVAL;
	err = soft_count_told(&dev->num_srqs, limits->max_srq, "SRQs", udata);
	if (err)
		return err;
	srq->dev = dev;
	srq->max_sge = attr->max_sge;
	srq->limit = attr->srq_limit;
	err = soft_rq_init(&srq->rq, base->pd->context->account, attr->max_wr, srq->max_sge, base->queue);
	if (err) {
		dev->num_srqs--;
		return err;
	}
	pthread_mutex_init(&srq->lock, NULL);
	INIT_LIST_HEAD(&srq->waiters);
	err = base->srq_type == IBV_SRQT_XRC ? soft_srqn_add(srq) : 0;
	if (!err)
		return 0;
	pthread_mutex_destroy(&srq->lock);
	soft_rq_destroy(&srq->rq);
	dev->num_srqs--;
	return err;
}

/*
 * Wakes all QPs that still wait for a receive of this SRQ. Call after the SRQ has left the table of numbers. A
 * concurrent soft_srq_forget() uses the SRQ under the table's lock. This function takes that lock, too, so the SRQ is
 * not freed meanwhile.
 */
static void send_away(struct soft_srq *srq)
{
	struct soft_srqn_table *table = &srq->dev->endpoints->srqns;
	struct soft_qp *qp;

	do {
		pthread_mutex_lock(&table->lock);
		qp = soft_srq_next_waiter(srq, true);
		pthread_mutex_unlock(&table->lock);
		if (qp) {
			soft_kick_peer(qp);
			soft_ref_put(&qp->ref);
		}
	} while (qp);
}

static void end_xrc(struct soft_srq *srq)
{
	soft_srqn_remove(srq);
	send_away(srq);
}

int soft_destroy_srq(struct uvd_srq *base)
{
	struct soft_srq *srq = soft_srq(base);

	if (base->srq_type == IBV_SRQT_XRC)
		end_xrc(srq);
	pthread_mutex_destroy(&srq->lock);
	soft_rq_destroy(&srq->rq);
	srq->dev->num_srqs--;
	return 0;
}

static int srq_refuse_above(struct uvd_udata *udata, const char *field, uint32_t value, uint32_t most)
{
	return uvd_udata_refuse(udata, -EINVAL, &uvd_why(RANGE, { .word = field }, { value }, { 0 }, { most }));
}

/* Moves the queued receives to *ring, and swaps that with the SRQ's. Caller holds srq->lock. Returns 0 or -EINVAL. */
static int replace_ring(struct soft_srq *srq, struct soft_ring *ring, struct uvd_udata *udata)
{
	struct soft_ring old = srq->rq.ring;
	void *wqe;

	if (old.count > ring->size)
		return uvd_udata_refuse(udata, -EINVAL, &uvd_why(QUEUE_HOLDS, { .word = "max_wr" }, { ring->size }));
	for (; (wqe = soft_ring_peek(&old, 0)); soft_ring_pop(&old)) {
		memcpy(soft_ring_next(ring), wqe, ring->entry_size);
		soft_ring_push(ring);
	}
	old = srq->rq.ring;
	srq->rq.ring = *ring;
	*ring = old;
	return 0;
}

static int srq_resize(struct soft_srq *srq, const struct ibv_srq_attr *attr, int mask, struct uvd_udata *udata)
{
	const uint32_t most = srq->dev->ibdev->config.limits.max_srq_wr;
	struct soft_ring ring = { 0 };
	uint32_t limit;
	int err;

	if (srq->rq.mapped)
		return -EOPNOTSUPP;
	if (attr->max_wr > most)
		return srq_refuse_above(udata, "max_wr", attr->max_wr, most);
	err = soft_ring_init(&ring, srq->rq.ring.account, attr->max_wr, soft_recv_wqe_size(srq->max_sge));
	if (err)
		return err;
	pthread_mutex_lock(&srq->lock);
	limit = mask & IBV_SRQ_LIMIT ? attr->srq_limit : srq->limit;
	if (limit > attr->max_wr)
		err = srq_refuse_above(udata, "srq_limit", limit, attr->max_wr);
	else
		err = replace_ring(srq, &ring, udata);
	if (!err)
		srq->limit = limit;
	pthread_mutex_unlock(&srq->lock);
	/* The SRQ's old ring now, or after an error the new one. */
	soft_ring_destroy(&ring);
	return err;
}

int soft_modify_srq(struct uvd_srq *base, const struct ibv_srq_attr *attr, int mask, struct uvd_udata *udata)
{
	struct soft_srq *srq = soft_srq(base);
	int err = 0;

	if (mask & IBV_SRQ_MAX_WR)
		return srq_resize(srq, attr, mask, udata);
	if (!(mask & IBV_SRQ_LIMIT))
		return 0;
	pthread_mutex_lock(&srq->lock);
	if (attr->srq_limit > soft_rq_size(&srq->rq))
		err = srq_refuse_above(udata, "srq_limit", attr->srq_limit, soft_rq_size(&srq->rq));
	else
		srq->limit = attr->srq_limit;
	pthread_mutex_unlock(&srq->lock);
	return err;
}

int soft_replace_srq_queue(struct uvd_srq *base, struct uvd_queue **queue)
{
	struct soft_srq *srq = soft_srq(base);
	struct uvd_queue *to = *queue;
	int err = 0;

	pthread_mutex_lock(&srq->lock);
	if (to->ops->move(srq->rq.mapped, to)) {
		*queue = srq->rq.mapped;
		srq->rq.mapped = base->queue = to;
		base->attr.max_wr = to->shape.entries - 1;
		/* The new queue has the receives that we had copied from the old one: drop the copies. */
		soft_ring_clear(&srq->rq.ring);
	} else {
		err = -EINVAL;
	}
	pthread_mutex_unlock(&srq->lock);
	return err;
}

int soft_query_srq(struct uvd_srq *base, struct ibv_srq_attr *attr)
{
	struct soft_srq *srq = soft_srq(base);

	pthread_mutex_lock(&srq->lock);
	attr->max_wr = soft_rq_size(&srq->rq);
	attr->max_sge = srq->max_sge;
	attr->srq_limit = srq->limit;
	pthread_mutex_unlock(&srq->lock);
	return 0;
}

/* ---- receives ---------------------------------------------------------------------------------------------------- */

int soft_post_srq_recv(struct uvd_srq *base, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad)
{
	struct soft_srq *srq = soft_srq(base);
	struct soft_qp *qp;
	int err = 0;

	pthread_mutex_lock(&srq->lock);
	for (; wr; wr = wr->next) {
		err = base->queue ? -EINVAL : soft_queue_recv(&srq->rq.ring, srq->max_sge, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	pthread_mutex_unlock(&srq->lock);
	while ((qp = soft_srq_next_waiter(srq, false))) {
		soft_kick_peer(qp);
		soft_ref_put(&qp->ref);
	}
	return err;
}

/* ---- XRC domains -------------------------------------------------------------------------------------------------- */

int soft_alloc_xrcd(struct uvd_xrcd *xrcd, struct uvd_udata *udata)
{
	return soft_count(&soft_device(xrcd->dev)->num_xrcds, xrcd->dev->config.limits.max_xrcd);
}

int soft_dealloc_xrcd(struct uvd_xrcd *xrcd)
{
	soft_device(xrcd->dev)->num_xrcds--;
	return 0;
}
