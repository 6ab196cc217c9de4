/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The list of differences, read from docs/abi-differences.md: the rows of its table whose first column is "name" and whose
 * second is "call". Cells:
 *
 *	name	of the row
 *	call	commands and methods, as the header asks for them, separated by blanks; * and ? match, as in file names
 *	item	`result`, or the names of outputs
 *	kernel, uverbsd   the values: ok, an errno's name, a number; * matches
 *	when	conditions on the call, all of which must hold (FIELD is an input as it was sent, else an output of the kernel's; of
 *		GIDs the last 8 bytes, GID.begin is the first 8): FIELD=N,N... FIELD!=N FIELD&N FIELD>N FIELD<N, !KNOB, front=NAME,
 *		failed, with=ATTR (a pattern), qp_now=N,N... (the state that the call's QP was in), after=CALL (which was made
 *		on the same QP), mapped_queues=1 (in a trace: the recorded device shared its queues with its clients);
 *		command, object and method are those of the header; kernel>=N.N and kernel<N.N: on which kernels the row holds
 *	why	the reason, for people; `chosen` in front: numbers that a driver chooses, which stand for each other from then on;
 *		`absent` in front: the kernel's device has none of it, so random programs leave it out;
 *		`sometimes` in front: it depends on when a task runs, or is about traces, so the corpus need not show it
 */
#ifndef UVD_PROG_LIST_H
#define UVD_PROG_LIST_H

#include <stdbool.h>
#include <stdio.h>

enum { UVD_PROG_MAX_ROWS = 256 };

struct uvd_prog_listed {
	char *line; /* holds the cells */
	char *name, *call, *item, *kernel, *ours, *when, *why;
	bool chosen, absent, sometimes;
	unsigned int hits;
};

struct uvd_prog_list {
	unsigned int num;
	struct uvd_prog_listed rows[UVD_PROG_MAX_ROWS];
};

/* Returns false, with a message on stderr, if the file cannot be read or has no such table. */
bool uvd_prog_list_read_file(struct uvd_prog_list *list, FILE *in, const char *name);
bool uvd_prog_list_read(struct uvd_prog_list *list, const char *path);
/* Adds a row, written as in the table. Returns false if the list is full. */
bool uvd_prog_list_add(struct uvd_prog_list *list, const char *row);
void uvd_prog_list_free(struct uvd_prog_list *list);
/* Keeps only the rows of numbers that a driver chooses: what may differ between two runs on one device. */
void uvd_prog_list_keep_chosen(struct uvd_prog_list *list);
/* Removes the rows that do not hold on a kernel of this release, 6.12.95+deb12 for example (uname -r). */
void uvd_prog_list_keep_kernel(struct uvd_prog_list *list, const char *release);
/* Does the text match one of the patterns? Blanks separate them. */
bool uvd_prog_list_match(const char *patterns, const char *text);
/* Returns the value of KEY= among the conditions, or NULL. It stays valid until the next call. */
const char *uvd_prog_list_condition(const struct uvd_prog_listed *row, const char *key);
/* Is value one of N,N...? */
bool uvd_prog_list_number(const char *numbers, unsigned long long value);

#endif
