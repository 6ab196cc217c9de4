/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The heap of the soft engine's timers, whose first entry is the next that expires. */
#include <check.h>
#include <stdlib.h>
#include "backends/soft/endpoint/endpoint.h"
#include "../suite.h"

enum { QPS = 100, STEPS = 20000 };

static struct soft_timers timers;
static struct soft_qp *qps[QPS];

static void nothing(struct soft_qp *qp, unsigned int wait_nr)
{
}

/* No entry is earlier than the one above it, and each knows its slot. */
static void expect_heap(unsigned int armed)
{
	bool ok = true;

	ck_assert_uint_eq(timers.count, armed);
	/* One assertion: each writes to a file, and there are two million entries to look at. */
	for (unsigned int slot = 1; slot <= timers.count; slot++)
		ok &= timers.heap[slot]->timer.slot == slot &&
		      (slot == 1 || timers.heap[slot / 2]->timer.deadline <= timers.heap[slot]->timer.deadline);
	ck_assert(ok);
}

/* The deadlines are hours away, so the timers' thread changes nothing. */
START_TEST(test_first_entry_is_the_earliest_whatever_was_armed_and_disarmed)
{
	unsigned int armed = 0;

	soft_timers_init(&timers, nothing);
	for (int i = 0; i < QPS; i++) {
		qps[i] = calloc(1, sizeof(*qps[i]));
		ck_assert_int_eq(soft_timers_reserve(&timers), 0);
		/* Slots begin with 1. Each QP's timer has one, so arming it allocates nothing. */
		ck_assert_uint_gt(timers.room, i + 1);
	}
	srandom(1);
	for (int step = 0; step < STEPS; step++) {
		struct soft_qp *qp = qps[random() % QPS];

		armed -= qp->timer.slot != 0;
		if (random() % 2) {
			soft_timer_disarm(&timers, qp);
		} else {
			soft_timer_arm(&timers, qp, UINT64_C(1000000000) * (10000 + random() % 1000));
			armed++;
		}
		expect_heap(armed);
	}
	for (int i = 0; i < QPS; i++) {
		soft_timers_release(&timers, qps[i]);
		free(qps[i]);
	}
	expect_heap(0);
	ck_assert_uint_eq(timers.reserved, 0);
	soft_timers_destroy(&timers);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("timers");

	tcase_add_test(t, test_first_entry_is_the_earliest_whatever_was_armed_and_disarmed);
	return run_suite("backends: soft, timers", t);
}
