/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Completions that come later, as filters ask for. */
#include <string.h>
#include <unistd.h>
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
	return run_suite(__FILE__, tc);
}
