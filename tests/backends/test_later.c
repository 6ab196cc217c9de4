/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Completions that come later, as filters ask for. */
#include <string.h>
#include <unistd.h>
#include "account/account.h"
#include "backends/cq_ring.h"
#include "tests/backends/bed.h"

#define MINUTE UINT64_C(60000000000) /* ns */

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];
static struct uvd_backend filtered;
static uint64_t delays[8]; /* ns, of the completions at a, in turn; later ones have none */
static atomic_uint asked;

static void decide(struct uvd_completion *completion)
{
	const unsigned int n = atomic_fetch_add(&asked, 1);

	if (n < sizeof(delays) / sizeof(delays[0]))
		completion->delay_ns = delays[n];
}

static void setup(void)
{
	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_INFINIBAND);
	filtered = uvd_backend_soft;
	filtered.carry_completion = decide;
	a->side->dev.ops = &filtered;
	memset(delays, 0, sizeof(delays));
	atomic_store(&asked, 0);
}

static void teardown(void)
{
	bed_close(&bed);
}

static void write_nr(int nr)
{
	struct ibv_sge sge = sge_at(a, 0, 8);
	struct uvd_send_wr wr = wr_to(b, IBV_WR_RDMA_WRITE, &sge, 1);

	wr.wr_id = nr;
	ck_assert_int_eq(post_send_wr(a, &wr), 0);
}

/* Writes until the completions of this number of requests have been decided about. */
static void write_all(unsigned int num)
{
	for (unsigned int i = 1; i <= num; i++)
		write_nr(i);
	while (atomic_load(&asked) < num)
		usleep(100);
}

START_TEST(test_a_completion_comes_after_its_time_and_not_before)
{
	const uint64_t begin = now_us();

	delays[0] = 50000000;
	bed_connect(&bed, IBV_QPT_RC);
	write_nr(1);
	expect(a->scq, 1, IBV_WC_SUCCESS);
	ck_assert_uint_ge(now_us() - begin, 50000);
	write_nr(2);
	expect(a->scq, 2, IBV_WC_SUCCESS);
}
END_TEST

START_TEST(test_completions_behind_a_late_one_wait_for_it)
{
	delays[0] = 30000000;
	delays[2] = 1000;
	bed_connect(&bed, IBV_QPT_RC);
	write_all(4);
	for (int i = 1; i < 5; i++)
		expect(a->scq, i, IBV_WC_SUCCESS);
	ck_assert_uint_eq(asked, 4);
}
END_TEST

START_TEST(test_flushed_requests_complete_behind_a_late_completion)
{
	delays[0] = 30000000;
	bed_connect(&bed, IBV_QPT_RC);
	write_all(1);
	ck_assert_int_eq(to_state(a, IBV_QPS_ERR), 0);
	write_nr(2);
	expect(a->scq, 1, IBV_WC_SUCCESS);
	expect(a->scq, 2, IBV_WC_WR_FLUSH_ERR);
}
END_TEST

START_TEST(test_the_event_of_a_late_completion_is_late_too)
{
	const uint64_t begin = now_us();

	delays[0] = 30000000;
	bed_connect(&bed, IBV_QPT_RC);
	ck_assert_int_eq(uvd_backend_soft.req_notify_cq(a->scq, false), 0);
	write_nr(1);
	while (!atomic_load(&a->comp))
		usleep(100);
	ck_assert_uint_ge(now_us() - begin, 30000);
	expect(a->scq, 1, IBV_WC_SUCCESS);
}
END_TEST

START_TEST(test_a_late_completion_outlives_its_qp)
{
	delays[0] = 30000000;
	bed_connect(&bed, IBV_QPT_RC);
	write_all(1);
	free_qp(a);
	expect(a->scq, 1, IBV_WC_SUCCESS);
}
END_TEST

/* Without that, the test would reach its limit of time. */
START_TEST(test_a_cq_ends_without_waiting_for_late_completions)
{
	delays[0] = delays[1] = MINUTE;
	bed_connect(&bed, IBV_QPT_RC);
	write_all(2);
	expect_nothing(a->scq);
	teardown();
	setup();
}
END_TEST

/* The thread of the device and the end of the CQ meet at any moment. */
START_TEST(test_a_cq_can_end_whenever_completions_come)
{
	for (int round = 0; round < 50; round++) {
		atomic_store(&asked, 0);
		delays[0] = 1 + round % 7 * 20000;
		bed_connect(&bed, IBV_QPT_RC);
		ck_assert_int_eq(uvd_backend_soft.req_notify_cq(a->scq, false), 0);
		write_nr(1);
		usleep(round % 11 * 20);
		teardown();
		setup();
	}
}
END_TEST

/* With as many late completions as the CQ has entries all come early, rather than that one is lost. */
START_TEST(test_no_more_completions_are_late_than_the_cq_has_entries)
{
	delays[0] = MINUTE;
	bed.cqe = 4;
	bed_connect(&bed, IBV_QPT_RC);
	write_all(4);
	expect_nothing(a->scq);
	/* The fifth does not fit in: the CQ is overrun, as it would be without a delay. */
	write_nr(5);
	for (int i = 1; i < 5; i++)
		expect(a->scq, i, IBV_WC_SUCCESS);
	while (!atomic_load(&a->cq_event))
		usleep(100);
}
END_TEST

/* ---- rings by themselves ----------------------------------------------------------------------------------------- */

/* A ring, its CQ, and how often the CQ's handlers were called. */
struct late_ring {
	struct uvd_cq_ring ring;
	struct uvd_cq cq;
	atomic_uint comps, overruns;
};

static struct uvd_cq_later later;
static struct uvd_ibdev ring_dev;
static struct uvd_context ring_context = { .dev = &ring_dev };
static struct late_ring one, two;
static uint64_t next_delay; /* ns */

static void delay_next(struct uvd_completion *completion)
{
	completion->delay_ns = next_delay;
}

static void count_comp(struct uvd_cq *cq)
{
	atomic_fetch_add(&container_of(cq, struct late_ring, cq)->comps, 1);
}

static void count_event(struct uvd_cq *cq, enum ibv_event_type type)
{
	atomic_fetch_add(&container_of(cq, struct late_ring, cq)->overruns, 1);
}

static void ring_open(struct late_ring *r, int cqe)
{
	*r = (struct late_ring){
		.cq = { .context = &ring_context, .cqe = cqe, .comp_handler = count_comp, .event_handler = count_event }
	};
	ck_assert_int_eq(uvd_cq_ring_init(&r->ring, &r->cq, cqe, &later), 0);
}

static void rings_open(int cqe, struct uvd_account *account)
{
	filtered.carry_completion = delay_next;
	ring_dev.ops = &filtered;
	ring_context.account = account;
	uvd_cq_later_init(&later);
	ring_open(&one, cqe);
	ring_open(&two, cqe);
}

static void rings_close(void)
{
	uvd_cq_ring_destroy(&one.ring);
	uvd_cq_ring_destroy(&two.ring);
	uvd_cq_later_fini(&later);
}

static void ring_add(struct late_ring *r, uint64_t nr, uint64_t delay, bool solicited)
{
	next_delay = delay;
	if (uvd_cq_ring_add(&r->ring, &(struct ibv_wc){ .wr_id = nr }, solicited))
		uvd_cq_ring_notify(&r->ring, &r->cq);
}

/* Polls completions of these numbers. The test's limit of time ends a wait in vain. */
static void ring_expect(struct late_ring *r, uint64_t first, uint64_t last)
{
	struct ibv_wc wc;

	while (first <= last) {
		if (!uvd_cq_ring_poll(&r->ring, 1, &wc)) {
			usleep(100);
			continue;
		}
		ck_assert_uint_eq(wc.wr_id, first++);
	}
}

static void ring_expect_nothing(struct late_ring *r)
{
	struct ibv_wc wc;

	ck_assert_int_eq(uvd_cq_ring_poll(&r->ring, 1, &wc), 0);
}

/* Returns a new account that may have so many bytes. */
static struct uvd_account *account_of(uint64_t bytes, struct uvd_accounts **accounts)
{
	struct uvd_account_limits limits;

	uvd_account_limits_init(&limits);
	limits.max[UVD_RES_BYTES] = bytes;
	*accounts = uvd_accounts_new(&limits, NULL);
	return uvd_account_get(*accounts, (uid_t[]){ 1000 }, 1);
}

START_TEST(test_the_room_for_late_completions_grows_to_the_entries_of_the_cq)
{
	enum { CQE = 200, RINGS = 2 * CQE * sizeof(struct ibv_wc) };
	struct uvd_accounts *accounts;
	struct uvd_account *account = account_of(1 << 20, &accounts);

	rings_open(CQE, account);
	ck_assert_uint_eq(uvd_account_used(account, UVD_RES_BYTES), RINGS);
	/* The oldest one is no longer at the begin of the room when that grows. */
	for (int i = 1; i <= 10; i++)
		ring_add(&one, i, 1, false);
	ring_expect(&one, 1, 10);
	for (int i = 11; i <= 75; i++)
		ring_add(&one, i, MINUTE, false);
	ck_assert_uint_eq(uvd_account_used(account, UVD_RES_BYTES), RINGS + 128 * sizeof(struct uvd_cq_held));
	for (int i = 76; i <= 210; i++)
		ring_add(&one, i, MINUTE, false);
	ck_assert_uint_eq(uvd_account_used(account, UVD_RES_BYTES), RINGS + CQE * sizeof(struct uvd_cq_held));
	ring_expect_nothing(&one);
	/* No room: all come early, and the last one finds the CQ full. */
	ring_add(&one, 211, MINUTE, false);
	ring_expect(&one, 11, 210);
	ring_expect_nothing(&one);
	ck_assert_uint_eq(atomic_load(&one.overruns), 1);
	rings_close();
	ck_assert_uint_eq(uvd_account_used(account, UVD_RES_BYTES), 0);
	uvd_account_put(account);
	uvd_accounts_free(accounts);
}
END_TEST

START_TEST(test_a_user_without_memory_has_its_completions_early)
{
	enum { CQE = 100, RINGS = 2 * CQE * sizeof(struct ibv_wc) };
	struct uvd_accounts *accounts;
	struct uvd_account *account = account_of(RINGS + 100 * sizeof(struct uvd_cq_held), &accounts);

	rings_open(CQE, account);
	for (int i = 1; i <= 64; i++)
		ring_add(&one, i, MINUTE, false);
	ring_expect_nothing(&one);
	ring_add(&one, 65, MINUTE, false);
	ring_expect(&one, 1, 65);
	ck_assert_uint_eq(atomic_load(&one.overruns), 0);
	rings_close();
	ck_assert_uint_eq(uvd_account_used(account, UVD_RES_BYTES), 0);
	uvd_account_put(account);
	uvd_accounts_free(accounts);
}
END_TEST

START_TEST(test_the_completion_that_is_due_first_comes_first)
{
	rings_open(4, NULL);
	ring_add(&one, 1, 1000, false);
	ring_add(&one, 2, MINUTE, false);
	ring_expect(&one, 1, 1);
	/* The thread waits for the first CQ's next one for a minute. */
	ring_add(&two, 1, 1000000, false);
	ring_expect(&two, 1, 1);
	ring_expect_nothing(&one);
	/* A CQ that ends leaves the others their thread, and its memory can be another CQ's. */
	uvd_cq_ring_destroy(&one.ring);
	ring_open(&one, 4);
	ring_add(&two, 2, 1000, false);
	ring_expect(&two, 2, 2);
	ring_add(&one, 1, 1000, false);
	ring_expect(&one, 1, 1);
	rings_close();
}
END_TEST

START_TEST(test_the_room_is_used_again_and_again)
{
	rings_open(4, NULL);
	for (int i = 1; i < 30; i += 3) {
		for (int k = 0; k < 3; k++)
			ring_add(&one, i + k, 1000, false);
		ring_expect(&one, i, i + 2);
	}
	rings_close();
}
END_TEST

START_TEST(test_a_late_completion_is_solicited_as_its_sender_asked)
{
	rings_open(4, NULL);
	uvd_cq_ring_arm(&one.ring, true);
	ring_add(&one, 1, 1000, false);
	ring_expect(&one, 1, 1);
	/* The second CQ tells when the thread has left the first one. */
	ring_add(&two, 1, 1000, false);
	ring_expect(&two, 1, 1);
	ck_assert_uint_eq(atomic_load(&one.comps), 0);
	ring_add(&one, 2, 1000, true);
	while (!atomic_load(&one.comps))
		usleep(100);
	ring_expect(&one, 2, 2);
	rings_close();
}
END_TEST

START_TEST(test_completions_that_come_together_or_early_raise_an_event)
{
	rings_open(2, NULL);
	uvd_cq_ring_arm(&one.ring, false);
	ring_add(&one, 1, 5000000, false);
	ring_add(&one, 2, 0, false);
	while (!atomic_load(&one.comps))
		usleep(100);
	ring_expect(&one, 1, 2);
	uvd_cq_ring_arm(&one.ring, false);
	for (int i = 3; i < 6; i++)
		ring_add(&one, i, MINUTE, false);
	ck_assert_uint_eq(atomic_load(&one.comps), 2);
	ring_expect(&one, 3, 4);
	/* The thread waits no longer for those that came early. */
	ring_add(&one, 6, 1000000, false);
	ring_expect(&one, 6, 6);
	rings_close();
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, test_a_completion_comes_after_its_time_and_not_before);
	tcase_add_test(tc, test_completions_behind_a_late_one_wait_for_it);
	tcase_add_test(tc, test_flushed_requests_complete_behind_a_late_completion);
	tcase_add_test(tc, test_the_event_of_a_late_completion_is_late_too);
	tcase_add_test(tc, test_a_late_completion_outlives_its_qp);
	tcase_add_test(tc, test_a_cq_ends_without_waiting_for_late_completions);
	tcase_add_test(tc, test_a_cq_can_end_whenever_completions_come);
	tcase_add_test(tc, test_no_more_completions_are_late_than_the_cq_has_entries);
	tcase_add_test(tc, test_the_room_for_late_completions_grows_to_the_entries_of_the_cq);
	tcase_add_test(tc, test_a_user_without_memory_has_its_completions_early);
	tcase_add_test(tc, test_the_completion_that_is_due_first_comes_first);
	tcase_add_test(tc, test_the_room_is_used_again_and_again);
	tcase_add_test(tc, test_a_late_completion_is_solicited_as_its_sender_asked);
	tcase_add_test(tc, test_completions_that_come_together_or_early_raise_an_event);
	return run_suite(__FILE__, tc);
}
