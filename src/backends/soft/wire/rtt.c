/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "backends/soft/wire/rtt.h"
#include "wire/wire.h"

void wire_rtt_init(struct wire_rtt *r, uint32_t seed)
{
	*r = (struct wire_rtt){ .chance = seed };
}

void wire_rtt_sent(struct wire_rtt *r, uint32_t psn, uint64_t now)
{
	if (r->since)
		return;
	r->since = now;
	r->psn = psn;
}

void wire_rtt_cancel(struct wire_rtt *r)
{
	r->since = 0;
}

static void rtt_add(struct wire_rtt *r, uint64_t ns)
{
	const uint64_t diff = ns > r->mean ? ns - r->mean : r->mean - ns;

	r->deviation = r->mean ? (3 * r->deviation + diff) / 4 : ns / 2;
	r->mean = r->mean ? (7 * r->mean + ns) / 8 : ns;
}

void wire_rtt_acked(struct wire_rtt *r, uint32_t una, uint64_t now)
{
	if (!r->since || uvd_psn_diff(una, r->psn) < 0)
		return;
	rtt_add(r, now - r->since);
	r->since = 0;
	r->probes = 0;
}

uint64_t wire_rtt_wait(struct wire_rtt *r)
{
	const uint64_t known = r->mean + 4 * r->deviation;
	const uint64_t wait = (known > WIRE_PROBE_LEAST_NS ? known : WIRE_PROBE_LEAST_NS) << r->probes;

	r->chance = r->chance * 1664525 + 1013904223;
	return wait + (wait >> 17) * (r->chance >> 16);
}

void wire_rtt_probed(struct wire_rtt *r)
{
	if (r->probes < WIRE_PROBES)
		r->probes++;
}
