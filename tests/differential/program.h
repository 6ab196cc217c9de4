/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A program: calls on one open device, as text that people read and the shrinker cuts. One line is one call:
 *
 *	[LABEL:] write COMMAND ITEM...	a command by write()
 *	[LABEL:] invoke COMMAND ITEM...	the same command by INVOKE_WRITE
 *	[LABEL:] method METHOD ITEM...	an ioctl method
 *	event VALUE [wait=MS]		reads one event from an fd, without blocking longer than that
 *	recv LABEL			posts one empty receive to a QP, in its driver's own way
 *	close VALUE			closes an fd
 *
 * COMMAND and METHOD are the kernel's names without IB_USER_VERBS_CMD_ or UVERBS_METHOD_ (extended commands: EX_...), or
 * #NUMBER and #OBJECT/METHOD. build.c explains the items; README.md has examples.
 */
#ifndef DIFF_PROGRAM_H
#define DIFF_PROGRAM_H

#include <stdbool.h>
#include <stdio.h>

enum { MAX_CALLS = 40, MAX_ITEMS = 40, MAX_LABEL = 16, MAX_TARGET = 48, MAX_ITEM = 160 };

enum front { BY_WRITE, BY_INVOKE, BY_METHOD, DO_EVENT, DO_RECV, DO_CLOSE, FRONTS };
extern const char *const front_names[FRONTS];

struct call {
	char label[MAX_LABEL];
	enum front front;
	char target[MAX_TARGET];
	unsigned int num_items;
	char items[MAX_ITEMS][MAX_ITEM];
};

struct program {
	char name[128]; /* of its file, or its seed */
	unsigned int num_calls;
	struct call calls[MAX_CALLS];
};

/* Returns 0, or the number of the wrong line, with the reason in *why. Lines that begin with # are comments. */
unsigned int program_parse(struct program *p, FILE *in, const char **why);
void program_print(const struct program *p, FILE *out);
void call_print(const struct call *call, FILE *out);

void call_drop_item(struct call *call, unsigned int i);
void program_drop_call(struct program *p, unsigned int i);
/* Appends an item, printf-like. */
void call_add(struct call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Returns the text after NAME= in the call's items, "" for NAME alone, or NULL. */
const char *call_item(const struct call *call, const char *name);

#endif
