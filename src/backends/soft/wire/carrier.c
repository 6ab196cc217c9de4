/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A QP on the wire: carries requests and answers between its requester, its responder and the packets of its connection. The thread
 * that has the send queue (s_busy) runs both machines; it claims the QP as a responder for one part of a message at a time, as the local
 * network does.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "backends/soft/wire/internal.h"
#include "explain/explain.h"

static bool is_answer(const struct uvd_packet *packet)
{
	return uvd_opcode_info(packet->opcode)->is & UVD_IS_RESPONSE;
}

/* ---- packets that go out ----------------------------------------------------------------------------------------- */

void carrier_flush(void *user)
{
	struct soft_wire_qp *w = user;
	struct wire_sender *sender = w->sender;

	if (wire_has_way(w))
		wire_sender_flush(w->qp, sender, w->socket, !w->is_claimed);
	else
		wire_count_sent(w->qp, w->socket, sender, 0);
	sender->num = 0;
	wire_later_flushed(w);
}

/* Asks the filters what the network does with the packet. They know messages: an answer counts as one of its request's kind. */
static struct uvd_message carrier_ask_filters(struct soft_wire_qp *w, const struct uvd_packet *packet)
{
	const struct uvd_backend *ops = w->qp->dev->ibdev->ops;
	const uint32_t is = uvd_opcode_info(packet->opcode)->is;
	struct uvd_message message = {
		.qp = &w->qp->qp,
		.opcode = is & UVD_IS_READ ? IBV_WR_RDMA_READ : uvd_message_opcode(is),
		.length = packet->payload_len,
		.may_hold = !w->held_nr,
		.is_packet = true,
	};

	if (!soft_is_filtered(w->qp))
		return message;
	/* The filters may have been removed meanwhile: then this is soft_carry_message(). */
	ops->carry_message(&message);
	return message;
}

void carrier_transmit(void *user, const struct uvd_packet *packet)
{
	struct soft_wire_qp *w = user;
	struct wire_sender *sender = w->sender;
	const struct uvd_message message = carrier_ask_filters(w, packet);
	struct uvd_socket_out *out;

	if (message.fate == UVD_FATE_LOSE)
		return;
	if (sender->num == UVD_SOCKET_BATCH)
		carrier_flush(w);
	out = &sender->out[sender->num];
	out->to = w->peer;
	out->to_port = 0;
	out->head_len = uvd_packet_put_headers(packet, out->head);
	out->num_iov = packet->payload_len ? 1 : 0;
	out->iov[0] = (struct iovec){ (void *)packet->payload, packet->payload_len };
	out->err = 0;
	atomic_store_explicit(&w->sent_psn[is_answer(packet)], packet->psn, memory_order_relaxed);
	if ((message.fate == UVD_FATE_HOLD || message.delay_ns) && wire_has_way(w) &&
	    wire_later_takes(w->qp, w->socket, out, message.fate, message.hold_ns, message.delay_ns))
		return;
	sender->num++;
	wire_later_overtake(w);
}

static void carrier_count(void *user, enum uvd_port_counter which)
{
	struct soft_wire_qp *w = user;

	soft_count_at_port(w->qp->dev, soft_qp_port(w->qp), which, 1);
}

static uint8_t *carrier_buffer(void *user)
{
	struct soft_wire_qp *w = user;

	return w->m->buffer;
}

/* ---- the requester's operations ---------------------------------------------------------------------------------- */

/* Caller holds qp->lock. */
static const struct soft_send_wqe *peek(struct soft_wire_qp *w, unsigned int n)
{
	if (n >= WIRE_REQUESTS || (n >= w->requester.num && w->qp->state != IBV_QPS_RTS))
		return NULL;
	return soft_sq_peek(w->qp, n);
}

static const struct soft_send_wqe *requester_peek(void *user, unsigned int n)
{
	struct soft_wire_qp *w = user;
	const struct soft_send_wqe *wqe;

	pthread_mutex_lock(&w->qp->lock);
	wqe = peek(w, n);
	pthread_mutex_unlock(&w->qp->lock);
	return wqe;
}

static struct soft_list list_of(struct soft_wire_qp *w, const struct soft_send_wqe *wqe)
{
	const unsigned int access = soft_op_brings_back(wqe->opcode) ? IBV_ACCESS_LOCAL_WRITE : 0;

	return (struct soft_list){ w->qp->qp.pd, wqe->sge, wqe->num_sge, access };
}

static struct soft_outcome outcome_of(enum soft_copy_error err)
{
	switch (err) {
	case SOFT_COPY_OK:
		return soft_sent;
	case SOFT_COPY_LOST:
		return soft_lost;
	case SOFT_COPY_CUT:
		return soft_no_answer;
	default:
		return soft_bad_memory;
	}
}

static struct soft_outcome requester_check(void *user, const struct soft_send_wqe *wqe)
{
	const struct soft_list list = list_of(user, wqe);

	/* The answer's place is checked when the answer is there: the responder's error wins. */
	if (wqe->is_inline || soft_op_brings_back(wqe->opcode) || soft_list_ok(&list))
		return soft_sent;
	return soft_bad_memory;
}

struct soft_outcome carrier_gather(void *user, const struct soft_send_wqe *wqe, uint32_t offset, uint32_t len,
				   const uint8_t **bytes)
{
	struct soft_wire_qp *w = user;
	const struct soft_list list = list_of(w, wqe);

	if (wqe->is_inline || !len) {
		*bytes = wqe->data + (len ? offset : 0);
		return soft_sent;
	}
	*bytes = w->m->buffer;
	return outcome_of(soft_list_move(w->m, SOFT_AT_REQUESTER, &list, offset, w->m->buffer, len, false));
}

static struct soft_outcome requester_scatter(void *user, const struct soft_send_wqe *wqe, uint32_t offset, uint32_t len)
{
	struct soft_wire_qp *w = user;
	const struct soft_list list = list_of(w, wqe);

	if (!len)
		return soft_list_ok(&list) ? soft_sent : soft_bad_memory;
	return outcome_of(soft_list_move(w->m, SOFT_AT_REQUESTER, &list, offset, w->m->buffer, len, true));
}

static struct soft_outcome requester_local(void *user, const struct soft_send_wqe *wqe)
{
	struct soft_wire_qp *w = user;
	struct soft_request req = { .qp = w->qp, .wqe = (struct soft_send_wqe *)wqe };

	return soft_local_send(w->m, &req);
}

static void requester_complete(void *user, enum ibv_wc_status status)
{
	struct soft_wire_qp *w = user;
	struct soft_qp *qp = w->qp;
	struct soft_send_wqe *wqe;

	pthread_mutex_lock(&qp->lock);
	wqe = soft_sq_peek(qp, 0);
	if (wqe && qp->state != IBV_QPS_RESET) {
		qp->s_flight = w->requester.num;
		qp->s_psn = w->requester.una;
		if (status == IBV_WC_SUCCESS)
			wire_complete(qp, wqe, &w->due);
		else
			soft_send_fail(qp, wqe, status, NULL, &w->due);
	}
	pthread_mutex_unlock(&qp->lock);
	soft_due_run(&w->due);
}

const struct wire_requester_ops wire_requester_ops = {
	.peek = requester_peek,
	.check = requester_check,
	.gather = carrier_gather,
	.buffer = carrier_buffer,
	.scatter = requester_scatter,
	.local = requester_local,
	.transmit = carrier_transmit,
	.flush = carrier_flush,
	.complete = requester_complete,
	.count = carrier_count,
};

/* ---- the responder's operations ---------------------------------------------------------------------------------- */

/* Uses the mover of `in`: if the QP was taken from that, another thread may run the QP by now. */
static void responder_unclaim(struct soft_inbound *in, bool goes_on)
{
	soft_rc_leave_srq(in, goes_on);
	soft_unclaim(in->m, &in->due);
	soft_rc_put_srqs(in);
}

/* The packets of a request contradict each other. */
static void refuse_packets(struct soft_inbound *in)
{
	const struct uvd_why why = uvd_why(PACKETS, { in->qp->attr.dest_qp_num });

	soft_recv_fail(in->qp, IBV_WC_LOC_QP_OP_ERR, IBV_EVENT_QP_REQ_ERR, &why, &in->due);
	responder_unclaim(in, false);
}

/* Caller has claimed the QP and holds its lock. *claimed: it stays so, for responder_finish(). */
static struct soft_outcome responder_execute(struct soft_inbound *in, bool is_copy, bool *claimed)
{
	struct soft_outcome outcome = soft_rc_take(in);

	if (soft_is_sent(outcome) && in->is_last && !is_copy)
		outcome = soft_rc_execute(in);
	if (!in->m->responder.qp) {
		/* Whoever has taken it from the mover has its SRQ, too: see soft_recv_give_up(). */
		in->srq = NULL;
		soft_rc_put_srqs(in);
		return soft_lost;
	}
	if (soft_is_sent(outcome) && in->is_last && soft_op_takes_receive(in->arrival->opcode)) {
		*claimed = true;
		return outcome;
	}
	if (soft_is_sent(outcome) && in->is_last && !is_copy)
		soft_rc_complete(in);
	responder_unclaim(in, soft_is_sent(outcome));
	return outcome;
}

static struct soft_outcome responder_take(void *user, const struct soft_arrival *arrival, uint32_t offset,
					  uint32_t length, bool is_last, bool is_copy)
{
	struct soft_wire_qp *w = user;
	struct soft_mover *m = w->m;
	/* Ours, because the QP can be taken from the mover, reset and freed while this thread is in its client's memory. */
	struct soft_inbound own, *in = &own;
	struct soft_arrival again;
	bool claimed = false;
	struct soft_outcome outcome = soft_no_answer;

	own = offset && !is_copy ? w->in : (struct soft_inbound){ .has_late_receive = true, .is_from_wire = true };
	in->m = m;
	in->qp = soft_claim(m, w->wire->fabric, w->qp->qp.qp_num);
	if (!in->qp)
		return m->requester.qp ? soft_no_answer : soft_lost;
	if (!arrival) {
		refuse_packets(in);
		return m->requester.qp ? outcome : soft_lost;
	}
	again = *arrival;
	in->arrival = &again;
	in->offset = offset;
	in->length = length;
	in->is_last = is_last;
	if (is_copy) {
		/* Out of turn, and each part as a READ of its own. */
		again.psn = in->qp->r_psn;
		again.remote_addr += offset;
		again.length = length;
		in->offset = 0;
	}
	soft_rc_use_srq(in);
	outcome = responder_execute(in, is_copy, &claimed);
	if (!m->requester.qp && !claimed)
		return soft_lost;
	if (!is_copy) {
		w->in = own;
		w->in.arrival = arrival;
		w->is_claimed = claimed;
	}
	return outcome;
}

static void responder_finish(void *user)
{
	struct soft_wire_qp *w = user;

	if (!w->is_claimed)
		return;
	w->is_claimed = false;
	soft_rc_complete(&w->in);
	responder_unclaim(&w->in, true);
}

const struct wire_responder_ops wire_responder_ops = {
	.buffer = carrier_buffer,
	.take = responder_take,
	.finish = responder_finish,
	.transmit = carrier_transmit,
	.flush = carrier_flush,
	.count = carrier_count,
};

/* ---- packets that come in ---------------------------------------------------------------------------------------- */

/* Removes the first num letters. */
static void work_done(struct soft_wire_qp *w, unsigned int num)
{
	struct wire_letters done = { .first = w->work.first, .num = num };
	struct wire_letter **end = &done.first;

	for (unsigned int i = 0; i < num; i++)
		end = &(*end)->next;
	w->work.first = *end;
	*end = NULL;
	if (!w->work.first)
		w->work.last = &w->work.first;
	w->work.num -= num;
	wire_letters_free(w->qp, &done);
}

/* Takes the packets at the head of the work that are of one kind. Returns false in the case of SOFT_LOST. */
static bool take_some(struct soft_wire_qp *w)
{
	struct uvd_packet packets[UVD_SOCKET_BATCH];
	const bool answers = is_answer(&w->work.first->packet);
	struct soft_outcome outcome = soft_sent;
	unsigned int num = 0;

	if (w->qp->qp.qp_type == IBV_QPT_UD) {
		outcome = wire_ud_take(w, w->work.first);
		if (outcome.kind != SOFT_LOST)
			work_done(w, 1);
		return outcome.kind != SOFT_LOST;
	}
	for (struct wire_letter *l = w->work.first; l && num < UVD_SOCKET_BATCH; l = l->next) {
		if (is_answer(&l->packet) != answers)
			break;
		packets[num++] = l->packet;
	}
	if (w->qp->qp.qp_type == IBV_QPT_UC)
		num = wire_uc_take(w, packets, num, &outcome);
	else if (!answers)
		num = wire_responder_requests(&w->responder, packets, num, &outcome);
	else if (w->sends)
		outcome = wire_requester_answers(&w->requester, packets, num, uvd_now_ns());
	if (outcome.kind == SOFT_LOST)
		return false;
	work_done(w, num);
	return true;
}

/* Takes what has arrived, and sends up to `budget` bytes of answers to READs. Returns false in the case of SOFT_LOST. */
static bool take_all(struct soft_wire_qp *w, uint32_t budget)
{
	while (!soft_gone(w->qp)) {
		if (wire_responder_is_reading(&w->responder)) {
			if (!budget)
				break;
			budget -= budget < WIRE_RUN_BYTES ? budget : WIRE_RUN_BYTES;
			if (wire_responder_read(&w->responder).kind == SOFT_LOST)
				return false;
		} else if (!w->work.first) {
			break;
		} else if (!take_some(w)) {
			return false;
		}
	}
	return true;
}

/* ---- a run ------------------------------------------------------------------------------------------------------- */

/* Moves what has arrived to the work. Caller holds qp->lock. */
static void open_inbox(struct soft_wire_qp *w)
{
	if (!w->inbox.first)
		return;
	*w->work.last = w->inbox.first;
	w->work.last = w->inbox.last;
	w->work.num += w->inbox.num;
	w->inbox = (struct wire_letters){ .last = &w->inbox.first };
}

static bool carrier_send(struct soft_wire_qp *w, uint32_t budget)
{
	const uint64_t now = uvd_now_ns();

	if (!w->sends || soft_gone(w->qp))
		return true;
	if (w->qp->qp.qp_type == IBV_QPT_UC)
		return wire_uc_send(w, budget).kind != SOFT_LOST;
	wire_share_ask(w, now);
	return wire_requester_tick(&w->requester, now).kind != SOFT_LOST &&
	       wire_requester_send(&w->requester, now, budget).kind != SOFT_LOST;
}

/* Has the requester of an RC or XRC QP begun? */
static bool is_reliable(const struct soft_wire_qp *w)
{
	return w->sends && soft_is_reliable(w->qp);
}

/* Are its requests to be flushed, and no more sent? Caller holds qp->lock. */
static bool flushes(struct soft_qp *qp)
{
	return qp->state == IBV_QPS_ERR || (qp->state == IBV_QPS_SQE && soft_wire_is_connected(qp));
}

/*
 * May it send or flush more at once? Caller holds qp->lock, and keeps it until it gives s_busy up or goes on: whoever posts meanwhile leaves the
 * request to the thread that has s_busy.
 */
static bool has_more(struct soft_wire_qp *w)
{
	if (flushes(w->qp))
		return soft_sq_count(w->qp);
	if (is_reliable(w))
		return wire_requester_may_send(&w->requester, peek(w, w->requester.at));
	return w->sends && w->qp->qp.qp_type == IBV_QPT_UC && w->qp->state == IBV_QPS_RTS && soft_sq_count(w->qp);
}

/* Arms the QP's timer, unless it expires early enough. Caller holds qp->lock. */
static void arm_timer(struct soft_wire_qp *w)
{
	uint64_t at = is_reliable(w) ? wire_requester_deadline(&w->requester) : 0, now = uvd_now_ns();

	if (w->starves_until && (!at || w->starves_until < at))
		at = w->starves_until;
	if (!at || (w->timer_at && w->timer_at <= at) || soft_gone(w->qp))
		return;
	w->timer_at = at;
	soft_timer_arm(&w->wire->fabric->timers, w->qp, at > now ? at - now : 1);
}

bool soft_wire_has_work(const struct soft_qp *qp)
{
	return qp->wire && (qp->wire->inbox.first || qp->wire->work.first);
}

bool soft_wire_wake(struct soft_qp *qp)
{
	bool is_ours;

	pthread_mutex_lock(&qp->lock);
	is_ours = qp->wire && qp->wire->sends;
	if (is_ours) {
		qp->wire->resends = true;
		if (!qp->s_busy && !qp->s_deferred && !soft_gone(qp))
			soft_defer(qp, false);
	}
	pthread_mutex_unlock(&qp->lock);
	return is_ours;
}

bool soft_wire_timeout(struct soft_qp *qp)
{
	bool is_ours;

	pthread_mutex_lock(&qp->lock);
	is_ours = qp->wire;
	if (is_ours) {
		qp->wire->timer_at = 0;
		/* The thread that runs it arms the timer again. If no thread can be started, the timer tries again. */
		if (!qp->s_busy && !qp->s_deferred && !soft_gone(qp) && !soft_defer(qp, false))
			soft_timer_arm(&qp->dev->fabric->timers, qp, UINT64_C(1000000));
	}
	pthread_mutex_unlock(&qp->lock);
	return is_ours;
}

enum soft_wire_step soft_wire_run(struct soft_qp *qp, struct soft_mover *m, uint32_t budget)
{
	struct soft_wire_qp *w = qp->wire;
	struct soft_wire *wire = w->wire;
	struct soft_due due = { 0 };
	struct wire_sender *sender;
	bool kept;

	if (flushes(qp))
		soft_send_flush(qp, &due);
	open_inbox(w);
	if (w->resends && is_reliable(w))
		wire_requester_resend(&w->requester);
	w->resends = false;
	pthread_mutex_unlock(&qp->lock);
	soft_due_run(&due);
	sender = wire_sender_get(wire);
	if (sender) {
		w->m = m;
		w->sender = sender;
		kept = take_all(w, budget) && carrier_send(w, budget);
		sender->num = 0;
		wire_sender_put(wire, sender);
		if (!kept)
			return SOFT_WIRE_LOST;
	}
	pthread_mutex_lock(&qp->lock);
	if (soft_gone(qp)) {
		wire_give_back(w);
		return has_more(w) ? SOFT_WIRE_MORE : SOFT_WIRE_IDLE;
	}
	if (is_reliable(w)) {
		wire_share_settle(w, wire_requester_held(&w->requester),
				  wire_requester_starves(&w->requester, peek(w, w->requester.at)));
		qp->s_started = w->requester.num;
		w->is_long = wire_requester_in_flight(&w->requester) * w->connection.mtu > WIRE_SHORT_BYTES;
		arm_timer(w);
	}
	if (sender &&
	    (w->inbox.first || w->work.first || w->resends || wire_responder_is_reading(&w->responder) || has_more(w)))
		return SOFT_WIRE_MORE;
	return SOFT_WIRE_IDLE;
}
