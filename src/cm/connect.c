/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* LISTEN, CONNECT, ACCEPT, REJECT, DISCONNECT and NOTIFY (rdma_listen() and so on of cma.c). */
#include <errno.h>
#include <string.h>
#include "cm/command.h"
#include "cm/message.h"

enum { MAX_BACKLOG = 1024 /* of net/rdma_ucm/max_backlog */ };

/* ---- LISTEN -------------------------------------------------------------------------------------------------------- */

static int listen_start(struct cm_id *id)
{
	const union cm_addr any = { .in = { .sin_family = AF_INET } };
	int err;

	if (id->state != CM_ADDR_BOUND) {
		err = cm_id_bind(id, &any, NULL, false);
		if (err)
			return err;
	}
	err = cm_port_listen(id);
	if (err)
		return err;
	id->state = CM_LISTEN;
	if (id->device) /* without one each device has an ib_cm_id of its own for it */
		id->conn = CONN_LISTEN;
	/* From now on the port is this identifier's alone. */
	id->reuseaddr = false;
	return 0;
}

int cm_listen(struct cm_cmd *c)
{
	const struct rdma_ucm_listen *in = (const void *)c->in;
	struct cm_id *id;
	int err = cm_cmd_id(c, in->id, &id);

	if (err)
		return err;
	/* Also of a call that fails: ucma_listen(). */
	id->backlog = in->backlog && in->backlog <= MAX_BACKLOG ? (int)in->backlog : MAX_BACKLOG;
	err = listen_start(id);
	if (err)
		return err == -EINVAL ? cm_wrong_state(c, id)
				      : cm_wrong(c, "the identifier's port", cm_addr_port(&id->src), err);
	return 0;
}

/* ---- CONNECT ------------------------------------------------------------------------------------------------------- */

int cm_connect_check(struct cm_cmd *c)
{
	const struct rdma_ucm_connect *in = (const void *)c->in;

	return in->conn_param.valid ? 0 : cm_wrong(c, "conn_param.valid", 0, -EINVAL);
}

static void id_set_qp(struct cm_id *id, const struct rdma_ucm_conn_param *param)
{
	id->qpn = param->qp_num & 0xffffff;
	id->srq = param->srq;
}

/* Nothing can be sent from an address that the machine has lost. */
static int wrong_address(struct cm_cmd *c, const struct cm_id *id, int err)
{
	return cm_wrong(c, "the identifier's address, which was lost, with port", cm_addr_port(&id->src), err);
}

/* A filter decides in the place of the peer. */
static void connect_end(struct cm_id *id, const struct uvd_cm_call *filtered)
{
	const bool is_ud = id->qp_type == IBV_QPT_UD;
	const struct cm_msg answer = { .type = is_ud ? CM_SIDR_REP : CM_REJ,
				       .reason = is_ud ? CM_SIDR_REJECT : (uint32_t)filtered->status };

	if (filtered->outcome == UVD_CM_REJECTED)
		cm_receive_of(id, &answer);
	else if (filtered->outcome == UVD_CM_UNREACHABLE)
		cm_conn_give_up(id, filtered->status);
}

int cm_connect(struct cm_cmd *c)
{
	const struct rdma_ucm_connect *in = (const void *)c->in;
	struct cm_id *id;
	int err = cm_cmd_id_bound(c, in->id, &id);

	if (err)
		return err;
	if (id->state != CM_ROUTE_RESOLVED)
		return cm_wrong_state(c, id);
	id->unheard = c->filtered.outcome == UVD_CM_REJECTED || c->filtered.outcome == UVD_CM_UNREACHABLE;
	id_set_qp(id, &in->conn_param);
	err = id->qp_type == IBV_QPT_UD ? cm_send_sidr_req(id, &in->conn_param)
					: cm_send_req(id, &in->conn_param, &in->ece);
	if (err) { /* as the kernel destroys the ib_cm_id */
		cm_conn_end(id, true);
		if (id->lost)
			return wrong_address(c, id, err);
		return cm_wrong(c, "conn_param.private_data_len", in->conn_param.private_data_len, err);
	}
	id->state = CM_CONNECT;
	connect_end(id, &c->filtered);
	return 0;
}

/* ---- ACCEPT -------------------------------------------------------------------------------------------------------- */

static int accept_ud(struct cm_id *id, const struct rdma_ucm_accept *in)
{
	int err = 0;

	if (in->conn_param.valid)
		id_set_qp(id, &in->conn_param);
	/* With IP addresses all have one Q_Key: ucma_copy_conn_param(). */
	if (in->conn_param.valid && id->src.family == UVD_AF_IB && in->conn_param.qkey)
		err = cm_id_set_qkey(id, in->conn_param.qkey);
	else
		cm_id_default_qkey(id);
	return err ?: cm_send_sidr_rep(id, CM_SIDR_SUCCESS, in->conn_param.valid ? &in->conn_param : NULL);
}

static int accept_conn(struct cm_id *id, const struct rdma_ucm_accept *in)
{
	if (!in->conn_param.valid)
		return cm_send_rtu(id);
	id_set_qp(id, &in->conn_param);
	return cm_send_rep(id, &in->conn_param, &in->ece);
}

/* rdma_reject() */
static int reject(struct cm_id *id, uint32_t reason, const void *data, size_t len)
{
	struct rdma_ucm_conn_param param = { .private_data_len = len };

	if (id->qp_type != IBV_QPT_UD)
		return cm_send_rej(id, reason, data, len);
	memcpy(param.private_data, data, len);
	return cm_send_sidr_rep(id, CM_SIDR_REJECT, &param);
}

int cm_accept(struct cm_cmd *c)
{
	const struct rdma_ucm_accept *in = (const void *)c->in;
	struct cm_id *id;
	int err = cm_cmd_id_bound(c, in->id, &id);

	if (err)
		return err;
	if (id->state != CM_CONNECT)
		return cm_wrong_state(c, id);
	err = id->qp_type == IBV_QPT_UD ? accept_ud(id, in) : accept_conn(id, in);
	if (err) {
		reject(id, CM_REJ_CONSUMER, "", 0);
		if (id->lost)
			return wrong_address(c, id, err);
		return cm_wrong(c, "conn_param", in->conn_param.private_data_len, err);
	}
	if (in->conn_param.valid)
		id->uid = in->uid;
	return 0;
}

/* ---- REJECT, DISCONNECT, NOTIFY ------------------------------------------------------------------------------------ */

int cm_reject_check(struct cm_cmd *c)
{
	const struct rdma_ucm_reject *in = (const void *)c->in;

	if (!in->reason || in->reason == CM_REJ_CONSUMER || in->reason == CM_REJ_VENDOR_OPTION)
		return 0;
	return cm_wrong(c, "reason", in->reason, -EINVAL);
}

int cm_reject(struct cm_cmd *c)
{
	const struct rdma_ucm_reject *in = (const void *)c->in;
	struct cm_id *id;
	int err = cm_cmd_id_bound(c, in->id, &id);

	if (err)
		return err;
	if (id->conn == CONN_NONE)
		return cm_wrong_state(c, id);
	return reject(id, in->reason ?: CM_REJ_CONSUMER, in->private_data, in->private_data_len);
}

int cm_disconnect(struct cm_cmd *c)
{
	const struct rdma_ucm_disconnect *in = (const void *)c->in;
	struct cm_id *id;
	int err = cm_cmd_id_bound(c, in->id, &id);

	if (err)
		return err;
	if (id->conn == CONN_NONE)
		return cm_wrong_state(c, id);
	/* Begins it, or answers the peer who has. Otherwise there is nothing to end, which is no error. */
	if (cm_send_dreq(id))
		cm_send_drep(id);
	return 0;
}

/* The QP has got a packet before its owner has got the RTU: ib_cm_notify(). */
static int conn_established(struct cm_id *id)
{
	if (id->conn == CONN_ESTABLISHED)
		return -EISCONN;
	if (id->conn != CONN_REP_SENT && id->conn != CONN_MRA_REP_RCVD)
		return -EINVAL;
	cm_timer_stop(id);
	id->conn = CONN_ESTABLISHED;
	cm_event_tell(id, CM_EVENT_ESTABLISHED, 0);
	return 0;
}

int cm_notify(struct cm_cmd *c)
{
	const struct rdma_ucm_notify *in = (const void *)c->in;
	struct cm_id *id;
	int err = cm_cmd_id(c, in->id, &id);

	if (err)
		return err;
	if (!id->device || id->conn == CONN_NONE)
		return cm_wrong_state(c, id);
	return in->event == IBV_EVENT_COMM_EST ? conn_established(id) : cm_wrong(c, "event", in->event, -EINVAL);
}
