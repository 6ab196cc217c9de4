/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A request that has to wait: for how long, and what ends the wait: a kick (the peer has posted a receive, or become ready), the waker or
 * the timer. None of them moves data: a thread of the user does.
 */
#include "backends/soft/schedule/schedule.h"
#include "backends/soft/transport/transport.h"
#include "util/util.h"

enum {
	FIRST_LOOK_NS = 20 * 1000,
	MOST_RNR_NS = 128 * 1000 * 1000, /* of the waits that grow */
};

/*
 * Returns how long a sender waits after an RNR NAK: at least 1 ms. The specification allows 10 us, and rnr_retry 7
 * means retry forever. So QPs of sleeping clients would keep the timer thread busy, and two thousand of them would use
 * all of its time. grown: how often the wait has doubled. A receive that is posted kicks the sender, so the wait of a sender
 * that retries forever doubles with each NAK.
 */
static uint64_t rnr_wait_ns(unsigned int timer, unsigned int grown)
{
	const uint64_t least = 1000000, told = soft_rnr_ns(timer);
	const uint64_t ns = told > least ? told : least, most = ns > MOST_RNR_NS ? ns : MOST_RNR_NS;

	return ns << grown < most ? ns << grown : most;
}

/* ns 0: no timer; the QP waits for a kick. Caller holds qp->lock, here and in the next five functions. */
static void send_wait_for(struct soft_qp *qp, enum soft_wait wait, uint64_t ns)
{
	qp->s_wait = wait;
	qp->s_wait_nr++;
	if (ns)
		soft_timer_arm(&qp->dev->fabric->timers, qp, ns);
}

/*
 * A client puts a receive into a mapped queue without telling anybody. So the timer looks for one before the wait is
 * over: soon at first, then at doubled intervals while the same request waits, because a sleeping client must not keep
 * the timer thread busy.
 */
static void wait_for_receive(struct soft_qp *qp, struct soft_outcome outcome, enum soft_wait before)
{
	uint64_t ns;

	if (before != SOFT_WAIT_RNR) {
		qp->s_look_ns = FIRST_LOOK_NS;
		qp->s_rnr_grown = 0;
	} else if (qp->attr.rnr_retry == 7 && !outcome.is_mapped && qp->s_rnr_grown < 7) {
		qp->s_rnr_grown++;
	}
	ns = rnr_wait_ns(outcome.rnr_timer, qp->s_rnr_grown);
	qp->s_wait_end = uvd_now_ns() + ns;
	send_wait_for(qp, SOFT_WAIT_RNR, outcome.is_mapped && qp->s_look_ns < ns ? qp->s_look_ns : ns);
}

/* Returns how many ns an RNR wait lasts from now on; 0: the request is to be retried. */
static uint64_t rnr_left(const struct soft_qp *qp)
{
	uint64_t now = uvd_now_ns();

	return qp->s_wait == SOFT_WAIT_RNR && now < qp->s_wait_end ? qp->s_wait_end - now : 0;
}

/* Arms the timer for the next look in an RNR wait that lasts `left` ns more. */
static void look_again(struct soft_qp *qp, uint64_t left)
{
	qp->s_look_ns *= 2;
	soft_timer_arm(&qp->dev->fabric->timers, qp, qp->s_look_ns < left ? qp->s_look_ns : left);
}

/* Counts an event at the QP's port. */
static void send_count(struct soft_qp *qp, enum uvd_port_counter which)
{
	soft_count_at_port(qp->dev, soft_qp_port(qp), which, 1);
}

/* Uses up one retry of the oldest request. If none is left, fails the request and returns false. silence: NULL, or why. */
static bool send_spend_retry(struct soft_qp *qp, struct soft_send_wqe *wqe, const struct soft_silence *silence,
			     struct soft_due *due)
{
	if (!qp->s_retry) {
		send_count(qp, UVD_PORT_RETRY_EXCEEDED);
		soft_send_fail(qp, wqe, IBV_WC_RETRY_EXC_ERR, silence ? &silence->why : NULL, due);
		if (silence)
			soft_explain_drop(silence, due);
		return false;
	}
	qp->s_retry--;
	send_count(qp, UVD_PORT_RETRIES);
	return true;
}

/* After a try without success, makes the oldest request wait, or fails it. before: what it had waited for already. */
void soft_send_put_off(struct soft_qp *qp, struct soft_send_wqe *wqe, struct soft_outcome outcome,
		       const struct soft_silence *silence, enum soft_wait before, struct soft_due *due)
{
	if (outcome.kind == SOFT_RNR) {
		if (!qp->s_rnr_retry) {
			send_count(qp, UVD_PORT_RNR_RETRY_EXCEEDED);
			soft_send_fail(qp, wqe, IBV_WC_RNR_RETRY_EXC_ERR, NULL, due);
			return;
		}
		/* rnr_retry 7 means retry forever. */
		if (qp->attr.rnr_retry != 7)
			qp->s_rnr_retry--;
		wait_for_receive(qp, outcome, before);
		return;
	}
	/*
	 * A retry counts when its time-out is over, and not before: also the last one gets its full time. For a lost
	 * request send_lost_timeout() counts it.
	 */
	qp->s_lost = outcome.is_lost;
	if (before == SOFT_WAIT_RETRY && !outcome.is_lost && !send_spend_retry(qp, wqe, silence, due))
		return;
	send_wait_for(qp, SOFT_WAIT_RETRY, qp->attr.timeout ? UINT64_C(4096) << qp->attr.timeout : 0);
}

/* The time of the held message is over: makes the user's thread deliver it. Caller holds qp->lock. */
static void held_timeout(struct soft_qp *qp)
{
	/* The mover that has s_busy may have looked at the message before its time was over. */
	if (qp->s_busy || qp->s_deferred || !soft_defer(qp, false))
		soft_timer_arm(&qp->dev->fabric->timers, qp, UINT64_C(1000000));
}

/* ---- kicks, the waker and the timer ------------------------------------------------------------------------------ */

void soft_send_resume(struct soft_qp *qp)
{
	pthread_mutex_lock(&qp->lock);
	if (!qp->s_busy && !qp->s_deferred && soft_sq_count(qp))
		soft_defer(qp, false);
	pthread_mutex_unlock(&qp->lock);
}

/* Does the oldest request wait for the end of its time-out, as the network has lost it? Caller holds qp->lock. */
static bool send_waits_for_lost(const struct soft_qp *qp)
{
	return qp->s_wait == SOFT_WAIT_RETRY && qp->s_lost;
}

static void send_kick(struct soft_qp *qp, uint32_t by)
{
	pthread_mutex_lock(&qp->lock);
	/* Only the QP that it is connected to may kick it: others could use up its retries. */
	if (qp->attr.dest_qp_num == by && (qp->s_wait != SOFT_WAIT_NONE || qp->s_busy) && !send_waits_for_lost(qp)) {
		qp->s_kicked = true;
		/* This thread must not run another client's queue. If deferring fails, the next time-out retries. */
		if (!qp->s_busy && !qp->s_deferred)
			qp->s_kicked = soft_defer(qp, false);
	}
	pthread_mutex_unlock(&qp->lock);
}

void soft_kick_peer(struct soft_qp *qp)
{
	struct soft_qp *peer;
	uint32_t dest;

	pthread_mutex_lock(&qp->lock);
	dest = qp->attr.dest_qp_num;
	pthread_mutex_unlock(&qp->lock);
	peer = soft_fabric_get_qp(qp->dev->fabric, dest);
	if (!peer)
		return;
	send_kick(peer, qp->qp.qp_num);
	soft_ref_put(&peer->ref);
}

/*
 * Returns the oldest request if it is still in wait wait_nr, and no thread tries it or is about to; else NULL. Caller
 * holds qp->lock.
 */
static struct soft_send_wqe *send_waiting_wqe(struct soft_qp *qp, unsigned int wait_nr)
{
	if (qp->s_wait == SOFT_WAIT_NONE || qp->s_wait_nr != wait_nr || qp->s_busy)
		return NULL;
	/* The user's thread is going to retry it: no retry may be used up while the QP waits for its turn. */
	if (qp->s_deferred && qp->s_kicked)
		return NULL;
	return soft_sq_peek(qp, 0);
}

void soft_send_wake(struct soft_qp *qp)
{
	struct soft_send_wqe *wqe = NULL, copy;
	struct soft_request req;
	unsigned int wait_nr;

	if (soft_wire_wake(qp))
		return;
	pthread_mutex_lock(&qp->lock);
	wait_nr = qp->s_wait_nr;
	if (qp->s_wait == SOFT_WAIT_RETRY && !send_waits_for_lost(qp))
		wqe = send_waiting_wqe(qp, wait_nr);
	if (wqe) {
		copy = *wqe;
		req = soft_send_request(qp, &copy);
	}
	pthread_mutex_unlock(&qp->lock);
	/* Retry only if the peer can answer: a try that fails would use up a retry. */
	if (!wqe || soft_rc_probe(&req, false).kind != SOFT_DONE)
		return;

	pthread_mutex_lock(&qp->lock);
	if (send_waiting_wqe(qp, wait_nr)) {
		/*
		 * The waker serves all users, so it must not move data. If no thread can be started, the next time-out
		 * looks again.
		 */
		qp->s_kicked = soft_defer(qp, false);
	}
	pthread_mutex_unlock(&qp->lock);
}

/* The time-out of a request that the network has lost is over. Caller holds qp->lock. */
static void send_lost_timeout(struct soft_qp *qp, struct soft_send_wqe *wqe, struct soft_due *due)
{
	if (!send_spend_retry(qp, wqe, NULL, due))
		return;
	qp->s_lost = false;
	soft_send_unwait(qp);
	/* The timer serves all users, so it must not move data. If no thread can be started, it looks again. */
	if (!soft_defer(qp, false))
		send_wait_for(qp, SOFT_WAIT_RETRY, UINT64_C(1000000));
}

/*
 * Does what needs no look at the peer. Returns the request for which its receiver must be asked, or NULL. Caller holds
 * qp->lock.
 */
static struct soft_send_wqe *send_timeout_wqe(struct soft_qp *qp, unsigned int wait_nr, struct soft_due *due)
{
	struct soft_send_wqe *wqe = send_waiting_wqe(qp, wait_nr);

	if (qp->s_held)
		held_timeout(qp);
	if (!wqe || !send_waits_for_lost(qp))
		return wqe;
	send_lost_timeout(qp, wqe, due);
	return NULL;
}

void soft_send_timeout(struct soft_qp *qp, unsigned int wait_nr)
{
	struct soft_silence silence = { .peer = NULL };
	struct soft_due due = { 0 };
	struct soft_outcome outcome;
	struct soft_send_wqe *wqe, copy;
	struct soft_request req;
	uint64_t left;

	pthread_mutex_lock(&qp->lock);
	wqe = send_timeout_wqe(qp, wait_nr, &due);
	left = rnr_left(qp);
	if (wqe) {
		/* Once the lock is released, another thread may complete the request and reuse wqe. */
		copy = *wqe;
		req = soft_send_request(qp, &copy);
	}
	pthread_mutex_unlock(&qp->lock);
	if (!wqe) {
		soft_due_run(&due);
		return;
	}

	outcome = soft_rc_probe(&req, !left);
	if (outcome.kind == SOFT_NO_ANSWER)
		soft_silence_look(&req, &silence);

	pthread_mutex_lock(&qp->lock);
	wqe = send_waiting_wqe(qp, wait_nr);
	if (wqe && outcome.kind == SOFT_DONE) {
		/* The timer serves all users, so it must not move data. If no thread can be started, it looks again. */
		if (soft_defer(qp, false))
			qp->s_kicked = true;
		else
			send_wait_for(qp, qp->s_wait, UINT64_C(1000000));
	} else if (wqe && left) {
		look_again(qp, left);
	} else if (wqe) {
		soft_send_put_off(qp, wqe, outcome, &silence, qp->s_wait, &due);
	}
	pthread_mutex_unlock(&qp->lock);
	soft_silence_put(&silence);
	soft_due_run(&due);
}
