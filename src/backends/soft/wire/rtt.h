/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How long a requester waits for an answer until it probes, that is: sends again what has none. The QP's own timeout (67 ms at 14) is too
 * long to wait for each lost packet that no NAK tells of: the last one of a window, or one that is lost again while its responder is silent.
 * The wait follows the measured round trips (RFC 6298), is never below 4 ms, doubles with each probe, and is up to half as much longer by
 * chance, so that requesters that lost packets at the same moment do not come back together.
 *
 * No state beside the struct, no locks, no clock.
 */
#ifndef UVD_SOFT_WIRE_RTT_H
#define UVD_SOFT_WIRE_RTT_H

#include <stdint.h>

enum {
	WIRE_PROBE_LEAST_NS =
		4 * 1000 * 1000, /* threads on a busy machine run some ms late; also until a round trip is known */
	WIRE_PROBES = 12, /* after so many in a row the wait does not grow any more */
};

struct wire_rtt {
	uint64_t mean, deviation; /* ns; 0: not known */
	uint64_t since; /* when the packet before `psn` was sent, whose answer is awaited; 0: none is measured */
	uint32_t psn;
	unsigned int probes; /* since the last measured round trip */
	uint32_t chance; /* of a generator */
};

void wire_rtt_init(struct wire_rtt *r, uint32_t seed);
/* A packet that asks for an answer was sent, for the first time. psn: of the packet behind it. */
void wire_rtt_sent(struct wire_rtt *r, uint32_t psn, uint64_t now);
/* Packets are sent again: answers tell no round trip, as they may be those to the first copies. */
void wire_rtt_cancel(struct wire_rtt *r);
/* All before `una` is acknowledged. */
void wire_rtt_acked(struct wire_rtt *r, uint32_t una, uint64_t now);
/* Returns the time to wait until the next probe, in ns. */
uint64_t wire_rtt_wait(struct wire_rtt *r);
/* That time is over. */
void wire_rtt_probed(struct wire_rtt *r);

#endif
