/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A burst of small requests of an RC queue has the same results as the requests one by one. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uverbsd/queue.h>
#include "tests/backends/bed.h"

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];

enum { N = 40, SIZE = 100, TO = 128 * 1024 /* where writes go */ };

static struct ibv_sge sges[N];
static struct uvd_send_wr wrs[N];

static void make_all(void)
{
	for (int i = 0; i < BUF_SIZE; i++)
		a->buf[i] = i * 7 + i / 251;
	bed.cap.max_send_wr = bed.cap.max_recv_wr = 64;
	bed.cap.max_send_sge = bed.cap.max_recv_sge = 2;
	bed.cap.max_inline_data = 64;
	bed.cqe = 256;
	bed_connect(&bed, IBV_QPT_RC);
	/* Every other request is a write. Pieces neither overlap nor lie directly behind each other. */
	for (int i = 0; i < N; i++) {
		sges[i] = sge_at(a, i * 300 + i % 7, SIZE - i % 3);
		wrs[i] = wr_to(b, i % 2 ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, &sges[i], 1);
		wrs[i].wr_id = i;
		wrs[i].remote_addr += TO + i * 200;
		wrs[i].next = i + 1 < N ? &wrs[i + 1] : NULL;
	}
	mm_bursts = 0;
}

static void setup(void)
{
	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_INFINIBAND);
	make_all();
}

static void teardown(void)
{
	mm_bad_len = mm_slow_len = 0;
	bed_close(&bed);
}

static void post_receives(int from, int to)
{
	for (int i = from; i < to; i++)
		ck_assert_int_eq(post_recv_at(b, 1000 + i, i * 256, SIZE), 0);
}

static const char *arrived(int i)
{
	return i % 2 ? b->buf + TO + i * 200 : b->buf + i / 2 * 256;
}

static bool is_there(int i)
{
	return !memcmp(arrived(i), a->buf + i * 300 + i % 7, SIZE - i % 3);
}

/* Expects that requests `from` to `to` - 1 complete at both ends, in order, and that their data has arrived. */
static void expect_done(int from, int to)
{
	for (int i = from; i < to; i++) {
		expect(a->scq, i, IBV_WC_SUCCESS);
		ck_assert_msg(is_there(i), "the data of request %d", i);
		if (i % 2 == 0)
			ck_assert_uint_eq(expect(b->rcq, 1000 + i / 2, IBV_WC_SUCCESS).byte_len, SIZE - i % 3);
	}
}

static void expect_flushed(int from)
{
	for (int i = from; i < N; i++)
		expect(a->scq, i, IBV_WC_WR_FLUSH_ERR);
	expect_nothing(a->scq);
}

START_TEST(test_requests_of_a_list_are_carried_out_in_order_by_few_accesses)
{
	post_receives(0, N / 2);
	ck_assert_int_eq(post_send_wr(a, wrs), 0);
	expect_done(0, N);
	expect_nothing(a->scq);
	expect_nothing(b->rcq);
	ck_assert_int_eq(mm_bursts, 4); /* a burst of 32 requests and one of 8; each is one read and one write */
	/* The next request succeeds, so its PSN is in sequence. */
	post_receives(0, 1);
	wrs[0].next = NULL;
	ck_assert_int_eq(post_send_wr(a, wrs), 0);
	expect(a->scq, 0, IBV_WC_SUCCESS);
}
END_TEST

START_TEST(test_same_bytes_can_be_sent_again_and_again)
{
	for (int i = 0; i < N; i++)
		sges[i] = sge_at(a, i % 4, SIZE - i % 4);
	post_receives(0, N / 2);
	ck_assert_int_eq(post_send_wr(a, wrs), 0);
	for (int i = 0; i < N; i++) {
		expect(a->scq, i, IBV_WC_SUCCESS);
		ck_assert_int_eq(memcmp(arrived(i), a->buf + i % 4, SIZE - i % 4), 0);
	}
}
END_TEST

START_TEST(test_of_writes_to_one_place_the_last_stays)
{
	for (int i = 0; i < N; i++) {
		wrs[i].opcode = IBV_WR_RDMA_WRITE;
		wrs[i].remote_addr = (uintptr_t)b->buf + TO + (i % 2) * 50;
	}
	ck_assert_int_eq(post_send_wr(a, wrs), 0);
	for (int i = 0; i < N; i++)
		expect(a->scq, i, IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(b->buf + TO, a->buf + (N - 2) * 300 + (N - 2) % 7, 50), 0);
	ck_assert_int_eq(memcmp(b->buf + TO + 50, a->buf + (N - 1) * 300 + (N - 1) % 7, SIZE - (N - 1) % 3), 0);
}
END_TEST

START_TEST(test_pieces_may_overlap)
{
	static char expected[N * 30 + SIZE];

	for (int i = 0; i < N; i++) {
		sges[i] = sge_at(a, (N - i) * 30, SIZE);
		wrs[i].opcode = IBV_WR_RDMA_WRITE;
		wrs[i].remote_addr = (uintptr_t)b->buf + TO + i * 30;
		memcpy(expected + i * 30, a->buf + (N - i) * 30, SIZE);
	}
	/* One piece lies within another. */
	sges[20] = sge_at(a, 20 * 30 + 5, 50);
	wrs[20].remote_addr = wrs[19].remote_addr + 3;
	for (int i = 19; i < N; i++)
		memcpy(expected + (wrs[i].remote_addr - (uintptr_t)b->buf - TO), (void *)(uintptr_t)sges[i].addr,
		       sges[i].length);
	ck_assert_int_eq(post_send_wr(a, wrs), 0);
	for (int i = 0; i < N; i++)
		expect(a->scq, i, IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(b->buf + TO, expected, sizeof(expected)), 0);
}
END_TEST

START_TEST(test_requests_of_several_packets_keep_the_sequence)
{
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 5; i++) {
			sges[i] = sge_at(a, i * 6000, i % 2 ? 3000 + round : 100);
			wrs[i].opcode = IBV_WR_RDMA_WRITE;
			wrs[i].remote_addr = (uintptr_t)b->buf + TO + i * 7000;
		}
		wrs[4].next = NULL;
		ck_assert_int_eq(post_send_wr(a, wrs), 0);
		for (int i = 0; i < 5; i++)
			expect(a->scq, i, IBV_WC_SUCCESS);
	}
	ck_assert_int_eq(mm_bursts, 4);
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(memcmp(b->buf + TO + i * 7000, a->buf + i * 6000, i % 2 ? 3001 : 100), 0);
}
END_TEST

START_TEST(test_burst_out_of_sequence_is_not_answered)
{
	ck_assert_int_eq(to_state(a, IBV_QPS_RESET), 0);
	a->psn++;
	a->timeout = 1;
	a->retry_cnt = 1;
	ck_assert_int_eq(to_init(a) | to_rtr(a, b) | to_rts(a), 0);
	post_receives(0, N / 2);
	ck_assert_int_eq(post_send_wr(a, wrs), 0);
	expect(a->scq, 0, IBV_WC_RETRY_EXC_ERR);
	expect_nothing(b->rcq);
	ck_assert(!is_there(0));
}
END_TEST

START_TEST(test_other_address_spaces_are_not_mixed)
{
	struct uvd_mr *other = make_mr(a, a->buf, BUF_SIZE, 0);

	/* Any other pointer is another address space. The stub does not use it. */
	other->umem.mm = (struct uvd_mm *)a;
	sges[5].lkey = other->lkey;
	post_receives(0, N / 2);
	ck_assert_int_eq(post_send_wr(a, wrs), 0);
	expect_done(0, N);
	ck_assert_int_gt(mm_bursts, 4);
	free_mr(other);
}
END_TEST

START_TEST(test_memory_of_the_device_is_left_to_single_requests)
{
	const struct uvd_backend *ops = b->side->dev.ops;
	struct uvd_dm *dm = calloc(1, ops->size_dm);
	struct uvd_mr *mr = calloc(1, ops->size_mr);
	struct ibv_sge back = sge_at(a, TO, 64);
	struct uvd_send_wr read = wr_to(b, IBV_WR_RDMA_READ, &back, 1);

	dm->context = b->side->context;
	dm->length = 4096;
	ck_assert_int_eq(ops->alloc_dm(dm), 0);
	*mr = (struct uvd_mr){ .pd = b->side->pd,
			       .dm = dm,
			       .length = 4096,
			       .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };
	ck_assert_int_eq(ops->reg_dm_mr(mr, NULL), 0);
	wrs[9].rkey = mr->rkey;
	wrs[9].remote_addr = 0;
	sges[9].length = back.length;
	post_receives(0, N / 2);
	ck_assert_int_eq(post_send_wr(a, wrs), 0);
	expect_done(0, 9);
	expect(a->scq, 9, IBV_WC_SUCCESS);
	expect_done(10, N);
	read.rkey = mr->rkey;
	read.remote_addr = 0;
	ck_assert_int_eq(post_send_wr(a, &read), 0);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(a->buf + TO, a->buf + 9 * 300 + 2, back.length), 0);
	free_mr(mr);
	ck_assert_int_eq(ops->dealloc_dm(dm), 0);
	free(dm);
}
END_TEST

START_TEST(test_inline_data_and_requests_without_data_go_with_the_others)
{
	static const char data[] = "inline data of a request";

	wrs[4].inline_data = data;
	wrs[4].inline_len = sizeof(data);
	wrs[4].send_flags |= IBV_SEND_INLINE;
	wrs[6].num_sge = wrs[7].num_sge = 0;
	wrs[7].rkey = 0;
	wrs[8].opcode = IBV_WR_SEND_WITH_IMM;
	wrs[8].imm_data = 0x01020304;
	post_receives(0, N / 2);
	ck_assert_int_eq(post_send_wr(a, wrs), 0);
	for (int i = 0; i < N; i++)
		expect(a->scq, i, IBV_WC_SUCCESS);
	for (int i = 0; i < N; i += 2) {
		struct ibv_wc wc = expect(b->rcq, 1000 + i / 2, IBV_WC_SUCCESS);

		ck_assert_uint_eq(wc.byte_len, i == 4 ? (int)sizeof(data) : i == 6 ? 0 : SIZE - i % 3);
		ck_assert_uint_eq(wc.wc_flags, i == 8 ? IBV_WC_WITH_IMM : 0);
		ck_assert(i != 8 || wc.imm_data == 0x01020304);
	}
	ck_assert_str_eq(arrived(4), data);
	ck_assert_int_eq(mm_bursts, 4);
}
END_TEST

START_TEST(test_kinds_that_bursts_do_not_carry_out_keep_their_meaning_among_the_others)
{
	uint64_t *word = (uint64_t *)(b->buf + 2 * TO), *got = (uint64_t *)(a->buf + 2 * TO);

	wrs[1].opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wrs[3].opcode = wrs[5].opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	for (int i = 3; i <= 5; i += 2) {
		sges[i] = sge_at(a, 2 * TO + i * 8, 8);
		wrs[i].remote_addr = (uintptr_t)word;
		wrs[i].compare_add = i;
	}
	wrs[6].next = NULL;
	*word = 40;
	post_receives(0, 5);
	ck_assert_int_eq(post_send_wr(a, wrs), 0);
	for (int i = 0; i < 7; i++)
		expect(a->scq, i, IBV_WC_SUCCESS);
	for (int i = 0; i < 5; i++)
		ck_assert_uint_eq(expect(b->rcq, 1000 + i, IBV_WC_SUCCESS).opcode,
				  i == 1 ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
	ck_assert(is_there(1));
	ck_assert_uint_eq(*word, 48);
	ck_assert_uint_eq(got[3], 40);
	ck_assert_uint_eq(got[5], 43);
}
END_TEST

START_TEST(test_requests_without_a_receive_wait_for_it)
{
	post_receives(0, 6);
	ck_assert_int_eq(post_send_wr(a, wrs), 0);
	expect_done(0, 12);
	expect_nothing(a->scq);
	post_receives(6, N / 2);
	expect_done(12, N);
}
END_TEST

/*
 * One thing is wrong with request 9, a write, or 10, a send; with RIGHTS all writes are refused. at: the first request
 * that fails. status: of that request.
 */
enum wrong {
	SECOND_KEY,
	KEY,
	PEERS_KEY,
	PEERS_MR,
	RIGHTS,
	RECEIVE_TOO_SHORT,
	RECEIVE_KEY,
	RECEIVE_MR,
	BAD_MEMORY,
	PEERS_BAD_MEMORY,
	WRONGS
};

static struct uvd_mr *without_rights;

static const struct {
	int at;
	enum ibv_wc_status status, of_receive; /* of_receive: of the next receive; SUCCESS: it does not complete */
} wrongs[WRONGS] = {
	[SECOND_KEY] = { 10, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR },
	[KEY] = { 9, IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS },
	[PEERS_KEY] = { 9, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR },
	[PEERS_MR] = { 9, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR },
	[RIGHTS] = { 1, IBV_WC_REM_INV_REQ_ERR, IBV_WC_WR_FLUSH_ERR },
	[RECEIVE_TOO_SHORT] = { 10, IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR },
	[RECEIVE_KEY] = { 10, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR },
	[RECEIVE_MR] = { 10, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR },
	[BAD_MEMORY] = { 10, IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS },
	[PEERS_BAD_MEMORY] = { 10, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR },
};

static void make_wrong(enum wrong wrong)
{
	struct ibv_sge sge = sge_at(b, 5 * 256, wrong == RECEIVE_TOO_SHORT ? SIZE / 2 : SIZE);
	struct ibv_qp_attr attr = { .qp_access_flags = 0 };

	without_rights = make_mr(b, b->buf, BUF_SIZE, 0);
	sge.lkey = wrong == RECEIVE_MR ? without_rights->lkey : sge.lkey + (wrong == RECEIVE_KEY);
	post_receives(0, 5);
	ck_assert_int_eq(post_recv_list(b, 1005, (struct ibv_sge[]){ sge, { sge.addr, 1, sge.lkey + 1 } },
					wrong == SECOND_KEY ? 2 : 1),
			 0);
	post_receives(6, N / 2);
	sges[9].lkey += wrong == KEY;
	wrs[9].rkey = wrong == PEERS_MR ? without_rights->rkey : wrs[9].rkey + (wrong == PEERS_KEY);
	if (wrong == RIGHTS)
		ck_assert_int_eq(b->side->dev.ops->modify_qp(b->qp, &attr, IBV_QP_ACCESS_FLAGS, NULL), 0);
	if (wrong == BAD_MEMORY || wrong == PEERS_BAD_MEMORY) {
		mm_bad = wrong == BAD_MEMORY ? sges[10].addr : sge.addr;
		mm_bad_len = 1;
	}
}

START_TEST(test_one_that_fails_is_the_one_and_those_before_it_are_done)
{
	const int at = wrongs[_i].at;

	make_wrong(_i);
	ck_assert_int_eq(post_send_wr(a, wrs), 0);
	expect_done(0, at);
	expect(a->scq, at, wrongs[_i].status);
	expect_flushed(at + 1);
	free_mr(without_rights);
	/* The peer does not learn of an error in the requester's own memory. */
	if (wrongs[_i].of_receive == IBV_WC_SUCCESS) {
		expect_nothing(b->rcq);
		return;
	}
	expect(b->rcq, 1000 + (at + 1) / 2, wrongs[_i].of_receive);
	for (int i = (at + 1) / 2 + 1; i < N / 2; i++)
		expect(b->rcq, 1000 + i, IBV_WC_WR_FLUSH_ERR);
	expect_nothing(b->rcq);
}
END_TEST

START_TEST(test_request_in_two_pieces_is_sent_like_any)
{
	struct ibv_sge pieces[] = { sge_at(a, 7, 20), sge_at(a, 70000, 60) };

	wrs[6].sg_list = pieces;
	wrs[6].num_sge = 2;
	post_receives(0, N / 2);
	ck_assert_int_eq(post_send_wr(a, wrs), 0);
	expect_done(0, 6);
	expect(a->scq, 6, IBV_WC_SUCCESS);
	ck_assert_uint_eq(expect(b->rcq, 1003, IBV_WC_SUCCESS).byte_len, 80);
	ck_assert_int_eq(memcmp(arrived(6), a->buf + 7, 20), 0);
	ck_assert_int_eq(memcmp(arrived(6) + 20, a->buf + 70000, 60), 0);
	expect_done(7, N);
}
END_TEST

START_TEST(test_events_are_those_of_single_requests)
{
	const struct uvd_backend *ops = b->side->dev.ops;

	/* The responder is in RTR, so the first message establishes the connection. */
	ck_assert_int_eq(to_state(a, IBV_QPS_RESET) | to_state(b, IBV_QPS_RESET), 0);
	ck_assert_int_eq(to_init(a) | to_init(b) | to_rtr(a, b) | to_rtr(b, a) | to_rts(a), 0);
	post_receives(0, N / 2);
	ck_assert_int_eq(ops->req_notify_cq(b->rcq, true), 0);
	wrs[7].next = NULL;
	ck_assert_int_eq(post_send_wr(a, wrs), 0);
	expect_done(0, 8);
	ck_assert_int_eq(b->qp_event[IBV_EVENT_COMM_EST], 1);
	ck_assert_int_eq(b->comp, 0);
	wrs[N - 2].send_flags |= IBV_SEND_SOLICITED;
	ck_assert_int_eq(post_send_wr(a, &wrs[8]), 0);
	expect_done(8, N);
	ck_assert_int_eq(b->comp, 1);
	ck_assert_int_eq(b->qp_event[IBV_EVENT_COMM_EST], 1);
}
END_TEST

START_TEST(test_receive_in_two_pieces_is_filled_like_any)
{
	struct ibv_sge pieces[] = { sge_at(b, 5 * 256, 30), sge_at(b, 5 * 256 + 40, SIZE) };

	post_receives(0, 5);
	ck_assert_int_eq(post_recv_list(b, 1005, pieces, 2), 0);
	post_receives(6, N / 2);
	ck_assert_int_eq(post_send_wr(a, wrs), 0);
	expect_done(0, 10);
	expect(a->scq, 10, IBV_WC_SUCCESS);
	ck_assert_uint_eq(expect(b->rcq, 1005, IBV_WC_SUCCESS).byte_len, SIZE - 10 % 3);
	ck_assert_int_eq(memcmp(b->buf + 5 * 256, a->buf + 10 * 300 + 10 % 7, 30), 0);
	ck_assert_int_eq(memcmp(b->buf + 5 * 256 + 40, a->buf + 10 * 300 + 10 % 7 + 30, SIZE - 10 % 3 - 30), 0);
	expect_done(11, N);
}
END_TEST

START_TEST(test_memory_on_demand_is_asked_for_its_protection)
{
	struct uvd_mr *odp = make_mr(b, b->buf + TO, BUF_SIZE - TO,
				     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ON_DEMAND);

	wrs[9].rkey = odp->rkey;
	mm_ro = wrs[9].remote_addr;
	mm_ro_len = 1;
	post_receives(0, N / 2);
	ck_assert_int_eq(post_send_wr(a, wrs), 0);
	expect_done(0, 9);
	/* The engine asked uvd_mm_check() whether the page is writable. */
	expect(a->scq, 9, IBV_WC_REM_OP_ERR);
	mm_ro_len = 0;
	free_mr(odp);
}
END_TEST

static struct uvd_work work;

static void *do_work(void *arg)
{
	if (work.run)
		work.run(work.arg, NULL);
	return NULL;
}

static pthread_t worker;

/* Another thread carries out the list, and stops in the responder's memory. */
static void begin_in_slow_memory(void)
{
	const struct uvd_send_wr *bad;

	mm_slow = (uintptr_t)b->buf + 256;
	mm_slow_len = 1;
	post_receives(0, N / 2);
	ck_assert_int_eq(bed_post_send(a, wrs, &bad, &work), 0);
	ck_assert_int_eq(pthread_create(&worker, NULL, do_work, NULL), 0);
	while (!mm_slowed)
		usleep(100);
	usleep(10000);
}

static void end_in_slow_memory(void)
{
	mm_slow_len = 0;
	pthread_join(worker, NULL);
}

START_TEST(test_requester_is_destroyed_while_the_peers_memory_is_slow)
{
	uint64_t start;

	begin_in_slow_memory();
	start = now_us();
	free_qp(a);
	ck_assert_uint_lt(now_us() - start, 1000000);
	end_in_slow_memory();
	/* No message has completed a receive: all of them are flushed, in order. */
	expect_nothing(b->rcq);
	ck_assert_int_eq(to_state(b, IBV_QPS_ERR), 0);
	for (int i = 0; i < N / 2; i++)
		expect(b->rcq, 1000 + i, IBV_WC_WR_FLUSH_ERR);
}
END_TEST

START_TEST(test_responder_that_fails_meanwhile_does_not_answer)
{
	struct ibv_wc wc;

	begin_in_slow_memory();
	ck_assert_int_eq(to_state(b, IBV_QPS_ERR), 0);
	end_in_slow_memory();
	for (int i = 0; i < N / 2; i++)
		expect(b->rcq, 1000 + i, IBV_WC_WR_FLUSH_ERR);
	/* On a busy machine the requester may have given up by now. */
	ck_assert(!poll_cq(a->scq, &wc) || wc.status == IBV_WC_RETRY_EXC_ERR);
}
END_TEST

/* A burst takes the receive of its first message before it writes. If it is cut off, the next message gets it. */
START_TEST(test_receive_of_a_burst_that_broke_off_is_the_next_messages)
{
	begin_in_slow_memory();
	ck_assert_int_eq(to_state(a, IBV_QPS_RESET), 0);
	end_in_slow_memory();
	ck_assert_int_eq(to_init(a) | to_rtr(a, b) | to_rts(a), 0);
	ck_assert_int_eq(post_send_wr(a, wrs), 0);
	expect_done(0, N);
}
END_TEST

/* ---- a mapped queue ---------------------------------------------------------------------------------------------- */

static atomic_uint num_popped = N; /* N: the queue is empty until ring_doorbell() */
static bool is_watched;
static unsigned int num_seen; /* number of completions that mapped_pop() has polled */
static unsigned int seen_early;

static uint32_t mapped_count(const struct uvd_queue *q)
{
	return N - num_popped;
}

static bool mapped_peek_send(struct uvd_queue *q, uint32_t n, struct uvd_send_wr *wr)
{
	if (n >= mapped_count(q))
		return false;
	*wr = wrs[num_popped + n];
	return true;
}

static void mapped_pop(struct uvd_queue *q)
{
	struct ibv_wc wc;

	while (is_watched && poll_cq(a->scq, &wc))
		num_seen++;
	if (num_seen > num_popped)
		seen_early++;
	num_popped++;
}

/* ring_doorbell() hands over all requests. */
static void mapped_nothing(struct uvd_queue *q)
{
}

static const struct uvd_queue_ops mapped_ops = { .count = mapped_count,
						 .peek_send = mapped_peek_send,
						 .pop = mapped_pop,
						 .accept = mapped_nothing,
						 .drop = mapped_nothing };
static struct uvd_queue mapped = { .ops = &mapped_ops, .kind = UVD_QUEUE_SEND, .shape = { 64, 64, 2 } };

static void ring_doorbell(void)
{
	struct uvd_work doorbell = { 0 };

	num_popped = 0;
	ck_assert_int_eq(uvd_backend_soft.ring_doorbell(a->qp, &doorbell), 0);
	doorbell.run(doorbell.arg, NULL);
}

static void setup_mapped(void)
{
	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_INFINIBAND);
	a->sq = &mapped;
	make_all();
}

START_TEST(test_requests_of_a_mapped_queue_are_carried_out_together)
{
	post_receives(0, N / 2);
	ring_doorbell();
	expect_done(0, N);
	ck_assert_uint_eq(num_popped, N);
	ck_assert_int_eq(mm_bursts, 4);
}
END_TEST

START_TEST(test_request_whose_completion_is_there_has_left_the_queue)
{
	is_watched = true;
	post_receives(0, N / 2);
	ring_doorbell();
	for (unsigned int i = 0; i < 60000 && num_popped < N; i++)
		usleep(1000);
	ck_assert_uint_eq(seen_early, 0);
	ck_assert_uint_eq(num_seen, N - 1);
	expect_done(N - 1, N);
}
END_TEST

static void spoil_count(struct uvd_send_wr *wr)
{
	wr->num_sge = -1;
}

/* Inline data is nothing that a read could fill. */
static void spoil_by_inline_read(struct uvd_send_wr *wr)
{
	static const char data[64];

	wr->opcode = IBV_WR_RDMA_READ;
	wr->send_flags |= IBV_SEND_INLINE;
	wr->inline_data = data;
	wr->inline_len = sizeof(data);
	wr->num_sge = 0;
}

static void spoil_by_short_atomic(struct uvd_send_wr *wr)
{
	static struct ibv_sge sge;

	sge = sge_at(a, 0, 4);
	wr->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr->sg_list = &sge;
	wr->num_sge = 1;
}

static const struct {
	void (*spoil)(struct uvd_send_wr *wr);
	enum ibv_wc_status status;
} garbage[] = {
	{ spoil_count, IBV_WC_LOC_QP_OP_ERR },
	{ spoil_by_inline_read, IBV_WC_LOC_QP_OP_ERR },
	{ spoil_by_short_atomic, IBV_WC_LOC_LEN_ERR },
};

START_TEST(test_garbage_in_a_mapped_queue_is_an_error_in_its_place)
{
	garbage[_i].spoil(&wrs[6]);
	post_receives(0, N / 2);
	ring_doorbell();
	expect_done(0, 6);
	expect(a->scq, 6, garbage[_i].status);
	expect_why(a, garbage[_i].status == IBV_WC_LOC_LEN_ERR ? "atomic-length" : "send-refused", "");
	expect_flushed(7);
	expect_nothing(b->rcq);
	ck_assert_uint_eq(num_popped, N);
}
END_TEST

/* The kernel's rxe stores the answer of an atomic wherever the SGEs of eight bytes in all say. */
START_TEST(test_answer_of_an_atomic_in_a_mapped_queue_may_lie_anywhere)
{
	static struct ibv_sge sge[2];
	const uint64_t before = 0x0807060504030201;

	sge[0] = sge_at(a, 1, 3);
	sge[1] = sge_at(a, 101, 5);
	memcpy(b->buf + TO, &before, sizeof(before));
	wrs[0].opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wrs[0].sg_list = sge;
	wrs[0].num_sge = 2;
	wrs[0].remote_addr = (uintptr_t)b->buf + TO;
	wrs[0].compare_add = 1;
	wrs[1].opcode = IBV_WR_SEND; /* nothing changes the word again */
	post_receives(0, N);
	ring_doorbell();
	expect(a->scq, 0, IBV_WC_SUCCESS);
	ck_assert(!memcmp(a->buf + 1, &before, 3) && !memcmp(a->buf + 101, (char *)&before + 3, 5));
	ck_assert_uint_eq(b->buf[TO], 2);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("burst"), *mapped_queue = tcase_create("mapped queue");
	Suite *s = suite_create("backends: soft, bursts");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_requests_of_a_list_are_carried_out_in_order_by_few_accesses);
	tcase_add_test(t, test_same_bytes_can_be_sent_again_and_again);
	tcase_add_test(t, test_of_writes_to_one_place_the_last_stays);
	tcase_add_test(t, test_inline_data_and_requests_without_data_go_with_the_others);
	tcase_add_test(t, test_kinds_that_bursts_do_not_carry_out_keep_their_meaning_among_the_others);
	tcase_add_test(t, test_requests_without_a_receive_wait_for_it);
	tcase_add_loop_test(t, test_one_that_fails_is_the_one_and_those_before_it_are_done, 0, WRONGS);
	tcase_add_test(t, test_pieces_may_overlap);
	tcase_add_test(t, test_requests_of_several_packets_keep_the_sequence);
	tcase_add_test(t, test_burst_out_of_sequence_is_not_answered);
	tcase_add_test(t, test_other_address_spaces_are_not_mixed);
	tcase_add_test(t, test_memory_of_the_device_is_left_to_single_requests);
	tcase_add_test(t, test_responder_that_fails_meanwhile_does_not_answer);
	tcase_add_test(t, test_request_in_two_pieces_is_sent_like_any);
	tcase_add_test(t, test_events_are_those_of_single_requests);
	tcase_add_test(t, test_receive_in_two_pieces_is_filled_like_any);
	tcase_add_test(t, test_receive_of_a_burst_that_broke_off_is_the_next_messages);
	tcase_add_test(t, test_memory_on_demand_is_asked_for_its_protection);
	tcase_add_test(t, test_requester_is_destroyed_while_the_peers_memory_is_slow);
	tcase_add_checked_fixture(mapped_queue, setup_mapped, teardown);
	tcase_add_test(mapped_queue, test_requests_of_a_mapped_queue_are_carried_out_together);
	tcase_add_test(mapped_queue, test_request_whose_completion_is_there_has_left_the_queue);
	tcase_add_loop_test(mapped_queue, test_garbage_in_a_mapped_queue_is_an_error_in_its_place, 0,
			    sizeof(garbage) / sizeof(garbage[0]));
	tcase_add_test(mapped_queue, test_answer_of_an_atomic_in_a_mapped_queue_may_lie_anywhere);
	suite_add_tcase(s, t);
	suite_add_tcase(s, mapped_queue);
	return run_cases(s);
}
