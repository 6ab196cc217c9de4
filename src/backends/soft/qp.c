/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Queue pairs: creation, the state machine, destruction. The errors are those of the kernel's rdmavt. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uverbsd/log.h>
#include "backends/soft/soft.h"
#include "explain/explain.h"
#include "util/util.h"

/* ---- creation ---------------------------------------------------------------------------------------------------- */

static bool is_known(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return true;
	default:
		return false;
	}
}

/* Refuses a value that is above `most`. */
static int refuse_above(struct uvd_udata *udata, const char *field, uint64_t value, uint64_t most)
{
	return uvd_udata_refuse(udata, -EINVAL, &uvd_why(RANGE, { .word = field }, { value }, { 0 }, { most }));
}

static int refuse_unsupported(struct uvd_udata *udata, const char *field, uint64_t value)
{
	return uvd_udata_refuse(udata, -EOPNOTSUPP, &uvd_why(UNSUPPORTED, { .word = field }, { value }));
}

static int check_cap(const struct uvd_limits *limits, struct ibv_qp_cap *cap, const struct uvd_qp *qp,
		     struct uvd_udata *udata)
{
	const uint32_t max_wr = limits->max_qp_wr, max_sge = limits->max_sge;
	bool has_srq = qp->srq;

	/* An XRC_RECV QP has no queues, and an XRC_SEND QP has a send queue only. */
	if (qp->qp_type == IBV_QPT_XRC_RECV) {
		*cap = (struct ibv_qp_cap){ 0 };
		return 0;
	}
	if (qp->qp_type == IBV_QPT_XRC_SEND)
		cap->max_recv_wr = cap->max_recv_sge = 0;
	/* The core checked the length of a mapped queue before it rounded that up, perhaps beyond the limit. */
	if (cap->max_send_sge > max_sge)
		return refuse_above(udata, "cap.max_send_sge", cap->max_send_sge, max_sge);
	if (!qp->sq && cap->max_send_wr > max_wr)
		return refuse_above(udata, "cap.max_send_wr", cap->max_send_wr, max_wr);
	if (!has_srq && cap->max_recv_sge > max_sge)
		return refuse_above(udata, "cap.max_recv_sge", cap->max_recv_sge, max_sge);
	if (!has_srq && !qp->rq && cap->max_recv_wr > max_wr)
		return refuse_above(udata, "cap.max_recv_wr", cap->max_recv_wr, max_wr);
	if (!has_srq && !cap->max_send_sge && !cap->max_send_wr && !cap->max_recv_sge && !cap->max_recv_wr)
		return uvd_udata_refuse(udata, -EINVAL, &uvd_why(QP_NO_QUEUES, { 0 }));
	/* A device without inline data grants 0 bytes, whatever was asked for. Others refuse more than their limit. */
	if (!limits->max_inline_data)
		cap->max_inline_data = 0;
	if (cap->max_inline_data > limits->max_inline_data)
		return refuse_above(udata, "cap.max_inline_data", cap->max_inline_data, limits->max_inline_data);
	return 0;
}

static void free_queues(struct soft_qp *qp)
{
	soft_ring_destroy(&qp->sq);
	soft_rq_destroy(&qp->rq);
	free(qp->r_wqe);
	uvd_uncharge_bytes(qp->qp.account, qp->charged);
}

/* An XRC target takes receives from any SRQ of its domain, so it needs room for the largest. */
static uint32_t most_recv_sge(const struct soft_qp *qp)
{
	if (qp->qp.qp_type == IBV_QPT_XRC_RECV)
		return qp->dev->ibdev->config.limits.max_srq_sge;
	return qp->r_srq ? qp->r_srq->max_sge : qp->cap.max_recv_sge;
}

static int alloc_queues(struct soft_qp *qp)
{
	const struct ibv_qp_cap *cap = &qp->cap;
	/* Room for one entry at least: see soft_rq_init(). */
	uint32_t recv_sge = most_recv_sge(qp) ?: 1;
	size_t recv_size = soft_recv_wqe_size(recv_sge);
	uint64_t others = recv_size;
	int err = uvd_charge_bytes(qp->qp.account, others);

	if (err)
		return err;
	qp->charged = others;
	err = soft_sq_init(qp);
	if (!err)
		err = soft_rq_init(&qp->rq, qp->qp.account, cap->max_recv_wr, cap->max_recv_sge, qp->qp.rq);
	qp->r_wqe = calloc(1, recv_size);
	if (!err && qp->r_wqe)
		return 0;
	free_queues(qp);
	return -ENOMEM;
}

int soft_create_qp(struct uvd_qp *base, struct uvd_qp_init_attr *init, struct uvd_udata *udata)
{
	struct soft_device *dev = soft_device(base->xrcd ? base->xrcd->dev : base->pd->context->dev);
	const struct uvd_limits *limits = &dev->ibdev->config.limits;
	struct uvd_fabric *fabric = dev->fabric;
	struct soft_qp *qp = soft_qp(base);
	int err;

	if (init->create_flags)
		return refuse_unsupported(udata, "create_flags", init->create_flags);
	err = check_cap(limits, &init->cap, base, udata);
	if (err)
		return err;
	if (!is_known(base->qp_type))
		return refuse_unsupported(udata, "qp_type", base->qp_type);

	qp->dev = dev;
	qp->r_srq = soft_srq(base->srq);
	qp->cap = init->cap;
	if (base->srq)
		qp->cap.max_recv_wr = qp->cap.max_recv_sge = 0;
	qp->sq_sig_all = init->sq_sig_all;
	qp->state = IBV_QPS_RESET;
	soft_show_state(qp);
	err = soft_count_told(&dev->num_qps, limits->max_qp, "QPs", udata);
	if (err)
		return err;
	err = alloc_queues(qp);
	if (err)
		goto uncount;
	err = soft_timers_reserve(&fabric->timers);
	if (err)
		goto free;
	pthread_mutex_init(&qp->modify_lock, NULL);
	pthread_mutex_init(&qp->lock, NULL);
	uvd_cond_init(&qp->idle);
	err = soft_fabric_add_qp(fabric, qp);
	if (!err && base->qp_type == IBV_QPT_RAW_PACKET)
		soft_raw_join(qp);
	if (!err)
		return 0;

	pthread_cond_destroy(&qp->idle);
	pthread_mutex_destroy(&qp->lock);
	pthread_mutex_destroy(&qp->modify_lock);
	soft_timers_release(&fabric->timers, qp);
free:
	free_queues(qp);
uncount:
	dev->num_qps--;
	return err;
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

/* Waits for a change of qp->idle until `end`, but looks whether the mover is stuck. Returns false if the wait is over. */
static bool qp_wait_for_held(struct soft_qp *qp, uint64_t end)
{
	enum { LOOK = 10000000 /* ns */ };
	const uint64_t now = uvd_now_ns();

	if (now >= end || (qp->s_busy && soft_mover_is_stuck(qp->s_mover, qp)))
		return false;
	uvd_cond_wait_until(&qp->idle, &qp->lock, end - now < LOOK ? end : now + LOOK);
	return true;
}

/*
 * A message that the network holds back was sent before its sender ends, so it arrives first. A thread of the user delivers
 * it, because the receiver's memory can be slow: the message is lost if that thread is blocked there. Caller holds no lock.
 */
static void qp_settle_held(struct soft_qp *qp)
{
	const uint64_t now = uvd_now_ns(), patience = qp->dev->fabric->movers.patience_ns;
	const uint64_t end = patience < UINT64_MAX - now ? now + patience : UINT64_MAX;

	pthread_mutex_lock(&qp->lock);
	if (qp->s_held || qp->s_delivers_held) {
		if (qp->s_held)
			qp->s_held->is_overtaken = true;
		if (!qp->s_busy && !qp->s_deferred)
			soft_defer(qp, false);
		while ((qp->s_busy || (qp->s_held && qp->s_deferred)) && qp_wait_for_held(qp, end))
			;
		if (qp->s_busy && qp->s_delivers_held)
			uvd_log_limited(qp->dev->ibdev->log, UVD_WARN,
					"%s: QP 0x%x: the message that a filter held back is lost: "
					"the receiver's memory does not answer",
					qp->dev->ibdev->config.ibdev, qp->qp.qp_num);
	}
	pthread_mutex_unlock(&qp->lock);
}

/* Caller holds qp->lock, which is released while other threads have s_busy or r_busy. */
static void qp_reset(struct soft_qp *qp)
{
	qp->state = IBV_QPS_RESET;
	qp->r_epoch++;
	soft_undefer(qp);
	soft_error_unwatch(qp);
	soft_send_unwait(qp);
	soft_srq_forget(qp);
	soft_send_take_back(qp);
	while (qp->s_busy || qp->r_busy)
		pthread_cond_wait(&qp->idle, &qp->lock);
	soft_wire_disconnect(qp);
	soft_held_drop(qp);
	soft_sq_clear(qp);
	soft_rq_clear(&qp->rq);
	soft_show_state(qp);
	memset(&qp->attr, 0, sizeof(qp->attr));
	qp->s_kicked = qp->s_started = qp->s_draining = qp->s_drained_event = false;
	qp->r_taken = qp->r_nak = qp->r_silent = qp->r_established = qp->r_last_wqe = false;
	qp->r_told = qp->s_told = 0;
	qp->s_psn = qp->r_psn = qp->r_msn = qp->s_flight = 0;
}

/* The functions below return the reason for which an attribute cannot be set; its `reason` is NULL if it can. */

static const struct uvd_why no_why;

static struct uvd_why value_why(const char *field, uint64_t value, uint64_t from, uint64_t to)
{
	return value < from || value > to ? uvd_why(RANGE, { .word = field }, { value }, { from }, { to }) : no_why;
}

static struct uvd_why ah_why(struct soft_qp *qp, const struct ibv_ah_attr *ah, bool is_alt)
{
	const struct uvd_device_config *config = &qp->dev->ibdev->config;
	struct uvd_why why =
		value_why(is_alt ? "alt_ah_attr.port_num" : "ah_attr.port_num", ah->port_num, 1, config->num_ports);
	const struct uvd_port_config *port;

	if (why.reason)
		return why;
	port = &config->ports[ah->port_num - 1];
	if (ah->is_global && ah->grh.sgid_index >= port->gid_tbl_len)
		return uvd_why(ADDRESS_GID, { .word = is_alt ? "alt_ah_attr" : "ah_attr" }, { ah->port_num },
			       { ah->grh.sgid_index });
	/* LIDs from 0xc000 on belong to multicast groups. */
	return port->link_layer == IBV_LINK_LAYER_INFINIBAND
		       ? value_why(is_alt ? "alt_ah_attr.dlid" : "ah_attr.dlid", ah->dlid, 0, SOFT_MULTICAST_LID - 1)
		       : no_why;
}

/* The local network lowers a path MTU above the port's, as rdmavt does. A peer on the wire would not know of that. */
static struct uvd_why path_mtu_why(struct soft_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	static const char field[] = "path_mtu (enum ibv_mtu)";
	struct uvd_why why = value_why(field, attr->path_mtu, IBV_MTU_256, IBV_MTU_4096);
	const struct uvd_port_config *port;

	if (why.reason || !(mask & IBV_QP_AV))
		return why;
	port = &qp->dev->ibdev->config.ports[attr->ah_attr.port_num - 1];
	return soft_wire_has_way(qp->dev, port, &attr->ah_attr)
		       ? value_why(field, attr->path_mtu, IBV_MTU_256, port->active_mtu)
		       : no_why;
}

static struct uvd_why pkey_why(const struct uvd_device_config *config, uint8_t port, uint16_t index)
{
	const unsigned int num = port ? config->ports[port - 1].num_pkeys : 0;

	if (index < num)
		return no_why;
	return uvd_why(RANGE, { .word = "pkey_index" }, { index }, { 0 }, { (int64_t)num - 1 });
}

static struct uvd_why values_why(struct soft_qp *qp, const struct ibv_qp_attr *attr, int mask, enum ibv_qp_state next)
{
	const struct uvd_device_config *config = &qp->dev->ibdev->config;
	uint8_t port = mask & IBV_QP_PORT ? attr->port_num : qp->attr.port_num;
	struct uvd_why why = no_why;

	if (mask & IBV_QP_PORT)
		why = value_why("port_num", port, 1, config->num_ports);
	if (!why.reason && (mask & IBV_QP_AV))
		why = ah_why(qp, &attr->ah_attr, false);
	if (!why.reason && (mask & IBV_QP_ALT_PATH))
		why = ah_why(qp, &attr->alt_ah_attr, true);
	if (!why.reason && (mask & IBV_QP_PKEY_INDEX))
		why = pkey_why(config, port, attr->pkey_index);
	if (!why.reason && (mask & IBV_QP_MIN_RNR_TIMER))
		why = value_why("min_rnr_timer", attr->min_rnr_timer, 0, 31);
	if (!why.reason && (mask & IBV_QP_DEST_QPN))
		why = value_why("dest_qp_num", attr->dest_qp_num, 0, (1u << SOFT_QPN_BITS) - 1);
	if (!why.reason && (mask & IBV_QP_RETRY_CNT))
		why = value_why("retry_cnt", attr->retry_cnt, 0, 7);
	if (!why.reason && (mask & IBV_QP_RNR_RETRY))
		why = value_why("rnr_retry", attr->rnr_retry, 0, 7);
	if (!why.reason && (mask & IBV_QP_PATH_MTU))
		why = path_mtu_why(qp, attr, mask);
	/* Without an alternate path there is nothing to arm: the state is MIGRATED from the start. */
	if (!why.reason && (mask & IBV_QP_PATH_MIG_STATE) &&
	    (attr->path_mig_state != IBV_MIG_MIGRATED || (next != IBV_QPS_RTS && next != IBV_QPS_SQD)))
		why = uvd_why(MODIFY_MIGRATION, { 0 });
	if (!why.reason && (mask & IBV_QP_MAX_DEST_RD_ATOMIC))
		why = value_why("max_dest_rd_atomic", attr->max_dest_rd_atomic, 0, config->limits.max_qp_rd_atom);
	return why;
}

static enum ibv_mtu lower_mtu(enum ibv_mtu a, enum ibv_mtu b)
{
	return a < b ? a : b;
}

static void take_values(struct soft_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp_attr *own = &qp->attr;

	if (mask & IBV_QP_PKEY_INDEX)
		own->pkey_index = attr->pkey_index;
	if (mask & IBV_QP_PORT)
		own->port_num = attr->port_num;
	if (mask & IBV_QP_QKEY)
		own->qkey = attr->qkey;
	if (mask & IBV_QP_ACCESS_FLAGS)
		own->qp_access_flags = attr->qp_access_flags;
	if (mask & IBV_QP_AV)
		own->ah_attr = attr->ah_attr;
	if (mask & IBV_QP_ALT_PATH) {
		own->alt_ah_attr = attr->alt_ah_attr;
		own->alt_pkey_index = attr->alt_pkey_index;
		own->alt_port_num = attr->alt_port_num;
		own->alt_timeout = attr->alt_timeout;
	}
	if (mask & IBV_QP_PATH_MTU)
		own->path_mtu = lower_mtu(attr->path_mtu, soft_qp_port(qp)->active_mtu); /* as rdmavt */
	if (mask & IBV_QP_DEST_QPN)
		own->dest_qp_num = attr->dest_qp_num;
	if (mask & IBV_QP_RQ_PSN)
		qp->r_psn = attr->rq_psn & 0xffffff;
	if (mask & IBV_QP_SQ_PSN)
		qp->s_psn = attr->sq_psn & 0xffffff;
	if (mask & IBV_QP_TIMEOUT)
		own->timeout = attr->timeout > 31 ? 31 : attr->timeout; /* as rdmavt counts it */
	if (mask & IBV_QP_RETRY_CNT)
		own->retry_cnt = qp->s_retry = attr->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		own->rnr_retry = qp->s_rnr_retry = attr->rnr_retry;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		own->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		own->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		own->max_dest_rd_atomic = attr->max_dest_rd_atomic;
}

static void start_draining(struct soft_qp *qp, bool event, struct soft_due *due)
{
	qp->s_drained_event = event;
	qp->s_draining = qp->s_started;
	if (event && !qp->s_draining)
		soft_due_event(due, &qp->qp, IBV_EVENT_SQ_DRAINED);
}

/* Returns the reason for which the QP cannot change so; its `reason` is NULL if it can. Caller holds qp->lock. */
static struct uvd_why qp_change_why(struct soft_qp *qp, const struct ibv_qp_attr *attr, int mask,
				    enum ibv_qp_state next)
{
	const enum ibv_qp_state cur = qp->state;
	struct uvd_why why;

	/*
	 * rdmavt trusts cur_qp_state, whatever the real state is. So a client could skip the states that set an
	 * address.
	 */
	if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != cur)
		return uvd_why(MODIFY_CUR_STATE, { attr->cur_qp_state }, { cur });
	why = uvd_modify_qp_why(cur, next, qp->qp.qp_type, mask);
	return why.reason ? why : values_why(qp, attr, mask, next);
}

/* Settles what is held before a reset, but not before one that is going to fail. Caller holds no lock. */
static void qp_settle_for(struct soft_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	bool resets;

	pthread_mutex_lock(&qp->lock);
	resets = mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET &&
		 !qp_change_why(qp, attr, mask, IBV_QPS_RESET).reason;
	pthread_mutex_unlock(&qp->lock);
	if (resets)
		qp_settle_held(qp);
}

/* Caller holds qp->lock. */
static int qp_transition(struct soft_qp *qp, const struct ibv_qp_attr *attr, int mask, enum ibv_qp_state *from,
			 enum ibv_qp_state *to, struct soft_due *due, struct uvd_udata *udata)
{
	enum ibv_qp_state cur = qp->state;
	enum ibv_qp_state next = mask & IBV_QP_STATE ? attr->qp_state : cur;
	const struct uvd_why why = qp_change_why(qp, attr, mask, next);
	int err;

	*from = cur;
	*to = next;
	if (why.reason)
		return uvd_udata_refuse(udata, -EINVAL, &why);

	if (next == IBV_QPS_RESET) {
		qp_reset(qp);
		return 0;
	}
	take_values(qp, attr, mask);
	if (next == IBV_QPS_ERR) {
		/* Also from INIT: queued receives must be flushed. From ERR: those that were posted since. */
		if (cur == IBV_QPS_ERR && !qp->r_busy)
			soft_recv_flush(qp, due);
		soft_qp_error(qp, due);
		soft_wire_error(qp);
		return 0;
	}
	if (next == IBV_QPS_RTR && cur == IBV_QPS_INIT) {
		err = soft_wire_connect(qp);
		if (err)
			return err;
	}
	qp->state = next;
	soft_show_state(qp);
	if (next == IBV_QPS_RTR)
		qp->r_established = false;
	if (next == IBV_QPS_RTS)
		soft_wire_start(qp);
	if (next == IBV_QPS_SQD && cur == IBV_QPS_RTS)
		start_draining(qp, (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) && attr->en_sqd_async_notify, due);
	else if (next == IBV_QPS_RTS)
		qp->s_draining = false;
	return 0;
}

int soft_modify_qp(struct uvd_qp *base, const struct ibv_qp_attr *attr, int mask, struct uvd_udata *udata)
{
	struct soft_qp *qp = soft_qp(base);
	struct soft_due due = { 0 };
	enum ibv_qp_state from, to;
	int err;

	/* These devices support no attribute of verbs.h beyond IBV_QP_DEST_QPN (rate limits). */
	if (mask & ~((IBV_QP_DEST_QPN << 1) - 1))
		return refuse_unsupported(udata, "attr_mask", mask & ~((IBV_QP_DEST_QPN << 1) - 1));
	pthread_mutex_lock(&qp->modify_lock);
	qp_settle_for(qp, attr, mask);
	pthread_mutex_lock(&qp->lock);
	err = qp_transition(qp, attr, mask, &from, &to, &due, udata);
	pthread_mutex_unlock(&qp->lock);
	pthread_mutex_unlock(&qp->modify_lock);
	soft_due_run(&due);
	/* The peer's requests may have waited for RTR, and our own for RTS. */
	if (!err && to == IBV_QPS_RTR && from == IBV_QPS_INIT)
		soft_kick_peer(qp);
	if (!err && to == IBV_QPS_RTS)
		soft_send_resume(qp);
	return err;
}

int soft_query_qp(struct uvd_qp *base, struct ibv_qp_attr *attr, int mask, struct uvd_qp_init_attr *init)
{
	struct soft_qp *qp = soft_qp(base);

	pthread_mutex_lock(&qp->lock);
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = qp->state;
	attr->sq_psn = qp->s_psn;
	attr->rq_psn = qp->r_psn;
	attr->sq_draining = qp->s_draining;
	pthread_mutex_unlock(&qp->lock);
	attr->path_mig_state = IBV_MIG_MIGRATED;
	attr->cap = qp->cap;
	init->cap = qp->cap;
	init->sq_sig_all = qp->sq_sig_all;
	return 0;
}

void soft_query_qp_work(struct uvd_qp *base, struct uvd_qp_work *work)
{
	struct soft_qp *qp = soft_qp(base);

	pthread_mutex_lock(&qp->lock);
	*work = qp->s_work;
	work->sends = soft_sq_count(qp);
	work->receives = soft_rq_count(&qp->rq);
	pthread_mutex_unlock(&qp->lock);
}

int soft_destroy_qp(struct uvd_qp *base)
{
	struct soft_qp *qp = soft_qp(base);
	struct uvd_fabric *fabric = qp->dev->fabric;

	/*
	 * The order matters: deliver what the network holds; hide the QP from look-ups; stop the threads that work on it, so that they arm no timer;
	 * disarm its timer; wait until all references are put.
	 */
	qp_settle_held(qp);
	soft_fabric_remove_qp(fabric, qp);
	soft_mcast_forget(qp);
	soft_raw_leave(qp);
	pthread_mutex_lock(&qp->lock);
	qp_reset(qp);
	/* While qp_reset() waited, the holder of r_busy may have queued the QP as a waiter of its SRQ again. */
	soft_srq_forget(qp);
	pthread_mutex_unlock(&qp->lock);
	soft_timers_release(&fabric->timers, qp);
	soft_ref_wait(&qp->ref);

	pthread_cond_destroy(&qp->idle);
	pthread_mutex_destroy(&qp->lock);
	pthread_mutex_destroy(&qp->modify_lock);
	free_queues(qp);
	qp->dev->num_qps--;
	return 0;
}
