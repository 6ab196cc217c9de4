/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The adapter's work requests and completions. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "fake_internal.h"

static void request_free(struct fake_request *r)
{
	list_del_init(&r->link);
	free(r);
}

void fake_queue_drop(struct list_head *queue)
{
	while (!list_empty(queue))
		request_free(list_first_entry(queue, struct fake_request, link));
}

static void request_add(struct list_head *queue, const struct fake_request *from)
{
	struct fake_request *r = malloc(sizeof(*r));

	*r = *from;
	list_add_tail(&r->link, queue);
}

static void *request_data(const struct fake_request *r)
{
	return fake_mr_bytes(r->sge.lkey, r->sge.addr);
}

static bool request_is_in_region(const struct fake_request *r)
{
	return !r->sge.length || fake_mr_has(r->sge.lkey, r->sge.addr, r->sge.length);
}

/* ---- completions ------------------------------------------------------------------------------------------------- */

static void fake_complete(struct ibv_cq *base, struct ibv_wc wc)
{
	struct fake_cq *cq = (struct fake_cq *)base;

	if (cq->num == FAKE_CQ_ROOM)
		abort();
	cq->wc[cq->num++] = wc;
	if (!cq->armed)
		return;
	cq->armed = false;
	fake_completion_event(cq);
}

static int fake_poll_cq(struct ibv_cq *base, int n, struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)base;
	const int ret = fake_result(FAKE_POLL_CQ);

	if (ret)
		return ret > 0 ? -ret : ret;
	if (atomic_load(&fake.floods)) {
		for (int i = 0; i < n; i++)
			wc[i] = (struct ibv_wc){ .wr_id = UINT64_MAX };
		return n;
	}
	pthread_mutex_lock(&fake_lock);
	if ((unsigned int)n > cq->num)
		n = cq->num;
	memcpy(wc, cq->wc, n * sizeof(*wc));
	cq->num -= n;
	memmove(cq->wc, cq->wc + n, cq->num * sizeof(*wc));
	pthread_mutex_unlock(&fake_lock);
	return n;
}

void fake_cq_clean(struct ibv_cq *base, uint32_t qp_num)
{
	struct fake_cq *cq = (struct fake_cq *)base;
	unsigned int kept = 0;

	for (unsigned int i = 0; i < cq->num; i++)
		if (cq->wc[i].qp_num != qp_num)
			cq->wc[kept++] = cq->wc[i];
	cq->num = kept;
}

static int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	const int ret = fake_result(FAKE_REQ_NOTIFY_CQ);

	if (ret)
		return ret;
	pthread_mutex_lock(&fake_lock);
	((struct fake_cq *)cq)->armed = true;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

/* ---- processing -------------------------------------------------------------------------------------------------- */

int fake_receive(struct list_head *rq, struct ibv_cq *cq, uint32_t qp_num, const void *data, uint32_t length)
{
	struct ibv_wc wc = { .opcode = IBV_WC_RECV, .byte_len = length, .qp_num = qp_num };
	struct fake_request *recv;

	if (list_empty(rq))
		return -1;
	recv = list_first_entry(rq, struct fake_request, link);
	wc.wr_id = recv->wr_id;
	if (length > recv->sge.length || !request_is_in_region(recv))
		wc.status = IBV_WC_LOC_LEN_ERR;
	else if (length)
		memcpy(request_data(recv), data, length);
	fake_complete(cq, wc);
	request_free(recv);
	return 0;
}

/* Returns false if the peer has no receive request. */
static bool fake_deliver(const struct fake_qp *qp, const struct fake_request *r)
{
	struct fake_qp *peer = fake_qp_find(qp->peer);
	struct list_head *rq;

	if (!peer)
		return false;
	rq = peer->qp.srq ? &((struct fake_srq *)peer->qp.srq)->rq : &peer->rq;
	return !fake_receive(rq, peer->qp.recv_cq, peer->qp.qp_num, request_data(r), r->sge.length);
}

/* Returns the status, or -1: the request has to wait. */
static int fake_process(const struct fake_qp *qp, const struct fake_request *r)
{
	void *remote = (void *)(uintptr_t)r->remote_addr;

	if (qp->qp.state == IBV_QPS_ERR)
		return IBV_WC_WR_FLUSH_ERR;
	if (!request_is_in_region(r))
		return IBV_WC_LOC_PROT_ERR;
	switch (r->opcode) {
	case IBV_WR_RDMA_WRITE:
		memcpy(remote, request_data(r), r->sge.length);
		return IBV_WC_SUCCESS;
	case IBV_WR_RDMA_READ:
		memcpy(request_data(r), remote, r->sge.length);
		return IBV_WC_SUCCESS;
	case IBV_WR_SEND:
		return fake_deliver(qp, r) ? IBV_WC_SUCCESS : -1;
	default:
		return IBV_WC_LOC_QP_OP_ERR;
	}
}

static void fake_qp_run(struct fake_qp *qp)
{
	while (!list_empty(&qp->sq)) {
		struct fake_request *r = list_first_entry(&qp->sq, struct fake_request, link);
		const int status = fake_process(qp, r);
		const struct ibv_wc wc = { .wr_id = r->wr_id, .status = status, .qp_num = qp->qp.qp_num };

		if (status < 0)
			return;
		if (status != IBV_WC_SUCCESS)
			qp->qp.state = IBV_QPS_ERR;
		if (r->signaled || status != IBV_WC_SUCCESS)
			fake_complete(qp->qp.send_cq, wc);
		request_free(r);
	}
}

/* Caller holds fake_lock. */
static void fake_run_locked(void)
{
	if (!atomic_load(&fake.holds) && !atomic_load(&fake.gone))
		fake_qps_each(fake_qp_run);
}

void fake_run(void)
{
	atomic_store(&fake.holds, false);
	pthread_mutex_lock(&fake_lock);
	fake_run_locked();
	pthread_mutex_unlock(&fake_lock);
}

void *fake_queued(uint32_t qp_num, unsigned int place)
{
	struct fake_request *r;
	void *data = NULL;

	pthread_mutex_lock(&fake_lock);
	list_for_each_entry(r, &fake_qp_find(qp_num)->sq, link)
		if (!place--)
			data = request_data(r);
	pthread_mutex_unlock(&fake_lock);
	return data;
}

uint64_t fake_tag(uint32_t qp_num, bool receives)
{
	struct fake_qp *qp;
	uint64_t tag;

	pthread_mutex_lock(&fake_lock);
	qp = fake_qp_find(qp_num);
	tag = list_first_entry(receives ? &qp->rq : &qp->sq, struct fake_request, link)->wr_id;
	pthread_mutex_unlock(&fake_lock);
	return tag;
}

void fake_forged_completion(uint32_t qp_num, struct ibv_wc wc)
{
	pthread_mutex_lock(&fake_lock);
	fake_complete(fake_qp_find(qp_num)->qp.recv_cq, wc);
	pthread_mutex_unlock(&fake_lock);
}

/* ---- posting ----------------------------------------------------------------------------------------------------- */

/* A request has at most one SGE, and the backend posts them one by one. */
static int fake_post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)base;
	const int ret = fake_result(FAKE_POST_SEND);
	const struct fake_request request = {
		.wr_id = wr->wr_id,
		.opcode = wr->opcode,
		.signaled = wr->send_flags & IBV_SEND_SIGNALED,
		.remote_addr = wr->wr.rdma.remote_addr,
		.sge = wr->num_sge ? wr->sg_list[0] : (struct ibv_sge){},
	};

	if (wr->next || wr->num_sge > 1)
		abort();
	fake.send_flags = wr->send_flags;
	if (atomic_load(&fake.blocks) == base->qp_num) {
		sem_post(&fake.blocked);
		sem_wait(&fake.unblock);
	}
	if (ret && !atomic_load(&fake.queues_refused)) {
		*bad = wr;
		return ret;
	}
	pthread_mutex_lock(&fake_lock);
	if (!atomic_load(&fake.gone))
		request_add(&qp->sq, &request);
	atomic_fetch_add(&fake.posted, 1);
	if (!ret)
		fake_run_locked();
	pthread_mutex_unlock(&fake_lock);
	return ret;
}

static int fake_post_to(struct list_head *rq, const struct ibv_recv_wr *wr, int ret)
{
	const struct fake_request request = {
		.wr_id = wr->wr_id,
		.sge = wr->num_sge ? wr->sg_list[0] : (struct ibv_sge){},
	};

	if (ret)
		return ret;
	pthread_mutex_lock(&fake_lock);
	if (!atomic_load(&fake.gone))
		request_add(rq, &request);
	fake_run_locked();
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

static int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	*bad = wr;
	return fake_post_to(&((struct fake_qp *)qp)->rq, wr, fake_result(FAKE_POST_RECV));
}

static int fake_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	*bad = wr;
	return fake_post_to(&((struct fake_srq *)srq)->rq, wr, fake_result(FAKE_POST_SRQ_RECV));
}

const struct ibv_context_ops fake_queue_ops = {
	.poll_cq = fake_poll_cq,
	.req_notify_cq = fake_req_notify_cq,
	.post_srq_recv = fake_post_srq_recv,
	.post_send = fake_post_send,
	.post_recv = fake_post_recv,
};
