/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The adapter's QPs and SRQs. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include "fake_internal.h"

static struct list_head fake_qps;

void fake_qps_begin(void)
{
	INIT_LIST_HEAD(&fake_qps);
}

void fake_qp_drop(struct fake_qp *qp)
{
	fake_queue_drop(&qp->sq);
	fake_queue_drop(&qp->rq);
}

/* ---- SRQs -------------------------------------------------------------------------------------------------------- */

struct fake_srq *fake_srq_new(struct ibv_pd *pd, void *srq_context, const struct ibv_srq_attr *attr)
{
	struct fake_srq *srq = fake_new(FAKE_CREATE_SRQ, sizeof(*srq));

	if (!srq)
		return NULL;
	srq->srq.context = pd->context;
	srq->srq.pd = pd;
	srq->srq.srq_context = srq_context;
	srq->attr = *attr;
	INIT_LIST_HEAD(&srq->rq);
	return srq;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct fake_srq *srq = fake_srq_new(pd, attr->srq_context, &attr->attr);

	return srq ? &srq->srq : NULL;
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	/* Before the call can wait: the adapter's answer takes its time. */
	if ((mask & IBV_SRQ_MAX_WR) && !atomic_load(&fake.result[FAKE_MODIFY_SRQ]))
		((struct fake_srq *)srq)->attr.max_wr = attr->max_wr;
	return fake_result(FAKE_MODIFY_SRQ);
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	*attr = ((struct fake_srq *)srq)->attr;
	return fake_result(FAKE_QUERY_SRQ);
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	const int ret = fake_result(FAKE_DESTROY_SRQ);

	if (ret)
		return ret;
	pthread_mutex_lock(&fake_lock);
	fake_async_end(srq->context, srq, &((struct fake_srq *)srq)->unacked);
	fake_srq_leave_domain((struct fake_srq *)srq);
	pthread_mutex_unlock(&fake_lock);
	fake_queue_drop(&((struct fake_srq *)srq)->rq);
	fake_free(srq);
	return ret;
}

/* ---- QPs --------------------------------------------------------------------------------------------------------- */

struct fake_qp *fake_qp_find(uint32_t qp_num)
{
	struct fake_qp *qp;

	list_for_each_entry(qp, &fake_qps, link)
		if (qp->qp.qp_num == qp_num)
			return qp;
	return NULL;
}

struct fake_qp *fake_qp_new(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	struct fake_qp *qp = fake_new(FAKE_CREATE_QP, sizeof(*qp));

	if (!qp)
		return NULL;
	qp->qp = (struct ibv_qp){ .context = context,
				  .qp_context = attr->qp_context,
				  .pd = attr->pd,
				  .send_cq = attr->send_cq,
				  .recv_cq = attr->recv_cq,
				  .srq = attr->srq,
				  .qp_type = attr->qp_type };
	qp->cap = attr->cap;
	INIT_LIST_HEAD(&qp->sq);
	INIT_LIST_HEAD(&qp->rq);
	pthread_mutex_lock(&fake_lock);
	qp->qp.qp_num = ++fake_numbers;
	list_add_tail(&qp->link, &fake_qps);
	pthread_mutex_unlock(&fake_lock);
	return qp;
}

/* The provider gets the call only if there is more than what ibv_create_qp() takes. */
struct ibv_qp *fake_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_rx_hash_conf *hash = &attr->rx_hash_conf;
	struct fake_qp *qp;

	fake.qp_request = *attr;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_RX_HASH)
		memcpy(fake.rx_hash_key, hash->rx_hash_key, hash->rx_hash_key_len);
	qp = fake_qp_new(context, attr);
	if (!qp)
		return NULL;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD)
		fake_qp_enter_domain(qp, attr->xrcd);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE)
		qp->table = attr->rwq_ind_tbl;
	fake_table_use(qp->table, 1);
	return &qp->qp;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {};
	struct fake_qp *qp;

	memcpy(&ex, attr, sizeof(*attr));
	ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	ex.pd = pd;
	fake.qp_request = ex;
	qp = fake_qp_new(pd->context, &ex);
	return qp ? &qp->qp : NULL;
}

int ibv_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask)
{
	struct fake_qp *qp = (struct fake_qp *)base;
	const int ret = fake_result(FAKE_MODIFY_QP);

	if (ret)
		return ret;
	pthread_mutex_lock(&fake_lock);
	if (mask & IBV_QP_STATE)
		qp->qp.state = attr->qp_state;
	if (mask & IBV_QP_DEST_QPN)
		qp->peer = attr->dest_qp_num;
	if (qp->qp.state == IBV_QPS_RESET) {
		fake_qp_drop(qp);
		if (atomic_load(&fake.cleans_cqs))
			fake_cq_clean(qp->qp.recv_cq, qp->qp.qp_num);
	}
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	*attr = (struct ibv_qp_attr){ .qp_state = qp->state };
	*init = (struct ibv_qp_init_attr){ .cap = ((struct fake_qp *)qp)->cap };
	return fake_result(FAKE_QUERY_QP);
}

int ibv_destroy_qp(struct ibv_qp *base)
{
	struct fake_qp *qp = (struct fake_qp *)base;
	const int ret = fake_result(FAKE_DESTROY_QP);

	if (ret)
		return ret;
	if (atomic_load(&fake.hangs)) {
		sem_post(&fake.blocked);
		sem_wait(&fake.unblock);
	}
	pthread_mutex_lock(&fake_lock);
	fake_async_end(base->context, qp, &qp->unacked);
	fake_qp_leave_domain(qp);
	fake_table_use(qp->table, -1);
	list_del_init(&qp->link);
	fake_qp_drop(qp);
	if (atomic_load(&fake.cleans_cqs))
		fake_cq_clean(base->recv_cq, base->qp_num);
	pthread_mutex_unlock(&fake_lock);
	fake_free(qp);
	return ret;
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return fake_result(FAKE_ATTACH_MCAST);
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return fake_result(FAKE_DETACH_MCAST);
}

/* Caller holds fake_lock. */
void fake_qps_each(void (*fn)(struct fake_qp *qp))
{
	struct fake_qp *qp;

	list_for_each_entry(qp, &fake_qps, link)
		fn(qp);
}
