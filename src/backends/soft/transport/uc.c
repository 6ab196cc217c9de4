/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* UC in one engine: the requester, and the local network. The sender is not told if a message is dropped. Chunks are as in rc.c. */
#include <string.h>
#include "backends/soft/transport/transport.h"

struct uc {
	struct soft_mover *m;
	struct soft_request *req;
	struct soft_send_wqe *wqe; /* NULL: the network has held the message back */
	struct soft_inbound in; /* the message at its responder */
	struct soft_list local;
};

static void uc_begin_chunk(struct uc *uc, uint32_t offset)
{
	const uint32_t left = uc->req->arrival.length - offset;

	uc->in.offset = offset;
	uc->in.length = left < SOFT_CHUNK ? left : SOFT_CHUNK;
	uc->in.is_last = uc->in.length == left;
}

/* The requester's port sends all of the message, also what does not arrive. */
static void uc_count_out(const struct uc *uc)
{
	const struct soft_inbound whole = {
		.arrival = &uc->req->arrival,
		.length = uc->req->arrival.length,
		.is_last = true,
	};
	const struct soft_traffic t = soft_inbound_traffic(&whole);

	if (!uvd_config_port_down(uc->req->arrival.port))
		soft_count_out(uc->m, uc->req, &t);
}

/* Returns false if the rest of the message need not be sent. */
static bool uc_at_responder(struct uc *uc)
{
	struct uvd_fabric *fabric = uc->req->qp->dev->fabric;
	struct soft_inbound *in = &uc->in;
	bool arrived;

	in->qp = soft_claim(uc->m, fabric, uc->req->dest_qpn);
	if (!in->qp) {
		if (uc->m->requester.qp && !soft_fabric_has_qp(fabric, uc->req->dest_qpn))
			soft_explain_nowhere(uc->m, uc->req->dest_qpn);
		return false;
	}
	arrived = soft_uc_take(in);
	if (!uc->m->responder.qp)
		return false;
	if (arrived && in->is_last) {
		if (soft_op_takes_receive(in->arrival->opcode))
			soft_send_arrived(uc->req->qp);
		soft_uc_complete(in);
	}
	soft_unclaim(uc->m, &in->due);
	return arrived;
}

static enum soft_copy_error uc_gather(struct uc *uc)
{
	const struct soft_inbound *in = &uc->in;

	if (!uc->wqe->is_inline)
		return soft_list_move(uc->m, SOFT_AT_REQUESTER, &uc->local, in->offset, uc->m->buffer, in->length,
				      false);
	memcpy(uc->m->buffer, uc->wqe->data + in->offset, in->length);
	return SOFT_COPY_OK;
}

/* Does the network lose the message, or hold it back? */
static bool uc_is_diverted(struct uc *uc)
{
	if (uc->req->fate == UVD_FATE_HOLD)
		return soft_hold(uc->m, uc->req, uc->wqe->length);
	return uc->req->fate == UVD_FATE_LOSE;
}

struct soft_outcome soft_uc_deliver(struct soft_mover *m, struct soft_request *req)
{
	struct uc uc = { .m = m, .req = req, .in = { .m = m, .arrival = &req->arrival } };

	uc_begin_chunk(&uc, 0);
	uc_at_responder(&uc);
	return m->requester.qp ? soft_sent : soft_lost;
}

struct soft_outcome soft_uc_send(struct soft_mover *m, struct soft_request *req)
{
	struct soft_send_wqe *wqe = req->wqe;
	struct uc uc = {
		.m = m,
		.req = req,
		.wqe = wqe,
		.in = { .m = m, .arrival = &req->arrival },
		.local = { req->qp->qp.pd, wqe->sge, wqe->num_sge, 0 },
	};
	enum soft_copy_error err;
	uint32_t offset = 0;
	bool arrived;

	if (!soft_list_ok(&uc.local))
		return soft_bad_memory;
	do {
		uc_begin_chunk(&uc, offset);
		err = uc_gather(&uc);
		if (err == SOFT_COPY_BAD || err == SOFT_COPY_DEAD)
			return soft_bad_memory;
		if (!err && !offset)
			uc_count_out(&uc);
		if (!err && soft_is_captured(req) && !uvd_config_port_down(req->arrival.port))
			soft_capture_request(req, offset, m->buffer, uc.in.length);
		arrived = !err && !uc_is_diverted(&uc) && uc_at_responder(&uc);
		if (!m->requester.qp)
			return soft_lost;
		offset += uc.in.length;
	} while (arrived && !uc.in.is_last);
	return soft_sent;
}
