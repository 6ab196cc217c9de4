/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What two runs of one program did differently. */
#ifndef DIFF_COMPARE_H
#define DIFF_COMPARE_H

#include "list.h"
#include "run.h"

/* The result of a call that took longer than a program may (run.c). */
#define HANG "hang"

struct difference {
	bool found;
	unsigned int call;
	char target[MAX_TARGET], item[80], kernel[40], ours[40];
};

/*
 * The first difference that is not listed, if there is one. Listed ones are counted in the list. Where one side succeeded
 * and the other did not, what follows is not compared.
 */
void compare(struct list *list, const struct program *p, const struct run *kernel, const struct run *ours,
	     struct difference *first);
/* The same finding? Values of outputs may be others, those of results may not. */
bool same_difference(const struct difference *a, const struct difference *b);
void difference_print(const struct difference *d, FILE *out);
/* ok, an errno's name, or a number */
const char *result_text(const struct record *r);

#endif
