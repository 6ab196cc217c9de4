/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The states of a connection (InfiniBand 12.9), as far as an identifier's owner or its timer changes them: ib_send_cm_*() and
 * cm_destroy_id() of cm.c. receive.c has what a message does.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cm/message.h"

enum { MAX_RETRIES = 15 /* CMA_MAX_CM_RETRIES */ };

/* ---- communication ids -------------------------------------------------------------------------------------------- */

static struct list_head *comm_bucket(struct list_head *buckets, uint32_t comm)
{
	return &buckets[comm % CM_BUCKETS];
}

void cm_conn_begin(struct cm_id *id)
{
	struct uvd_cm *cm = id->cm;

	id->conn = CONN_IDLE;
	if (id->in_comm)
		return;
	id->comm = cm->next_comm++ ^ cm->comm_mask;
	list_add(&id->of_comm, comm_bucket(cm->by_comm, id->comm));
	id->in_comm = true;
}

void cm_conn_set_remote(struct cm_id *id, uint32_t remote_comm)
{
	id->remote_comm = remote_comm;
	if (id->in_remote)
		list_del_init(&id->of_remote);
	list_add(&id->of_remote, comm_bucket(id->cm->by_remote, remote_comm));
	id->in_remote = true;
}

struct cm_id *cm_conn_find(struct uvd_cm *cm, uint32_t comm)
{
	struct list_head *bucket = comm_bucket(cm->by_comm, comm);
	struct cm_id *id;

	list_for_each_entry(id, bucket, of_comm)
		if (id->comm == comm)
			return id;
	return NULL;
}

struct cm_id *cm_conn_find_remote(struct uvd_cm *cm, uint32_t remote_comm)
{
	struct list_head *bucket = comm_bucket(cm->by_remote, remote_comm);
	struct cm_id *id;

	list_for_each_entry(id, bucket, of_remote)
		if (id->remote_comm == remote_comm)
			return id;
	return NULL;
}

/* The peer's device and QP: as long as the connection is there, no other may have them (cm_insert_remote_qpn()). */
void cm_conn_set_remote_qp(struct cm_id *id, __be64 node_guid, uint32_t qpn)
{
	id->remote_guid = node_guid;
	id->remote_qpn = qpn;
	list_add(&id->of_remote_qp, comm_bucket(id->cm->by_remote_qp, qpn));
	id->in_remote_qp = true;
}

struct cm_id *cm_conn_find_remote_qp(struct uvd_cm *cm, __be64 node_guid, uint32_t qpn)
{
	struct list_head *bucket = comm_bucket(cm->by_remote_qp, qpn);
	struct cm_id *id;

	list_for_each_entry(id, bucket, of_remote_qp)
		if (id->remote_qpn == qpn && id->remote_guid == node_guid)
			return id;
	return NULL;
}

static void conn_unhash(struct cm_id *id)
{
	if (id->in_comm)
		list_del_init(&id->of_comm);
	if (id->in_remote)
		list_del_init(&id->of_remote);
	id->in_comm = id->in_remote = false;
}

/* ---- messages ------------------------------------------------------------------------------------------------------ */

/* AF_IB: the path says who they are, and the service id is the port space's, too. */
static void msg_set_ib(const struct cm_id *id, struct cm_msg *msg)
{
	msg->src.ib = msg->dst.ib = (struct uvd_sockaddr_ib){ .family = UVD_AF_IB, .pkey = htobe16(cm_id_pkey(id)) };
	cm_id_gids(id, msg->src.ib.gid, msg->dst.ib.gid);
	msg->dst.ib.sid = id->dst.ib.sid;
	msg->dst.ib.sid_mask = UINT64_MAX;
	msg->ps = be64toh(id->dst.ib.sid) >> 16;
}

static void msg_init(const struct cm_id *id, enum cm_msg_type type, struct cm_msg *msg)
{
	*msg = (struct cm_msg){
		.type = type,
		.local_comm = id->comm,
		.remote_comm = id->remote_comm,
		.src = id->src,
		.ps = id->ps,
		.qp_type = id->qp_type,
		.tos = id->path_tos,
	};
	cm_addr_target(&id->dst, &id->src, &msg->dst);
	if (id->device && id->src.family == UVD_AF_IB)
		msg_set_ib(id, msg);
	if (id->device)
		msg->node_guid = id->device->node_guid;
}

static void msg_send(struct cm_id *id, const struct cm_msg *msg)
{
	if (!id->lost && !id->unheard)
		id->cm->carrier->send(id->cm, msg);
}

static void send_plain(struct cm_id *id, enum cm_msg_type type)
{
	struct cm_msg msg;

	msg_init(id, type, &msg);
	msg_send(id, &msg);
}

static void last_free(struct cm_id *id)
{
	free(id->last);
	id->last = NULL;
}

/* Sends a message that is sent again until it is answered. Returns -ENOMEM, and has sent nothing. */
static int send_retried(struct cm_id *id, const struct cm_msg *msg)
{
	struct cm_msg *copy = malloc(sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	*copy = *msg;
	last_free(id);
	id->last = copy;
	id->retries = MAX_RETRIES;
	msg_send(id, msg);
	cm_timer_start(id, CM_TIMER_RESPONSE);
	return 0;
}

static int msg_set_data(struct cm_msg *msg, const void *data, size_t len, size_t most)
{
	if (len > most)
		return -EINVAL;
	msg->len = len;
	memcpy(msg->data, data, len);
	return 0;
}

/* How much of a message's data a client has: that of IP addresses shares it with their header. */
static size_t room_for_client(const struct cm_id *id, size_t room)
{
	return id->src.family == UVD_AF_IB ? room : room - CM_IP_HEADER;
}

static void msg_set_param(struct cm_msg *msg, const struct rdma_ucm_conn_param *param, const struct rdma_ucm_ece *ece)
{
	msg->responder_resources = param->responder_resources;
	msg->initiator_depth = param->initiator_depth;
	msg->flow_control = param->flow_control;
	msg->retry_count = param->retry_count < 7 ? param->retry_count : 7;
	msg->rnr_retry_count = param->rnr_retry_count < 7 ? param->rnr_retry_count : 7;
	msg->ece = *ece;
	msg->ece.vendor_id &= 0xffffff;
}

/* ---- the states ---------------------------------------------------------------------------------------------------- */

static void conn_forget_remote_qp(struct cm_id *id)
{
	if (id->in_remote_qp)
		list_del_init(&id->of_remote_qp);
	id->in_remote_qp = false;
}

void cm_conn_reset(struct cm_id *id)
{
	cm_timer_stop(id);
	last_free(id);
	conn_forget_remote_qp(id);
	id->conn = CONN_IDLE;
}

void cm_enter_timewait(struct cm_id *id)
{
	last_free(id);
	conn_forget_remote_qp(id); /* cm_cleanup_timewait() */
	id->conn = CONN_TIMEWAIT;
	cm_timer_start(id, CM_TIMER_TIMEWAIT);
}

/* The type of the passive end's QP: cm_req_get_qp_type() of what cm_req_set_qp_type() has set. */
static uint8_t peer_qp_type(uint8_t type)
{
	switch (type) {
	case IBV_QPT_UC:
		return IBV_QPT_UC;
	case IBV_QPT_XRC_SEND:
		return IBV_QPT_XRC_RECV;
	default:
		return IBV_QPT_RC;
	}
}

int cm_send_req(struct cm_id *id, const struct rdma_ucm_conn_param *param, const struct rdma_ucm_ece *ece)
{
	struct cm_msg msg;
	int err;

	if (id->lost || (id->qp_type != IBV_QPT_RC && id->qp_type != IBV_QPT_UC && id->qp_type != IBV_QPT_XRC_SEND))
		return -EINVAL;
	cm_conn_begin(id);
	msg_init(id, CM_REQ, &msg);
	msg.remote_comm = 0;
	msg.qp_type = peer_qp_type(id->qp_type);
	msg_set_param(&msg, param, ece);
	msg.qpn = id->qpn;
	msg.psn = id->psn;
	msg.srq = id->srq;
	id->responder_resources = msg.responder_resources;
	id->initiator_depth = msg.initiator_depth;
	id->retry_count = msg.retry_count;
	id->rnr_retry_count = msg.rnr_retry_count;
	if (id->qp_type == IBV_QPT_XRC_SEND) { /* a REQ of XRC does not say these (cm_format_req()) */
		msg.responder_resources = msg.retry_count = msg.rnr_retry_count = 0;
		msg.srq = false;
	}
	err = msg_set_data(&msg, param->private_data, param->private_data_len, room_for_client(id, CM_REQ_DATA))
		      ?: send_retried(id, &msg);
	if (err)
		return err;
	id->conn = CONN_REQ_SENT;
	return 0;
}

int cm_send_rep(struct cm_id *id, const struct rdma_ucm_conn_param *param, const struct rdma_ucm_ece *ece)
{
	struct cm_msg msg;
	int err;

	if (id->conn != CONN_REQ_RCVD || id->lost)
		return -EINVAL;
	msg_init(id, CM_REP, &msg);
	msg_set_param(&msg, param, ece);
	msg.qpn = id->qpn;
	msg.psn = id->psn;
	msg.srq = id->srq;
	if (id->qp_type == IBV_QPT_XRC_RECV) { /* cm_format_rep() */
		msg.initiator_depth = msg.flow_control = 0;
		msg.srq = true;
	}
	err = msg_set_data(&msg, param->private_data, param->private_data_len, CM_REP_DATA) ?: send_retried(id, &msg);
	if (err)
		return err;
	id->responder_resources = param->responder_resources;
	id->initiator_depth = param->initiator_depth;
	id->conn = CONN_REP_SENT;
	return 0;
}

int cm_send_rtu(struct cm_id *id)
{
	if (id->conn != CONN_REP_RCVD)
		return -EINVAL;
	send_plain(id, CM_RTU);
	id->conn = CONN_ESTABLISHED;
	return 0;
}

static void rej_now(struct cm_id *id, uint32_t reason, const void *data, size_t len)
{
	struct cm_msg msg;

	msg_init(id, CM_REJ, &msg);
	msg.reason = reason;
	(void)msg_set_data(&msg, data, len, CM_REJ_DATA);
	msg_send(id, &msg);
}

int cm_send_rej(struct cm_id *id, uint32_t reason, const void *data, size_t len)
{
	if (len > CM_REJ_DATA)
		return -EINVAL;
	switch (id->conn) {
	case CONN_REQ_SENT:
	case CONN_MRA_REQ_RCVD:
	case CONN_REQ_RCVD:
	case CONN_REP_RCVD:
		rej_now(id, reason, data, len);
		cm_conn_reset(id);
		return 0;
	case CONN_REP_SENT:
	case CONN_MRA_REP_RCVD:
		rej_now(id, reason, data, len);
		cm_enter_timewait(id);
		return 0;
	default:
		return -EINVAL;
	}
}

int cm_send_dreq(struct cm_id *id)
{
	struct cm_msg msg;
	int err;

	if (id->conn != CONN_ESTABLISHED)
		return -EINVAL;
	msg_init(id, CM_DREQ, &msg);
	err = id->lost ? -EINVAL : send_retried(id, &msg);
	if (err)
		cm_enter_timewait(id);
	else
		id->conn = CONN_DREQ_SENT;
	return err;
}

int cm_send_drep(struct cm_id *id)
{
	if (id->conn != CONN_DREQ_RCVD)
		return -EINVAL;
	send_plain(id, CM_DREP);
	cm_enter_timewait(id);
	return 0;
}

void cm_send_mra(struct cm_id *id)
{
	send_plain(id, CM_MRA);
}

int cm_send_sidr_req(struct cm_id *id, const struct rdma_ucm_conn_param *param)
{
	struct cm_msg msg;
	int err;

	if (id->lost)
		return -EINVAL;
	cm_conn_begin(id);
	msg_init(id, CM_SIDR_REQ, &msg);
	err = msg_set_data(&msg, param->private_data, param->private_data_len, room_for_client(id, CM_SIDR_REQ_DATA))
		      ?: send_retried(id, &msg);
	if (!err)
		id->conn = CONN_SIDR_REQ_SENT;
	return err;
}

/* param: of a success; NULL: without data */
int cm_send_sidr_rep(struct cm_id *id, uint32_t status, const struct rdma_ucm_conn_param *param)
{
	struct cm_msg msg;
	int err = 0;

	if (id->conn != CONN_SIDR_REQ_RCVD)
		return -EINVAL;
	msg_init(id, CM_SIDR_REP, &msg);
	msg.reason = status;
	if (param)
		err = msg_set_data(&msg, param->private_data, param->private_data_len, CM_SIDR_REP_DATA);
	if (err)
		return err;
	if (status == CM_SIDR_SUCCESS) {
		msg.qpn = id->qpn;
		msg.qkey = id->qkey;
	}
	msg_send(id, &msg);
	cm_conn_reset(id);
	return 0;
}

/* ---- the end ------------------------------------------------------------------------------------------------------- */

void cm_conn_end(struct cm_id *id, bool quiet)
{
	switch (id->conn) {
	case CONN_REQ_SENT:
	case CONN_MRA_REQ_RCVD:
		rej_now(id, CM_REJ_TIMEOUT, "", 0);
		break;
	case CONN_REQ_RCVD:
		if (!quiet)
			rej_now(id, CM_REJ_CONSUMER, "", 0);
		break;
	case CONN_REP_SENT:
	case CONN_MRA_REP_RCVD:
	case CONN_REP_RCVD:
		rej_now(id, CM_REJ_CONSUMER, "", 0);
		break;
	case CONN_ESTABLISHED:
		send_plain(id, CM_DREQ);
		break;
	case CONN_DREQ_RCVD:
		send_plain(id, CM_DREP);
		break;
	case CONN_SIDR_REQ_RCVD:
		cm_send_sidr_rep(id, CM_SIDR_REJECT, NULL);
		break;
	default:
		break;
	}
	cm_conn_reset(id);
	conn_unhash(id);
	id->conn = CONN_NONE;
}

void cm_conn_give_up(struct cm_id *id, int status)
{
	const enum cm_conn was = id->conn;

	if (was == CONN_DREQ_SENT) {
		cm_enter_timewait(id);
		if (id->state == CM_CONNECT) {
			id->state = CM_DISCONNECT;
			cm_event_tell(id, CM_EVENT_DISCONNECTED, status);
		}
		return;
	}
	cm_conn_reset(id);
	if (id->state == CM_CONNECT)
		cm_event_tell(id, CM_EVENT_UNREACHABLE, status);
}

void cm_timed_out(struct cm_id *id)
{
	if (id->conn == CONN_TIMEWAIT) {
		cm_conn_reset(id);
		if (id->state == CM_DISCONNECT)
			cm_event_tell(id, CM_EVENT_TIMEWAIT_EXIT, 0);
		return;
	}
	if (!id->retries--) {
		cm_conn_give_up(id, -ETIMEDOUT);
		return;
	}
	msg_send(id, id->last);
	cm_timer_start(id, id->timer);
}
