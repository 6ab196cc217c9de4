/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The filter `delay`. */
#include <pthread.h>

#include "bed.h"
#include "cpu/cpu.h"
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

START_TEST(test_each_operation_has_its_time)
{
	struct uvd_context context = { .dev = &h.dev->ib };
	uint64_t begin;

	bed_add("delay:alloc_context=10ms");
	begin = uvd_now_ns();
	ck_assert_int_eq(h.dev->ib.ops->alloc_context(&context, NULL), 0);
	ck_assert_uint_ge(uvd_now_ns() - begin, 10000000);
}
END_TEST

START_TEST(test_these_operations_can_be_delayed_and_the_end_of_no_object)
{
#define DELAYS(ret, op, ...) { #op, !!uvd_filter_delay.op },
	static const char *const known[] = { "query_device",  "alloc_context",	  "alloc_pd",	   "reg_mr",
					     "rereg_mr",      "alloc_mw",	  "create_ah",	   "create_cq",
					     "poll_cq",	      "req_notify_cq",	  "resize_cq",	   "create_srq",
					     "modify_srq",    "query_srq",	  "post_srq_recv", "create_qp",
					     "modify_qp",     "query_qp",	  "post_send",	   "post_recv",
					     "ring_doorbell", "carry_completion", "carry_message" };
	const struct {
		const char *name;
		bool delays;
	} ops[] = { UVD_FILTER_OPS(DELAYS) };

	for (size_t i = 0; i < UV_ARRAY_SIZE(ops); i++) {
		bool is_known = false;

		for (size_t k = 0; k < UV_ARRAY_SIZE(known); k++)
			is_known |= !strcmp(ops[i].name, known[k]);
		ck_assert_msg(ops[i].delays == is_known, "%s", ops[i].name);
	}
}
END_TEST

static int ring(struct uvd_qp *qp, struct uvd_work *work)
{
	return 0;
}

START_TEST(test_a_doorbell_takes_the_time_of_a_post)
{
	uint64_t begin;

	h.dev->ops.ring_doorbell = ring;
	bed_add("delay:post_send=10ms");
	begin = uvd_now_ns();
	ck_assert_int_eq(bed_ring_doorbell(), 0);
	ck_assert_uint_ge(uvd_now_ns() - begin, 10000000);
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

/* Returns for how many milliseconds the filters keep a completion back. */
static uint64_t completion_ms(enum ibv_wc_opcode opcode)
{
	struct uvd_context context = { .dev = &h.dev->ib };
	struct uvd_cq cq = { .context = &context };
	struct ibv_wc wc = { .opcode = opcode };
	struct uvd_completion completion = { .cq = &cq, .wc = &wc };

	h.dev->ib.ops->carry_completion(&completion);
	return completion.delay_ns / 1000000;
}

/* tests/backends/test_later.c has what becomes of them. */
START_TEST(test_completions_of_the_kinds_that_the_user_chose_come_later)
{
	harness_close(&h);
	harness_open_with(&h, "soft", &uvd_mem_self);
	ck_assert_uint_eq(completion_ms(IBV_WC_SEND), 0);
	bed_add("delay:wc=1ms@3,wc.write=5ms,wc.recv=7ms@2");
	ck_assert_uint_eq(completion_ms(IBV_WC_SEND), 0);
	ck_assert_uint_eq(completion_ms(IBV_WC_RDMA_WRITE), 5);
	ck_assert_uint_eq(completion_ms(IBV_WC_RECV), 1);
	ck_assert_uint_eq(completion_ms(IBV_WC_RECV_RDMA_WITH_IMM), 7);
	/* The time of the kind goes before the time of all. */
	ck_assert_int_eq(uvd_device_filter_set(h.dev, "delay:wc=1ms,wc.write=5ms", error), 0);
	ck_assert_uint_eq(completion_ms(IBV_WC_RDMA_WRITE), 5);
	ck_assert_uint_eq(completion_ms(IBV_WC_SEND), 1);
	/* Another filter adds its time. */
	bed_add("delay:wc.write=20ms");
	ck_assert_uint_eq(completion_ms(IBV_WC_RDMA_WRITE), 25);
}
END_TEST

static int send_is_late(void)
{
	return completion_ms(IBV_WC_SEND) != 0;
}

START_TEST(test_a_seed_decides_which_completions_come_later)
{
	harness_close(&h);
	harness_open_with(&h, "soft", &uvd_mem_self);
	bed_check_seed("delay:wc=1ms%50,seed=", send_is_late);
}
END_TEST

START_TEST(test_a_backend_that_cannot_delay_completions_says_so)
{
	ck_assert_int_eq(uvd_device_filter_add(h.dev, "delay:wc=5ms", error), -EOPNOTSUPP);
	bed_add("delay:alloc_pd=1us");
}
END_TEST

START_TEST(test_wrong_options_are_refused)
{
	static const char *const wrong[] = {
		"delay:alloc_pd=5", "delay:alloc_pd=5ms@", "delay:destroy_qp=5ms",	   "delay:alloc_xrcd=5ms",
		"delay:wc=5",	    "delay:wc.sends=5ms",  "delay:query_port_counters=5ms"
	};

	for (size_t i = 0; i < UV_ARRAY_SIZE(wrong); i++) {
		ck_assert_int_eq(uvd_device_filter_add(h.dev, wrong[i], error), -EINVAL);
		ck_assert_ptr_nonnull(strstr(error, "filter delay: "));
	}
}
END_TEST

FILTERS_MAIN(setup, teardown, test_a_call_takes_at_least_the_time_and_succeeds,
	     test_the_removal_of_the_device_ends_a_delay, test_times_have_a_unit_and_are_a_minute_at_most,
	     test_each_operation_has_its_time, test_these_operations_can_be_delayed_and_the_end_of_no_object,
	     test_a_doorbell_takes_the_time_of_a_post, test_completions_of_the_kinds_that_the_user_chose_come_later,
	     test_a_seed_decides_which_completions_come_later, test_a_backend_that_cannot_delay_completions_says_so,
	     test_wrong_options_are_refused)
