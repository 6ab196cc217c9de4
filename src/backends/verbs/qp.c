/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue pairs. The adapter has the state machine; this backend drops its records when the adapter drops the requests.
 */
#include <errno.h>
#include "backends/verbs/verbs.h"

/* An XRC target has no rings. */
static int qp_charge(struct hca_qp *qp, const struct ibv_qp_cap *cap)
{
	if (!qp->qp.pd)
		return 0;
	qp->charged = hca_qp_bytes(cap);
	return hca_charge_rings(qp->qp.pd->context, HCA_QP_RINGS, qp->charged);
}

static void qp_uncharge(const struct hca_qp *qp)
{
	if (qp->qp.pd)
		hca_uncharge_rings(qp->qp.pd->context, HCA_QP_RINGS, qp->charged);
}

int hca_create_qp(struct uvd_qp *base, struct uvd_qp_init_attr *init, struct uvd_udata *udata)
{
	const struct hca_device *dev = hca_qp_device(base);
	struct hca_qp *qp = (struct hca_qp *)base;
	struct ibv_qp_init_attr_ex request;
	struct uverbsd_rx_hash hash;
	int ret;

	if (atomic_load(&dev->dead))
		return -EIO;
	ret = init->rwq_ind_tbl ? hca_rx_hash_read(udata, &hash) : 0;
	if (!ret)
		ret = hca_qp_request(qp, init, dev->features, &hash, &request);
	if (ret)
		return ret;
	ret = qp_charge(qp, &request.cap);
	if (ret)
		return ret;
	qp->adapter = ibv_create_qp_ex(hca_qp_context(base)->adapter, &request);
	if (!qp->adapter) {
		ret = hca_errno();
		qp_uncharge(qp);
		return ret;
	}
	qp->state = IBV_QPS_RESET;
	hca_qp_limit_inline(&request.cap);
	qp->cap = init->cap = request.cap;
	hca_queue_init(&qp->sq, qp->cap.max_send_wr);
	hca_queue_init(&qp->rq, qp->cap.max_recv_wr);
	qp->sq.cq = (struct hca_cq *)base->send_cq;
	qp->rq.cq = (struct hca_cq *)base->recv_cq;
	base->qp_num = qp->adapter->qp_num;
	hca_object_add(hca_qp_context(base), &qp->object, HCA_QP, qp->adapter);
	return 0;
}

/* Caller holds the context's lock. */
static void qp_drop(struct hca_qp *qp)
{
	struct hca_context *context = hca_qp_context(&qp->qp);

	hca_queue_drop(context, &qp->sq);
	hca_queue_drop(context, &qp->rq);
	if (qp->qp.send_cq)
		hca_cq_forget(context, (struct hca_cq *)qp->qp.send_cq, &qp->qp);
	if (qp->qp.recv_cq)
		hca_cq_forget(context, (struct hca_cq *)qp->qp.recv_cq, &qp->qp);
}

int hca_modify_qp(struct uvd_qp *base, const struct ibv_qp_attr *attr, int mask, struct uvd_udata *udata)
{
	struct hca_context *context = hca_qp_context(base);
	struct hca_qp *qp = (struct hca_qp *)base;
	const bool is_reset = (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET;
	struct ibv_qp_attr copy = *attr;
	int ret;

	if (atomic_load(&hca_qp_device(base)->dead))
		return -EIO;
	/* All clients share the context of XRC targets. An XRC target has no requests, so this change needs no lock. */
	if (!base->pd)
		return hca_result(ibv_modify_qp(qp->adapter, &copy, mask));
	/*
	 * No request may be posted between the reset and the drop of the records. Other changes can take long, as the
	 * kernel may have to ask for the peer's address: then the context's other calls must not wait.
	 */
	if (is_reset)
		uvd_lock(&context->lock);
	if (is_reset && base->srq)
		hca_cq_drain(context, (struct hca_cq *)base->recv_cq);
	ret = hca_result(ibv_modify_qp(qp->adapter, &copy, mask));
	if (!is_reset)
		uvd_lock(&context->lock);
	if (!ret && (mask & IBV_QP_STATE))
		qp->state = attr->qp_state;
	if (!ret && is_reset)
		qp_drop(qp);
	uvd_unlock(&context->lock);
	return ret;
}

int hca_query_qp(struct uvd_qp *base, struct ibv_qp_attr *attr, int mask, struct uvd_qp_init_attr *init)
{
	struct hca_qp *qp = (struct hca_qp *)base;
	struct ibv_qp_init_attr answer = {};
	int ret;

	if (atomic_load(&hca_qp_device(base)->dead))
		return -EIO;
	/* libibverbs refuses bits that it does not know; the kernel ignores them. */
	ret = hca_result(ibv_query_qp(qp->adapter, attr, mask & (IBV_QP_RATE_LIMIT - 1), &answer));
	if (ret)
		return ret;
	init->cap = answer.cap;
	hca_qp_limit_inline(&init->cap);
	init->sq_sig_all = answer.sq_sig_all;
	return 0;
}

/*
 * Call before a QP is destroyed: receives completed into its SRQ must survive the QP. In the error state the QP receives
 * no more.
 */
static void qp_leave_srq(struct hca_qp *qp)
{
	struct hca_context *context = hca_context(qp->qp.pd->context);
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };

	if (atomic_load(&hca_device(context->context.dev)->dead))
		return;
	uvd_lock(&context->lock);
	if (qp->state != IBV_QPS_RESET && !ibv_modify_qp(qp->adapter, &error, IBV_QP_STATE))
		qp->state = IBV_QPS_ERR;
	hca_cq_drain(context, (struct hca_cq *)qp->qp.recv_cq);
	uvd_unlock(&context->lock);
}

static int qp_end(void *adapter)
{
	return ibv_destroy_qp(adapter);
}

int hca_destroy_qp(struct uvd_qp *base)
{
	struct hca_context *context = hca_qp_context(base);
	struct hca_qp *qp = (struct hca_qp *)base;
	int ret;

	if (base->srq)
		qp_leave_srq(qp);
	ret = hca_object_destroy(context, &qp->object, qp_end);
	if (ret)
		return ret;
	if (!base->pd)
		return 0;
	uvd_lock(&context->lock);
	qp_drop(qp);
	uvd_unlock(&context->lock);
	qp_uncharge(qp);
	return 0;
}

int hca_attach_mcast(struct uvd_qp *base, const union ibv_gid *gid, uint16_t lid)
{
	if (atomic_load(&hca_qp_device(base)->dead))
		return -EIO;
	return hca_result(ibv_attach_mcast(((struct hca_qp *)base)->adapter, gid, lid));
}

int hca_detach_mcast(struct uvd_qp *base, const union ibv_gid *gid, uint16_t lid)
{
	return hca_destroyed(hca_qp_device(base), ibv_detach_mcast(((struct hca_qp *)base)->adapter, gid, lid));
}
