/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Limits the packets that a user's QPs have in flight together: `flight` of accounts. A QP may have as many packets in flight as its user has
 * left, so that some are left for the next one: n busy QPs get a part of n + 1 each, whatever they had before.
 *
 * A QP that gets nothing waits, but not for ever: then it may send one packet, or ask for one slice of a READ, beyond the limit. The more
 * the user has beyond the limit, the longer the waits. So the QPs of one user need not wake each other, and none starves.
 */
#include "account/account.h"
#include "backends/soft/wire/internal.h"

#define WIRE_STARVES_NS UINT64_C(20000000) /* at least; up to twice as long by chance */

void wire_share_ask(struct soft_wire_qp *w, uint64_t now)
{
	uint64_t used, max, share;

	uvd_account_room(w->qp->qp.account, UVD_RES_FLIGHT, &used, &max);
	share = max > used ? max - used : 0;
	/* Its own packets count as left. The half of an odd number is rounded up: it keeps one packet, which can be sent again. */
	share = max == UINT64_MAX ? max : (share + w->flight + 1) / 2;
	if (share) {
		w->starves_until = 0;
	} else if (!w->starves_until) {
		const uint64_t wait = WIRE_STARVES_NS * (1 + (max ? used / max : 0));

		w->starves_until = now + wait + (wait >> 16) * (uint16_t)(w->requester.una * 40503u ^ now);
	} else if (now >= w->starves_until) {
		share = 1;
		w->starves_until = 0;
	}
	w->requester.share = share < UINT32_MAX ? share : UINT32_MAX;
}

void wire_share_settle(struct soft_wire_qp *w, uint32_t packets, bool starves)
{
	struct uvd_account *account = w->qp->qp.account;

	if (packets > w->flight)
		uvd_account_charge_anyway(account, UVD_RES_FLIGHT, packets - w->flight);
	else if (packets < w->flight)
		uvd_account_uncharge(account, UVD_RES_FLIGHT, w->flight - packets);
	w->flight = packets;
	if (!starves)
		w->starves_until = 0;
}
