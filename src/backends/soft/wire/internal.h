/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared by the files of this room, but for the machines. */
#ifndef UVD_SOFT_WIRE_INTERNAL_H
#define UVD_SOFT_WIRE_INTERNAL_H

#include <stdatomic.h>
#include <pthread.h>
#include "backends/soft/wire/responder.h"
#include "backends/soft/wire/wire.h"
#include "util/util.h"

enum {
	/* Packets for one QP that wait for its thread, at most. The window of an RC peer is far less, and a UC peer has none. */
	WIRE_INBOX = 2048,
	WIRE_RECORDS = 16,
	WIRE_FREE_LETTERS = 512, /* kept: malloc() would give the memory of each burst back to the kernel */
	WIRE_RECEIVERS = 8, /* threads */
	WIRE_SLOW_USERS = 16, /* with so many, the receiver runs no QPs any more */
	WIRE_TOLD = 32, /* destinations about which the log has a line, at most */
	WIRE_LOOKS = 8, /* searches for the packets that ICMP messages quote, in a second */
	WIRE_SENT_PSNS = 2,
	WIRE_NO_PSN = 0xffffffff,
	WIRE_SHORT_BYTES = 4 << 10, /* so much the receiver's thread delivers itself */
};

#define WIRE_TOLD_NS UINT64_C(60000000000) /* a line of the log is not repeated before */

/* A packet that waits for its QP's thread. */
struct wire_letter {
	struct wire_letter *next;
	union ibv_gid from, to;
	struct uvd_packet packet; /* its payload is in `payload` */
	uint8_t payload[];
};

/* A letter costs the QP's account this much, whatever its payload: it has room for any. */
enum { WIRE_LETTER_BYTES = sizeof(struct wire_letter) + UVD_IB_MTU_MAX };

struct wire_letters {
	struct wire_letter *first, **last;
	unsigned int num;
	uint32_t bytes; /* of payload, and of what READs ask for */
};

/* A thread that receives, or waits to take over from one that is held up in a client's memory. */
struct wire_receiver {
	struct uvd_worker worker;
	struct soft_wire *wire;
	struct uvd_socket_receiver *memory;
	pthread_t thread;
	uid_t user; /* whose QP it runs: uvd_account_person() */
	atomic_bool is_replaced;
};

/* A line of the log about a destination. */
struct wire_told {
	union ibv_gid to;
	int err;
	uint64_t until; /* not repeated before. CLOCK_MONOTONIC, ns */
};

/* The sockets of an engine. */
struct soft_wire {
	struct uvd_fabric *fabric;
	struct uvd_socket *sockets[SOFT_WIRE_ADDRESSES];
	unsigned int num;
	soft_wire_run_fn *run;
	int wake; /* an eventfd: makes the receiver look at `num` and `stop` */
	atomic_bool stop;
	pthread_mutex_t lock; /* of what follows; a leaf */
	pthread_cond_t turn; /* `active` has become NULL */
	struct wire_receiver *active; /* the one that receives */
	struct wire_receiver receivers[WIRE_RECEIVERS];
	unsigned int num_receivers, num_spare; /* spare: neither active nor held up */
	uid_t slow[WIRE_SLOW_USERS]; /* users in whose memory a receiver was held up */
	unsigned int num_slow;
	struct wire_sender *senders; /* free ones */
	pthread_mutex_t letters_lock; /* of what follows; a leaf */
	struct wire_letter *letters; /* free ones */
	unsigned int num_letters;
	_Atomic uint64_t drops[SOFT_WIRE_ADDRESSES][WIRE_DROPS]; /* packets, by socket and reason */
	pthread_mutex_t told_lock; /* of `told`; a leaf */
	struct wire_told told[WIRE_TOLD];
	pthread_mutex_t kept_lock; /* of what follows; a leaf */
	pthread_cond_t kept_changed;
	struct list_head kept; /* packets that a filter delays, the next one first */
	uint64_t kept_nr; /* of the last one */
	bool kept_runs, kept_stop;
	pthread_t kept_thread; /* if kept_runs */
	uint64_t looks_until; /* the receiver's: `looks` counts up to this time. CLOCK_MONOTONIC, ns */
	unsigned int looks;
};

/* The memory with which one thread sends: lent to it while it runs a QP. */
struct wire_sender {
	struct wire_sender *next;
	struct uvd_socket_sender *memory;
	unsigned int num;
	struct uvd_socket_out out[UVD_SOCKET_BATCH];
};

/*
 * Sends what is in sender->out, for this QP, and counts it. may_wait: if the socket's buffer is full, waits a little for room; else the
 * rest is lost, which the requester's timer repairs.
 */
void wire_sender_flush(struct soft_qp *qp, struct wire_sender *sender, struct uvd_socket *socket, bool may_wait);
/* Room for a packet with UVD_IB_MTU_MAX bytes of payload. Returns NULL if there is no memory. */
struct wire_letter *wire_letter_get(struct soft_wire *wire);
/* Takes a list of them back. */
void wire_letters_put(struct soft_wire *wire, struct wire_letter *first);
struct wire_sender *wire_sender_get(struct soft_wire *wire);
void wire_sender_put(struct soft_wire *wire, struct wire_sender *sender);
/* Returns the socket with this address, or NULL. */
struct uvd_socket *wire_socket_of(struct soft_wire *wire, const union ibv_gid *gid);

/* A UC message that has begun at its receiver. */
struct wire_uc {
	bool in_message;
	bool is_dropped; /* the rest of the message that has begun is dropped, which is explained */
	uint32_t expected; /* PSN */
	struct soft_arrival arrival;
	uint32_t offset;
};

/*
 * A QP's end of a connection. The thread that has s_busy owns all of it but the inbox, which is under qp->lock.
 */
struct soft_wire_qp {
	struct soft_qp *qp;
	struct soft_wire *wire;
	struct uvd_socket *socket; /* of its source GID */
	union ibv_gid peer;
	atomic_bool sends; /* it has been in RTS, and has a requester */
	bool is_long; /* so much is in flight that answers make it send more than the receiver's thread may. qp->lock */
	bool resends; /* the port has come up: what was lost meanwhile goes out again. qp->lock */
	struct wire_connection connection;
	struct wire_letters inbox;
	uint32_t flight; /* packets charged to the account. qp->lock */
	uint64_t starves_until; /* then it may send without a share. CLOCK_MONOTONIC, ns; 0: it does not starve */
	uint64_t timer_at; /* when the QP's timer expires; 0: it is not armed. qp->lock */

	struct wire_letters work; /* taken out of the inbox */
	struct wire_requester requester;
	struct wire_responder responder;
	struct wire_record records[WIRE_RECORDS];
	struct soft_inbound in; /* the message that has begun, at our responder */
	struct wire_uc uc;
	uint32_t uc_sent; /* bytes of the oldest request of a UC QP that have been sent */
	_Atomic uint32_t sent_psn[WIRE_SENT_PSNS]; /* of the latest request and answer that were sent, or WIRE_NO_PSN */
	uint64_t held_nr; /* of the packet that the network holds back; 0: none */
	bool held_is_overtaken; /* another one was sent since */
	bool is_claimed; /* take() has left the QP claimed, for finish() */
	/* While a thread runs it: */
	struct soft_mover *m;
	struct wire_sender *sender;
	struct soft_due due;
};

/* ---- seen.c ------------------------------------------------------------------------------------------------------ */

/* Puts all packets of the socket into the capture. Call it before another thread uses the socket. capture: NULL is allowed. */
void wire_capture(struct uvd_socket *socket, struct uvd_capture *capture);
/* Counts a packet that is dropped. reason: enum uvd_packet_fault or enum wire_drop. */
void wire_count_drop(struct soft_wire *wire, const struct uvd_socket *socket, unsigned int reason);
/* Counts the packets of a QP of which the socket has handled the first ones: the others are lost. */
void wire_count_sent(struct soft_qp *qp, const struct uvd_socket *socket, const struct wire_sender *sender,
		     unsigned int handled);
/* Counts a packet of the QP that the network has. */
void wire_count_kept(struct soft_qp *qp, const struct uvd_socket_out *out);
/* Counts a packet that has arrived for the QP. waiting: others in its inbox. */
void wire_count_received(struct soft_qp *qp, const struct uvd_packet *packet, unsigned int waiting);
/* Completes the oldest request with success, and counts it. Caller holds qp->lock. */
void wire_complete(struct soft_qp *qp, struct soft_send_wqe *wqe, struct soft_due *due);
/* Empties the socket's queue of errors. ICMP errors are hints: they end nothing, and the log gets a line. */
void wire_take_errors(struct soft_wire *wire, struct uvd_socket *socket);

/*
 * A packet of a socket for this QP, which is copied. Returns true if the caller must see that a thread runs the QP: none does, nor is about
 * to. Caller holds no lock, here and in the next two functions.
 */
bool wire_deliver(struct soft_qp *qp, const struct uvd_socket *socket, const struct uvd_socket_in *in,
		  const struct uvd_packet *packet);
/* Appends a packet to those that carrier_flush() sends to the peer; its payload stays valid until then. */
void carrier_transmit(void *user, const struct uvd_packet *packet);
void carrier_flush(void *user);
struct soft_outcome carrier_gather(void *user, const struct soft_send_wqe *wqe, uint32_t offset, uint32_t len,
				   const uint8_t **bytes);
extern const struct wire_requester_ops wire_requester_ops; /* carrier.c */
extern const struct wire_responder_ops wire_responder_ops;
/* Is the port up, and does the machine still have the QP's address? */
bool wire_has_way(const struct soft_wire_qp *w);
/* The socket from which a port reaches an address beyond this engine, or NULL. */
struct uvd_socket *wire_way_out(struct soft_device *dev, const struct uvd_port_config *port,
				const struct ibv_ah_attr *ah);

/* ---- later.c ----------------------------------------------------------------------------------------------------- */

void wire_later_init(struct soft_wire *wire);
/* Ends its thread, and drops what it keeps. */
void wire_later_destroy(struct soft_wire *wire);
/*
 * The network has a packet of the QP, and delivers it `ns` later; it stays the QP's user's until then. Copies it. Returns its number, or 0:
 * there is no memory, and it must be sent now.
 */
uint64_t wire_later_add(struct soft_qp *qp, struct uvd_socket *socket, const struct uvd_socket_out *out, uint64_t ns);
/* The packet is delivered now, unless it has been. */
void wire_later_hurry(struct soft_wire *wire, uint64_t nr);
/*
 * Does what the filters have decided on a packet. Returns true if the caller must not send it. Caller has s_busy, here and in the next two
 * functions.
 */
bool wire_later_takes(struct soft_qp *qp, struct uvd_socket *socket, const struct uvd_socket_out *out,
		      enum uvd_fate fate, uint64_t hold_ns, uint64_t delay_ns);
/* A packet of the QP is about to be sent behind those before, and: what was about to be sent has been. */
void wire_later_overtake(struct soft_wire_qp *w);
void wire_later_flushed(struct soft_wire_qp *w);

/* ---- share.c ----------------------------------------------------------------------------------------------------- */

/*
 * Sets how many packets the requester may have in flight, so that its user's QPs together have no more than the limit `flight`. Caller has
 * s_busy, here and in the next function.
 */
void wire_share_ask(struct soft_wire_qp *w, uint64_t now);
/* The requester has so many packets in flight now. starves: it would send if its share let it. Caller holds qp->lock. */
void wire_share_settle(struct soft_wire_qp *w, uint32_t packets, bool starves);

/* ---- unreliable.c: UC and UD ------------------------------------------------------------------------------------- */

/* Sends messages of a UC QP, up to `budget` bytes. Returns SOFT_LOST or soft_sent. */
struct soft_outcome wire_uc_send(struct soft_wire_qp *w, uint32_t budget);
/* Takes the first packets of num. Returns how many; *outcome: SOFT_LOST or soft_sent. */
unsigned int wire_uc_take(struct soft_wire_qp *w, const struct uvd_packet *packets, unsigned int num,
			  struct soft_outcome *outcome);
struct soft_outcome wire_ud_take(struct soft_wire_qp *w, const struct wire_letter *letter);

/* Makes a thread of the QP's user run it. */
void wire_defer(struct soft_qp *qp);
/* Is there little to do for the QP: no more than WIRE_SHORT_BYTES of payload, and no READ of more? */
bool wire_is_short(struct soft_qp *qp);
void wire_letters_free(struct soft_qp *qp, struct wire_letters *letters);
/* Frees the packets that wait, and gives back what is charged for those in flight. Caller holds qp->lock; no thread has s_busy but its own. */
void wire_give_back(struct soft_wire_qp *w);

#endif
