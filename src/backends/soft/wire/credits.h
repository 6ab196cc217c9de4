/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The end-to-end credits of a requester (the InfiniBand specification, volume 1, 9.7.7.2): the responder's acknowledgements tell how many
 * receives it has, and requests that take one wait for it. A request beyond the limit may send its first packet, whose answer brings new
 * credits, or is an RNR NAK. No state beside the struct, no locks, no clock.
 *
 * Each message has a number (SSN). Acknowledgements tell the number of the last one that was executed (MSN). MSN and credits are the limit
 * (LSN), which moves on with each message that takes no receive. Until an acknowledgement has told credits, nothing is limited.
 */
#ifndef UVD_SOFT_WIRE_CREDITS_H
#define UVD_SOFT_WIRE_CREDITS_H

#include <stdbool.h>
#include <stdint.h>

struct wire_credits {
	uint32_t ssn; /* of the message that began last; 24 bits, as the next one */
	uint32_t lsn;
	bool are_told; /* an acknowledgement has told some */
	bool are_unlimited; /* one has told that its responder counts none: it never will */
};

/* A request begins, which has this many messages: a READ has several. Returns its last message's number. */
uint32_t wire_credits_begin(struct wire_credits *c, uint32_t messages, bool takes_receive);
/* Is a message with this number, which takes a receive, beyond the limit? */
bool wire_credits_lack(const struct wire_credits *c, uint32_t ssn);
/* May the next request send its first packet, although it takes a receive? in_flight: there are requests without an answer. */
bool wire_credits_may_begin(const struct wire_credits *c, bool in_flight);
/* An acknowledgement has told this. value: UVD_AETH_VALUE of its syndrome. The limit never falls. */
void wire_credits_told(struct wire_credits *c, uint8_t value, uint32_t msn);

#endif
