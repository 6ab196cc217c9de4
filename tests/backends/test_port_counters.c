/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The soft backend counts each transfer at both of its ports. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "backends/soft/endpoint/endpoint.h"
#include "tests/backends/bed.h"

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];
static const struct uvd_backend *const ops = &uvd_backend_soft;
static const union ibv_gid group = { .raw = { 0xff, 0x12, 0xa0, 0x1c, [15] = 9 } };

enum { GROUP_LID = 0xc001, MTU = 1024 };

static void setup(void)
{
	bed_open(&bed, ops, IBV_LINK_LAYER_INFINIBAND);
	memset(a->buf, 0x11, BUF_SIZE);
}

static void teardown(void)
{
	bed_close(&bed);
}

static uint64_t count_of(struct end *end, enum uvd_port_counter which)
{
	uint64_t values[UVD_PORT_COUNTERS];

	ck_assert_int_eq(ops->query_port_counters(&end->side->dev, 1, values), 0);
	return values[which];
}

struct counts {
	uint64_t of[UVD_PORT_COUNTERS];
};

/* All counters of the end's port, also those that `expected` leaves 0. */
static void expect_port(struct end *end, struct counts expected)
{
	for (int i = 0; i < UVD_PORT_COUNTERS; i++)
		ck_assert_msg(count_of(end, i) == expected.of[i], "port of %c, counter %d: %lu", end == a ? 'a' : 'b',
			      i, (unsigned long)count_of(end, i));
}
#define expect_counts(end, ...) expect_port(end, (struct counts){ { __VA_ARGS__ } })

static void request(enum ibv_wr_opcode opcode, uint32_t length, bool receives)
{
	if (receives)
		ck_assert_int_eq(post_recv_at(b, 1, 0, BUF_SIZE), 0);
	send_small(a, b, opcode, length);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	if (receives)
		expect(b->rcq, 1, IBV_WC_SUCCESS);
}

START_TEST(test_messages_count_their_words_and_packets_at_both_ports)
{
	bed_connect(&bed, _i ? IBV_QPT_UC : IBV_QPT_RC);
	request(IBV_WR_SEND, 1, true);
	request(IBV_WR_SEND, 0, true); /* one packet without data */
	request(IBV_WR_SEND_WITH_IMM, 4 * MTU, true);
	request(IBV_WR_RDMA_WRITE, 4 * MTU + 1, false);
	request(IBV_WR_RDMA_WRITE_WITH_IMM, 600 * MTU, true); /* three chunks */
	const uint64_t words = 1 + MTU + MTU + 1 + 150 * MTU, packets = 1 + 1 + 4 + 5 + 600;
	expect_counts(a, [UVD_PORT_XMIT_WORDS] = words, [UVD_PORT_UNICAST_XMIT] = packets, [UVD_PORT_SENDS] = 3);
	expect_counts(b, [UVD_PORT_RCV_WORDS] = words, [UVD_PORT_UNICAST_RCV] = packets, [UVD_PORT_RECEIVES] = 4);
}
END_TEST

static const uint32_t read_lengths[] = { 1, 3 * MTU, 600 * MTU };

START_TEST(test_data_of_reads_leaves_the_port_of_the_responder)
{
	const uint64_t words = 1 + 3 * MTU / 4 + 150 * MTU, packets = 1 + 3 + 600;

	bed_connect(&bed, IBV_QPT_RC);
	for (int i = 0; i < 3; i++)
		request(IBV_WR_RDMA_READ, read_lengths[i], false);
	expect_counts(a, [UVD_PORT_UNICAST_XMIT] = 3, [UVD_PORT_RCV_WORDS] = words, [UVD_PORT_UNICAST_RCV] = packets);
	expect_counts(b, [UVD_PORT_UNICAST_RCV] = 3, [UVD_PORT_XMIT_WORDS] = words, [UVD_PORT_UNICAST_XMIT] = packets);
}
END_TEST

START_TEST(test_value_of_an_atomic_leaves_the_port_of_the_responder)
{
	bed_connect(&bed, IBV_QPT_RC);
	request(IBV_WR_ATOMIC_FETCH_AND_ADD, 8, false);
	expect_counts(a, [UVD_PORT_UNICAST_XMIT] = 1, [UVD_PORT_RCV_WORDS] = 2, [UVD_PORT_UNICAST_RCV] = 1);
	expect_counts(b, [UVD_PORT_UNICAST_RCV] = 1, [UVD_PORT_XMIT_WORDS] = 2, [UVD_PORT_UNICAST_XMIT] = 1);
}
END_TEST

static const struct {
	enum ibv_wr_opcode opcode;
	uint32_t length;
} bursts[] = { { IBV_WR_SEND, MTU + 1 },
	       { IBV_WR_RDMA_WRITE, MTU + 1 },
	       { IBV_WR_SEND, 5 * MTU + 1 },
	       { IBV_WR_RDMA_READ, MTU + 1 } };

/* Four requests of a list are one burst. */
START_TEST(test_requests_of_a_burst_count_each)
{
	const bool sends = bursts[_i].opcode == IBV_WR_SEND, reads = bursts[_i].opcode == IBV_WR_RDMA_READ;
	const uint64_t words = 4 * ((bursts[_i].length + 3) / 4), packets = 4 * (bursts[_i].length / MTU + 1);
	struct ibv_sge sge = sge_at(a, 0, bursts[_i].length);
	struct uvd_send_wr wrs[4];

	bed_connect(&bed, IBV_QPT_RC);
	for (int i = 0; i < 4; i++) {
		wrs[i] = wr_to(b, bursts[_i].opcode, &sge, 1);
		wrs[i].next = i < 3 ? &wrs[i + 1] : NULL;
		if (sends)
			ck_assert_int_eq(post_recv_at(b, i, 0, bursts[_i].length), 0);
	}
	ck_assert_int_eq(post_send_wr(a, wrs), 0);
	for (int i = 0; i < 4; i++)
		expect(a->scq, 0xa, IBV_WC_SUCCESS);
	if (reads) {
		expect_counts(
			a, [UVD_PORT_UNICAST_XMIT] = 4, [UVD_PORT_RCV_WORDS] = words, [UVD_PORT_UNICAST_RCV] = packets);
		return;
	}
	expect_counts(
		a, [UVD_PORT_XMIT_WORDS] = words, [UVD_PORT_UNICAST_XMIT] = packets, [UVD_PORT_SENDS] = sends ? 4 : 0);
	expect_counts(
		b, [UVD_PORT_RCV_WORDS] = words, [UVD_PORT_UNICAST_RCV] = packets, [UVD_PORT_RECEIVES] = sends ? 4 : 0);
}
END_TEST

START_TEST(test_lost_uc_message_counts_only_where_it_leaves)
{
	bed_connect(&bed, IBV_QPT_UC);
	request(IBV_WR_SEND, 600 * MTU, false); /* no receive */
	expect_counts(a, [UVD_PORT_XMIT_WORDS] = 150 * MTU, [UVD_PORT_UNICAST_XMIT] = 600, [UVD_PORT_SENDS] = 1);
	expect_counts(b, 0);
}
END_TEST

static void send_datagram(struct uvd_ah *ah, uint32_t qpn)
{
	struct ibv_sge sge = sge_at(a, 0, 101);

	ck_assert_int_eq(send_wr(a, .wr_id = 0xa, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1, .ah = ah,
				 .send_flags = IBV_SEND_SIGNALED, .remote_qpn = qpn, .remote_qkey = 0x1234),
			 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
}

START_TEST(test_multicast_counts_apart_from_unicast)
{
	struct uvd_ah *one = calloc(1, ops->size_ah), *many = calloc(1, ops->size_ah);

	one->pd = many->pd = a->side->pd;
	one->attr = (struct ibv_ah_attr){ .port_num = 1, .dlid = b->side->dev.config.ports[0].lid };
	many->attr = (struct ibv_ah_attr){ .port_num = 1, .dlid = GROUP_LID, .is_global = 1, .grh.dgid = group };
	ck_assert_int_eq(ops->create_ah(one, NULL) | ops->create_ah(many, NULL), 0);
	bed_connect(&bed, IBV_QPT_UD);
	ck_assert_int_eq(ops->attach_mcast(b->qp, &group, GROUP_LID), 0);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(post_recv_at(b, 1, 0, 200), 0);
		send_datagram(i ? many : one, i ? 0xffffff : b->qp->qp_num);
		expect(b->rcq, 1, IBV_WC_SUCCESS);
	}
	send_datagram(one, b->qp->qp_num); /* no receive: it is dropped */
	expect_counts(a, [UVD_PORT_XMIT_WORDS] = 4 * 26, [UVD_PORT_UNICAST_XMIT] = 2, [UVD_PORT_MULTICAST_XMIT] = 2,
		      [UVD_PORT_SENDS] = 4);
	expect_counts(b, [UVD_PORT_RCV_WORDS] = 3 * 26, [UVD_PORT_UNICAST_RCV] = 1, [UVD_PORT_MULTICAST_RCV] = 2,
		      [UVD_PORT_RECEIVES] = 3);
	ck_assert_int_eq(ops->detach_mcast(b->qp, &group, GROUP_LID), 0);
	ck_assert_int_eq(ops->destroy_ah(one) | ops->destroy_ah(many), 0);
	free(one);
	free(many);
}
END_TEST

/* The first bit on the wire of an Ethernet address says that it is a group's. */
START_TEST(test_frames_count_by_their_ethernet_address)
{
	struct end more = *a;
	struct uvd_qp_init_attr init = { .cap = bed.cap };
	struct ibv_sge sge = sge_at(a, 0, 64);
	int err;

	bed_connect(&bed, IBV_QPT_RAW_PACKET);
	more = *a;
	more.qp = make_qp(&more, IBV_QPT_RAW_PACKET, &init, &err);
	ck_assert_int_eq(to_init(&more) | to_rtr(&more, &more) | to_rts(&more), 0);
	for (int i = 0; i < 3; i++) {
		a->buf[0] = i ? 0x01 : 0x02;
		ck_assert_int_eq(post_recv_at(&more, 1, 4096, 200), 0);
		ck_assert_int_eq(send_wr(a, .wr_id = 0xa, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
					 .send_flags = IBV_SEND_SIGNALED),
				 0);
		expect(a->scq, 0xa, IBV_WC_SUCCESS);
		expect(a->rcq, 1, IBV_WC_SUCCESS);
	}
	expect_counts(a, [UVD_PORT_XMIT_WORDS] = 48, [UVD_PORT_UNICAST_XMIT] = 1, [UVD_PORT_MULTICAST_XMIT] = 2,
		      [UVD_PORT_RCV_WORDS] = 48, [UVD_PORT_UNICAST_RCV] = 1, [UVD_PORT_MULTICAST_RCV] = 2,
		      [UVD_PORT_SENDS] = 3, [UVD_PORT_RECEIVES] = 3);
	free_qp(&more);
}
END_TEST

/* A mapped receive queue whose client never adds a request. */
static uint32_t empty_count(const struct uvd_queue *q)
{
	return 0;
}

static bool empty_peek(struct uvd_queue *q, uint32_t n, struct uvd_recv_wr *wr)
{
	return false;
}

static const struct uvd_queue_ops empty_ops = { .count = empty_count, .peek_recv = empty_peek };
static struct uvd_queue empty = { .ops = &empty_ops, .kind = UVD_QUEUE_RECV, .shape = { 4, 64, 1 } };

/*
 * The first try and each retry get an RNR NAK, on the thread of the call or on the timer's. Between the retries the timer
 * looks into a mapped queue several times, which is no NAK.
 */
START_TEST(test_rnr_naks_count_at_both_ports)
{
	a->rnr_retry = 2;
	b->rq = _i ? &empty : NULL;
	bed_connect(&bed, IBV_QPT_RC);
	send_small(a, b, IBV_WR_SEND, 100);
	expect(a->scq, 0xa, IBV_WC_RNR_RETRY_EXC_ERR);
	expect_counts(a, [UVD_PORT_RNR_RCVD] = 3, [UVD_PORT_RNR_RETRY_EXCEEDED] = 1);
	expect_counts(b, [UVD_PORT_RNR_SENT] = 3);
}
END_TEST

START_TEST(test_retries_count_at_the_requester)
{
	a->retry_cnt = 2;
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(to_state(b, IBV_QPS_RESET), 0);
	send_small(a, b, IBV_WR_RDMA_WRITE, 100);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
	expect_counts(a, [UVD_PORT_RETRIES] = 2, [UVD_PORT_RETRY_EXCEEDED] = 1);
	expect_counts(b, 0);
}
END_TEST

START_TEST(test_port_that_is_down_discards)
{
	struct uvd_ibdev *dev = &a->side->dev;

	bed_connect(&bed, IBV_QPT_UC);
	ck_assert_int_eq(post_recv_at(b, 1, 0, 8 * MTU), 0);
	__atomic_store_n(&dev->config.ports[0].down, true, __ATOMIC_RELAXED);
	ops->port_changed(dev, 1, false);
	request(IBV_WR_SEND, 3 * MTU, false);
	expect_counts(a, [UVD_PORT_XMIT_DISCARDS] = 3, [UVD_PORT_LINK_DOWNED] = 1);
	__atomic_store_n(&dev->config.ports[0].down, false, __ATOMIC_RELAXED);
	ops->port_changed(dev, 1, true);
	ck_assert_uint_eq(count_of(a, UVD_PORT_LINK_DOWNED), 1);
	expect_counts(b, 0);
}
END_TEST

enum { THREADS = 4, ROUNDS = 1000000 }; /* long enough for the threads to run at once, also on two CPUs */

static pthread_barrier_t start;

/* The movers' indexes are so large that they share a shard. */
static void *counting_thread(void *arg)
{
	const struct soft_mover *m = arg;
	const struct soft_traffic t = { .words = 2, .packets = 1 };

	pthread_barrier_wait(&start);
	for (int i = 0; i < ROUNDS; i++) {
		soft_count_in(m, (struct soft_qp *)b->qp, &t);
		soft_count_at_port(soft_device(&b->side->dev), &b->side->dev.config.ports[0], UVD_PORT_RNR_SENT, 1);
	}
	return NULL;
}

START_TEST(test_no_thread_loses_what_another_counts)
{
	struct soft_mover *movers[THREADS];
	pthread_t threads[THREADS];

	bed_connect(&bed, IBV_QPT_RC);
	pthread_barrier_init(&start, NULL, THREADS);
	for (int i = 0; i < THREADS; i++) {
		movers[i] = calloc(1, sizeof(*movers[i]));
		movers[i]->index = (_i ? SOFT_COUNTER_SHARDS - 1u : 0u) + i;
		ck_assert_int_eq(pthread_create(&threads[i], NULL, counting_thread, movers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		free(movers[i]);
	}
	pthread_barrier_destroy(&start);
	expect_counts(b, [UVD_PORT_UNICAST_RCV] = THREADS * ROUNDS, [UVD_PORT_RCV_WORDS] = 2 * THREADS * ROUNDS,
		      [UVD_PORT_RNR_SENT] = THREADS * ROUNDS);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("port counters");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, test_messages_count_their_words_and_packets_at_both_ports, 0, 2);
	tcase_add_test(t, test_data_of_reads_leaves_the_port_of_the_responder);
	tcase_add_test(t, test_value_of_an_atomic_leaves_the_port_of_the_responder);
	tcase_add_loop_test(t, test_requests_of_a_burst_count_each, 0, 4);
	tcase_add_test(t, test_lost_uc_message_counts_only_where_it_leaves);
	tcase_add_test(t, test_multicast_counts_apart_from_unicast);
	tcase_add_test(t, test_frames_count_by_their_ethernet_address);
	tcase_add_loop_test(t, test_rnr_naks_count_at_both_ports, 0, 2);
	tcase_add_test(t, test_retries_count_at_the_requester);
	tcase_add_test(t, test_port_that_is_down_discards);
	tcase_add_loop_test(t, test_no_thread_loses_what_another_counts, 0, 2);
	return run_suite("port counters", t);
}
