/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A network that loses messages and holds them back, as filters ask for. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backends/soft/schedule/schedule.h"
#include "tests/backends/bed.h"

enum { SECOND = 1000000000 };

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];
static struct uvd_backend filtered;
/* The network treats the messages of a so, in turn; later ones it delivers. */
static enum uvd_fate fates[8];
static uint64_t hold_ns;
static atomic_uint asked;
static atomic_bool could_hold; /* the last one */

static void decide(struct uvd_message *message)
{
	const unsigned int n = atomic_fetch_add(&asked, 1);

	ck_assert_ptr_eq(message->qp, a->qp);
	atomic_store(&could_hold, message->may_hold);
	if (n >= sizeof(fates) / sizeof(fates[0]))
		return;
	message->fate = fates[n];
	message->hold_ns = hold_ns;
}

static void setup(void)
{
	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_INFINIBAND);
	filtered = uvd_backend_soft;
	filtered.carry_message = decide;
	a->side->dev.ops = &filtered;
	memset(fates, 0, sizeof(fates));
	atomic_store(&asked, 0);
	hold_ns = UINT64_C(60) * SECOND;
	for (int i = 0; i < BUF_SIZE; i++)
		a->buf[i] = i / 1000;
}

static void teardown(void)
{
	bed_close(&bed);
}

/* Sends `length` bytes of number nr. */
static void send_nr(int nr, uint32_t length)
{
	struct ibv_sge sge = sge_at(a, nr * 1000, length);

	ck_assert_int_eq(send_wr(a, .wr_id = nr, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED),
			 0);
}

static void send_ok(int nr)
{
	send_nr(nr, 1000);
	expect(a->scq, nr, IBV_WC_SUCCESS);
}

/* The next receive of b, which is number nr, has the message `sent`. */
static void expect_message(int nr, int sent)
{
	expect(b->rcq, nr, IBV_WC_SUCCESS);
	ck_assert_int_eq(b->buf[nr * 1000], sent);
	ck_assert_int_eq(b->buf[nr * 1000 + 999], sent);
}

static void connect_with_receives(enum ibv_qp_type type, int num)
{
	bed_connect(&bed, type);
	for (int i = 0; i < num; i++)
		ck_assert_int_eq(post_recv_at(b, i, i * 1000, 1000), 0);
}

/* ---- loss -------------------------------------------------------------------------------------------------------- */

START_TEST(test_rc_sends_a_lost_message_again)
{
	fates[0] = fates[1] = UVD_FATE_LOSE;
	connect_with_receives(IBV_QPT_RC, 2);
	send_ok(1);
	expect_message(0, 1);
	ck_assert_uint_eq(asked, 3);
	/* The next message has all its retries. */
	fates[3] = fates[4] = fates[5] = UVD_FATE_LOSE;
	send_ok(2);
	expect_message(1, 2);
	ck_assert_uint_eq(asked, 7);
}
END_TEST

START_TEST(test_rc_gives_up_after_retry_cnt_retries_and_their_time_outs)
{
	const uint64_t begin = now_us();

	fates[0] = fates[1] = fates[2] = fates[3] = UVD_FATE_LOSE;
	connect_with_receives(IBV_QPT_RC, 1);
	send_nr(1, 1000);
	expect(a->scq, 1, IBV_WC_RETRY_EXC_ERR);
	expect_why(a, "network-lost", "");
	ck_assert_uint_eq(asked, 1 + a->retry_cnt);
	ck_assert_uint_ge(now_us() - begin, (1 + a->retry_cnt) * (4096 << a->timeout) / 1000);
	ck_assert_int_eq(state_of(a), IBV_QPS_ERR);
	ck_assert_int_eq(state_of(b), IBV_QPS_RTS);
	expect_nothing(b->rcq);
}
END_TEST

START_TEST(test_rc_whose_peer_is_gone_after_a_loss_has_no_retry_more_or_less)
{
	fates[0] = UVD_FATE_LOSE;
	connect_with_receives(IBV_QPT_RC, 1);
	ck_assert_int_eq(to_state(b, IBV_QPS_ERR), 0);
	expect(b->rcq, 0, IBV_WC_WR_FLUSH_ERR);
	send_nr(1, 1000);
	expect(a->scq, 1, IBV_WC_RETRY_EXC_ERR);
	ck_assert_uint_ge(asked, 2);
}
END_TEST

START_TEST(test_each_rc_message_is_asked_for_also_behind_others)
{
	struct ibv_sge sge = sge_at(a, 0, 8);
	struct uvd_send_wr wr[4];

	connect_with_receives(IBV_QPT_RC, 0);
	for (int i = 0; i < 4; i++) {
		wr[i] = wr_to(b, IBV_WR_RDMA_WRITE, &sge, 1);
		wr[i].next = i < 3 ? &wr[i + 1] : NULL;
	}
	fates[2] = UVD_FATE_LOSE;
	ck_assert_int_eq(post_send_wr(a, wr), 0);
	for (int i = 0; i < 4; i++)
		expect(a->scq, 0xa, IBV_WC_SUCCESS);
	ck_assert_uint_eq(asked, 5);
	ck_assert(!could_hold);
}
END_TEST

START_TEST(test_a_time_out_of_0_waits_until_the_qp_is_reset)
{
	fates[0] = UVD_FATE_LOSE;
	a->timeout = 0;
	connect_with_receives(IBV_QPT_RC, 1);
	send_nr(1, 1000);
	usleep(20000);
	expect_nothing(a->scq);
	ck_assert_uint_eq(asked, 1);
	ck_assert_int_eq(to_state(a, IBV_QPS_RESET), 0);
}
END_TEST

START_TEST(test_the_sender_of_an_unreliable_message_does_not_learn_that_it_is_lost)
{
	fates[1] = UVD_FATE_LOSE;
	connect_with_receives(IBV_QPT_UC, 2);
	for (int i = 1; i < 4; i++)
		send_ok(i);
	expect_message(0, 1);
	expect_message(1, 3);
	ck_assert_uint_eq(asked, 3);
}
END_TEST

START_TEST(test_a_lost_message_with_an_invalid_key_fails_all_the_same)
{
	struct ibv_sge sge = sge_at(a, 0, 1000);

	fates[0] = fates[1] = UVD_FATE_LOSE;
	sge.lkey ^= 0x5500;
	connect_with_receives(_i ? IBV_QPT_UC : IBV_QPT_RC, 1);
	ck_assert_int_eq(send_wr(a, .wr_id = 1, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1), 0);
	expect(a->scq, 1, IBV_WC_LOC_PROT_ERR);
}
END_TEST

/* The peer kicks its sender when it posts a receive or becomes ready, which says nothing about a lost message. */
START_TEST(test_a_lost_message_is_not_sent_again_before_its_time_out)
{
	fates[0] = UVD_FATE_LOSE;
	a->timeout = 0; /* none: only a kick could send it again */
	connect_with_receives(IBV_QPT_RC, 0);
	send_nr(1, 1000);
	while (atomic_load(&asked) < 1)
		usleep(100);
	ck_assert_int_eq(post_recv_at(b, 0, 0, 1000), 0);
	soft_kick_peer(soft_qp(b->qp));
	soft_send_wake(soft_qp(a->qp));
	usleep(20000);
	ck_assert_uint_eq(asked, 1);
	ck_assert_int_eq(to_state(a, IBV_QPS_RESET), 0);
}
END_TEST

/* ---- reordering -------------------------------------------------------------------------------------------------- */

START_TEST(test_a_held_message_arrives_behind_the_next_one)
{
	fates[0] = fates[2] = UVD_FATE_HOLD;
	connect_with_receives(IBV_QPT_UC, 4);
	send_ok(1);
	expect_nothing(b->rcq);
	ck_assert(could_hold);
	send_ok(2);
	ck_assert(!could_hold); /* it has one already */
	send_ok(3);
	send_ok(4);
	expect_message(0, 2);
	expect_message(1, 1);
	expect_message(2, 4);
	expect_message(3, 3);
}
END_TEST

START_TEST(test_a_held_message_has_the_bytes_that_were_sent)
{
	fates[0] = UVD_FATE_HOLD;
	connect_with_receives(IBV_QPT_UC, 2);
	send_ok(1);
	memset(a->buf + 1000, 0x77, 1000);
	send_ok(2);
	expect_message(0, 2);
	expect_message(1, 1);
}
END_TEST

START_TEST(test_a_held_message_arrives_alone_after_its_time)
{
	fates[0] = UVD_FATE_HOLD;
	hold_ns = 1000000;
	connect_with_receives(IBV_QPT_UC, 1);
	send_ok(1);
	expect_message(0, 1);
}
END_TEST

START_TEST(test_a_datagram_can_be_held)
{
	struct uvd_ah *ah = calloc(1, uvd_backend_soft.size_ah);
	struct ibv_wc wc;

	ah->pd = a->side->pd;
	ah->attr.port_num = 1;
	ah->attr.dlid = b->side->dev.config.ports[0].lid;
	ck_assert_int_eq(uvd_backend_soft.create_ah(ah, NULL), 0);
	fates[0] = UVD_FATE_HOLD;
	bed_connect(&bed, IBV_QPT_UD);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(post_recv_at(b, i, i * 1000, 1000), 0);
	for (int i = 1; i < 3; i++) {
		struct ibv_sge sge = sge_at(a, i * 1000, 10 * i);

		ck_assert_int_eq(send_wr(a, .wr_id = i, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
					 .send_flags = IBV_SEND_SIGNALED, .ah = ah, .remote_qpn = b->qp->qp_num,
					 .remote_qkey = 0x1234),
				 0);
		expect(a->scq, i, IBV_WC_SUCCESS);
	}
	for (int i = 0; i < 2; i++) {
		wc = expect(b->rcq, i, IBV_WC_SUCCESS);
		ck_assert_uint_eq(wc.byte_len, 40 + (i ? 10 : 20));
		ck_assert_uint_eq(wc.src_qp, a->qp->qp_num);
		ck_assert_int_eq(b->buf[i * 1000 + 40], i ? 1 : 2);
	}
	ck_assert_int_eq(uvd_backend_soft.destroy_ah(ah), 0);
	free(ah);
}
END_TEST

START_TEST(test_a_message_longer_than_the_network_can_hold_passes)
{
	fates[0] = UVD_FATE_HOLD;
	bed_connect(&bed, IBV_QPT_UC);
	ck_assert_int_eq(post_recv_at(b, 0, 0, 300000), 0);
	send_nr(1, 300000);
	expect(a->scq, 1, IBV_WC_SUCCESS);
	ck_assert(!could_hold);
	expect(b->rcq, 0, IBV_WC_SUCCESS);
}
END_TEST

START_TEST(test_a_held_message_arrives_before_its_sender_ends)
{
	fates[0] = UVD_FATE_HOLD;
	connect_with_receives(IBV_QPT_UC, 2);
	send_ok(1);
	if (_i) {
		ck_assert_int_eq(to_state(a, IBV_QPS_RESET), 0);
		ck_assert_int_eq(to_init(a), 0);
		ck_assert_int_eq(to_rtr(a, b), 0);
		ck_assert_int_eq(to_rts(a), 0);
		send_ok(2);
	} else {
		free_qp(a);
	}
	expect_message(0, 1);
	if (_i)
		expect_message(1, 2);
}
END_TEST

/* Without an end to the patience with slow memory the test would reach its limit of time. */
START_TEST(test_the_end_of_the_sender_does_not_wait_for_slow_memory_of_the_receiver)
{
	bed.fabric->movers.patience_ns = UINT64_MAX;
	fates[0] = UVD_FATE_HOLD;
	connect_with_receives(IBV_QPT_UC, 1);
	send_ok(1);
	atomic_store(&mm_slow, (uintptr_t)b->buf);
	atomic_store(&mm_slow_len, 1000);
	if (_i)
		ck_assert_int_eq(to_state(a, IBV_QPS_RESET), 0);
	else
		free_qp(a);
	ck_assert_int_eq(atomic_load(&mm_slowed), 1);
	atomic_store(&mm_slow_len, 0);
}
END_TEST

START_TEST(test_a_reset_that_fails_leaves_the_message_held)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET, .cur_qp_state = IBV_QPS_INIT };

	fates[0] = UVD_FATE_HOLD;
	connect_with_receives(IBV_QPT_UC, 2);
	send_ok(1);
	ck_assert_int_eq(uvd_backend_soft.modify_qp(a->qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE, NULL), -EINVAL);
	send_ok(2);
	expect_message(0, 2);
	expect_message(1, 1);
}
END_TEST

START_TEST(test_a_held_message_of_a_qp_in_error_is_lost)
{
	fates[0] = UVD_FATE_HOLD;
	hold_ns = 1000000;
	connect_with_receives(IBV_QPT_UC, 1);
	send_nr(1, 1000);
	ck_assert_int_eq(to_state(a, IBV_QPS_ERR), 0);
	usleep(20000);
	/* It may have arrived before. */
	if (b->qp)
		free_qp(b);
}
END_TEST

START_TEST(test_the_receiver_can_end_while_a_message_for_it_is_held)
{
	fates[0] = UVD_FATE_HOLD;
	connect_with_receives(IBV_QPT_UC, 1);
	send_ok(1);
	free_qp(b);
	send_ok(2);
	ck_assert_int_eq(state_of(a), IBV_QPS_RTS);
}
END_TEST

/* The sender ends while the timer makes a thread deliver its message, or after that. */
START_TEST(test_a_held_message_arrives_whenever_its_sender_ends)
{
	for (int round = 0; round < 50; round++) {
		atomic_store(&asked, 0);
		fates[0] = UVD_FATE_HOLD;
		hold_ns = 1 + round % 7 * 20000;
		connect_with_receives(IBV_QPT_UC, 1);
		send_ok(1);
		usleep(round % 11 * 20);
		free_qp(a);
		expect_message(0, 1);
		teardown();
		setup();
	}
}
END_TEST

/* The timer and the user's thread meet the end of the sender, or of the receiver, at any moment. */
START_TEST(test_qps_can_end_whenever_held_messages_arrive)
{
	for (int round = 0; round < 50; round++) {
		struct end *first = &bed.end[round % 2], *second = &bed.end[!(round % 2)];

		atomic_store(&asked, 0);
		memset(fates, 0, sizeof(fates));
		fates[0] = UVD_FATE_HOLD;
		hold_ns = 1 + round % 7 * 20000;
		connect_with_receives(IBV_QPT_UC, 1);
		send_nr(1, 1000);
		usleep(round % 11 * 20);
		free_qp(first);
		free_qp(second);
		teardown();
		setup();
	}
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, test_rc_sends_a_lost_message_again);
	tcase_add_test(tc, test_rc_gives_up_after_retry_cnt_retries_and_their_time_outs);
	tcase_add_test(tc, test_rc_whose_peer_is_gone_after_a_loss_has_no_retry_more_or_less);
	tcase_add_test(tc, test_each_rc_message_is_asked_for_also_behind_others);
	tcase_add_test(tc, test_a_lost_message_is_not_sent_again_before_its_time_out);
	tcase_add_test(tc, test_a_time_out_of_0_waits_until_the_qp_is_reset);
	tcase_add_test(tc, test_the_sender_of_an_unreliable_message_does_not_learn_that_it_is_lost);
	tcase_add_loop_test(tc, test_a_lost_message_with_an_invalid_key_fails_all_the_same, 0, 2);
	tcase_add_test(tc, test_a_held_message_arrives_behind_the_next_one);
	tcase_add_test(tc, test_a_held_message_has_the_bytes_that_were_sent);
	tcase_add_test(tc, test_a_held_message_arrives_alone_after_its_time);
	tcase_add_test(tc, test_a_datagram_can_be_held);
	tcase_add_test(tc, test_a_message_longer_than_the_network_can_hold_passes);
	tcase_add_loop_test(tc, test_a_held_message_arrives_before_its_sender_ends, 0, 2);
	tcase_add_loop_test(tc, test_the_end_of_the_sender_does_not_wait_for_slow_memory_of_the_receiver, 0, 2);
	tcase_add_test(tc, test_a_reset_that_fails_leaves_the_message_held);
	tcase_add_test(tc, test_a_held_message_of_a_qp_in_error_is_lost);
	tcase_add_test(tc, test_the_receiver_can_end_while_a_message_for_it_is_held);
	tcase_add_test(tc, test_a_held_message_arrives_whenever_its_sender_ends);
	tcase_add_test(tc, test_qps_can_end_whenever_held_messages_arrive);
	return run_suite(__FILE__, tc);
}
