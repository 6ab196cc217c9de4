/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared receive queues, and the events that QPs and SRQs report once. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backends/soft/soft.h"
#include "tests/backends/bed.h"

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];
static const struct uvd_backend *const ops = &uvd_backend_soft;

static void setup(void)
{
	bed_open(&bed, ops, IBV_LINK_LAYER_INFINIBAND);
	memset(a->buf, 0x11, BUF_SIZE);
	ck_assert_int_eq(make_srq(b, 16, 2, 0), 0);
}

static void teardown(void)
{
	bed_close(&bed);
}

/* A second pair of QPs whose receiver shares b's SRQ. */
static struct end c, d;

static void make_second_pair(enum ibv_qp_type type)
{
	struct uvd_qp_init_attr init = { .cap = bed.cap };
	int err;

	memcpy(&c, a, sizeof(c));
	memcpy(&d, b, sizeof(d));
	c.qp = make_qp(&c, type, &init, &err);
	ck_assert_int_eq(err, 0);
	init = (struct uvd_qp_init_attr){ .cap = bed.cap };
	d.qp = make_qp(&d, type, &init, &err);
	ck_assert_int_eq(err, 0);
	ck_assert_int_eq(to_init(&c) | to_rtr(&c, &d) | to_rts(&c), 0);
	ck_assert_int_eq(to_init(&d) | to_rtr(&d, &c) | to_rts(&d), 0);
}

static void free_second_pair(void)
{
	free_qp(&c);
	free_qp(&d);
}

START_TEST(test_srq_sizes_are_checked)
{
	static const struct {
		uint32_t max_wr, max_sge;
		int err;
	} rows[] = {
		{ 0, 1, -EINVAL }, { 1, 0, -EINVAL }, { 257, 1, -EINVAL },
		{ 1, 5, -EINVAL }, { 256, 4, 0 },     { 1, 1, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct end other = *a;

		other.srq = NULL;
		ck_assert_int_eq(make_srq(&other, rows[i].max_wr, rows[i].max_sge, 0), rows[i].err);
		if (other.srq) {
			ck_assert_int_eq(ops->destroy_srq(other.srq), 0);
			free(other.srq);
		}
	}
}
END_TEST

START_TEST(test_full_srq_is_enomem_and_too_many_sges_einval)
{
	struct ibv_sge sges[3] = { sge_at(b, 0, 8), sge_at(b, 8, 8), sge_at(b, 16, 8) };
	struct uvd_recv_wr wr = { .sg_list = sges, .num_sge = 3 };
	const struct uvd_recv_wr *bad = NULL;

	ck_assert_int_eq(bed_post_srq_recv(b->srq, &wr, &bad), -EINVAL);
	ck_assert_ptr_eq(bad, &wr);
	for (int i = 0; i < 16; i++)
		ck_assert_int_eq(post_srq_at(b, i, 0, 8), 0);
	ck_assert_int_eq(post_srq_at(b, 16, 0, 8), -ENOMEM);
}
END_TEST

START_TEST(test_qps_of_each_type_take_receives_in_order)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC };

	bed_connect(&bed, types[_i]);
	make_second_pair(types[_i]);
	ck_assert_int_eq(post_srq_at(b, 1, 0, 100), 0);
	ck_assert_int_eq(post_srq_at(b, 2, 1000, 100), 0);
	ck_assert_int_eq(post_srq_at(b, 3, 2000, 100), 0);
	/* Two connections have no order: each message is waited for. */
	send_small(a, b, IBV_WR_SEND, 100);
	ck_assert_uint_eq(expect(b->rcq, 1, IBV_WC_SUCCESS).qp_num, b->qp->qp_num);
	send_small(&c, &d, IBV_WR_SEND, 50);
	ck_assert_uint_eq(expect(b->rcq, 2, IBV_WC_SUCCESS).qp_num, d.qp->qp_num);
	send_small(a, b, IBV_WR_RDMA_WRITE_WITH_IMM, 10);
	ck_assert_uint_eq(expect(b->rcq, 3, IBV_WC_SUCCESS).opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	ck_assert_int_eq(b->buf[99], 0x11);
	ck_assert_int_eq(b->buf[100], 0);
	ck_assert_int_eq(b->buf[1049], 0x11);
	ck_assert_int_eq(b->buf[1050], 0);
	ck_assert_int_eq(b->buf[2000], 0);
	free_second_pair();
}
END_TEST

START_TEST(test_ud_takes_receives_of_the_srq)
{
	struct uvd_ah *ah = calloc(1, ops->size_ah);
	struct ibv_sge sge = sge_at(a, 0, 100);

	ah->pd = a->side->pd;
	ah->attr = bed_address_of(b);
	ck_assert_int_eq(ops->create_ah(ah, NULL), 0);
	bed_connect(&bed, IBV_QPT_UD);
	ck_assert_int_eq(post_srq_at(b, 1, 0, 140), 0);
	ck_assert_int_eq(send_wr(a, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1, .ah = ah,
				 .remote_qpn = b->qp->qp_num, .remote_qkey = 0x1234),
			 0);
	ck_assert_uint_eq(expect(b->rcq, 1, IBV_WC_SUCCESS).byte_len, 140);
	ck_assert_int_eq(ops->destroy_ah(ah), 0);
	free(ah);
}
END_TEST

START_TEST(test_post_recv_to_a_qp_with_srq_is_einval)
{
	struct uvd_qp_init_attr init;
	struct ibv_qp_attr attr;

	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_recv_at(b, 1, 0, 8), -EINVAL);
	ck_assert_int_eq(ops->query_qp(b->qp, &attr, IBV_QP_CAP, &init), 0);
	ck_assert_uint_eq(attr.cap.max_recv_wr, 0);
}
END_TEST

/*
 * Returns when the sender waits and no thread is about to retry its request. A receive for another QP makes it retry in
 * vain, and the thread that carried out its last request tries the next one a moment later.
 */
static void wait_until_it_waits(struct end *sender)
{
	struct soft_qp *qp = soft_qp(sender->qp);

	pthread_mutex_lock(&qp->lock);
	while (qp->s_wait == SOFT_WAIT_NONE || qp->s_busy || qp->s_deferred || qp->s_kicked) {
		pthread_mutex_unlock(&qp->lock);
		usleep(100);
		pthread_mutex_lock(&qp->lock);
	}
	pthread_mutex_unlock(&qp->lock);
}

/* Both senders wait. Receives are posted one by one, and each goes to the sender that has waited longest. */
START_TEST(test_senders_that_found_it_empty_go_on_when_receives_come)
{
	b->min_rnr_timer = 0; /* 655 ms: the posts of receives, not the timer, must cause the retries */
	bed_connect(&bed, IBV_QPT_RC);
	make_second_pair(IBV_QPT_RC);
	send_small(a, b, IBV_WR_SEND, 100);
	send_small(&c, &d, IBV_WR_SEND, 100);
	expect_nothing(a->scq);
	wait_until_it_waits(a);
	wait_until_it_waits(&c);
	ck_assert_int_eq(post_srq_at(b, 1, 0, 100), 0);
	ck_assert_uint_eq(expect(b->rcq, 1, IBV_WC_SUCCESS).qp_num, b->qp->qp_num);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	wait_until_it_waits(&c);
	send_small(a, b, IBV_WR_SEND, 100);
	wait_until_it_waits(a);
	ck_assert_int_eq(post_srq_at(b, 2, 0, 100), 0);
	ck_assert_uint_eq(expect(b->rcq, 2, IBV_WC_SUCCESS).qp_num, d.qp->qp_num);
	ck_assert_int_eq(post_srq_at(b, 3, 0, 100), 0);
	ck_assert_uint_eq(expect(b->rcq, 3, IBV_WC_SUCCESS).qp_num, b->qp->qp_num);
	free_second_pair();
}
END_TEST

START_TEST(test_a_list_of_receives_lets_as_many_senders_go_on)
{
	struct ibv_sge sge = sge_at(b, 0, 100);
	struct uvd_recv_wr second = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 }, first = second;
	const struct uvd_recv_wr *bad;

	b->min_rnr_timer = 0; /* 655 ms: the post of the receives, not the timer, must cause the retries */
	bed_connect(&bed, IBV_QPT_RC);
	make_second_pair(IBV_QPT_RC);
	send_small(a, b, IBV_WR_SEND, 100);
	send_small(&c, &d, IBV_WR_SEND, 100);
	first.wr_id = 1;
	first.next = &second;
	ck_assert_int_eq(bed_post_srq_recv(b->srq, &first, &bad), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(wait_wc(b->rcq).status, IBV_WC_SUCCESS);
	free_second_pair();
}
END_TEST

START_TEST(test_qp_that_waits_in_the_srq_may_be_destroyed)
{
	bed_connect(&bed, IBV_QPT_RC);
	make_second_pair(IBV_QPT_RC);
	send_small(&c, &d, IBV_WR_SEND, 100);
	send_small(a, b, IBV_WR_SEND, 100);
	free_second_pair();
	ck_assert_int_eq(post_srq_at(b, 1, 0, 100), 0);
	ck_assert_uint_eq(expect(b->rcq, 1, IBV_WC_SUCCESS).qp_num, b->qp->qp_num);
}
END_TEST

START_TEST(test_keys_are_of_the_srqs_pd)
{
	struct uvd_pd *pd = calloc(1, ops->size_pd), *old = b->side->pd;
	struct uvd_mr *mr;

	/* The QP belongs to the old PD, and so does the key that must be refused. */
	ck_assert_int_eq(ops->destroy_srq(b->srq), 0);
	free(b->srq);
	pd->context = b->side->context;
	ck_assert_int_eq(ops->alloc_pd(pd, NULL), 0);
	b->side->pd = pd;
	ck_assert_int_eq(make_srq(b, 16, 1, 0), 0);
	mr = make_mr(b, b->buf, BUF_SIZE, IBV_ACCESS_LOCAL_WRITE);
	b->side->pd = old;
	bed_connect(&bed, IBV_QPT_RC);

	struct ibv_sge sge = { (uintptr_t)b->buf, 100, mr->lkey };
	struct uvd_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 };
	const struct uvd_recv_wr *bad;

	ck_assert_int_eq(bed_post_srq_recv(b->srq, &wr, &bad), 0);
	ck_assert_int_eq(post_srq_at(b, 2, 0, 100), 0);
	send_small(a, b, IBV_WR_SEND, 100);
	expect(b->rcq, 1, IBV_WC_SUCCESS);
	send_small(a, b, IBV_WR_SEND, 100);
	expect(b->rcq, 2, IBV_WC_LOC_PROT_ERR);

	free_qp(b);
	ck_assert_int_eq(ops->destroy_srq(b->srq), 0);
	free(b->srq);
	b->srq = NULL;
	free_mr(mr);
	ck_assert_int_eq(ops->dealloc_pd(pd), 0);
	free(pd);
}
END_TEST

/* ---- modify, query, limit ---------------------------------------------------------------------------------------- */

static int modify(int mask, uint32_t max_wr, uint32_t limit)
{
	return ops->modify_srq(b->srq, &(struct ibv_srq_attr){ .max_wr = max_wr, .srq_limit = limit }, mask, NULL);
}

static struct ibv_srq_attr query(void)
{
	struct ibv_srq_attr attr;

	ck_assert_int_eq(ops->query_srq(b->srq, &attr), 0);
	return attr;
}

START_TEST(test_limit_event_comes_once_below_the_limit)
{
	bed_connect(&bed, IBV_QPT_RC);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(post_srq_at(b, i, 0, 100), 0);
	ck_assert_int_eq(modify(IBV_SRQ_LIMIT, 0, 3), 0);
	ck_assert_uint_eq(query().srq_limit, 3);
	send_small(a, b, IBV_WR_SEND, 1);
	wait_wc(b->rcq);
	ck_assert_int_eq(b->srq_event[IBV_EVENT_SRQ_LIMIT_REACHED], 0);
	send_small(a, b, IBV_WR_SEND, 1);
	wait_until(b->srq_event[IBV_EVENT_SRQ_LIMIT_REACHED] == 1);
	ck_assert_uint_eq(query().srq_limit, 0);
	send_small(a, b, IBV_WR_SEND, 1);
	wait_wc(b->rcq);
	wait_wc(b->rcq);
	ck_assert_int_eq(b->srq_event[IBV_EVENT_SRQ_LIMIT_REACHED], 1);
}
END_TEST

START_TEST(test_limit_over_the_size_is_einval)
{
	const uint32_t size = query().max_wr;

	ck_assert_uint_ge(size, 16);
	ck_assert_int_eq(modify(IBV_SRQ_LIMIT, 0, size + 1), -EINVAL);
	ck_assert_uint_eq(query().srq_limit, 0);
	ck_assert_int_eq(modify(IBV_SRQ_LIMIT, 0, size), 0);
	ck_assert_uint_eq(query().srq_limit, size);
}
END_TEST

START_TEST(test_resize_below_the_limit_is_einval)
{
	ck_assert_int_eq(modify(IBV_SRQ_LIMIT, 0, 16), 0);
	ck_assert_int_eq(modify(IBV_SRQ_MAX_WR, 15, 0), -EINVAL);
	ck_assert_int_eq(modify(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT, 15, 15), 0);
	ck_assert_int_eq(modify(IBV_SRQ_MAX_WR, 257, 0), -EINVAL);
	ck_assert_uint_eq(query().max_wr, 15);
	ck_assert_uint_eq(query().srq_limit, 15);
	ck_assert_uint_eq(query().max_sge, 2);
}
END_TEST

START_TEST(test_resize_keeps_what_is_queued_in_order)
{
	bed_connect(&bed, IBV_QPT_RC);
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(post_srq_at(b, i, 100 * i, 100), 0);
	send_small(a, b, IBV_WR_SEND, 1);
	expect(b->rcq, 0, IBV_WC_SUCCESS);
	ck_assert_int_eq(modify(IBV_SRQ_MAX_WR, 8, 0), -EINVAL);
	ck_assert_int_eq(modify(IBV_SRQ_MAX_WR, 9, 0), 0);
	ck_assert_int_eq(post_srq_at(b, 10, 0, 100), -ENOMEM);
	ck_assert_int_eq(modify(IBV_SRQ_MAX_WR, 256, 0), 0);
	ck_assert_int_eq(post_srq_at(b, 10, 1000, 100), 0);
	for (int i = 1; i <= 10; i++) {
		send_small(a, b, IBV_WR_SEND, 100);
		expect(b->rcq, i, IBV_WC_SUCCESS);
		ck_assert_int_eq(b->buf[100 * i + 99], 0x11);
	}
}
END_TEST

/* ---- events of QPs ----------------------------------------------------------------------------------------------- */

START_TEST(test_error_leaves_the_srq_alone_and_says_last_wqe_once)
{
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_srq_at(b, 1, 0, 100), 0);
	ck_assert_int_eq(to_state(b, IBV_QPS_ERR), 0);
	ck_assert_int_eq(b->qp_event[IBV_EVENT_QP_LAST_WQE_REACHED], 1);
	ck_assert_int_eq(to_state(b, IBV_QPS_ERR), 0);
	ck_assert_int_eq(b->qp_event[IBV_EVENT_QP_LAST_WQE_REACHED], 1);
	expect_nothing(b->rcq);
	/* The other end has no SRQ. */
	ck_assert_int_eq(to_state(a, IBV_QPS_ERR), 0);
	ck_assert_int_eq(a->qp_event[IBV_EVENT_QP_LAST_WQE_REACHED], 0);
	/* After a reset the event is reported again. */
	ck_assert_int_eq(to_state(a, IBV_QPS_RESET) | to_state(b, IBV_QPS_RESET), 0);
	bed_connect(&bed, IBV_QPT_RC);
	send_small(a, b, IBV_WR_SEND, 100);
	expect(b->rcq, 1, IBV_WC_SUCCESS);
	ck_assert_int_eq(to_state(b, IBV_QPS_ERR), 0);
	ck_assert_int_eq(b->qp_event[IBV_EVENT_QP_LAST_WQE_REACHED], 2);
}
END_TEST

START_TEST(test_message_too_long_ends_its_own_receive_only)
{
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_srq_at(b, 1, 0, 10), 0);
	ck_assert_int_eq(post_srq_at(b, 2, 0, 10), 0);
	send_small(a, b, IBV_WR_SEND, 100);
	expect(b->rcq, 1, IBV_WC_LOC_LEN_ERR);
	expect_nothing(b->rcq);
	wait_until(b->qp_event[IBV_EVENT_QP_LAST_WQE_REACHED] == 1);
}
END_TEST

START_TEST(test_first_message_before_rts_says_established_once)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC };

	bed_make_qps(&bed, types[_i]);
	ck_assert_int_eq(to_init(a) | to_rtr(a, b) | to_rts(a) | to_init(b) | to_rtr(b, a), 0);
	ck_assert_int_eq(b->qp_event[IBV_EVENT_COMM_EST], 0);
	send_small(a, b, IBV_WR_RDMA_WRITE, 10);
	send_small(a, b, IBV_WR_RDMA_WRITE, 10);
	wait_until(b->qp_event[IBV_EVENT_COMM_EST] == 1);
	ck_assert_int_eq(to_rts(b), 0);
	send_small(a, b, IBV_WR_RDMA_WRITE, 10);
	wait_until(b->qp_event[IBV_EVENT_COMM_EST] == 1);
	ck_assert_int_eq(a->qp_event[IBV_EVENT_COMM_EST], 0);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("srq");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 30);
	tcase_add_test(t, test_srq_sizes_are_checked);
	add_own_queue_test(t, test_full_srq_is_enomem_and_too_many_sges_einval, "a mapped queue is rounded up");
	tcase_add_loop_test(t, test_qps_of_each_type_take_receives_in_order, 0, 2);
	tcase_add_test(t, test_ud_takes_receives_of_the_srq);
	tcase_add_test(t, test_post_recv_to_a_qp_with_srq_is_einval);
	if (!bed_is_on_wire()) /* the post of a receive makes no packet */
		add_own_queue_test(t, test_senders_that_found_it_empty_go_on_when_receives_come,
				   "the engine does not see the post, so the order of the senders is open");
	add_local_test(t, test_a_list_of_receives_lets_as_many_senders_go_on, "the post of a receive makes no packet");
	tcase_add_test(t, test_qp_that_waits_in_the_srq_may_be_destroyed);
	tcase_add_test(t, test_keys_are_of_the_srqs_pd);
	tcase_add_test(t, test_limit_event_comes_once_below_the_limit);
	tcase_add_test(t, test_limit_over_the_size_is_einval);
	add_own_queue_test(t, test_resize_below_the_limit_is_einval,
			   "the core resizes mapped queues: tests/objects/test_queue.c");
	add_own_queue_test(t, test_resize_keeps_what_is_queued_in_order,
			   "the core resizes mapped queues: tests/objects/test_queue.c");
	tcase_add_test(t, test_error_leaves_the_srq_alone_and_says_last_wqe_once);
	tcase_add_test(t, test_message_too_long_ends_its_own_receive_only);
	tcase_add_loop_test(t, test_first_message_before_rts_says_established_once, 0, 2);
	return run_suite("backends: soft SRQ", t);
}
