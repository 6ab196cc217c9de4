/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Requesters and responders in a network in virtual time: each message arrives once and in order, and flows share a port. The bounds of
 * goodput and fairness are below the figures that seeds 1 to 10 have.
 */
#include "sim.h"
#include "../suite.h"

enum { KIB = 1024 };

static void expect_no_fault(const struct sim_summary *sum, uint64_t seed)
{
	ck_assert_msg(!sum->r.faults, "seed %llu: %llu faults", (unsigned long long)seed,
		      (unsigned long long)sum->r.faults);
	ck_assert_msg(!sum->r.failures, "seed %llu: %llu requests failed", (unsigned long long)seed,
		      (unsigned long long)sum->r.failures);
}

static void expect_at_least(const char *what, double got, double least)
{
	ck_assert_msg(got >= least, "%s is %.3f, less than %.3f", what, got, least);
}

START_TEST(messages_arrive_once_and_in_order_with_all_faults_of_a_network)
{
	enum { FLOWS = 8, MESSAGES = 60 };

	for (uint64_t seed = 1; seed <= (suite_is_long() ? 200 : 3); seed++) {
		struct sim_config c = sim_defaults(seed, 1000 * SIM_S);
		struct sim_summary sum;

		c.num_engines = 4;
		c.checks = true;
		c.loss = c.duplicates = c.reorder = 10000;
		c.mtu = seed % 2 ? IBV_MTU_1024 : IBV_MTU_4096;
		sum = sim_mixed(&c, FLOWS, 70 * KIB + 3, MESSAGES);
		expect_no_fault(&sum, seed);
		ck_assert_uint_eq(sum.r.messages, FLOWS * MESSAGES);
		ck_assert_uint_gt(sum.r.lost, 0);
		ck_assert_uint_gt(sum.r.naks, 0);
	}
}
END_TEST

START_TEST(same_seed_gives_the_same_result)
{
	struct sim_config c = sim_defaults(1, 20 * SIM_MS);
	struct sim_summary a, b;

	c.loss = c.reorder = 10000;
	a = sim_one(&c, IBV_WR_SEND, 64 * KIB);
	b = sim_one(&c, IBV_WR_SEND, 64 * KIB);
	ck_assert_mem_eq(&a.r, &b.r, sizeof(a.r));
	c.seed = 2;
	b = sim_one(&c, IBV_WR_SEND, 64 * KIB);
	ck_assert_mem_ne(&a.r, &b.r, sizeof(a.r));
}
END_TEST

/* Without losses the window is what limits, and slow start and the growth to 64 packets take some round trips. */
START_TEST(one_flow_without_losses_fills_the_link_or_its_window)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };

	for (unsigned int n = 0; n < 3; n++) {
		struct sim_config c = sim_defaults(1, 50 * SIM_MS);
		struct sim_summary sum = sim_one(&c, opcodes[n], 64 * KIB);

		expect_no_fault(&sum, c.seed);
		expect_at_least("goodput of the ideal", sum.goodput / sum.ideal, 0.98);
		ck_assert(!sum.r.timeouts && !sum.r.naks);
		c.delay_ns = SIM_MS;
		c.duration_ns = 2 * SIM_S;
		sum = sim_one(&c, opcodes[n], 64 * KIB);
		expect_no_fault(&sum, c.seed);
		expect_at_least("goodput of the ideal", sum.goodput / sum.ideal, 0.9);
		ck_assert(!sum.r.timeouts && !sum.r.naks);
	}
}
END_TEST

/*
 * The port is full throughout, but a fifth of what passes it comes behind a gap and is sent again. Seeds 1 to 10 have
 * 0.785 to 0.788, and Jain's index from 0.947 on; the bounds are lower, as other windows may be right, too. The
 * longest time without progress until a request fails is eight time-outs, 0.54 s.
 */
START_TEST(hundred_senders_share_a_port)
{
	struct sim_config c = sim_defaults(1, SIM_S);
	struct sim_summary sum;

	c.buffer /= 2;
	sum = sim_incast(&c, 100, IBV_WR_RDMA_WRITE, 64 * KIB);
	expect_no_fault(&sum, c.seed);
	ck_assert_uint_gt(sum.r.dropped, 0);
	expect_at_least("goodput of the port's", sum.goodput / sum.link, 0.7);
	expect_at_least("Jain's index", sum.jain, 0.9);
}
END_TEST

/* Seeds 1 to 10: 0.888 to 0.894, Jain's index 0.916 to 0.944. Without the part of the wait by chance it is 0.857. */
START_TEST(answers_to_a_hundred_reads_share_a_port)
{
	struct sim_config c = sim_defaults(1, SIM_S);
	struct sim_summary sum = sim_incast(&c, 100, IBV_WR_RDMA_READ, 64 * KIB);

	expect_no_fault(&sum, c.seed);
	ck_assert_uint_gt(sum.r.dropped, 0);
	expect_at_least("goodput of the port's", sum.goodput / sum.link, 0.8);
	expect_at_least("Jain's index", sum.jain, 0.9);
}
END_TEST

/* 64 packets in flight, and each lost one costs go-back-N its round trip: 0.52 to 0.58 of the ideal. With the QP's timeout alone it is 0.16. */
START_TEST(loss_costs_no_timeout)
{
	struct sim_config c = sim_defaults(1, SIM_S);
	struct sim_summary sum;

	c.loss = 10000;
	sum = sim_one(&c, IBV_WR_RDMA_WRITE, 64 * KIB);
	expect_no_fault(&sum, c.seed);
	expect_at_least("goodput of the ideal", sum.goodput / sum.ideal, 0.4);
}
END_TEST

START_TEST(wait_before_a_probe_follows_round_trips_and_doubles)
{
	struct wire_rtt r;
	uint64_t wait;

	wire_rtt_init(&r, 1);
	wait = wire_rtt_wait(&r);
	ck_assert_uint_ge(wait, WIRE_PROBE_LEAST_NS);
	ck_assert_uint_le(wait, WIRE_PROBE_LEAST_NS * 3 / 2);
	ck_assert_uint_ne(wire_rtt_wait(&r), wait);
	wire_rtt_probed(&r);
	wire_rtt_probed(&r);
	ck_assert_uint_ge(wire_rtt_wait(&r), 4 * WIRE_PROBE_LEAST_NS);
	/* An answer to a packet that was sent once ends that. */
	wire_rtt_sent(&r, 0xffffff, SIM_S);
	wire_rtt_cancel(&r);
	wire_rtt_acked(&r, 0, SIM_S + SIM_MS);
	ck_assert_uint_ge(wire_rtt_wait(&r), 4 * WIRE_PROBE_LEAST_NS);
	wire_rtt_sent(&r, 0, SIM_S);
	wire_rtt_acked(&r, 0xffffff, SIM_S + SIM_MS);
	ck_assert_uint_ge(wire_rtt_wait(&r), 4 * WIRE_PROBE_LEAST_NS);
	wire_rtt_acked(&r, 0, SIM_S + SIM_MS);
	ck_assert_uint_le(wire_rtt_wait(&r), WIRE_PROBE_LEAST_NS * 3 / 2);
	for (unsigned int n = 0; n < 20; n++) {
		wire_rtt_sent(&r, n, SIM_S);
		wire_rtt_acked(&r, n, SIM_S + 20 * SIM_MS);
	}
	ck_assert_uint_ge(wire_rtt_wait(&r), 20 * SIM_MS);
	ck_assert_uint_le(wire_rtt_wait(&r), 60 * SIM_MS);
}
END_TEST

/* Its first packets are probed for before any answer could be there; that must not end slow start. 0.60, else 0.40. */
START_TEST(long_way_is_no_loss)
{
	struct sim_config c = sim_defaults(1, SIM_S);
	struct sim_summary sum;

	c.delay_ns = 10 * SIM_MS;
	sum = sim_one(&c, IBV_WR_RDMA_WRITE, 64 * KIB);
	expect_no_fault(&sum, c.seed);
	expect_at_least("goodput of the ideal", sum.goodput / sum.ideal, 0.5);
}
END_TEST

/* Tail drop is not fair within 20 ms: 0.79 to 0.83, and 0.83 to 0.87. docs/performance-wire.md has 1,000 engines. */
START_TEST(thousand_qps_share_a_hundred_engines)
{
	struct sim_config c = sim_defaults(1, 20 * SIM_MS);
	struct sim_summary sum;

	c.num_engines = 100;
	sum = sim_pairs(&c, 500, IBV_WR_RDMA_WRITE, 64 * KIB);
	expect_no_fault(&sum, c.seed);
	expect_at_least("goodput of the ideal", sum.goodput / sum.ideal, 0.7);
	expect_at_least("Jain's index of shares", sum.fair, 0.65);
	ck_assert_uint_lt(sum.r.most_inbox, WIRE_WINDOW_MOST);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("sim");

	tcase_set_timeout(t, 300);
	tcase_add_test(t, messages_arrive_once_and_in_order_with_all_faults_of_a_network);
	tcase_add_test(t, same_seed_gives_the_same_result);
	tcase_add_test(t, one_flow_without_losses_fills_the_link_or_its_window);
	tcase_add_test(t, hundred_senders_share_a_port);
	tcase_add_test(t, answers_to_a_hundred_reads_share_a_port);
	tcase_add_test(t, loss_costs_no_timeout);
	tcase_add_test(t, wait_before_a_probe_follows_round_trips_and_doubles);
	tcase_add_test(t, long_way_is_no_loss);
	tcase_add_test(t, thousand_qps_share_a_hundred_engines);
	return run_suite("wire sim", t);
}
