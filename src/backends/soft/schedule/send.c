/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Runs a send queue: tries the oldest request, completes it, and goes on with the next. A request that has to wait
 * stays the oldest until it is retried, after a kick (the peer has posted a receive, or become ready) or by the timer.
 */
#include <stdlib.h>
#include "account/account.h"
#include "backends/soft/schedule/schedule.h"
#include "backends/soft/transport/transport.h"
#include "util/util.h"

enum {
	WIRE_STEP_BYTES = 64 << 10, /* of a QP on the wire */
	SHORT_BYTES = 4 << 10, /* so much is copied faster than its doorbell is answered */
};

/* Asks the filters what the network does with the message. Caller has s_busy. */
static void send_ask_filters(struct soft_request *req)
{
	const struct uvd_backend *ops = req->qp->dev->ibdev->ops;
	const bool is_packet = soft_wire_leads_to(req);
	const bool may_hold = is_packet ? !soft_wire_holds(req->qp)
					: !soft_is_reliable(req->qp) && !req->qp->s_held &&
						  req->wqe->length <= SOFT_CHUNK - SOFT_GRH_BYTES;
	struct uvd_message message = {
		.qp = &req->qp->qp,
		.opcode = req->wqe->opcode,
		.length = req->wqe->length,
		.may_hold = may_hold,
		.is_packet = is_packet,
	};

	/* The filters may have been removed meanwhile: then this is soft_carry_message(). */
	ops->carry_message(&message);
	req->fate = message.fate != UVD_FATE_HOLD || may_hold ? message.fate : UVD_FATE_DELIVER;
	req->hold_ns = message.hold_ns;
	req->delay_ns = message.delay_ns;
}

static struct soft_outcome send_try(struct soft_mover *m, struct soft_request *req)
{
	m->why.reason = NULL;
	if (req->wqe->refusal)
		return (struct soft_outcome){ .kind = SOFT_DONE, .status = req->wqe->refusal };
	if (soft_is_local(req->wqe->opcode))
		return soft_local_send(m, req);
	if (uvd_config_port_down(req->arrival.port))
		soft_count_at_port(req->qp->dev, req->arrival.port, UVD_PORT_XMIT_DISCARDS, req->arrival.packets ?: 1);
	if (soft_is_filtered(req->qp))
		send_ask_filters(req);
	switch (req->qp->qp.qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_XRC_SEND:
		return soft_rc_send(m, req);
	case IBV_QPT_UC:
		return soft_uc_send(m, req);
	default:
		if (soft_wire_leads_to(req))
			return soft_wire_send_datagram(m, req);
		return soft_datagram_send(m, req);
	}
}

/* Acts on the outcome of a try of the oldest request: completes it, fails it or makes it wait. */
static void send_settle(struct soft_qp *qp, struct soft_send_wqe *wqe, const struct soft_request *req,
			struct soft_outcome outcome, const struct uvd_why *why, const struct soft_silence *silence,
			enum soft_wait before, struct soft_due *due)
{
	if (outcome.kind != SOFT_DONE) {
		/* A kick says that the peer is ready. If the network has lost this request, its time-out decides. */
		qp->s_kicked &= !outcome.is_lost;
		if (qp->state != IBV_QPS_ERR && !qp->s_kicked)
			soft_send_put_off(qp, wqe, outcome, silence, before, due);
	} else if (outcome.status == IBV_WC_SUCCESS) {
		qp->s_psn = (qp->s_psn + req->arrival.packets) & 0xffffff;
		soft_send_complete(qp, wqe, IBV_WC_SUCCESS, due);
	} else {
		soft_send_fail(qp, wqe, outcome.status, why, due);
	}
}

/* Caller holds qp->lock. */
static void settle_burst(struct soft_qp *qp, struct soft_burst *burst, struct soft_budget *budget, struct soft_due *due)
{
	const struct soft_outcome sent = { .kind = SOFT_DONE, .status = IBV_WC_SUCCESS };

	for (unsigned int i = 0; i < burst->num; i++) {
		struct soft_request *req = &burst->req;

		/* The first request is charged already. At the last one the budget reads the clock. */
		if (i)
			soft_budget_take(budget, burst->wqes[i]->length, i == burst->num - 1);
		soft_arrival_set(&req->arrival, burst->wqes[i]);
		send_settle(qp, burst->wqes[i], req, sent, NULL, NULL, SOFT_WAIT_NONE, due);
	}
}

enum step { STEP_DONE, STEP_NOTHING, STEP_LOST };

/*
 * Is the call answered before this step? Not before one short message: the engine moves it sooner than the sender wakes
 * up, and the receiver may be polling for it. Before longer work, so that the sender can go on meanwhile. A sender with
 * own rings polls by calls, and would take the CPU from this thread: it is answered after all work, and so is the
 * client of a crowded QP.
 */
static bool send_is_answered_before(const struct soft_qp *qp, const struct soft_burst *burst, unsigned int steps)
{
	return qp->qp.sq && !qp->s_crowded && (steps || burst->num > 1 || burst->req.wqe->length > SHORT_BYTES);
}

/* ---- messages that the network holds back ------------------------------------------------------------------------ */

static bool held_is_due(const struct soft_qp *qp)
{
	return qp->s_held && (qp->s_held->is_overtaken || uvd_now_ns() >= qp->s_held->end_ns);
}

/* Delivers the held message, unless the QP has gone into error. Locking and result as of send_step(). */
static enum step held_step(struct soft_qp *qp, struct soft_mover *m, struct soft_due *due)
{
	struct soft_held *held;
	bool is_lost;

	if (soft_gone(qp)) {
		soft_held_drop(qp);
		return STEP_DONE;
	}
	held = soft_held_take(qp);
	qp->s_delivers_held = true;
	pthread_mutex_unlock(&qp->lock);
	soft_due_run(due);
	is_lost = !soft_held_deliver(m, held);
	free(held);
	if (is_lost)
		return STEP_LOST;
	pthread_mutex_lock(&qp->lock);
	qp->s_delivers_held = false;
	soft_send_settled(qp);
	return qp->state == IBV_QPS_RESET ? STEP_NOTHING : STEP_DONE;
}

/* A message was sent. It has overtaken the one that was held, or is held itself. Caller holds qp->lock and has s_busy. */
static void held_settle(struct soft_qp *qp, const struct soft_request *req)
{
	if (qp->s_held) {
		qp->s_held->is_overtaken = true;
	} else if (req->held) {
		qp->s_held = req->held;
		soft_timer_arm(&qp->dev->fabric->timers, qp, req->hold_ns);
	}
}

/*
 * Tries the oldest request once, alone or in a burst with those behind it. steps: how many steps of this run came
 * before. Caller holds qp->lock and has s_busy. Returns STEP_NOTHING if nothing more can be done now. STEP_LOST: the QP
 * was taken away, and qp->lock is not held.
 */
static enum step send_step(struct soft_qp *qp, struct soft_mover *m, struct soft_budget *budget, unsigned int steps,
			   struct soft_due *due)
{
	struct soft_send_wqe *wqe = soft_sq_peek(qp, 0);
	enum soft_wait before = qp->s_wait;
	struct soft_outcome outcome;
	enum step done = STEP_DONE;
	struct soft_silence silence;
	struct soft_burst burst;

	silence.why.reason = NULL;
	silence.peer = NULL;
	if (held_is_due(qp))
		return held_step(qp, m, due);
	if (!wqe)
		return STEP_NOTHING;
	if (qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_SQE) {
		soft_send_flush(qp, due);
		return STEP_NOTHING;
	}
	if (!soft_may_start(qp))
		return STEP_NOTHING;
	soft_send_unwait(qp);
	qp->s_kicked = false;
	qp->s_started = true;
	burst.req = soft_send_request(qp, wqe);
	soft_burst_collect(qp, &burst);
	pthread_mutex_unlock(&qp->lock);

	soft_due_run(due);
	if (send_is_answered_before(qp, &burst, steps))
		soft_mover_answer(m);
	if (burst.num > 1 && !soft_rc_burst(m, &burst))
		return STEP_LOST;
	if (burst.num < 2) {
		outcome = send_try(m, &burst.req);
		if (outcome.kind == SOFT_LOST)
			return STEP_LOST;
		if (outcome.kind == SOFT_NO_ANSWER && soft_is_reliable(qp))
			soft_silence_look(&burst.req, &silence);
	}
	pthread_mutex_lock(&qp->lock);
	if (qp->state == IBV_QPS_RESET)
		done = STEP_NOTHING;
	else if (burst.num < 2)
		send_settle(qp, wqe, &burst.req, outcome, soft_why_refused(m, qp), &silence, before, due);
	else
		settle_burst(qp, &burst, budget, due);
	soft_silence_put(&silence);
	held_settle(qp, &burst.req);
	soft_send_settled(qp);
	return done;
}

static bool send_is_to_many(struct soft_qp *qp, const struct soft_send_wqe *wqe)
{
	return qp->qp.qp_type == IBV_QPT_RAW_PACKET ||
	       (qp->qp.qp_type == IBV_QPT_UD && soft_is_multicast(soft_qp_port(qp), &wqe->ah));
}

/* Defers the send queue if its next request is beyond the budget. Caller holds the lock. Returns true if it was deferred. */
static bool send_hands_over(struct soft_qp *qp, struct soft_budget *budget)
{
	const struct soft_send_wqe *wqe = soft_sq_peek(qp, 0);

	if (!wqe || !soft_may_start(qp))
		return false;
	if (!soft_stream_takes(qp, budget, wqe->length) &&
	    soft_budget_take(budget, wqe->length, send_is_to_many(qp, wqe)))
		return false;
	if (soft_defer(qp, budget->of_user_thread))
		return true;
	/* No thread can be started: this thread goes on, and tries to defer again when another budget is spent. */
	*budget = (struct soft_budget){ .of_user_thread = true };
	return false;
}

/* One step of a QP on the wire. Locking and result as of send_step(). */
static enum step wire_step(struct soft_qp *qp, struct soft_mover *m, const struct soft_budget *budget)
{
	switch (soft_wire_run(qp, m, budget->is_short ? SHORT_BYTES : WIRE_STEP_BYTES)) {
	case SOFT_WIRE_LOST:
		return STEP_LOST;
	case SOFT_WIRE_MORE:
		return STEP_DONE;
	default:
		return STEP_NOTHING;
	}
}

/* Defers the QP if its budget is spent. Caller holds the lock. Returns true if it was deferred. */
static bool wire_hands_over(struct soft_qp *qp, struct soft_budget *budget)
{
	const bool is_over = budget->is_short && budget->begun;

	if (soft_budget_take(budget, WIRE_STEP_BYTES, false) && !is_over)
		return false;
	if (soft_defer(qp, budget->of_user_thread))
		return true;
	*budget = (struct soft_budget){ .of_user_thread = true };
	return false;
}

static bool hands_over(struct soft_qp *qp, struct soft_budget *budget)
{
	if (soft_wire_is_connected(qp) || soft_wire_has_work(qp))
		return wire_hands_over(qp, budget);
	return send_hands_over(qp, budget);
}

/* As send_step(): of a QP on the wire, what has arrived comes first. */
static enum step run_step(struct soft_qp *qp, struct soft_mover *m, struct soft_budget *budget, unsigned int steps,
			  struct soft_due *due)
{
	enum step done = qp->wire ? wire_step(qp, m, budget) : STEP_NOTHING;

	if (done != STEP_NOTHING || soft_wire_is_connected(qp))
		return done;
	return send_step(qp, m, budget, steps, due);
}

/* Runs the send queue. Caller holds qp->lock, which is released. Takes over a reference. */
static void send_run(struct soft_qp *qp, struct soft_mover *m, struct soft_budget *budget)
{
	struct soft_due due = { 0 };
	enum step done = STEP_DONE;
	bool handed_over = false;
	unsigned int steps = 0;

	qp->s_busy = true;
	soft_stream_run_begins(qp, budget);
	qp->s_mover = m;
	m->requester = (struct soft_party){ .qp = qp, .state = &qp->state, .user = uvd_account_person(qp->qp.account) };
	while (done == STEP_DONE) {
		if (qp->s_wanted && budget->of_user_thread)
			break;
		handed_over = hands_over(qp, budget);
		if (handed_over)
			break;
		done = run_step(qp, m, budget, steps, &due);
		if (done == STEP_NOTHING && !qp->wire && soft_stream_has_next(qp, budget, &due))
			done = STEP_DONE;
		steps++;
	}
	if (done == STEP_LOST)
		return;
	soft_stream_run_ends(qp, budget, steps);
	if (!handed_over)
		soft_undefer(qp);
	m->requester.qp = NULL;
	soft_send_let_go(qp, &due);
	pthread_mutex_unlock(&qp->lock);
	soft_due_run(&due);
	soft_ref_put(&qp->ref);
}

/* Runs the send queue, unless another thread has it: that one goes on with all of it. of_user: on a user's thread. */
static void run_as(struct soft_qp *qp, struct uvd_worker *worker, bool of_user, bool is_short)
{
	struct soft_mover *m = soft_mover_get(&qp->dev->fabric->movers, worker);
	struct soft_budget budget = { .of_user_thread = of_user, .is_short = is_short };

	pthread_mutex_lock(&qp->lock);
	if (m && !of_user && !is_short)
		soft_stream_take_back(qp);
	/* A reset or an error may have taken the QP back since it left the user's list. */
	if (m && !qp->s_busy && qp->s_deferred == of_user) {
		send_run(qp, m, &budget);
	} else {
		/* Out of memory: the requests wait until more are posted. */
		if (!m && of_user)
			qp->s_deferred = false;
		pthread_mutex_unlock(&qp->lock);
		soft_ref_put(&qp->ref);
	}
	if (m)
		soft_mover_put(m);
}

void soft_send_run(struct soft_qp *qp, struct uvd_worker *worker)
{
	run_as(qp, worker, false, false);
}

void soft_send_run_deferred(struct soft_qp *qp, struct uvd_worker *worker)
{
	run_as(qp, worker, true, false);
}

void soft_send_run_shortly(struct soft_qp *qp, struct uvd_worker *worker)
{
	run_as(qp, worker, false, true);
}
