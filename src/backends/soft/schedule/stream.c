/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Streams: large requests that a client keeps posting to a mapped queue. This file decides which thread copies, the doorbell's or the
 * user's, and whether the client waits for its doorbell meanwhile.
 */
#include "backends/soft/schedule/schedule.h"
#include "cpu/cpu.h"
#include "util/util.h"

enum {
	/* A QP has a stream after STREAM_RUNS runs of STREAM_BYTES or more, each soon after the one before. */
	STREAM_RUNS = 4,
	STREAM_BYTES = 32 << 10,
	STREAM_LOOK_NS = 3000, /* from one look of the user's thread at an empty queue to the next */
	/*
	 * A client that sleeps in its doorbell costs two switches. Below this average size of the requests they cost
	 * more than the CPU time that the client frees.
	 */
	CROWDED_REQUEST = 256 << 10,
	CROWDED_NS = 500 * 1000 * 1000, /* how long a QP is crowded; then it may have a stream again */
};

/*
 * The thread that serves the client's doorbells cannot take the next one while it copies, and the client waits for it. So the user's
 * thread copies in a stream, and the client goes on posting. A client that waits for its peer between two large requests is served
 * faster without the other thread.
 */
bool soft_stream_takes(const struct soft_qp *qp, const struct soft_budget *budget, uint32_t length)
{
	return qp->qp.sq && !qp->s_crowded && !budget->of_user_thread &&
	       (budget->begun || qp->s_stream >= STREAM_RUNS) && budget->bytes + length >= STREAM_BYTES;
}

void soft_stream_run_begins(struct soft_qp *qp, struct soft_budget *budget)
{
	uint64_t now;

	if (!qp->qp.sq)
		return;
	now = uvd_now_ns();
	if (budget->of_user_thread) {
		budget->run_ns = now;
		budget->run_cpu_ns = uvd_thread_cpu_ns();
		return;
	}
	qp->s_crowded = now < qp->s_crowded_end;
	if (qp->s_run_end && qp->s_stream < STREAM_RUNS)
		qp->s_stream = now - qp->s_run_end < qp->dev->fabric->stream_gap_ns ? qp->s_stream + 1 : 0;
}

/*
 * Did the user's thread have to share its CPU, and would the client give its own away by waiting for its doorbell? Beside a client and a peer that both poll, on two CPUs, it had half of one. Beside a client
 * that polls, and its doorbells' thread, it has most of one.
 */
static bool stream_run_was_crowded(const struct soft_qp *qp, const struct soft_budget *budget, uint64_t now)
{
	const uint64_t ns = budget->run_ns ? now - budget->run_ns : 0;
	uint64_t began = budget->run_cpu_ns;

	return !qp->qp.sq->unanswered && ns > qp->dev->fabric->crowded_run_ns &&
	       budget->bytes / budget->requests >= CROWDED_REQUEST && uvd_thread_cpu_since(&began) < ns / 3 * 2;
}

void soft_stream_run_ends(struct soft_qp *qp, const struct soft_budget *budget, unsigned int steps)
{
	uint64_t now;

	qp->s_run_end = 0;
	if (!qp->qp.sq || budget->bytes < STREAM_BYTES)
		return;
	now = uvd_now_ns();
	qp->s_run_end = now;
	if (!budget->of_user_thread)
		return;
	if (steps < STREAM_RUNS)
		qp->s_stream = 0;
	if (stream_run_was_crowded(qp, budget, now))
		qp->s_crowded_end = now + CROWDED_NS;
}

/* Asks the user's thread to release s_busy, and waits for that. Caller holds qp->lock, which is released meanwhile. */
static bool stream_wait_for_thread(struct soft_qp *qp)
{
	const uint64_t end = uvd_now_ns() + qp->dev->fabric->let_go_ns;

	qp->s_wanted = true;
	while (qp->s_busy && uvd_cond_wait_until(&qp->idle, &qp->lock, end))
		;
	qp->s_wanted = false;
	return !qp->s_busy;
}

void soft_stream_take_back(struct soft_qp *qp)
{
	if (qp->s_deferred && uvd_now_ns() < qp->s_crowded_end && (!qp->s_busy || stream_wait_for_thread(qp)))
		soft_undefer(qp);
}

/* Spins until `end`. Returns the time at which it stopped. */
static uint64_t stream_spin_until(uint64_t end)
{
	uint64_t now;

	do {
		uvd_cpu_relax();
		now = uvd_now_ns();
	} while (now < end);
	return now;
}

bool soft_stream_has_next(struct soft_qp *qp, const struct soft_budget *budget, struct soft_due *due)
{
	uint64_t now, end;

	if (!budget->of_user_thread || !qp->qp.sq || budget->bytes < STREAM_BYTES)
		return false;
	now = uvd_now_ns();
	end = now + 2 * qp->dev->fabric->stream_gap_ns;
	while (soft_may_start(qp) && !soft_look_ahead(qp)) {
		if (now > end || soft_user_has_more(qp))
			return false;
		pthread_mutex_unlock(&qp->lock);
		soft_due_run(due);
		now = stream_spin_until(now + STREAM_LOOK_NS);
		pthread_mutex_lock(&qp->lock);
	}
	return soft_may_start(qp);
}
