/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The scheduler: decides which send queue runs when, on which thread, and for how long. */
#ifndef UVD_SOFT_SCHEDULE_H
#define UVD_SOFT_SCHEDULE_H

#include "backends/soft/endpoint/endpoint.h"
#include "backends/soft/wire/wire.h"

/* ---- budget.c ---------------------------------------------------------------------------------------------------- */

/* The work that a thread has done in one run of a send queue. It starts zeroed, but for of_user_thread. */
struct soft_budget {
	uint64_t bytes, new_bytes; /* new_*: since the clock was last read */
	uint64_t start; /* ns; 0: the clock was not read yet */
	uint64_t run_ns, run_cpu_ns; /* of a user's thread: time, and its CPU time, when the run began; 0: not known */
	uint64_t requests;
	unsigned int new_requests;
	bool is_short; /* it ends after one step of a QP on the wire */
	bool of_user_thread; /* a user's thread runs it: the first request may be of any length */
	bool begun, spent;
};

/*
 * Charges a request of `bytes` bytes. to_many: it can have any number of receivers. Returns false if the budget is spent:
 * then the caller must not carry out the request.
 */
bool soft_budget_take(struct soft_budget *budget, uint64_t bytes, bool to_many);

/* ---- doorbell.c -------------------------------------------------------------------------------------------------- */

int soft_ring_doorbell(struct uvd_qp *qp, struct uvd_work *work);
void soft_drop_posts(struct uvd_qp *qp);
/* Returns the work that runs qp's send queue. It takes a reference to qp. Caller holds qp->lock. */
struct uvd_work soft_send_work(struct soft_qp *qp);
/*
 * Accepts the requests of a mapped queue before their doorbell, unless that could still be refused. Returns true if the send queue has
 * requests. Caller holds qp->lock.
 */
bool soft_look_ahead(struct soft_qp *qp);

/* ---- stream.c ---------------------------------------------------------------------------------------------------- */

/*
 * Caller holds qp->lock for each of these. Call soft_stream_run_begins() when a run of the send queue begins, whichever thread it is on,
 * and soft_stream_run_ends() after its last step.
 */
void soft_stream_run_begins(struct soft_qp *qp, struct soft_budget *budget);
void soft_stream_run_ends(struct soft_qp *qp, const struct soft_budget *budget, unsigned int steps);
/*
 * Called for a doorbell. If CPUs are short, takes the send queue from the user's thread, so that the caller can run it; waits 10 ms at
 * most for that thread, and releases qp->lock meanwhile.
 */
void soft_stream_take_back(struct soft_qp *qp);
/* Returns true if the user's thread shall carry out the next request, of `length` bytes, and not the caller. */
bool soft_stream_takes(const struct soft_qp *qp, const struct soft_budget *budget, uint32_t length);
/*
 * Called by the user's thread when a mapped queue is empty. Looks for the next large request for a while, because sleeping and being woken
 * costs more, and the request is there before its doorbell. Releases qp->lock meanwhile. Returns true if there is a request.
 */
bool soft_stream_has_next(struct soft_qp *qp, const struct soft_budget *budget, struct soft_due *due);

/* ---- wake.c ------------------------------------------------------------------------------------------------------ */

void soft_waker_init(struct soft_waker *waker);
void soft_waker_destroy(struct soft_waker *waker);
/* Makes the waker call soft_send_wake() for every QP, soon. Returns at once. */
void soft_wake_all(struct uvd_fabric *fabric);

/* ---- send.c ------------------------------------------------------------------------------------------------------ */

/*
 * Run the send queue with a new budget: soft_send_run() for requests that were just posted, soft_send_run_deferred() on
 * a user's thread that has taken qp from the user's list. Caller holds no lock. Both take over a reference, so qp may
 * be gone when they return.
 */
void soft_send_run(struct soft_qp *qp, struct uvd_worker *worker);
void soft_send_run_deferred(struct soft_qp *qp, struct uvd_worker *worker);
/* soft_send_run() for a thread that others wait for: the wire's receiver. */
void soft_send_run_shortly(struct soft_qp *qp, struct uvd_worker *worker);

/* ---- retry.c ----------------------------------------------------------------------------------------------------- */

/*
 * After a try without success, makes the oldest request wait, or fails it. before: what it had waited for already. Caller holds
 * qp->lock.
 */
void soft_send_put_off(struct soft_qp *qp, struct soft_send_wqe *wqe, struct soft_outcome outcome,
		       const struct soft_silence *silence, enum soft_wait before, struct soft_due *due);
/* Defers the QP if it has requests, and no thread runs it yet. Caller holds no lock. */
void soft_send_resume(struct soft_qp *qp);
/*
 * Kicks the QP that qp is connected to: that retries, on its user's thread, as what it waits for may be there. Caller
 * holds no lock.
 */
void soft_kick_peer(struct soft_qp *qp);
/* Called when the timer of wait wait_nr has expired. Caller holds no lock, and has a reference to qp. */
void soft_send_timeout(struct soft_qp *qp, unsigned int wait_nr);
/* If qp waits for an answer, and its peer could give one now, makes the user's thread retry. Caller holds no lock. */
void soft_send_wake(struct soft_qp *qp);

#endif
