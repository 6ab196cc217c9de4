/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * UC: the responder. It drops a message that it cannot take, which its user is told, and the sender is not. All functions expect the QP's
 * lock, and the claim.
 */
#include "backends/soft/transport/transport.h"

static bool uc_get_target(struct soft_inbound *in, struct soft_seg *seg)
{
	const struct soft_arrival *a = in->arrival;

	return !soft_target_get(in->qp, a->rkey, a->remote_addr, a->length, IBV_ACCESS_REMOTE_WRITE, seg);
}

static bool uc_drop(struct soft_inbound *in, enum soft_drop why)
{
	soft_explain_message(in->qp, in->arrival, why, &in->due);
	return false;
}

static bool may_write(struct soft_inbound *in)
{
	struct soft_seg seg;

	if (!(in->qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE))
		return uc_drop(in, SOFT_DROP_ACCESS);
	if (!in->arrival->length)
		return true;
	if (!uc_get_target(in, &seg))
		return uc_drop(in, SOFT_DROP_KEY);
	soft_seg_put(&seg);
	return true;
}

/* Takes a receive for all that has come of the message. */
static bool uc_take_receive(struct soft_inbound *in)
{
	return soft_recv_take_for(in->qp, in->arrival->length, soft_op_is_send(in->arrival->opcode), &in->due) ||
	       uc_drop(in, SOFT_DROP_LOOK);
}

static bool uc_arrive(struct soft_inbound *in)
{
	const struct soft_arrival *a = in->arrival;
	struct soft_qp *qp = in->qp;

	if (!soft_recv_admits(qp, a))
		return uc_drop(in, SOFT_DROP_LOOK);
	in->epoch = qp->r_epoch;
	soft_recv_established(qp, &in->due);
	if (!soft_packets_fit(qp, a->mtu, a->length))
		return uc_drop(in, SOFT_DROP_MTU);
	if (!soft_op_is_send(a->opcode) && !may_write(in))
		return false;
	return !soft_op_takes_receive(a->opcode) || uc_take_receive(in);
}

/* Has the message a receive for all that has come of it? */
static bool uc_has_receive(struct soft_inbound *in)
{
	const bool is_send = soft_op_is_send(in->arrival->opcode);

	if (in->has_late_receive && (!is_send || in->qp->r_taken))
		return uc_take_receive(in);
	return in->qp->r_taken;
}

static bool uc_come_again(struct soft_inbound *in)
{
	struct soft_qp *qp = in->qp;

	return soft_recv_admits(qp, in->arrival) && qp->r_epoch == in->epoch &&
	       (!soft_op_takes_receive(in->arrival->opcode) || uc_has_receive(in));
}

/* Moves the bytes with the QP's lock released. Takes it again, unless the QP was taken from the mover. */
static enum soft_copy_error uc_move(struct soft_inbound *in)
{
	const bool to_receive = soft_op_is_send(in->arrival->opcode);
	struct soft_mover *m = in->m;
	enum soft_copy_error err;
	struct soft_list list;
	struct soft_seg seg;

	if (!in->length)
		return SOFT_COPY_OK;
	if (to_receive) {
		list = soft_recv_list(in->qp);
	} else if (!uc_get_target(in, &seg)) {
		/* It was valid when the message arrived. */
		uc_drop(in, SOFT_DROP_KEY);
		return SOFT_COPY_CUT;
	}
	pthread_mutex_unlock(&in->qp->lock);
	soft_due_run(&in->due);
	if (to_receive) {
		err = soft_list_move(m, SOFT_AT_RESPONDER, &list, in->offset, m->buffer, in->length, true);
	} else {
		err = soft_seg_move(m, SOFT_AT_RESPONDER, &seg, in->offset, m->buffer, in->length, true);
		soft_seg_put(&seg);
	}
	if (m->responder.qp)
		pthread_mutex_lock(&in->qp->lock);
	return err;
}

bool soft_uc_take(struct soft_inbound *in)
{
	enum soft_copy_error err;
	struct soft_traffic t;

	if (in->offset ? !uc_come_again(in) : !uc_arrive(in))
		return false;
	err = uc_move(in);
	if (!in->m->responder.qp || soft_gone(in->qp))
		return false;
	if (err)
		return err == SOFT_COPY_BAD && uc_drop(in, SOFT_DROP_MEMORY);
	t = soft_inbound_traffic(in);
	soft_count_in(in->m, in->qp, &t);
	return true;
}

void soft_uc_complete(struct soft_inbound *in)
{
	const struct soft_arrival *a = in->arrival;
	struct soft_qp *qp = in->qp;

	/* UC does not check the PSN: a responder accepts the first packet of any message and continues from there. */
	qp->r_psn = (a->psn + a->packets) & 0xffffff;
	if (soft_op_takes_receive(a->opcode)) {
		struct ibv_wc wc = soft_recv_wc(qp, a, a->length);

		soft_recv_complete(qp, &wc, a->is_solicited, &in->due);
	}
	soft_count_arrival(qp, a);
}
