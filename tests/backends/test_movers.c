/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The soft backend when a client's memory does not answer: which threads wait for it, and which must not. a is the
 * requester and b the responder, except where a test says otherwise. Posted work runs on a thread of its own.
 */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "backends/soft/soft.h"
#include "tests/backends/bed.h"

enum { MS = 1000, SOON = 1000 * MS /* us: limit for a call that must not wait, on a busy machine */, LENGTH = 100 };

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];

static void set_patience(unsigned int ms)
{
	bed.fabric->movers.patience_ns = ms ? ms * UINT64_C(1000000) : UINT64_MAX;
}

static void setup(void)
{
	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_INFINIBAND);
	bed.cap = (struct ibv_qp_cap){ 64, 64, 4, 4, 64 };
	/* The QPs have no time-out that could end a request before the test does. */
	a->timeout = b->timeout = 0;
	set_patience(0);
	mm_slow_len = 0;
	mm_spins = false;
}

/* Waits for threads that are still in slow memory. */
static void teardown(void)
{
	mm_slow_len = 0;
	while (mm_slowed)
		usleep(100);
	bed_close(&bed);
}

static void slow_down(struct end *end)
{
	mm_slow = (uintptr_t)end->buf;
	mm_slow_len = LENGTH;
}

/* ---- a's client -------------------------------------------------------------------------------------------------- */

struct post {
	struct end *from;
	struct ibv_sge sge;
	struct uvd_send_wr wr;
	struct uvd_work work;
};

static void *do_work(void *arg)
{
	struct post *post = arg;

	post->work.run(post->work.arg, NULL);
	free(post);
	return NULL;
}

/* Posts a request, and starts a thread that carries it out. offset: in the requester's buffer. */
static void post_at(struct end *from, struct end *to, enum ibv_wr_opcode opcode, size_t offset)
{
	struct post *post = calloc(1, sizeof(*post));
	const struct uvd_send_wr *bad;
	pthread_attr_t attr;
	pthread_t thread;

	post->from = from;
	post->sge = sge_at(from, offset, opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : LENGTH);
	post->wr = wr_to(to, opcode, &post->sge, 1);
	ck_assert_int_eq(uvd_backend_soft.post_send(from->qp, &post->wr, &bad, &post->work), 0);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	ck_assert_int_eq(pthread_create(&thread, &attr, do_work, post), 0);
	pthread_attr_destroy(&attr);
}

static void post(enum ibv_wr_opcode opcode)
{
	post_at(a, b, opcode, 0);
}

static void wait_slowed(int n)
{
	while (mm_slowed < n)
		usleep(100);
	/* One tick of the watcher, so that it too has seen the movers there. */
	usleep(10 * MS);
}

static uint64_t begin;

#define at_once(call) \
	do { \
		begin = now_us(); \
		call; \
		ck_assert_uint_lt(now_us() - begin, SOON); \
	} while (0)

/* ---- destroying and resetting objects ---------------------------------------------------------------------------- */

START_TEST(test_destroy_waits_for_no_peers_memory)
{
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_recv_at(b, 1, 0, LENGTH), 0);
	slow_down(a);
	post(IBV_WR_SEND);
	wait_slowed(1);
	at_once(free_qp(b));
	ck_assert_int_eq(mm_slowed, 1);
}
END_TEST

START_TEST(test_destroy_of_the_requester_waits_for_no_peers_memory)
{
	bed_connect(&bed, IBV_QPT_RC);
	slow_down(b);
	post(_i ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE);
	wait_slowed(1);
	at_once(free_qp(a));
	ck_assert_int_eq(mm_slowed, 1);
	/* The peer stays in RTS, as if the rest of the message had never arrived. */
	mm_slow_len = 0;
	while (mm_slowed)
		usleep(100);
	ck_assert_int_eq(state_of(b), IBV_QPS_RTS);
}
END_TEST

START_TEST(test_error_flushes_while_a_request_is_in_the_peers_memory)
{
	bed_connect(&bed, IBV_QPT_RC);
	slow_down(b);
	post(IBV_WR_RDMA_WRITE);
	wait_slowed(1);
	post_at(a, b, IBV_WR_SEND, 1000);
	at_once(ck_assert_int_eq(to_state(a, IBV_QPS_ERR), 0));
	expect(a->scq, 0xa, IBV_WC_WR_FLUSH_ERR);
	expect(a->scq, 0xa, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(mm_slowed, 1);
	at_once(ck_assert_int_eq(to_state(a, IBV_QPS_RESET), 0));
	/* After the reset the QP can be used again, although the old request is still in flight. */
	ck_assert_int_eq(to_init(a) | to_rtr(a, b) | to_rts(a), 0);
	mm_slow_len = 0;
	post(IBV_WR_RDMA_WRITE);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
}
END_TEST

START_TEST(test_regions_wait_only_for_who_is_in_their_memory)
{
	struct uvd_mr *source, *key;

	bed_connect(&bed, IBV_QPT_RC);
	source = a->mr;
	slow_down(b);
	post(IBV_WR_RDMA_WRITE);
	wait_slowed(1);
	a->mr = make_mr(a, a->buf, BUF_SIZE, a->access);
	at_once(free_mr(source));
	key = make_mr(b, b->buf + 4096, 4096, b->access);
	at_once(free_mr(key));
	ck_assert_int_eq(mm_slowed, 1);
}
END_TEST

static void *free_later(void *arg)
{
	free_mr(b->mr);
	return NULL;
}

START_TEST(test_a_region_waits_for_who_is_in_its_memory)
{
	pthread_t thread;

	bed_connect(&bed, IBV_QPT_RC);
	slow_down(b);
	post(IBV_WR_RDMA_WRITE);
	wait_slowed(1);
	ck_assert_int_eq(pthread_create(&thread, NULL, free_later, NULL), 0);
	usleep(50 * MS);
	ck_assert_int_eq(pthread_tryjoin_np(thread, NULL), EBUSY);
	mm_slow_len = 0;
	pthread_join(thread, NULL);
	b->mr = make_mr(b, b->buf, BUF_SIZE, b->access);
}
END_TEST

/* ---- posting ----------------------------------------------------------------------------------------------------- */

START_TEST(test_post_of_a_receive_waits_for_no_senders_memory)
{
	a->rnr_retry = 7;
	bed_connect(&bed, IBV_QPT_RC);
	post(IBV_WR_SEND);
	usleep(10 * MS);
	slow_down(a);
	at_once(ck_assert_int_eq(post_recv_at(b, 1, 0, LENGTH), 0));
	wait_slowed(1);
	at_once(ck_assert_int_eq(post_recv_at(b, 2, 0, LENGTH), 0));
	mm_slow_len = 0;
	expect(b->rcq, 1, IBV_WC_SUCCESS);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
}
END_TEST

START_TEST(test_posts_behind_a_slow_one_return_and_keep_their_order)
{
	struct ibv_sge sge = sge_at(a, 1000, LENGTH);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_RDMA_WRITE, &sge, 1);

	bed_connect(&bed, IBV_QPT_RC);
	slow_down(a);
	post(IBV_WR_RDMA_WRITE);
	wait_slowed(1);
	wr.wr_id = 2;
	at_once(ck_assert_int_eq(post_send_wr(a, &wr), 0));
	expect_nothing(a->scq);
	mm_slow_len = 0;
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	expect(a->scq, 2, IBV_WC_SUCCESS);
}
END_TEST

/* ---- patience ---------------------------------------------------------------------------------------------------- */

START_TEST(test_responder_whose_memory_does_not_answer_gets_a_protection_error)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						      IBV_WR_ATOMIC_FETCH_AND_ADD };

	set_patience(100);
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(post_recv_at(b, 1, 0, LENGTH), 0);
	slow_down(b);
	post_at(a, b, opcodes[_i], 1000);
	post_at(a, b, IBV_WR_RDMA_WRITE, 1000);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
	expect_why(a, "peer-stuck", "");
	expect(a->scq, 0xa, IBV_WC_WR_FLUSH_ERR);
	expect(b->rcq, 1, opcodes[_i] == IBV_WR_SEND ? IBV_WC_LOC_PROT_ERR : IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(b->qp_event[IBV_EVENT_QP_FATAL], opcodes[_i] != IBV_WR_SEND);
	ck_assert_int_eq(state_of(a), IBV_QPS_ERR);
	ck_assert_int_eq(state_of(b), IBV_QPS_ERR);
	ck_assert_int_eq(mm_slowed, 1);
	at_once(free_qp(a));
	at_once(free_qp(b));
}
END_TEST

START_TEST(test_requester_whose_memory_does_not_answer_gets_a_protection_error)
{
	set_patience(100);
	bed_connect(&bed, _i ? IBV_QPT_UC : IBV_QPT_RC);
	ck_assert_int_eq(post_recv_at(b, 1, 0, LENGTH), 0);
	slow_down(a);
	post(IBV_WR_SEND);
	expect(a->scq, 0xa, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(state_of(a), _i ? IBV_QPS_SQE : IBV_QPS_ERR);
	/* Nothing has reached the peer. */
	ck_assert_int_eq(state_of(b), IBV_QPS_RTS);
	expect_nothing(b->rcq);
	at_once(free_qp(a));
	at_once(free_qp(b));
}
END_TEST

START_TEST(test_read_that_cannot_land_is_a_protection_error_at_home)
{
	set_patience(100);
	bed_connect(&bed, IBV_QPT_RC);
	slow_down(a);
	post(IBV_WR_RDMA_READ);
	expect(a->scq, 0xa, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(state_of(b), IBV_QPS_RTS);
}
END_TEST

/* b's region gets an address space of its own: elsewhere mm is NULL, for which the engine finds no lost mover. */
START_TEST(test_memory_that_did_not_answer_is_not_asked_again)
{
	set_patience(100);
	a->timeout = 1;
	a->retry_cnt = 1;
	bed_connect(&bed, IBV_QPT_RC);
	b->mr->umem.mm = (struct uvd_mm *)&bed;
	slow_down(b);
	post_at(a, b, IBV_WR_RDMA_WRITE, 1000);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(to_state(&bed.end[i], IBV_QPS_RESET) | to_init(&bed.end[i]), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(to_rtr(&bed.end[i], &bed.end[!i]) | to_rts(&bed.end[i]), 0);
	post_at(a, b, IBV_WR_RDMA_WRITE, 1000);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
	ck_assert_int_eq(mm_slowed, 1);
	ck_assert_int_eq(state_of(b), IBV_QPS_RTS);
	/* Once the memory has answered, the engine accesses it again. */
	mm_slow_len = 0;
	while (bed.fabric->movers.lost)
		usleep(100);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(to_state(&bed.end[i], IBV_QPS_RESET) | to_init(&bed.end[i]), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(to_rtr(&bed.end[i], &bed.end[!i]) | to_rts(&bed.end[i]), 0);
	post_at(a, b, IBV_WR_RDMA_WRITE, 1000);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
}
END_TEST

/* A datagram's sender would not wait so long. */
START_TEST(test_slow_memory_that_answers_is_no_error)
{
	bed_connect(&bed, IBV_QPT_RC);
	slow_down(b);
	post_at(a, b, IBV_WR_RDMA_WRITE, 1000);
	wait_slowed(1);
	usleep(400 * MS); /* four times drop_ns */
	expect_nothing(a->scq);
	mm_slow_len = 0;
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
}
END_TEST

static struct uvd_ah ah_of(struct end *from, struct end *to)
{
	return (struct uvd_ah){ .pd = from->side->pd,
				.attr = { .dlid = to->side->dev.config.ports[0].lid, .port_num = 1 } };
}

static void post_datagram(struct end *from, struct end *to, struct uvd_ah *ah, size_t offset)
{
	struct post *post = calloc(1, sizeof(*post));
	const struct uvd_send_wr *bad;
	pthread_t thread;

	post->sge = sge_at(from, offset, 8);
	post->wr = wr_to(to, IBV_WR_SEND, &post->sge, 1);
	post->wr.ah = ah;
	post->wr.remote_qpn = to->qp->qp_num;
	post->wr.remote_qkey = 0x1234;
	ck_assert_int_eq(uvd_backend_soft.post_send(from->qp, &post->wr, &bad, &post->work), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, do_work, post), 0);
	pthread_detach(thread);
}

/* b's first receive is in slow memory. a's last datagram goes to a itself. */
START_TEST(test_datagrams_sender_waits_for_no_slow_memory_and_the_next_goes_its_way)
{
	struct uvd_ah to_b = ah_of(a, b), to_a = ah_of(a, a);
	struct ibv_sge sge[2] = { sge_at(b, 0, 44), sge_at(b, 8192, LENGTH) };

	bed_connect(&bed, IBV_QPT_UD);
	ck_assert_int_eq(post_recv_list(b, 1, sge, 2), 0);
	ck_assert_int_eq(post_recv_at(b, 2, 4096, LENGTH), 0);
	ck_assert_int_eq(post_recv_at(a, 3, 4096, LENGTH), 0);
	memcpy(a->buf + 1000, "datagram", 8);
	slow_down(b);
	mm_slow += 40; /* the data is behind the room for a GRH */
	post_datagram(a, b, &to_b, 1000);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	/* b is known to be slow now, so the next datagram to it is dropped without waiting. */
	post_datagram(a, b, &to_b, 1000);
	post_datagram(a, a, &to_a, 1000);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	expect(a->rcq, 3, IBV_WC_SUCCESS);
	ck_assert_int_eq(mm_slowed, 1);
	ck_assert_int_eq(state_of(b), IBV_QPS_RTS);
	at_once(free_qp(a));
	expect_nothing(b->rcq);
	/* The first datagram was delayed, not lost. */
	mm_slow_len = 0;
	ck_assert_uint_eq(expect(b->rcq, 1, IBV_WC_SUCCESS).byte_len, 48);
	ck_assert_mem_eq(b->buf + 40, "data", 4);
	ck_assert_mem_eq(b->buf + 8192, "gram", 4);
	expect_nothing(b->rcq);
}
END_TEST

/* Two datagrams to one QP. The second one's thread waits for the first one's when that turns out to be stuck. */
START_TEST(test_datagram_does_not_wait_for_one_that_is_stuck)
{
	struct uvd_ah of_a = ah_of(a, b), of_b = ah_of(b, b);
	const uint64_t end = now_us() + 20000 * MS;

	bed_connect(&bed, IBV_QPT_UD);
	set_patience(60000);
	ck_assert_int_eq(post_recv_at(b, 1, 0, LENGTH), 0);
	ck_assert_int_eq(post_recv_at(b, 2, 4096, LENGTH), 0);
	slow_down(b);
	mm_slow += 40; /* the data is behind the room for a GRH */
	post_datagram(a, b, &of_a, 1000);
	wait_slowed(1);
	post_datagram(b, b, &of_b, 1000);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	expect(b->scq, 0xa, IBV_WC_SUCCESS);
	ck_assert_uint_lt(now_us(), end);
	mm_slow_len = 0;
	expect(b->rcq, 1, IBV_WC_SUCCESS);
	expect_nothing(b->rcq);
}
END_TEST

/* A busy machine can let the thread that has the receiver wait, and another client's memory have a mover meanwhile. */
START_TEST(test_datagram_is_not_dropped_as_another_mover_is_lost_elsewhere)
{
	struct uvd_ah to_b = ah_of(a, b);
	struct soft_qp *peer;

	bed_connect(&bed, IBV_QPT_UD);
	peer = soft_qp(b->qp);
	ck_assert_int_eq(post_recv_at(b, 1, 0, LENGTH), 0);
	bed.fabric->movers.lost++;
	soft_send_arrived(peer);
	post_datagram(a, b, &to_b, 1000);
	usleep(400 * MS); /* four times drop_ns */
	pthread_mutex_lock(&peer->lock);
	soft_send_settled(peer);
	pthread_mutex_unlock(&peer->lock);
	bed.fabric->movers.lost--;
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	expect(b->rcq, 1, IBV_WC_SUCCESS);
}
END_TEST

/* Two datagrams to one QP. The first one's thread is runnable all the time; the second one's waits for the first. */
START_TEST(test_datagram_is_not_dropped_as_its_thread_waits_for_a_processor)
{
	struct uvd_ah of_a = ah_of(a, b), of_b = ah_of(b, b);

	bed_connect(&bed, IBV_QPT_UD);
	ck_assert_int_eq(post_recv_at(b, 1, 0, LENGTH), 0);
	ck_assert_int_eq(post_recv_at(b, 2, 4096, LENGTH), 0);
	mm_spins = true;
	slow_down(b);
	mm_slow += 40; /* the data is behind the room for a GRH */
	post_datagram(a, b, &of_a, 1000);
	wait_slowed(1);
	post_datagram(b, b, &of_b, 1000);
	usleep(400 * MS); /* four times drop_ns */
	mm_slow_len = 0;
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	expect(b->scq, 0xa, IBV_WC_SUCCESS);
	expect(b->rcq, 1, IBV_WC_SUCCESS);
	expect(b->rcq, 2, IBV_WC_SUCCESS);
}
END_TEST

/* ---- the thread that works --------------------------------------------------------------------------------------- */

static atomic_int times_held_up;

static void count_held_up(struct uvd_worker *worker)
{
	times_held_up++;
}

static atomic_int writes;

/* Makes the memory of the second chunk slow after the first write. */
static void slow_down_again(void)
{
	if (!writes++) {
		mm_slow = (uintptr_t)a->buf + SOFT_CHUNK;
		mm_slow_len = LENGTH;
	}
}

static void *work_as_worker(void *arg)
{
	struct uvd_work *work = arg;
	struct uvd_worker worker = { .held_up = count_held_up };

	work->run(work->arg, &worker);
	return NULL;
}

/* A second held_up() would start a third thread, although the replacement is still working. */
START_TEST(test_a_worker_that_is_held_up_twice_is_told_once)
{
	struct ibv_sge sge = sge_at(a, 0, 2 * SOFT_CHUNK);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_RDMA_WRITE, &sge, 1);
	const struct uvd_send_wr *bad;
	struct uvd_work work;
	pthread_t thread;

	bed_connect(&bed, IBV_QPT_RC);
	times_held_up = writes = 0;
	mm_written = slow_down_again;
	for (int row = 1; row <= 2; row++) {
		writes = 0;
		slow_down(a);
		ck_assert_int_eq(uvd_backend_soft.post_send(a->qp, &wr, &bad, &work), 0);
		ck_assert_int_eq(pthread_create(&thread, NULL, work_as_worker, &work), 0);
		while (times_held_up < row)
			usleep(100);
		mm_slow_len = 0;
		while (!writes)
			usleep(100);
		usleep(200 * MS);
		ck_assert_int_eq(mm_slowed, 1);
		ck_assert_int_eq(times_held_up, row);
		mm_slow_len = 0;
		pthread_join(thread, NULL);
		expect(a->scq, 0xa, IBV_WC_SUCCESS);
	}
	mm_written = NULL;
}
END_TEST

/* ---- a user's threads -------------------------------------------------------------------------------------------- */

/* Both requests exceed a call's budget, so the user's threads carry them out. */
START_TEST(test_a_users_other_requests_do_not_wait_for_one_that_is_held_up)
{
	enum { HUGE = 96 << 20 };
	char *big = calloc(1, HUGE);
	struct uvd_mr *mr = make_mr(a, big, HUGE, a->access);
	struct ibv_sge sge = { (uintptr_t)big, HUGE, mr->lkey };
	struct uvd_send_wr wr = wr_to(b, IBV_WR_RDMA_WRITE, &sge, 1);
	struct uvd_qp_init_attr init = { .cap = bed.cap };
	struct end loop;
	int err;

	bed_connect(&bed, IBV_QPT_RC);
	free_mr(b->mr);
	b->mr = make_mr(b, big, HUGE, b->access);
	loop = *a;
	loop.qp = make_qp(&loop, IBV_QPT_RC, &init, &err);
	ck_assert_int_eq(err, 0);
	ck_assert_int_eq(to_init(&loop) | to_rtr(&loop, &loop) | to_rts(&loop), 0);
	mm_slow = (uintptr_t)big;
	mm_slow_len = 8;
	wr.remote_addr = (uintptr_t)big;
	wr.rkey = b->mr->rkey;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
	wait_slowed(1);
	sge.addr = wr.remote_addr = (uintptr_t)big + 4096;
	sge.length -= 4096;
	wr.rkey = mr->rkey;
	wr.wr_id = 2;
	ck_assert_int_eq(post_send_wr(&loop, &wr), 0);
	expect(a->scq, 2, IBV_WC_SUCCESS);
	ck_assert_int_eq(mm_slowed, 1);
	mm_slow_len = 0;
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	free_qp(&loop);
	free_qp(a);
	free_qp(b);
	free_mr(mr);
	free_mr(b->mr);
	b->mr = make_mr(b, b->buf, BUF_SIZE, b->access);
	free(big);
}
END_TEST

/* ---- atomics ----------------------------------------------------------------------------------------------------- */

/* The two words are at the same offset in different pages. */
START_TEST(test_atomics_wait_only_for_those_on_the_same_word)
{
	struct end loop;
	struct uvd_qp_init_attr init = { .cap = bed.cap };
	struct ibv_sge sge = sge_at(b, 8192, 8);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, 1);
	int err;

	bed_connect(&bed, IBV_QPT_RC);
	loop = *b;
	loop.qp = make_qp(&loop, IBV_QPT_RC, &init, &err);
	ck_assert_int_eq(err, 0);
	ck_assert_int_eq(to_init(&loop) | to_rtr(&loop, &loop) | to_rts(&loop), 0);
	slow_down(b);
	post_at(a, b, IBV_WR_ATOMIC_FETCH_AND_ADD, 1000);
	wait_slowed(1);
	wr.remote_addr += 4096;
	wr.compare_add = 5;
	at_once(ck_assert_int_eq(post_send_wr(&loop, &wr), 0));
	expect(b->scq, 0xa, IBV_WC_SUCCESS);
	ck_assert_uint_eq(*(uint64_t *)(b->buf + 4096), 5);
	expect_nothing(a->scq);
	mm_slow_len = 0;
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	free_qp(&loop);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("movers");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_destroy_waits_for_no_peers_memory);
	tcase_add_loop_test(t, test_destroy_of_the_requester_waits_for_no_peers_memory, 0, 2);
	tcase_add_test(t, test_error_flushes_while_a_request_is_in_the_peers_memory);
	tcase_add_test(t, test_regions_wait_only_for_who_is_in_their_memory);
	tcase_add_test(t, test_a_region_waits_for_who_is_in_its_memory);
	tcase_add_test(t, test_post_of_a_receive_waits_for_no_senders_memory);
	tcase_add_test(t, test_posts_behind_a_slow_one_return_and_keep_their_order);
	tcase_add_loop_test(t, test_responder_whose_memory_does_not_answer_gets_a_protection_error, 0, 4);
	tcase_add_loop_test(t, test_requester_whose_memory_does_not_answer_gets_a_protection_error, 0, 2);
	tcase_add_test(t, test_read_that_cannot_land_is_a_protection_error_at_home);
	tcase_add_test(t, test_memory_that_did_not_answer_is_not_asked_again);
	tcase_add_test(t, test_slow_memory_that_answers_is_no_error);
	tcase_add_test(t, test_datagrams_sender_waits_for_no_slow_memory_and_the_next_goes_its_way);
	tcase_add_test(t, test_datagram_does_not_wait_for_one_that_is_stuck);
	tcase_add_test(t, test_datagram_is_not_dropped_as_another_mover_is_lost_elsewhere);
	tcase_add_test(t, test_datagram_is_not_dropped_as_its_thread_waits_for_a_processor);
	tcase_add_test(t, test_a_worker_that_is_held_up_twice_is_told_once);
	tcase_add_test(t, test_a_users_other_requests_do_not_wait_for_one_that_is_held_up);
	tcase_add_test(t, test_atomics_wait_only_for_those_on_the_same_word);
	return run_suite("backends: soft, slow memory", t);
}
