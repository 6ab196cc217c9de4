/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A burst of large requests, or of RDMA READs, of an RC queue has the same results as the requests one by one. */
#include <errno.h>
#include <check.h>
#include <string.h>
#include "backends/soft/soft.h"
#include "tests/backends/bed.h"

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];

/* All N fit into one chunk. There is a gap between any two of them. */
enum {
	N = 12,
	SIZE = 20000,
	STEP = 21000,
	HALF = N * STEP,
	INLINE = 5008 /* too long for a burst of small requests; the entries of a mapped queue hold it exactly */
};

static struct ibv_sge sges[N];
static struct uvd_send_wr wrs[N];

static void fill(char *bytes, int num, int salt)
{
	for (int i = 0; i < num; i++)
		bytes[i] = i * 7 + i / 251 + salt;
}

static void make_list(enum ibv_wr_opcode opcode)
{
	for (int i = 0; i < N; i++) {
		sges[i] = sge_at(a, i * STEP, SIZE - i);
		wrs[i] = wr_to(b, opcode, &sges[i], 1);
		wrs[i].wr_id = i;
		wrs[i].remote_addr += HALF + i * STEP;
		wrs[i].next = i + 1 < N ? &wrs[i + 1] : NULL;
	}
}

static void setup(void)
{
	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_INFINIBAND);
	fill(a->buf, BUF_SIZE, 1);
	fill(b->buf, BUF_SIZE, 2);
	bed.cap.max_send_wr = bed.cap.max_recv_wr = 64;
	bed.cap.max_send_sge = bed.cap.max_recv_sge = 1;
	bed.cap.max_inline_data = a->side->dev.config.limits.max_inline_data =
		b->side->dev.config.limits.max_inline_data = INLINE;
	if (bed_is_mapped()) /* the room of a request holds entries or inline data */
		a->side->dev.config.limits.max_sge = b->side->dev.config.limits.max_sge =
			INLINE / sizeof(struct ibv_sge);
	a->timeout = a->retry_cnt = 1;
	bed_connect(&bed, IBV_QPT_RC);
	mm_bursts = 0;
}

static void teardown(void)
{
	mm_bad_len = 0;
	mm_written = NULL;
	bed_close(&bed);
	memset(mm_views, 0, sizeof(mm_views));
}

static void post_all(void)
{
	ck_assert_int_eq(post_send_wr(a, wrs), 0);
}

static void expect_sent(int from, int to)
{
	for (int i = from; i < to; i++) {
		expect(a->scq, i, IBV_WC_SUCCESS);
		ck_assert_msg(!memcmp(b->buf + HALF + i * STEP, a->buf + i * STEP, SIZE - i), "the data of request %d",
			      i);
	}
}

static void expect_read(int from, int to)
{
	for (int i = from; i < to; i++) {
		expect(a->scq, i, IBV_WC_SUCCESS);
		ck_assert_msg(!memcmp(a->buf + i * STEP, b->buf + HALF + i * STEP, SIZE - i), "the data of request %d",
			      i);
	}
}

/* Expects that the next request succeeds, so that its PSN is in sequence. */
static void expect_in_sequence(void)
{
	send_small(a, b, IBV_WR_RDMA_WRITE, 64);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	expect_nothing(a->scq);
}

START_TEST(test_large_writes_are_one_access_at_each_end)
{
	make_list(IBV_WR_RDMA_WRITE);
	post_all();
	expect_sent(0, N);
	ck_assert_int_eq(mm_bursts, 2);
	/* The writes leave the bytes between them as they were. */
	ck_assert_int_eq(b->buf[HALF + SIZE], (char)((HALF + SIZE) * 7 + (HALF + SIZE) / 251 + 2));
	expect_in_sequence();
}
END_TEST

START_TEST(test_large_sends_take_their_receives_in_order)
{
	make_list(IBV_WR_SEND);
	for (int i = 0; i < N; i++)
		ck_assert_int_eq(post_recv_at(b, 1000 + i, HALF + i * STEP, SIZE), 0);
	post_all();
	expect_sent(0, N);
	for (int i = 0; i < N; i++)
		ck_assert_uint_eq(expect(b->rcq, 1000 + i, IBV_WC_SUCCESS).byte_len, SIZE - i);
	ck_assert_int_eq(mm_bursts, 2);
	expect_in_sequence();
}
END_TEST

START_TEST(test_of_large_writes_that_overlap_the_later_stays)
{
	make_list(IBV_WR_RDMA_WRITE);
	wrs[1].remote_addr = wrs[0].remote_addr + 100;
	wrs[2].remote_addr = wrs[0].remote_addr + 50;
	wrs[2].next = NULL;
	post_all();
	for (int i = 0; i < 3; i++)
		expect(a->scq, i, IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(b->buf + HALF, a->buf, 50), 0);
	ck_assert_int_eq(memcmp(b->buf + HALF + 50, a->buf + 2 * STEP, SIZE - 2), 0);
	ck_assert_int_eq(memcmp(b->buf + HALF + 50 + SIZE - 2, a->buf + STEP + SIZE - 52, 51), 0);
}
END_TEST

START_TEST(test_large_pieces_may_lie_in_one_another)
{
	make_list(IBV_WR_RDMA_WRITE);
	sges[1] = sge_at(a, 100, 5000);
	wrs[3].remote_addr = wrs[2].remote_addr + 300;
	sges[3].length = 7000;
	wrs[3].next = NULL;
	post_all();
	expect_sent(0, 1);
	for (int i = 1; i < 4; i++)
		expect(a->scq, i, IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(b->buf + HALF + STEP, a->buf + 100, 5000), 0);
	ck_assert_int_eq(memcmp(b->buf + HALF + 2 * STEP, a->buf + 2 * STEP, 300), 0);
	ck_assert_int_eq(memcmp(b->buf + HALF + 2 * STEP + 300, a->buf + 3 * STEP, 7000), 0);
	ck_assert_int_eq(memcmp(b->buf + HALF + 2 * STEP + 7300, a->buf + 2 * STEP + 7300, SIZE - 2 - 7300), 0);
}
END_TEST

/* The mover's buffer holds one chunk. */
START_TEST(test_a_burst_is_a_chunk_at_most)
{
	make_list(_i ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE);
	for (int i = 0; i < N; i++)
		sges[i].length = SOFT_CHUNK / 4 - 1000 * (i == 3);
	for (int i = 4; i < N; i++)
		sges[i].length = SOFT_CHUNK / 3 + 1;
	post_all();
	for (int i = 0; i < N; i++)
		expect(a->scq, i, IBV_WC_SUCCESS);
	/* A burst of four quarters of a chunk, then bursts of two requests of a third each. */
	ck_assert_int_eq(mm_bursts, 2 * (1 + (N - 4) / 2));
}
END_TEST

/* A post refuses such a READ; what is before it in the list was posted. test_burst.c has one in a mapped queue. */
START_TEST(test_inline_data_is_nothing_that_a_read_could_fill)
{
	static const char data[64];

	make_list(IBV_WR_RDMA_READ);
	wrs[1].send_flags |= IBV_SEND_INLINE;
	wrs[1].inline_data = data;
	wrs[1].inline_len = sizeof(data);
	wrs[1].num_sge = 0;
	ck_assert_int_eq(post_send_wr(a, wrs), -EINVAL);
	expect_read(0, 1);
	expect_nothing(a->scq);
}
END_TEST

START_TEST(test_long_inline_data_arrives_among_large_requests)
{
	static char data[INLINE];

	fill(data, INLINE, 3);
	make_list(IBV_WR_RDMA_WRITE);
	wrs[1].send_flags |= IBV_SEND_INLINE;
	wrs[1].inline_data = data;
	wrs[1].inline_len = INLINE;
	post_all();
	expect_sent(0, 1);
	expect(a->scq, 1, IBV_WC_SUCCESS);
	ck_assert_mem_eq(b->buf + HALF + STEP, data, INLINE);
	expect_sent(2, N);
}
END_TEST

START_TEST(test_small_requests_and_large_ones_are_not_mixed)
{
	make_list(IBV_WR_RDMA_WRITE);
	for (int i = 0; i < 4; i++)
		sges[i].length = 100;
	post_all();
	for (int i = 0; i < 4; i++)
		expect(a->scq, i, IBV_WC_SUCCESS);
	expect_sent(4, N);
	ck_assert_int_eq(mm_bursts, 4);
}
END_TEST

START_TEST(test_reads_are_one_access_at_each_end)
{
	make_list(IBV_WR_RDMA_READ);
	sges[3].length = 10;
	wrs[4].num_sge = 0;
	post_all();
	expect_read(0, 3);
	expect(a->scq, 3, IBV_WC_SUCCESS);
	expect(a->scq, 4, IBV_WC_SUCCESS);
	expect_read(5, N);
	ck_assert_int_eq(memcmp(a->buf + 3 * STEP, b->buf + HALF + 3 * STEP, 10), 0);
	/* The READ wrote no more than its 10 bytes. */
	ck_assert_int_eq(a->buf[3 * STEP + 10], (char)((3 * STEP + 10) * 7 + (3 * STEP + 10) / 251 + 1));
	ck_assert_int_eq(mm_bursts, 2);
	expect_in_sequence();
}
END_TEST

START_TEST(test_a_read_sees_the_write_before_it)
{
	make_list(IBV_WR_RDMA_READ);
	for (int i = 0; i < 3; i++)
		wrs[i].opcode = IBV_WR_RDMA_WRITE;
	for (int i = 3; i < 6; i++)
		wrs[i].remote_addr = wrs[i - 3].remote_addr;
	wrs[5].next = NULL;
	post_all();
	expect_sent(0, 3);
	for (int i = 3; i < 6; i++) {
		expect(a->scq, i, IBV_WC_SUCCESS);
		ck_assert_int_eq(memcmp(a->buf + i * STEP, a->buf + (i - 3) * STEP, SIZE - i), 0);
	}
}
END_TEST

/* One thing is wrong with request 5, or with all requests. */
enum wrong { KEY, LOCAL_RIGHTS, PEERS_KEY, PEERS_RIGHTS, QP_RIGHTS, NO_READS, MEMORY, PEERS_MEMORY, WRONGS };

static const struct {
	int at;
	enum ibv_wc_status read, write;
} wrongs[WRONGS] = {
	[KEY] = { 5, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR },
	[LOCAL_RIGHTS] = { 5, IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS },
	[PEERS_KEY] = { 5, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR },
	[PEERS_RIGHTS] = { 5, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR },
	[QP_RIGHTS] = { 0, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_INV_REQ_ERR },
	[NO_READS] = { 0, IBV_WC_REM_INV_REQ_ERR, IBV_WC_SUCCESS },
	[MEMORY] = { 5, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR },
	[PEERS_MEMORY] = { 5, IBV_WC_REM_OP_ERR, IBV_WC_REM_OP_ERR },
};

static struct uvd_mr *without_rights[2];

static void make_wrong(enum wrong wrong)
{
	struct ibv_qp_attr attr = { .qp_access_flags = 0 };

	if (wrong == QP_RIGHTS)
		ck_assert_int_eq(b->side->dev.ops->modify_qp(b->qp, &attr, IBV_QP_ACCESS_FLAGS, NULL), 0);
	if (wrong == NO_READS) {
		b->max_dest_rd_atomic = 0;
		ck_assert_int_eq(to_state(a, IBV_QPS_RESET) | to_state(b, IBV_QPS_RESET), 0);
		ck_assert_int_eq(to_init(a) | to_init(b) | to_rtr(a, b) | to_rtr(b, a) | to_rts(a) | to_rts(b), 0);
	}
	if (wrong == KEY)
		sges[5].lkey++;
	if (wrong == LOCAL_RIGHTS)
		sges[5].lkey = without_rights[0]->lkey;
	if (wrong == PEERS_KEY)
		wrs[5].rkey++;
	if (wrong == PEERS_RIGHTS)
		wrs[5].rkey = without_rights[1]->rkey;
	if (wrong == MEMORY || wrong == PEERS_MEMORY) {
		mm_bad = wrong == MEMORY ? sges[5].addr + SIZE / 2 : wrs[5].remote_addr + SIZE / 2;
		mm_bad_len = 1;
	}
}

static void expect_wrong(enum wrong wrong, bool read)
{
	const enum ibv_wc_status status = read ? wrongs[wrong].read : wrongs[wrong].write;
	const int at = status == IBV_WC_SUCCESS ? N : wrongs[wrong].at;

	make_list(read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE);
	without_rights[0] = make_mr(a, a->buf, BUF_SIZE, 0);
	without_rights[1] = make_mr(b, b->buf, BUF_SIZE, IBV_ACCESS_LOCAL_WRITE);
	make_wrong(wrong);
	post_all();
	if (read)
		expect_read(0, at);
	else
		expect_sent(0, at);
	if (at < N)
		expect(a->scq, at, status);
	for (int i = at + 1; i < N; i++)
		expect(a->scq, i, IBV_WC_WR_FLUSH_ERR);
	expect_nothing(a->scq);
	free_mr(without_rights[0]);
	free_mr(without_rights[1]);
}

START_TEST(test_a_read_that_fails_is_the_one_and_those_before_it_are_done)
{
	expect_wrong(_i, true);
}
END_TEST

START_TEST(test_a_large_write_that_fails_is_the_one_and_those_before_it_are_done)
{
	expect_wrong(_i, false);
}
END_TEST

static void b_fails(void)
{
	mm_written = NULL;
	ck_assert_int_eq(to_state(b, IBV_QPS_ERR), 0);
}

/* The responder fails while the requester's memory is written. It is checked again before the READs complete. */
START_TEST(test_reads_of_a_responder_that_fails_meanwhile_are_not_answered)
{
	make_list(IBV_WR_RDMA_READ);
	mm_written = b_fails;
	post_all();
	expect(a->scq, 0, IBV_WC_RETRY_EXC_ERR);
	for (int i = 1; i < N; i++)
		expect(a->scq, i, IBV_WC_WR_FLUSH_ERR);
}
END_TEST

/* Moving each alone takes one copy; a burst copies all of them twice. */
START_TEST(test_memory_that_can_be_mapped_is_left_to_single_requests)
{
	static char view[BUF_SIZE];
	const bool read = _i;

	fill(view, BUF_SIZE, 3);
	mm_views[0] = (struct fake_view){ (uintptr_t)(read ? b : a)->buf, BUF_SIZE, view, false };
	(read ? b : a)->mr->umem.shared = true;
	make_list(read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE);
	post_all();
	for (int i = 0; i < N; i++) {
		const char *from = view + (read ? HALF : 0) + i * STEP,
			   *to = (read ? a->buf : b->buf + HALF) + i * STEP;

		expect(a->scq, i, IBV_WC_SUCCESS);
		ck_assert_int_eq(memcmp(to, from, SIZE - i), 0);
	}
	ck_assert_int_eq(mm_bursts, 0);
}
END_TEST

/* The engine has found that it cannot map this memory, so it treats it like any other. */
START_TEST(test_shared_memory_without_a_view_is_carried_out_together_with_the_rest)
{
	a->mr->umem.shared = true;
	make_list(IBV_WR_RDMA_WRITE);
	post_all();
	expect_sent(0, N);
	mm_bursts = 0;
	post_all();
	expect_sent(0, N);
	ck_assert_int_eq(mm_bursts, 2);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("burst large");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_large_writes_are_one_access_at_each_end);
	tcase_add_test(t, test_large_sends_take_their_receives_in_order);
	tcase_add_test(t, test_of_large_writes_that_overlap_the_later_stays);
	tcase_add_test(t, test_large_pieces_may_lie_in_one_another);
	tcase_add_loop_test(t, test_a_burst_is_a_chunk_at_most, 0, 2);
	add_own_queue_test(t, test_inline_data_is_nothing_that_a_read_could_fill,
			   "in a mapped queue an invalid request is a completion, and no post that fails");
	tcase_add_test(t, test_long_inline_data_arrives_among_large_requests);
	tcase_add_test(t, test_small_requests_and_large_ones_are_not_mixed);
	tcase_add_test(t, test_reads_are_one_access_at_each_end);
	tcase_add_test(t, test_a_read_sees_the_write_before_it);
	tcase_add_loop_test(t, test_a_read_that_fails_is_the_one_and_those_before_it_are_done, 0, WRONGS);
	tcase_add_loop_test(t, test_a_large_write_that_fails_is_the_one_and_those_before_it_are_done, 0, WRONGS);
	tcase_add_test(t, test_reads_of_a_responder_that_fails_meanwhile_are_not_answered);
	tcase_add_loop_test(t, test_memory_that_can_be_mapped_is_left_to_single_requests, 0, 2);
	tcase_add_test(t, test_shared_memory_without_a_view_is_carried_out_together_with_the_rest);
	return run_suite("backends: soft, large bursts", t);
}
