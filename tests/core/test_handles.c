/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "core/handles.h"
#include "../suite.h"

START_TEST(test_handle_01_starts_at_0_and_the_lowest_free_one_is_next)
{
	struct uvd_handles h = { 0 };
	uint32_t id;

	for (uint32_t i = 0; i < 5000; i++) {
		ck_assert_int_eq(uvd_handles_alloc(&h, &id), 0);
		ck_assert_uint_eq(id, i);
	}
	uvd_handles_free(&h, 4097);
	uvd_handles_free(&h, 3);
	uvd_handles_free(&h, 64);
	uint32_t expected[] = { 3, 64, 4097, 5000 };
	for (unsigned int i = 0; i < 4; i++) {
		ck_assert_int_eq(uvd_handles_alloc(&h, &id), 0);
		ck_assert_uint_eq(id, expected[i]);
	}
	ck_assert_uint_eq(h.count, 5001);
	uvd_handles_fini(&h);
}
END_TEST

START_TEST(test_an_allocated_handle_reads_null_until_it_is_set)
{
	struct uvd_handles h = { 0 };
	uint32_t id;
	int object;

	ck_assert_ptr_null(uvd_handles_get(&h, 0));
	uvd_handles_alloc(&h, &id);
	ck_assert_ptr_null(uvd_handles_get(&h, id));
	uvd_handles_set(&h, id, &object);
	ck_assert_ptr_eq(uvd_handles_get(&h, id), &object);
	ck_assert_ptr_null(uvd_handles_get(&h, 1));
	ck_assert_ptr_null(uvd_handles_get(&h, 64));
	ck_assert_ptr_null(uvd_handles_get(&h, UINT32_MAX));
	uvd_handles_free(&h, id);
	ck_assert_ptr_null(uvd_handles_get(&h, id));
	/* After reallocation the slot must not show its last object. */
	uvd_handles_alloc(&h, &id);
	ck_assert_ptr_null(uvd_handles_get(&h, id));
	uvd_handles_fini(&h);
}
END_TEST

START_TEST(test_freeing_what_is_free_changes_nothing)
{
	struct uvd_handles h = { 0 };
	uint32_t id;

	uvd_handles_free(&h, 0);
	uvd_handles_alloc(&h, &id);
	uvd_handles_free(&h, 1);
	uvd_handles_free(&h, 100000);
	uvd_handles_free(&h, UINT32_MAX);
	ck_assert_uint_eq(h.count, 1);
	uvd_handles_free(&h, 0);
	uvd_handles_free(&h, 0);
	ck_assert_uint_eq(h.count, 0);
	uvd_handles_fini(&h);
}
END_TEST

START_TEST(test_there_are_no_more_handles_than_32_bits_have)
{
	struct uvd_handles h = { .count = UINT32_MAX };
	uint32_t id;

	ck_assert_int_eq(uvd_handles_alloc(&h, &id), -ENOMEM);
}
END_TEST

/* The model is a plain array. */
START_TEST(test_random_use_agrees_with_a_model)
{
	enum { N = 20000, STEPS = 300000 };
	static char objects[N];
	static bool used[N];
	struct uvd_handles h = { 0 };
	uint32_t id, lowest = 0, count = 0; /* lowest: all handles below it are in use */
	unsigned int seed = 1;

	for (unsigned int step = 0; step < STEPS; step++) {
		/* The table grows and shrinks in turn, so that its nodes are allocated and freed. */
		bool grow = step / 40000 % 2 ? rand_r(&seed) % 3 == 0 : rand_r(&seed) % 3 != 0;

		if (grow && count < N - 1) {
			while (used[lowest])
				lowest++;
			ck_assert_int_eq(uvd_handles_alloc(&h, &id), 0);
			ck_assert_uint_eq(id, lowest);
			uvd_handles_set(&h, id, &objects[id]);
			used[id] = true;
			count++;
		} else {
			id = rand_r(&seed) % (count + 100 < N ? count + 100 : N);
			ck_assert_ptr_eq(uvd_handles_get(&h, id), used[id] ? &objects[id] : NULL);
			uvd_handles_free(&h, id);
			count -= used[id];
			used[id] = false;
			lowest = id < lowest ? id : lowest;
		}
		ck_assert_uint_eq(h.count, count);
	}
	uvd_handles_fini(&h);
}
END_TEST

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

START_TEST(test_a_million_objects_are_fast)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	enum { N = 100000 };
#else
	enum { N = 1000000 };
#endif
	struct uvd_handles h = { 0 };
	double start = seconds();
	uint32_t id, others = 0;

	for (uint32_t i = 0; i < N; i++) {
		uvd_handles_alloc(&h, &id);
		uvd_handles_set(&h, id, &h);
	}
	ck_assert_uint_eq(id, N - 1);
	/* Finding a free handle at the end of the table must not be slower than at its beginning. */
	for (uint32_t i = 0; i < N; i++) {
		uvd_handles_free(&h, N - 1);
		uvd_handles_alloc(&h, &id);
		others += id != N - 1;
	}
	ck_assert_uint_eq(others, 0);
	for (uint32_t i = 0; i < N; i++)
		uvd_handles_free(&h, i);
	ck_assert_uint_eq(h.count, 0);
	ck_assert_double_lt(seconds() - start, 5);
	uvd_handles_fini(&h);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("all");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, test_handle_01_starts_at_0_and_the_lowest_free_one_is_next);
	tcase_add_test(tc, test_an_allocated_handle_reads_null_until_it_is_set);
	tcase_add_test(tc, test_freeing_what_is_free_changes_nothing);
	tcase_add_test(tc, test_there_are_no_more_handles_than_32_bits_have);
	tcase_add_test(tc, test_random_use_agrees_with_a_model);
	tcase_add_test(tc, test_a_million_objects_are_fast);
	return run_suite("handles", tc);
}
