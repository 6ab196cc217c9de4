/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* RC of the soft backend: data, completions at both ends, errors. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backends/soft/soft.h"
#include "tests/backends/bed.h"

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];

enum { DATA = 600 * 1000 }; /* three chunks, the last one incomplete */

static void setup(void)
{
	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_INFINIBAND);
	for (int i = 0; i < BUF_SIZE; i++)
		a->buf[i] = i * 7 + i / 251;
}

static void teardown(void)
{
	mm_bad_len = 0;
	mm_written = NULL;
	bed_close(&bed);
}

/* ---- data -------------------------------------------------------------------------------------------------------- */

/* Several ways to cut DATA bytes. A length of 0 is an empty piece. */
static const uint32_t splits[][4] = {
	{ DATA, 0, 0, 0 },
	{ 1, DATA - 1, 0, 0 },
	{ 65536, 65536, DATA - 131072, 0 },
	{ 3, 70000, 0, DATA - 70003 },
};

static int cut(struct end *end, const uint32_t *split, struct ibv_sge *sge)
{
	size_t offset = 0;

	/* Leave gaps, so that a piece in the wrong place is found. */
	for (int i = 0; i < 4; i++) {
		sge[i] = sge_at(end, offset, split[i]);
		offset += split[i] + 5;
	}
	return 4;
}

static bool same_data(const struct ibv_sge *x, const struct ibv_sge *y)
{
	uint32_t i = 0, j = 0, at = 0, bt = 0;

	for (uint32_t n = 0; n < DATA; n++, at++, bt++) {
		for (; at == x[i].length; at = 0)
			i++;
		for (; bt == y[j].length; bt = 0)
			j++;
		if (((char *)(uintptr_t)x[i].addr)[at] != ((char *)(uintptr_t)y[j].addr)[bt])
			return false;
	}
	return true;
}

START_TEST(test_send_carries_data_across_any_split)
{
	struct ibv_sge src[4], dst[4];
	struct uvd_send_wr wr = wr_to(b, IBV_WR_SEND, src, cut(a, splits[_i / 4], src));
	struct ibv_wc wc;

	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_recv_list(b, 0xb, dst, cut(b, splits[_i % 4], dst)), 0);
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	wc = expect(a->scq, 0xa, IBV_WC_SUCCESS);
	ck_assert_int_eq(wc.opcode, IBV_WC_SEND);
	ck_assert_uint_eq(wc.qp_num, a->qp->qp_num);
	wc = expect(b->rcq, 0xb, IBV_WC_SUCCESS);
	ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
	ck_assert_uint_eq(wc.byte_len, DATA);
	ck_assert_uint_eq(wc.qp_num, b->qp->qp_num);
	ck_assert_uint_eq(wc.src_qp, a->qp->qp_num);
	ck_assert_uint_eq(wc.slid, 1);
	ck_assert_uint_eq(wc.wc_flags, 0);
	ck_assert(same_data(src, dst));
	ck_assert_int_eq(b->buf[BUF_SIZE - 1], 0);
}
END_TEST

START_TEST(test_write_carries_data_and_needs_no_receive)
{
	struct ibv_sge src[4], dst[4] = { { (uintptr_t)b->buf + 11, DATA, 0 } };
	struct uvd_send_wr wr = wr_to(b, IBV_WR_RDMA_WRITE, src, cut(a, splits[_i], src));

	bed_connect(&bed, IBV_QPT_RC);
	wr.remote_addr += 11;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	ck_assert_int_eq(expect(a->scq, 0xa, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_WRITE);
	expect_nothing(b->rcq);
	ck_assert(same_data(src, dst));
	ck_assert_int_eq(b->buf[10], 0);
	ck_assert_int_eq(b->buf[11 + DATA], 0);
}
END_TEST

START_TEST(test_read_brings_data_back)
{
	struct ibv_sge dst[4], src[4] = { { (uintptr_t)b->buf, DATA, 0 } };
	struct uvd_send_wr wr = wr_to(b, IBV_WR_RDMA_READ, dst, cut(a, splits[_i], dst));

	for (int i = 0; i < DATA; i++)
		b->buf[i] = i * 3 + i / 100;
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	ck_assert_int_eq(expect(a->scq, 0xa, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_READ);
	ck_assert(same_data(dst, src));
}
END_TEST

START_TEST(test_immediate_data_arrives_with_send_and_write)
{
	bool write = _i;
	struct ibv_sge sge = sge_at(a, 0, 100);
	struct uvd_send_wr wr = wr_to(b, write ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND_WITH_IMM, &sge, 1);
	struct ibv_wc wc;

	wr.imm_data = 0x01020304;
	bed_connect(&bed, IBV_QPT_RC);
	/* A write with immediate data consumes a receive, but does not use its memory. */
	ck_assert_int_eq(post_recv_at(b, 0xb, 4096, write ? 0 : 200), 0);
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	wc = expect(b->rcq, 0xb, IBV_WC_SUCCESS);
	ck_assert_int_eq(wc.opcode, write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
	ck_assert_uint_eq(wc.imm_data, 0x01020304);
	ck_assert_uint_eq(wc.wc_flags, IBV_WC_WITH_IMM);
	ck_assert_uint_eq(wc.byte_len, 100);
	ck_assert_int_eq(memcmp(a->buf, b->buf + (write ? 0 : 4096), 100), 0);
}
END_TEST

START_TEST(test_inline_data_is_taken_at_the_post)
{
	char data[64] = "inline", over[65] = "";
	struct uvd_send_wr wr = wr_to(b, IBV_WR_SEND, NULL, 0);

	bed_connect(&bed, IBV_QPT_RC);
	wr.inline_data = data;
	wr.inline_len = sizeof(data);
	ck_assert_int_eq(post_send_wr(a, &wr), 0); /* waits for a receive */
	memset(data, 'x', sizeof(data));
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 64), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	ck_assert_str_eq(b->buf, "inline");
	wr.inline_data = over;
	wr.inline_len = sizeof(over);
	ck_assert_int_eq(post_send_wr(a, &wr), -EINVAL);
}
END_TEST

START_TEST(test_zero_length_needs_no_key)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };
	struct uvd_send_wr wr = wr_to(b, opcodes[_i], NULL, 0);

	wr.rkey = 0;
	wr.remote_addr = 1;
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_recv_list(b, 0xb, NULL, 0), 0);
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
}
END_TEST

START_TEST(test_atomics_return_what_was_there)
{
	struct ibv_sge sge = sge_at(a, 64, 8);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 1);
	uint64_t *word = (uint64_t *)b->buf, *got = (uint64_t *)(a->buf + 64);

	bed_connect(&bed, IBV_QPT_RC);
	*word = 40;
	wr.compare_add = 2;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	ck_assert_int_eq(expect(a->scq, 0xa, IBV_WC_SUCCESS).opcode, IBV_WC_FETCH_ADD);
	ck_assert_uint_eq(*got, 40);
	ck_assert_uint_eq(*word, 42);

	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.compare_add = 41;
	wr.swap = 7;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	ck_assert_int_eq(expect(a->scq, 0xa, IBV_WC_SUCCESS).opcode, IBV_WC_COMP_SWAP);
	ck_assert_uint_eq(*got, 42);
	ck_assert_uint_eq(*word, 42);
	wr.compare_add = 42;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	ck_assert_uint_eq(*word, 7);
}
END_TEST

START_TEST(test_qp_connected_to_itself)
{
	struct end *self = &bed.end[0];

	bed.one_cq = true;
	bed_make_qps(&bed, IBV_QPT_RC);
	ck_assert_int_eq(to_init(self), 0);
	ck_assert_int_eq(to_rtr(self, self), 0);
	ck_assert_int_eq(to_rts(self), 0);
	ck_assert_int_eq(post_recv_at(self, 0xb, 5000, 100), 0);
	send_small(a, b, IBV_WR_SEND, 100);
	expect(self->scq, 0xb, IBV_WC_SUCCESS);
	expect(self->scq, 0xa, IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(self->buf, self->buf + 5000, 100), 0);
}
END_TEST

static void a_fails(void)
{
	ck_assert_int_eq(to_state(a, IBV_QPS_ERR), 0);
}

static void b_fails(void)
{
	ck_assert_int_eq(to_state(b, IBV_QPS_ERR), 0);
}

/* The QP fails after the first chunk. */
START_TEST(test_transfer_is_cut_when_either_qp_goes_into_error)
{
	bed_connect(&bed, IBV_QPT_RC);
	mm_written = _i ? a_fails : b_fails;
	send_small(a, b, IBV_WR_RDMA_WRITE, DATA);
	expect(a->scq, 0xa, _i ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR);
	ck_assert_int_eq(b->buf[SOFT_CHUNK - 1], a->buf[SOFT_CHUNK - 1]);
	for (int i = SOFT_CHUNK; i < DATA; i++)
		ck_assert_int_eq(b->buf[i], 0);
}
END_TEST

/* The peer fails after the only chunk has been written: the data is there, but is not acknowledged. */
START_TEST(test_qp_that_fails_in_the_last_step_of_a_transfer_does_not_answer)
{
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 100), 0);
	mm_written = b_fails;
	send_small(a, b, IBV_WR_SEND, 100);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
	expect(b->rcq, 0xb, IBV_WC_WR_FLUSH_ERR);
	expect_nothing(b->rcq);
}
END_TEST

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

START_TEST(test_receive_that_comes_late_is_used_soon)
{
	uint64_t begin;

	b->min_rnr_timer = 0; /* 655 ms: the post of the receive, not the timer, must cause the retry */
	bed_connect(&bed, IBV_QPT_RC);
	send_small(a, b, IBV_WR_SEND, 100);
	expect_nothing(a->scq);
	begin = now_us();
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 100), 0);
	expect(b->rcq, 0xb, IBV_WC_SUCCESS);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	ck_assert_uint_lt(now_us() - begin, 600000);
}
END_TEST

START_TEST(test_rnr_retries_run_out)
{
	uint64_t start = now_us();

	a->rnr_retry = 2;
	b->min_rnr_timer = 14; /* 1.28 ms */
	bed_connect(&bed, IBV_QPT_RC);
	send_small(a, b, IBV_WR_SEND, 100);
	send_small(a, b, IBV_WR_SEND, 100);
	expect(a->scq, 0xa, IBV_WC_RNR_RETRY_EXC_ERR);
	ck_assert_uint_ge(now_us() - start, 2 * 1280);
	expect(a->scq, 0xa, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(state_of(a), IBV_QPS_ERR);
	ck_assert_int_eq(state_of(b), IBV_QPS_RTS);
}
END_TEST

START_TEST(test_rnr_retries_are_counted_anew_for_each_message)
{
	a->rnr_retry = 6;
	b->min_rnr_timer = 0; /* 655 ms: each message uses one retry, or a few on a slow machine */
	bed_connect(&bed, IBV_QPT_RC);
	for (int i = 0; i < 8; i++) {
		send_small(a, b, IBV_WR_SEND, 100);
		expect_nothing(a->scq);
		ck_assert_int_eq(post_recv_at(b, 0xb, 0, 100), 0);
		expect(a->scq, 0xa, IBV_WC_SUCCESS);
	}
}
END_TEST

START_TEST(test_rnr_retry_7_is_for_ever)
{
	bed_connect(&bed, IBV_QPT_RC);
	send_small(a, b, IBV_WR_SEND, 100);
	usleep(20000);
	expect_nothing(a->scq);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 100), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
}
END_TEST

/* The receiver asks for 10 us. With that, QPs of sleeping clients would keep the timer thread busy. */
START_TEST(test_rnr_waits_a_millisecond_at_least)
{
	uint64_t start = now_us();

	a->rnr_retry = 6;
	b->min_rnr_timer = 1;
	bed_connect(&bed, IBV_QPT_RC);
	send_small(a, b, IBV_WR_SEND, 100);
	expect(a->scq, 0xa, IBV_WC_RNR_RETRY_EXC_ERR);
	ck_assert_uint_ge(now_us() - start, 6 * 1000);
}
END_TEST

/* The waits are 1, 2, 4 ms and so on, up to 128 ms: a receive that comes would end one at once. */
START_TEST(test_rnr_waits_of_a_sender_that_retries_forever_grow)
{
	enum { GROWN = 8, MOST_MS = 128 };
	const struct uvd_backend *ops = a->side->dev.ops;
	const uint64_t start = now_us();
	uint64_t values[UVD_PORT_COUNTERS], ms;

	b->min_rnr_timer = 1;
	bed_connect(&bed, IBV_QPT_RC);
	send_small(a, b, IBV_WR_SEND, 100);
	usleep(400000);
	ck_assert_int_eq(ops->query_port_counters(&a->side->dev, 1, values), 0);
	ms = (now_us() - start) / 1000;
	ck_assert_uint_le(values[UVD_PORT_RNR_RCVD], GROWN + ms / MOST_MS);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 100), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
}
END_TEST

START_TEST(test_gone_peer_is_retry_exceeded_in_time)
{
	uint64_t start;

	bed_connect(&bed, IBV_QPT_RC);
	free_qp(b);
	start = now_us();
	send_small(a, b, IBV_WR_RDMA_WRITE, 100);
	send_small(a, b, IBV_WR_RDMA_WRITE, 100);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
	ck_assert_uint_ge(now_us() - start, 4 * 1048); /* the first try and three more, 4.096 us * 2^8 each */
	expect(a->scq, 0xa, IBV_WC_WR_FLUSH_ERR);
}
END_TEST

START_TEST(test_peer_that_dies_while_waited_for_is_retry_exceeded)
{
	bed_connect(&bed, IBV_QPT_RC);
	send_small(a, b, IBV_WR_SEND, 100); /* RNR NAK: it retries forever */
	free_qp(b);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
}
END_TEST

START_TEST(test_peer_that_becomes_ready_in_time_is_reached)
{
	uint64_t begin;

	a->timeout = 20; /* 4 s: the peer's transition to RTR, not the timer, must cause the retry */
	bed_make_qps(&bed, IBV_QPT_RC);
	ck_assert_int_eq(to_init(a) | to_rtr(a, b) | to_rts(a) | to_init(b), 0);
	send_small(a, b, IBV_WR_RDMA_WRITE, 100);
	expect_nothing(a->scq);
	begin = now_us();
	ck_assert_int_eq(to_rtr(b, a), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	ck_assert_uint_lt(now_us() - begin, 3000000);
}
END_TEST

/* _i: the end whose port is down. */
START_TEST(test_request_goes_on_when_the_port_comes_up)
{
	struct uvd_ibdev *dev = &bed.end[_i].side->dev;

	a->timeout = 26; /* 275 s: no timer of the request causes the retry */
	bed_connect(&bed, IBV_QPT_RC);
	__atomic_store_n(&dev->config.ports[0].down, true, __ATOMIC_RELAXED);
	uvd_backend_soft.port_changed(dev, 1, false);
	send_small(a, b, IBV_WR_RDMA_WRITE, 100);
	expect_nothing(a->scq);
	__atomic_store_n(&dev->config.ports[0].down, false, __ATOMIC_RELAXED);
	uvd_backend_soft.port_changed(dev, 1, true);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
}
END_TEST

START_TEST(test_atomic_write_replaces_eight_bytes)
{
	struct uvd_send_wr wr = wr_to(b, IBV_WR_ATOMIC_WRITE, NULL, 0);
	const uint64_t value = 0x1122334455667788;
	uint64_t *there = (uint64_t *)b->buf;

	wr.inline_data = &value;
	wr.inline_len = sizeof(value);
	bed_connect(&bed, IBV_QPT_RC);
	wr.remote_addr += 8;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	ck_assert_int_eq(expect(a->scq, 0xa, IBV_WC_SUCCESS).opcode, IBV_WC_ATOMIC_WRITE);
	ck_assert(!there[0] && there[1] == value && !there[2]);
	wr.remote_addr += 4;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_REM_INV_REQ_ERR);
	ck_assert(there[1] == value && !there[2]);
}
END_TEST

/* As with rdmavt: 2.4 hours. 32 does not mean for ever, nor 33 eight microseconds. */
START_TEST(test_timeout_above_31_counts_as_31)
{
	struct ibv_qp_attr attr = { 0 };
	struct uvd_qp_init_attr init;

	a->timeout = _i ? 33 : 32;
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(uvd_backend_soft.query_qp(a->qp, &attr, IBV_QP_TIMEOUT, &init), 0);
	ck_assert_uint_eq(attr.timeout, 31);
}
END_TEST

START_TEST(test_last_try_gets_its_time_too)
{
	uint64_t start;

	a->retry_cnt = 0;
	a->timeout = 13; /* 33.5 ms */
	bed_connect(&bed, IBV_QPT_RC);
	free_qp(b);
	start = now_us();
	send_small(a, b, IBV_WR_RDMA_WRITE, 100);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
	ck_assert_uint_ge(now_us() - start, 33554);
}
END_TEST

START_TEST(test_peer_connected_to_another_is_not_reached)
{
	struct uvd_qp_init_attr init = { .cap = bed.cap };
	struct end other;
	int err;

	/* `other` differs from a only in its QP number: it has the same port and PSNs. */
	bed_make_qps(&bed, IBV_QPT_RC);
	memcpy(&other, a, sizeof(other));
	other.qp = make_qp(&other, IBV_QPT_RC, &init, &err);
	ck_assert_int_eq(err, 0);
	ck_assert_int_eq(to_init(a) | to_rtr(a, b) | to_rts(a), 0);
	ck_assert_int_eq(to_init(b) | to_rtr(b, &other) | to_rts(b), 0);
	send_small(a, b, IBV_WR_RDMA_WRITE, 100);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
	ck_assert_int_eq(b->buf[1], 0);
	free_qp(&other);
}
END_TEST

START_TEST(test_wrong_psn_is_not_answered)
{
	bed_make_qps(&bed, IBV_QPT_RC);
	ck_assert_int_eq(to_init(a) | to_rtr(a, b) | to_rts(a) | to_init(b), 0);
	a->psn++;
	ck_assert_int_eq(to_rtr(b, a), 0);
	send_small(a, b, IBV_WR_RDMA_WRITE, 100);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
}
END_TEST

START_TEST(test_link_layers_do_not_share_a_network)
{
	b->side->dev.config.ports[0].link_layer = IBV_LINK_LAYER_ETHERNET;
	bed_connect(&bed, IBV_QPT_RC);
	send_small(a, b, IBV_WR_RDMA_WRITE, 100);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
}
END_TEST

START_TEST(test_gid_whose_address_the_machine_has_lost_is_not_reached)
{
	struct uvd_port_config *port = &b->side->dev.config.ports[0];

	a->side->dev.config.ports[0].link_layer = port->link_layer = IBV_LINK_LAYER_ETHERNET;
	bed_connect(&bed, IBV_QPT_RC);
	send_small(a, b, IBV_WR_RDMA_WRITE, 100);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	port->lost_gids = 1;
	send_small(a, b, IBV_WR_RDMA_WRITE, 100);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
}
END_TEST

static void *write_in_slow_memory(void *unused)
{
	send_small(a, b, IBV_WR_RDMA_WRITE, DATA);
	return unused;
}

/*
 * The sender stops at the last byte of its own memory, when the chunks before it have arrived. The receiver may have used its memory
 * for something else since then, so the rest is not enough.
 */
START_TEST(test_write_begins_again_at_a_receiver_that_is_connected_anew)
{
	pthread_t sender;

	bed_connect(&bed, IBV_QPT_RC);
	memset(a->buf, 0x11, DATA);
	mm_slow = (uintptr_t)a->buf + DATA - 1;
	mm_slow_len = 1;
	ck_assert_int_eq(pthread_create(&sender, NULL, write_in_slow_memory, NULL), 0);
	while (!mm_slowed)
		usleep(100);
	ck_assert_int_eq(b->buf[0], 0x11);
	ck_assert_int_eq(to_state(b, IBV_QPS_RESET), 0);
	memset(b->buf, 0, DATA);
	ck_assert_int_eq(to_init(b) | to_rtr(b, a) | to_rts(b), 0);
	mm_slow_len = 0;
	pthread_join(sender, NULL);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	ck_assert(!memcmp(a->buf, b->buf, DATA));
}
END_TEST

static void add_data_tests(TCase *t)
{
	tcase_add_loop_test(t, test_send_carries_data_across_any_split, 0, 16);
	tcase_add_loop_test(t, test_write_carries_data_and_needs_no_receive, 0, 4);
	tcase_add_loop_test(t, test_read_brings_data_back, 0, 4);
	tcase_add_loop_test(t, test_immediate_data_arrives_with_send_and_write, 0, 2);
	tcase_add_test(t, test_inline_data_is_taken_at_the_post);
	tcase_add_loop_test(t, test_zero_length_needs_no_key, 0, 3);
	tcase_add_test(t, test_atomics_return_what_was_there);
	tcase_add_test(t, test_qp_connected_to_itself);
	add_local_loop_test(t, test_transfer_is_cut_when_either_qp_goes_into_error, 0, 2,
			    "the chunks are those of the local network");
	tcase_add_test(t, test_qp_that_fails_in_the_last_step_of_a_transfer_does_not_answer);
	add_local_test(t, test_write_begins_again_at_a_receiver_that_is_connected_anew,
		       "packets that were acknowledged are not sent again");
}

static void add_waiting_tests(TCase *t)
{
	add_local_test(t, test_receive_that_comes_late_is_used_soon, "the post of a receive makes no packet");
	tcase_add_test(t, test_rnr_retries_run_out);
	tcase_add_test(t, test_rnr_retries_are_counted_anew_for_each_message);
	tcase_add_test(t, test_rnr_retry_7_is_for_ever);
	add_local_test(t, test_rnr_waits_a_millisecond_at_least, "tests/wire_qp has the waits of the wire");
	if (!bed_is_on_wire()) /* tests/wire_qp has the waits of the wire */
		add_own_queue_test(t, test_rnr_waits_of_a_sender_that_retries_forever_grow,
				   "the waits for a mapped queue do not grow");
	tcase_add_test(t, test_gone_peer_is_retry_exceeded_in_time);
	tcase_add_test(t, test_atomic_write_replaces_eight_bytes);
	tcase_add_loop_test(t, test_timeout_above_31_counts_as_31, 0, 2);
	tcase_add_test(t, test_last_try_gets_its_time_too);
	add_local_test(t, test_wrong_psn_is_not_answered, "an older PSN is that of a copy, which is acknowledged");
	tcase_add_test(t, test_peer_that_dies_while_waited_for_is_retry_exceeded);
	add_local_test(t, test_peer_that_becomes_ready_in_time_is_reached, "the transition to RTR makes no packet");
	/* On the wire a port that comes up makes no packet: the requester at its other end learns nothing. */
	tcase_add_loop_test(t, test_request_goes_on_when_the_port_comes_up, 0, bed_is_on_wire() ? 1 : 2);
	add_local_test(t, test_peer_connected_to_another_is_not_reached,
		       "an RC packet does not name the QP that sent it");
	/* On the wire the receiver's thread looks at the table that this changes. */
	if (!bed_is_on_wire())
		tcase_add_test(t, test_gid_whose_address_the_machine_has_lost_is_not_reached);
	if (!bed_is_on_wire()) /* all its ports are Ethernet */
		add_own_queue_test(t, test_link_layers_do_not_share_a_network,
				   "all ports of mapped queues are Ethernet");
}

int main(void)
{
	TCase *t = tcase_create("rc");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 30);
	add_data_tests(t);
	add_waiting_tests(t);
	return run_suite("backends: soft RC", t);
}
