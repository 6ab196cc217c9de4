/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue pairs and shared receive queues, as those who carry requests out see them: a QP is a requester, with its send queue, and a
 * responder, with its receives. docs/soft-engine.md says which lock protects what, and what may be waited for.
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

struct soft_request;

/* ---- a QP -------------------------------------------------------------------------------------------------------- */

enum soft_wait { SOFT_WAIT_NONE, SOFT_WAIT_RNR, SOFT_WAIT_RETRY };

struct soft_qp {
	struct uvd_qp qp;
	struct soft_device *dev;
	struct soft_ref ref;
	struct soft_qp *next; /* in the bucket */
	struct soft_timer timer; /* the timer's lock */

	pthread_mutex_t modify_lock; /* one modify_qp at a time; taken before the lock */
	pthread_mutex_t lock;
	pthread_cond_t idle; /* s_busy or r_busy has become false */
	atomic_int state; /* enum ibv_qp_state; written under the lock, read by copies without it */
	struct ibv_qp_attr attr; /* but for the state */
	struct ibv_qp_cap cap;
	bool sq_sig_all;

	struct soft_ring sq;
	bool s_busy;
	struct soft_mover *s_mover; /* s_busy's */
	bool s_kicked; /* what it waited for may be there: try again */
	bool s_started; /* the oldest request has been tried: draining has to finish it */
	bool s_draining, s_drained_event;
	bool s_deferred; /* the send queue is the user's thread's */
	unsigned int s_stream; /* runs of large requests, each soon after the one before */
	uint64_t s_run_end; /* of the last such run, CLOCK_MONOTONIC, ns; 0: it was none */
	uint64_t s_crowded_end; /* CPUs are short until then: the client waits for its doorbells' work; CLOCK_MONOTONIC, ns */
	bool s_crowded; /* CPUs were short when the present run began */
	bool s_wanted; /* a doorbell's thread waits for the user's thread to release s_busy */
	enum soft_wait s_wait;
	unsigned int s_wait_nr; /* counts waits, so that the timer knows the one that it has looked at */
	uint64_t s_wait_end; /* RNR: when the wait is over; CLOCK_MONOTONIC, ns */
	uint64_t s_look_ns; /* RNR: to the next look for a receive before that */
	int s_retry, s_rnr_retry; /* tries left for the oldest request */
	uint32_t s_psn;

	struct soft_user *d_user; /* whose list it is in, or NULL; this and the next: the users' lock */
	struct soft_qp *d_prev, *d_next;

	struct soft_rq rq;
	uint64_t charged; /* for what its queues have beside the rings */
	struct soft_recv_wqe *r_wqe; /* the receive that a message has taken, if r_taken */
	bool r_busy, r_taken;
	atomic_bool r_slow; /* r_busy's holder waits for the QP's memory: datagrams are dropped */
	unsigned int r_epoch; /* counts resets: no message goes on after one */
	uint32_t r_srqn; /* an XRC target's: the SRQ that r_wqe was taken from */
	bool r_nak; /* the peer was told to wait for a receive: kick it when one is posted */
	bool r_established, r_last_wqe; /* the events that a QP has once each */
	bool r_silent; /* its process has died: it answers nothing more */
	uint32_t r_psn;

	/*
	 * Where receives come from, and what its peers' keys must be of, for the message that has r_busy. An XRC target has
	 * none between messages.
	 */
	struct soft_srq *r_srq;
	struct soft_qp *srq_prev, *srq_next; /* among the waiters of that SRQ; its lock */
	struct soft_srq *_Atomic waits_at; /* NULL: it waits for no receive */

	struct soft_qp *raw_prev, *raw_next; /* the list's lock */
	uint64_t raw_nr; /* 0: in no list */
	atomic_uint num_mcast; /* groups that it is attached to */
};

static inline struct soft_qp *soft_qp(struct uvd_qp *qp)
{
	return (struct soft_qp *)qp;
}

static inline const struct uvd_port_config *soft_qp_port(struct soft_qp *qp)
{
	return &qp->dev->ibdev->config.ports[qp->attr.port_num - 1];
}

/* Has it retries, and an end in error? */
static inline bool soft_is_reliable(const struct soft_qp *qp)
{
	return qp->qp.qp_type == IBV_QPT_RC || qp->qp.qp_type == IBV_QPT_XRC_SEND ||
	       qp->qp.qp_type == IBV_QPT_XRC_RECV;
}

static inline bool soft_can_receive(enum ibv_qp_state state)
{
	return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE;
}


/* Is there nobody who could take part in a transfer any more? May be asked without the lock. */
static inline bool soft_gone(struct soft_qp *qp)
{
	int state = atomic_load_explicit(&qp->state, memory_order_relaxed);

	return state == IBV_QPS_RESET || state == IBV_QPS_ERR;
}

/* ---- srq.c ------------------------------------------------------------------------------------------------------- */

struct soft_srq {
	struct uvd_srq srq;
	struct soft_device *dev;
	pthread_mutex_t lock;
	struct soft_rq rq;
	uint32_t max_sge, limit;
	struct soft_qp *first_waiter, *last_waiter; /* QPs that have told their peers to wait for a receive */
	/* XRC: */
	struct soft_ref ref; /* of messages that go to it */
	struct soft_srq *next; /* in the table of numbers */
};

static inline struct soft_srq *soft_srq(struct uvd_srq *srq)
{
	return (struct soft_srq *)srq;
}

/* With the QP's lock held: for it there is a receive, or is taken. If there is none, its peer is kicked when one comes. */
bool soft_srq_ready(struct soft_srq *srq, struct soft_qp *qp);
bool soft_srq_take(struct soft_srq *srq, struct soft_qp *qp, struct soft_due *due);
/* With the QP's lock held: it waits no more, at its own SRQ or, an XRC target, at any. */
void soft_srq_forget(struct soft_qp *qp);
/*
 * With a reference: who has waited there longest, and waits no more, if there is a receive for it or, in_vain, will be none. With
 * the lock of the SRQ numbers where the SRQ is about to end.
 */
struct soft_qp *soft_srq_next_waiter(struct soft_srq *srq, bool in_vain);

/* A try of the oldest request came to this. */
struct soft_outcome {
	enum { SOFT_DONE, SOFT_RNR, SOFT_NO_ANSWER, SOFT_LOST } kind; /* LOST: the mover has lost the requester */
	enum ibv_wc_status status; /* DONE */
	uint8_t rnr_timer; /* RNR: the code that the peer named */
	bool is_mapped; /* RNR, and of a probe: nobody tells when there is a receive */
};

/* A requester as its peer sees it, copied under the requester's lock. */
struct soft_request {
	struct soft_qp *qp;
	struct soft_send_wqe *wqe;
	const struct uvd_port_config *port;
	struct ibv_ah_attr ah;
	uint32_t dest_qpn, qkey, psn, packets;
	uint16_t pkey;
	bool is_multicast;
};

/* ---- request.c --------------------------------------------------------------------------------------------------- */

/* How many packets a message of that length is on the wire. */
uint32_t soft_packets(enum ibv_mtu mtu, uint32_t length);
/* -EINVAL: no QP takes that, or this one does not. *length: bytes. */
int soft_check_send(struct soft_qp *qp, const struct uvd_send_wr *wr, uint32_t *length);
/* Checks a request, and writes it to wqe, which has room for what the QP's caps allow. 0 or -EINVAL: then wqe is as it was. */
int soft_fill_send(struct soft_qp *qp, const struct uvd_send_wr *wr, struct soft_send_wqe *wqe);
static inline bool soft_is_local(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_LOCAL_INV || opcode == IBV_WR_BIND_MW;
}

/* ---- requester.c: with the lock held ----------------------------------------------------------------------------- */

/*
 * A send queue, with the QP's lock held. That of a client with a mapped queue is there; qp->sq then has copies of the oldest
 * requests, as they were when they were read.
 */
int soft_sq_init(struct soft_qp *qp);
unsigned int soft_sq_count(const struct soft_qp *qp);
/* The request behind the n oldest, n below SOFT_BURST, or NULL. */
struct soft_send_wqe *soft_sq_peek(struct soft_qp *qp, unsigned int n);
void soft_sq_pop(struct soft_qp *qp);
void soft_sq_clear(struct soft_qp *qp);


/* May the oldest request be tried now? */
bool soft_may_start(struct soft_qp *qp);
/* The oldest request is over. */
void soft_send_complete(struct soft_qp *qp, struct soft_send_wqe *wqe, enum ibv_wc_status status, struct soft_due *due);
/* The same, and so is the QP's state. */
void soft_send_fail(struct soft_qp *qp, struct soft_send_wqe *wqe, enum ibv_wc_status status, struct soft_due *due);
void soft_send_flush(struct soft_qp *qp, struct soft_due *due);
/* Forgets that the oldest request waits for something. */
void soft_send_unwait(struct soft_qp *qp);
/* s_busy ends. The mover is not in the QP's memory any more, or will not come back. */
void soft_send_let_go(struct soft_qp *qp, struct soft_due *due);
/* The send queue is ours again, if its mover is in the memory of another QP's owner. */
void soft_send_take_back(struct soft_qp *qp);
/* Everything queued is flushed, now or by those who hold s_busy and r_busy when they are done. */
void soft_qp_error(struct soft_qp *qp, struct soft_due *due);
/* struct soft_movers.give_up: with no lock held. */
void soft_send_give_up(struct soft_qp *requester, struct soft_qp *responder, enum soft_place place);

/* ---- responder.c: the receiving side, for all transports --------------------------------------------------------- */

/*
 * Claims the QP with this number for the mover, who may have to wait: r_busy, a reference, and its lock. NULL: there is none, or
 * it is not to be waited for, or the mover has lost its requester.
 */
struct soft_qp *soft_claim(struct soft_mover *m, struct uvd_fabric *fabric, uint32_t qpn);
/* With the lock held, which it is not any more then. Runs what is due. */
void soft_unclaim(struct soft_mover *m, struct soft_due *due);
/* With the lock held: r_busy becomes the caller's, who may have to wait for it. */
void soft_recv_claim(struct soft_qp *qp);
/* With the lock held and r_busy: flushes if the QP is in error by now, and gives r_busy back. */
void soft_recv_release(struct soft_qp *qp, struct soft_due *due);
/* The receives of this QP use keys of this PD. */
static inline struct uvd_pd *soft_recv_pd(struct soft_qp *qp)
{
	return qp->r_srq ? qp->r_srq->srq.pd : qp->qp.pd;
}

/* Its peers' requests use keys of this PD. An XRC target's peers name an SRQ, which has it. */
static inline struct uvd_pd *soft_target_pd(const struct soft_qp *qp)
{
	return qp->qp.pd ? qp->qp.pd : qp->r_srq->srq.pd;
}

/* With the lock held and r_busy: what its peer may name so. As soft_remote_seg_get(). */
int soft_target_get(struct soft_qp *qp, uint32_t key, uint64_t addr, uint32_t length, unsigned int access, struct soft_seg *seg);

/* With the lock held and r_busy: the oldest receive becomes r_wqe. False: there is none. */
bool soft_recv_take(struct soft_qp *qp, struct soft_due *due);
/* With the lock held: would soft_recv_take() find one? If not, the peer is kicked when one comes. */
bool soft_recv_ready(struct soft_qp *qp);
/* soft_recv_take(), for `length` bytes that an unreliable message brings (data), or that its receive is not for. */
bool soft_recv_take_for(struct soft_qp *qp, uint32_t length, bool data, struct soft_due *due);
/* The memory of r_wqe. */
struct soft_list soft_recv_list(struct soft_qp *qp);
/* With the lock held and r_busy: the QP goes into error, and tells its owner: by the receive that a message took, or an event. */
void soft_recv_fail(struct soft_qp *qp, enum ibv_wc_status status, enum ibv_event_type event, struct soft_due *due);
/* Its mover was given up, in its memory. Takes the mover's claim and reference over. */
void soft_recv_give_up(struct soft_qp *qp);
void soft_recv_copy(struct soft_qp *qp, const struct soft_recv_wqe *wqe);
/* With the lock held: a peer's message is here, so it must be ready. */
void soft_recv_established(struct soft_qp *qp, struct soft_due *due);
/* With the lock held and r_busy: r_wqe is complete. */
void soft_recv_complete(struct soft_qp *qp, struct ibv_wc *wc, bool solicited, struct soft_due *due);
/* With the lock held. */
void soft_recv_flush(struct soft_qp *qp, struct soft_due *due);

/* With the lock held: can a message of this requester reach this QP at all? */
bool soft_recv_admits(struct soft_qp *qp, const struct soft_request *req);
/* The completion of the message that has taken r_wqe, but for transport's own fields. */
struct ibv_wc soft_recv_wc(struct soft_qp *qp, const struct soft_send_wqe *wqe, uint32_t byte_len);

/* ---- counters.c -------------------------------------------------------------------------------------------------- */

struct soft_counters {
	struct uvd_counters counters;
	_Atomic uint64_t packets, bytes;
};

int soft_create_counters(struct uvd_counters *counters);
int soft_destroy_counters(struct uvd_counters *counters);
int soft_read_counters(struct uvd_counters *counters, uint64_t *values, size_t num, uint32_t flags);
int soft_bind_counters(struct uvd_qp *qp, struct uvd_counters *counters);
/* A request has reached the QP and was carried out there. Any lock. */
void soft_count_arrival(struct soft_qp *qp, const struct soft_request *req);
int soft_create_comp_cntr(struct uvd_comp_cntr *cntr);
int soft_destroy_comp_cntr(struct uvd_comp_cntr *cntr);

#endif
