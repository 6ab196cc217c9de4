/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <time.h>
#include "util/util.h"
#include "../suite.h"

/* Uses this much processor time. */
static void spend(uint64_t ns)
{
	const uint64_t end = uvd_thread_cpu_ns() + ns;

	while (uvd_thread_cpu_ns() < end)
		;
}

START_TEST(test_time_between_two_looks_is_counted_once)
{
	enum { STEP_NS = 5000000 };
	uint64_t last = uvd_thread_cpu_ns(), sum = 0;
	const uint64_t begin = last;

	for (int i = 0; i < 4; i++) {
		const uint64_t before = last;
		uint64_t used;

		spend(STEP_NS);
		used = uvd_thread_cpu_since(&last);
		ck_assert_uint_ge(used, STEP_NS);
		ck_assert_uint_eq(used, last - before);
		sum += used;
	}
	ck_assert_uint_eq(sum, last - begin);
	ck_assert_uint_le(last, uvd_thread_cpu_ns());
}
END_TEST

START_TEST(test_time_in_which_the_thread_sleeps_is_not_used)
{
	uint64_t last = uvd_thread_cpu_ns();

	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	ck_assert_uint_lt(uvd_thread_cpu_since(&last), 50000000);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("thread");

	tcase_add_test(t, test_time_between_two_looks_is_counted_once);
	tcase_add_test(t, test_time_in_which_the_thread_sleeps_is_not_used);
	return run_suite("util thread", t);
}
