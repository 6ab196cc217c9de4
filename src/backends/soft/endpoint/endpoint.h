/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue pairs and shared receive queues, for the code that carries out requests. A QP is a requester, which has a send
 * queue, and a responder, which has receives. docs/soft-engine.md says what each lock protects, and what a thread may
 * wait for.
 */
#ifndef UVD_SOFT_ENDPOINT_H
#define UVD_SOFT_ENDPOINT_H

#include <pthread.h>
#include <uverbsd/backend.h>
#include "backends/backends.h"
#include "backends/soft/completion/completion.h"
#include "backends/soft/endpoint/network.h"
#include "backends/soft/memory/memory.h"
#include "backends/soft/queue/queue.h"

struct soft_held;
struct soft_request;
struct soft_wire_qp;

/* ---- a QP -------------------------------------------------------------------------------------------------------- */

enum soft_wait { SOFT_WAIT_NONE, SOFT_WAIT_RNR, SOFT_WAIT_RETRY };

struct soft_qp {
	struct uvd_qp qp;
	struct soft_device *dev;
	struct soft_ref ref;
	struct soft_qp *next; /* in the bucket */
	struct soft_timer timer; /* the timers' lock */

	pthread_mutex_t modify_lock; /* one modify_qp() at a time; taken before `lock` */
	pthread_mutex_t lock;
	pthread_cond_t idle; /* s_busy, s_arrived or r_busy has become false */
	atomic_int state; /* enum ibv_qp_state; written under the lock, also read without it */
	struct ibv_qp_attr attr; /* the state, the PSNs and the caps have members of their own */
	struct ibv_qp_cap cap;
	bool sq_sig_all;

	struct soft_ring sq;
	bool s_busy;
	struct soft_mover *s_mover; /* the mover that has set s_busy */
	bool s_kicked; /* retry the oldest request: what it waits for may be there */
	atomic_bool s_arrived; /* the oldest request has arrived, and completes next: see soft_send_arrived() */
	bool s_started; /* the oldest request has been tried: draining has to finish it */
	bool s_draining, s_drained_event;
	bool s_deferred; /* only the user's thread may run the send queue */
	unsigned int s_stream; /* number of runs of large requests, each soon after the one before */
	uint64_t s_run_end; /* end of the last run, CLOCK_MONOTONIC, ns; 0: it was not of large requests */
	uint64_t s_crowded_end; /* CPUs count as short until then: doorbells do their work first; CLOCK_MONOTONIC, ns */
	bool s_crowded; /* CPUs were short when the last run by a call's thread began */
	bool s_wanted; /* a doorbell's thread waits for the user's thread to release s_busy */
	enum soft_wait s_wait;
	unsigned int s_wait_nr; /* number of the wait: the timer thread ignores a timer of an earlier wait */
	uint64_t s_wait_end; /* RNR: when the wait is over; CLOCK_MONOTONIC, ns */
	uint64_t s_look_ns; /* RNR: the timer thread looks for a receive after this time, if before s_wait_end */
	unsigned int s_rnr_grown; /* RNR: how often the wait has doubled */
	bool s_lost; /* RETRY: the network has lost the oldest request */
	int s_retry, s_rnr_retry; /* retries left for the oldest request */
	uint32_t s_psn;
	struct soft_held *s_held; /* a message that the network holds back, or NULL; written with s_busy and the lock */
	bool s_delivers_held; /* the mover that has set s_busy is delivering it */

	struct soft_user *d_user; /* the user whose list has this QP, or NULL; this and of_user: the users' lock */
	struct list_head of_user;
	struct soft_user *e_user; /* the user whose thread looks for receives, as the QP is in ERR, or NULL; `lock` */
	struct list_head in_error; /* of e_user; the users' lock */

	struct soft_rq rq;
	uint64_t charged; /* bytes, for r_wqe; the rings are charged separately */
	struct soft_recv_wqe *r_wqe; /* the receive that a message has taken, if r_taken */
	bool r_busy, r_taken;
	atomic_bool r_slow; /* the mover that set r_busy is stuck in this QP's memory: drop datagrams */
	unsigned int r_epoch; /* counts resets: a message that began before a reset does not go on */
	uint32_t r_srqn; /* XRC target: number of the SRQ that r_wqe was taken from */
	bool r_nak; /* the peer got an RNR NAK: kick it when a receive is posted */
	bool r_established, r_last_wqe; /* COMM_EST, QP_LAST_WQE_REACHED: already reported */
	bool r_silent; /* its process has exited: it answers no requests */
	uint16_t r_told; /* bits of enum soft_drop: such a drop has been explained since the last reset */
	bool s_told; /* a message that led to no QP has */
	uint32_t r_psn;
	uint32_t r_msn; /* requests that it has carried out, if the traffic is captured */

	/*
	 * The SRQ that receives are taken from, or NULL. An XRC target has one only while a request has r_busy: the one
	 * that the request names, with a reference. Its R_Keys must then be of that SRQ's PD.
	 */
	struct soft_srq *r_srq;
	struct list_head of_srq; /* among the waiters of waits_at; that SRQ's lock */
	struct soft_srq *_Atomic waits_at; /* the SRQ that has this QP among its waiters, or NULL */

	struct soft_wire_qp *
		wire; /* its end of a connection over packets, or NULL; set and freed under the lock. See wire/wire.h */
	struct uvd_qp_work s_work; /* what it has done, at both ends; its counts of what waits are unused */
	unsigned int s_flight; /* requests that have begun there, beside the one that completes next */

	struct list_head of_raw; /* in the device's list of raw QPs; the list's lock */
	uint64_t raw_nr; /* 0: in no list */
	atomic_uint num_mcast; /* multicast groups that it is attached to */
};

static inline struct soft_qp *soft_qp(struct uvd_qp *qp)
{
	return (struct soft_qp *)qp;
}

static inline const struct uvd_port_config *soft_qp_port(struct soft_qp *qp)
{
	return &qp->dev->ibdev->config.ports[qp->attr.port_num - 1];
}

/* Does a QP of this type retry, and go into error when a request fails? */
static inline bool soft_is_reliable(const struct soft_qp *qp)
{
	return qp->qp.qp_type == IBV_QPT_RC || qp->qp.qp_type == IBV_QPT_XRC_SEND || qp->qp.qp_type == IBV_QPT_XRC_RECV;
}

static inline bool soft_can_receive(enum ibv_qp_state state)
{
	return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE;
}

/* Is the QP in RESET or ERR, so that no transfer may go on? Needs no lock. */
static inline bool soft_gone(struct soft_qp *qp)
{
	int state = atomic_load_explicit(&qp->state, memory_order_relaxed);

	return state == IBV_QPS_RESET || state == IBV_QPS_ERR;
}

/* Does POST_SEND accept requests in the QP's state? In ERR they are flushed. Caller holds qp->lock. */
static inline bool soft_takes_requests(const struct soft_qp *qp)
{
	return qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD || qp->state == IBV_QPS_SQE ||
	       qp->state == IBV_QPS_ERR;
}

/* Call when the QP's state has changed: shows the client of a mapped queue whether it may post. Caller holds qp->lock. */
static inline void soft_show_state(struct soft_qp *qp)
{
	if (qp->qp.sq && qp->qp.sq->unanswered)
		qp->qp.sq->ops->take_posts(qp->qp.sq, soft_takes_requests(qp));
}

/* ---- srq.c ------------------------------------------------------------------------------------------------------- */

struct soft_srq {
	struct uvd_srq srq;
	struct soft_device *dev;
	pthread_mutex_t lock;
	struct soft_rq rq;
	uint32_t max_sge, limit;
	struct list_head waiters; /* QPs whose peers are kicked when a receive is posted */
	/* XRC: */
	struct soft_ref ref; /* each message to this SRQ takes a reference */
	struct soft_srq *next; /* in the table of numbers */
};

static inline struct soft_srq *soft_srq(struct uvd_srq *srq)
{
	return (struct soft_srq *)srq;
}

/*
 * Caller holds qp->lock. soft_srq_ready(): is a receive available? soft_srq_take(): dequeues the oldest one and copies
 * it to qp->r_wqe. If there is none, both return false and queue qp as a waiter; soft_srq_take() does so for reliable
 * QPs only.
 */
bool soft_srq_ready(struct soft_srq *srq, struct soft_qp *qp);
bool soft_srq_take(struct soft_srq *srq, struct soft_qp *qp, struct soft_due *due);
/* Caller holds qp->lock. Removes qp from the waiters of qp->waits_at, if set. Takes the lock of the SRQ numbers. */
void soft_srq_forget(struct soft_qp *qp);
/*
 * Dequeues the QP that has waited longest, if there is a receive for it, or in any case if in_vain is set. Returns it
 * with a reference, or NULL. Caller holds the lock of the SRQ numbers if the SRQ is being destroyed.
 */
struct soft_qp *soft_srq_next_waiter(struct soft_srq *srq, bool in_vain);

/* The result of a try of the oldest request. */
struct soft_outcome {
	enum { SOFT_DONE, SOFT_RNR, SOFT_NO_ANSWER, SOFT_LOST } kind; /* LOST: the requester was taken from the mover */
	enum ibv_wc_status status; /* DONE */
	uint8_t rnr_timer; /* RNR: the peer's min_rnr_timer */
	bool is_lost; /* NO_ANSWER: the network has lost the request */
	bool is_mapped; /* RNR, and of any probe: a mapped queue has the receives, so nobody kicks when one is posted */
};

/*
 * A request as its responder sees it: all that the network carries, and nothing of the requester's QP, which can be in another engine,
 * or gone. A value: it refers to no work request.
 */
struct soft_arrival {
	/* The way: */
	enum ibv_qp_type qp_type; /* of the requester */
	uint32_t src_qpn, psn, packets, qkey;
	const struct uvd_port_config
		*port; /* from which it was sent; NULL: it came as packets, whose carrier has checked the addresses */
	union ibv_gid from; /* of a datagram that came as a packet */
	struct ibv_ah_attr ah; /* to which it was sent */
	uint16_t pkey;
	enum ibv_mtu mtu; /* of the requester's path */
	bool is_multicast;
	/* The operation: */
	bool is_solicited;
	enum ibv_wr_opcode opcode;
	uint32_t length; /* bytes of the whole message */
	uint32_t rkey, remote_srqn;
	union {
		__be32 imm_data;
		uint32_t invalidate_rkey;
	};
	uint64_t remote_addr, compare_add, swap;
};

static inline bool soft_op_is_send(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_SEND_WITH_INV;
}

static inline bool soft_op_is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* Does the answer bring bytes to the requester? */
static inline bool soft_op_brings_back(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_READ || soft_op_is_atomic(opcode);
}

static inline bool soft_op_takes_receive(enum ibv_wr_opcode opcode)
{
	return soft_op_is_send(opcode) || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* The right that both the QP and the MR must grant; 0: none is needed. */
static inline unsigned int soft_op_right(enum ibv_wr_opcode opcode)
{
	if (soft_op_is_send(opcode))
		return 0;
	if (soft_op_is_atomic(opcode))
		return IBV_ACCESS_REMOTE_ATOMIC;
	return opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
}

/* A request, copied under the requester's lock. */
struct soft_request {
	struct soft_qp *qp;
	struct soft_send_wqe *wqe;
	struct soft_arrival arrival; /* for the responder */
	uint32_t dest_qpn;
	uint8_t retry_cnt; /* the QP's */
	enum uvd_fate fate;
	uint64_t hold_ns, delay_ns; /* delay_ns: of a packet on the wire */
	struct soft_held *held; /* the transport has set it: the message, which the network holds back */
};

/* ---- request.c --------------------------------------------------------------------------------------------------- */

/* Returns the number of packets of a message of `length` bytes. */
uint32_t soft_packets(enum ibv_mtu mtu, uint32_t length);
/* Returns how many ns the receiver asks the sender to wait, by the timer code of its RNR NAK. */
uint64_t soft_rnr_ns(unsigned int code);
/* Sets the operation, and the number of packets, to those of the work request. The QP's type and the MTU are set already. */
void soft_arrival_set(struct soft_arrival *arrival, const struct soft_send_wqe *wqe);
/* Returns the request as it is sent now. Caller holds qp->lock. */
struct soft_request soft_send_request(struct soft_qp *qp, struct soft_send_wqe *wqe);
/* Checks a request. Returns 0 and its length in bytes; or -EINVAL. Caller holds qp->lock. */
int soft_check_send(struct soft_qp *qp, const struct uvd_send_wr *wr, uint32_t *length);
/* Returns why soft_check_send() refuses the request; no `reason`: it does not. Caller holds qp->lock. */
struct uvd_why soft_check_why(struct soft_qp *qp, const struct uvd_send_wr *wr);
/*
 * Checks a request, and copies it to wqe, which has room for what the QP's caps allow. -EINVAL leaves wqe unchanged. A UD
 * message above the MTU and, in a mapped queue, an atomic of fewer than 8 bytes are copied as requests that fail.
 */
int soft_fill_send(struct soft_qp *qp, const struct uvd_send_wr *wr, struct soft_send_wqe *wqe);
/* Fills wqe for a request that soft_fill_send() refused, which fails when it is tried. */
void soft_refuse_send(const struct uvd_send_wr *wr, struct soft_send_wqe *wqe);
/* uvd_backend.carry_message: delivers all messages. */
void soft_carry_message(struct uvd_message *message);
/* Do filters decide about the QP's messages? */
static inline bool soft_is_filtered(const struct soft_qp *qp)
{
	const struct uvd_backend *ops = atomic_load_explicit(&qp->dev->ibdev->ops, memory_order_acquire);

	return ops->carry_message != soft_carry_message && ops->carry_message;
}

static inline bool soft_is_local(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_LOCAL_INV || opcode == IBV_WR_BIND_MW;
}

/* ---- requester.c: caller holds qp->lock -------------------------------------------------------------------------- */

/*
 * The send queue. If the client has a mapped queue, that has the requests, and qp->sq has copies of the oldest ones, as
 * they were when the engine read them.
 */
int soft_sq_init(struct soft_qp *qp);
unsigned int soft_sq_count(const struct soft_qp *qp);
/* Returns the request behind the n oldest, or NULL. n is less than SOFT_BURST. */
struct soft_send_wqe *soft_sq_peek(struct soft_qp *qp, unsigned int n);
void soft_sq_clear(struct soft_qp *qp);

/*
 * A message of an unreliable QP that the network holds back: it has completed at its sender. It is copied, and its
 * receivers are looked up when it is delivered, so they can end meanwhile.
 */
struct soft_held {
	struct soft_request req; /* without its work request, which has completed */
	uint64_t end_ns; /* delivered then at the latest; CLOCK_MONOTONIC */
	bool is_overtaken; /* the QP's next message has been sent */
	uint64_t charged; /* bytes */
	uint32_t length;
	uint8_t bytes[]; /* as the transport had them in the mover's buffer */
};

/* Removes the held message from the QP. Returns it, for the caller to free, or NULL. No other thread has s_busy. */
struct soft_held *soft_held_take(struct soft_qp *qp);
/* Frees the held message, if there is one, and says in the log that it is lost. No other thread has s_busy. */
void soft_held_drop(struct soft_qp *qp);
/* May the oldest request be tried now? */
bool soft_may_start(struct soft_qp *qp);
/* Dequeues the oldest request, and adds its completion if it is signaled or has failed. */
void soft_send_complete(struct soft_qp *qp, struct soft_send_wqe *wqe, enum ibv_wc_status status, struct soft_due *due);
/* The same for a failed request, which is explained; why: the reason, if it is not known from wqe and QP. Then a reliable QP goes into ERR, another one in RTS or SQD into SQE. */
void soft_send_fail(struct soft_qp *qp, struct soft_send_wqe *wqe, enum ibv_wc_status status, const struct uvd_why *why,
		    struct soft_due *due);
/* Completes the requests that are queued at this moment with a flush error. */
void soft_send_flush(struct soft_qp *qp, struct soft_due *due);
/* Ends the wait of the oldest request, if any, and disarms its timer. */
void soft_send_unwait(struct soft_qp *qp);
/*
 * The oldest request has arrived, and its receive is going to complete. Until the request has completed too, no QP
 * claims this one: what the receiver answers must not overtake the completion. (An adapter gets the acknowledgement
 * before the answer.) The caller has s_busy and does not hold qp->lock. It must not enter a client's memory, nor claim
 * a QP, before it calls soft_send_settled().
 */
static inline void soft_send_arrived(struct soft_qp *qp)
{
	atomic_store_explicit(&qp->s_arrived, true, memory_order_release);
}

/* The request has completed, or stays the oldest. Caller holds qp->lock. */
void soft_send_settled(struct soft_qp *qp);
/* Clears s_busy, and flushes if the QP is in ERR. The mover has left the requester's memory, or was given up. */
void soft_send_let_go(struct soft_qp *qp, struct soft_due *due);
/* If a mover has the send queue and is at the responder: takes the QP from it and clears s_busy. */
void soft_send_take_back(struct soft_qp *qp);
/* Puts the QP into ERR and flushes both queues. A queue that a mover has claimed is flushed when the claim ends. */
void soft_qp_error(struct soft_qp *qp, struct soft_due *due);
/* struct soft_movers.give_up. Caller holds no lock. */
void soft_send_give_up(struct soft_qp *requester, struct soft_qp *responder, enum soft_place place);

/* ---- responder.c: the receiving side, for all transports --------------------------------------------------------- */

/*
 * Claims the QP with this number for the mover: sets r_busy, takes a reference, and locks it. Waits for the end of
 * another claim, and while s_arrived is set. Returns NULL if there is no such QP, or if the wait fails: the requester
 * or the peer is reset or in error, the requester was taken from the mover, or the peer is slow (r_slow) and the
 * message is a datagram.
 */
struct soft_qp *soft_claim(struct soft_mover *m, struct uvd_fabric *fabric, uint32_t qpn);
/* Ends the claim. Caller holds the responder's lock, which this releases. Runs what is due, and puts the reference. */
void soft_unclaim(struct soft_mover *m, struct soft_due *due);
/*
 * Claims the mover's own requester: sets r_busy. Caller holds qp->lock, which is released while another claim lasts, and has a
 * reference beside that of the mover. The other mover may be stuck in the memory of the QP's client, so this wait is
 * registered like an access to it. Returns false, without the claim, if the QP was taken from m, is reset or in error.
 */
bool soft_recv_claim(struct soft_mover *m, struct soft_qp *qp);
/* Clears r_busy, and flushes if the QP is in ERR. Caller has claimed the QP and holds its lock. */
void soft_recv_release(struct soft_qp *qp, struct soft_due *due);
/* The L_Keys of this QP's receives must be of this PD. */
static inline struct uvd_pd *soft_recv_pd(struct soft_qp *qp)
{
	return qp->r_srq ? qp->r_srq->srq.pd : qp->qp.pd;
}

/* The R_Keys of its peers must be of this PD. For an XRC target, it is the PD of the SRQ that the request names. */
static inline struct uvd_pd *soft_target_pd(const struct soft_qp *qp)
{
	return qp->qp.pd ? qp->qp.pd : qp->r_srq->srq.pd;
}

/* soft_remote_seg_get() for a key that the QP's peer names. Caller has claimed the QP and holds its lock. */
int soft_target_get(struct soft_qp *qp, uint32_t key, uint64_t addr, uint32_t length, unsigned int access,
		    struct soft_seg *seg);

/* Moves the oldest receive to r_wqe. Returns false if there is none. Caller has claimed the QP and holds its lock. */
bool soft_recv_take(struct soft_qp *qp, struct soft_due *due);
/* Would soft_recv_take() find a receive? If not, the peer is kicked when one is posted. Caller holds qp->lock. */
bool soft_recv_ready(struct soft_qp *qp);
/*
 * soft_recv_take() for an unreliable message. data: its `length` bytes go to the receive. Then it also returns false if
 * they do not fit, or if a key of the receive is invalid, which puts the QP into ERR.
 */
bool soft_recv_take_for(struct soft_qp *qp, uint32_t length, bool data, struct soft_due *due);
/* The memory of r_wqe. */
struct soft_list soft_recv_list(struct soft_qp *qp);
/*
 * Puts the QP into ERR. Its owner learns that from the receive that a message has taken, which completes with this
 * status, or else from the event. Caller has claimed the QP and holds its lock.
 */
void soft_recv_fail(struct soft_qp *qp, enum ibv_wc_status status, enum ibv_event_type event, const struct uvd_why *why,
		    struct soft_due *due);
/* Ends the claim of a mover that was given up in this QP's memory, and puts its reference. Caller holds no lock. */
void soft_recv_give_up(struct soft_qp *qp);
/* Copies a receive to r_wqe. Caller has claimed the QP, or flushes it, and holds its lock. */
void soft_recv_copy(struct soft_qp *qp, const struct soft_recv_wqe *wqe);
/* A message has arrived: reports COMM_EST, once, if the QP is still in RTR. Caller holds qp->lock. */
void soft_recv_established(struct soft_qp *qp, struct soft_due *due);
/* Completes r_wqe with *wc, in which this sets wr_id and qp_num. Locking as for soft_recv_copy(). */
void soft_recv_complete(struct soft_qp *qp, struct ibv_wc *wc, bool solicited, struct soft_due *due);
/* Completes the QP's own queued receives with a flush error. Caller holds qp->lock; no other thread has claimed it. */
void soft_recv_flush(struct soft_qp *qp, struct soft_due *due);
/*
 * If the QP is in ERR: completes receives that its client has posted to a mapped queue meanwhile, `most` at most. Returns their number.
 * Caller holds no lock, and has a reference to qp.
 */
unsigned int soft_recv_look(struct soft_qp *qp, unsigned int most);

/* Does the way between the arrival's port and this one still exist? */
static inline bool soft_arrival_is_linked(const struct soft_arrival *arrival, const struct uvd_port_config *port)
{
	return arrival->port ? soft_port_joined(arrival->port, port) : !uvd_config_port_down(port);
}
/* Do the P_Keys of two ports belong to one partition? */
bool soft_same_partition(uint16_t a, uint16_t b);
/* Can QPs of these types be the two ends of a connection, or exchange datagrams? */
bool soft_peer_types(enum ibv_qp_type receiver, enum ibv_qp_type sender);
/* Do state, type, address, partition, and Q_Key or peer, let the request reach this QP? Caller holds qp->lock. */
bool soft_recv_admits(struct soft_qp *qp, const struct soft_arrival *arrival);
/*
 * Are the packets of a message of `length` bytes, or of the answer to a READ, as long as the path MTU at their receiver
 * wants? mtu: the requester's. If the two differ, then only those of messages of one packet are. Caller holds the lock.
 */
bool soft_packets_fit(const struct soft_qp *qp, enum ibv_mtu mtu, uint32_t length);
/* Returns the completion of the message that has taken r_wqe. UD has to set the address fields. */
struct ibv_wc soft_recv_wc(struct soft_qp *qp, const struct soft_arrival *arrival, uint32_t byte_len);

/* ---- counters.c -------------------------------------------------------------------------------------------------- */

struct soft_counters {
	struct uvd_counters counters;
	_Atomic uint64_t packets, bytes;
};

int soft_create_counters(struct uvd_counters *counters);
int soft_destroy_counters(struct uvd_counters *counters);
int soft_read_counters(struct uvd_counters *counters, uint64_t *values, size_t num, uint32_t flags);
int soft_bind_counters(struct uvd_qp *qp, struct uvd_counters *counters);
/* Counts a request that was carried out at this QP. May be called under any lock. */
void soft_count_arrival(struct soft_qp *qp, const struct soft_arrival *arrival);
int soft_create_comp_cntr(struct uvd_comp_cntr *cntr);
int soft_destroy_comp_cntr(struct uvd_comp_cntr *cntr);

/* ---- explain.c: explanations, which soft_due_run() passes on. Caller holds qp->lock ------------------------------ */

/* why: NULL, or without a reason: find out. */
void soft_explain_send(struct soft_qp *qp, struct soft_send_wqe *wqe, enum ibv_wc_status status,
		       const struct uvd_why *why, struct soft_due *due);
/* Why a responder in this engine gave no answer. Set why.reason and peer to NULL. */
struct soft_silence {
	struct uvd_why why; /* for the requester's user, who learns nothing of other users' QPs */
	struct soft_qp *peer; /* NULL, or the QP of another user, with a reference */
	struct uvd_why at_peer; /* for that user */
};

/* Looks at the responder. Call it without a lock, and soft_silence_put() afterwards. */
void soft_silence_look(const struct soft_request *req, struct soft_silence *silence);
void soft_silence_put(struct soft_silence *silence);
/* Explains to the other user, if there is one, that requests were dropped. */
void soft_explain_drop(const struct soft_silence *silence, struct soft_due *due);
/* Returns why a responder of the requester's own user has refused the mover's request, or NULL. */
const struct uvd_why *soft_why_refused(const struct soft_mover *m, const struct soft_qp *requester);
/* Why a request's r_key, or the length of its packets, does not serve it. Caller has claimed the QP. */
struct uvd_why soft_why_r_key(struct soft_qp *qp, const struct soft_arrival *arrival);
struct uvd_why soft_why_mtu(struct soft_qp *qp, const struct soft_arrival *arrival);

/* Why a UC or UD QP drops a message. */
enum soft_drop {
	SOFT_DROP_STATE,
	SOFT_DROP_TYPE,
	SOFT_DROP_ADDRESS,
	SOFT_DROP_PKEY,
	SOFT_DROP_QKEY,
	SOFT_DROP_PEER,
	SOFT_DROP_NO_RECEIVE,
	SOFT_DROP_SHORT,
	/* These are not found by a look at the QP: */
	SOFT_DROP_MTU,
	SOFT_DROP_ACCESS,
	SOFT_DROP_KEY,
	SOFT_DROP_MEMORY,
	SOFT_DROP_GAP,
	SOFT_DROP_PACKETS,
	SOFT_DROP_LOOK, /* look at the QP. It may show no fault of a client's, or one that is explained elsewhere */
};

/*
 * Explains to the user of the QP, which was claimed or has s_busy, why it drops this message: once for each `drop` between two resets, as
 * nobody repeats such messages, and a peer can send many.
 */
void soft_explain_message(struct soft_qp *qp, const struct soft_arrival *arrival, enum soft_drop drop,
			  struct soft_due *due);
/*
 * Explains to the user of the mover's requester, also once, that a message led to no QP. Not if several users have QPs: nobody learns
 * from a missing line that another one has a QP with that number. Caller holds no lock.
 */
void soft_explain_nowhere(struct soft_mover *m, uint32_t qpn);
/* If the QP has taken a receive, that fails with the status; else the QP's user gets the event. */
void soft_explain_recv(struct soft_qp *qp, enum ibv_wc_status status, enum ibv_event_type event,
		       const struct uvd_why *why, struct soft_due *due);

#endif
