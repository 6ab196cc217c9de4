/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Messages of communication management (InfiniBand 12.6 and 12.11), as the state machine makes and takes them. A carrier brings them to
 * their receiver: here to another identifier of the same engine.
 */
#ifndef UVD_CM_MESSAGE_H
#define UVD_CM_MESSAGE_H

#include "cm/internal.h"

enum cm_msg_type {
	CM_REQ,
	CM_MRA,
	CM_REJ,
	CM_REP,
	CM_RTU,
	CM_DREQ,
	CM_DREP,
	CM_SIDR_REQ,
	CM_SIDR_REP,
};

/* The data of the client that a message has room for, behind the header of the IP addresses where there is one. */
enum {
	CM_REQ_DATA = 92,
	CM_REP_DATA = 196,
	CM_REJ_DATA = 148,
	CM_SIDR_REQ_DATA = 216,
	CM_SIDR_REP_DATA = 136,
	CM_IP_HEADER = 36, /* struct cma_hdr, Annex A11: in a REQ and a SIDR REQ, but of AF_IB */
	CM_MOST_DATA = CM_SIDR_REQ_DATA,
};

/* Reasons of a REJ (InfiniBand 12.6.7.2). */
enum {
	CM_REJ_TIMEOUT = 4,
	CM_REJ_INVALID_SERVICE_ID = 8,
	CM_REJ_STALE = 10,
	CM_REJ_CONSUMER = 28,
	CM_REJ_VENDOR_OPTION = 35
};
/* Status of a SIDR REP (InfiniBand 12.11.2). */
enum { CM_SIDR_SUCCESS, CM_SIDR_UNSUPPORTED, CM_SIDR_REJECT };

struct cm_msg {
	struct list_head of_cm;
	enum cm_msg_type type;
	uint32_t local_comm, remote_comm; /* the sender's id, the receiver's; of a SIDR message the request id */
	union cm_addr src, dst; /* of the sender and the receiver */
	__be64 node_guid; /* of the sender's device */
	uint16_t ps;
	uint8_t qp_type;
	uint32_t qpn, psn, qkey;
	uint8_t responder_resources, initiator_depth, flow_control, retry_count, rnr_retry_count;
	bool srq;
	uint8_t tos; /* of the path; in a REQ */
	struct rdma_ucm_ece ece;
	uint32_t reason; /* of a REJ; the status of a SIDR REP */
	uint8_t len; /* of the client's data */
	uint8_t data[CM_MOST_DATA];
};

struct cm_carrier {
	/* Sends a copy. Takes the lock as held. The message may be lost, and arrives after the lock was given up at the earliest. */
	void (*send)(struct uvd_cm *cm, const struct cm_msg *msg);
	/* Can messages to this address arrive? */
	bool (*reaches)(struct uvd_cm *cm, const union cm_addr *dst);
};

extern const struct cm_carrier cm_local_carrier;
/* local.c: delivers the messages that wait. Lock held. */
void cm_local_deliver(struct uvd_cm *cm);

/* receive.c: a message has arrived. Lock held. */
void cm_receive(struct uvd_cm *cm, const struct cm_msg *msg);
/* The same for an answer, of which it is known whose it is. */
void cm_receive_of(struct cm_id *id, const struct cm_msg *msg);

/* send.c: what an identifier's owner does to its connection. Lock held. Returns 0 or a negative errno (ib_send_cm_*()). */
int cm_send_req(struct cm_id *id, const struct rdma_ucm_conn_param *param, const struct rdma_ucm_ece *ece);
int cm_send_rep(struct cm_id *id, const struct rdma_ucm_conn_param *param, const struct rdma_ucm_ece *ece);
int cm_send_rtu(struct cm_id *id);
int cm_send_rej(struct cm_id *id, uint32_t reason, const void *data, size_t len);
int cm_send_dreq(struct cm_id *id);
int cm_send_drep(struct cm_id *id);
int cm_send_sidr_req(struct cm_id *id, const struct rdma_ucm_conn_param *param);
int cm_send_sidr_rep(struct cm_id *id, uint32_t status, const struct rdma_ucm_conn_param *param);
void cm_send_mra(struct cm_id *id);
/* Ends the connection, whatever its state (cm_destroy_id()). quiet: the peer may try again. */
void cm_conn_end(struct cm_id *id, bool quiet);
/* The timer of an identifier has run out. */
void cm_timed_out(struct cm_id *id);
/* No answer has come to its request, reply or DREQ. status: of the event, a negative errno. */
void cm_conn_give_up(struct cm_id *id, int status);
void cm_enter_timewait(struct cm_id *id);
void cm_conn_reset(struct cm_id *id); /* to CONN_IDLE */
/* Gives the identifier a communication id, and lets messages find it. */
void cm_conn_begin(struct cm_id *id);
void cm_conn_set_remote(struct cm_id *id, uint32_t remote_comm);
void cm_conn_set_remote_qp(struct cm_id *id, __be64 node_guid, uint32_t qpn);
struct cm_id *cm_conn_find_remote_qp(struct uvd_cm *cm, __be64 node_guid, uint32_t qpn);
struct cm_id *cm_conn_find(struct uvd_cm *cm, uint32_t comm);
struct cm_id *cm_conn_find_remote(struct uvd_cm *cm, uint32_t remote_comm);

#endif
