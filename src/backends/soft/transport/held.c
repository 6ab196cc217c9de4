/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Messages that a filter holds back: copied when they are sent, delivered behind the next one or after a while. */
#include <stdlib.h>
#include <string.h>
#include "backends/soft/transport/transport.h"
#include "util/util.h"

bool soft_hold(struct soft_mover *m, struct soft_request *req, uint32_t length)
{
	const uint64_t size = sizeof(struct soft_held) + length;
	struct uvd_account *account = req->qp->qp.account;
	struct soft_held *held;

	if (uvd_charge_bytes(account, size))
		return false;
	held = malloc(size);
	if (!held) {
		uvd_uncharge_bytes(account, size);
		return false;
	}
	*held = (struct soft_held){
		.req = *req,
		.end_ns = uvd_now_ns() + req->hold_ns,
		.charged = size,
		.length = length,
	};
	held->req.wqe = NULL;
	held->req.fate = UVD_FATE_DELIVER;
	memcpy(held->bytes, m->buffer, length);
	req->held = held;
	return true;
}

bool soft_held_deliver(struct soft_mover *m, struct soft_held *held)
{
	struct soft_outcome outcome;

	memcpy(m->buffer, held->bytes, held->length);
	if (held->req.arrival.qp_type == IBV_QPT_UC)
		outcome = soft_uc_deliver(m, &held->req);
	else
		outcome = soft_datagram_deliver(m, &held->req);
	return outcome.kind != SOFT_LOST;
}
