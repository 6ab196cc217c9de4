/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packets as text, and a trace of what a machine does. A packet is "NAME+N FIELDS": N is its PSN, counted from FIRST_PSN; an
 * acknowledgement's name says its syndrome (ACK, CREDITS5 with that value, RNR5, NAK_SEQ, NAK_REQ, NAK_ACC, NAK_OP). Fields: "256B" bytes
 * of payload; "A" asks for an acknowledgement; "S" solicited; "at=" and "len=" of a RETH; "key="; "imm="; "inv="; "add="; "old=" of an
 * answer to an atomic; "m1" the MSN; "credits=" of an answer with bytes, whose value is in the AETH.
 */
#ifndef TESTS_WIRE_QP_SCRIPT_H
#define TESTS_WIRE_QP_SCRIPT_H

#include <check.h>
#include "tests/wire_qp/machine.h"

struct rule {
	const char *name; /* what must hold */
	const char *source;
	const char *script; /* statements, with semicolons between them */
	const char *trace; /* what the machine does */
};

/* Appends to the trace, of which each entry ends with a semicolon. Packets in the middle of a message that only go on are "...;". */
void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
void trace_packet(struct machine *m, const struct uvd_packet *packet);
/* Runs the script of the rule: statement() gets each one. The trace must be the rule's. */
void run_rule(const struct rule *rule, void (*statement)(char *text));
/* Reads packets with commas between them. Returns their number, or 0 if the text does not begin with a packet. */
unsigned int read_packets(char *text, struct uvd_packet *packets, unsigned int most);

#endif
