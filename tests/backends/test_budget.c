/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The soft backend's budget of work for one call, and the user's thread that carries out the rest. Lengths are chosen
 * for the budget of schedule/budget.c: 64 MiB, or 20 ms by a clock that is read after more than 64 requests or 256 KiB.
 */
#include <check.h>
#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "account/account.h"
#include "backends/soft/soft.h"
#include "tests/backends/bed.h"
#include "util/util.h"

enum { MIB = 1 << 20, BIG = 24 * MIB, IN_BUDGET = 2, OVER = 3 * BIG, HUGE = 4 * BIG, BOUNCE = 256 << 10 };

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];
static pthread_t poster;
static atomic_int poster_writes, other_writes; /* numbers of writes, of at most BOUNCE bytes each */
static atomic_int poster_sleeps_us;
static char *big; /* HUGE bytes, registered by a and by b */
static struct uvd_mr *mr_a, *mr_b;

static void count_write(void)
{
	if (pthread_equal(pthread_self(), poster)) {
		poster_writes++;
		if (poster_sleeps_us)
			usleep(poster_sleeps_us);
	} else {
		other_writes++;
	}
}

static void setup(void)
{
	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_INFINIBAND);
	/* No limit expires: the watcher leaves the threads alone that these tests stop in slow memory. */
	bed.fabric->movers.held_up_ns = bed.fabric->movers.drop_ns = bed.fabric->movers.patience_ns = UINT64_MAX;
	bed.cap = (struct ibv_qp_cap){ 256, 256, 4, 4, 64 };
	bed.cqe = 1000;
	a->timeout = b->timeout = 14;
	big = calloc(1, HUGE);
	mr_a = make_mr(a, big, HUGE, a->access);
	mr_b = make_mr(b, big, HUGE, b->access);
	ck_assert(mr_a && mr_b);
	poster = pthread_self();
	poster_writes = other_writes = poster_sleeps_us = 0;
	mm_written = count_write;
}

static void teardown(void)
{
	mm_written = NULL;
	bed_close(&bed);
}

/* Destroys the QPs, then the regions that they use. */
static void finish(void)
{
	mm_slow_len = 0;
	for (int i = 0; i < 2; i++)
		if (bed.end[i].qp)
			free_qp(&bed.end[i]);
	free_mr(mr_a);
	free_mr(mr_b);
	free(big);
}

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

/* Creates another QP of end's user, connected to itself. Its requests start at `big`. cq NULL: creates a CQ. */
static void open_loop(struct end *loop, struct end *end, struct uvd_cq *cq)
{
	struct uvd_qp_init_attr init = { .cap = bed.cap };
	int err;

	*loop = *end;
	loop->srq = NULL;
	loop->buf = big;
	loop->scq = loop->rcq = cq ? cq : make_cq(loop, bed.cqe);
	loop->qp = make_qp(loop, IBV_QPT_RC, &init, &err);
	ck_assert_int_eq(err, 0);
	ck_assert_int_eq(to_init(loop) | to_rtr(loop, loop) | to_rts(loop), 0);
}

static void close_loop(struct end *loop, bool with_cq)
{
	if (loop->qp)
		free_qp(loop);
	if (with_cq) {
		ck_assert_int_eq(uvd_backend_soft.destroy_cq(loop->scq), 0);
		free(loop->scq);
	}
}

/* The memory that the requests of that end read and write. Requests that two threads run at once must not overlap. */
static uint64_t memory_of(struct end *from)
{
	return (uintptr_t)(from == a ? big : from->buf);
}

static void post_write(struct end *from, struct uvd_mr *src, struct uvd_mr *dst, uint64_t wr_id, uint32_t length)
{
	struct ibv_sge sge = { memory_of(from), length, src->lkey };

	ck_assert_int_eq(send_wr(from, .wr_id = wr_id, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED, .remote_addr = sge.addr, .rkey = dst->rkey),
			 0);
}

/* Posts num requests of BIG bytes in one list, with wr_id 0 and up. */
static void post_list(struct end *from, struct uvd_mr *src, struct uvd_mr *dst, int num)
{
	struct ibv_sge sge = { memory_of(from), BIG, src->lkey };
	struct uvd_send_wr *wrs = calloc(num, sizeof(wrs[0]));

	for (int i = 0; i < num; i++)
		wrs[i] = (struct uvd_send_wr){
			.next = i + 1 < num ? &wrs[i + 1] : NULL,
			.wr_id = i,
			.opcode = IBV_WR_RDMA_WRITE,
			.sg_list = &sge,
			.num_sge = 1,
			.send_flags = IBV_SEND_SIGNALED,
			.remote_addr = sge.addr,
			.rkey = dst->rkey,
		};
	ck_assert_int_eq(post_send_wr(from, wrs), 0);
	free(wrs);
}

/* Posts a request of this QP whose memory does not answer, and waits until the user's thread is stopped there. */
static void block_user_of(struct end *loop, struct uvd_mr *mr)
{
	loop->buf = big + BIG;
	mm_slow = memory_of(loop);
	mm_slow_len = BOUNCE;
	post_write(loop, mr, mr, 0xb10c, OVER);
	while (!mm_slowed)
		usleep(100);
}

/* Counts the threads of this process, without the movers' watcher. */
static int num_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int n = -2 - bed.fabric->movers.watching; /* . and .. */

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void expect_threads(int n)
{
	uint64_t end = now_us() + 60000000;

	while (num_threads() != n && now_us() < end)
		usleep(1000);
	ck_assert_int_eq(num_threads(), n);
}

/* ---- the budget -------------------------------------------------------------------------------------------------- */

START_TEST(test_post_returns_when_its_budget_is_spent)
{
	struct end loop;

	bed_connect(&bed, IBV_QPT_RC);
	open_loop(&loop, a, NULL);
	block_user_of(&loop, mr_a);
	poster_writes = 0;
	post_list(a, mr_a, mr_b, 8);
	ck_assert_int_le(poster_writes, IN_BUDGET * BIG / BOUNCE);
	/* A further post only appends its request to the queue. */
	poster_writes = 0;
	post_write(a, mr_a, mr_b, 8, 8);
	ck_assert_int_eq(poster_writes, 0);
	/* Nor does a post wait while the user's thread is carrying out a request of the same QP. */
	post_write(&loop, mr_a, mr_a, 0xb10d, 8);
	ck_assert_int_eq(poster_writes, 0);
	ck_assert_int_eq(mm_slowed, 1);

	mm_slow_len = 0;
	for (int i = 0; i < 9; i++)
		expect(a->scq, i, IBV_WC_SUCCESS);
	expect_nothing(a->scq);
	expect(loop.scq, 0xb10c, IBV_WC_SUCCESS);
	expect(loop.scq, 0xb10d, IBV_WC_SUCCESS);
	close_loop(&loop, true);
	finish();
}
END_TEST

START_TEST(test_bytes_and_order_are_those_of_the_posts)
{
	char *to = calloc(10, BIG);
	struct uvd_mr *mr = make_mr(b, to, 10ull * BIG, b->access);

	bed_connect(&bed, IBV_QPT_RC);
	for (size_t i = 0; i < HUGE; i++)
		big[i] = i * 31 + i / 4099;
	for (int i = 0; i < 10; i++) {
		struct ibv_sge sge = { (uintptr_t)big + i * 4097, BIG, mr_a->lkey };

		/* The end of each write overlaps the start of the next: there the later bytes must stay. */
		ck_assert_int_eq(send_wr(a, .wr_id = i, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
					 .send_flags = IBV_SEND_SIGNALED,
					 .remote_addr = (uintptr_t)to + (size_t)i * (BIG - 4096), .rkey = mr->rkey),
				 0);
	}
	for (int i = 0; i < 10; i++)
		expect(a->scq, i, IBV_WC_SUCCESS);
	for (int i = 0; i < 10; i++)
		ck_assert(!memcmp(to + (size_t)i * (BIG - 4096), big + i * 4097, i < 9 ? BIG - 4096 : BIG));
	free_mr(mr);
	free(to);
	finish();
}
END_TEST

START_TEST(test_a_request_beyond_the_budget_is_the_users_threads)
{
	bed_connect(&bed, IBV_QPT_RC);
	post_write(a, mr_a, mr_b, 1, HUGE);
	expect(a->scq, 1, IBV_WC_SUCCESS);
	ck_assert_int_eq(poster_writes, 0);
	ck_assert_int_eq(other_writes, HUGE / BOUNCE);
	finish();
}
END_TEST

START_TEST(test_small_requests_are_their_posters)
{
	int threads;

	bed_connect(&bed, IBV_QPT_RC);
	threads = num_threads();
	for (int i = 0; i < 200; i++)
		post_write(a, mr_a, mr_b, i, 64);
	ck_assert_int_eq(poster_writes, 200);
	ck_assert_int_eq(num_threads(), threads);
	for (int i = 0; i < 200; i++)
		expect(a->scq, i, IBV_WC_SUCCESS);
	finish();
}
END_TEST

START_TEST(test_slow_memory_ends_the_budget_too)
{
	struct uvd_send_wr wrs[250];
	struct ibv_sge sge = { (uintptr_t)big, 64, mr_a->lkey };

	bed_connect(&bed, IBV_QPT_RC);
	for (int i = 0; i < 250; i++)
		wrs[i] = (struct uvd_send_wr){
			.next = i + 1 < 250 ? &wrs[i + 1] : NULL,
			.wr_id = i,
			.opcode = IBV_WR_RDMA_WRITE,
			.sg_list = &sge,
			.num_sge = 1,
			.send_flags = IBV_SEND_SIGNALED,
			.remote_addr = (uintptr_t)big,
			.rkey = mr_b->rkey,
		};
	poster_sleeps_us = 1000;
	ck_assert_int_eq(post_send_wr(a, wrs), 0);
	ck_assert_int_le(poster_writes, 150);
	for (int i = 0; i < 250; i++)
		expect(a->scq, i, IBV_WC_SUCCESS);
	finish();
}
END_TEST

START_TEST(test_who_posts_a_receive_carries_out_nothing)
{
	struct ibv_sge sge = { (uintptr_t)big, HUGE / 4, mr_a->lkey };
	struct uvd_recv_wr wrs[8];
	const struct uvd_recv_wr *bad;

	bed_connect(&bed, IBV_QPT_RC);
	for (int i = 0; i < 8; i++)
		ck_assert_int_eq(send_wr(a, .wr_id = i, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
					 .send_flags = IBV_SEND_SIGNALED),
				 0);
	sge.lkey = mr_b->lkey;
	for (int i = 0; i < 8; i++)
		wrs[i] = (struct uvd_recv_wr){
			.next = i < 7 ? &wrs[i + 1] : NULL, .wr_id = 100 + i, .sg_list = &sge, .num_sge = 1
		};
	ck_assert_int_eq(poster_writes, 0);
	ck_assert_int_eq(uvd_backend_soft.post_recv(b->qp, wrs, &bad), 0);
	for (int i = 0; i < 8; i++) {
		expect(a->scq, i, IBV_WC_SUCCESS);
		expect(b->rcq, 100 + i, IBV_WC_SUCCESS);
	}
	ck_assert_int_eq(poster_writes, 0);
	finish();
}
END_TEST

/* Posts a send, which waits for a receive, and small writes behind it. */
static void post_behind_a_send(struct end *from, struct uvd_mr *src, struct uvd_mr *dst, int writes)
{
	struct ibv_sge sge = { memory_of(from), 8, src->lkey };

	ck_assert_int_eq(send_wr(from, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1), 0);
	for (int i = 1; i <= writes; i++)
		post_write(from, src, dst, i, 8);
}

START_TEST(test_who_posts_receives_of_an_srq_carries_out_nothing)
{
	struct uvd_recv_wr wrs[2] = { { .wr_id = 100, .next = &wrs[1] }, { .wr_id = 101 } };
	const struct uvd_recv_wr *bad;
	struct ibv_sge sge[2];
	struct end other;

	ck_assert_int_eq(make_srq(b, 8, 1, 0), 0);
	bed_connect(&bed, IBV_QPT_RC);
	/* Another QP of b with the same SRQ, connected to itself. */
	other = *b;
	other.scq = other.rcq = make_cq(&other, bed.cqe);
	other.buf = big + BIG;
	other.qp = make_qp(&other, IBV_QPT_RC, &(struct uvd_qp_init_attr){ .cap = bed.cap }, &(int){ 0 });
	ck_assert_int_eq(to_init(&other) | to_rtr(&other, &other) | to_rts(&other), 0);
	post_behind_a_send(a, mr_a, mr_b, 200);
	post_behind_a_send(&other, mr_b, mr_b, 60);
	ck_assert_int_eq(poster_writes, 0);

	/* The threads of two users write into these receives. */
	sge[0] = sge_at(b, 0, 64);
	sge[1] = sge_at(b, 64, 64);
	wrs[0].sg_list = &sge[0];
	wrs[1].sg_list = &sge[1];
	wrs[0].num_sge = wrs[1].num_sge = 1;
	ck_assert_int_eq(uvd_backend_soft.post_srq_recv(b->srq, wrs, &bad), 0);
	for (int i = 1; i <= 200; i++)
		expect(a->scq, i, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wait_wc(other.scq).wr_id / 2, 100 / 2); /* 100 or 101 */
	for (int i = 1; i <= 60; i++)
		expect(other.scq, i, IBV_WC_SUCCESS);
	ck_assert_int_eq(poster_writes, 0);
	close_loop(&other, true);
	finish();
}
END_TEST

/* ---- the user's thread ------------------------------------------------------------------------------------------- */

START_TEST(test_the_thread_ends_and_starts_again)
{
	int threads;

	bed_connect(&bed, IBV_QPT_RC);
	threads = num_threads();
	for (int i = 0; i < 3; i++) {
		post_write(a, mr_a, mr_b, i, HUGE);
		expect(a->scq, i, IBV_WC_SUCCESS);
		expect_threads(threads);
	}
	finish();
}
END_TEST

START_TEST(test_qps_of_one_user_take_turns)
{
	struct end loop, one, two;
	int left[2] = { 10, 10 }, row = 0, last = -1;

	bed_make_qps(&bed, IBV_QPT_RC);
	open_loop(&loop, a, NULL);
	open_loop(&one, a, a->scq);
	open_loop(&two, a, a->scq);
	block_user_of(&loop, mr_a);
	post_list(&one, mr_a, mr_a, 12);
	post_list(&two, mr_a, mr_a, 12);
	/* Drop the completions of requests that the posts themselves carried out. */
	for (struct ibv_wc wc; poll_cq(a->scq, &wc);)
		;
	left[0] = left[1] = 0;
	mm_slow_len = 0;
	while (left[0] < 12 && left[1] < 12) {
		struct ibv_wc wc = wait_wc(a->scq);
		int which = wc.qp_num == two.qp->qp_num;

		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		row = which == last ? row + 1 : 1;
		last = which;
		ck_assert_int_le(row, IN_BUDGET);
		left[which] = wc.wr_id + 1;
	}
	expect(loop.scq, 0xb10c, IBV_WC_SUCCESS);
	close_loop(&loop, true);
	close_loop(&one, false);
	close_loop(&two, false);
	finish();
}
END_TEST

START_TEST(test_another_users_slow_memory_holds_nothing_up)
{
	struct end slow, other;

	bed_make_qps(&bed, IBV_QPT_RC);
	open_loop(&slow, a, NULL);
	open_loop(&other, b, NULL);
	block_user_of(&slow, mr_a);
	post_list(&other, mr_b, mr_b, 8);
	for (int i = 0; i < 8; i++)
		expect(other.scq, i, IBV_WC_SUCCESS);
	expect_nothing(slow.scq);
	mm_slow_len = 0;
	expect(slow.scq, 0xb10c, IBV_WC_SUCCESS);
	close_loop(&slow, true);
	close_loop(&other, true);
	finish();
}
END_TEST

/* The limit is two threads for a user: the third QP has to wait. */
START_TEST(test_as_many_threads_as_may_work_for_one_user)
{
	struct end loops[3];
	int threads;

	uvd_fabric_set_threads(bed.fabric, 2);
	bed_make_qps(&bed, IBV_QPT_RC);
	threads = num_threads();
	for (int i = 0; i < 3; i++)
		open_loop(&loops[i], a, NULL);
	block_user_of(&loops[0], mr_a);
	ck_assert_int_eq(num_threads(), threads + 1);
	for (int i = 1; i < 3; i++) {
		loops[i].buf = big + BIG;
		post_write(&loops[i], mr_a, mr_a, i, OVER);
		while (mm_slowed < 2)
			usleep(100);
	}
	usleep(50000);
	ck_assert_int_eq(mm_slowed, 2);
	ck_assert_int_eq(num_threads(), threads + 2);

	/* All three would now write to the same memory. Make it bad, so that none does. */
	mm_bad = (uintptr_t)big;
	mm_bad_len = HUGE;
	mm_slow_len = 0;
	for (int i = 0; i < 3; i++)
		ck_assert_int_ne(wait_wc(loops[i].scq).status, IBV_WC_SUCCESS);
	mm_bad_len = 0;
	for (int i = 0; i < 3; i++)
		close_loop(&loops[i], true);
	finish();
}
END_TEST

/* A user gets a second thread only if there is work for it. */
START_TEST(test_one_qp_has_one_thread)
{
	int threads;

	uvd_fabric_set_threads(bed.fabric, 8);
	bed_connect(&bed, IBV_QPT_RC);
	threads = num_threads();
	for (int row = 0; row < 2; row++) {
		post_list(a, mr_a, mr_b, 20);
		for (int i = 0; i < 20; i++)
			expect(a->scq, i, IBV_WC_SUCCESS);
		ck_assert_int_eq(num_threads(), threads + 1);
		/* The completions arrive before the thread leaves the QP. A post before that would start another. */
		usleep(300000);
	}
	finish();
}
END_TEST

/* At this nice value four threads weigh as much as two of nice 0: each step lowers the weight by a fifth. */
enum { NICE_OF_FOUR = 3 };

/* Calls fn for each thread of this process. Returns for how many it returns true. */
static int num_threads_for(bool (*fn)(pid_t tid, int nice), int nice)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *e;
	int n = 0;

	ck_assert_ptr_nonnull(dir);
	while ((e = readdir(dir)))
		if (e->d_name[0] != '.')
			n += fn(atoi(e->d_name), nice);
	closedir(dir);
	return n;
}

static bool thread_has_nice(pid_t tid, int nice)
{
	return getpriority(PRIO_PROCESS, tid) == nice;
}

static int num_threads_of_nice(int nice)
{
	return num_threads_for(thread_has_nice, nice);
}

static bool thread_cannot_have_nice(pid_t tid, int nice)
{
	return setpriority(PRIO_PROCESS, tid, nice);
}

START_TEST(test_deferred_work_of_a_user_who_is_ahead_has_a_low_priority)
{
	struct uvd_accounts *accounts;
	struct uvd_account *ahead, *other;
	struct uvd_account_limits limits;
	struct end loop_a, loop_b;

	/* The suite may have been started by nice: then other threads have this value, or a higher one. */
	if (num_threads_for(thread_cannot_have_nice, 0))
		SKIP("only root can lower the nice value");
	uvd_account_limits_init(&limits);
	accounts = uvd_accounts_new(&limits, NULL);
	ahead = uvd_account_get(accounts, (uid_t[]){ 1000 }, 1);
	other = uvd_account_get(accounts, (uid_t[]){ 1001 }, 1);
	uvd_account_spend(other, 1000000);
	uvd_account_spend(ahead, UINT64_C(1000000000000));
	bed_connect(&bed, IBV_QPT_RC);
	open_loop(&loop_a, a, NULL);
	open_loop(&loop_b, b, NULL);

	loop_b.qp->account = other;
	block_user_of(&loop_b, mr_b);
	ck_assert_int_eq(num_threads_of_nice(NICE_OF_FOUR), 0);
	mm_slow_len = 0;
	expect(loop_b.scq, 0xb10c, IBV_WC_SUCCESS);
	while (mm_slowed)
		usleep(100);
	/* The other user's transfer took CPU time too, with a sanitizer enough for a new comparison: stay ahead. */
	uvd_account_spend(ahead, UINT64_C(1000000000000));
	ck_assert_int_eq(uvd_account_charge(ahead, UVD_RES_CALLS, 3), 0);
	loop_a.qp->account = ahead;
	block_user_of(&loop_a, mr_a);
	ck_assert_int_eq(num_threads_of_nice(NICE_OF_FOUR), 1);
	uvd_account_uncharge(ahead, UVD_RES_CALLS, 3);
	mm_slow_len = 0;
	expect(loop_a.scq, 0xb10c, IBV_WC_SUCCESS);

	close_loop(&loop_a, true);
	close_loop(&loop_b, true);
	finish();
	uvd_account_put(ahead);
	uvd_account_put(other);
	uvd_accounts_free(accounts);
}
END_TEST

START_TEST(test_a_port_that_comes_up_waits_for_no_users_memory)
{
	struct end slow, other;

	bed_make_qps(&bed, IBV_QPT_RC);
	/* `slow` has the lower number, so the waker comes to it first. */
	open_loop(&slow, a, NULL);
	open_loop(&other, b, NULL);
	for (int i = 0; i < 2; i++)
		__atomic_store_n(&bed.side[i].dev.config.ports[0].down, true, __ATOMIC_RELAXED);
	post_write(&slow, mr_a, mr_a, 1, 64);
	ck_assert_int_eq(send_wr(&other, .wr_id = 2, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED), 0);
	mm_slow = (uintptr_t)big;
	mm_slow_len = BOUNCE;
	expect_nothing(other.scq);
	for (int i = 0; i < 2; i++)
		__atomic_store_n(&bed.side[i].dev.config.ports[0].down, false, __ATOMIC_RELAXED);
	uvd_backend_soft.port_changed(&bed.side[0].dev, 1, true);
	expect(other.scq, 2, IBV_WC_SUCCESS);
	while (!mm_slowed)
		usleep(100);
	expect_nothing(slow.scq);
	mm_slow_len = 0;
	expect(slow.scq, 1, IBV_WC_SUCCESS);
	close_loop(&slow, true);
	close_loop(&other, true);
	finish();
}
END_TEST

/* ---- the end of a QP --------------------------------------------------------------------------------------------- */

START_TEST(test_error_flushes_what_is_deferred_at_once)
{
	struct ibv_wc wc;
	struct end loop;
	int done = 0;

	bed_connect(&bed, IBV_QPT_RC);
	open_loop(&loop, a, NULL);
	block_user_of(&loop, mr_a);
	post_list(a, mr_a, mr_b, 8);
	for (; poll_cq(a->scq, &wc); done++)
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_int_le(done, IN_BUDGET);
	ck_assert_int_eq(to_state(a, IBV_QPS_ERR), 0);
	for (; done < 8; done++) {
		ck_assert_int_eq(poll_cq(a->scq, &wc), 1);
		ck_assert_uint_eq(wc.wr_id, done);
		ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
	}
	/* Requests that are posted afterwards are flushed too. */
	post_write(a, mr_a, mr_b, 8, BIG);
	ck_assert_int_eq(poll_cq(a->scq, &wc), 1);
	ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
	mm_slow_len = 0;
	expect(loop.scq, 0xb10c, IBV_WC_SUCCESS);
	expect_nothing(a->scq);
	close_loop(&loop, true);
	finish();
}
END_TEST

START_TEST(test_reset_and_destroy_wait_for_no_other_qps_work)
{
	struct end loop;
	struct ibv_wc wc;

	bed_connect(&bed, IBV_QPT_RC);
	open_loop(&loop, a, NULL);
	block_user_of(&loop, mr_a);
	for (int i = 0; i < 3; i++) {
		post_list(a, mr_a, mr_b, 8);
		ck_assert_int_eq(to_state(a, IBV_QPS_RESET), 0);
		ck_assert_int_eq(to_state(b, IBV_QPS_RESET), 0);
		while (poll_cq(a->scq, &wc))
			ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		/* After the reset the QP works as if nothing had been posted. */
		bed_connect(&bed, IBV_QPT_RC);
		post_write(a, mr_a, mr_b, 77, 64);
		ck_assert_int_eq(poll_cq(a->scq, &wc), 1);
		ck_assert_uint_eq(wc.wr_id, 77);
		expect_nothing(a->scq);
	}
	post_list(a, mr_a, mr_b, 8);
	free_qp(a);
	mm_slow_len = 0;
	expect(loop.scq, 0xb10c, IBV_WC_SUCCESS);
	while (poll_cq(a->scq, &wc))
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	close_loop(&loop, true);
	finish();
}
END_TEST

/* Destroys, resets or fails the QP at various moments of the work of the user's thread. */
START_TEST(test_a_qp_ends_in_the_middle)
{
	for (int i = 0; i < 12; i++) {
		struct end loop, other;
		int done = 0, flushed = 0;
		struct ibv_wc wc;

		if (!i)
			bed_make_qps(&bed, IBV_QPT_RC);
		open_loop(&loop, a, NULL);
		open_loop(&other, a, NULL);
		other.buf = big + OVER;
		post_list(&loop, mr_a, mr_a, 8);
		post_list(&other, mr_a, mr_a, 6);
		usleep(i / 3 * 4500);
		if (i % 3 == 0) {
			free_qp(&loop);
		} else {
			ck_assert_int_eq(to_state(&loop, i % 3 == 1 ? IBV_QPS_RESET : IBV_QPS_ERR), 0);
			if (i % 3 == 1)
				ck_assert_int_eq(to_init(&loop) | to_rtr(&loop, &loop) | to_rts(&loop), 0);
			post_write(&loop, mr_a, mr_a, 8, OVER);
			while ((wc = wait_wc(loop.scq)).wr_id != 8) {
				ck_assert_uint_eq(wc.wr_id, done + flushed);
				flushed += wc.status == IBV_WC_WR_FLUSH_ERR;
				done += wc.status == IBV_WC_SUCCESS;
				ck_assert(!flushed || wc.status == IBV_WC_WR_FLUSH_ERR);
			}
			ck_assert_int_eq(wc.status, i % 3 == 1 ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
			ck_assert(i % 3 == 1 ? !flushed : done + flushed == 8);
			expect_nothing(loop.scq);
		}
		for (int j = 0; j < 6; j++)
			expect(other.scq, j, IBV_WC_SUCCESS);
		close_loop(&other, true);
		close_loop(&loop, true);
	}
	finish();
}
END_TEST

START_TEST(test_draining_leaves_deferred_work_for_later)
{
	struct end loop;
	struct ibv_wc wc;
	int done = 0;

	bed_connect(&bed, IBV_QPT_RC);
	open_loop(&loop, a, NULL);
	block_user_of(&loop, mr_a);
	post_list(a, mr_a, mr_b, 8);
	while (poll_cq(a->scq, &wc))
		done++;
	ck_assert_int_eq(to_state(a, IBV_QPS_SQD), 0);
	mm_slow_len = 0;
	expect(loop.scq, 0xb10c, IBV_WC_SUCCESS);
	usleep(50000);
	expect_nothing(a->scq);
	ck_assert_int_eq(to_state(a, IBV_QPS_RTS), 0);
	for (; done < 8; done++)
		expect(a->scq, done, IBV_WC_SUCCESS);
	close_loop(&loop, true);
	finish();
}
END_TEST

/* ---- timers ------------------------------------------------------------------------------------------------------ */

static void post_srq_big(struct end *end, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)big, HUGE, mr_b->lkey };
	struct uvd_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };
	const struct uvd_recv_wr *bad;

	ck_assert_int_eq(uvd_backend_soft.post_srq_recv(end->srq, &wr, &bad), 0);
}

START_TEST(test_no_retry_is_used_up_before_its_turn)
{
	struct ibv_sge sge = { (uintptr_t)big, HUGE, mr_a->lkey };
	struct end loop, thief;

	a->rnr_retry = 1;
	b->min_rnr_timer = 31; /* 492 ms: on a busy machine too, the steps below come before the timer expires */
	ck_assert_int_eq(make_srq(b, 8, 1, 0), 0);
	bed_connect(&bed, IBV_QPT_RC);
	open_loop(&loop, a, NULL);
	/* Another QP of b with the same SRQ, connected to itself. */
	thief = *b;
	thief.rcq = thief.scq = make_cq(&thief, 16);
	thief.qp = make_qp(&thief, IBV_QPT_RC, &(struct uvd_qp_init_attr){ .cap = bed.cap }, &(int){ 0 });
	ck_assert_int_eq(to_init(&thief) | to_rtr(&thief, &thief) | to_rts(&thief), 0);

	/* The first try finds no receive. */
	ck_assert_int_eq(send_wr(a, .wr_id = 1, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED),
			 0);
	usleep(50000);
	block_user_of(&loop, mr_a);
	/* The second try is due, but has to wait for the user's thread; another message takes the receive. */
	post_srq_big(b, 2);
	sge = sge_at(&thief, 0, 8);
	ck_assert_int_eq(
		send_wr(&thief, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED),
		0);
	expect(thief.scq, 2, IBV_WC_SUCCESS);
	expect(thief.scq, 0, IBV_WC_SUCCESS);
	usleep(700000);
	expect_nothing(a->scq);
	post_srq_big(b, 3);
	mm_slow_len = 0;
	expect(a->scq, 1, IBV_WC_SUCCESS);
	expect(b->rcq, 3, IBV_WC_SUCCESS);
	expect(loop.scq, 0xb10c, IBV_WC_SUCCESS);
	close_loop(&loop, true);
	close_loop(&thief, true);
	finish();
}
END_TEST

START_TEST(test_deferred_work_that_finds_no_receive_waits_for_one)
{
	struct ibv_sge sge = { (uintptr_t)big, BIG, mr_a->lkey };
	struct ibv_sge to = { (uintptr_t)big, BIG, mr_b->lkey };

	b->min_rnr_timer = 1;
	bed_connect(&bed, IBV_QPT_RC);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(post_recv_list(b, i, &to, 1), 0);
	for (int i = 0; i < 8; i++)
		ck_assert_int_eq(send_wr(a, .wr_id = i, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
					 .send_flags = IBV_SEND_SIGNALED),
				 0);
	for (int i = 0; i < 8; i++) {
		if (i == 4) {
			usleep(20000);
			expect_nothing(a->scq);
		}
		if (i >= 4)
			ck_assert_int_eq(post_recv_list(b, i, &to, 1), 0);
		expect(a->scq, i, IBV_WC_SUCCESS);
		expect(b->rcq, i, IBV_WC_SUCCESS);
	}
	/* The request fails if no receive is ever posted. */
	ck_assert_int_eq(to_state(a, IBV_QPS_RESET) | to_state(b, IBV_QPS_RESET), 0);
	a->rnr_retry = 2;
	bed_connect(&bed, IBV_QPT_RC);
	sge.length = HUGE;
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(send_wr(a, .wr_id = i, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1), 0);
	expect(a->scq, 0, IBV_WC_RNR_RETRY_EXC_ERR);
	expect(a->scq, 1, IBV_WC_WR_FLUSH_ERR);
	expect(a->scq, 2, IBV_WC_WR_FLUSH_ERR);
	finish();
}
END_TEST

/* ---- many threads ------------------------------------------------------------------------------------------------ */

static atomic_int completed;

static void *post_some(void *arg)
{
	for (int i = 0; i < 40; i++) {
		struct ibv_wc wc;

		post_write(arg, mr_a, mr_a, i, i % 4 ? 64 : BIG);
		while (poll_cq(((struct end *)arg)->scq, &wc)) {
			ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
			completed++;
		}
	}
	return NULL;
}

START_TEST(test_threads_that_share_deferred_qps)
{
	struct end loops[2];
	pthread_t threads[4];
	int before;

	bed_make_qps(&bed, IBV_QPT_RC);
	before = num_threads();
	completed = 0;
	for (int i = 0; i < 2; i++)
		open_loop(&loops[i], a, i ? loops[0].scq : NULL);
	loops[1].buf = big + BIG;
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, post_some, &loops[i % 2]), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (; completed < 160; completed++)
		ck_assert_int_eq(wait_wc(loops[0].scq).status, IBV_WC_SUCCESS);
	expect_threads(before);
	close_loop(&loops[1], false);
	close_loop(&loops[0], true);
	finish();
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("budget");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 90);
	tcase_add_test(t, test_post_returns_when_its_budget_is_spent);
	tcase_add_test(t, test_bytes_and_order_are_those_of_the_posts);
	tcase_add_test(t, test_a_request_beyond_the_budget_is_the_users_threads);
	tcase_add_test(t, test_small_requests_are_their_posters);
	tcase_add_test(t, test_slow_memory_ends_the_budget_too);
	tcase_add_test(t, test_who_posts_a_receive_carries_out_nothing);
	tcase_add_test(t, test_who_posts_receives_of_an_srq_carries_out_nothing);
	tcase_add_test(t, test_the_thread_ends_and_starts_again);
	tcase_add_test(t, test_qps_of_one_user_take_turns);
	tcase_add_test(t, test_another_users_slow_memory_holds_nothing_up);
	tcase_add_test(t, test_as_many_threads_as_may_work_for_one_user);
	tcase_add_test(t, test_one_qp_has_one_thread);
	tcase_add_test(t, test_deferred_work_of_a_user_who_is_ahead_has_a_low_priority);
	tcase_add_test(t, test_a_port_that_comes_up_waits_for_no_users_memory);
	tcase_add_test(t, test_error_flushes_what_is_deferred_at_once);
	tcase_add_test(t, test_reset_and_destroy_wait_for_no_other_qps_work);
	tcase_add_test(t, test_a_qp_ends_in_the_middle);
	tcase_add_test(t, test_draining_leaves_deferred_work_for_later);
	tcase_add_test(t, test_no_retry_is_used_up_before_its_turn);
	tcase_add_test(t, test_deferred_work_that_finds_no_receive_waits_for_one);
	tcase_add_test(t, test_threads_that_share_deferred_qps);
	return run_suite("backends: soft, budget", t);
}
