/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* XRC: a's initiator sends to b's target. Each request names the SRQ whose receives or PD it uses. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backends/soft/soft.h"
#include "tests/backends/bed.h"

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];
static const struct uvd_backend *const ops = &uvd_backend_soft;

/* Two receivers in b's XRC domain, like two processes: each has an SRQ with a CQ, a PD and memory of its own. */
static struct uvd_xrcd xrcd;
static struct uvd_pd *pd;
static struct uvd_mr *mr; /* the second receiver's, in its PD: 4096 bytes at OTHER */
static struct receiver {
	struct uvd_cq *cq;
	struct uvd_srq *srq;
} first, second;

enum { OTHER = 65536 };

static struct uvd_srq *make_xrc_srq(struct uvd_xrcd *domain, struct uvd_pd *its_pd, struct uvd_cq *cq, uint32_t limit)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 16, .max_sge = 2, .srq_limit = limit } };
	struct uvd_srq *srq = calloc(1, ops->size_srq);

	srq->pd = its_pd;
	srq->cq = cq;
	srq->xrcd = domain;
	srq->srq_type = IBV_SRQT_XRC;
	ck_assert_int_eq(ops->create_srq(srq, &init, NULL), 0);
	ck_assert_uint_ne(srq->srq_num, 0);
	return srq;
}

static void free_srq(struct uvd_srq **srq)
{
	if (!*srq)
		return;
	ck_assert_int_eq(ops->destroy_srq(*srq), 0);
	free(*srq);
	*srq = NULL;
}

static void make_ends(void)
{
	struct uvd_qp_init_attr init = { .cap = bed.cap };
	int err;

	a->scq = make_cq(a, 64);
	a->qp = make_qp(a, IBV_QPT_XRC_SEND, &init, &err);
	ck_assert_int_eq(err, 0);
	ck_assert_uint_eq(init.cap.max_recv_wr, 0);
	ck_assert_uint_eq(init.cap.max_send_wr, bed.cap.max_send_wr);
	b->xrcd = &xrcd;
	init = (struct uvd_qp_init_attr){ .cap = bed.cap };
	b->qp = make_qp(b, IBV_QPT_XRC_RECV, &init, &err);
	ck_assert_int_eq(err, 0);
	ck_assert_uint_eq(init.cap.max_send_wr, 0);
}

static void connect_ends(void)
{
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(to_init(&bed.end[i]), 0);
		ck_assert_int_eq(to_rtr(&bed.end[i], &bed.end[!i]), 0);
		ck_assert_int_eq(to_rts(&bed.end[i]), 0);
	}
}

static void setup(void)
{
	bed_open(&bed, ops, IBV_LINK_LAYER_INFINIBAND);
	memset(a->buf, 0x11, BUF_SIZE);
	xrcd = (struct uvd_xrcd){ .dev = &b->side->dev };
	ck_assert_int_eq(ops->alloc_xrcd(&xrcd, NULL), 0);
	pd = calloc(1, ops->size_pd);
	pd->context = b->side->context;
	ck_assert_int_eq(ops->alloc_pd(pd, NULL), 0);
	mr = make_mr(b, b->buf + OTHER, 4096, b->access);
	free_mr(mr);
	mr = calloc(1, ops->size_mr);
	*mr = (struct uvd_mr){ .pd = pd,
			       .umem.addr = (uintptr_t)b->buf + OTHER,
			       .umem.length = 4096,
			       .length = 4096,
			       .iova = (uintptr_t)b->buf + OTHER,
			       .access = b->access };
	ck_assert_int_eq(ops->reg_mr(mr, NULL), 0);
	first.cq = make_cq(b, 64);
	second.cq = make_cq(b, 64);
	first.srq = make_xrc_srq(&xrcd, b->side->pd, first.cq, 0);
	second.srq = make_xrc_srq(&xrcd, pd, second.cq, 0);
	make_ends();
	connect_ends();
}

static void free_cq(struct uvd_cq *cq)
{
	ck_assert_int_eq(ops->destroy_cq(cq), 0);
	free(cq);
}

static void teardown(void)
{
	free_qp(b);
	free_srq(&first.srq);
	free_srq(&second.srq);
	free_cq(first.cq);
	free_cq(second.cq);
	free_mr(mr);
	ck_assert_int_eq(ops->dealloc_pd(pd), 0);
	free(pd);
	ck_assert_int_eq(ops->dealloc_xrcd(&xrcd), 0);
	bed_close(&bed);
}

static int post_recv(struct uvd_srq *srq, uint64_t wr_id, size_t offset, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)b->buf + offset, length, srq == second.srq ? mr->lkey : b->mr->lkey };
	struct uvd_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };
	const struct uvd_recv_wr *bad;

	return bed_post_srq_recv(srq, &wr, &bad);
}

static void *post_wr(void *wr)
{
	ck_assert_int_eq(post_send_wr(a, wr), 0);
	return NULL;
}

static void send_to(uint32_t srqn, enum ibv_wr_opcode opcode, uint32_t length)
{
	struct ibv_sge sge = sge_at(a, 0, length);
	struct uvd_send_wr wr = wr_to(b, opcode, &sge, 1);

	wr.remote_srqn = srqn;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
}

START_TEST(test_each_message_goes_to_the_srq_that_it_names)
{
	struct ibv_wc wc;

	ck_assert_uint_ne(first.srq->srq_num, second.srq->srq_num);
	ck_assert_int_eq(post_recv(first.srq, 1, 0, 100), 0);
	ck_assert_int_eq(post_recv(second.srq, 2, OTHER, 100), 0);
	send_to(second.srq->srq_num, IBV_WR_SEND, 60);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	wc = expect(second.cq, 2, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.byte_len, 60);
	ck_assert_uint_eq(wc.qp_num, b->qp->qp_num);
	ck_assert_uint_eq(wc.src_qp, a->qp->qp_num);
	ck_assert_uint_eq(wc.opcode, IBV_WC_RECV);
	expect_nothing(first.cq);
	ck_assert_int_eq(b->buf[OTHER + 59], 0x11);
	ck_assert_int_eq(b->buf[OTHER + 60], 0);
	ck_assert_int_eq(b->buf[0], 0);
	send_to(first.srq->srq_num, IBV_WR_SEND_WITH_IMM, 10);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	ck_assert_uint_eq(expect(first.cq, 1, IBV_WC_SUCCESS).wc_flags, IBV_WC_WITH_IMM);
	expect_nothing(second.cq);
	ck_assert_int_eq(b->buf[9], 0x11);
}
END_TEST

/* 0, which no XRC SRQ has; a number that is not in use; and that of an SRQ of another domain. */
START_TEST(test_srq_number_that_is_not_of_the_domain_is_refused)
{
	struct uvd_xrcd other = { .dev = &b->side->dev };
	struct uvd_srq *stranger = make_xrc_srq(&other, b->side->pd, first.cq, 0);
	const uint32_t srqns[] = { 0, stranger->srq_num + 1, stranger->srq_num };

	ck_assert_int_eq(post_recv(stranger, 1, 0, 100), 0);
	send_to(srqns[_i], _i == 1 ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, 10);
	expect(a->scq, 0xa, IBV_WC_REM_INV_REQ_ERR);
	expect_why(a, "srq-unknown", "remote-refused");
	ck_assert_int_eq(state_of(b), IBV_QPS_ERR);
	ck_assert_int_eq(b->qp_event[IBV_EVENT_QP_REQ_ERR], 1);
	ck_assert_int_eq(b->qp_event[IBV_EVENT_QP_LAST_WQE_REACHED], 1);
	expect_nothing(first.cq);
	free_srq(&stranger);
}
END_TEST

/* The R_Key of a WRITE, READ or atomic must be of the named SRQ's PD, because the target has no PD. */
START_TEST(test_keys_are_those_of_the_srqs_pd)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						      IBV_WR_ATOMIC_FETCH_AND_ADD };
	struct ibv_sge sge = sge_at(a, 0, 8);
	struct uvd_send_wr wr = wr_to(b, opcodes[_i], &sge, 1);

	wr.remote_addr = (uintptr_t)b->buf + OTHER;
	wr.rkey = mr->rkey;
	wr.compare_add = 0x2222222222222222;
	wr.remote_srqn = second.srq->srq_num;
	memset(b->buf + OTHER, 0x33, 8);
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	ck_assert_int_eq(b->buf[OTHER], _i == 0 ? 0x11 : _i == 1 ? 0x33 : 0x55);
	ck_assert_int_eq(a->buf[0], _i == 0 ? 0x11 : 0x33);
	wr.remote_srqn = first.srq->srq_num;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_REM_ACCESS_ERR);
	ck_assert_int_eq(b->qp_event[IBV_EVENT_QP_ACCESS_ERR], 1);
}
END_TEST

/* The windows of a's QP: nobody reads through them, as no request reaches an XRC_SEND QP. */
START_TEST(test_xrc_qp_binds_and_invalidates_windows)
{
	struct uvd_mr *region = make_mr(a, a->buf, BUF_SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct uvd_mw *mw = calloc(1, ops->size_mw);

	mw->pd = a->side->pd;
	mw->type = IBV_MW_TYPE_2;
	ck_assert_int_eq(ops->alloc_mw(mw, NULL), 0);
	ck_assert_int_eq(send_wr(a, .wr_id = 1, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
				 .bind = { .mw_rkey = mw->rkey,
					   .mr_lkey = region->lkey,
					   .length = 8,
					   .addr = (uintptr_t)a->buf,
					   .access = IBV_ACCESS_REMOTE_READ }),
			 0);
	expect(a->scq, 1, IBV_WC_SUCCESS);
	ck_assert_int_eq(ops->dereg_mr(region), -EINVAL); /* as a window is bound to it */
	ck_assert_int_eq(send_wr(a, .wr_id = 2, .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = mw->rkey & ~0xffu,
				 .send_flags = IBV_SEND_SIGNALED),
			 0);
	expect(a->scq, 2, IBV_WC_SUCCESS);
	free_mr(region);
	ck_assert_int_eq(ops->dealloc_mw(mw), 0);
	free(mw);
}
END_TEST

START_TEST(test_xrc_send_with_invalidate_of_a_wrong_key_ends_the_receive)
{
	ck_assert_int_eq(post_recv(first.srq, 1, 0, 100), 0);
	ck_assert_int_eq(send_wr(a, .wr_id = 0xa, .opcode = IBV_WR_SEND_WITH_INV, .send_flags = IBV_SEND_SIGNALED,
				 .invalidate_rkey = b->mr->rkey, .remote_srqn = first.srq->srq_num),
			 0);
	expect(first.cq, 1, IBV_WC_REM_INV_REQ_ERR);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
	ck_assert_int_eq(state_of(b), IBV_QPS_ERR);
}
END_TEST

START_TEST(test_write_with_immediate_takes_a_receive_of_the_srq)
{
	struct ibv_sge sge = sge_at(a, 0, 8);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_RDMA_WRITE_WITH_IMM, &sge, 1);

	wr.remote_addr = (uintptr_t)b->buf + OTHER + 100;
	wr.rkey = mr->rkey;
	wr.remote_srqn = second.srq->srq_num;
	ck_assert_int_eq(post_recv(second.srq, 7, OTHER, 4), 0);
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	ck_assert_int_eq(expect(second.cq, 7, IBV_WC_SUCCESS).opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	ck_assert_int_eq(b->buf[OTHER + 107], 0x11);
	ck_assert_int_eq(b->buf[OTHER], 0);
}
END_TEST

START_TEST(test_sender_waits_for_a_receive_of_the_very_srq)
{
	send_to(second.srq->srq_num, IBV_WR_SEND, 8);
	ck_assert_int_eq(post_recv(first.srq, 1, 0, 8), 0);
	usleep(20000);
	expect_nothing(a->scq);
	expect_nothing(first.cq);
	ck_assert_int_eq(post_recv(second.srq, 2, OTHER, 8), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	expect(second.cq, 2, IBV_WC_SUCCESS);
}
END_TEST

/* When the SRQ is destroyed the waiting request is retried, and refused: its SRQ number is no longer valid. */
START_TEST(test_srq_that_goes_while_a_target_waits_at_it)
{
	struct uvd_srq *third = make_xrc_srq(&xrcd, b->side->pd, first.cq, 0);
	uint32_t srqn = third->srq_num;

	send_to(srqn, IBV_WR_SEND, 8);
	usleep(2000);
	expect_nothing(a->scq);
	free_srq(&third);
	expect(a->scq, 0xa, IBV_WC_REM_INV_REQ_ERR);
}
END_TEST

START_TEST(test_target_that_goes_while_it_waits_leaves_the_srq)
{
	struct uvd_qp_init_attr init = { .cap = bed.cap };
	int err;

	send_to(second.srq->srq_num, IBV_WR_SEND, 8);
	usleep(2000);
	free_qp(b);
	ck_assert_int_eq(post_recv(second.srq, 2, OTHER, 8), 0);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
	expect_nothing(second.cq);
	b->qp = make_qp(b, IBV_QPT_XRC_RECV, &init, &err);
	ck_assert_int_eq(err, 0);
}
END_TEST

START_TEST(test_message_longer_than_the_receive_fails_at_both_ends)
{
	ck_assert_int_eq(post_recv(second.srq, 2, OTHER, 8), 0);
	send_to(second.srq->srq_num, IBV_WR_SEND, 9);
	expect(a->scq, 0xa, IBV_WC_REM_INV_REQ_ERR);
	expect(second.cq, 2, IBV_WC_LOC_LEN_ERR);
	ck_assert_int_eq(state_of(a), IBV_QPS_ERR);
	ck_assert_int_eq(state_of(b), IBV_QPS_ERR);
}
END_TEST

/*
 * The sender's memory is bad in the second chunk, when the message has taken its receive. The next message may name
 * another SRQ, so that receive is flushed.
 */
START_TEST(test_message_that_breaks_off_gives_its_receive_up)
{
	ck_assert_int_eq(post_recv(first.srq, 1, 0, 2 * SOFT_CHUNK), 0);
	mm_bad = (uintptr_t)a->buf + SOFT_CHUNK;
	mm_bad_len = 4;
	send_to(first.srq->srq_num, IBV_WR_SEND, 2 * SOFT_CHUNK);
	expect(a->scq, 0xa, IBV_WC_LOC_PROT_ERR);
	expect_nothing(first.cq);
	mm_bad_len = 0;
	/* Reset the sender only: the target does not learn that the message was cut off. */
	ck_assert_int_eq(to_state(a, IBV_QPS_RESET) | to_init(a) | to_rtr(a, b) | to_rts(a), 0);
	ck_assert_int_eq(post_recv(second.srq, 2, OTHER, 100), 0);
	send_to(second.srq->srq_num, IBV_WR_SEND, 8);
	expect(second.cq, 2, IBV_WC_SUCCESS);
	expect(first.cq, 1, IBV_WC_WR_FLUSH_ERR);
}
END_TEST

/*
 * The SRQ that a WRITE, READ or SEND of two chunks names is destroyed between the two, while the engine waits for a's memory.
 * With it the PD is gone that the R_Key was of.
 */
START_TEST(test_srq_that_goes_between_two_chunks)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND };
	struct uvd_srq *third = make_xrc_srq(&xrcd, b->side->pd, first.cq, 0);
	struct ibv_sge sge = sge_at(a, 0, 2 * SOFT_CHUNK);
	struct uvd_send_wr wr = wr_to(b, opcodes[_i], &sge, 1);
	pthread_t poster;

	ck_assert_int_eq(post_recv(third, 1, 0, 2 * SOFT_CHUNK), 0);
	wr.remote_srqn = third->srq_num;
	/* A READ writes into a's memory when it has left its peer; others have moved their first chunk then. */
	mm_slow = (uintptr_t)a->buf + (opcodes[_i] == IBV_WR_RDMA_READ ? 0 : SOFT_CHUNK);
	mm_slow_len = 4;
	ck_assert_int_eq(pthread_create(&poster, NULL, post_wr, &wr), 0);
	while (!mm_slowed)
		usleep(100);
	free_srq(&third);
	mm_slow_len = 0;
	pthread_join(poster, NULL);
	expect(a->scq, 0xa, IBV_WC_REM_INV_REQ_ERR);
	ck_assert_int_eq(state_of(b), IBV_QPS_ERR);
	ck_assert_int_eq(b->qp_event[IBV_EVENT_QP_REQ_ERR], 1);
	expect_nothing(first.cq);
}
END_TEST

/* The mover is given up in the memory of the SRQ's client: no thread but that one waits for it any more. */
START_TEST(test_srq_goes_while_a_message_that_was_given_up_is_in_its_memory)
{
	struct uvd_srq *third = make_xrc_srq(&xrcd, b->side->pd, first.cq, 0);
	struct ibv_sge sge = sge_at(a, 0, 64);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_SEND, &sge, 1);
	pthread_t poster;

	bed.fabric->movers.patience_ns = 1;
	ck_assert_int_eq(post_recv(third, 1, 0, 64), 0);
	wr.remote_srqn = third->srq_num;
	mm_slow = (uintptr_t)b->buf;
	mm_slow_len = 4;
	ck_assert_int_eq(pthread_create(&poster, NULL, post_wr, &wr), 0);
	expect(first.cq, 1, IBV_WC_LOC_PROT_ERR);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
	free_srq(&third);
	ck_assert_int_eq(mm_slowed, 1);
	mm_slow_len = 0;
	pthread_join(poster, NULL);
}
END_TEST

static atomic_uint limits;

static void count_limit(struct uvd_srq *srq, enum ibv_event_type type)
{
	ck_assert_int_eq(type, IBV_EVENT_SRQ_LIMIT_REACHED);
	limits++;
}

START_TEST(test_limit_of_an_xrc_srq_is_reached_once)
{
	struct uvd_srq *third = make_xrc_srq(&xrcd, b->side->pd, first.cq, 2);

	third->event_handler = count_limit;
	ck_assert_int_eq(post_recv(third, 1, 0, 8), 0);
	ck_assert_int_eq(post_recv(third, 2, 0, 8), 0);
	ck_assert_int_eq(post_recv(third, 3, 0, 8), 0);
	for (unsigned int i = 1; i <= 3; i++) {
		send_to(third->srq_num, IBV_WR_SEND, 8);
		expect(first.cq, i, IBV_WC_SUCCESS);
		expect(a->scq, 0xa, IBV_WC_SUCCESS);
		/* The first receive leaves two, which is the limit; the second leaves fewer. */
		ck_assert_uint_eq(limits, i >= 2);
	}
	free_srq(&third);
}
END_TEST

START_TEST(test_neither_end_has_receives_of_its_own_and_a_target_sends_nothing)
{
	struct ibv_sge sge = sge_at(b, 0, 8);
	struct uvd_send_wr wr = wr_to(a, IBV_WR_SEND, &sge, 1);

	ck_assert_int_eq(post_recv_at(a, 1, 0, 8), -EINVAL);
	ck_assert_int_eq(post_recv_at(b, 1, 0, 8), -EINVAL);
	ck_assert_int_eq(post_send_wr(b, &wr), -EINVAL);
}
END_TEST

/* A new SRQ gets the next higher number, although lower ones are free. */
START_TEST(test_srq_numbers_are_not_used_again_soon)
{
	uint32_t before = second.srq->srq_num;
	struct uvd_srq *srq = NULL;

	for (int i = 0; i < 5; i++) {
		srq = make_xrc_srq(&xrcd, pd, first.cq, 0);
		ck_assert_uint_gt(srq->srq_num, before);
		before = srq->srq_num;
		free_srq(&srq);
	}
}
END_TEST

/* Numbers have 24 bits. After the last one comes 1, as 0 means no SRQ, and a number that is in use is passed over. */
START_TEST(test_srq_numbers_begin_again_with_1)
{
	static const uint32_t expected[] = { 0xffffff, 1, 3 };
	struct uvd_srq *srqs[UVD_COUNT(expected)];

	ck_assert(first.srq->srq_num == 1 && second.srq->srq_num == 2);
	free_srq(&first.srq);
	((struct soft_srq *)second.srq)->dev->endpoints->srqns.next = 0xffffff;
	for (unsigned int i = 0; i < UVD_COUNT(expected); i++) {
		srqs[i] = make_xrc_srq(&xrcd, pd, first.cq, 0);
		ck_assert_uint_eq(srqs[i]->srq_num, expected[i]);
	}
	for (unsigned int i = 0; i < UVD_COUNT(expected); i++)
		free_srq(&srqs[i]);
}
END_TEST

/* One thread sends, and posts receives to the second SRQ. Another creates and destroys SRQs that are sent to. */
struct churn {
	atomic_bool stop;
	atomic_uint srqn;
};

static void *make_and_end(void *arg)
{
	struct churn *churn = arg;

	while (!churn->stop) {
		struct uvd_srq *srq = make_xrc_srq(&xrcd, b->side->pd, first.cq, 0);

		ck_assert_int_eq(post_recv(srq, 3, 1000, 64), 0);
		churn->srqn = srq->srq_num;
		usleep(100);
		free_srq(&srq);
	}
	return NULL;
}

START_TEST(test_srqs_come_and_go_under_traffic)
{
	struct churn churn = { 0 };
	pthread_t thread;
	struct ibv_wc wc;
	int sent = 0;

	ck_assert_int_eq(pthread_create(&thread, NULL, make_and_end, &churn), 0);
	while (!churn.srqn)
		usleep(10);
	for (int i = 0; i < 1500; i++) {
		send_to(i % 3 ? churn.srqn : second.srq->srq_num, IBV_WR_SEND, 32);
		if (i % 3 == 0)
			ck_assert_int_eq(post_recv(second.srq, i, OTHER, 64), 0);
		wc = wait_wc(a->scq);
		sent += wc.status == IBV_WC_SUCCESS;
		while (poll_cq(first.cq, &wc) || poll_cq(second.cq, &wc))
			;
		if (state_of(a) != IBV_QPS_ERR)
			continue;
		for (int e = 0; e < 2; e++)
			ck_assert_int_eq(to_state(&bed.end[e], IBV_QPS_RESET), 0);
		for (int e = 0; e < 2; e++) {
			ck_assert_int_eq(to_init(&bed.end[e]) | to_rtr(&bed.end[e], &bed.end[!e]), 0);
			ck_assert_int_eq(to_rts(&bed.end[e]), 0);
		}
	}
	churn.stop = true;
	pthread_join(thread, NULL);
	ck_assert_int_ge(sent, 100);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("xrc");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_each_message_goes_to_the_srq_that_it_names);
	tcase_add_loop_test(t, test_srq_number_that_is_not_of_the_domain_is_refused, 0, 3);
	tcase_add_loop_test(t, test_keys_are_those_of_the_srqs_pd, 0, 3);
	tcase_add_test(t, test_xrc_qp_binds_and_invalidates_windows);
	tcase_add_test(t, test_xrc_send_with_invalidate_of_a_wrong_key_ends_the_receive);
	tcase_add_test(t, test_write_with_immediate_takes_a_receive_of_the_srq);
	tcase_add_test(t, test_sender_waits_for_a_receive_of_the_very_srq);
	tcase_add_test(t, test_srq_that_goes_while_a_target_waits_at_it);
	tcase_add_test(t, test_target_that_goes_while_it_waits_leaves_the_srq);
	tcase_add_test(t, test_message_longer_than_the_receive_fails_at_both_ends);
	add_local_test(t, test_message_that_breaks_off_gives_its_receive_up,
		       "a sender that begins again with its first PSN sends copies");
	tcase_add_loop_test(t, test_srq_that_goes_between_two_chunks, 0, 3);
	tcase_add_test(t, test_srq_goes_while_a_message_that_was_given_up_is_in_its_memory);
	tcase_add_test(t, test_limit_of_an_xrc_srq_is_reached_once);
	tcase_add_test(t, test_neither_end_has_receives_of_its_own_and_a_target_sends_nothing);
	tcase_add_test(t, test_srq_numbers_are_not_used_again_soon);
	tcase_add_test(t, test_srq_numbers_begin_again_with_1);
	tcase_add_test(t, test_srqs_come_and_go_under_traffic);
	return run_suite("soft: XRC", t);
}
