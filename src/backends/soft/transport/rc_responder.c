/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RC and XRC: the responder. It checks and executes an arrival, whose carrier has claimed the QP. All functions that transport.h
 * does not declare expect the QP's lock, and the claim.
 */
#include <string.h>
#include "backends/soft/transport/transport.h"
#include "explain/explain.h"

static struct soft_outcome rc_done(enum ibv_wc_status status)
{
	return (struct soft_outcome){ .kind = SOFT_DONE, .status = status };
}

static bool has_mapped_receives(const struct soft_qp *qp)
{
	return qp->r_srq ? qp->r_srq->rq.mapped : qp->rq.mapped;
}

static struct soft_outcome rc_rnr(const struct soft_qp *qp)
{
	return (struct soft_outcome){
		.kind = SOFT_RNR,
		.rnr_timer = qp->attr.min_rnr_timer,
		.is_mapped = has_mapped_receives(qp),
	};
}

static struct soft_outcome rc_send_rnr(struct soft_qp *qp)
{
	soft_count_at_port(qp->dev, soft_qp_port(qp), UVD_PORT_RNR_SENT, 1);
	return rc_rnr(qp);
}

static bool is_xrc(const struct soft_qp *qp)
{
	return qp->qp.qp_type == IBV_QPT_XRC_RECV;
}

bool soft_rc_admits(struct soft_qp *qp, const struct soft_arrival *arrival)
{
	/* A request out of sequence is dropped, and so are its retries. */
	return !qp->r_silent && soft_recv_admits(qp, arrival) && qp->r_psn == arrival->psn;
}

/* Does one access move the data of the whole list? Then that access checks the key, and no check is needed before. */
static bool is_asked_once(const struct soft_inbound *in, int num_sge)
{
	return num_sge == 1 && in->arrival->length && in->arrival->length == in->length;
}

/* Notes why the request is refused, for its requester. */
static void note_why(struct soft_inbound *in, struct uvd_why why)
{
	in->m->why = why;
	in->m->why_user = uvd_account_person(in->qp->qp.account);
}

/* Puts the QP into error with soft_recv_fail(). Returns the requester's outcome. */
static struct soft_outcome rc_refuse(struct soft_inbound *in, enum ibv_wc_status here, enum ibv_event_type event,
				     enum ibv_wc_status at_requester, struct uvd_why why)
{
	/* If the link has gone down since the request arrived, for example by an unplug, the NAK is lost. */
	if (!soft_arrival_is_linked(in->arrival, soft_qp_port(in->qp)))
		return soft_no_answer;
	note_why(in, why);
	soft_recv_fail(in->qp, here, event, &why, &in->due);
	return rc_done(at_requester);
}

static struct soft_outcome rc_refuse_request(struct soft_inbound *in, struct uvd_why why)
{
	return rc_refuse(in, IBV_WC_LOC_QP_OP_ERR, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR, why);
}

/* The checks of rights, resources and alignment, which come before the request is executed. */
static struct soft_outcome check_rights(struct soft_inbound *in)
{
	const struct soft_arrival *a = in->arrival;
	const bool brings_back = soft_op_brings_back(a->opcode);
	struct soft_qp *qp = in->qp;
	unsigned int right = soft_op_right(a->opcode);

	if ((qp->attr.qp_access_flags & right) != right)
		return rc_refuse_request(in,
					 uvd_why(QP_ACCESS, { qp->qp.qp_num }, { right & ~qp->attr.qp_access_flags }));
	if ((brings_back || a->opcode == IBV_WR_ATOMIC_WRITE) && !qp->attr.max_dest_rd_atomic)
		return rc_refuse_request(in, uvd_why(NO_RD_ATOMIC, { qp->qp.qp_num }));
	if (!brings_back && !soft_packets_fit(qp, a->mtu, a->length))
		return rc_refuse_request(in, soft_why_mtu(in->qp, in->arrival));
	if ((soft_op_is_atomic(a->opcode) || a->opcode == IBV_WR_ATOMIC_WRITE) && a->remote_addr % sizeof(uint64_t))
		return rc_refuse_request(in, uvd_why(ATOMIC_ALIGNMENT, { a->remote_addr }));
	return soft_sent;
}

/*
 * The receive that an RDMA WRITE with immediate data has taken ends with LOC_ACCESS_ERR. As in the kernel's rxe, a message
 * of several packets takes it with the last one, and the first has the key.
 */
static struct soft_outcome rc_refuse_key(struct soft_inbound *in)
{
	if (soft_op_takes_receive(in->arrival->opcode) && in->arrival->packets == 1 &&
	    !soft_recv_take(in->qp, &in->due))
		return rc_send_rnr(in->qp);
	return rc_refuse(in, IBV_WC_LOC_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR,
			 soft_why_r_key(in->qp, in->arrival));
}

/* The bytes could not be moved: the receive's list is wrong, or the memory behind a key cannot be accessed. */
static struct soft_outcome rc_refuse_receive(struct soft_inbound *in)
{
	struct uvd_why why = uvd_why(MEMORY_GONE, { .word = "r_key" }, { in->arrival->rkey });

	if (in->qp->r_taken && soft_op_is_send(in->arrival->opcode)) {
		const struct soft_list list = soft_recv_list(in->qp);

		why = soft_why_list(&list);
	}
	return rc_refuse(in, IBV_WC_LOC_PROT_ERR, IBV_EVENT_QP_FATAL, IBV_WC_REM_OP_ERR, why);
}

/* The XRC request names no SRQ of the target's domain. */
static struct soft_outcome rc_refuse_srq(struct soft_inbound *in)
{
	return rc_refuse_request(in, uvd_why(SRQ_UNKNOWN, { in->arrival->remote_srqn }, { in->qp->qp.qp_num }));
}

static struct soft_outcome rc_refuse_length(struct soft_inbound *in)
{
	const struct soft_recv_wqe *recv = in->qp->r_wqe;
	const struct uvd_why why =
		uvd_why(RECV_SHORT, { in->arrival->length }, { soft_sge_length(recv->sge, recv->num_sge) });

	return rc_refuse(in, IBV_WC_LOC_LEN_ERR, IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR, why);
}

static bool fits_receive(struct soft_inbound *in)
{
	const struct soft_recv_wqe *recv = in->qp->r_wqe;

	return !soft_op_is_send(in->arrival->opcode) ||
	       in->arrival->length <= soft_sge_length(recv->sge, recv->num_sge);
}

static struct soft_outcome take_receive(struct soft_inbound *in)
{
	struct soft_qp *qp = in->qp;
	struct soft_list list;

	if (!soft_recv_take(qp, &in->due))
		return rc_send_rnr(qp);
	if (!soft_op_is_send(in->arrival->opcode))
		return soft_sent;
	if (!fits_receive(in))
		return rc_refuse_length(in);
	list = soft_recv_list(qp);
	return is_asked_once(in, list.num_sge) || soft_list_ok(&list) ? soft_sent : rc_refuse_receive(in);
}

/*
 * Looks up the R_Key for the memory of the whole request, again for each part, as it can be invalidated in between.
 * Not for a request without bytes, whose R_Key means nothing.
 */
static bool rc_get_target(struct soft_inbound *in)
{
	const struct soft_arrival *a = in->arrival;

	if (!in->has_seg)
		in->has_seg = !soft_target_get(in->qp, a->rkey, a->remote_addr, a->length, soft_op_right(a->opcode),
					       &in->seg);
	return in->has_seg;
}

static void rc_put_target(struct soft_inbound *in)
{
	if (in->has_seg)
		soft_seg_put(&in->seg);
	in->has_seg = false;
}

/* Accepts or refuses a request that begins. */
static struct soft_outcome rc_arrive(struct soft_inbound *in)
{
	const struct soft_arrival *a = in->arrival;
	struct soft_qp *qp = in->qp;
	struct soft_outcome outcome;

	if (!soft_rc_admits(qp, a))
		return soft_no_answer;
	in->epoch = qp->r_epoch;
	soft_recv_established(qp, &in->due);
	if (is_xrc(qp) && !qp->r_srq)
		return rc_refuse_srq(in);
	outcome = check_rights(in);
	if (soft_is_sent(outcome) && soft_op_right(a->opcode) && a->length && !rc_get_target(in))
		return rc_refuse_key(in);
	if (soft_is_sent(outcome) && !soft_packets_fit(qp, a->mtu, a->length)) {
		/* packets of the answer to a READ */
		note_why(in, soft_why_mtu(in->qp, in->arrival));
		return rc_done(IBV_WC_LOC_LEN_ERR);
	}
	if (soft_is_sent(outcome) && soft_op_takes_receive(a->opcode))
		outcome = take_receive(in);
	return outcome;
}

/* For further parts: is the request still the one that the QP executes? */
static struct soft_outcome rc_come_again(struct soft_inbound *in)
{
	struct soft_qp *qp = in->qp;

	if (!soft_rc_admits(qp, in->arrival) || qp->r_epoch != in->epoch)
		return soft_no_answer;
	/* The SRQ has been destroyed since the last part, and with it the PD of the R_Key may be gone. */
	if (is_xrc(qp) && !qp->r_srq)
		return rc_refuse_srq(in);
	if (!soft_op_takes_receive(in->arrival->opcode))
		return soft_sent;
	if (!qp->r_taken)
		return in->has_late_receive ? take_receive(in) : soft_no_answer;
	/* How long a SEND is, packets tell as they come. */
	return fits_receive(in) ? soft_sent : rc_refuse_length(in);
}

static enum soft_copy_error rc_move_target(struct soft_inbound *in)
{
	const struct soft_arrival *a = in->arrival;
	struct soft_atomic_op op = { a->opcode, a->compare_add, a->swap, 0 };
	enum soft_copy_error err = SOFT_COPY_OK;
	struct soft_mover *m = in->m;

	if (a->opcode == IBV_WR_RDMA_READ) {
		if (in->may_view)
			err = soft_seg_view(m, SOFT_AT_RESPONDER, &in->seg, in->offset, in->length, &in->foreign);
		if (err || in->foreign.view)
			return err;
		return soft_seg_move(m, SOFT_AT_RESPONDER, &in->seg, in->offset, m->buffer, in->length, false);
	}
	if (!soft_op_is_atomic(a->opcode) && a->opcode != IBV_WR_ATOMIC_WRITE)
		return soft_seg_move(m, SOFT_AT_RESPONDER, &in->seg, in->offset, soft_inbound_bytes(in), in->length,
				     true);
	memcpy(&op.value, m->buffer, sizeof(op.value));
	err = soft_atomic(m, &in->qp->dev->fabric->atomics, &in->seg, &op);
	if (!err)
		memcpy(m->buffer, &op.value, sizeof(op.value));
	return err;
}

/* Moves the bytes with the QP's lock released. Takes it again, unless the QP was taken from the mover. */
static enum soft_copy_error rc_move(struct soft_inbound *in)
{
	const bool to_receive = soft_op_is_send(in->arrival->opcode);
	enum soft_copy_error err = SOFT_COPY_OK;
	struct soft_list list;

	if (!in->length)
		return SOFT_COPY_OK;
	if (to_receive)
		list = soft_recv_list(in->qp);
	else if (!rc_get_target(in))
		return SOFT_COPY_BAD;
	pthread_mutex_unlock(&in->qp->lock);
	soft_due_run(&in->due);
	if (to_receive)
		err = soft_list_move(in->m, SOFT_AT_RESPONDER, &list, in->offset, soft_inbound_bytes(in), in->length,
				     true);
	else
		err = rc_move_target(in);
	rc_put_target(in);
	if (in->m->responder.qp)
		pthread_mutex_lock(&in->qp->lock);
	return err;
}

static void rc_count_in(const struct soft_inbound *in)
{
	const struct soft_traffic t = soft_inbound_traffic(in);

	soft_count_in(in->m, in->qp, &t);
}

static struct soft_outcome rc_take_part(struct soft_inbound *in)
{
	struct soft_outcome outcome = in->offset ? rc_come_again(in) : rc_arrive(in);
	enum soft_copy_error err;

	if (!soft_is_sent(outcome))
		return outcome;
	err = rc_move(in);
	if (err == SOFT_COPY_LOST)
		return soft_lost;
	if (err == SOFT_COPY_CUT || soft_gone(in->qp))
		return soft_no_answer;
	if (err == SOFT_COPY_DEAD) {
		/* The QP's process has exited, and its QPs will be destroyed soon. Until then this one does not answer. */
		in->qp->r_silent = true;
		return soft_no_answer;
	}
	if (err == SOFT_COPY_SOURCE)
		return rc_done(IBV_WC_LOC_PROT_ERR);
	if (err == SOFT_COPY_BAD)
		return rc_refuse_receive(in);
	rc_count_in(in);
	return soft_sent;
}

struct soft_outcome soft_rc_take(struct soft_inbound *in)
{
	struct soft_outcome outcome = rc_take_part(in);

	rc_put_target(in);
	return outcome;
}

struct soft_outcome soft_rc_execute(struct soft_inbound *in)
{
	const struct soft_arrival *a = in->arrival;
	struct soft_qp *qp = in->qp;

	/*
	 * Class J: the receive ends in error, and no NAK goes out. No acknowledgement does, either: the requester would take the
	 * request for carried out, as it does with the kernel's rxe, which acknowledges it (RC-40 of docs/conformance.md).
	 */
	if (a->opcode == IBV_WR_SEND_WITH_INV &&
	    soft_invalidate_mw(soft_target_pd(qp), qp->qp.qp_num, a->invalidate_rkey)) {
		const struct uvd_why why = uvd_why(INVALIDATE_KEY, { a->invalidate_rkey }, { qp->qp.qp_num });

		soft_recv_fail(qp, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR, &why, &in->due);
		return soft_no_answer;
	}
	qp->r_psn = (qp->r_psn + a->packets) & 0xffffff;
	return soft_sent;
}

void soft_rc_complete(struct soft_inbound *in)
{
	const struct soft_arrival *a = in->arrival;

	if (soft_op_takes_receive(a->opcode)) {
		struct ibv_wc wc = soft_recv_wc(in->qp, a, a->length);

		soft_recv_complete(in->qp, &wc, a->is_solicited, &in->due);
	}
	soft_count_arrival(in->qp, a);
}

/* ---- XRC: a claimed target uses the SRQ that the request names --------------------------------------------------- */

/* Returns the SRQ that the request names, with a reference, or NULL. */
static struct soft_srq *named_srq(struct soft_qp *qp, const struct soft_arrival *arrival)
{
	return soft_srqn_get(qp->dev, qp->qp.xrcd, arrival->remote_srqn);
}

/*
 * An earlier message was cut off between two parts: flushes its receive. If the SRQ of that has been destroyed
 * meanwhile, the receive is gone without a completion.
 */
static void drop_taken(struct soft_inbound *in)
{
	struct ibv_wc wc = { .status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV };
	struct soft_qp *qp = in->qp;

	in->old_srq = soft_srqn_get(qp->dev, qp->qp.xrcd, qp->r_srqn);
	qp->r_srq = in->old_srq;
	if (qp->r_srq)
		soft_recv_complete(qp, &wc, true, &in->due);
	qp->r_taken = false;
}

void soft_rc_use_srq(struct soft_inbound *in)
{
	struct soft_qp *qp = in->qp;

	if (!is_xrc(qp))
		return;
	if (!in->offset && qp->r_taken)
		drop_taken(in);
	in->srq = named_srq(qp, in->arrival);
	if (atomic_load(&qp->waits_at) != in->srq)
		soft_srq_forget(qp);
	qp->r_srq = in->srq;
	qp->r_srqn = in->srq ? in->srq->srq.srq_num : 0;
	/* The SRQ has been destroyed, and with it the receive that the message took. */
	if (!in->srq)
		qp->r_taken = false;
}

void soft_rc_leave_srq(struct soft_inbound *in, bool goes_on)
{
	struct ibv_wc wc = { .status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV };

	if (!is_xrc(in->qp))
		return;
	if (in->qp->r_taken && in->srq && !goes_on)
		soft_recv_complete(in->qp, &wc, true, &in->due);
	in->qp->r_srq = NULL;
}

void soft_rc_put_srqs(struct soft_inbound *in)
{
	if (in->srq)
		soft_ref_put(&in->srq->ref);
	if (in->old_srq)
		soft_ref_put(&in->old_srq->ref);
	in->srq = in->old_srq = NULL;
}

/* ---- a look at a responder that is not claimed ------------------------------------------------------------------- */

/* Is there a receive for the request, or will it be refused? */
static bool is_ready(struct soft_qp *qp, const struct soft_arrival *arrival)
{
	struct soft_srq *srq;
	bool ready;

	if (!soft_op_takes_receive(arrival->opcode))
		return true;
	if (!is_xrc(qp))
		return soft_recv_ready(qp);
	srq = named_srq(qp, arrival);
	/* Keep the SRQ reference until the QP is queued: destruction waits for it, then wakes all waiters. */
	if (!srq)
		return true;
	if (atomic_load(&qp->waits_at) != srq)
		soft_srq_forget(qp);
	qp->r_srq = srq;
	ready = soft_recv_ready(qp);
	qp->r_srq = NULL;
	soft_ref_put(&srq->ref);
	return ready;
}

struct soft_outcome soft_rc_look(struct soft_qp *qp, const struct soft_arrival *arrival, bool is_retry)
{
	struct soft_outcome outcome = soft_sent;

	if (qp->r_busy)
		return outcome;
	if (!soft_rc_admits(qp, arrival))
		return soft_no_answer;
	if (!is_ready(qp, arrival))
		outcome = is_retry ? rc_send_rnr(qp) : rc_rnr(qp);
	outcome.is_mapped = has_mapped_receives(qp);
	return outcome;
}
