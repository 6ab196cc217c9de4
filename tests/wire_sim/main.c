/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * wire-sim [one|incast|pairs|memory]...: tables for docs/performance-wire.md. Without an argument: all of them. Virtual time: the figures do
 * not depend on the machine.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "sim.h"

enum { SEED = 46, LENGTH = 64 << 10, MANY = 1000, PAIRS = 5000 };

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void print_end(const struct sim_summary *sum)
{
	if (sum->r.faults)
		printf(" %llu FAULTS |", (unsigned long long)sum->r.faults);
	printf("\n");
	fflush(stdout);
}

static const char *name_of(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND ? "SEND" : opcode == IBV_WR_RDMA_WRITE ? "WRITE" : "READ";
}

/* ---- one flow ---------------------------------------------------------------------------------------------------- */

static void print_one(enum ibv_wr_opcode opcode, uint32_t length)
{
	static const uint64_t delays[] = { 10000, SIM_MS, 10 * SIM_MS };
	static const uint32_t losses[] = { 0, 1000, 10000, 50000 };

	printf("\n%s, %u bytes\n\n| one way | loss, %% | ideal, MB/s | go-back-N, MB/s | ours, MB/s | ours / ideal | resent, %% "
	       "| NAKs/s | time-outs/s | failures |\n|---|---|---|---|---|---|---|---|---|---|\n",
	       name_of(opcode), length);
	for (unsigned int d = 0; d < 3; d++)
		for (unsigned int l = 0; l < 4; l++) {
			struct sim_config c = sim_defaults(SEED, 5 * SIM_S);
			struct sim_summary sum;

			c.delay_ns = delays[d];
			c.loss = losses[l];
			sum = sim_one(&c, opcode, length);
			printf("| %g ms | %g | %.1f | %.1f | %.1f | %.2f | %.1f | %.0f | %.1f | %llu |",
			       delays[d] / 1e6, losses[l] / 1e4, sum.ideal / 1e6, sum.go_back_n / 1e6,
			       sum.goodput / 1e6, sum.goodput / sum.ideal, 100 * sum.resent,
			       sum.r.naks * 1e9 / c.duration_ns, sum.r.timeouts * 1e9 / c.duration_ns,
			       (unsigned long long)sum.r.failures);
			print_end(&sum);
		}
}

static void print_ones(void)
{
	print_one(IBV_WR_RDMA_WRITE, LENGTH);
	print_one(IBV_WR_RDMA_READ, LENGTH);
}

/* ---- incast ------------------------------------------------------------------------------------------------------ */

static void print_incast(void)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ };
	static const enum ibv_mtu mtus[] = { IBV_MTU_1024, IBV_MTU_4096 };
	static const uint32_t buffers[] = { 212992, 2 * 212992, 2 * UVD_SOCKET_RCVBUF };

	printf("\n| 100 to 1 | MTU | buffer, bytes | packets in it | goodput, MB/s | of the port's | Jain | resent, %% | "
	       "dropped, %% | time-outs/s | failures |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
	for (unsigned int o = 0; o < 3; o++)
		for (unsigned int m = 0; m < 2; m++)
			for (unsigned int b = 0; b < 3; b++) {
				struct sim_config c = sim_defaults(SEED, 2 * SIM_S);
				struct sim_summary sum;

				c.mtu = mtus[m];
				c.buffer = buffers[b];
				sum = sim_incast(&c, 100, opcodes[o], LENGTH);
				printf("| %s | %u | %u | %u | %.0f | %.2f | %.3f | %.1f | %.1f | %.0f | %llu |",
				       name_of(opcodes[o]), 128u << c.mtu, c.buffer,
				       uvd_wire_packets(c.buffer, 128u << c.mtu), sum.goodput / 1e6,
				       sum.goodput / sum.link, sum.jain, 100 * sum.resent,
				       100.0 * sum.r.dropped / sum.r.packets, sum.r.timeouts * 1e9 / c.duration_ns,
				       (unsigned long long)sum.r.failures);
				print_end(&sum);
			}
}

/* ---- many -------------------------------------------------------------------------------------------------------- */

static void print_pairs(void)
{
	static const struct {
		enum ibv_mtu mtu;
		uint32_t loss;
		uint64_t duration_ns;
	} rows[] = { { IBV_MTU_1024, 0, 20 * SIM_MS },
		     { IBV_MTU_4096, 0, 40 * SIM_MS },
		     { IBV_MTU_4096, 1000, 40 * SIM_MS } };

	printf("\n| MTU | loss, %% | virtual time, ms | ideal, GB/s | goodput, GB/s | ratio | Jain | Jain of shares | least share | "
	       "resent, %% | time-outs | most in an inbox | failures | CPU, s |\n"
	       "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
	for (unsigned int n = 0; n < sizeof(rows) / sizeof(*rows); n++) {
		struct sim_config c = sim_defaults(SEED, rows[n].duration_ns);
		const double before = cpu_s();
		struct sim_summary sum;

		c.num_engines = MANY;
		c.mtu = rows[n].mtu;
		c.loss = rows[n].loss;
		sum = sim_pairs(&c, PAIRS, IBV_WR_RDMA_WRITE, LENGTH);
		printf("| %u | %g | %g | %.0f | %.0f | %.2f | %.3f | %.3f | %.2f | %.1f | %llu | %u | %llu | %.0f |",
		       128u << c.mtu, c.loss / 1e4, c.duration_ns / 1e6, sum.ideal / 1e9, sum.goodput / 1e9,
		       sum.goodput / sum.ideal, sum.jain, sum.fair, sum.least, 100 * sum.resent,
		       (unsigned long long)sum.r.timeouts, sum.r.most_inbox, (unsigned long long)sum.r.failures,
		       cpu_s() - before);
		print_end(&sum);
	}
}

static void print_memory(void)
{
	const size_t letter = sizeof(struct wire_letter);

	printf("\n| memory of a QP | bytes |\n|---|---|\n");
	printf("| struct soft_wire_qp | %zu |\n", sizeof(struct soft_wire_qp));
	printf("| of it the requester | %zu |\n", sizeof(struct wire_requester));
	printf("| of it the responder, and %d records | %zu |\n", WIRE_RECORDS,
	       sizeof(struct wire_responder) + WIRE_RECORDS * sizeof(struct wire_record));
	printf("| a packet in the inbox | %zu |\n", letter + UVD_IB_MTU_MAX);
	printf("| a full inbox of %d packets | %zu |\n", WIRE_INBOX, WIRE_INBOX * (letter + UVD_IB_MTU_MAX));
}

static const struct {
	const char *name;
	void (*print)(void);
} tables[] = {
	{ "one", print_ones }, { "incast", print_incast }, { "pairs", print_pairs }, { "memory", print_memory }
};

int main(int argc, char **argv)
{
	for (unsigned int n = 0; n < sizeof(tables) / sizeof(*tables); n++) {
		bool asked = argc < 2;

		for (int i = 1; i < argc; i++)
			asked |= !strcmp(argv[i], tables[n].name);
		if (asked)
			tables[n].print();
	}
	return 0;
}
