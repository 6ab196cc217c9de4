/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared by requester.c and answers.c. */
#ifndef UVD_SOFT_WIRE_REQUESTER_PARTS_H
#define UVD_SOFT_WIRE_REQUESTER_PARTS_H

#include "backends/soft/wire/requester.h"

/* Returns the n-th oldest of the requests that have begun. */
static inline struct wire_flight *wire_flight_of(struct wire_requester *r, unsigned int n)
{
	return &r->flight[(r->head + n) % WIRE_REQUESTS];
}

/*
 * Arms the timer of the next probe. The QP's timeout goes on meanwhile; if it has none, nothing is sent again without a NAK.
 */
void wire_requester_arm_probe(struct wire_requester *r, uint64_t now);
/* Arms both timers if something is in flight. Takes the time of a round trip, if one has ended. */
void wire_requester_arm(struct wire_requester *r, uint64_t now);
/* Progress: the QP's numbers of retries count from the beginning. */
void wire_requester_restore(struct wire_requester *r);
/* Sends everything from una on again. */
void wire_requester_go_back(struct wire_requester *r);
/* Goes back, and uses up a retry; without one left, fails the oldest request. is_timeout: nothing came back at all. */
void wire_requester_retry(struct wire_requester *r, uint64_t now, bool is_timeout);
/* The oldest request ends with this status. */
void wire_requester_end_oldest(struct wire_requester *r, enum ibv_wc_status status);
/* Fails the oldest request, which puts the QP into error: nothing is in flight any more. */
void wire_requester_fail_oldest(struct wire_requester *r, enum ibv_wc_status status);

#endif
