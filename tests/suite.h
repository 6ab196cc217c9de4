/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How test programs run their cases. */
#ifndef UVD_TEST_SUITE_H
#define UVD_TEST_SUITE_H

#include <check.h>

/* Runs the suite and frees it. Returns main()'s status. */
static inline int run_cases(Suite *s)
{
	SRunner *r = srunner_create(s);
	int failed;

	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? 1 : 0;
}

/* The same for a suite of this one case. */
static inline int run_suite(const char *name, TCase *t)
{
	Suite *s = suite_create(name);

	suite_add_tcase(s, t);
	return run_cases(s);
}

#endif
