/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The filter `delay`. */
#include <pthread.h>

#include "bed.h"
#include "filters/rule.h"
#include "util/util.h"

static void setup(void)
{
	harness_open_with(&h, "null", &uvd_mem_self);
}

static void teardown(void)
{
	harness_close(&h);
}

/* Returns how long alloc_pd takes, in milliseconds. */
static uint64_t alloc_pd_ms(void)
{
	const uint64_t begin = uvd_now_ns();

	ck_assert_int_eq(bed_alloc_pd(), 0);
	return (uvd_now_ns() - begin) / 1000000;
}

START_TEST(test_a_call_takes_at_least_the_time_and_succeeds)
{
	bed_add("delay:alloc_pd=50ms@2");
	alloc_pd_ms();
	ck_assert_uint_ge(alloc_pd_ms(), 50);
}
END_TEST

static void *call_once(void *arg)
{
	atomic_bool *began = arg;

	atomic_store(began, true);
	return (void *)(uintptr_t)(bed_alloc_pd() == 0);
}

/* Without the interruption the test would take a minute, which is its limit of time. */
START_TEST(test_the_removal_of_the_device_ends_a_delay)
{
	const uint64_t begin = uvd_now_ns();
	atomic_bool began = false;
	pthread_t thread;

	bed_add("delay:alloc_pd=60s");
	pthread_create(&thread, NULL, call_once, &began);
	while (!atomic_load(&began))
		uvd_cpu_relax();
	uvd_device_remove(h.dev);
	pthread_join(thread, NULL);
	ck_assert_uint_lt(uvd_now_ns() - begin, UINT64_C(50000000000));
}
END_TEST

START_TEST(test_times_have_a_unit_and_are_a_minute_at_most)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} times[] = { { "5us", 5000 },
		      { "10ms", 10000000 },
		      { "2s", 2000000000 },
		      { "60s", 60000000000 },
		      { "60000ms", 60000000000 } };
	static const char *const wrong[] = { "5", "5ns", "-1s", "0s", "61s", "60001ms", "1.5s", "s", "", "5us " };
	uint64_t ns;

	for (size_t i = 0; i < UV_ARRAY_SIZE(times); i++) {
		ck_assert(uvd_rule_time(times[i].text, &ns));
		ck_assert_uint_eq(ns, times[i].ns);
	}
	for (size_t i = 0; i < UV_ARRAY_SIZE(wrong); i++)
		ck_assert_msg(!uvd_rule_time(wrong[i], &ns), "%s", wrong[i]);
}
END_TEST

START_TEST(test_wrong_options_are_refused)
{
	static const char *const wrong[] = { "delay:alloc_pd=5", "delay:alloc_pd=5ms@", "delay:destroy_qp=5ms",
					     "delay:alloc_xrcd=5ms", "delay:query_port_counters=5ms" };

	for (size_t i = 0; i < UV_ARRAY_SIZE(wrong); i++) {
		ck_assert_int_eq(uvd_device_filter_add(h.dev, wrong[i], error), -EINVAL);
		ck_assert_ptr_nonnull(strstr(error, "filter delay: "));
	}
}
END_TEST

FILTERS_MAIN(setup, teardown, test_a_call_takes_at_least_the_time_and_succeeds,
	     test_the_removal_of_the_device_ends_a_delay, test_times_have_a_unit_and_are_a_minute_at_most,
	     test_wrong_options_are_refused)
