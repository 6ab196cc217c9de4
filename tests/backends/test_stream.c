/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Streams: the user's thread carries out large requests that keep coming to a mapped queue. If the client waits between
 * them, its doorbell's thread carries them out.
 */
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#include <uverbsd/queue.h>
#include "backends/soft/soft.h"
#include "tests/backends/bed.h"

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];

/* GAP_MS is more than the default gap, because a busy machine or a sanitizer needs more time between requests. */
enum { SIZE = 64 * 1024, ENTRIES = 128, MANY = 16, GAP_MS = 50, PAUSE_US = 4 * GAP_MS * 1000 };

static struct uvd_send_wr requests[ENTRIES];
static struct ibv_sge sges[ENTRIES];
static atomic_uint produced, accepted, popped;
static pthread_t poster;
static atomic_int writes_of_poster, writes_of_others;

static uint32_t mapped_count(const struct uvd_queue *q)
{
	return accepted - popped;
}

static void mapped_accept(struct uvd_queue *q)
{
	accepted = produced;
}

static void mapped_drop(struct uvd_queue *q)
{
	popped = accepted = produced;
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

static const struct uvd_queue_ops mapped_ops = { .count = mapped_count,
						 .peek_send = mapped_peek_send,
						 .pop = mapped_pop,
						 .accept = mapped_accept,
						 .drop = mapped_drop };
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
	produced = accepted = popped = 0;
	bed.fabric->stream_gap_ns = GAP_MS * UINT64_C(1000000);
	/* A thread that waits for a CPU under a sanitizer must not be taken for one that waits for memory. */
	bed.fabric->movers.drop_ns = bed.fabric->movers.patience_ns = UINT64_MAX;
	a->sq = &mapped;
	bed.cap.max_send_wr = ENTRIES - 1;
	bed.cap.max_send_sge = 1;
	bed.cqe = ENTRIES;
	bed_connect(&bed, IBV_QPT_RC);
	poster = pthread_self();
	writes_of_poster = writes_of_others = 0;
	mm_written = count_write;
}

/* ---- a machine whose CPUs are short ---------------------------------------------------------------------------------- */

static cpu_set_t all_cpus;
static pthread_t spinner;
static atomic_bool spins;

static void *spin(void *arg)
{
	while (spins)
		;
	return NULL;
}

/* Restricts this thread to one CPU, with a thread that never sleeps. The user's thread inherits that when it starts. */
static void crowd(void)
{
	cpu_set_t one;
	int cpu = 0;

	sched_getaffinity(0, sizeof(all_cpus), &all_cpus);
	while (!CPU_ISSET(cpu, &all_cpus))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	spins = true;
	ck_assert_int_eq(pthread_create(&spinner, NULL, spin, NULL), 0);
}

static void end_of_crowd(void)
{
	if (!spins)
		return;
	spins = false;
	pthread_join(spinner, NULL);
	sched_setaffinity(0, sizeof(all_cpus), &all_cpus);
}

static void teardown(void)
{
	end_of_crowd();
	mm_written = NULL;
	bed_close(&bed);
}

/* Does the client's part: fills an entry and advances the index. */
static void produce_op(uint32_t length, enum ibv_wr_opcode opcode)
{
	const unsigned int i = produced % ENTRIES;

	sges[i] = sge_at(a, i * 1000, length);
	requests[i] = wr_to(b, opcode, &sges[i], 1);
	requests[i].wr_id = produced;
	produced++;
}

static void produce(uint32_t length)
{
	produce_op(length, IBV_WR_RDMA_WRITE);
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

	/* Set the first and last byte only: the next request has to come soon, with sanitizers too. */
	a->buf[nr % ENTRIES * 1000] = a->buf[nr % ENTRIES * 1000 + length - 1] = (char)nr;
	produce(length);
	ring_doorbell();
	expect(a->scq, nr, IBV_WC_SUCCESS);
	ck_assert_int_eq(b->buf[0], (char)nr);
	ck_assert_int_eq(b->buf[length - 1], (char)nr);
}

/* Posts until the user's thread carries out requests. On a busy machine some come too late to count. */
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

START_TEST(test_large_requests_with_many_small_ones_between_them_are_their_posters)
{
	for (int i = 0; i < 20; i++)
		post_and_wait(i % 10 ? 100 : SIZE);
	post_and_wait(SIZE);
	ck_assert_int_eq(writes_of_others, 0);
}
END_TEST

/* The user's thread polls the queue, has just left it, or goes to sleep: no request may be lost or repeated. */
START_TEST(test_no_request_is_lost_while_the_thread_comes_and_goes)
{
	make_stream();
	bed.fabric->stream_gap_ns = 20 * 1000;
	for (int i = 0; i < (suite_is_long() ? 2000 : 500); i++) {
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
		produced = accepted = popped = 0;
		ck_assert_int_eq(to_init(a) | to_init(b) | to_rtr(a, b) | to_rtr(b, a) | to_rts(a) | to_rts(b), 0);
	}
}
END_TEST

/* ---- a request before its doorbell ----------------------------------------------------------------------------------- */

/* Adds a large request while the user's thread looks for one, and rings no doorbell. Is it carried out? */
static bool is_found_before_its_doorbell(void)
{
	const uint64_t end = now_us() + 2 * GAP_MS * 1000;
	struct ibv_wc wc;

	make_stream();
	produce(SIZE);
	while (now_us() < end)
		if (poll_cq(a->scq, &wc))
			return true;
	return false;
}

START_TEST(test_request_in_a_stream_is_carried_out_before_its_doorbell)
{
	bool found = false;

	/* On a busy machine the thread may have given up looking. */
	for (int i = 0; i < 100 && !found; i++) {
		found = is_found_before_its_doorbell();
		ring_doorbell();
		if (!found)
			expect(a->scq, produced - 1, IBV_WC_SUCCESS);
	}
	ck_assert(found);
	expect_nothing(a->scq);
	ck_assert_uint_eq(popped, produced);
}
END_TEST

static int filtered_doorbell(struct uvd_qp *qp, struct uvd_work *work)
{
	return uvd_backend_soft.ring_doorbell(qp, work);
}

/* A filter may refuse the doorbell: then the post has failed, and must not have been carried out. */
START_TEST(test_request_whose_doorbell_a_filter_may_refuse_waits_for_it)
{
	static struct uvd_backend filtered;

	filtered = uvd_backend_soft;
	filtered.ring_doorbell = filtered_doorbell;
	a->side->dev.ops = &filtered;
	for (int i = 0; i < 3; i++) {
		ck_assert(!is_found_before_its_doorbell());
		uvd_backend_soft.drop_posts(a->qp);
		post_and_wait(SIZE);
	}
	expect_nothing(a->scq);
	a->side->dev.ops = &uvd_backend_soft;
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

/*
 * Posts num writes of these lengths, the last with opcode `last`, and rings the doorbell. Returns how many writes the
 * doorbell's thread made before it answered, or -1 if it answered after all work.
 */
static int answered_after(unsigned int num, const uint32_t *length, enum ibv_wr_opcode last)
{
	writes_before_answer = -1;
	writes_of_poster = 0;
	for (unsigned int i = 0; i < num; i++)
		produce_op(length[i], i == num - 1 ? last : IBV_WR_RDMA_WRITE);
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
	/* A WRITE and a READ are no burst: the answer comes after the first. */
	ck_assert_int_eq(answered_after(2, (uint32_t[]){ 64, 64 }, IBV_WR_RDMA_READ), 1);
}
END_TEST

/* They are answered when the work is done, because clients that post by calls also poll by calls. */
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

/* ---- CPUs are short ------------------------------------------------------------------------------------------------- */

enum { LARGE = 512 * 1024, ALL = ENTRIES - 1 };

/* Rings one doorbell for ALL requests. Unless CPUs are short, the user's thread carries out all but the first. */
static void post_many(uint32_t length)
{
	for (int i = 0; i < ALL; i++)
		produce(length);
	ring_doorbell_by(&worker);
}

static void expect_all(uint64_t first)
{
	while (first < produced)
		expect(a->scq, first++, IBV_WC_SUCCESS);
}

/* Is a doorbell answered only after its thread has carried out the request? That is too small to crowd the QP. */
static bool client_waits(void)
{
	return answered_after(1, (uint32_t[]){ SIZE }, IBV_WR_RDMA_WRITE) == -1 && writes_of_poster;
}

static bool is_crowded_by(uint32_t length, unsigned int seconds)
{
	const uint64_t end = now_us() + seconds * UINT64_C(1000000);
	uint64_t first;

	do {
		first = produced;
		post_many(length);
		expect_all(first);
	} while (!client_waits() && now_us() < end);
	return client_waits();
}

START_TEST(test_client_waits_for_its_large_requests_where_cpus_are_short)
{
	const uint64_t end = now_us() + 60000000;
	int before_answer;

	ck_assert(!client_waits());
	crowd();
	/* If the doorbell's budget ends first, the user's thread carries out some: try again. */
	do {
		ck_assert(is_crowded_by(LARGE, 60));
		before_answer = answered_after(3, (uint32_t[]){ LARGE, 64, SIZE }, IBV_WR_RDMA_WRITE);
	} while ((before_answer != -1 || writes_of_poster != 4) && now_us() < end);
	ck_assert_int_eq(before_answer, -1);
	ck_assert_int_eq(writes_of_poster, 4);
}
END_TEST

START_TEST(test_client_waits_no_longer_when_cpus_are_free_again)
{
	uint64_t end;

	crowd();
	ck_assert(is_crowded_by(LARGE, 60));
	end_of_crowd();
	end = now_us() + 20000000;
	/* Other programs may take a CPU while the user's thread ends its last run. */
	do
		usleep(600000);
	while (client_waits() && now_us() < end);
	ck_assert_uint_lt(now_us(), end);
}
END_TEST

START_TEST(test_no_client_waits_where_cpus_are_free)
{
	const struct sched_param first_of_all = { .sched_priority = 1 };
	const uint64_t end = now_us() + 40000000;
	bool waits = true;

	/* Other programs may take a CPU, but not all the time, and not from a real-time thread, which takes root. */
	sched_setscheduler(0, SCHED_RR, &first_of_all);
	while (waits && now_us() < end) {
		const uint64_t first = produced;

		post_many(LARGE);
		expect_all(first);
		/* The user's thread looks for more requests, then its run ends. */
		usleep(PAUSE_US);
		waits = client_waits();
		if (waits)
			usleep(600000);
	}
	ck_assert(!waits);
}
END_TEST

/* In a short run another program may have had the CPU by chance. */
START_TEST(test_runs_too_short_to_tell_make_no_client_wait)
{
	crowd();
	bed.fabric->crowded_run_ns = UINT64_C(1000000000);
	ck_assert(!is_crowded_by(LARGE, 2));
}
END_TEST

/* Two context switches for each request would cost more CPU time than the client frees by waiting. */
START_TEST(test_client_never_waits_for_requests_that_are_not_so_large)
{
	crowd();
	ck_assert(!is_crowded_by(LARGE * 3 / 8, 2));
}
END_TEST

/* It goes on polling in any case. */
START_TEST(test_client_whose_doorbells_nobody_answers_never_waits)
{
	bool waits;

	crowd();
	a->qp->sq->unanswered = true;
	waits = is_crowded_by(LARGE, 2);
	a->qp->sq->unanswered = false;
	ck_assert(!waits);
}
END_TEST

/* Makes the user's thread slow, so that a doorbell finds it at work. */
static void write_slowly(void)
{
	count_write();
	if (!pthread_equal(pthread_self(), poster))
		usleep(100);
}

/*
 * The doorbell's budget ends before all requests are carried out, and the user's thread has the rest. It stops at its first
 * write until the poster rings again, and for 20 ms more.
 */
static atomic_bool thread_stopped, poster_rings;

static void write_after_the_ring(void)
{
	count_write();
	if (pthread_equal(pthread_self(), poster) || atomic_exchange(&thread_stopped, true))
		return;
	while (!poster_rings)
		usleep(100);
	usleep(20000);
}

START_TEST(test_doorbell_takes_the_queue_back_where_cpus_are_short)
{
	const uint64_t first = produced;

	thread_stopped = poster_rings = false;
	mm_written = write_after_the_ring;
	soft_qp(a->qp)->s_crowded_end = UINT64_MAX;
	bed.fabric->let_go_ns = UINT64_C(60000000000);
	post_many(640 * 1024);
	while (!thread_stopped)
		usleep(100);
	writes_of_poster = 0;
	poster_rings = true;
	ring_doorbell();
	ck_assert_int_gt(writes_of_poster, 0);
	expect_all(first);
	expect_nothing(a->scq);
}
END_TEST

START_TEST(test_doorbell_leaves_the_queue_to_its_thread_where_cpus_are_free)
{
	const uint64_t first = produced;

	mm_written = write_slowly;
	post_many(SIZE);
	while (!writes_of_others)
		usleep(10);
	while (popped < produced)
		ring_doorbell();
	expect_all(first);
	/* The poster carries out the first burst only. */
	ck_assert_int_eq(writes_of_poster, (256 << 10) / SIZE);
}
END_TEST

START_TEST(test_no_request_is_lost_where_cpus_are_short)
{
	uint64_t first;

	crowd();
	ck_assert(is_crowded_by(LARGE, 60));
	for (int i = 0; i < (suite_is_long() ? 24 : 9); i++) {
		if (i % 8 == 7)
			usleep(600000);
		first = produced;
		post_many(i % 3 ? LARGE : SIZE);
		for (int k = 0; k < i % 5; k++)
			ring_doorbell();
		expect_all(first);
	}
	expect_nothing(a->scq);
	ck_assert_uint_eq(popped, produced);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("stream");

	tcase_add_checked_fixture(t, setup, teardown);
	/* Tests that share a CPU with the spinning thread are slow with a sanitizer. */
	tcase_set_timeout(t, 100);
	tcase_add_test(t, test_large_requests_that_follow_each_other_soon_are_the_users_threads);
	tcase_add_test(t, test_large_requests_with_pauses_are_their_posters);
	tcase_add_test(t, test_small_requests_are_their_posters_however_soon_they_come);
	tcase_add_test(t, test_large_requests_with_many_small_ones_between_them_are_their_posters);
	tcase_add_test(t, test_no_request_is_lost_while_the_thread_comes_and_goes);
	tcase_add_test(t, test_a_client_that_stops_waiting_for_its_stream_is_its_own_again);
	tcase_add_test(t, test_qp_ends_while_its_thread_looks_for_more);
	tcase_add_test(t, test_request_in_a_stream_is_carried_out_before_its_doorbell);
	tcase_add_test(t, test_request_whose_doorbell_a_filter_may_refuse_waits_for_it);
	tcase_add_test(t, test_a_short_message_is_at_its_receiver_before_the_doorbell_is_answered);
	tcase_add_test(t, test_a_doorbell_is_answered_before_longer_work);
	tcase_add_test(t, test_posts_to_own_rings_are_never_answered_early);
	tcase_add_test(t, test_client_waits_for_its_large_requests_where_cpus_are_short);
	tcase_add_test(t, test_client_waits_no_longer_when_cpus_are_free_again);
	tcase_add_test(t, test_no_client_waits_where_cpus_are_free);
	tcase_add_test(t, test_runs_too_short_to_tell_make_no_client_wait);
	tcase_add_test(t, test_client_never_waits_for_requests_that_are_not_so_large);
	tcase_add_test(t, test_client_whose_doorbells_nobody_answers_never_waits);
	tcase_add_test(t, test_doorbell_takes_the_queue_back_where_cpus_are_short);
	tcase_add_test(t, test_doorbell_leaves_the_queue_to_its_thread_where_cpus_are_free);
	tcase_add_test(t, test_no_request_is_lost_where_cpus_are_short);
	return run_suite("backends: soft, streams", t);
}
