/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "backends/soft/wire/credits.h"
#include "wire/wire.h"

uint32_t wire_credits_begin(struct wire_credits *c, uint32_t messages, bool takes_receive)
{
	c->ssn = uvd_psn_add(c->ssn, messages);
	if (!takes_receive)
		c->lsn = uvd_psn_add(c->lsn, messages);
	return c->ssn;
}

bool wire_credits_lack(const struct wire_credits *c, uint32_t ssn)
{
	return c->are_told && !c->are_unlimited && uvd_psn_diff(ssn, c->lsn) > 0;
}

bool wire_credits_may_begin(const struct wire_credits *c, bool in_flight)
{
	/* With nothing in flight no acknowledgement would come, whatever this peer counts as a message. */
	return !in_flight || !wire_credits_lack(c, c->ssn);
}

void wire_credits_told(struct wire_credits *c, uint8_t value, uint32_t msn)
{
	uint32_t lsn;

	if (value == UVD_AETH_NO_CREDITS) {
		c->are_unlimited = true;
		return;
	}
	lsn = uvd_psn_add(msn, uvd_aeth_credits(value));
	if (uvd_psn_diff(lsn, c->lsn) > 0)
		c->lsn = lsn;
	c->are_told = true;
}
