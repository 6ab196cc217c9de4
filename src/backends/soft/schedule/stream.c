/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A client with a mapped queue that keeps posting large requests, a stream: who copies, its doorbell's thread or its user's, and is the
 * client awake meanwhile?
 */
#include "backends/soft/schedule/schedule.h"
#include "util/util.h"

enum {
	/* So many runs of so many bytes, each soon after the one before. */
	STREAM_RUNS = 4,
	STREAM_BYTES = 32 << 10,
	STREAM_LOOK_NS = 3000, /* from one look at the queue to the next */
	/* Of requests smaller than that on average, the client's two switches cost more than the CPU is worth. */
	CROWDED_REQUEST = 256 << 10,
	CROWDED_NS = 500 * 1000 * 1000, /* then it is tried again */
	LET_GO_NS = 10 * 1000 * 1000, /* a thread that shares its CPU may have to wait for its turn first */
};

/*
 * The client's next doorbell waits for the thread that serves it, and the client with it. So another one copies from now on, and the
 * client goes on posting. A client that waits for its peer between two large requests is served faster without the other thread.
 */
bool soft_stream_takes(const struct soft_qp *qp, const struct soft_budget *budget, uint32_t length)
{
	return qp->qp.sq && !qp->s_crowded && !budget->of_user_thread && (budget->begun || qp->s_stream >= STREAM_RUNS) &&
	       budget->bytes + length >= STREAM_BYTES;
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
		qp->s_stream = now - qp->s_run_end < qp->dev->ibdev->fabric->stream_gap_ns ? qp->s_stream + 1 : 0;
}

/*
 * Did the user's thread have to share its CPU? Beside a client and a peer that both poll, on two CPUs, it had half of one. Beside a client
 * that polls, and its doorbells' thread, it has most of one.
 */
static bool run_was_crowded(const struct soft_qp *qp, const struct soft_budget *budget, uint64_t now)
{
	const uint64_t ns = budget->run_ns ? now - budget->run_ns : 0;

	return ns > qp->dev->ibdev->fabric->crowded_run_ns && budget->bytes / budget->requests >= CROWDED_REQUEST &&
	       uvd_thread_cpu_ns() - budget->run_cpu_ns < ns / 3 * 2;
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
	if (run_was_crowded(qp, budget, now))
		qp->s_crowded_end = now + CROWDED_NS;
}

/* Waits until the user's thread has let the queue go. Caller holds the lock, which is given up meanwhile. */
static bool thread_lets_go(struct soft_qp *qp)
{
	const uint64_t end = uvd_now_ns() + LET_GO_NS;

	qp->s_wanted = true;
	while (qp->s_busy && uvd_cond_wait_until(&qp->idle, &qp->lock, end))
		;
	qp->s_wanted = false;
	return !qp->s_busy;
}

void soft_stream_take_back(struct soft_qp *qp)
{
	if (qp->s_deferred && uvd_now_ns() < qp->s_crowded_end && (!qp->s_busy || thread_lets_go(qp)))
		soft_undefer(qp);
}

/* Returns the time. */
static uint64_t spin_until(uint64_t end)
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
	end = now + 2 * qp->dev->ibdev->fabric->stream_gap_ns;
	while (soft_may_start(qp) && !soft_sq_count(qp)) {
		if (now > end || soft_user_has_more(qp))
			return false;
		pthread_mutex_unlock(&qp->lock);
		soft_due_run(due);
		now = spin_until(now + STREAM_LOOK_NS);
		pthread_mutex_lock(&qp->lock);
	}
	return soft_may_start(qp);
}
