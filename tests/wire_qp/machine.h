/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The requester and the responder of a QP on the wire, alone: their owner is the test, which has a clock, a memory and no sockets.
 * A struct machine is one end: it has both. It aborts if they break the rules of their operations.
 */
#ifndef TESTS_WIRE_QP_MACHINE_H
#define TESTS_WIRE_QP_MACHINE_H

#include "backends/soft/transport/transport.h"
#include "backends/soft/wire/responder.h"

enum { MACHINE_REQUESTS = 64, MACHINE_RECORDS = 4, FIRST_PSN = 0xfffff0, MACHINE_MEMORY = 1 << 19 };

struct machine {
	struct wire_requester requester;
	struct wire_responder responder;
	struct wire_record records[MACHINE_RECORDS];
	uint64_t now;
	/* The send queue: a ring. A request's data is at its wr_id in the memory, which is also where a READ puts it. */
	struct soft_send_wqe requests[MACHINE_REQUESTS];
	unsigned int head, num;
	uint8_t memory[MACHINE_MEMORY];
	/* Called if they are set: */
	void (*sent)(struct machine *machine, const struct uvd_packet *packet);
	void (*completed)(struct machine *machine, const struct soft_send_wqe *wqe, enum ibv_wc_status status);
	struct soft_outcome (*take)(struct machine *machine, const struct soft_arrival *arrival, uint32_t offset,
				    uint32_t length, bool is_last, bool is_copy);
	void (*finished)(struct machine *machine);
	struct soft_outcome (*check)(struct machine *machine, const struct soft_send_wqe *wqe);
	unsigned int counts[UVD_PORT_COUNTERS];
	bool has_failed; /* the QP is in error: its send queue is flushed */
	uint8_t buffer[WIRE_RUN_BYTES]; /* the last member: AddressSanitizer sees who writes behind it */
};

void machine_init(struct machine *machine, uint32_t psn, uint32_t peer_psn, uint32_t mtu);
/* Adds a request to the queue. Returns it: the test sets what it wants. */
struct soft_send_wqe *machine_post(struct machine *machine, enum ibv_wr_opcode opcode, uint32_t length);
/* What the carrier does after packets, a post or a time-out. */
void machine_run(struct machine *machine);
/* Gives the machine packets of one kind: all are requests, or all are answers. */
void machine_receive(struct machine *machine, const struct uvd_packet *packets, unsigned int num);

#endif
