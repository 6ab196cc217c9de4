/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Receives that a client posts to a mapped queue when the QP is in ERR already, as programs do that drain it. */
#include "backends/soft/endpoint/endpoint.h"
#include "backends/soft/soft.h"
#include "queues.h"

enum { RECEIVES = 3 };

static struct soft_users *users(void)
{
	return &((struct uvd_fabric *)h.dev->ib.engine_data)->users;
}

static struct soft_qp *engine_qp(int i)
{
	struct uvd_uobject *uobj;
	struct soft_qp *qp;

	ck_assert_int_eq(uvd_uobject_get(h.file, &uvd_object_qp, qps[i].core.qp_handle, UVD_UOBJ_READ, &uobj), 0);
	qp = soft_qp(uobj->object);
	uvd_uobject_put(uobj, UVD_UOBJ_READ);
	return qp;
}

/* QP 0 is in ERR. looks: the user's thread looks by itself; else only when it is told to. */
static void begin_in_error(bool looks)
{
	begin_traffic(1, 7);
	if (!looks)
		users()->look_first_ns = users()->look_most_ns = UINT64_C(3600000000000);
	ck_assert_int_eq(to_state(0, IBV_QPS_ERR), 0);
}

static void expect_flushed(uint64_t wr_id, double seconds)
{
	struct ib_uverbs_wc wc;

	ck_assert(next_wc(&wc, seconds));
	ck_assert(wc.wr_id == wr_id && wc.status == IBV_WC_WR_FLUSH_ERR && wc.opcode == IBV_WC_RECV);
}

static void arm(void)
{
	struct ib_uverbs_req_notify_cq cmd = { .cq_handle = cq };

	ck_assert_int_eq(WRITE_IN(&h, REQ_NOTIFY_CQ, &cmd), 0);
}

START_TEST(test_receive_posted_in_error_is_flushed_by_itself)
{
	struct ib_uverbs_wc wc;

	begin_in_error(true);
	for (int n = 0; n < 20; n++) {
		for (int i = 0; i < RECEIVES; i++)
			post_recv(0, 10 * n + i);
		for (int i = 0; i < RECEIVES; i++)
			expect_flushed(10 * n + i, 20);
		ck_assert(!next_wc(&wc, 0.001));
	}
	/* The other QP is not in ERR: its receive stays. */
	post_recv(1, 1);
	post_recv(0, 2);
	expect_flushed(2, 20);
	ck_assert(!next_wc(&wc, 0.03));
}
END_TEST

START_TEST(test_doorbell_flushes_the_receives_too)
{
	struct ib_uverbs_wc wc;

	begin_in_error(false);
	post_recv(0, 1);
	ck_assert(!next_wc(&wc, 0.03));
	send_nothing(0, 2);
	expect_flushed(1, 0);
	ck_assert(next_wc(&wc, 20) && wc.wr_id == 2 && wc.status == IBV_WC_WR_FLUSH_ERR);
}
END_TEST

START_TEST(test_modify_from_error_to_error_flushes_the_receives)
{
	struct ib_uverbs_wc wc;

	begin_in_error(false);
	post_recv(0, 1);
	ck_assert(!next_wc(&wc, 0.03));
	ck_assert_int_eq(to_state(0, IBV_QPS_ERR), 0);
	expect_flushed(1, 0);
}
END_TEST

START_TEST(test_arming_a_cq_has_the_receives_flushed)
{
	begin_in_error(false);
	for (int n = 0; n < 10; n++) {
		post_recv(0, n);
		arm();
		expect_flushed(n, 20);
	}
}
END_TEST

/* The thread has flushed the receive of QP 0, and waits for QP 1, when the client posts the next one. */
START_TEST(test_arming_a_cq_during_a_look_is_not_forgotten)
{
	struct soft_qp *second;

	begin_in_error(false);
	ck_assert_int_eq(to_state(1, IBV_QPS_ERR), 0);
	second = engine_qp(1);
	pthread_mutex_lock(&second->lock);
	post_recv(0, 1);
	arm();
	expect_flushed(1, 20);
	post_recv(0, 2);
	arm();
	pthread_mutex_unlock(&second->lock);
	expect_flushed(2, 20);
}
END_TEST

/* A client must not be able to wake a thread by each REQ_NOTIFY where no QP is in ERR. */
START_TEST(test_no_qp_is_looked_at_before_or_after_error)
{
	begin_traffic(1, 7);
	ck_assert_uint_eq(users()->num_in_error, 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(to_state(i, IBV_QPS_ERR), 0);
	ck_assert_uint_eq(users()->num_in_error, 2);
	ck_assert_int_eq(to_state(0, IBV_QPS_ERR), 0);
	ck_assert_uint_eq(users()->num_in_error, 2);
	ck_assert_int_eq(to_state(0, IBV_QPS_RESET), 0);
	ck_assert_uint_eq(users()->num_in_error, 1);
	harness_close_file(&h);
	ck_assert_uint_eq(users()->num_in_error, 0);
}
END_TEST

static bool has_thread(void)
{
	bool has;

	pthread_mutex_lock(&users()->lock);
	has = users()->first;
	pthread_mutex_unlock(&users()->lock);
	return has;
}

/* A user's thread without work exits after a second. */
START_TEST(test_thread_stays_as_long_as_a_qp_is_in_error)
{
	const double end = now() + 1.5;

	begin_in_error(true);
	while (now() < end)
		ck_assert(has_thread());
	post_recv(0, 1);
	expect_flushed(1, 20);
	ck_assert_int_eq(to_state(0, IBV_QPS_RESET), 0);
	for (const double last = now() + 20; has_thread();)
		ck_assert(now() < last);
}
END_TEST

/* The error is that of a request here. */
START_TEST(test_qp_that_fails_by_itself_is_looked_at)
{
	struct ib_uverbs_wc wc;
	struct rxe_send_wqe *wqe;
	const struct uvd_queue *sq;

	begin_traffic(1, 7);
	sq = queue_of(qps[0].core.qp_handle, &uvd_object_qp, true);
	wqe = next_entry(sq);
	wqe->wr.opcode = 77;
	publish(sq);
	ck_assert_int_eq(ring(0), 0);
	ck_assert(next_wc(&wc, 20) && wc.status == IBV_WC_LOC_QP_OP_ERR);
	post_recv(0, 1);
	expect_flushed(1, 20);
}
END_TEST

/* A client can make its part of the file a hole: then all entries are zeros, and so are the indexes. */
START_TEST(test_garbage_in_the_queue_of_a_qp_in_error_is_flushed_once)
{
	const struct uvd_queue *rq;
	struct ib_uverbs_wc wc;

	begin_in_error(false);
	post_recv(0, 1);
	arm();
	expect_flushed(1, 20);
	rq = queue_of(qps[0].core.qp_handle, &uvd_object_qp, false);
	memset(rq->memory, 0, rq->length);
	for (int n = 0; n < 3; n++)
		arm();
	/* Index 1 of 4: three entries lie before the producer's index of 0. */
	for (int n = 0; n < 3; n++)
		expect_flushed(0, 20);
	ck_assert(!next_wc(&wc, 0.03));
}
END_TEST

TEST_LIST(test_receive_posted_in_error_is_flushed_by_itself, test_doorbell_flushes_the_receives_too,
	  test_modify_from_error_to_error_flushes_the_receives, test_arming_a_cq_has_the_receives_flushed,
	  test_arming_a_cq_during_a_look_is_not_forgotten, test_no_qp_is_looked_at_before_or_after_error,
	  test_thread_stays_as_long_as_a_qp_is_in_error, test_qp_that_fails_by_itself_is_looked_at,
	  test_garbage_in_the_queue_of_a_qp_in_error_is_flushed_once)
