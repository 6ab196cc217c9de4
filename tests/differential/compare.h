/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The differences between two runs of one program. */
#ifndef DIFF_COMPARE_H
#define DIFF_COMPARE_H

#include "list.h"
#include "run.h"

/* The result of a call during which the program exceeded its time limit (run.c). */
#define HANG "hang"

struct difference {
	bool found;
	unsigned int call;
	char target[MAX_TARGET], item[80], kernel[40], ours[40];
};

/*
 * Finds the first difference that is not listed, and counts the listed ones in the list. After a call that succeeds on
 * one side only, nothing more is compared.
 */
void compare(struct list *list, const struct program *p, const struct run *kernel, const struct run *ours,
	     struct difference *first);
/* Is it the same finding? The results must be equal; the values of outputs may differ. */
bool same_difference(const struct difference *a, const struct difference *b);
void difference_print(const struct difference *d, FILE *out);
/* Returns "ok", an errno's name, or a number. */
const char *result_text(const struct record *r);

#endif
