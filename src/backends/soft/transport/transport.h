/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Carries out one request, or refuses it as a responder would. The caller has claimed the requester's send queue for
 * the mover, and holds no lock. After SOFT_LOST the requester was taken from the mover: the caller must not touch it,
 * nor its requests.
 */
#ifndef UVD_SOFT_TRANSPORT_H
#define UVD_SOFT_TRANSPORT_H

#include "backends/soft/endpoint/endpoint.h"

/* Outcomes that more than one transport has. */
static const struct soft_outcome soft_sent = { .kind = SOFT_DONE, .status = IBV_WC_SUCCESS };
static const struct soft_outcome soft_bad_memory = { .kind = SOFT_DONE, .status = IBV_WC_LOC_PROT_ERR };
static const struct soft_outcome soft_lost = { .kind = SOFT_LOST };
static const struct soft_outcome soft_no_answer = { .kind = SOFT_NO_ANSWER };

static inline bool soft_is_sent(struct soft_outcome outcome)
{
	return outcome.kind == SOFT_DONE && outcome.status == IBV_WC_SUCCESS;
}

/* ---- responders -------------------------------------------------------------------------------------------------- */

/*
 * A request at its responder. Its carrier claims the QP and brings the request in parts, each with the bytes that follow those of the
 * part before. For each part the carrier sets offset, length and is_last, and for the first one the rest of these, with zeros below.
 */
struct soft_inbound {
	struct soft_mover *m; /* its buffer has the bytes, or gets them, unless they are foreign */
	const struct soft_arrival *arrival;
	struct soft_qp *qp; /* claimed */
	uint32_t offset, length; /* of the part, in bytes */
	bool is_last;
	bool has_late_receive; /* an RDMA WRITE with immediate data, of which the part before did not say that it is one */
	bool is_from_wire; /* the wire has counted its packets, and those of its answer */
	bool may_view; /* bytes may be copied directly, and not through the mover's buffer */
	/* The responder keeps these for later parts: */
	struct soft_due due;
	unsigned int epoch; /* the QP's r_epoch when the request arrived */
	struct soft_seg seg; /* the memory that the R_Key names */
	bool has_seg;
	struct soft_foreign foreign; /* the part, if it is copied directly; the carrier puts it */
	struct soft_srq *srq, *old_srq; /* XRC: references */
	struct ibv_wc wc; /* of a datagram's receive */
};

/* Returns the bytes of the part, to be written, and tells the mover whether they are foreign. */
static inline void *soft_inbound_bytes(struct soft_inbound *in)
{
	in->m->is_foreign = in->foreign.view;
	return in->foreign.view ? (void *)in->foreign.at : in->m->buffer;
}

/* Returns the traffic of the part: all parts but the last have whole packets. */
struct soft_traffic soft_inbound_traffic(const struct soft_inbound *in);

/*
 * RC and XRC, rc_responder.c. The carrier holds the QP's lock, and has claimed it.
 *
 * soft_rc_take(): accepts the part and moves its bytes, or refuses it. The lock is released meanwhile; it is held again afterwards
 * unless the QP was taken from the mover (SOFT_LOST).
 * soft_rc_execute(): after the last part: the QP expects the next request. The requester may be told if this succeeds.
 * soft_rc_complete(): then; adds the completion of the receive.
 */
struct soft_outcome soft_rc_take(struct soft_inbound *in);
struct soft_outcome soft_rc_execute(struct soft_inbound *in);
void soft_rc_complete(struct soft_inbound *in);
/*
 * XRC; nothing for other QPs. soft_rc_use_srq(): before each part; the QP uses the SRQ that the request names. soft_rc_leave_srq():
 * afterwards, with the lock still held. If the message does not go on, flushes its receive, as the next message may name another SRQ.
 * soft_rc_put_srqs(): without the lock.
 */
void soft_rc_use_srq(struct soft_inbound *in);
void soft_rc_leave_srq(struct soft_inbound *in, bool goes_on);
void soft_rc_put_srqs(struct soft_inbound *in);
/*
 * Would the QP take the request now? SOFT_DONE: it would, or is claimed. Moves no data. is_retry: a missing receive counts as an RNR
 * NAK. Caller holds qp->lock, and has not claimed the QP.
 */
struct soft_outcome soft_rc_look(struct soft_qp *qp, const struct soft_arrival *arrival, bool is_retry);
/* Is this the request that the responder expects next? Caller holds qp->lock. */
bool soft_rc_admits(struct soft_qp *qp, const struct soft_arrival *arrival);

/* UC, uc_responder.c; as soft_rc_take(). Returns false if the rest of the message is not needed. */
bool soft_uc_take(struct soft_inbound *in);
/* After the last part. */
void soft_uc_complete(struct soft_inbound *in);

enum { SOFT_GRH_BYTES = 40 };

/*
 * UD messages and raw frames, dgram_responder.c; as for UC, but in one part. In the mover's buffer the datagram is behind SOFT_GRH_BYTES
 * bytes, which have the header if the address is global.
 */
bool soft_datagram_take(struct soft_inbound *in);
void soft_datagram_complete(struct soft_inbound *in);

/* ---- requesters, and the local network --------------------------------------------------------------------------- */

/* RC and XRC, rc.c. */
struct soft_outcome soft_rc_send(struct soft_mover *m, struct soft_request *req);
/* soft_rc_look() at the request's responder. is_retry: the wait of the request is over. Caller holds no lock. */
struct soft_outcome soft_rc_probe(struct soft_request *req, bool is_retry);

/* Requests at the head of a send queue, to be carried out together. */
struct soft_burst {
	struct soft_request req; /* the first */
	unsigned int num;
	struct soft_send_wqe *wqes[SOFT_BURST];
};

/* Lists the requests that a burst could have, perhaps none. Caller holds qp->lock; the queue is not empty. */
void soft_burst_collect(struct soft_qp *qp, struct soft_burst *burst);
/*
 * Carries out the burst, or the first requests of it, and sets burst->num to their number. 0: none was carried out, and
 * the caller tries each alone. Returns false in the case of SOFT_LOST.
 */
bool soft_rc_burst(struct soft_mover *m, struct soft_burst *burst);

struct soft_outcome soft_uc_send(struct soft_mover *m, struct soft_request *req);

/* ---- held.c: messages of unreliable QPs that the network holds back ---------------------------------------------- */

/*
 * Copies the message, whose bytes are in the mover's buffer, and sets req->held. Returns false if there is no memory, or the
 * client's share of it is used up: then the message is delivered now.
 */
bool soft_hold(struct soft_mover *m, struct soft_request *req, uint32_t length);
/* Delivers the message. Caller has s_busy, and frees the message afterwards. Returns false in the case of SOFT_LOST. */
bool soft_held_deliver(struct soft_mover *m, struct soft_held *held);
/* Deliver the message, whose bytes are in the mover's buffer. */
struct soft_outcome soft_uc_deliver(struct soft_mover *m, struct soft_request *req);
struct soft_outcome soft_datagram_deliver(struct soft_mover *m, struct soft_request *req);

/* Makes the header that a UD receive begins with. The arrival's address is global. */
void soft_make_grh(uint8_t grh[SOFT_GRH_BYTES], const struct soft_arrival *arrival);
/*
 * On RoCE a receiver learns from ibv_wc.sl which header it is. Returns it as mlx5 encodes it, which UCX relies on: bit 3,
 * the packet has a UDP header; bits 0 to 2, 1 for IPv6 and 2 for IPv4.
 */
uint8_t soft_packet_type(const struct soft_arrival *arrival);
/* UD and raw frames. soft_datagram_gather(): reads the message into the mover's buffer, behind SOFT_GRH_BYTES bytes. */
struct soft_outcome soft_datagram_gather(struct soft_mover *m, struct soft_request *req);
struct soft_outcome soft_datagram_send(struct soft_mover *m, struct soft_request *req);
/* Binds and local invalidations, which have no peer. */
struct soft_outcome soft_local_send(struct soft_mover *m, struct soft_request *req);

/* ---- capture.c: tells a capture what goes over the network ------------------------------------------------------- */

static inline bool soft_is_captured(const struct soft_request *req)
{
	return req->qp->dev->fabric->capture;
}

/*
 * For requests of a network with a capture. Call each before a completion of what it tells is added: a client that sees one
 * may send the next packet at once. The mover must have the requester.
 *
 * soft_capture_request(): len bytes of the request, from `offset` on. UC, UD and raw frames have nothing else.
 */
void soft_capture_request(const struct soft_request *req, uint32_t offset, const void *bytes, uint32_t len);
/*
 * RC and XRC: these bytes of the request reach nobody who answers. Of a READ and an atomic only the request is told, which has no bytes.
 */
void soft_capture_dropped(const struct soft_request *req, uint32_t offset, const void *bytes, uint32_t len);
/*
 * RC and XRC. Caller has claimed the peer and holds its lock.
 *
 * soft_capture_chunk(): len bytes of the payload, whatever its direction, have been moved; of an atomic, the old value.
 * soft_capture_end(): the peer has carried out the request. soft_capture_refusal(): the peer has answered these bytes with
 * this outcome; nothing is told if that is not a NAK.
 */
void soft_capture_chunk(const struct soft_request *req, struct soft_qp *peer, uint32_t offset, const void *bytes,
			uint32_t len);
void soft_capture_end(const struct soft_request *req, struct soft_qp *peer);
void soft_capture_refusal(const struct soft_request *req, struct soft_qp *peer, uint32_t offset, const void *bytes,
			  uint32_t len, struct soft_outcome outcome);

#endif
