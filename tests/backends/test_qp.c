/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The soft backend's queue pairs and completion queues: states, flushing, arming, limits. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uverbsd/queue.h>
#include "backends/soft/soft.h"
#include "tests/backends/bed.h"
#include "../suite.h"

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];

static void setup(void)
{
	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_INFINIBAND);
}

static void teardown(void)
{
	bed_close(&bed);
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

START_TEST(test_error_flushes_in_order_and_later_posts_too)
{
	bed_connect(&bed, IBV_QPT_RC);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(post_recv_at(a, 100 + i, 0, 8), 0);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(send_wr(a, .wr_id = i, .opcode = IBV_WR_SEND), 0);
	ck_assert_int_eq(to_state(a, IBV_QPS_ERR), 0);
	ck_assert_int_eq(send_wr(a, .wr_id = 4, .opcode = IBV_WR_SEND), 0);
	ck_assert_int_eq(post_recv_at(a, 104, 0, 8), 0);
	for (int i = 0; i < 5; i++) {
		expect(a->scq, i, IBV_WC_WR_FLUSH_ERR);
		expect(a->rcq, 100 + i, IBV_WC_WR_FLUSH_ERR);
	}
	expect_nothing(a->scq);
}
END_TEST

/* A mapped receive queue whose client adds a request for each that the engine takes. */
enum { REFILLED = 3 };
static uint64_t num_taken;

static uint32_t refilled_count(const struct uvd_queue *q)
{
	return REFILLED;
}

static bool refilled_peek(struct uvd_queue *q, uint32_t n, struct uvd_recv_wr *wr)
{
	*wr = (struct uvd_recv_wr){ .wr_id = num_taken + n };
	return n < REFILLED;
}

static void refilled_pop(struct uvd_queue *q)
{
	num_taken++;
}

START_TEST(test_error_flushes_a_queue_that_is_refilled_only_once)
{
	static const struct uvd_queue_ops ops = { .count = refilled_count,
						  .peek_recv = refilled_peek,
						  .pop = refilled_pop };
	struct uvd_queue queue = { .ops = &ops, .kind = UVD_QUEUE_RECV, .shape = { 4, 64, 1 } };

	a->rq = &queue;
	/* The user's thread, which finds what is posted in ERR, does not look within this test. */
	bed.fabric->users.look_first_ns = UINT64_C(3600000000000);
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(to_state(a, IBV_QPS_ERR), 0);
	for (int i = 0; i < REFILLED; i++)
		expect(a->rcq, i, IBV_WC_WR_FLUSH_ERR);
	expect_nothing(a->rcq);
	free_qp(a);
}
END_TEST

START_TEST(test_reset_forgets_queues_and_the_qp_connects_again)
{
	bed_connect(&bed, IBV_QPT_RC);
	send_small(a, b, IBV_WR_SEND, 8);
	ck_assert_int_eq(post_recv_at(a, 1, 0, 8), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(to_state(&bed.end[i], IBV_QPS_RESET), 0);
	if (!bed_is_mapped()) /* the provider of mapped queues refuses the receive, and not the engine */
		ck_assert_int_eq(post_recv_at(a, 1, 0, 8), -EINVAL);
	bed_connect(&bed, IBV_QPT_RC);
	expect_nothing(a->scq);
	expect_nothing(a->rcq);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 8), 0);
	send_small(a, b, IBV_WR_SEND, 8);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	expect(b->rcq, 0xb, IBV_WC_SUCCESS);
}
END_TEST

START_TEST(test_post_that_the_state_refuses_is_never_carried_out)
{
	bed.sq_sig_all = true;
	bed_make_qps(&bed, IBV_QPT_RC);
	for (int refused_in = IBV_QPS_RESET; refused_in <= IBV_QPS_RTR; refused_in++) {
		ck_assert_int_eq(to_init(b) | to_rtr(b, a) | to_rts(b), 0);
		ck_assert_int_eq(post_recv_at(b, 0xb, 0, 8), 0);
		for (int state = IBV_QPS_RESET; state <= IBV_QPS_RTR; state++) {
			if (state == IBV_QPS_INIT)
				ck_assert_int_eq(to_init(a), 0);
			if (state == IBV_QPS_RTR)
				ck_assert_int_eq(to_rtr(a, b), 0);
			if (state == refused_in)
				ck_assert_int_eq(send_wr(a, .wr_id = 1, .opcode = IBV_WR_SEND), -EINVAL);
		}
		ck_assert_int_eq(to_rts(a), 0);
		ck_assert_int_eq(send_wr(a, .wr_id = 2, .opcode = IBV_WR_SEND), 0);
		expect(a->scq, 2, IBV_WC_SUCCESS);
		expect(b->rcq, 0xb, IBV_WC_SUCCESS);
		expect_nothing(a->scq);
		ck_assert_int_eq(to_state(a, IBV_QPS_RESET) | to_state(b, IBV_QPS_RESET), 0);
	}
}
END_TEST

START_TEST(test_post_send_needs_rts)
{
	bed_make_qps(&bed, IBV_QPT_RC);
	ck_assert_int_eq(send_wr(a, .opcode = IBV_WR_SEND), -EINVAL);
	ck_assert_int_eq(to_init(a), 0);
	ck_assert_int_eq(post_recv_at(a, 1, 0, 8), 0);
	ck_assert_int_eq(to_rtr(a, b), 0);
	ck_assert_int_eq(send_wr(a, .opcode = IBV_WR_SEND), -EINVAL);
	ck_assert_int_eq(to_rts(a), 0);
	ck_assert_int_eq(send_wr(a, .opcode = IBV_WR_SEND), 0);
}
END_TEST

START_TEST(test_false_current_state_is_refused)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_RTS };

	bed_make_qps(&bed, IBV_QPT_RC);
	ck_assert_int_eq(uvd_backend_soft.modify_qp(a->qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE, NULL), -EINVAL);
	ck_assert_int_eq(state_of(a), IBV_QPS_RESET);
}
END_TEST

START_TEST(test_full_queues_are_enomem)
{
	struct uvd_send_wr wr = { .opcode = IBV_WR_SEND };

	bed_connect(&bed, IBV_QPT_RC);
	for (int i = 0; i < 32; i++)
		ck_assert_int_eq(post_send_wr(a, &wr), 0);
	ck_assert_int_eq(post_send_wr(a, &wr), -ENOMEM);
	for (int i = 0; i < 32; i++)
		ck_assert_int_eq(post_recv_at(a, i, 0, 1), 0);
	ck_assert_int_eq(post_recv_at(a, 32, 0, 1), -ENOMEM);
}
END_TEST

static struct uvd_send_wr one_more;
static struct uvd_work more_work;
static atomic_int told; /* 1 after the event, plus the errno of the post */

static void post_at_the_event(struct uvd_cq *cq)
{
	const struct uvd_send_wr *bad;

	told = 1 - bed_post_send(a, &one_more, &bad, &more_work);
}

/* The queue is full of requests that wait for receives. The event of the first completion posts the next request. */
START_TEST(test_place_of_a_request_is_free_when_its_completion_is_told)
{
	int posted = 0, err;

	told = 0;
	bed.sq_sig_all = true;
	bed_connect(&bed, IBV_QPT_RC);
	one_more = (struct uvd_send_wr){ .opcode = IBV_WR_SEND };
	while (!(err = post_send_wr(a, &one_more)))
		posted++;
	ck_assert_int_eq(err, -ENOMEM);
	a->scq->comp_handler = post_at_the_event;
	ck_assert_int_eq(uvd_backend_soft.req_notify_cq(a->scq, false), 0);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 8), 0);
	for (const uint64_t end = now_us() + 60000000; !told;)
		ck_assert(now_us() < end);
	ck_assert_int_eq(told, 1);
	if (more_work.run)
		more_work.run(more_work.arg, NULL);
	/* All are in the queue: each takes a receive. */
	for (int i = 0; i < posted; i++) {
		expect(a->scq, 0, IBV_WC_SUCCESS);
		ck_assert_int_eq(post_recv_at(b, 0xb, 0, 8), 0);
	}
	expect(a->scq, 0, IBV_WC_SUCCESS);
}
END_TEST

START_TEST(test_bad_requests_are_einval_and_name_the_first)
{
	struct ibv_sge sge[5] = { sge_at(a, 4, 8) };
	struct uvd_send_wr third = { .opcode = IBV_WR_SEND, .wr_id = 3 };
	struct uvd_send_wr second = { .next = &third, .opcode = IBV_WR_SEND, .sg_list = sge, .num_sge = 5 };
	struct uvd_send_wr first = { .next = &second, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED };
	const struct uvd_send_wr *bad = NULL;
	struct uvd_work work;

	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(uvd_backend_soft.post_send(a->qp, &first, &bad, &work), -EINVAL);
	work.run(work.arg, NULL);
	ck_assert_ptr_eq(bad, &second);
	expect(a->scq, 0, IBV_WC_SUCCESS);
	expect_nothing(a->scq);
	ck_assert_int_eq(send_wr(a, .opcode = 77), -EINVAL);
	/* The requester's SGE of an atomic must be aligned to 8 bytes, and have 8. */
	ck_assert_int_eq(send_wr(a, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .sg_list = sge, .num_sge = 1), -EINVAL);
	sge[0] = sge_at(a, 8, 7);
	ck_assert_int_eq(send_wr(a, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .sg_list = sge, .num_sge = 1), -EINVAL);
	sge[0].length = 8;
	ck_assert_int_eq(send_wr(a, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .sg_list = sge, .num_sge = 1), 0);
}
END_TEST

START_TEST(test_sqd_holds_requests_back_and_says_when_drained)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };

	bed_connect(&bed, IBV_QPT_RC);
	send_small(a, b, IBV_WR_SEND, 8); /* started: it waits for a receive */
	ck_assert_int_eq(uvd_backend_soft.modify_qp(a->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY, NULL), 0);
	send_small(a, b, IBV_WR_RDMA_WRITE, 8); /* not started */
	ck_assert_int_eq(a->qp_event[IBV_EVENT_SQ_DRAINED], 0);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 8), 0);
	ck_assert_int_eq(expect(a->scq, 0xa, IBV_WC_SUCCESS).opcode, IBV_WC_SEND);
	ck_assert_int_eq(a->qp_event[IBV_EVENT_SQ_DRAINED], 1);
	expect_nothing(a->scq);
	ck_assert_int_eq(to_state(a, IBV_QPS_RTS), 0);
	ck_assert_int_eq(expect(a->scq, 0xa, IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_WRITE);
}
END_TEST

START_TEST(test_unsignalled_success_makes_no_completion)
{
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(send_wr(a, .opcode = IBV_WR_RDMA_WRITE), 0);
	expect_nothing(a->scq);
}
END_TEST

START_TEST(test_sq_sig_all_signals_everything)
{
	bed.sq_sig_all = true;
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(send_wr(a, .wr_id = 5, .opcode = IBV_WR_RDMA_WRITE), 0);
	expect(a->scq, 5, IBV_WC_SUCCESS);
}
END_TEST

/* ---- completion queues ------------------------------------------------------------------------------------------- */

static void deliver(unsigned int flags)
{
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 8), 0);
	ck_assert_int_eq(send_wr(a, .opcode = IBV_WR_SEND, .send_flags = flags), 0);
}

START_TEST(test_armed_cq_calls_once)
{
	bed_connect(&bed, IBV_QPT_RC);
	deliver(0);
	wait_wc(b->rcq);
	ck_assert_int_eq(b->comp, 0);
	ck_assert_int_eq(uvd_backend_soft.req_notify_cq(b->rcq, false), 0);
	/* A completion that is already queued makes no event. */
	ck_assert_int_eq(b->comp, 0);
	deliver(0);
	deliver(0);
	wait_wc(b->rcq);
	wait_wc(b->rcq);
	ck_assert_int_eq(b->comp, 1);
}
END_TEST

START_TEST(test_solicited_only_waits_for_solicited_or_error)
{
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(uvd_backend_soft.req_notify_cq(b->rcq, true), 0);
	deliver(0);
	wait_wc(b->rcq);
	ck_assert_int_eq(b->comp, 0);
	deliver(IBV_SEND_SOLICITED);
	wait_until(b->comp == 1);
	ck_assert_int_eq(uvd_backend_soft.req_notify_cq(b->rcq, true), 0);
	ck_assert_int_eq(post_recv_at(b, 0xb, 0, 8), 0);
	ck_assert_int_eq(to_state(b, IBV_QPS_ERR), 0);
	ck_assert_int_eq(b->comp, 2);
}
END_TEST

START_TEST(test_arming_for_any_is_not_narrowed)
{
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(uvd_backend_soft.req_notify_cq(b->rcq, false), 0);
	ck_assert_int_eq(uvd_backend_soft.req_notify_cq(b->rcq, true), 0);
	deliver(0);
	wait_until(b->comp == 1);
}
END_TEST

START_TEST(test_cq_overrun_is_one_event)
{
	bed.cqe = 3; /* also of a mapped queue, which is rounded up */
	bed_connect(&bed, IBV_QPT_RC);
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(send_wr(a, .wr_id = i, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED),
				 0);
	wait_until(a->cq_event == 1 && uvd_backend_soft.query_cq_lost(a->scq) == 2);
	expect(a->scq, 0, IBV_WC_SUCCESS);
	expect(a->scq, 1, IBV_WC_SUCCESS);
	expect(a->scq, 2, IBV_WC_SUCCESS);
	expect_nothing(a->scq);
	ck_assert_uint_eq(uvd_backend_soft.query_cq_lost(b->scq), 0);
}
END_TEST

START_TEST(test_cq_overrun_by_several_at_once_is_one_event)
{
	bed.cqe = 2;
	bed_connect(&bed, IBV_QPT_RC);
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(post_recv_at(b, i, 0, 8), 0);
	ck_assert_int_eq(to_state(b, IBV_QPS_ERR), 0);
	ck_assert_int_eq(b->cq_event, 1);
	ck_assert_uint_eq(uvd_backend_soft.query_cq_lost(b->rcq), 5 - b->rcq->cqe);
}
END_TEST

START_TEST(test_cq_sizes)
{
	struct uvd_cq *cq;

	ck_assert_ptr_null(make_cq(a, 0));
	ck_assert_ptr_null(make_cq(a, 4097));
	cq = make_cq(a, 4096);
	ck_assert_ptr_nonnull(cq);
	ck_assert_int_eq(uvd_backend_soft.destroy_cq(cq), 0);
	free(cq);

	bed.cqe = 4;
	bed_connect(&bed, IBV_QPT_RC);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(send_wr(a, .wr_id = i, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED),
				 0);
	wait_wc(a->scq);
	wait_until(!soft_sq_count(soft_qp(a->qp)));
	ck_assert_int_eq(uvd_backend_soft.resize_cq(a->scq, 1, NULL), -EINVAL);
	ck_assert_int_eq(uvd_backend_soft.resize_cq(a->scq, 2, NULL), 0);
	ck_assert_int_eq(a->scq->cqe, 2);
	expect(a->scq, 1, IBV_WC_SUCCESS);
	expect(a->scq, 2, IBV_WC_SUCCESS);
}
END_TEST

/* ---- limits ------------------------------------------------------------------------------------------------------ */

START_TEST(test_qp_limits)
{
	struct ibv_qp_cap caps[] = {
		{ 257, 1, 1, 1, 0 }, { 1, 257, 1, 1, 0 }, { 1, 1, 9, 1, 0 },
		{ 1, 1, 1, 9, 0 },   { 1, 1, 1, 1, 257 }, { 0 },
	};
	struct uvd_qp_init_attr init = { .cap = { 256, 256, 8, 8, 256 } };
	int err;

	a->scq = a->rcq = make_cq(a, 8);
	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		struct uvd_qp_init_attr bad = { .cap = caps[i] };

		make_qp(a, IBV_QPT_RC, &bad, &err);
		ck_assert_int_eq(err, -EINVAL);
	}
	make_qp(a, IBV_QPT_DRIVER, &init, &err);
	ck_assert_int_eq(err, -EOPNOTSUPP);
	a->qp = make_qp(a, IBV_QPT_RC, &init, &err);
	ck_assert_int_eq(err, 0);
	ck_assert_uint_eq(init.cap.max_send_wr, 256);
	a->side->dev.config.limits.max_qp = 1;
	make_qp(a, IBV_QPT_RC, &init, &err);
	ck_assert_int_eq(err, -ENOMEM);
	a->side->dev.config.limits.max_mr = 1;
	ck_assert_ptr_null(make_mr(a, a->buf, 8, 0));
}
END_TEST

START_TEST(test_qp_numbers_are_not_used_again_at_once)
{
	uint32_t seen[3];

	for (int i = 0; i < 3; i++) {
		struct uvd_qp_init_attr init = { .cap = bed.cap };
		int err;

		if (!a->scq)
			a->scq = a->rcq = make_cq(a, 8);
		a->qp = make_qp(a, IBV_QPT_RC, &init, &err);
		ck_assert_int_eq(err, 0);
		seen[i] = a->qp->qp_num;
		free_qp(a);
	}
	ck_assert_uint_ge(seen[0], 2);
	ck_assert(seen[0] != seen[1] && seen[1] != seen[2] && seen[0] != seen[2]);
}
END_TEST

static void add_state_tests(TCase *t)
{
	tcase_add_test(t, test_error_flushes_in_order_and_later_posts_too);
	tcase_add_test(t, test_error_flushes_a_queue_that_is_refilled_only_once);
	tcase_add_test(t, test_reset_forgets_queues_and_the_qp_connects_again);
	tcase_add_test(t, test_post_that_the_state_refuses_is_never_carried_out);
	tcase_add_test(t, test_post_send_needs_rts);
	tcase_add_test(t, test_false_current_state_is_refused);
	add_own_queue_test(t, test_full_queues_are_enomem,
			   "the provider of mapped queues refuses the post, and not the engine");
	tcase_add_test(t, test_place_of_a_request_is_free_when_its_completion_is_told);
	add_own_queue_test(t, test_bad_requests_are_einval_and_name_the_first,
			   "in a mapped queue an invalid request is a completion, and no post that fails");
	tcase_add_test(t, test_sqd_holds_requests_back_and_says_when_drained);
	tcase_add_test(t, test_unsignalled_success_makes_no_completion);
	tcase_add_test(t, test_sq_sig_all_signals_everything);
	tcase_add_test(t, test_armed_cq_calls_once);
	tcase_add_test(t, test_solicited_only_waits_for_solicited_or_error);
	tcase_add_test(t, test_arming_for_any_is_not_narrowed);
	tcase_add_test(t, test_cq_overrun_is_one_event);
	tcase_add_test(t, test_cq_overrun_by_several_at_once_is_one_event);
	/* On the wire the other two requests may not have completed with the first. */
	if (!bed_is_on_wire())
		add_own_queue_test(t, test_cq_sizes, "the core resizes mapped queues: tests/objects/test_queue.c");
	add_own_queue_test(t, test_qp_limits, "the limit of SGEs is that of mapped queues");
	tcase_add_test(t, test_qp_numbers_are_not_used_again_at_once);
}

int main(void)
{
	TCase *t = tcase_create("qp");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 30);
	add_state_tests(t);
	return run_suite("backends: soft QPs and CQs", t);
}
