/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The soft backend against users who use what it shares: its threads, the timer, objects of other files. Posted work runs on a
 * thread of its own, which is the client's.
 */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "account/account.h"
#include "backends/soft/soft.h"
#include "tests/backends/bed.h"

enum {
	MS = 1000, /* us */
	TICKS = 200 * MS, /* many ticks of the watcher */
	BIG = 72 << 20, /* beyond a call's budget */
	REGION = 64,
};

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];
static const struct uvd_backend *const ops = &uvd_backend_soft;
static struct uvd_accounts *accounts;
static char *big; /* BIG bytes */
static struct uvd_mr *mr_a, *mr_b; /* `big`, registered by a and by b */

static void setup(void)
{
	struct uvd_account_limits limits;

	uvd_account_limits_init(&limits);
	accounts = uvd_accounts_new(&limits, NULL);
	bed_open(&bed, ops, IBV_LINK_LAYER_INFINIBAND);
	bed.fabric->movers.patience_ns = UINT64_MAX;
	bed.cap = (struct ibv_qp_cap){ 16, 16, 4, 4, 64 };
	a->timeout = b->timeout = 0;
	big = calloc(1, BIG);
	mr_a = make_mr(a, big, BIG, a->access);
	mr_b = make_mr(b, big, BIG, b->access);
	mm_slow_len = 0;
	mm_spins = false;
}

static void teardown(void)
{
	mm_slow_len = 0;
	while (mm_slowed)
		usleep(100);
	mm_bad_len = 0;
	free_mr(mr_a);
	free_mr(mr_b);
	bed_close(&bed);
	free(big);
	uvd_accounts_free(accounts);
}

static struct uvd_account *account_of(uid_t uid, uid_t owner)
{
	return uvd_account_get(accounts, (uid_t[]){ uid, owner }, 2);
}

/* Creates another QP of end's client, connected to itself, with a CQ. */
static void open_loop(struct end *loop, struct end *end)
{
	struct uvd_qp_init_attr init = { .cap = bed.cap };
	int err;

	*loop = *end;
	loop->scq = loop->rcq = make_cq(loop, 64);
	loop->qp = make_qp(loop, IBV_QPT_RC, &init, &err);
	ck_assert_int_eq(err, 0);
	ck_assert_int_eq(to_init(loop) | to_rtr(loop, loop) | to_rts(loop), 0);
}

static void close_loop(struct end *loop)
{
	free_qp(loop);
	ck_assert_int_eq(ops->destroy_cq(loop->scq), 0);
	free(loop->scq);
}

/* Posts a write of all of `big` to itself. It is beyond a call's budget, so a thread of the user carries it out. */
static void post_big(struct end *from, struct uvd_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)big, BIG, mr->lkey };

	ck_assert_int_eq(send_wr(from, .wr_id = 0xb, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED, .remote_addr = sge.addr, .rkey = mr->rkey),
			 0);
}

/* Lets the threads in slow memory go on. They would all write to `big` now: it is bad, so that none does. */
static void release(void)
{
	mm_bad = (uintptr_t)big;
	mm_bad_len = BIG;
	mm_slow_len = 0;
}

static void wait_slowed(int n)
{
	while (mm_slowed < n)
		usleep(100);
}

/* ---- a user's threads -------------------------------------------------------------------------------------------- */

/* Each QP stands for one of many processes of the user, and its memory never answers. */
START_TEST(test_a_user_has_no_more_threads_than_the_limit)
{
	enum { MOST = 3, LOOPS = 6 };
	struct end loops[LOOPS];

	bed.fabric->users.most_threads = MOST;
	bed.fabric->movers.held_up_ns = 1;
	mm_slow = (uintptr_t)big;
	mm_slow_len = 1;
	for (int i = 0; i < LOOPS; i++) {
		open_loop(&loops[i], a);
		post_big(&loops[i], mr_a);
	}
	wait_slowed(MOST);
	usleep(TICKS);
	ck_assert_int_eq(mm_slowed, MOST);
	/* When a thread is back, the others' turn comes. */
	release();
	for (int i = 0; i < LOOPS; i++)
		ck_assert_int_ne(wait_wc(loops[i].scq).status, IBV_WC_SUCCESS);
	for (int i = 0; i < LOOPS; i++)
		close_loop(&loops[i]);
}
END_TEST

/* An unprivileged user can map thousands of subordinate ids into a user namespace. */
START_TEST(test_all_ids_of_a_user_namespace_share_the_threads_of_its_owner)
{
	struct uvd_account *first = account_of(100001, 1000), *second = account_of(100002, 1000),
			   *other = account_of(1001, 1001);
	struct end loop, next, others;

	bed.fabric->movers.held_up_ns = UINT64_MAX;
	open_loop(&loop, a);
	open_loop(&next, a);
	open_loop(&others, b);
	loop.qp->account = first;
	next.qp->account = second;
	others.qp->account = other;
	mm_slow = (uintptr_t)big;
	mm_slow_len = 1;
	post_big(&loop, mr_a);
	wait_slowed(1);
	post_big(&next, mr_a);
	post_big(&others, mr_b);
	wait_slowed(2);
	usleep(TICKS);
	ck_assert_int_eq(mm_slowed, 2);
	release();
	ck_assert_int_ne(wait_wc(loop.scq).status, IBV_WC_SUCCESS);
	ck_assert_int_ne(wait_wc(next.scq).status, IBV_WC_SUCCESS);
	ck_assert_int_ne(wait_wc(others.scq).status, IBV_WC_SUCCESS);
	loop.qp->account = next.qp->account = others.qp->account = NULL;
	close_loop(&loop);
	close_loop(&next);
	close_loop(&others);
	uvd_account_put(first);
	uvd_account_put(second);
	uvd_account_put(other);
}
END_TEST

/* ---- memory of another user -------------------------------------------------------------------------------------- */

struct post {
	struct end *from;
	struct uvd_work work;
	struct uvd_worker worker;
};

static atomic_int times_held_up;

static void count_held_up(struct uvd_worker *worker)
{
	times_held_up++;
}

static void *do_work(void *arg)
{
	struct post *post = arg;

	post->work.run(post->work.arg, &post->worker);
	free(post);
	return NULL;
}

/* Posts a request, and starts a thread that carries it out, as a call's. */
static pthread_t post_on_thread(struct end *from, const struct uvd_send_wr *wr)
{
	struct post *post = calloc(1, sizeof(*post));
	const struct uvd_send_wr *bad;
	pthread_t thread;

	post->from = from;
	post->worker.held_up = count_held_up;
	ck_assert_int_eq(ops->post_send(from->qp, wr, &bad, &post->work), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, do_work, post), 0);
	return thread;
}

/* Region i of `big` in a's device, charged to the account, in an address space of its own. */
static struct uvd_mr *region_of(struct uvd_account *account, int i)
{
	struct uvd_mr *mr;

	a->side->context->account = account;
	mr = make_mr(a, big + i * REGION, REGION, a->access);
	a->side->context->account = NULL;
	mr->umem.mm = (struct uvd_mm *)(uintptr_t)(i + 1);
	return mr;
}

static void free_region(struct uvd_mr *mr, struct uvd_account *account)
{
	a->side->context->account = account;
	free_mr(mr);
	a->side->context->account = NULL;
}

/* Each file that a user opens has an account of its own. Here each has a process, too, whose memory never answers. */
START_TEST(test_a_user_keeps_few_threads_of_others_however_many_files_it_opens)
{
	enum { FILES = SOFT_MOST_LOST + 4 };
	struct uvd_account *victim = account_of(1000, 1000), *hostile[FILES];
	struct ibv_sge sge = sge_at(a, 0, REGION);
	struct uvd_send_wr wr = wr_to(a, IBV_WR_RDMA_WRITE, &sge, 1);
	struct end loops[FILES];
	struct uvd_mr *mrs[FILES];
	pthread_t threads[FILES];

	bed.fabric->movers.patience_ns = 1;
	a->timeout = 1;
	a->retry_cnt = 0;
	mm_slow = (uintptr_t)big;
	mm_slow_len = FILES * REGION;
	for (int i = 0; i < FILES; i++) {
		hostile[i] = account_of(100000 + i, 1001);
		mrs[i] = region_of(hostile[i], i);
		wr.remote_addr = mrs[i]->iova;
		wr.rkey = mrs[i]->rkey;
		open_loop(&loops[i], a);
		loops[i].qp->account = victim;
		threads[i] = post_on_thread(&loops[i], &wr);
		expect(loops[i].scq, 0xa, IBV_WC_RETRY_EXC_ERR);
		ck_assert_int_eq(mm_slowed, i < SOFT_MOST_LOST ? i + 1 : SOFT_MOST_LOST);
	}
	mm_slow_len = 0;
	for (int i = 0; i < FILES; i++) {
		pthread_join(threads[i], NULL);
		loops[i].qp->account = NULL;
		close_loop(&loops[i]);
		free_region(mrs[i], hostile[i]);
		uvd_account_put(hostile[i]);
	}
	uvd_account_put(victim);
}
END_TEST

/*
 * b's client posts a bind to a QP whose peer is stuck in b's memory: it waits for the peer. The thread of b's call is replaced
 * meanwhile, as one that is in slow memory itself, or all calls of b's process tree would wait.
 */
START_TEST(test_a_bind_behind_a_peer_that_is_stuck_holds_its_thread_up)
{
	const struct uvd_send_wr invalidate = { .wr_id = 0x1, .opcode = IBV_WR_LOCAL_INV };
	struct ibv_sge sge = sge_at(a, 0, 64);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_RDMA_WRITE, &sge, 1);
	pthread_t sender, binder;

	bed_connect(&bed, IBV_QPT_RC);
	times_held_up = 0;
	bed.fabric->movers.held_up_ns = 1;
	mm_slow = (uintptr_t)b->buf;
	mm_slow_len = 1;
	sender = post_on_thread(a, &wr);
	wait_slowed(1);
	binder = post_on_thread(b, &invalidate);
	/* One of the two is the sender. */
	while (times_held_up < 2)
		usleep(100);
	mm_slow_len = 0;
	pthread_join(sender, NULL);
	pthread_join(binder, NULL);
	expect(a->scq, 0xa, IBV_WC_SUCCESS);
	expect(b->scq, 1, IBV_WC_MW_BIND_ERR);
}
END_TEST

/* The peer is given up, so the bind ends, although the memory does not answer. */
START_TEST(test_a_bind_behind_a_peer_that_is_given_up_ends)
{
	const struct uvd_send_wr invalidate = { .wr_id = 0x1, .opcode = IBV_WR_LOCAL_INV };
	struct ibv_sge sge = sge_at(a, 0, 64);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_RDMA_WRITE, &sge, 1);
	pthread_t sender, binder;

	bed_connect(&bed, IBV_QPT_RC);
	bed.fabric->movers.patience_ns = UINT64_C(300) * MS * 1000;
	mm_slow = (uintptr_t)b->buf;
	mm_slow_len = 1;
	sender = post_on_thread(a, &wr);
	wait_slowed(1);
	binder = post_on_thread(b, &invalidate);
	ck_assert_int_ne(wait_wc(b->scq).status, IBV_WC_SUCCESS);
	pthread_join(binder, NULL);
	expect(a->scq, 0xa, IBV_WC_RETRY_EXC_ERR);
	ck_assert_int_eq(mm_slowed, 1);
	mm_slow_len = 0;
	pthread_join(sender, NULL);
}
END_TEST

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* A client that creates many and destroys most of them keeps those of the numbers that it likes. */
enum { KEPT = 64, FEW = 16 /* lists; chance fills about 62 of 1024, and 41 of 64 */ };

START_TEST(test_qps_of_chosen_numbers_are_in_many_lists)
{
	struct uvd_qp_init_attr init = { .cap = bed.cap };
	struct uvd_qp *qps[KEPT];
	unsigned int used = 0;
	int err;

	a->scq = a->rcq = make_cq(a, 1);
	for (int i = 0; i < KEPT; i++) {
		uvd_fabric_set_first_qpn(bed.fabric, 5 + i * SOFT_QPN_BUCKETS);
		qps[i] = make_qp(a, IBV_QPT_RC, &init, &err);
		ck_assert_int_eq(err, 0);
	}
	for (int i = 0; i < SOFT_QPN_BUCKETS; i++)
		used += bed.fabric->buckets[i].first != NULL;
	ck_assert_uint_ge(used, FEW);
	for (int i = 0; i < KEPT; i++) {
		a->qp = qps[i];
		free_qp(a);
	}
}
END_TEST

START_TEST(test_xrc_srqs_of_chosen_numbers_are_in_many_lists)
{
	struct uvd_xrcd xrcd = { .dev = &a->side->dev };
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct soft_srqn_table *table = &soft_device(&a->side->dev)->endpoints->srqns;
	struct uvd_srq *srqs[KEPT];
	unsigned int used = 0;

	a->side->dev.config.limits.max_srq = KEPT;
	a->scq = make_cq(a, 1);
	for (int i = 0; i < KEPT; i++) {
		srqs[i] = calloc(1, ops->size_srq);
		srqs[i]->pd = a->side->pd;
		srqs[i]->cq = a->scq;
		srqs[i]->xrcd = &xrcd;
		srqs[i]->srq_type = IBV_SRQT_XRC;
		table->next = 5 + i * SOFT_SRQN_BUCKETS;
		ck_assert_int_eq(ops->create_srq(srqs[i], &init, NULL), 0);
	}
	for (int i = 0; i < SOFT_SRQN_BUCKETS; i++)
		used += table->buckets[i] != NULL;
	ck_assert_uint_ge(used, FEW);
	for (int i = 0; i < KEPT; i++) {
		ck_assert_int_eq(ops->destroy_srq(srqs[i]), 0);
		free(srqs[i]);
	}
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("hostile");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_a_user_has_no_more_threads_than_the_limit);
	tcase_add_test(t, test_all_ids_of_a_user_namespace_share_the_threads_of_its_owner);
	tcase_add_test(t, test_a_user_keeps_few_threads_of_others_however_many_files_it_opens);
	tcase_add_test(t, test_a_bind_behind_a_peer_that_is_stuck_holds_its_thread_up);
	tcase_add_test(t, test_a_bind_behind_a_peer_that_is_given_up_ends);
	tcase_add_test(t, test_qps_of_chosen_numbers_are_in_many_lists);
	tcase_add_test(t, test_xrc_srqs_of_chosen_numbers_are_in_many_lists);
	return run_suite("soft: hostile users", t);
}
