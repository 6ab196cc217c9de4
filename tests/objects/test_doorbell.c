/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Doorbells of mapped send queues: what happens to the requests of one that is refused. */
#include <pthread.h>
#include "filters/filters.h"
#include "queues.h"

static void add_filter(const char *text)
{
	char error[UVD_PLUGIN_ERROR];

	ck_assert_msg(!uvd_device_filter_add(h.dev, text, error), "%s", error);
}

static int post_send(int i, uint64_t wr_id)
{
	add_nothing(i, wr_id);
	return ring(i);
}

static void expect_wc(uint64_t wr_id, enum ibv_wc_status status)
{
	struct ib_uverbs_wc wc;

	ck_assert(next_wc(&wc, 20));
	ck_assert_uint_eq(wc.wr_id, wr_id);
	ck_assert_uint_eq(wc.status, status);
}

static void begin_qps(void)
{
	begin(true);
	cq = new_cq();
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(create_qp(cq, 4, &qps[i]), 0);
}

/* Completions of a QP come in the order of its requests: the first one shows what is carried out. */
static void expect_only(uint64_t wr_id)
{
	struct ib_uverbs_wc wc;

	for (int n = 0; n < 2; n++) {
		ck_assert(next_wc(&wc, 20));
		ck_assert_uint_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_uint_eq(wc.wr_id, wc.opcode == IBV_WC_RECV ? 100 : wr_id);
	}
	ck_assert(!next_wc(&wc, 0));
}

START_TEST(test_post_that_the_state_refuses_is_never_carried_out)
{
	for (int refused_in = IBV_QPS_RESET; refused_in <= IBV_QPS_RTR; refused_in++) {
		begin_qps();
		connect_qp(1, 1, 7);
		post_recv(1, 100);
		for (int state = IBV_QPS_RESET; state <= IBV_QPS_RTR; state++) {
			if (state == IBV_QPS_INIT)
				to_init(0);
			if (state == IBV_QPS_RTR)
				to_rtr(0, 1);
			if (state == refused_in)
				ck_assert_int_eq(post_send(0, 1), -EINVAL);
		}
		to_rts(0, 7);
		ck_assert_int_eq(post_send(0, 2), 0);
		expect_only(2);
	}
}
END_TEST

/* Its provider finds the whole queue free: it holds 7 requests. */
START_TEST(test_refused_posts_leave_the_queue_empty)
{
	const struct rxe_queue_buf *buf;

	begin_qps();
	buf = (void *)queue_of(qps[0].core.qp_handle, &uvd_object_qp, true)->memory;
	for (int n = 0; n < 50; n++) {
		ck_assert_int_eq(post_send(0, n), -EINVAL);
		ck_assert_uint_eq(buf->consumer_index, buf->producer_index);
	}
}
END_TEST

START_TEST(test_post_that_a_filter_refuses_is_never_carried_out)
{
	begin_traffic(1, 7);
	add_filter("error:post_send=ENOMEM@1");
	ck_assert_int_eq(post_send(0, 1), -ENOMEM);
	post_recv(1, 100);
	ck_assert_int_eq(post_send(0, 2), 0);
	expect_only(2);
}
END_TEST

/* The first request waits for a receive. The consumer has one index, so the refused one behind it holds its entry until then. */
START_TEST(test_refused_post_between_accepted_ones_is_skipped)
{
	struct rxe_queue_buf *buf;
	struct ib_uverbs_wc wc;
	uint64_t sent = 1;

	begin_traffic(1, 7);
	buf = (void *)queue_of(qps[0].core.qp_handle, &uvd_object_qp, true)->memory;
	add_filter("error:post_send=ENOMEM@2");
	ck_assert_int_eq(post_send(0, 1), 0);
	ck_assert_int_eq(post_send(0, 2), -ENOMEM);
	ck_assert_int_eq(post_send(0, 3), 0);
	ck_assert_uint_eq(buf->consumer_index, 0);
	for (int n = 0; n < 2; n++)
		post_recv(1, 100);
	for (int n = 0; n < 4; n++) {
		ck_assert(next_wc(&wc, 20) && !wc.status);
		if (wc.opcode == IBV_WC_RECV)
			continue;
		ck_assert_uint_eq(wc.wr_id, sent);
		sent += 2;
	}
	ck_assert_uint_eq(sent, 5);
	ck_assert_uint_eq(buf->consumer_index, 3);
}
END_TEST

static void *ring_first(void *arg)
{
	return (void *)(intptr_t)ring(0);
}

/* A worker is at the queue while the doorbell waits in the filter: the request before it is tried again and again. */
START_TEST(test_post_is_not_carried_out_while_a_filter_delays_its_doorbell)
{
	struct ib_uverbs_wc wc;
	pthread_t ringer;
	double began;

	begin_traffic(1, 7);
	send_nothing(0, 1);
	add_filter("delay:post_send=300ms@1");
	add_nothing(0, 2);
	began = now();
	ck_assert_int_eq(pthread_create(&ringer, NULL, ring_first, NULL), 0);
	for (int n = 0; n < 2; n++)
		post_recv(1, 100);
	for (int n = 0; n < 4; n++) {
		ck_assert(next_wc(&wc, 20) && !wc.status);
		if (wc.wr_id == 2)
			ck_assert(now() - began > 0.29);
	}
	pthread_join(ringer, NULL);
}
END_TEST

/* MODIFY_QP to RESET forgets what has no doorbell yet, too: it was for the connection that ends. */
START_TEST(test_post_before_a_reset_is_not_carried_out_after_it)
{
	begin_traffic(1, 7);
	add_nothing(0, 1);
	ck_assert_int_eq(to_state(0, IBV_QPS_RESET), 0);
	connect_qp(0, 1, 7);
	post_recv(1, 100);
	ck_assert_int_eq(post_send(0, 2), 0);
	expect_only(2);
}
END_TEST

START_TEST(test_post_in_error_is_flushed)
{
	struct ib_uverbs_wc wc;

	begin_traffic(1, 7);
	ck_assert_int_eq(to_state(0, IBV_QPS_ERR), 0);
	for (uint64_t n = 1; n < 4; n++) {
		ck_assert_int_eq(post_send(0, n), 0);
		expect_wc(n, IBV_WC_WR_FLUSH_ERR);
	}
	ck_assert(!next_wc(&wc, 0));
}
END_TEST

TEST_LIST(test_post_that_the_state_refuses_is_never_carried_out, test_refused_posts_leave_the_queue_empty,
	  test_post_that_a_filter_refuses_is_never_carried_out, test_refused_post_between_accepted_ones_is_skipped,
	  test_post_is_not_carried_out_while_a_filter_delays_its_doorbell,
	  test_post_before_a_reset_is_not_carried_out_after_it, test_post_in_error_is_flushed)
