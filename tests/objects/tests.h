/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Common to the test programs of this folder: the fixture, which makes a new device for each test, and main(). */
#ifndef UVD_OBJECTS_TESTS_H
#define UVD_OBJECTS_TESTS_H

#include <check.h>
#include "../suite.h"
#include "encode.h"

/* An address that is not mapped. */
#define BAD ((void *)0x10)

static struct harness h;

/* A program may define BACKEND before it includes this. */
#ifndef BACKEND
#define BACKEND "null"
#endif

static void setup(void)
{
	harness_open_with(&h, BACKEND, &uvd_mem_process);
}

static void teardown(void)
{
	harness_close(&h);
}

/* Defines main(), which runs the tests in this order. */
#define TEST_LIST(...) \
	int main(void) \
	{ \
		const TTest *const tests[] = { __VA_ARGS__ }; \
		TCase *tc = tcase_create("all"); \
\
		tcase_add_checked_fixture(tc, setup, teardown); \
		tcase_set_timeout(tc, 30); \
		for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) \
			tcase_add_test(tc, tests[i]); \
		return run_suite(__FILE__, tc); \
	}

#endif
