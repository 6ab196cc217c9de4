/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Common to the tests of filters: a device of the backend null, and calls of its operations. */
#ifndef TESTS_FILTERS_BED_H
#define TESTS_FILTERS_BED_H

#include <check.h>
#include "../suite.h"
#include "filters/filters.h"
#include "harness.h"

static struct harness h;
static char error[UVD_PLUGIN_ERROR];

/* Calls alloc_pd of the device as the core does, without a file. */
static inline int bed_alloc_pd(void)
{
	struct uvd_context context = { .dev = &h.dev->ib };
	struct uvd_pd pd = { .context = &context };

	return h.dev->ib.ops->alloc_pd(&pd, NULL);
}

static inline int bed_dealloc_pd(void)
{
	struct uvd_context context = { .dev = &h.dev->ib };
	struct uvd_pd pd = { .context = &context };

	return h.dev->ib.ops->dealloc_pd(&pd);
}

/* Adds a filter to the running device. */
static inline void bed_add(const char *text)
{
	ck_assert_msg(!uvd_device_filter_add(h.dev, text, error), "%s", error);
}

#define FILTERS_MAIN(setup, teardown, ...) \
	int main(void) \
	{ \
		const TTest *const tests[] = { __VA_ARGS__ }; \
		TCase *tc = tcase_create("all"); \
\
		tcase_add_checked_fixture(tc, setup, teardown); \
		tcase_set_timeout(tc, 60); \
		for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) \
			tcase_add_test(tc, tests[i]); \
		return run_suite(__FILE__, tc); \
	}

#endif
