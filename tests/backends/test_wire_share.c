/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What one user may have on the wire: packets in flight, and packets that wait for a thread. Two engines, and users with small limits.
 * A QP that does not receive is a peer that answers nothing.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "account/account.h"
#include "backends/soft/soft.h"
#include "backends/soft/wire/internal.h"
#include "tests/backends/bed.h"

enum { FLIGHT = 16, INBOX = 8, QPS = 40, REQUESTS = 16, WINDOW = WIRE_WINDOW_FIRST, LONG = 256 << 10 };

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];
static struct uvd_accounts *accounts;
static struct uvd_account *first, *second;

static void setup(void)
{
	struct uvd_account_limits limits;

	uvd_account_limits_init(&limits);
	limits.max[UVD_RES_FLIGHT] = FLIGHT;
	limits.max[UVD_RES_INBOX] = INBOX;
	accounts = uvd_accounts_new(&limits, NULL);
	first = uvd_account_get(accounts, (uid_t[]){ 1000 }, 1);
	second = uvd_account_get(accounts, (uid_t[]){ 1001 }, 1);
	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_ETHERNET);
	bed.fabric->movers.patience_ns = bed.other->movers.patience_ns = UINT64_MAX;
	bed.cap = (struct ibv_qp_cap){ REQUESTS, REQUESTS, 4, 4, 64 };
	bed.cqe = QPS * REQUESTS;
	a->timeout = b->timeout = 0; /* what gets no answer stays in flight */
}

static void teardown(void)
{
	mm_slow_len = 0;
	wait_until(!mm_slowed);
	for (int i = 0; i < 2; i++)
		if (bed.end[i].qp)
			free_qp(&bed.end[i]);
	ck_assert_uint_eq(uvd_account_used(first, UVD_RES_FLIGHT) + uvd_account_used(second, UVD_RES_FLIGHT), 0);
	ck_assert_uint_eq(uvd_account_used(first, UVD_RES_INBOX) + uvd_account_used(second, UVD_RES_INBOX), 0);
	bed.side[0].context->account = bed.side[1].context->account = NULL;
	bed_close(&bed);
	uvd_account_put(first);
	uvd_account_put(second);
	uvd_accounts_free(accounts);
}

/* Makes QPs of this user on the first engine, whose peer is b's QP. */
static void open_qps(struct end *ends, int num, struct uvd_account *account)
{
	struct uvd_qp_init_attr init = { .cap = bed.cap };
	int err;

	a->side->context->account = account;
	for (int i = 0; i < num; i++) {
		ends[i] = *a;
		ends[i].scq = ends[i].rcq = i ? ends[0].scq : make_cq(a, bed.cqe);
		ends[i].qp = make_qp(&ends[i], IBV_QPT_RC, &init, &err);
		ck_assert_int_eq(err, 0);
		ck_assert_int_eq(to_init(&ends[i]) | to_rtr(&ends[i], b) | to_rts(&ends[i]), 0);
	}
}

static void close_qps(struct end *ends, int num)
{
	for (int i = 0; i < num; i++)
		if (ends[i].qp)
			free_qp(&ends[i]);
	ck_assert_int_eq(uvd_backend_soft.destroy_cq(ends[0].scq), 0);
	free(ends[0].scq);
}

static void post(struct end *end, enum ibv_wr_opcode opcode, int num, uint32_t length)
{
	struct ibv_sge sge = sge_at(end, 0, length);
	struct uvd_send_wr wr = wr_to(b, opcode, &sge, 1);

	for (int i = 0; i < num; i++)
		ck_assert_int_eq(post_send_wr(end, &wr), 0);
}

static uint32_t flight_of(struct end *end)
{
	struct soft_qp *qp = soft_qp(end->qp);
	uint32_t flight;

	pthread_mutex_lock(&qp->lock);
	flight = qp->wire->flight;
	pthread_mutex_unlock(&qp->lock);
	return flight;
}

static bool all_have_some(struct end *ends, int num)
{
	for (int i = 0; i < num; i++)
		if (!flight_of(&ends[i]))
			return false;
	return true;
}

static void make_silent_peer(void)
{
	struct uvd_qp_init_attr init = { .cap = bed.cap };
	int err;

	b->scq = b->rcq = make_cq(b, 16);
	b->qp = make_qp(b, IBV_QPT_RC, &init, &err);
	ck_assert_int_eq(err, 0);
	ck_assert_int_eq(to_init(b), 0);
}

/* The limit, and one packet for each QP that got nothing of it. */
START_TEST(test_qps_of_a_user_have_no_more_in_flight_than_the_limit_and_one_each)
{
	struct end ends[QPS];

	make_silent_peer();
	open_qps(ends, QPS, first);
	for (int i = 0; i < QPS; i++)
		post(&ends[i], IBV_WR_RDMA_WRITE, REQUESTS, 64);
	wait_until(all_have_some(ends, QPS));
	ck_assert_uint_le(uvd_account_used(first, UVD_RES_FLIGHT), FLIGHT + QPS);
	ck_assert_uint_eq(uvd_account_used(second, UVD_RES_FLIGHT), 0);
	close_qps(ends, QPS);
}
END_TEST

START_TEST(test_user_without_room_leaves_others_theirs)
{
	struct end ends[QPS], other[1];

	make_silent_peer();
	open_qps(ends, QPS, first);
	for (int i = 0; i < QPS; i++)
		post(&ends[i], IBV_WR_RDMA_WRITE, REQUESTS, 64);
	wait_until(uvd_account_used(first, UVD_RES_FLIGHT) >= FLIGHT);
	open_qps(other, 1, second);
	post(other, IBV_WR_RDMA_WRITE, REQUESTS, 64);
	wait_until(flight_of(other) == WINDOW);
	ck_assert_uint_eq(uvd_account_used(second, UVD_RES_FLIGHT), WINDOW);
	close_qps(other, 1);
	close_qps(ends, QPS);
}
END_TEST

/* A QP that has had all leaves a part to the next one. */
START_TEST(test_qps_of_a_user_share_the_limit)
{
	struct end ends[2];

	make_silent_peer();
	open_qps(ends, 2, first);
	soft_qp(ends[0].qp)->wire->requester.window.size = WIRE_WINDOW_MOST;
	post(&ends[0], IBV_WR_RDMA_WRITE, REQUESTS, 64);
	wait_until(flight_of(&ends[0]));
	ck_assert_uint_le(flight_of(&ends[0]), FLIGHT / 2 + 1);
	post(&ends[1], IBV_WR_RDMA_WRITE, REQUESTS, 64);
	wait_until(flight_of(&ends[1]) >= FLIGHT / 4);
	close_qps(ends, 2);
}
END_TEST

/* An answer of 16 packets comes to the user that asked for it. */
START_TEST(test_answers_to_reads_are_in_flight)
{
	struct end ends[2];

	make_silent_peer();
	open_qps(ends, 1, first);
	post(ends, IBV_WR_RDMA_READ, 1, LONG);
	wait_until(flight_of(ends) == WIRE_SLICE);
	close_qps(ends, 1);
}
END_TEST

static const enum { TO_RESET, TO_ERR, DESTROY } ways[] = { TO_RESET, TO_ERR, DESTROY };

START_TEST(test_what_was_in_flight_is_given_back)
{
	struct end ends[4];

	make_silent_peer();
	open_qps(ends, 4, first);
	for (int i = 0; i < 4; i++)
		post(&ends[i], IBV_WR_RDMA_WRITE, REQUESTS, 64);
	wait_until(all_have_some(ends, 4));
	for (int i = 0; i < 4; i++) {
		if (ways[_i] == DESTROY)
			free_qp(&ends[i]);
		else
			ck_assert_int_eq(to_state(&ends[i], ways[_i] == TO_ERR ? IBV_QPS_ERR : IBV_QPS_RESET), 0);
	}
	ck_assert_uint_eq(uvd_account_used(first, UVD_RES_FLIGHT), 0);
	close_qps(ends, 4);
}
END_TEST

START_TEST(test_what_is_acknowledged_is_not_in_flight)
{
	a->side->context->account = first;
	bed_connect(&bed, IBV_QPT_RC);
	post(a, IBV_WR_RDMA_WRITE, 1, LONG);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	wait_until(!uvd_account_used(first, UVD_RES_FLIGHT));
}
END_TEST

START_TEST(test_qp_that_fails_gives_back_what_was_in_flight)
{
	struct end end;

	a->timeout = 1;
	a->retry_cnt = 0;
	make_silent_peer();
	open_qps(&end, 1, first);
	post(&end, IBV_WR_RDMA_WRITE, 1, LONG);
	expect(end.scq, 0xa, IBV_WC_RETRY_EXC_ERR);
	wait_until(!uvd_account_used(first, UVD_RES_FLIGHT));
	close_qps(&end, 1);
}
END_TEST

/* The receiver's memory does not answer: its packets wait. The socket's other QPs go on, and lose none to this user. */
static void stop_receiver(void)
{
	b->side->context->account = second;
	a->timeout = 14;
	a->retry_cnt = 7;
	bed_connect(&bed, IBV_QPT_RC);
	mm_slow = (uintptr_t)b->buf;
	mm_slow_len = BUF_SIZE;
	post(a, IBV_WR_RDMA_WRITE, 4, LONG);
	wait_until(mm_slowed && uvd_account_used(second, UVD_RES_INBOX));
}

static uint64_t dropped(void)
{
	uint64_t packets = 0;

	soft_wire_drops(bed.other->wire, 0, WIRE_DROP_NO_MEMORY, &packets);
	return packets;
}

START_TEST(test_packets_that_wait_are_limited_and_those_beyond_come_again)
{
	stop_receiver();
	wait_until(dropped());
	ck_assert_uint_le(uvd_account_used(second, UVD_RES_INBOX), INBOX);
	mm_slow_len = 0;
	for (int i = 0; i < 4; i++)
		expect(a->scq, 0xa, IBV_WC_SUCCESS);
	wait_until(!uvd_account_used(second, UVD_RES_INBOX));
}
END_TEST

START_TEST(test_what_waits_is_given_back)
{
	/* A reset waits for the memory, or until the watcher gives it up. */
	if (ways[_i] != TO_ERR)
		bed.other->movers.patience_ns = 50 * 1000 * 1000;
	stop_receiver();
	if (ways[_i] == DESTROY)
		free_qp(b);
	else
		ck_assert_int_eq(to_state(b, ways[_i] == TO_ERR ? IBV_QPS_ERR : IBV_QPS_RESET), 0);
	ck_assert_uint_eq(uvd_account_used(second, UVD_RES_INBOX), 0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("share");

	setenv("BED_WIRE", "1", 1);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_qps_of_a_user_have_no_more_in_flight_than_the_limit_and_one_each);
	tcase_add_test(t, test_user_without_room_leaves_others_theirs);
	tcase_add_test(t, test_qps_of_a_user_share_the_limit);
	tcase_add_test(t, test_answers_to_reads_are_in_flight);
	tcase_add_loop_test(t, test_what_was_in_flight_is_given_back, 0, 3);
	tcase_add_test(t, test_what_is_acknowledged_is_not_in_flight);
	tcase_add_test(t, test_qp_that_fails_gives_back_what_was_in_flight);
	tcase_add_test(t, test_packets_that_wait_are_limited_and_those_beyond_come_again);
	tcase_add_loop_test(t, test_what_waits_is_given_back, 0, 3);
	return run_suite("soft: what a user has on the wire", t);
}
