/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Messages arrive: the handlers of cm.c, and the events that cma.c and ucma.c make of them. */
#include <errno.h>
#include <string.h>
#include "cm/message.h"

/* An event that tells the client of a message's parameters. */
static void event_set_conn(struct cm_event *ev, const struct cm_msg *msg, unsigned int len)
{
	struct rdma_ucm_conn_param *param = &ev->resp.param.conn;

	memcpy(param->private_data, msg->data, msg->len);
	param->private_data_len = len; /* always all that there is room for */
	param->responder_resources = msg->initiator_depth; /* the peer's initiator is our responder */
	param->initiator_depth = msg->responder_resources;
	param->flow_control = msg->flow_control;
	param->rnr_retry_count = msg->rnr_retry_count;
	param->srq = msg->srq;
	param->qp_num = msg->qpn;
	ev->resp.ece = msg->ece;
}

/* ---- requests ------------------------------------------------------------------------------------------------------ */

/* reason: of a REJ. A SIDR REP says either that there is no service, or that it does not want the request. */
static void answer_rej(struct uvd_cm *cm, const struct cm_msg *to, uint32_t reason)
{
	const uint32_t status = reason == CM_REJ_INVALID_SERVICE_ID ? CM_SIDR_UNSUPPORTED : CM_SIDR_REJECT;
	struct cm_msg msg = {
		.type = to->type == CM_SIDR_REQ ? CM_SIDR_REP : CM_REJ,
		.remote_comm = to->local_comm,
		.src = to->dst,
		.dst = to->src,
		.ps = to->ps,
		.qp_type = to->qp_type,
		.reason = to->type == CM_SIDR_REQ ? status : reason,
	};

	cm->carrier->send(cm, &msg);
}

/* The header of a request has no room for what an IPv6 address has beside its bytes and port (cma_save_ip6_info()). */
static void addr_as_received(union cm_addr *addr)
{
	if (addr->family != AF_INET6)
		return;
	addr->in6.sin6_flowinfo = 0;
	addr->in6.sin6_scope_id = 0;
}

/* Takes over what the request says of the connection. */
static void child_init(struct cm_id *child, const struct cm_msg *msg)
{
	child->state = CM_CONNECT;
	child->passive = true;
	child->src = msg->dst;
	child->dst = msg->src;
	addr_as_received(&child->src);
	addr_as_received(&child->dst);
	if (cm_id_is_ib(child))
		cm_id_find_peer(child);
	cm_conn_begin(child);
	cm_conn_set_remote(child, msg->local_comm);
	child->conn = msg->type == CM_SIDR_REQ ? CONN_SIDR_REQ_RCVD : CONN_REQ_RCVD;
	if (msg->type == CM_REQ)
		cm_conn_set_remote_qp(child, msg->node_guid, msg->qpn);
	child->path_tos = msg->tos;
	child->remote_psn = msg->psn;
	child->responder_resources = msg->initiator_depth;
	child->initiator_depth = msg->responder_resources;
	child->retry_count = msg->retry_count;
	child->rnr_retry_count = msg->rnr_retry_count;
}

/*
 * A service id request has no path: cma_save_ib_info() knows the listener's address alone. With that of a wildcard the kernel finds no
 * port, and refuses the request; here the path is known.
 */
static void child_set_ib(struct cm_id *child, const struct cm_id *listener)
{
	if (cm_addr_is_any(&listener->src))
		return;
	child->src = listener->src;
	child->src.ib.sid_mask = UINT64_MAX;
	child->dst = (union cm_addr){ .family = UVD_AF_IB };
}

static struct cm_event *request_event(struct cm_id *listener, struct cm_id *child, const struct cm_msg *msg)
{
	const bool is_ip = child->src.family != UVD_AF_IB, is_ud = msg->type == CM_SIDR_REQ;
	const unsigned int room = (is_ud ? CM_SIDR_REQ_DATA : CM_REQ_DATA) - (is_ip ? CM_IP_HEADER : 0);
	struct cm_event *ev = cm_event_new(listener, CM_EVENT_CONNECT_REQUEST, 0);

	if (!ev)
		return NULL;
	ev->resp.id = child->number;
	ev->made = child;
	child->made_by = ev;
	if (is_ud) {
		memcpy(ev->resp.param.ud.private_data, msg->data, msg->len);
		ev->resp.param.ud.private_data_len = room;
	} else {
		event_set_conn(ev, msg, room);
		ev->resp.param.conn.retry_count = msg->retry_count;
	}
	return ev;
}

/* Returns whether the request was taken (ucma_connect_event_handler()). */
static bool request_take(struct cm_id *listener, const struct cm_msg *msg, struct cm_device *device, uint8_t port)
{
	struct cm_id *child;
	struct cm_event *ev;
	int err;

	if (listener->backlog <= 0)
		return false;
	child = cm_id_new(listener->file, listener->ps, msg->qp_type, &err); /* of a SIDR REQ: UD */
	if (!child)
		return false;
	cm_id_set_device(child, device, port);
	child_init(child, msg);
	if (msg->type == CM_SIDR_REQ && child->src.family == UVD_AF_IB)
		child_set_ib(child, listener);
	ev = request_event(listener, child, msg);
	if (!ev) {
		cm_conn_end(child, true);
		cm_id_destroy(child);
		return false;
	}
	listener->backlog--;
	cm_event_post(ev);
	return true;
}

/* The sender has not had an answer yet, and asks again: cm_dup_req_handler(). */
static void request_again(struct cm_id *id)
{
	if (id->conn == CONN_REQ_RCVD)
		cm_send_mra(id);
	else if (id->conn == CONN_REP_SENT || id->conn == CONN_MRA_REP_RCVD)
		id->cm->carrier->send(id->cm, id->last);
}

/* cma_ib_check_req_qp_type() */
static bool takes_type(const struct cm_id *listener, const struct cm_msg *msg)
{
	const uint8_t type = msg->type == CM_SIDR_REQ ? IBV_QPT_UD : msg->qp_type;

	return !listener->qp_type || listener->qp_type == type;
}

static void receive_request(struct uvd_cm *cm, const struct cm_msg *msg)
{
	struct cm_id *again = cm_conn_find_remote(cm, msg->local_comm), *listener, *stale;
	struct cm_device *device;
	uint8_t port;

	if (again) {
		request_again(again);
		return;
	}
	/* The peer has forgotten the connection that we still have with its QP (cm_match_req()). */
	stale = msg->type == CM_REQ ? cm_conn_find_remote_qp(cm, msg->node_guid, msg->qpn) : NULL;
	if (stale) {
		answer_rej(cm, msg, CM_REJ_STALE);
		cm_send_dreq(stale);
		return;
	}
	if (!cm_device_find(cm, &msg->dst, &device, &port) || !cm_port_is_service(cm, msg->ps, &msg->dst, device)) {
		answer_rej(cm, msg, CM_REJ_INVALID_SERVICE_ID);
		return;
	}
	listener = cm_port_listener(cm, msg->ps, &msg->dst, device, port);
	if (listener && takes_type(listener, msg) && request_take(listener, msg, device, port))
		return;
	/* The sender of a REQ that has found no place may try again (cm_destroy_id() with ENOMEM). */
	if (!listener || !takes_type(listener, msg) || msg->type == CM_SIDR_REQ)
		answer_rej(cm, msg, CM_REJ_CONSUMER);
}

/* ---- answers ------------------------------------------------------------------------------------------------------- */

/* cma_ib_handler() passes on nothing of a connection that its owner has ended. */
static bool hears(const struct cm_id *id)
{
	return id->state == CM_CONNECT && id->uid;
}

static void receive_mra(struct cm_id *id)
{
	if (id->conn == CONN_REQ_SENT)
		id->conn = CONN_MRA_REQ_RCVD;
	else if (id->conn == CONN_REP_SENT)
		id->conn = CONN_MRA_REP_RCVD;
	else if (id->conn != CONN_MRA_REQ_RCVD && id->conn != CONN_MRA_REP_RCVD)
		return;
	cm_timer_start(id, CM_TIMER_MRA);
}

static void receive_rep(struct cm_id *id, const struct cm_msg *msg)
{
	struct cm_event *ev;
	struct cm_id *stale;

	if (id->conn == CONN_REP_RCVD && id->remote_comm == msg->local_comm) {
		cm_send_mra(id);
		return;
	}
	if (id->conn != CONN_REQ_SENT && id->conn != CONN_MRA_REQ_RCVD)
		return;
	/* The peer's QP has another connection here. Our request stays, and is sent again (cm_rep_handler()). */
	stale = cm_conn_find_remote_qp(id->cm, msg->node_guid, msg->qpn);
	if (stale) {
		answer_rej(id->cm, msg, CM_REJ_STALE);
		cm_send_dreq(stale);
		return;
	}
	cm_timer_stop(id);
	cm_conn_set_remote(id, msg->local_comm);
	cm_conn_set_remote_qp(id, msg->node_guid, msg->qpn);
	id->conn = CONN_REP_RCVD;
	id->remote_psn = msg->psn;
	id->responder_resources = msg->initiator_depth;
	id->initiator_depth = msg->responder_resources;
	id->rnr_retry_count = msg->rnr_retry_count;
	ev = hears(id) ? cm_event_new(id, CM_EVENT_CONNECT_RESPONSE, 0) : NULL;
	if (ev) {
		event_set_conn(ev, msg, CM_REP_DATA);
		cm_event_post(ev);
	}
}

static void receive_rtu(struct cm_id *id)
{
	if (id->conn != CONN_REP_SENT && id->conn != CONN_MRA_REP_RCVD)
		return;
	cm_timer_stop(id);
	id->conn = CONN_ESTABLISHED;
	if (hears(id))
		cm_event_tell(id, CM_EVENT_ESTABLISHED, 0);
}

static bool rej_changes(struct cm_id *id)
{
	switch (id->conn) {
	case CONN_REQ_SENT:
	case CONN_MRA_REQ_RCVD:
	case CONN_REP_SENT:
	case CONN_MRA_REP_RCVD:
	case CONN_REQ_RCVD:
		cm_conn_reset(id);
		return true;
	case CONN_DREQ_SENT:
	case CONN_REP_RCVD:
	case CONN_ESTABLISHED:
		cm_enter_timewait(id);
		return true;
	default:
		return false;
	}
}

static void receive_rej(struct cm_id *id, const struct cm_msg *msg)
{
	struct cm_event *ev;

	if (!rej_changes(id) || !hears(id))
		return;
	ev = cm_event_new(id, CM_EVENT_REJECTED, msg->reason);
	if (!ev)
		return;
	memcpy(ev->resp.param.conn.private_data, msg->data, msg->len);
	ev->resp.param.conn.private_data_len = CM_REJ_DATA;
	cm_event_post(ev);
}

static void tell_disconnected(struct cm_id *id)
{
	if (id->state != CM_CONNECT)
		return;
	id->state = CM_DISCONNECT;
	cm_event_tell(id, CM_EVENT_DISCONNECTED, 0);
}

static void receive_dreq(struct cm_id *id)
{
	switch (id->conn) {
	case CONN_REP_SENT:
	case CONN_MRA_REP_RCVD:
	case CONN_DREQ_SENT:
	case CONN_ESTABLISHED:
		cm_timer_stop(id);
		id->conn = CONN_DREQ_RCVD;
		tell_disconnected(id);
		break;
	default:
		break;
	}
}

static void receive_drep(struct cm_id *id)
{
	if (id->conn != CONN_DREQ_SENT && id->conn != CONN_DREQ_RCVD)
		return;
	cm_enter_timewait(id);
	tell_disconnected(id);
}

/* cma_sidr_rep_handler() */
static void receive_sidr_rep(struct cm_id *id, const struct cm_msg *msg)
{
	struct cm_event *ev;

	if (id->conn != CONN_SIDR_REQ_SENT)
		return;
	cm_conn_reset(id);
	if (!hears(id))
		return;
	if (msg->reason == CM_SIDR_SUCCESS && cm_id_set_qkey(id, msg->qkey)) {
		cm_event_tell(id, CM_EVENT_ADDR_ERROR, -EINVAL);
		return;
	}
	ev = cm_event_new(id, msg->reason ? CM_EVENT_UNREACHABLE : CM_EVENT_ESTABLISHED, msg->reason);
	if (!ev)
		return;
	memcpy(ev->resp.param.ud.private_data, msg->data, msg->len);
	ev->resp.param.ud.private_data_len = CM_SIDR_REP_DATA;
	if (msg->reason == CM_SIDR_SUCCESS) {
		ev->resp.param.ud.qp_num = msg->qpn;
		ev->resp.param.ud.qkey = msg->qkey;
		cm_id_ah(id, &ev->resp.param.ud.ah_attr);
	}
	cm_event_post(ev);
}

/* The sender of a request that gives up before it has an answer does not know our id (cm_acquire_rejected_id()). */
static struct cm_id *find_receiver(struct uvd_cm *cm, const struct cm_msg *msg)
{
	if (msg->type == CM_REJ && msg->reason == CM_REJ_TIMEOUT)
		return cm_conn_find_remote(cm, msg->local_comm);
	return cm_conn_find(cm, msg->remote_comm);
}

void cm_receive_of(struct cm_id *id, const struct cm_msg *msg)
{
	switch (msg->type) {
	case CM_MRA:
		receive_mra(id);
		break;
	case CM_REP:
		receive_rep(id, msg);
		break;
	case CM_RTU:
		receive_rtu(id);
		break;
	case CM_REJ:
		receive_rej(id, msg);
		break;
	case CM_DREQ:
		receive_dreq(id);
		break;
	case CM_DREP:
		receive_drep(id);
		break;
	case CM_SIDR_REP:
		receive_sidr_rep(id, msg);
		break;
	default:
		break;
	}
}

void cm_receive(struct uvd_cm *cm, const struct cm_msg *msg)
{
	struct cm_id *id;

	if (msg->type == CM_REQ || msg->type == CM_SIDR_REQ) {
		receive_request(cm, msg);
		return;
	}
	id = find_receiver(cm, msg);
	if (id)
		cm_receive_of(id, msg);
}
