/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "objects/queue.h"
#include "cpu/cpu.h"
#include "persona/persona.h"

struct mapped {
	struct uvd_queue q;
	struct uvd_file *file;
	const struct uvd_uobject *owner;
	uint64_t charged;
	uint8_t entry[] __attribute__((aligned(16))); /* then q.dropped */
};

static const struct uvd_persona_queues *queue_layout(const struct uvd_req *req)
{
	return req->dev->persona->queues;
}

/* Refuses a client without room for the driver's part of the response, which locates the queue. As rxe_create_cq(). */
static int check_room(struct uvd_req *req, size_t size)
{
	return req->uhw_out.len < size ? uvd_bad(req, -EINVAL, "driver data", req->uhw_out.len) : 0;
}

void uvd_queue_end(struct uvd_queue *q)
{
	struct mapped *m = (struct mapped *)q;

	if (!m)
		return;
	m->file->share->put(m->file->share_owner, q->memory, q->length, q->offset);
	uvd_uncharge_bytes(m->file->account, m->charged);
	free(m);
}

static int queue_charge(struct uvd_file *file, struct mapped *m)
{
	int ret = uvd_charge_bytes(file->account, m->charged);

	if (ret)
		return ret;
	ret = file->share->get(file->share_owner, m->q.length, &m->q.memory, &m->q.offset);
	if (ret)
		uvd_uncharge_bytes(file->account, m->charged);
	return ret;
}

/* Caller holds the backend's lock of the queue. */
__attribute__((cold)) static void queue_tell(struct uvd_queue *q, const void *what)
{
	const struct mapped *m = (const struct mapped *)q;

	uvd_queue_trace(q, m->file, m->owner, what);
}

/* owner: the object that the queue belongs to, which exists as long. */
static int queue_make(struct uvd_req *req, enum uvd_queue_kind kind, struct uvd_queue_shape shape, struct uvd_pd *pd,
		      const struct uvd_uobject *owner, struct uvd_queue **out)
{
	const size_t private = sizeof(struct mapped) + shape.entry_size + uvd_queue_dropped_size(kind, &shape);
	const struct uvd_persona_queues *l = queue_layout(req);
	const size_t page = uvd_cpu_page_size();
	struct mapped *m;
	int ret;

	if (!req->file->share)
		return uvd_bad(req, -EOPNOTSUPP, "mapped queues", 0);
	m = uvd_zalloc(private);
	if (!m)
		return -ENOMEM;
	m->file = req->file;
	m->owner = owner;
	m->q = (struct uvd_queue){
		.ops = l->ops,
		.kind = kind,
		.shape = shape,
		.config = &req->dev->config,
		.pd = pd,
		.length = (l->header + (size_t)shape.entries * shape.entry_size + page - 1) & -page,
		.entry = m->entry,
		.dropped = (uint64_t *)(m->entry + shape.entry_size),
		.watched = &req->dev->engine->observers.complete,
		.tell = queue_tell,
		.unanswered = kind == UVD_QUEUE_SEND && req->file->logged,
	};
	m->charged = m->q.length + private;
	ret = queue_charge(req->file, m);
	if (ret) {
		free(m);
		return ret;
	}
	m->q.ops->init(&m->q);
	*out = &m->q;
	return 0;
}

/* Explains -EINVAL: the old queue holds more than the new one can. Returns err. */
static int refuse_small(struct uvd_req *req, int err, const char *field, uint32_t value)
{
	return err == -EINVAL && !uvd_req_is_filtered(req)
		       ? uvd_refuse(req, err, &uvd_why(QUEUE_HOLDS, { .word = field }, { value }))
		       : err;
}

/* ---- completion queues ------------------------------------------------------------------------------------------- */

int uvd_queues_for_cq(struct uvd_req *req, struct uvd_cq *cq)
{
	const struct uvd_persona_queues *l = queue_layout(req);
	uint8_t resp[UVD_PERSONA_RESPONSE];
	int ret;

	if (!l)
		return 0;
	ret = check_room(req, l->cq_response(resp, NULL));
	if (ret || cq->cqe < 1 || cq->cqe > req->dev->config.limits.max_cqe)
		return ret;
	ret = queue_make(req, UVD_QUEUE_CQ, l->shape_cq(cq->cqe), NULL, cq->owner, &cq->queue);
	if (!ret)
		cq->cqe = uvd_queue_size(cq->queue);
	return ret;
}

int uvd_queues_answer_cq(struct uvd_req *req, const struct uvd_cq *cq)
{
	uint8_t resp[UVD_PERSONA_RESPONSE];

	return queue_layout(req) ? uvd_uhw_out(req, resp, queue_layout(req)->cq_response(resp, cq->queue)) : 0;
}

int uvd_queue_resize_cq(struct uvd_req *req, struct uvd_cq *cq, uint32_t cqe)
{
	const struct uvd_persona_queues *l = queue_layout(req);
	uint8_t resp[UVD_PERSONA_RESPONSE];
	struct uvd_queue *q;
	size_t size;
	int ret = check_room(req, l->cq_response(resp, NULL));

	if (ret)
		return ret;
	ret = uvd_check_range_of(req, "cqe", cqe, 1, req->dev->config.limits.max_cqe);
	if (ret)
		return ret;
	ret = queue_make(req, UVD_QUEUE_CQ, l->shape_cq(cqe), NULL, cq->owner, &q);
	if (ret)
		return ret;
	/* As soon as the CQ has the queue, another call may replace and free it: build the response before. */
	size = l->cq_response(resp, q);
	ret = refuse_small(req, uvd_ops(req)->replace_cq_queue(cq, &q), "cqe", cqe);
	uvd_queue_end(q);
	return ret ? ret : uvd_uhw_out(req, resp, size);
}

/* ---- queue pairs ------------------------------------------------------------------------------------------------- */

static bool within_limits(const struct uvd_limits *limits, const struct ibv_qp_cap *cap)
{
	return cap->max_send_wr <= (uint32_t)limits->max_qp_wr && cap->max_recv_wr <= (uint32_t)limits->max_qp_wr &&
	       cap->max_send_sge <= (uint32_t)limits->max_sge && cap->max_recv_sge <= (uint32_t)limits->max_sge &&
	       cap->max_inline_data <= limits->max_inline_data;
}

static int make_qp(struct uvd_req *req, struct uvd_qp *qp, struct uvd_qp_init_attr *init)
{
	const struct uvd_persona_queues *l = queue_layout(req);
	struct ibv_qp_cap *cap = &init->cap;
	int ret = queue_make(req, UVD_QUEUE_SEND, l->shape_sq(cap), qp->pd, qp->owner, &qp->sq);

	if (ret)
		return ret;
	qp->sq->is_ud = init->qp_type == IBV_QPT_UD;
	if (!init->srq)
		ret = queue_make(req, UVD_QUEUE_RECV, l->shape_rq(cap->max_recv_wr, cap->max_recv_sge), qp->pd,
				 qp->owner, &qp->rq);
	return ret;
}

int uvd_queues_for_qp(struct uvd_req *req, struct uvd_qp *qp, struct uvd_qp_init_attr *init)
{
	const struct uvd_persona_queues *l = queue_layout(req);
	uint8_t resp[UVD_PERSONA_RESPONSE];
	int ret;

	if (!l)
		return 0;
	/* The provider has no XRC, so an XRC initiator gets no mapped queues. */
	if (init->qp_type == IBV_QPT_XRC_SEND)
		return 0;
	ret = check_room(req, l->qp_response(resp, NULL, NULL));
	if (ret || !within_limits(&req->dev->config.limits, &init->cap))
		return ret;
	ret = make_qp(req, qp, init);
	if (ret)
		return ret;
	init->cap.max_send_wr = uvd_queue_size(qp->sq);
	if (qp->rq)
		init->cap.max_recv_wr = uvd_queue_size(qp->rq);
	return 0;
}

int uvd_queues_answer_qp(struct uvd_req *req, const struct uvd_qp *qp)
{
	uint8_t resp[UVD_PERSONA_RESPONSE];

	return qp->sq ? uvd_uhw_out(req, resp, queue_layout(req)->qp_response(resp, qp->sq, qp->rq)) : 0;
}

/* ---- shared receive queues --------------------------------------------------------------------------------------- */

int uvd_queues_for_srq(struct uvd_req *req, struct uvd_srq *srq, struct ibv_srq_attr *attr)
{
	const struct uvd_persona_queues *l = queue_layout(req);
	const struct uvd_limits *limits = &req->dev->config.limits;
	uint8_t resp[UVD_PERSONA_RESPONSE];
	int ret;

	if (!l)
		return 0;
	ret = check_room(req, l->srq_response(resp, NULL, 0));
	if (ret || !attr->max_wr || attr->max_wr > (uint32_t)limits->max_srq_wr || !attr->max_sge ||
	    attr->max_sge > (uint32_t)limits->max_srq_sge)
		return ret;
	ret = queue_make(req, UVD_QUEUE_RECV, l->shape_rq(attr->max_wr, attr->max_sge), srq->pd, srq->owner,
			 &srq->queue);
	if (!ret)
		attr->max_wr = srq->attr.max_wr = uvd_queue_size(srq->queue);
	return ret;
}

int uvd_queues_answer_srq(struct uvd_req *req, const struct uvd_srq *srq)
{
	uint8_t resp[UVD_PERSONA_RESPONSE];

	return queue_layout(req)
		       ? uvd_uhw_out(req, resp, queue_layout(req)->srq_response(resp, srq->queue, srq->srq_num))
		       : 0;
}

/* Writes the location of the new queue to the address in the client's driver data, as rxe_modify_srq() does. */
static int answer_modify_srq(struct uvd_req *req, uint64_t place, const uint8_t *resp, size_t size)
{
	req->uhw_out = (struct uvd_out){ .addr = place, .len = size, .attr = -1 };
	return uvd_uhw_out(req, resp, size);
}

int uvd_queue_resize_srq(struct uvd_req *req, struct uvd_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
	const struct uvd_persona_queues *l = queue_layout(req);
	uint8_t in[UVD_PERSONA_SRQ_MODIFY], resp[UVD_PERSONA_RESPONSE];
	struct ibv_srq_attr now;
	struct uvd_queue *q;
	size_t size;
	int ret;

	if (req->uhw_in.len < UVD_PERSONA_SRQ_MODIFY)
		return uvd_bad(req, -EINVAL, "driver data", req->uhw_in.len);
	ret = uvd_uhw_in(req, in, sizeof(in));
	if (ret)
		return ret;
	ret = uvd_check_range_of(req, "max_wr", attr->max_wr, 1, req->dev->config.limits.max_srq_wr);
	if (!ret)
		ret = uvd_ops(req)->query_srq(srq, &now);
	if (!ret)
		ret = uvd_check_range_of(req, "srq_limit", mask & IBV_SRQ_LIMIT ? attr->srq_limit : now.srq_limit, 0,
					 attr->max_wr);
	if (ret)
		return ret;
	ret = queue_make(req, UVD_QUEUE_RECV, l->shape_rq(attr->max_wr, now.max_sge), srq->pd, srq->owner, &q);
	if (ret)
		return ret;
	/* As soon as the SRQ has the queue, another call may replace and free it: build the response before. */
	size = l->srq_modify_response(resp, q);
	ret = refuse_small(req, uvd_ops(req)->replace_srq_queue(srq, &q), "max_wr", attr->max_wr);
	uvd_queue_end(q);
	if (!ret && (mask & IBV_SRQ_LIMIT))
		ret = uvd_ops(req)->modify_srq(srq, attr, IBV_SRQ_LIMIT, NULL);
	return ret ? ret : answer_modify_srq(req, l->srq_modify_place(in), resp, size);
}
