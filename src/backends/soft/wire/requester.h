/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An RC or XRC requester over packets: segmentation, PSNs, the window, retries and go-back-N, READs in slices (the InfiniBand
 * specification, volume 1, 9.7; rxe_req.c and rxe_comp.c in the kernel). A machine without threads, sockets, clock and client memory: its
 * owner calls it with packets and the time, and gives it operations. Only one thread is in it at a time.
 */
#ifndef UVD_SOFT_WIRE_REQUESTER_H
#define UVD_SOFT_WIRE_REQUESTER_H

#include "backends/soft/endpoint/endpoint.h"
#include "backends/soft/wire/credits.h"
#include "backends/soft/wire/rtt.h"
#include "backends/soft/wire/window.h"
#include "wire/wire.h"

enum {
	WIRE_REQUESTS = SOFT_BURST, /* begun and not complete, at most */
	WIRE_SLICE =
		16, /* packets that one READ request asks for, at most: at offsets that are multiples of that many */
	WIRE_RUN = 56, /* packets whose data is read or written by one access, at most */
	WIRE_RUN_BYTES = 60 << 10,
};

/* The connection, as both machines know it. */
struct wire_connection {
	uint8_t transport; /* UVD_TRANSPORT_RC or _XRC */
	uint16_t pkey;
	uint32_t dest_qpn;
	uint32_t mtu; /* bytes */
	enum ibv_mtu mtu_code;
};

/* Returns how many packets one access reads or writes at most. */
static inline uint32_t wire_packets_at_once(const struct wire_connection *c)
{
	const uint32_t packets = WIRE_RUN_BYTES / c->mtu;

	return packets < WIRE_RUN ? packets : WIRE_RUN;
}

/*
 * Operations of the owner, who gets `user`. An outcome that is not soft_is_sent(): SOFT_LOST ends the call at once, and the machine is
 * not touched any more; SOFT_NO_ANSWER stops it until it is called again; SOFT_DONE with another status is the request's error.
 */
struct wire_requester_ops {
	/*
	 * Returns the n-th oldest of the requests that have not completed, or NULL; it stays valid until it completes. A request that has not
	 * begun is returned only if it may begin now.
	 */
	const struct soft_send_wqe *(*peek)(void *user, unsigned int n);
	/* Checks the memory of a request, if that must be done before its first packet. */
	struct soft_outcome (*check)(void *user, const struct soft_send_wqe *wqe);
	/* Gets len bytes of the request's data, which stay valid until the next gather() or scatter(). */
	struct soft_outcome (*gather)(void *user, const struct soft_send_wqe *wqe, uint32_t offset, uint32_t len,
				      const uint8_t **bytes);
	/* Returns a buffer of WIRE_RUN_BYTES, and stores len bytes of it in the memory of a READ or atomic. */
	uint8_t *(*buffer)(void *user);
	struct soft_outcome (*scatter)(void *user, const struct soft_send_wqe *wqe, uint32_t offset, uint32_t len);
	/* Carries out a bind or a local invalidation. */
	struct soft_outcome (*local)(void *user, const struct soft_send_wqe *wqe);
	/* Sends a packet. Its payload stays valid until flush(), which comes before the next gather(). */
	void (*transmit)(void *user, const struct uvd_packet *packet);
	void (*flush)(void *user);
	/* The oldest request has completed with this status, and is gone. */
	void (*complete)(void *user, enum ibv_wc_status status);
	/* Counts an event at the port. */
	void (*count)(void *user, enum uvd_port_counter which);
};

/* A request that has begun. */
struct wire_flight {
	uint32_t psn, packets; /* a READ has as many as its answer */
	uint32_t got; /* packets of the answer to a READ that have arrived */
	bool brings_back, takes_receive;
	uint32_t ssn; /* see credits.h */
};

struct wire_requester {
	const struct wire_requester_ops *ops;
	void *user;
	struct wire_connection c;
	struct wire_window window;
	struct wire_credits credits;
	uint32_t share; /* packets that may be in flight, whatever the window; 0: it waits. The owner sets it */
	unsigned int max_rd_atomic;
	uint64_t timeout_ns; /* 0: none */
	int retry_cnt, rnr_retry; /* 7 RNR retries are no limit */

	struct wire_flight flight[WIRE_REQUESTS];
	unsigned int head, num; /* of flight */
	uint32_t una, next,
		top; /* PSNs: the oldest without an answer; the next to send; behind the last that was ever sent */
	unsigned int at; /* the request that `next` belongs to, counted from the oldest; num: one that has not begun */
	uint32_t at_packet; /* and its packet */
	uint32_t since_ack_req; /* packets sent since one that asked for an acknowledgement */
	int retries, rnr_retries; /* left */
	unsigned int rnrs; /* RNR NAKs in a row */
	uint64_t retry_at, rnr_at, probe_at; /* deadlines; 0: none. CLOCK_MONOTONIC, ns */
	struct wire_rtt rtt;
	uint64_t now; /* of the call that sends */
	bool waits_for_older; /* the next request is in error, which shows once those before it have completed */
	bool wants_read_again; /* an answer to a READ is missing, and was asked for again */
};

void wire_requester_init(struct wire_requester *r, const struct wire_requester_ops *ops, void *user,
			 const struct wire_connection *c, uint32_t psn, uint32_t window);
/* Begins and goes on with requests, as far as the window allows. budget: bytes. Returns SOFT_LOST or soft_sent. */
struct soft_outcome wire_requester_send(struct wire_requester *r, uint64_t now, uint32_t budget);
/* Is there more to send now? wqe: what ops->peek() returns for `at`. Calls no operation. */
bool wire_requester_may_send(struct wire_requester *r, const struct soft_send_wqe *wqe);
/*
 * Takes answers: num packets in the order of their arrival, all of this connection, with the opcodes of responses. Returns SOFT_LOST, or
 * soft_sent.
 */
struct soft_outcome wire_requester_answers(struct wire_requester *r, const struct uvd_packet *packets, unsigned int num,
					   uint64_t now);
/* Retries what has waited too long; a probe before the QP's timeout uses up no retry. Returns SOFT_LOST or soft_sent. */
struct soft_outcome wire_requester_tick(struct wire_requester *r, uint64_t now);
/* Sends all that is in flight again, without using up a retry: the way was down, and is there again. */
void wire_requester_resend(struct wire_requester *r);
/* Returns the next time to call wire_requester_tick(), or 0. */
uint64_t wire_requester_deadline(const struct wire_requester *r);
/* Returns how many packets are in flight, those of answers to READs among them. */
uint32_t wire_requester_in_flight(const struct wire_requester *r);
/*
 * Returns how many packets may be on the network, or come back: those in flight, and after going back what had been sent before, up to the
 * window.
 */
uint32_t wire_requester_held(const struct wire_requester *r);
/* Is there something that the share alone does not let it send? wqe: as above. */
bool wire_requester_starves(const struct wire_requester *r, const struct soft_send_wqe *wqe);
/* Is this packet, which an ICMP error quotes, in flight? */
bool wire_requester_sent(const struct wire_requester *r, uint32_t psn);

#endif
