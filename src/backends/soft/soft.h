/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RDMA in software between the queue pairs of all soft devices of one engine.
 *
 * There are no packets. A work request is carried out whole, by the thread that made it possible: the one that posted it,
 * or the one that posted the receive (or made the peer ready) for which it was waiting. Each such call has a budget: once it
 * is spent, the rest of the send queue is deferred, to a thread that its user's deferred QPs share (defer.c). The timer
 * thread only counts retries down; it never moves data, so no client's memory can hold it up. Neither does the waker.
 *
 * Locks. A QP has one lock for its state and queues, never held together with another QP's, and never held while data
 * moves. Instead, two flags claim the QP for one thread at a time: s_busy its send queue, r_busy its receive queue. The
 * holder of s_busy may wait for the peer's r_busy; the holder of r_busy waits for nothing. A post waits for s_busy; a kick
 * (see send.c) never does. Under a QP's lock, in this order of nesting or alone: that of SRQ numbers, an SRQ's, a CQ's,
 * the timer's, the users', the MR table's, the QPN table's.
 *
 * While s_deferred is set, only the user's thread may set s_busy: a post appends and returns, a kick sets s_kicked only. A
 * deferred QP is in its user's list, or the user's thread has taken it out and runs it, or is about to.
 *
 * Life times. The core frees an object once its destroy function has returned. Whoever uses another client's QP or an MR
 * holds a reference, and destroy waits for it. Completion and event handlers run with no lock held, but with the reference
 * of the QP that caused them; so they must not wait for a destroy. A user's list has a reference of each QP in it. Reset,
 * error and destroy take the QP out of the list, so they wait for no other QP's work.
 */
#ifndef UVD_SOFT_H
#define UVD_SOFT_H

#include <pthread.h>
#include <uverbsd/backend.h>
#include <uverbsd/queue.h>
#include "backends/comp_cntr.h"
#include "backends/cq_ring.h"
#include "backends/soft/memory.h"
#include "backends/soft/queue.h"
#include "backends/soft/ref.h"

enum {
	SOFT_QPN_BITS = 24,
	SOFT_TAG_BITS = 8, /* of a key; the rest is an index */
	SOFT_QPN_BUCKETS = 1024,
	SOFT_MCAST_BUCKETS = 64,
	SOFT_SRQN_BUCKETS = 64,
};

struct soft_qp;
struct soft_srq;
struct soft_user;
struct soft_request;
struct soft_outcome;

/* ---- timer.c ----------------------------------------------------------------------------------------------------- */

struct soft_timer {
	uint64_t deadline; /* CLOCK_MONOTONIC, ns */
	unsigned int wait_nr; /* the wait (soft_qp.s_wait_nr) that it was armed for */
	unsigned int slot; /* in the heap, from 1; 0: not armed */
};

struct soft_timers {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	struct soft_qp **heap; /* [1] is the next; room for every QP, so that arming never allocates */
	unsigned int count, room, reserved;
	bool running, stop;
};

void soft_timers_init(struct soft_timers *timers);
void soft_timers_destroy(struct soft_timers *timers);
/* Room for one more QP (starts the thread), and its end (disarms). */
int soft_timers_reserve(struct soft_timers *timers);
void soft_timers_release(struct soft_timers *timers, struct soft_qp *qp);
/* With the QP's lock held. */
void soft_timer_arm(struct soft_timers *timers, struct soft_qp *qp, uint64_t ns);
void soft_timer_disarm(struct soft_timers *timers, struct soft_qp *qp);

/* ---- wake.c ------------------------------------------------------------------------------------------------------ */

struct uvd_fabric;

struct soft_waker {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool running, asked, stop;
};

void soft_waker_init(struct soft_waker *waker);
void soft_waker_destroy(struct soft_waker *waker);
/* soft_send_wake() for every QP, soon. */
void soft_wake_all(struct uvd_fabric *fabric);

/* ---- defer.c ----------------------------------------------------------------------------------------------------- */

/* The work that a thread has done for send queues, of any number of QPs, in one call. It starts zeroed. */
struct soft_budget {
	uint64_t bytes, new_bytes; /* new_*: since the clock was read */
	uint64_t start; /* ns; 0: the clock was not read yet */
	unsigned int new_requests;
	bool of_user_thread; /* the first request may be of any length */
	bool begun, spent;
};

/*
 * Charges a request of `bytes` bytes. to_many: it can have any number of receivers. Returns false if the budget is spent:
 * then the caller must not carry out the request.
 */
bool soft_budget_take(struct soft_budget *budget, uint64_t bytes, bool to_many);

struct soft_users {
	pthread_mutex_t lock; /* of the list, and of each user's */
	pthread_cond_t ended; /* there is no user any more */
	struct soft_user *first;
	bool end;
};

void soft_users_init(struct soft_users *users);
/* Call after all QPs have been destroyed. False: a thread does not come back. */
bool soft_users_destroy(struct soft_users *users);
/*
 * Queues qp for its user's thread, behind the user's other QPs. Takes a reference. Caller holds qp->lock, and s_busy is
 * false, or becomes false before the caller unlocks. Returns false if there is no thread and none can be started.
 */
bool soft_defer(struct soft_qp *qp);
/*
 * Takes qp back from its user's thread. Caller holds qp->lock. The thread may be running qp at this moment: then s_busy is
 * set, and it stops after the request in hand.
 */
void soft_undefer(struct soft_qp *qp);

/* ---- fabric.c ---------------------------------------------------------------------------------------------------- */

struct soft_bucket {
	pthread_mutex_t lock;
	struct soft_qp *first;
};

struct soft_group;

struct soft_mcast_bucket {
	pthread_rwlock_t lock;
	struct soft_group *first;
	uint64_t next_nr;
};

struct uvd_fabric {
	struct uvd_log *log;
	struct soft_timers timers;
	struct soft_waker waker;
	struct soft_users users;
	pthread_mutex_t qpn_lock; /* next_qpn */
	uint32_t next_qpn;
	struct soft_bucket buckets[SOFT_QPN_BUCKETS];
	struct soft_mcast_bucket mcast[SOFT_MCAST_BUCKETS];
	struct soft_atomics atomics;
	struct soft_movers movers;
};

/* Gives qp a number and makes it known by it. -ENOMEM: all numbers are taken. */
int soft_fabric_add_qp(struct uvd_fabric *fabric, struct soft_qp *qp);
void soft_fabric_remove_qp(struct uvd_fabric *fabric, struct soft_qp *qp);
/* With a reference, or NULL. */
struct soft_qp *soft_fabric_get_qp(struct uvd_fabric *fabric, uint32_t qpn);
/* Are both up, and on the same network? */
bool soft_port_joined(const struct uvd_port_config *from, const struct uvd_port_config *to);
/* Does a packet with this address leave `from` and reach `to`? */
bool soft_port_reaches(const struct uvd_port_config *from, const struct ibv_ah_attr *ah,
		       const struct uvd_port_config *to);
uint16_t soft_port_pkey(const struct uvd_port_config *port, uint16_t index);

/* For each QP, with a reference, in no order. */
void soft_fabric_each_qp(struct uvd_fabric *fabric, void (*fn)(struct soft_qp *qp));

/* ---- mcast.c ----------------------------------------------------------------------------------------------------- */

enum { SOFT_MULTICAST_LID = 0xc000 }; /* from here on */

void soft_mcast_init(struct uvd_fabric *fabric);
void soft_mcast_destroy(struct uvd_fabric *fabric);
int soft_attach_mcast(struct uvd_qp *qp, const union ibv_gid *gid, uint16_t lid);
int soft_detach_mcast(struct uvd_qp *qp, const union ibv_gid *gid, uint16_t lid);
/* From all groups. */
void soft_mcast_forget(struct soft_qp *qp);
/* Is this the address of a group? */
bool soft_is_multicast(const struct uvd_port_config *port, const struct ibv_ah_attr *ah);
/*
 * The numbers of some of the QPs of the group that the address names. *last: 0, then what the call before has set. How many;
 * less than max: there are no more.
 */
unsigned int soft_mcast_members(struct uvd_fabric *fabric, const struct ibv_ah_attr *ah, uint64_t *last, uint32_t *qpns,
				unsigned int max);

/* ---- device.c ---------------------------------------------------------------------------------------------------- */

/* XRC SRQs by number. */
struct soft_srqn_table {
	pthread_mutex_t lock; /* may be taken under a QP's */
	struct soft_srq *buckets[SOFT_SRQN_BUCKETS];
	uint32_t next;
};

/* RAW_PACKET QPs, oldest first. */
struct soft_raw_list {
	pthread_mutex_t lock;
	struct soft_qp *first, *last;
	uint64_t last_nr;
};

/* What a device owns besides its configuration. */
struct soft_device {
	struct uvd_ibdev *ibdev;
	struct soft_mr_table mrs;
	struct soft_srqn_table srqns;
	struct soft_raw_list raw;
	atomic_int num_pds, num_ahs, num_cqs, num_srqs, num_qps, num_mcast_groups, num_comp_cntrs, num_counters, num_xrcds;
	_Atomic uint64_t dm_used; /* bytes */
};

static inline struct soft_device *soft_device(struct uvd_ibdev *ibdev)
{
	return ibdev->priv;
}

/* Counts one more object; -ENOMEM when there are max already. */
int soft_count(atomic_int *count, int max);

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

/* ---- cq.c -------------------------------------------------------------------------------------------------------- */

struct soft_cq {
	struct uvd_cq cq;
	struct uvd_cq_ring ring;
};

/* What has to be called once no lock is held. Room for the CQs and events of the two QPs of one work request. */
struct soft_due {
	struct soft_cq *cqs[8];
	unsigned int num_cqs;
	struct {
		struct uvd_qp *qp;
		enum ibv_event_type type;
	} events[8];
	unsigned int num_events;
	struct soft_srq *limit_reached;
};

int soft_create_cq(struct uvd_cq *cq);
int soft_destroy_cq(struct uvd_cq *cq);
int soft_poll_cq(struct uvd_cq *cq, int n, struct ibv_wc *wc);
int soft_req_notify_cq(struct uvd_cq *cq, bool solicited_only);
int soft_resize_cq(struct uvd_cq *cq, int cqe);
int soft_replace_cq_queue(struct uvd_cq *cq, struct uvd_queue **queue);
void soft_cq_add(struct uvd_cq *cq, const struct ibv_wc *wc, bool solicited, struct soft_due *due);
void soft_due_event(struct soft_due *due, struct soft_qp *qp, enum ibv_event_type type);
void soft_due_srq_limit(struct soft_due *due, struct soft_srq *srq);
/* Calls the handlers and empties due. */
void soft_due_run(struct soft_due *due);

/* ---- wq.c: what is posted ---------------------------------------------------------------------------------------- */

/* Checks a request, and writes it to wqe, which has room for what the QP's caps allow. 0 or -EINVAL: then wqe is as it was. */
int soft_fill_send(struct soft_qp *qp, const struct uvd_send_wr *wr, struct soft_send_wqe *wqe);
/* Checks a receive and puts it into the ring. */
int soft_queue_recv(struct soft_ring *ring, uint32_t max_sge, const struct uvd_recv_wr *wr);
static inline bool soft_is_local(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_LOCAL_INV || opcode == IBV_WR_BIND_MW;
}

int soft_post_send(struct uvd_qp *qp, const struct uvd_send_wr *wr, const struct uvd_send_wr **bad, struct uvd_work *work);
int soft_post_recv(struct uvd_qp *qp, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad);
int soft_ring_doorbell(struct uvd_qp *qp, struct uvd_work *work);

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

int soft_create_srq(struct uvd_srq *srq, const struct ibv_srq_init_attr *attr);
int soft_modify_srq(struct uvd_srq *srq, const struct ibv_srq_attr *attr, int mask);
int soft_replace_srq_queue(struct uvd_srq *srq, struct uvd_queue **queue);
int soft_query_srq(struct uvd_srq *srq, struct ibv_srq_attr *attr);
int soft_destroy_srq(struct uvd_srq *srq);
int soft_post_srq_recv(struct uvd_srq *srq, const struct uvd_recv_wr *wr, const struct uvd_recv_wr **bad);
/* With the QP's lock held: for it there is a receive, or is taken. If there is none, its peer is kicked when one comes. */
bool soft_srq_ready(struct soft_srq *srq, struct soft_qp *qp);
bool soft_srq_take(struct soft_srq *srq, struct soft_qp *qp, struct soft_due *due);
/* With the QP's lock held: it waits no more, at its own SRQ or, an XRC target, at any. */
void soft_srq_forget(struct soft_qp *qp);
/* Nobody can come to wait there any more; who does has waited in vain. */
void soft_srq_send_away(struct soft_srq *srq);

/* ---- xrc.c ------------------------------------------------------------------------------------------------------- */

int soft_alloc_xrcd(struct uvd_xrcd *xrcd);
int soft_dealloc_xrcd(struct uvd_xrcd *xrcd);
void soft_srqn_table_init(struct soft_srqn_table *table);
void soft_srqn_table_destroy(struct soft_srqn_table *table);
/* Gives an XRC SRQ a number. -ENOMEM: all are taken. */
int soft_srqn_add(struct soft_srq *srq);
/* Nobody finds it any more; returns when nobody uses it any more either. */
void soft_srqn_remove(struct soft_srq *srq);
/* The SRQ with that number, if it is in the domain: with a reference, or NULL. */
struct soft_srq *soft_srqn_get(struct soft_device *dev, const struct uvd_xrcd *xrcd, uint32_t srqn);

/* ---- raw.c ------------------------------------------------------------------------------------------------------- */

enum { SOFT_RAW_LEAST = 14, SOFT_RAW_MORE = 22 }; /* an Ethernet header; with a VLAN tag and the FCS: beyond the MTU */

void soft_raw_init(struct soft_raw_list *list);
void soft_raw_destroy(struct soft_raw_list *list);
void soft_raw_join(struct soft_qp *qp);
void soft_raw_leave(struct soft_qp *qp);
/* Some of them, as soft_mcast_members() does it. */
unsigned int soft_raw_members(struct soft_raw_list *list, uint64_t *last, uint32_t *qpns, unsigned int max);

/* ---- qp.c -------------------------------------------------------------------------------------------------------- */

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

int soft_create_qp(struct uvd_qp *qp, struct uvd_qp_init_attr *init);
int soft_modify_qp(struct uvd_qp *qp, const struct ibv_qp_attr *attr, int mask);
int soft_query_qp(struct uvd_qp *qp, struct ibv_qp_attr *attr, int mask, struct uvd_qp_init_attr *init);
int soft_destroy_qp(struct uvd_qp *qp);

/* Is there nobody who could take part in a transfer any more? May be asked without the lock. */
static inline bool soft_gone(struct soft_qp *qp)
{
	int state = atomic_load_explicit(&qp->state, memory_order_relaxed);

	return state == IBV_QPS_RESET || state == IBV_QPS_ERR;
}

/* With the lock held. Everything queued is flushed, now or by those who hold s_busy and r_busy when they are done. */
void soft_qp_error(struct soft_qp *qp, struct soft_due *due);

/* ---- send.c: runs a send queue ----------------------------------------------------------------------------------- */

/* What a try of the oldest request came to. */
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

/*
 * The requests that were just posted, with a budget of their own; or those of a QP that was in the list of the user whose thread
 * this is. No lock is held. Both take a reference over, which the QP may have lost when they return.
 */
void soft_send_run(struct soft_qp *qp, struct uvd_worker *worker);
void soft_send_run_deferred(struct soft_qp *qp, struct uvd_worker *worker);
/* The requests that wait are for the user's thread. With no lock held. */
void soft_send_resume(struct soft_qp *qp);
/* Kicks the QP that this one is connected to: what that was waiting for may be there. No lock is held; nothing is carried out. */
void soft_kick_peer(struct soft_qp *qp);
/* With the lock held: the send queue is ours again, if its mover is in the memory of another QP's owner. */
void soft_send_take_back(struct soft_qp *qp);
/* struct soft_movers.give_up */
void soft_send_give_up(struct soft_qp *requester, struct soft_qp *responder, enum soft_place place);
/* The timer of a wait has run out. The caller has a reference. */
void soft_send_timeout(struct soft_qp *qp, unsigned int wait_nr);
/* With the lock held. */
void soft_send_flush(struct soft_qp *qp, struct soft_due *due);
/* Has it tried again by the user's thread, if it waits for an answer from a peer that could give one now. No lock is held. */
void soft_send_wake(struct soft_qp *qp);
/* With the lock held: forgets that the oldest request waits for something. */
void soft_send_unwait(struct soft_qp *qp);

/* ---- recv.c: the receiving side, for all transports -------------------------------------------------------------- */

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
/* Whose keys the receives of this QP use. */
static inline struct uvd_pd *soft_recv_pd(struct soft_qp *qp)
{
	return qp->r_srq ? qp->r_srq->srq.pd : qp->qp.pd;
}

/* Whose keys its peers' requests use: those of an XRC target's peers name an SRQ, which has the PD. */
static inline struct uvd_pd *soft_target_pd(const struct soft_qp *qp)
{
	return qp->qp.pd ? qp->qp.pd : qp->r_srq->srq.pd;
}

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
uint64_t soft_sge_length(const struct ibv_sge *sge, int num_sge);

/* With the lock held: can a message of this requester reach this QP at all? */
bool soft_recv_admits(struct soft_qp *qp, const struct soft_request *req);
/* The completion of the message that has taken r_wqe, but for transport's own fields. */
struct ibv_wc soft_recv_wc(struct soft_qp *qp, const struct soft_send_wqe *wqe, uint32_t byte_len);

/* ---- transports -------------------------------------------------------------------------------------------------- */

struct soft_outcome soft_rc_send(struct soft_mover *m, struct soft_request *req);
/* Would the peer take the request now? Looks, and moves nothing. */
struct soft_outcome soft_rc_probe(struct soft_request *req);
struct soft_outcome soft_uc_send(struct soft_mover *m, struct soft_request *req);
/* UD and raw frames. */
struct soft_outcome soft_datagram_send(struct soft_mover *m, struct soft_request *req);

#endif
