/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Networks that are worth a look. */
#include <stdlib.h>
#include "sim.h"

enum { DEBIANS_BUFFER = 2 * 212992 };

struct sim_config sim_defaults(uint64_t seed, uint64_t duration_ns)
{
	return (struct sim_config){
		.seed = seed,
		.num_engines = 2,
		.bits_per_s = UINT64_C(10000000000),
		.delay_ns = 10000,
		.buffer = DEBIANS_BUFFER,
		.packet_ns = 2000,
		.wake_ns = 5000,
		.reorder_ns = 50000,
		.mtu = IBV_MTU_4096,
		.timeout = 14,
		.retry_cnt = 7,
		.rd_atomic = WIRE_RECORDS,
		.first_psn = 0xfffff0,
		.duration_ns = duration_ns,
	};
}

static struct sim_summary sim_summary_of(const struct sim_config *c, const struct sim_flow *flows,
					 unsigned int num_flows)
{
	struct sim *s = sim_new(c, flows, num_flows);
	double *rate = calloc(num_flows, sizeof(*rate)), *share = calloc(num_flows, sizeof(*share));
	struct sim_summary sum = { .least = 1, .link = sim_capacity(c), .go_back_n = sim_go_back_n_of_one(c) };

	if (!rate || !share)
		abort();
	sim_run(s);
	sum.ideal = sim_fair_shares(s, share);
	for (unsigned int n = 0; n < num_flows; n++) {
		rate[n] = sim_goodput(s, n);
		sum.goodput += rate[n];
	}
	sum.jain = sim_jain(rate, num_flows);
	for (unsigned int n = 0; n < num_flows; n++) {
		rate[n] /= share[n];
		if (rate[n] < sum.least)
			sum.least = rate[n];
	}
	sum.fair = sim_jain(rate, num_flows);
	sum.r = s->result;
	sum.resent = sum.r.bytes ? (double)sum.r.sent_bytes / sum.r.bytes - 1 : 0;
	free(rate);
	free(share);
	sim_free(s);
	return sum;
}

struct sim_summary sim_one(const struct sim_config *c, enum ibv_wr_opcode opcode, uint32_t length)
{
	const struct sim_flow flow = { .to = 1, .num_opcodes = 1, .opcodes = { opcode }, .length = length };
	struct sim_summary sum = sim_summary_of(c, &flow, 1);

	sum.ideal = sim_ideal_of_one(c);
	return sum;
}

struct sim_summary sim_incast(const struct sim_config *c, unsigned int senders, enum ibv_wr_opcode opcode,
			      uint32_t length)
{
	const bool reads = opcode == IBV_WR_RDMA_READ;
	struct sim_config with = *c;
	struct sim_flow *flows = calloc(senders, sizeof(*flows));
	struct sim_summary sum;

	if (!flows)
		abort();
	with.num_engines = senders + 1;
	for (unsigned int n = 0; n < senders; n++)
		flows[n] = (struct sim_flow){ .from = reads ? 0 : n + 1,
					      .to = reads ? n + 1 : 0,
					      .num_opcodes = 1,
					      .opcodes = { opcode },
					      .length = length };
	sum = sim_summary_of(&with, flows, senders);
	free(flows);
	return sum;
}

struct sim_summary sim_pairs(const struct sim_config *c, unsigned int pairs, enum ibv_wr_opcode opcode, uint32_t length)
{
	struct sim_flow *flows = calloc(2 * pairs, sizeof(*flows));
	struct sim chance = { .random = c->seed + 1 };
	struct sim_summary sum;

	if (!flows)
		abort();
	for (unsigned int n = 0; n < pairs; n++) {
		const unsigned int a = sim_random(&chance) % c->num_engines;
		const unsigned int b = (a + 1 + sim_random(&chance) % (c->num_engines - 1)) % c->num_engines;

		flows[2 * n] = (struct sim_flow){
			.from = a, .to = b, .num_opcodes = 1, .opcodes = { opcode }, .length = length
		};
		flows[2 * n + 1] = (struct sim_flow){
			.from = b, .to = a, .num_opcodes = 1, .opcodes = { opcode }, .length = length
		};
	}
	sum = sim_summary_of(c, flows, 2 * pairs);
	free(flows);
	return sum;
}

struct sim_summary sim_mixed(const struct sim_config *c, unsigned int num, uint32_t length, uint64_t messages)
{
	struct sim_flow *flows = calloc(num, sizeof(*flows));
	struct sim_summary sum;

	if (!flows)
		abort();
	for (unsigned int n = 0; n < num; n++)
		flows[n] = (struct sim_flow){
			.from = n % c->num_engines,
			.to = (n + 1) % c->num_engines,
			.num_opcodes = SIM_OPCODES,
			.opcodes = { IBV_WR_SEND, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_ATOMIC_FETCH_AND_ADD,
				     IBV_WR_RDMA_WRITE_WITH_IMM },
			.length = length + n,
			.most = messages,
		};
	sum = sim_summary_of(c, flows, num);
	free(flows);
	return sum;
}
