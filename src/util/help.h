/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* help.c: prints help, wrapped to the width of the terminal. */
#ifndef UVD_UTIL_HELP_H
#define UVD_UTIL_HELP_H

#include <getopt.h>
#include <stdio.h>

struct uvd_help_example {
	const char *command, *what; /* NULL, NULL ends a list */
};

/* How the help of a program or of a command begins. */
struct uvd_help_head {
	const char *const *synopses; /* ends with NULL */
	const struct uvd_help_example *examples;
};

/* Returns the columns of $COLUMNS, else of the terminal behind `to`, else 80; at least 40, at most 120. */
unsigned int uvd_help_width(FILE *to);
/* Prints text from column `at` on, and wraps it. Further lines are indented. A `quoted` command of usual length is not broken. */
void uvd_help_wrap(FILE *to, const char *text, unsigned int at, unsigned int indent);
/* Prints "  LEFT   RIGHT": RIGHT begins at the column, on the next line if LEFT is too long. */
void uvd_help_row(FILE *to, const char *left, const char *right, unsigned int column);
/* head: may be NULL. */
void uvd_help_head_print(FILE *to, const struct uvd_help_head *head);

/*
 * Says on stderr what is wrong with the option for which getopt_long(), with opterr 0 and ':' first in its letters, has returned
 * '?' or ':' as c. who: begins the message. longs: those of the call; names that begin with "internal-" are not told.
 */
void uvd_help_wrong_option(const char *who, int c, char **argv, const struct option *longs);

#endif
