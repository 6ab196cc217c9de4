/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An RC or XRC responder over packets: the order of PSNs, acknowledgements and NAKs, duplicates, READs in parts (the InfiniBand
 * specification, volume 1, 9.7; rxe_resp.c in the kernel). It puts packets together to arrivals, which its owner's operations execute. A
 * machine as the requester is: see requester.h.
 */
#ifndef UVD_SOFT_WIRE_RESPONDER_H
#define UVD_SOFT_WIRE_RESPONDER_H

#include "backends/soft/wire/requester.h"

struct wire_responder_ops {
	/* Returns a buffer of WIRE_RUN_BYTES: the data of a part. */
	uint8_t *(*buffer)(void *user);
	/*
	 * Executes the next part of a request: `length` bytes, from `offset` on. A write's are in the buffer; a READ's, or the old value of an
	 * atomic, are there afterwards. is_copy: it is a READ that was executed before. If the outcome of the last part is soft_is_sent(), the
	 * machine calls finish(), which completes the receive: of a READ or an atomic after the answer, whose bytes are in the buffer.
	 */
	struct soft_outcome (*take)(void *user, const struct soft_arrival *arrival, uint32_t offset, uint32_t length,
				    bool is_last, bool is_copy);
	void (*finish)(void *user);
	/* As those of the requester. */
	void (*transmit)(void *user, const struct uvd_packet *packet);
	void (*flush)(void *user);
	void (*count)(void *user, enum uvd_port_counter which);
};

/* A READ or an atomic that was executed. The answer to it can be lost. */
struct wire_record {
	uint32_t psn, packets; /* 0 packets: no record */
	uint8_t operation; /* enum uvd_operation */
	uint32_t rkey, length;
	uint64_t va;
	uint64_t original; /* of an atomic: the answer */
};

struct wire_responder {
	const struct wire_responder_ops *ops;
	void *user;
	struct wire_connection c;
	uint32_t expected, msn;
	bool is_silent; /* the packet that is expected was asked for by a NAK: others are dropped until it comes */
	bool is_owed; /* an acknowledgement of all before `expected` */
	/* The message that has begun: */
	bool in_message;
	struct soft_arrival arrival;
	uint32_t offset; /* bytes of it that have been executed */
	/* The READ that is being answered, perhaps once more while a message has begun: */
	bool reads, is_copy;
	struct soft_arrival read;
	uint32_t read_offset, read_psn; /* of the answer's next packet */

	struct wire_record *records; /* a ring of the last ones; the owner's memory */
	unsigned int num_records, next_record;
};

/* records: num_records of them, zeroed; at least one. */
void wire_responder_init(struct wire_responder *r, const struct wire_responder_ops *ops, void *user,
			 const struct wire_connection *c, uint32_t psn, struct wire_record *records,
			 unsigned int num_records);
/*
 * Takes requests: num packets in the order of their arrival, all of this connection, with the opcodes of requests. Returns how many it
 * has taken: fewer than num if a READ has to be answered first. *outcome: SOFT_LOST ends the machine's life; else soft_sent.
 */
unsigned int wire_responder_requests(struct wire_responder *r, const struct uvd_packet *packets, unsigned int num,
				     struct soft_outcome *outcome);
/* Goes on with the answer to a READ, by one run of packets. Returns SOFT_LOST or soft_sent. */
struct soft_outcome wire_responder_read(struct wire_responder *r);
static inline bool wire_responder_is_reading(const struct wire_responder *r)
{
	return r->reads;
}

#endif
