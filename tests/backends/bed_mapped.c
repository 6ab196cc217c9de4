/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The bed's QPs, CQs and SRQs with the mapped queues of the persona rxe. Acts as its provider in libibverbs, which posts
 * and polls in memory that it shares with the engine, and rings a doorbell after each list of sends.
 */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>
#include <stdlib.h>
#include <string.h>
#include "persona/persona.h"
#include "tests/backends/bed.h"
#include "tests/backends/bed_mapped.h"

bool bed_is_mapped(void)
{
	const char *queues = getenv("BED_QUEUES");

	return queues && !strcmp(queues, "mapped");
}

/* ---- queues ------------------------------------------------------------------------------------------------------ */

/* All queues of the bed. They are freed with the bed, when their objects are gone. */
struct bed_queue {
	struct uvd_queue q; /* first */
	struct bed_queue *next;
};

static struct bed_queue *bed_queues;

static const struct uvd_persona_queues *bed_layout(void)
{
	return uvd_persona_find("rxe")->queues;
}

static struct rxe_queue_buf *bed_queue_header(const struct uvd_queue *q)
{
	return (struct rxe_queue_buf *)q->memory;
}

static void *bed_queue_entry(const struct uvd_queue *q, uint32_t index)
{
	return bed_queue_header(q)->data + (size_t)(index & (q->shape.entries - 1)) * q->shape.entry_size;
}

static struct uvd_queue *bed_queue_make(const struct side *side, enum uvd_queue_kind kind, struct uvd_queue_shape shape)
{
	struct bed_queue *b = calloc(1, sizeof(*b));

	ck_assert_ptr_nonnull(b);
	b->q = (struct uvd_queue){
		.ops = bed_layout()->ops,
		.kind = kind,
		.shape = shape,
		.config = &side->dev.config,
		.pd = kind == UVD_QUEUE_CQ ? NULL : side->pd,
		.length = bed_layout()->header + (size_t)shape.entries * shape.entry_size,
	};
	b->q.memory = calloc(1, b->q.length);
	b->q.entry = calloc(1, shape.entry_size);
	b->q.dropped = calloc(1, uvd_queue_dropped_size(kind, &shape) + 1);
	ck_assert(b->q.memory && b->q.entry && b->q.dropped);
	b->q.ops->init(&b->q);
	b->next = bed_queues;
	bed_queues = b;
	return &b->q;
}

void bed_queues_free(void)
{
	while (bed_queues) {
		struct bed_queue *b = bed_queues;

		bed_queues = b->next;
		free(b->q.memory);
		free(b->q.entry);
		free(b->q.dropped);
		free(b);
	}
}

/* As the core, these leave the refusal of sizes beyond the limits to the backend. */
void bed_queue_for_cq(struct end *end, struct uvd_cq *cq)
{
	if (cq->cqe < 1 || cq->cqe > end->side->dev.config.limits.max_cqe)
		return;
	cq->queue = bed_queue_make(end->side, UVD_QUEUE_CQ, bed_layout()->shape_cq(cq->cqe));
	cq->cqe = cq->queue->shape.entries - 1;
}

void bed_queues_for_qp(struct end *end, struct uvd_qp *qp, struct uvd_qp_init_attr *init)
{
	const struct uvd_limits *limits = &end->side->dev.config.limits;
	struct ibv_qp_cap *cap = &init->cap;

	if (qp->qp_type != IBV_QPT_RC && qp->qp_type != IBV_QPT_UC && qp->qp_type != IBV_QPT_UD)
		return; /* the provider has no others */
	if (cap->max_send_wr > (uint32_t)limits->max_qp_wr || cap->max_recv_wr > (uint32_t)limits->max_qp_wr ||
	    cap->max_send_sge > (uint32_t)limits->max_sge || cap->max_recv_sge > (uint32_t)limits->max_sge ||
	    cap->max_inline_data > limits->max_inline_data)
		return;
	qp->sq = bed_queue_make(end->side, UVD_QUEUE_SEND, bed_layout()->shape_sq(cap));
	qp->sq->is_ud = qp->qp_type == IBV_QPT_UD;
	cap->max_send_wr = qp->sq->shape.entries - 1;
	if (qp->srq)
		return;
	qp->rq = bed_queue_make(end->side, UVD_QUEUE_RECV, bed_layout()->shape_rq(cap->max_recv_wr, cap->max_recv_sge));
	cap->max_recv_wr = qp->rq->shape.entries - 1;
}

void bed_queue_for_srq(struct end *end, struct uvd_srq *srq, struct ibv_srq_attr *attr)
{
	const struct uvd_limits *limits = &end->side->dev.config.limits;

	if (!attr->max_wr || attr->max_wr > (uint32_t)limits->max_srq_wr || !attr->max_sge ||
	    attr->max_sge > (uint32_t)limits->max_srq_sge)
		return;
	srq->queue = bed_queue_make(end->side, UVD_QUEUE_RECV, bed_layout()->shape_rq(attr->max_wr, attr->max_sge));
	attr->max_wr = srq->attr.max_wr = srq->queue->shape.entries - 1;
}

/* As the provider has one for each queue. */
static pthread_mutex_t bed_queues_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- posting and polling ----------------------------------------------------------------------------------------- */

/* Returns the next entry, or NULL if the queue is full. bed_queue_push() gives it to the engine. */
static void *bed_queue_next(const struct uvd_queue *q)
{
	const struct rxe_queue_buf *h = bed_queue_header(q);
	const uint32_t consumer = __atomic_load_n(&h->consumer_index, __ATOMIC_ACQUIRE);

	if (((h->producer_index + 1 - consumer) & (q->shape.entries - 1)) == 0)
		return NULL;
	memset(bed_queue_entry(q, h->producer_index), 0, q->shape.entry_size);
	return bed_queue_entry(q, h->producer_index);
}

static void bed_queue_push(const struct uvd_queue *q)
{
	struct rxe_queue_buf *h = bed_queue_header(q);

	__atomic_store_n(&h->producer_index, (h->producer_index + 1) & (q->shape.entries - 1), __ATOMIC_RELEASE);
}

static void bed_put_sges(struct rxe_dma_info *dma, const struct ibv_sge *sge, int num_sge)
{
	dma->num_sge = num_sge;
	for (int i = 0; i < num_sge; i++) {
		dma->sge[i] = (struct rxe_sge){ .addr = sge[i].addr, .length = sge[i].length, .lkey = sge[i].lkey };
		dma->length += sge[i].length;
	}
	dma->resid = dma->length;
}

/* The provider's devices have no LIDs: the bed's LID n is the port whose GID is fe80::n. */
static void bed_put_av(struct rxe_av *av, const struct ibv_ah_attr *attr)
{
	av->port_num = attr->port_num;
	av->grh.flow_label = attr->grh.flow_label;
	av->grh.sgid_index = attr->grh.sgid_index;
	av->grh.hop_limit = attr->grh.hop_limit;
	av->grh.traffic_class = attr->grh.traffic_class;
	if (attr->is_global) {
		memcpy(av->grh.dgid.raw, attr->grh.dgid.raw, sizeof(av->grh.dgid.raw));
	} else {
		av->grh.dgid.raw[0] = 0xfe;
		av->grh.dgid.raw[1] = 0x80;
		av->grh.dgid.raw[15] = attr->dlid;
	}
}

static void bed_put_operation(struct rxe_send_wr *out, const struct uvd_send_wr *wr, bool is_ud)
{
	switch (wr->opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		out->wr.atomic.remote_addr = wr->remote_addr;
		out->wr.atomic.rkey = wr->rkey;
		out->wr.atomic.compare_add = wr->compare_add;
		out->wr.atomic.swap = wr->swap;
		break;
	case IBV_WR_BIND_MW:
		out->wr.mw.rkey = wr->rkey;
		out->wr.mw.mw_rkey = wr->bind.mw ? wr->bind.mw->rkey : wr->bind.mw_rkey;
		out->wr.mw.mr_lkey = wr->bind.mr ? wr->bind.mr->lkey : wr->bind.mr_lkey;
		out->wr.mw.addr = wr->bind.addr;
		out->wr.mw.length = wr->bind.length;
		out->wr.mw.access = wr->bind.access;
		break;
	default:
		if (is_ud) {
			out->wr.ud.remote_qpn = wr->remote_qpn;
			out->wr.ud.remote_qkey = wr->remote_qkey;
			if (wr->ah)
				bed_put_av(&out->wr.ud.av, &wr->ah->attr);
		} else {
			out->wr.rdma.remote_addr = wr->remote_addr;
			out->wr.rdma.rkey = wr->rkey;
		}
	}
}

static int bed_queue_put_send(const struct uvd_queue *sq, const struct uvd_send_wr *wr)
{
	struct rxe_send_wqe *wqe;

	/* The provider refuses these. All else is left to the engine, as if the provider did not look. */
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > sq->shape.max_sge ||
	    wr->inline_len > sq->shape.max_sge * sizeof(struct rxe_sge))
		return -EINVAL;
	wqe = bed_queue_next(sq);
	if (!wqe)
		return -ENOMEM;
	wqe->wr.wr_id = wr->wr_id;
	wqe->wr.opcode = wr->opcode;
	wqe->wr.send_flags = wr->send_flags;
	wqe->wr.ex.imm_data = wr->imm_data;
	bed_put_operation(&wqe->wr, wr, sq->is_ud);
	if (wr->inline_data) {
		wqe->wr.send_flags |= IBV_SEND_INLINE;
		wqe->dma.length = wqe->dma.resid = wr->inline_len;
		memcpy(wqe->dma.inline_data, wr->inline_data, wr->inline_len);
	} else {
		bed_put_sges(&wqe->dma, wr->sg_list, wr->num_sge);
	}
	bed_queue_push(sq);
	return 0;
}

int bed_mapped_post_send(struct uvd_qp *qp, const struct uvd_send_wr *wr, const struct uvd_send_wr **bad,
			 struct uvd_work *work)
{
	int err = 0, refused;

	*bad = wr; /* a doorbell that is refused refuses all */
	pthread_mutex_lock(&bed_queues_lock);
	for (; wr; wr = wr->next) {
		err = bed_queue_put_send(qp->sq, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	pthread_mutex_unlock(&bed_queues_lock);
	refused = qp->pd->context->dev->ops->ring_doorbell(qp, work);
	if (refused)
		qp->pd->context->dev->ops->drop_posts(qp); /* as the core */
	return err ? err : refused;
}

static int bed_queue_put_recv(struct uvd_queue *rq, const struct uvd_recv_wr *wr)
{
	struct rxe_recv_wqe *wqe;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->shape.max_sge)
		return -EINVAL;
	wqe = bed_queue_next(rq);
	if (!wqe)
		return -ENOMEM;
	wqe->wr_id = wr->wr_id;
	bed_put_sges(&wqe->dma, wr->sg_list, wr->num_sge);
	bed_queue_push(rq);
	return 0;
}

int bed_mapped_post_recv(struct uvd_queue *rq, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad)
{
	int err = 0;

	pthread_mutex_lock(&bed_queues_lock);
	for (; wr && !err; wr = wr->next) {
		*bad = wr;
		err = bed_queue_put_recv(rq, wr);
	}
	pthread_mutex_unlock(&bed_queues_lock);
	return err;
}

static int bed_queue_take(struct uvd_queue *q, struct ibv_wc *wc)
{
	struct rxe_queue_buf *h = bed_queue_header(q);
	const struct ib_uverbs_wc *in = bed_queue_entry(q, h->consumer_index);

	if (__atomic_load_n(&h->producer_index, __ATOMIC_ACQUIRE) == h->consumer_index)
		return 0;
	*wc = (struct ibv_wc){
		.wr_id = in->wr_id,
		.status = in->status,
		.opcode = in->opcode,
		.vendor_err = in->vendor_err,
		.byte_len = in->byte_len,
		.imm_data = in->ex.imm_data,
		.qp_num = in->qp_num,
		.src_qp = in->src_qp,
		.wc_flags = in->wc_flags,
		.pkey_index = in->pkey_index,
		.slid = in->slid,
		.sl = in->sl,
		.dlid_path_bits = in->dlid_path_bits,
	};
	__atomic_store_n(&h->consumer_index, (h->consumer_index + 1) & (q->shape.entries - 1), __ATOMIC_RELEASE);
	return 1;
}

int bed_mapped_poll(struct uvd_queue *q, struct ibv_wc *wc)
{
	int num;

	pthread_mutex_lock(&bed_queues_lock);
	num = bed_queue_take(q, wc);
	pthread_mutex_unlock(&bed_queues_lock);
	return num;
}
