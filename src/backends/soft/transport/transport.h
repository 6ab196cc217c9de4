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

/* RC, and XRC. */
struct soft_outcome soft_rc_send(struct soft_mover *m, struct soft_request *req);
/*
 * Would the peer take the request now? SOFT_DONE: it would, or it is claimed. Moves no data. is_retry: the wait of the
 * request is over, so a missing receive counts as an RNR NAK. Caller holds no lock.
 */
struct soft_outcome soft_rc_probe(struct soft_request *req, bool is_retry);
/* Is this the request that the responder expects next? Caller holds peer->lock. */
bool soft_rc_admits(struct soft_qp *peer, const struct soft_request *req);

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

enum { SOFT_GRH_BYTES = 40 };

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

/* Makes the header that a UD receive begins with. The request's address is global. */
void soft_make_grh(uint8_t grh[SOFT_GRH_BYTES], const struct soft_request *req);
/*
 * On RoCE a receiver learns from ibv_wc.sl which header it is. Returns it as mlx5 encodes it, which UCX relies on: bit 3,
 * the packet has a UDP header; bits 0 to 2, 1 for IPv6 and 2 for IPv4.
 */
uint8_t soft_packet_type(const struct soft_request *req);
/* UD and raw frames. */
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
