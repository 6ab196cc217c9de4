/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completion queues. A poll takes completions from the adapter's CQ under the context's lock, so that those of one QP
 * are looked at in their order. Then it copies to the client what has arrived, without the lock: the client's memory
 * can block.
 *
 * A completion can be forged: a client that has a copy of its context's device file can let QPs of its own complete into
 * our CQ, with whatever in the completion, and without end. So a completion only chooses one of the records of this CQ's
 * own queues, and how many of the record's bytes are copied; the rest of it goes to the client as it is. No loop takes
 * more forged completions than the CQ holds.
 */
#include <errno.h>
#include "explain/explain.h"
#include "backends/verbs/verbs.h"

enum { POLL_AT_ONCE = 16 };

int hca_create_cq(struct uvd_cq *base, struct uvd_udata *udata)
{
	struct hca_context *context = hca_context(base->context);
	struct hca_cq *cq = (struct hca_cq *)base;
	int ret;

	if (atomic_load(&hca_device(base->context->dev)->dead))
		return -EIO;
	if (base->flags)
		return -EOPNOTSUPP;
	INIT_LIST_HEAD(&cq->backlog);
	cq->charged = hca_cq_bytes(base->cqe);
	ret = hca_charge_rings(base->context, HCA_CQ_RINGS, cq->charged);
	if (ret)
		return ret;
	cq->adapter = ibv_create_cq(context->adapter, base->cqe, base, context->channel, base->comp_vector);
	if (!cq->adapter) {
		ret = hca_errno();
		hca_uncharge_rings(base->context, HCA_CQ_RINGS, cq->charged);
		return ret;
	}
	base->cqe = cq->adapter->cqe;
	hca_object_add(context, &cq->object, HCA_CQ, cq->adapter);
	return 0;
}

static int cq_end(void *adapter)
{
	return ibv_destroy_cq(adapter);
}

int hca_destroy_cq(struct uvd_cq *base)
{
	struct hca_cq *cq = (struct hca_cq *)base;
	struct hca_context *context = hca_context(base->context);
	int ret = hca_object_destroy(context, &cq->object, cq_end);

	if (ret)
		return ret;
	uvd_lock(&context->lock);
	hca_records_free(context, &cq->backlog);
	uvd_unlock(&context->lock);
	hca_uncharge_rings(base->context, HCA_CQ_RINGS, cq->charged);
	return 0;
}

int hca_req_notify_cq(struct uvd_cq *base, bool solicited_only)
{
	if (atomic_load(&hca_device(base->context->dev)->dead))
		return -EIO;
	return hca_result(ibv_req_notify_cq(((struct hca_cq *)base)->adapter, solicited_only));
}

int hca_resize_cq(struct uvd_cq *base, int cqe, struct uvd_udata *udata)
{
	struct hca_context *context = hca_context(base->context);
	struct hca_cq *cq = (struct hca_cq *)base;
	uint64_t old, bytes = hca_cq_bytes(cqe);
	int ret;

	if (atomic_load(&hca_device(base->context->dev)->dead))
		return -EIO;
	/* The old ring and the new one exist beside each other. */
	ret = hca_charge_rings(base->context, HCA_CQ_RINGS, bytes);
	if (ret)
		return ret;
	uvd_lock(&context->lock);
	ret = hca_result(ibv_resize_cq(cq->adapter, cqe));
	old = ret ? bytes : cq->charged;
	if (!ret) {
		base->cqe = cq->adapter->cqe;
		cq->charged = bytes;
	}
	uvd_unlock(&context->lock);
	hca_uncharge_rings(base->context, HCA_CQ_RINGS, old);
	return ret;
}

/* ---- polling ----------------------------------------------------------------------------------------------------- */

/* Completions that were taken from the adapter, and the records that are complete with each. */
struct hca_polled {
	struct ibv_wc wc[POLL_AT_ONCE];
	struct list_head done[POLL_AT_ONCE]; /* records that belong to no queue any more */
	int num;
	int room; /* completions that the CQ holds */
};

/*
 * Takes the completed request out of its queue, and those before it: a send queue completes in order, and those were
 * not signalled. A receive stands for itself.
 */
static void record_complete(struct hca_record *r, struct list_head *done)
{
	struct hca_queue *queue = r->queue;
	struct hca_record *first;

	do {
		first = r->receives ? r : list_first_entry(&queue->records, struct hca_record, of_queue);
		hca_record_dequeue(first);
		list_add_tail(&first->of_queue, done);
	} while (first != r);
}

/*
 * Returns false if nobody waits for the request: its QP was reset or destroyed, its post has failed, or it does not
 * complete here.
 */
static bool poll_translate(struct hca_context *context, const struct hca_cq *cq, struct ibv_wc *wc,
			   struct list_head *done)
{
	struct hca_record *r = hca_record_find(context, wc->wr_id);

	INIT_LIST_HEAD(done);
	if (!r || r->refused || (r->queue->cq && r->queue->cq != cq))
		return false;
	wc->wr_id = r->wr_id;
	record_complete(r, done);
	return true;
}

/* Takes n completions of the backlog at most. Caller holds the context's lock. */
static void poll_backlog(struct hca_cq *cq, int n, struct hca_polled *p)
{
	struct hca_record *r;

	for (p->num = 0; p->num < n && !list_empty(&cq->backlog); p->num++) {
		INIT_LIST_HEAD(&p->done[p->num]);
		do {
			r = list_first_entry(&cq->backlog, struct hca_record, of_queue);
			list_del_init(&r->of_queue);
			list_add_tail(&r->of_queue, &p->done[p->num]);
		} while (r->completes_with_next);
		p->wc[p->num] = r->wc;
	}
}

/* Takes completions, n and POLL_AT_ONCE at most. Returns how many the CQ gave, or a negative errno. */
static int poll_take(struct hca_cq *cq, int n, struct hca_polled *p)
{
	struct hca_context *context = hca_context(cq->cq.context);
	struct ibv_wc wc[POLL_AT_ONCE];
	int got, kept;

	uvd_lock(&context->lock);
	poll_backlog(cq, n, p);
	kept = p->num;
	p->room = cq->adapter->cqe + 1;
	got = kept < n ? ibv_poll_cq(cq->adapter, n - kept, wc) : 0;
	for (int i = 0; i < got; i++) {
		p->wc[p->num] = wc[i];
		p->num += poll_translate(context, cq, &p->wc[p->num], &p->done[p->num]);
	}
	uvd_unlock(&context->lock);
	return got < 0 && !kept ? -EIO : kept + (got < 0 ? 0 : got);
}

void hca_cq_drain(struct hca_context *context, struct hca_cq *cq)
{
	struct list_head done;
	struct hca_record *r;
	struct ibv_wc wc;

	for (int left = cq->adapter->cqe + 1; left && ibv_poll_cq(cq->adapter, 1, &wc) > 0; left--) {
		if (!poll_translate(context, cq, &wc, &done))
			continue;
		while (!list_empty(&done)) {
			r = list_first_entry(&done, struct hca_record, of_queue);
			list_del_init(&r->of_queue);
			r->completes_with_next = !list_empty(&done);
			r->wc = wc;
			list_add_tail(&r->of_queue, &cq->backlog);
		}
	}
}

void hca_cq_forget(struct hca_context *context, struct hca_cq *cq, const struct uvd_qp *qp)
{
	struct hca_record *r, *next;

	/* Each record of a completion has the same wc: all of them go. */
	list_for_each_entry_safe(r, next, &cq->backlog, of_queue)
		if (r->wc.qp_num == qp->qp_num && !(r->receives && qp->srq)) {
			list_del_init(&r->of_queue);
			hca_record_free(context, r);
		}
}

/* Copies to the client what a request has brought. Returns 0 or -EFAULT. */
static int record_deliver(struct hca_context *context, const struct hca_record *r, const struct ibv_wc *wc)
{
	uint32_t length = r->length;

	if (!r->arrives)
		return 0;
	if (r->receives && wc->byte_len < length)
		length = wc->byte_len;
	return hca_scatter(context, r->pd, r->sges, r->num_sge, r->buffer.data, length);
}

static void poll_deliver(struct hca_context *context, struct ibv_wc *wc, struct list_head *done)
{
	struct hca_record *r, *next;
	const bool failed = wc->status != IBV_WC_SUCCESS;

	list_for_each_entry(r, done, of_queue) {
		const bool last = r->of_queue.next == done;

		/*
		 * A request that failed brings no data. Those before it have succeeded, but the client of a refused one
		 * was told that its memory stays as it is.
		 */
		if (!r->refused && !(last && failed) && record_deliver(context, r, wc))
			wc->status = IBV_WC_LOC_PROT_ERR;
	}
	uvd_lock(&context->lock);
	list_for_each_entry_safe(r, next, done, of_queue)
		hca_record_free(context, r);
	uvd_unlock(&context->lock);
}

/* An adapter tells no more than its own code. */
static void explain_failed(struct uvd_context *context, const struct ibv_wc *wc)
{
	const struct uvd_explained e = {
		.kind = UVD_EXPLAINED_COMPLETION,
		.why = uvd_why(ADAPTER, { wc->vendor_err }),
		.object = "QP",
		.number = wc->qp_num,
		.status = wc->status,
		.is_recv = wc->opcode & IBV_WC_RECV,
		.opcode = uvd_wr_opcode_of(wc->opcode),
		.wr_id = wc->wr_id,
	};

	uvd_explain(context->dev, context, &e);
}

int hca_poll_cq(struct uvd_cq *base, int n, struct ibv_wc *wc)
{
	struct hca_context *context = hca_context(base->context);
	struct hca_polled p;
	int want, got, count = 0, dropped = 0;

	if (atomic_load(&hca_device(base->context->dev)->dead))
		return -EIO;
	while (count < n) {
		want = n - count < POLL_AT_ONCE ? n - count : POLL_AT_ONCE;
		got = poll_take((struct hca_cq *)base, want, &p);
		if (got < 0)
			return count ? count : got;
		for (int i = 0; i < p.num; i++) {
			poll_deliver(context, &p.wc[i], &p.done[i]);
			if (p.wc[i].status != IBV_WC_SUCCESS && p.wc[i].status != IBV_WC_WR_FLUSH_ERR)
				explain_failed(base->context, &p.wc[i]);
			wc[count++] = p.wc[i];
		}
		/* Some of them may have been dropped. The adapter's CQ is empty only if it gave less than it could. */
		dropped += got - p.num;
		if (got < want || dropped > p.room)
			break;
	}
	return count;
}
