/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Test programs run their cases by these functions. */
#ifndef UVD_TEST_SUITE_H
#define UVD_TEST_SUITE_H

#include <check.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Records that a test has not run, and why: on standard output, and for scripts/tap-wrap, which counts the test as skipped.
 * test: the name of its function, which libcheck ends with `_fn`.
 */
static inline void suite_record_skip(const char *test, const char *why)
{
	const char *tap = getenv("CK_TAP_LOG_FILE_NAME"), *end = strrchr(test, '_');
	const int len = (int)(end && !strcmp(end, "_fn") ? (size_t)(end - test) : strlen(test));
	char path[4096];
	FILE *out;

	printf("skipped: %.*s: %s\n", len, test, why);
	fflush(stdout);
	if (!tap)
		return;
	snprintf(path, sizeof(path), "%s.skipped", tap);
	out = fopen(path, "ae");
	if (!out)
		abort();
	fprintf(out, "%.*s\t%s\n", len, test, why);
	fclose(out);
}

/* Ends a test that cannot run here. A plain `return` would count it as passed (scripts/assertions). */
#define SKIP(why) \
	do { \
		suite_record_skip(__func__, why); \
		return; \
	} while (0)

/* Returns whether tests that have rounds shall have many (`scripts/test --long`). */
static inline bool suite_is_long(void)
{
	return getenv("UVERBSD_LONG");
}

/* Returns how many descriptors this process has, and three more: two calls can be compared. */
static inline unsigned int suite_num_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

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
