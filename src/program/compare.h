/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The differences between two runs of one program. */
#ifndef UVD_PROG_COMPARE_H
#define UVD_PROG_COMPARE_H

#include "list.h"
#include "run.h"

/* The result of a call during which the program exceeded its time limit (run.c). */
#define UVD_PROG_HANG "hang"

struct uvd_prog_difference {
	bool found;
	unsigned int call;
	char target[UVD_PROG_MAX_TARGET], item[80], kernel[40], ours[40];
};

/*
 * Finds the first difference that is not listed, and counts the listed ones in the list. After a call that succeeds on
 * one side only, nothing more is compared.
 */
void uvd_prog_compare(struct uvd_prog_list *list, const struct uvd_prog *p, const struct uvd_prog_run *kernel,
		      const struct uvd_prog_run *ours, struct uvd_prog_difference *first);
/* Is it the same finding? The results must be equal; the values of outputs may differ. */
bool uvd_prog_same_difference(const struct uvd_prog_difference *a, const struct uvd_prog_difference *b);
void uvd_prog_difference_print(const struct uvd_prog_difference *d, FILE *out);
/* Returns "ok", an errno's name, or a number. */
const char *uvd_prog_result(const struct uvd_prog_record *r);

#endif
