/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Large requests that keep coming to a mapped queue are the user's thread's; those of a client that waits are carried out by its doorbell. */
#include <check.h>
#include <pthread.h>
#include <unistd.h>
#include <uverbsd/queue.h>
#include "backends/soft/soft.h"
#include "tests/backends/bed.h"

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];

/* A busy machine, and sanitizers, need more time between two requests than the default. */
enum { SIZE = 64 * 1024, ENTRIES = 64, MANY = 16, GAP_MS = 50, PAUSE_US = 4 * GAP_MS * 1000 };

static struct uvd_send_wr requests[ENTRIES];
static struct ibv_sge sges[ENTRIES];
static atomic_uint produced, popped;
static pthread_t poster;
static atomic_int writes_of_poster, writes_of_others;

static uint32_t mapped_count(const struct uvd_queue *q)
{
	return produced - popped;
}

static bool mapped_peek_send(struct uvd_queue *q, uint32_t n, struct uvd_send_wr *wr)
{
	if (n >= mapped_count(q))
		return false;
	*wr = requests[(popped + n) % ENTRIES];
	return true;
}

static void mapped_pop(struct uvd_queue *q)
{
	popped++;
}

static const struct uvd_queue_ops mapped_ops = { .count = mapped_count, .peek_send = mapped_peek_send, .pop = mapped_pop };
static struct uvd_queue mapped = { .ops = &mapped_ops, .kind = UVD_QUEUE_SEND, .shape = { ENTRIES, 64, 1 } };

static void count_write(void)
{
	if (pthread_equal(pthread_self(), poster))
		writes_of_poster++;
	else
		writes_of_others++;
}

static void setup(void)
{
	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_INFINIBAND);
	produced = popped = 0;
	bed.fabric->stream_gap_ns = GAP_MS * UINT64_C(1000000);
	a->sq = &mapped;
	bed.cap.max_send_wr = ENTRIES - 1;
	bed.cap.max_send_sge = 1;
	bed_connect(&bed, IBV_QPT_RC);
	poster = pthread_self();
	writes_of_poster = writes_of_others = 0;
	mm_written = count_write;
}

static void teardown(void)
{
	mm_written = NULL;
	bed_close(&bed);
}

/* The client's part: an entry, its index. */
static void produce(uint32_t length)
{
	const unsigned int i = produced % ENTRIES;

	sges[i] = sge_at(a, i * 1000, length);
	requests[i] = wr_to(b, IBV_WR_RDMA_WRITE, &sges[i], 1);
	requests[i].wr_id = produced;
	produced++;
}

static void ring_doorbell_by(struct uvd_worker *worker)
{
	struct uvd_work work = { 0 };

	ck_assert_int_eq(uvd_backend_soft.ring_doorbell(a->qp, &work), 0);
	work.run(work.arg, worker);
}

static void ring_doorbell(void)
{
	ring_doorbell_by(NULL);
}

static void post_and_wait(uint32_t length)
{
	const unsigned int nr = produced;

	/* No more than that: the next request has to come soon, with sanitizers as well. */
	a->buf[nr % ENTRIES * 1000] = a->buf[nr % ENTRIES * 1000 + length - 1] = (char)nr;
	produce(length);
	ring_doorbell();
	expect(a->scq, nr, IBV_WC_SUCCESS);
	ck_assert_int_eq(b->buf[0], (char)nr);
	ck_assert_int_eq(b->buf[length - 1], (char)nr);
}

/* Until the user's thread has them: on a busy machine some come too late to count. */
static void make_stream(void)
{
	const uint64_t end = now_us() + 60000000;

	while (!writes_of_others && now_us() < end)
		post_and_wait(SIZE);
	ck_assert_int_gt(writes_of_others, 0);
}

START_TEST(test_large_requests_that_follow_each_other_soon_are_the_users_threads)
{
	post_and_wait(SIZE);
	ck_assert_int_eq(writes_of_poster, 1);
	make_stream();
	ck_assert_int_ge(writes_of_poster, 4);
	expect_nothing(a->scq);
}
END_TEST

START_TEST(test_large_requests_with_pauses_are_their_posters)
{
	for (int i = 0; i < 6; i++) {
		post_and_wait(SIZE);
		usleep(PAUSE_US);
	}
	ck_assert_int_eq(writes_of_others, 0);
	ck_assert_int_eq(writes_of_poster, 6);
}
END_TEST

START_TEST(test_small_requests_are_their_posters_however_soon_they_come)
{
	for (int i = 0; i < 1000; i++)
		post_and_wait(100);
	/* Nor do they make a large one part of a stream. */
	post_and_wait(SIZE);
	ck_assert_int_eq(writes_of_others, 0);
}
END_TEST

/* The thread is at the queue, or has just left it, or is on its way to sleep: each request is carried out once all the same. */
START_TEST(test_no_request_is_lost_while_the_thread_comes_and_goes)
{
	make_stream();
	bed.fabric->stream_gap_ns = 20 * 1000;
	for (int i = 0; i < 2000; i++) {
		post_and_wait(i % 3 ? SIZE : 100);
		for (uint64_t end = now_us() + i % 100; now_us() < end;)
			;
	}
	expect_nothing(a->scq);
	ck_assert_uint_eq(popped, produced);
}
END_TEST

START_TEST(test_a_client_that_stops_waiting_for_its_stream_is_its_own_again)
{
	const uint64_t end = now_us() + 60000000;
	int before;

	make_stream();
	do {
		before = writes_of_poster;
		usleep(PAUSE_US);
		post_and_wait(SIZE);
	} while (writes_of_poster == before && now_us() < end);
	ck_assert_int_gt(writes_of_poster, before);
}
END_TEST

START_TEST(test_qp_ends_while_its_thread_looks_for_more)
{
	for (int i = 0; i < MANY; i++) {
		uint64_t start;

		writes_of_others = 0;
		make_stream();
		start = now_us();
		if (i % 2) {
			ck_assert_int_eq(to_state(a, IBV_QPS_RESET), 0);
		} else {
			ck_assert_int_eq(to_state(a, IBV_QPS_ERR), 0);
			ck_assert_int_eq(to_state(a, IBV_QPS_RESET), 0);
		}
		ck_assert_uint_lt(now_us() - start, 1000000);
		ck_assert_int_eq(to_state(b, IBV_QPS_RESET), 0);
		produced = popped = 0;
		ck_assert_int_eq(to_init(a) | to_init(b) | to_rtr(a, b) | to_rtr(b, a) | to_rts(a) | to_rts(b), 0);
	}
}
END_TEST

/* ---- when the doorbell is answered ---------------------------------------------------------------------------------- */

static int writes_before_answer;

static void note_answer(struct uvd_worker *worker)
{
	if (writes_before_answer < 0)
		writes_before_answer = writes_of_poster;
}

static struct uvd_worker worker = { .answer = note_answer };

/* Rings for so many requests of these lengths, `last` the last. Returns how many writes came before the answer, -1: all. */
static int answered_after(unsigned int num, const uint32_t *length, enum ibv_wr_opcode last)
{
	writes_before_answer = -1;
	writes_of_poster = 0;
	for (unsigned int i = 0; i < num; i++)
		produce(length[i]);
	requests[(produced - 1) % ENTRIES].opcode = last;
	ring_doorbell_by(&worker);
	for (unsigned int i = 0; i < num; i++)
		expect(a->scq, produced - num + i, IBV_WC_SUCCESS);
	return writes_before_answer;
}

START_TEST(test_a_short_message_is_at_its_receiver_before_the_doorbell_is_answered)
{
	ck_assert_int_eq(answered_after(1, (uint32_t[]){ 64 }, IBV_WR_RDMA_WRITE), -1);
	ck_assert_int_eq(answered_after(1, (uint32_t[]){ 4096 }, IBV_WR_RDMA_WRITE), -1);
}
END_TEST

START_TEST(test_a_doorbell_is_answered_before_longer_work)
{
	ck_assert_int_eq(answered_after(1, (uint32_t[]){ 4097 }, IBV_WR_RDMA_WRITE), 0);
	ck_assert_int_eq(answered_after(2, (uint32_t[]){ 64, 64 }, IBV_WR_RDMA_WRITE), 0);
	/* No burst: one after the other. */
	ck_assert_int_eq(answered_after(2, (uint32_t[]){ 64, 64 }, IBV_WR_RDMA_READ), 1);
}
END_TEST

/* They are answered when the work is done, as those who post by calls poll by calls. */
START_TEST(test_posts_to_own_rings_are_never_answered_early)
{
	const struct uvd_send_wr *bad;
	struct uvd_work work = { 0 };
	struct uvd_send_wr wr;
	struct ibv_sge sge;

	bed_close(&bed);
	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_INFINIBAND);
	a->sq = NULL;
	bed_connect(&bed, IBV_QPT_RC);
	sge = sge_at(a, 0, SIZE);
	wr = wr_to(b, IBV_WR_RDMA_WRITE, &sge, 1);
	writes_before_answer = -1;
	ck_assert_int_eq(uvd_backend_soft.post_send(a->qp, &wr, &bad, &work), 0);
	work.run(work.arg, &worker);
	expect(a->scq, wr.wr_id, IBV_WC_SUCCESS);
	ck_assert_int_eq(writes_before_answer, -1);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("stream");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_large_requests_that_follow_each_other_soon_are_the_users_threads);
	tcase_add_test(t, test_large_requests_with_pauses_are_their_posters);
	tcase_add_test(t, test_small_requests_are_their_posters_however_soon_they_come);
	tcase_add_test(t, test_no_request_is_lost_while_the_thread_comes_and_goes);
	tcase_add_test(t, test_a_client_that_stops_waiting_for_its_stream_is_its_own_again);
	tcase_add_test(t, test_qp_ends_while_its_thread_looks_for_more);
	tcase_add_test(t, test_a_short_message_is_at_its_receiver_before_the_doorbell_is_answered);
	tcase_add_test(t, test_a_doorbell_is_answered_before_longer_work);
	tcase_add_test(t, test_posts_to_own_rings_are_never_answered_early);
	return run_suite("backends: soft, streams", t);
}
