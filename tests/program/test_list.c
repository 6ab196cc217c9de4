/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A row of the list of differences holds on the kernels that its condition names. */
#include <string.h>
#include "program/list.h"
#include "../suite.h"

static const char *const releases[] = { "6.1.0-40-amd64", "6.11.9", "6.12.95+deb12-amd64", "6.13", "7.0.1" };

enum { NUM_RELEASES = sizeof(releases) / sizeof(releases[0]) };

static const struct {
	const char *when;
	bool holds[NUM_RELEASES];
} rows[] = {
	{ "", { true, true, true, true, true } },
	{ "uhw_in>0", { true, true, true, true, true } },
	{ "kernel>=6.12", { false, false, true, true, true } },
	{ "qp_now=3,4 kernel>=6.12 failed", { false, false, true, true, true } },
	{ "kernel<6.12", { true, true, false, false, false } },
	{ "kernel>=6.2 kernel<6.13", { false, true, true, false, false } },
};

/* A row of another kernel is gone: no difference hits it, and nothing expects a difference to. */
START_TEST(test_row_holds_on_its_kernels_only)
{
	struct uvd_prog_list list = {};
	char line[128];

	for (unsigned int i = 0; i < NUM_RELEASES; i++) {
		ck_assert(uvd_prog_list_add(&list, "| always | A | x | * | * | | first |"));
		snprintf(line, sizeof(line), "| row | A | x | * | * | %s | why |", rows[_i].when);
		ck_assert(uvd_prog_list_add(&list, line));
		ck_assert(uvd_prog_list_add(&list, "| last | A | x | * | * | | last |"));
		uvd_prog_list_keep_kernel(&list, releases[i]);
		ck_assert_uint_eq(list.num, rows[_i].holds[i] ? 3 : 2);
		ck_assert_str_eq(list.rows[0].name, "always");
		ck_assert_str_eq(list.rows[list.num - 1].name, "last");
		uvd_prog_list_free(&list);
	}
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("list");

	tcase_add_loop_test(t, test_row_holds_on_its_kernels_only, 0, sizeof(rows) / sizeof(rows[0]));
	return run_suite("program: list of differences", t);
}
