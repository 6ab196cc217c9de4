/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Posts work requests to the adapter. Those whose entries are all in borrowed regions go there as they are. Any other
 * request has one entry there: a buffer that holds all of the client's. The data
 * of a client whose keys or memory are wrong is an entry with a key of no region, so that the adapter itself completes
 * the request with IBV_WC_LOC_PROT_ERR, at its place in the order, and takes the QP into the error state.
 */
#include <errno.h>
#include <string.h>
#include "backends/verbs/verbs.h"

enum { MAX_LENGTH = UINT32_C(1) << 31, ATOMIC_LENGTH = 8 };

/* Returns the bytes of the entries together, or -EINVAL: more than a message can have. */
static int64_t sges_length(const struct ibv_sge *sges, uint32_t num_sge)
{
	uint64_t length = 0;

	for (uint32_t i = 0; i < num_sge && length <= MAX_LENGTH; i++)
		length += sges[i].length;
	return length <= MAX_LENGTH ? (int64_t)length : -EINVAL;
}

static bool send_is_atomic(const struct uvd_send_wr *wr)
{
	return wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool send_arrives(const struct uvd_send_wr *wr)
{
	return wr->opcode == IBV_WR_RDMA_READ || send_is_atomic(wr);
}

/* Does the QP accept a send request? Returns 0 or a negative errno. Caller holds the context's lock. */
static int send_may_post(const struct hca_qp *qp)
{
	if (qp->state == IBV_QPS_RESET || qp->state == IBV_QPS_INIT || qp->state == IBV_QPS_RTR)
		return -EINVAL;
	return qp->sq.num < qp->sq.max ? 0 : -ENOMEM;
}

/* Has the record room for a copy, or does the adapter get the client's own entries? */
static bool send_copies(struct hca_context *context, struct hca_qp *qp, const struct uvd_send_wr *wr)
{
	struct hca_pd *pd = (struct hca_pd *)qp->qp.pd;

	if (wr->send_flags & IBV_SEND_INLINE)
		return true;
	return hca_bounces(context, pd, wr->sg_list, wr->num_sge) && !hca_dm_has(context, pd, wr->sg_list, wr->num_sge);
}

/*
 * Sets *r to a record with a copy of what is to be sent, and *sge to the adapter's entry. Without a copy *sge is
 * unused. Returns 0 or a negative errno.
 */
static int send_prepare(struct hca_context *context, struct hca_qp *qp, const struct uvd_send_wr *wr, bool copy,
			struct hca_record **r, struct ibv_sge *sge)
{
	const bool is_inline = wr->send_flags & IBV_SEND_INLINE;
	const uint32_t num_sge = is_inline ? 0 : wr->num_sge;
	int64_t length = is_inline ? wr->inline_len : sges_length(wr->sg_list, num_sge);
	int ret, fault = 0;

	if (length < 0 || num_sge > qp->cap.max_send_sge || (is_inline && length > qp->cap.max_inline_data))
		return -EINVAL;
	if (send_is_atomic(wr) && (num_sge != 1 || length != ATOMIC_LENGTH))
		return -EINVAL;
	uvd_lock(&context->lock);
	ret = send_may_post(qp);
	*r = ret ? NULL
		 : hca_record_new(context, (struct hca_pd *)qp->qp.pd, wr->sg_list, copy ? num_sge : 0,
				  copy ? length : 0);
	uvd_unlock(&context->lock);
	if (!*r)
		return ret ?: -ENOMEM;
	(*r)->wr_id = wr->wr_id;
	if (!copy)
		return 0;
	(*r)->arrives = send_arrives(wr);
	if (is_inline)
		memcpy((*r)->buffer.data ?: (void *)sge, wr->inline_data, length);
	else if (!(*r)->arrives)
		fault = hca_gather(context, (*r)->pd, (*r)->buffer.data, wr->sg_list, num_sge);
	*sge = (struct ibv_sge){ (uintptr_t)(*r)->buffer.data, length, fault ? HCA_NO_LKEY : (*r)->buffer.lkey };
	return 0;
}

static int send_post(struct hca_context *context, struct hca_qp *qp, const struct uvd_send_wr *wr)
{
	struct ibv_send_wr request, *bad = NULL;
	struct hca_record *r;
	struct ibv_sge sge;
	const bool copy = send_copies(context, qp, wr);
	int ret = hca_send_request(wr, &request) ?: send_prepare(context, qp, wr, copy, &r, &sge);

	if (ret)
		return ret;
	request.sg_list = copy ? &sge : (struct ibv_sge *)wr->sg_list;
	request.num_sge = !copy ? wr->num_sge : sge.length ? 1 : 0;
	uvd_lock(&context->lock);
	/* The copy did not hold the lock: the QP may have been reset, or others may have filled it. */
	ret = send_may_post(qp);
	if (ret) {
		hca_record_free(context, r);
	} else {
		request.wr_id = hca_record_tag(r);
		ret = hca_result(ibv_post_send(qp->adapter, &request, &bad));
		/*
		 * A provider that refused the request says so. One that does not has queued it and failed to wake the
		 * adapter: the buffer stays.
		 */
		r->refused = ret;
		if (ret && bad == &request)
			hca_record_free(context, r);
		else
			hca_record_enqueue(&qp->sq, r);
	}
	uvd_unlock(&context->lock);
	return ret;
}

int hca_post_send(struct uvd_qp *base, const struct uvd_send_wr *wr, const struct uvd_send_wr **bad,
		  struct uvd_work *work)
{
	struct hca_context *context = hca_qp_context(base);
	struct hca_qp *qp = (struct hca_qp *)base;
	int ret = base->pd ? 0 : -EINVAL; /* an XRC target has no queues */

	if (atomic_load(&hca_qp_device(base)->dead))
		ret = -EIO;
	while (wr && !ret) {
		ret = send_post(context, qp, wr);
		if (!ret)
			wr = wr->next;
	}
	if (ret)
		*bad = wr;
	return ret;
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

struct hca_target {
	struct hca_context *context;
	struct hca_pd *pd;
	struct hca_queue *queue;
	struct ibv_qp *qp; /* or: */
	struct ibv_srq *srq;
	uint32_t max_sge;
};

/* Gives the adapter the client's own entries, or the record's buffer if the record has one. */
static int recv_give(const struct hca_target *t, struct hca_record *r, const struct uvd_recv_wr *wr)
{
	struct ibv_sge sge = { (uintptr_t)r->buffer.data, r->length, r->buffer.lkey };
	struct ibv_recv_wr request = { .wr_id = hca_record_tag(r), .sg_list = &sge, .num_sge = r->length ? 1 : 0 };
	struct ibv_recv_wr *bad;

	if (!r->arrives) {
		request.sg_list = (struct ibv_sge *)wr->sg_list;
		request.num_sge = wr->num_sge;
	}

	return hca_result(t->qp ? ibv_post_recv(t->qp, &request, &bad) : ibv_post_srq_recv(t->srq, &request, &bad));
}

static int recv_post(const struct hca_target *t, const struct uvd_recv_wr *wr)
{
	const int64_t length = sges_length(wr->sg_list, wr->num_sge);
	struct hca_record *r;
	bool copy;
	int ret;

	if (length < 0 || (uint32_t)wr->num_sge > t->max_sge)
		return -EINVAL;
	copy = hca_bounces(t->context, t->pd, wr->sg_list, wr->num_sge) &&
	       !hca_dm_has(t->context, t->pd, wr->sg_list, wr->num_sge);
	uvd_lock(&t->context->lock);
	r = hca_record_new(t->context, t->pd, wr->sg_list, copy ? wr->num_sge : 0, copy ? length : 0);
	if (!r) {
		uvd_unlock(&t->context->lock);
		return -ENOMEM;
	}
	r->wr_id = wr->wr_id;
	r->arrives = copy;
	r->receives = true;
	ret = recv_give(t, r, wr);
	if (ret)
		hca_record_free(t->context, r);
	else
		hca_record_enqueue(t->queue, r);
	uvd_unlock(&t->context->lock);
	return ret;
}

static int recv_post_list(const struct hca_target *t, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad)
{
	int ret = atomic_load(&hca_device(t->context->context.dev)->dead) ? -EIO : 0;

	while (wr && !ret) {
		ret = recv_post(t, wr);
		if (!ret)
			wr = wr->next;
	}
	if (ret)
		*bad = wr;
	return ret;
}

int hca_post_recv(struct uvd_qp *base, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad)
{
	struct hca_qp *qp = (struct hca_qp *)base;
	const struct hca_target t = {
		.context = hca_qp_context(base),
		.pd = (struct hca_pd *)base->pd,
		.queue = &qp->rq,
		.qp = qp->adapter,
		.max_sge = qp->cap.max_recv_sge,
	};

	if (base->srq || !base->recv_cq) {
		*bad = wr;
		return -EINVAL;
	}
	return recv_post_list(&t, wr, bad);
}

int hca_post_srq_recv(struct uvd_srq *base, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad)
{
	struct hca_srq *srq = (struct hca_srq *)base;
	const struct hca_target t = {
		.context = hca_context(base->pd->context),
		.pd = (struct hca_pd *)base->pd,
		.queue = &srq->rq,
		.srq = srq->adapter,
		.max_sge = srq->max_sge,
	};

	return recv_post_list(&t, wr, bad);
}
