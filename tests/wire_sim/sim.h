/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A network of engines in virtual time: the engine's own requesters, responders and windows (backends/soft/wire), with a clock and a
 * carrier of this program. One thread, a seeded generator: the same configuration gives the same result.
 *
 * Each engine has a link to a switch. What it sends waits until the link is free; then the packet may get lost, be duplicated or be late.
 * The port of the switch that leads to the receiver, together with the receiver's socket, is one queue of limited memory: a packet that
 * does not fit is dropped. The slower one of link and receiver takes packets out of the queue. Then the packet waits in the inbox of its QP,
 * whose thread runs some time later.
 */
#ifndef UVD_TEST_WIRE_SIM_H
#define UVD_TEST_WIRE_SIM_H

#include "backends/soft/wire/internal.h"

#define SIM_MS UINT64_C(1000000)
#define SIM_S UINT64_C(1000000000)

enum { SIM_OPCODES = 5, SIM_DEPTH = 8 };

struct sim_config {
	uint64_t seed;
	unsigned int num_engines;
	uint64_t bits_per_s; /* of each link, each way */
	uint64_t delay_ns; /* one way */
	uint32_t buffer; /* of each port, in bytes of struct sk_buff, as a socket counts them */
	uint64_t packet_ns; /* that the receiver takes for a packet */
	uint64_t wake_ns; /* until a QP's thread runs, on average: between half and one and a half of it */
	/* The network does this to so many of a million packets: */
	uint32_t loss, duplicates, reorder;
	uint64_t reorder_ns; /* by how much a packet is late, at most */
	enum ibv_mtu mtu;
	bool checks; /* packets have their bytes, which are parsed, and payloads, which are compared */
	/* Each QP has these: */
	unsigned int timeout, retry_cnt, rd_atomic;
	uint32_t first_psn;
	uint64_t duration_ns; /* no message is posted later; those that have been posted are completed */
};

/* Messages from one engine to another, or for READs from the other to this one: always SIM_DEPTH posted. */
struct sim_flow {
	unsigned int from, to; /* engines */
	unsigned int num_opcodes;
	enum ibv_wr_opcode opcodes[SIM_OPCODES]; /* of message n: n % num_opcodes */
	uint32_t length; /* bytes; atomics have 8 */
	uint64_t most; /* messages, at most; 0: until the end */
};

struct sim_packet {
	struct sim_packet *next;
	unsigned int to; /* QP */
	struct uvd_packet packet;
	uint32_t wire_bytes, memory; /* with all headers; of a socket's buffer */
	uint32_t len;
	uint8_t bytes[]; /* of the datagram; if `checks` only */
};

struct sim_event {
	uint64_t at, order;
	enum sim_event_kind { SIM_ARRIVES, SIM_DELIVERED, SIM_RUNS, SIM_TIMER } kind;
	unsigned int qp;
	struct sim_packet *packet;
};

struct sim_engine {
	uint64_t link_free, port_free; /* when what is in the queue has left */
	uint32_t buffered; /* bytes in the port */
};

/* One end of a connection. Flow n has QPs 2n, the requester, and 2n + 1, the responder. */
struct sim_qp {
	struct sim *sim;
	unsigned int number, peer, engine;
	const struct sim_flow *flow;
	struct wire_connection connection;
	struct wire_requester requester;
	struct wire_responder responder;
	struct wire_record records[WIRE_RECORDS];
	struct sim_packet *inbox, **inbox_end;
	unsigned int num_inbox, most_inbox;
	bool runs_soon, is_dead; /* a request has failed */
	uint64_t timer_at;
	/* The requester: */
	struct soft_send_wqe wqes[SIM_DEPTH];
	uint64_t filled, completed; /* messages */
	uint64_t atomics; /* of these: what the next one must bring back */
	uint32_t scattered; /* bytes of the oldest READ */
	/* The responder: */
	uint64_t executed; /* messages */
	uint32_t psn, offset; /* expected next, of message `executed` */
	uint64_t counter; /* what atomics add 1 to */
	/* Figures: */
	uint64_t bytes; /* of payload that has arrived, once and in order, within the duration */
	uint64_t sent_bytes; /* of payload, in packets */
};

struct sim_result {
	uint64_t bytes, sent_bytes; /* payload, within the duration */
	uint64_t messages; /* completed, also afterwards */
	uint64_t packets, lost, dropped; /* handed to a link; lost by chance; dropped by a port */
	uint64_t timeouts, naks; /* retries by their reason */
	uint64_t failures; /* requests that have failed */
	uint64_t faults; /* what must never be: bytes, order, counts */
	unsigned int most_inbox; /* packets of one QP that waited */
	uint64_t end_ns; /* when the last message was complete */
};

struct sim {
	struct sim_config c;
	uint64_t now, random, order;
	struct sim_event *heap;
	size_t num_events, room;
	struct sim_engine *engines;
	struct sim_flow *flows;
	unsigned int num_flows;
	struct sim_qp *qps; /* twice as many */
	struct sim_packet *free;
	struct sim_result result;
	bool is_timer; /* a requester is called because of the time */
	uint8_t buffer[WIRE_RUN_BYTES];
};

/* ---- net.c ------------------------------------------------------------------------------------------------------- */

/* Caller frees it with sim_free(). Copies the flows. */
struct sim *sim_new(const struct sim_config *c, const struct sim_flow *flows, unsigned int num_flows);
void sim_free(struct sim *s);
/* Runs until the duration is over and nothing happens any more. The figures are in s->result and s->qps. */
void sim_run(struct sim *s);

uint64_t sim_random(struct sim *s);
void sim_schedule(struct sim *s, uint64_t at, enum sim_event_kind kind, unsigned int qp, struct sim_packet *packet);
/* Sends a copy of the packet from the engine to the QP. */
void sim_send(struct sim *s, unsigned int engine, unsigned int to, const struct uvd_packet *packet);
void sim_put_packet(struct sim *s, struct sim_packet *p);
/* A packet was drained from the port of its QP's engine. */
void sim_qp_deliver(struct sim_qp *qp, struct sim_packet *p);
/* How long a packet with so much payload keeps a port busy. */
uint64_t sim_service_ns(const struct sim_config *c, uint32_t wire_bytes);
/* A packet's bytes on the wire: preamble and gap, Ethernet, IPv4, UDP, InfiniBand. */
uint32_t sim_wire_bytes(const struct uvd_packet *packet);

/* ---- qp.c: the machines' owner ----------------------------------------------------------------------------------- */

void sim_qp_init(struct sim *s, unsigned int number);
void sim_qp_runs(struct sim_qp *qp);
void sim_qp_timer(struct sim_qp *qp, uint64_t at);
/* At the end: has each message arrived once? */
void sim_qp_check(struct sim_qp *qp);
/* A thread runs it soon. */
void sim_qp_wake(struct sim_qp *qp);

/* ---- ideal.c: what to compare with ------------------------------------------------------------------------------- */

/* Payload in bytes per second that one port passes on. */
double sim_capacity(const struct sim_config *c);
/* The least time from a packet to its acknowledgement. */
double sim_round_trip_ns(const struct sim_config *c);
/* One flow with WIRE_WINDOW_MOST packets in flight that sends nothing twice without need. */
double sim_ideal_of_one(const struct sim_config *c);
/* The same, but each loss costs a round trip's packets: go-back-N that learns of each loss at once and keeps its window. */
double sim_go_back_n_of_one(const struct sim_config *c);
/* Sets share[flow] to its max-min fair rate. Returns the sum. */
double sim_fair_shares(const struct sim *s, double *share);
/* Jain's index of num figures: 1 is fair. */
double sim_jain(const double *x, unsigned int num);
/* Goodput of a flow: payload in bytes per second of the duration. */
double sim_goodput(const struct sim *s, unsigned int flow);

/* ---- scenario.c -------------------------------------------------------------------------------------------------- */

/* What a scenario has shown. Rates in bytes per second. */
struct sim_summary {
	struct sim_result r;
	double goodput, ideal;
	double jain; /* of goodputs */
	double fair; /* of goodputs, each divided by its max-min fair share */
	double least; /* of these quotients */
	double resent; /* payload that was sent beyond what has arrived, of what has arrived */
	double link; /* capacity of a port */
	double go_back_n;
};

/* 10 Gbit/s, MTU 4096, 10 us one way, the buffer that Debian grants, 2 us for a packet; timeout 14, 7 retries; no losses by chance. */
struct sim_config sim_defaults(uint64_t seed, uint64_t duration_ns);
/* Run a network of so many flows. */
struct sim_summary sim_one(const struct sim_config *c, enum ibv_wr_opcode opcode, uint32_t length);
/* From `senders` engines to one; READs: of one from `senders`. */
struct sim_summary sim_incast(const struct sim_config *c, unsigned int senders, enum ibv_wr_opcode opcode,
			      uint32_t length);
/* Between random engines; of each connection both QPs send: 2 * pairs flows. */
struct sim_summary sim_pairs(const struct sim_config *c, unsigned int pairs, enum ibv_wr_opcode opcode,
			     uint32_t length);
/* One flow of all opcodes in turn. */
struct sim_summary sim_mixed(const struct sim_config *c, unsigned int flows, uint32_t length, uint64_t messages);

#endif
