/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Looks at QPs in ERR, whose clients may post receives to their mapped queues: how much one look does, and for whom. */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>
#include <uverbsd/queue.h>
#include "account/account.h"
#include "backends/soft/soft.h"
#include "tests/backends/bed.h"

enum { MANY = 600, LOOK_QPS = 256, LOOK_RECEIVES = 1024 };

static struct bed bed;
static struct end *const a = &bed.end[0];

/* Receive queues whose clients post `posts` receives whenever the engine has taken one. */
static atomic_uint counted, taken, posts;
static pthread_t looked_on; /* the thread that has taken the last receive */

static uint32_t endless_count(const struct uvd_queue *q)
{
	counted++;
	return posts;
}

static bool endless_peek(struct uvd_queue *q, uint32_t n, struct uvd_recv_wr *wr)
{
	counted++;
	*wr = (struct uvd_recv_wr){ .wr_id = taken + n };
	return n < posts;
}

static void endless_pop(struct uvd_queue *q)
{
	looked_on = pthread_self();
	taken++;
}

static const struct uvd_queue_ops endless_ops = { .count = endless_count,
						  .peek_recv = endless_peek,
						  .pop = endless_pop };
static struct uvd_queue endless = { .ops = &endless_ops, .kind = UVD_QUEUE_RECV, .shape = { 4, 64, 1 } };

static void setup(void)
{
	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_INFINIBAND);
	counted = taken = posts = 0;
	bed.fabric->users.look_first_ns = bed.fabric->users.look_most_ns = UINT64_C(3600000000000);
	a->rq = &endless;
	bed_make_qps(&bed, IBV_QPT_RC);
}

static void teardown(void)
{
	bed_close(&bed);
}

/* Asks for one look. */
static void look(void)
{
	ck_assert_int_eq(uvd_backend_soft.req_notify_cq(a->rcq, false), 0);
}

static void wait_for(atomic_uint *what, unsigned int least)
{
	const uint64_t end = now_us() + 60000000;

	while (*what < least && now_us() < end)
		usleep(100);
	ck_assert_uint_ge(*what, least);
}

/* Waits for the number, and then for several looks, each of which would raise it if it did more than it should. */
static void expect_exactly(atomic_uint *what, unsigned int num)
{
	wait_for(what, num);
	usleep(30000);
	ck_assert_uint_eq(*what, num);
}

/* Puts more QPs in ERR. The caller destroys them. */
static void make_more(struct end *more, unsigned int num)
{
	struct uvd_qp_init_attr init = { .cap = bed.cap };
	int err;

	for (unsigned int i = 0; i < num; i++) {
		more[i] = (struct end){
			.side = a->side, .scq = a->scq, .rcq = a->rcq, .rq = &endless, .access = a->access
		};
		more[i].qp = make_qp(&more[i], IBV_QPT_RC, &init, &err);
		ck_assert_int_eq(err, 0);
		ck_assert_int_eq(to_init(&more[i]), 0);
		ck_assert_int_eq(to_state(&more[i], IBV_QPS_ERR), 0);
	}
}

START_TEST(test_one_look_is_at_a_part_of_many_qps_and_the_next_one_goes_on)
{
	static struct end more[MANY];

	make_more(more, MANY);
	counted = 0;
	for (unsigned int n = 1; n <= 3; n++) {
		look();
		expect_exactly(&counted, n * LOOK_QPS);
	}
	for (int i = 0; i < MANY; i++)
		free_qp(&more[i]);
	ck_assert_uint_eq(bed.fabric->users.num_in_error, 0);
}
END_TEST

START_TEST(test_one_look_flushes_a_part_of_receives_that_come_without_end)
{
	ck_assert_int_eq(to_init(a), 0);
	ck_assert_int_eq(to_state(a, IBV_QPS_ERR), 0);
	posts = 1000000;
	for (unsigned int n = 1; n <= 3; n++) {
		look();
		expect_exactly(&taken, n * LOOK_RECEIVES);
	}
	ck_assert(!pthread_equal(looked_on, pthread_self()));
	posts = 0;
}
END_TEST

/* The receives of one QP must not keep the look from the others of its user. */
START_TEST(test_the_qp_that_was_looked_at_is_the_last_of_the_next_look)
{
	struct end more[2];
	unsigned int seen = 0;

	ck_assert_int_eq(to_init(a), 0);
	make_more(more, 2);
	posts = 1000000;
	for (unsigned int n = 1; n <= 2; n++) {
		struct ibv_wc wc;

		look();
		expect_exactly(&taken, n * LOOK_RECEIVES);
		while (poll_cq(a->rcq, &wc))
			seen |= wc.qp_num == more[0].qp->qp_num ? 1 : wc.qp_num == more[1].qp->qp_num ? 2 : 4;
	}
	ck_assert_uint_eq(seen, 3);
	posts = 0;
	for (int i = 0; i < 2; i++)
		free_qp(&more[i]);
}
END_TEST

/* The interval doubles until a receive is found. */
START_TEST(test_looks_become_rare_and_come_often_again)
{
	const uint64_t began = now_us();

	ck_assert_int_eq(to_init(a), 0);
	bed.fabric->users.look_first_ns = 20000;
	bed.fabric->users.look_most_ns = UINT64_C(10000000);
	counted = 0;
	ck_assert_int_eq(to_state(a, IBV_QPS_ERR), 0);
	wait_for(&counted, 30);
	/* Nine looks within 10.2 ms; the others follow 10 ms after each other. */
	ck_assert_uint_ge(now_us() - began, 150000);
}
END_TEST

/* ---- what a look leaves behind ----------------------------------------------------------------------------------- */

static atomic_bool looks, may_go_on, has_ended;

static void stop_in_the_look(struct uvd_cq *cq)
{
	looks = true;
	while (!may_go_on)
		usleep(100);
	usleep(20000);
	has_ended = true;
}

static void *destroy(void *arg)
{
	free_qp(a);
	return (void *)(intptr_t)has_ended;
}

START_TEST(test_qp_that_is_destroyed_during_a_look_waits_for_it)
{
	pthread_t thread;
	void *ended;

	looks = may_go_on = has_ended = false;
	ck_assert_int_eq(to_init(a), 0);
	ck_assert_int_eq(to_state(a, IBV_QPS_ERR), 0);
	a->rcq->comp_handler = stop_in_the_look;
	posts = 1;
	look();
	while (!looks)
		usleep(100);
	ck_assert_int_eq(pthread_create(&thread, NULL, destroy, NULL), 0);
	/* It is no longer among the QPs that are looked at, and has not been freed. */
	for (const uint64_t end = now_us() + 60000000; bed.fabric->users.num_in_error;)
		ck_assert(now_us() < end);
	may_go_on = true;
	pthread_join(thread, &ended);
	ck_assert_ptr_nonnull(ended);
	posts = 0;
}
END_TEST

/* ---- users and threads ------------------------------------------------------------------------------------------- */

static atomic_bool no_threads;

int __real_uvd_thread_start(pthread_t *thread, size_t stack, void *(*fn)(void *arg), void *arg);

int __wrap_uvd_thread_start(pthread_t *thread, size_t stack, void *(*fn)(void *arg), void *arg);
void __wrap_uvd_account_spend(struct uvd_account *account, uint64_t ns);

/* The last two accounts that were charged for processor time. */
static struct uvd_account *_Atomic charged[2];

void __wrap_uvd_account_spend(struct uvd_account *account, uint64_t ns)
{
	if (!account || !ns)
		return;
	charged[1] = charged[0];
	charged[0] = account;
}

int __wrap_uvd_thread_start(pthread_t *thread, size_t stack, void *(*fn)(void *arg), void *arg)
{
	return no_threads ? -EAGAIN : __real_uvd_thread_start(thread, stack, fn, arg);
}

START_TEST(test_without_a_thread_the_timer_tries_again)
{
	ck_assert_int_eq(to_init(a), 0);
	bed.fabric->users.look_first_ns = 20000;
	no_threads = true;
	ck_assert_int_eq(to_state(a, IBV_QPS_ERR), 0);
	ck_assert_uint_eq(bed.fabric->users.num_in_error, 0);
	posts = 1;
	usleep(30000);
	ck_assert_uint_eq(taken, 0);
	no_threads = false;
	wait_for(&taken, 1);
	posts = 0;
}
END_TEST

START_TEST(test_ids_of_a_user_have_one_look_and_pay_for_their_part)
{
	struct uvd_account_limits limits;
	struct uvd_accounts *accounts;
	struct uvd_account *first, *second;
	struct end more[2];

	uvd_account_limits_init(&limits);
	accounts = uvd_accounts_new(&limits, NULL);
	/* Two ids of one user namespace, whose owner is the user. */
	first = uvd_account_get(accounts, (uid_t[]){ 100001, 1000 }, 2);
	second = uvd_account_get(accounts, (uid_t[]){ 100002, 1000 }, 2);
	for (int i = 0; i < 2; i++) {
		struct uvd_qp_init_attr init = { .cap = bed.cap };
		int err;

		more[i] = (struct end){
			.side = a->side, .scq = a->scq, .rcq = a->rcq, .rq = &endless, .access = a->access
		};
		more[i].qp = make_qp(&more[i], IBV_QPT_RC, &init, &err);
		ck_assert_int_eq(err, 0);
		more[i].qp->account = i ? second : first;
		ck_assert_int_eq(to_init(&more[i]) | to_state(&more[i], IBV_QPS_ERR), 0);
	}
	a->side->context->account = first;
	counted = 0;
	look();
	expect_exactly(&counted, 2);
	ck_assert((charged[0] == first && charged[1] == second) || (charged[0] == second && charged[1] == first));
	for (int i = 0; i < 2; i++) {
		more[i].qp->account = NULL;
		free_qp(&more[i]);
	}
	a->side->context->account = NULL;
	uvd_account_put(first);
	uvd_account_put(second);
	uvd_accounts_free(accounts);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("look");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 100);
	tcase_add_test(t, test_one_look_is_at_a_part_of_many_qps_and_the_next_one_goes_on);
	tcase_add_test(t, test_one_look_flushes_a_part_of_receives_that_come_without_end);
	tcase_add_test(t, test_the_qp_that_was_looked_at_is_the_last_of_the_next_look);
	tcase_add_test(t, test_looks_become_rare_and_come_often_again);
	tcase_add_test(t, test_qp_that_is_destroyed_during_a_look_waits_for_it);
	tcase_add_test(t, test_without_a_thread_the_timer_tries_again);
	tcase_add_test(t, test_ids_of_a_user_have_one_look_and_pay_for_their_part);
	return run_suite("backends: soft, looks at QPs in ERR", t);
}
