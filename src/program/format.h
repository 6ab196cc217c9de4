/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A program: calls on one open device, as text that people read and the shrinker cuts. One line is one call:
 *
 *	[LABEL:] write COMMAND ITEM...	a command by write()
 *	[LABEL:] invoke COMMAND ITEM...	the same command by INVOKE_WRITE
 *	[LABEL:] method METHOD ITEM...	an ioctl method
 *	event VALUE [wait=MS]		reads one event from an fd, without blocking longer than that
 *	recv LABEL			posts one empty receive to a QP, in its driver's own way
 *	[LABEL:] cm COMMAND ITEM... [wait=MS]	a command of rdma_cm, by the program's one open file of it, which does not block: GET_EVENT
 *					waits as long as `wait` says
 *	close VALUE|device		closes an fd, or the program's device
 *	= RESULT [OUTPUT=VALUE]...	what the call before this line is to do (expect.h)
 *	check model, check leaks, check log	a replay also checks this (model.h); leaks: objects and charges that stay after it;
 *					log: reports of bugs in the kernel's log
 *	device KIND			the results are those of the kernel's device (`kernel`) or of ours (`uverbsd`)
 *
 * A call that begins with `&` is made beside the next one: a thread of its own makes it, at the same time.
 * COMMAND and METHOD are the kernel's names without IB_USER_VERBS_CMD_ or UVERBS_METHOD_ (extended commands: EX_...), or
 * #NUMBER and #OBJECT/METHOD; those of cm are without RDMA_USER_CM_CMD_. build.c explains the items; README.md has examples.
 */
#ifndef UVD_PROG_FORMAT_H
#define UVD_PROG_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The word with which a `close` closes the device. */
#define UVD_PROG_DEVICE "device"

enum {
	UVD_PROG_MAX_CALLS = 40,
	UVD_PROG_MAX_ITEMS = 40,
	UVD_PROG_MAX_LABEL = 16,
	UVD_PROG_MAX_TARGET = 48,
	UVD_PROG_MAX_ITEM = 160,
	UVD_PROG_MAX_EXPECT = 3072,
};

enum uvd_prog_front {
	UVD_PROG_WRITE,
	UVD_PROG_INVOKE,
	UVD_PROG_METHOD,
	UVD_PROG_EVENT,
	UVD_PROG_RECV,
	UVD_PROG_CLOSE,
	UVD_PROG_CM,
	UVD_PROG_FRONTS
};
extern const char *const uvd_prog_front_names[UVD_PROG_FRONTS];

struct uvd_prog_call {
	char label[UVD_PROG_MAX_LABEL];
	enum uvd_prog_front front;
	char target[UVD_PROG_MAX_TARGET];
	bool beside; /* made at the same time as the next call */
	unsigned int num_items;
	char items[UVD_PROG_MAX_ITEMS][UVD_PROG_MAX_ITEM];
	char expect[UVD_PROG_MAX_EXPECT]; /* RESULT [OUTPUT=VALUE]...; "": the program does not say */
};

struct uvd_prog {
	char name[128]; /* of its file, or its seed */
	char device[16]; /* whose results `expect` has: "kernel", "uverbsd"; "": unknown */
	bool check_model, check_leaks, check_log;
	unsigned int num_calls;
	struct uvd_prog_call calls[UVD_PROG_MAX_CALLS];
};

/* Can a file that begins with these bytes be a program? Text has no NUL. */
bool uvd_prog_is_text(const void *start, size_t len);
/* Reads the program of a file. Returns false after a message on stderr, which begins with `who`. */
bool uvd_prog_load(struct uvd_prog *p, const char *who, const char *path);
/* Returns 0, or the number of the wrong line, with the reason in *why. Lines that begin with # are comments. */
unsigned int uvd_prog_parse(struct uvd_prog *p, FILE *in, const char **why);
void uvd_prog_print(const struct uvd_prog *p, FILE *out);
/*
 * Prints the program that was read from `in`, line by line as it stands there, comments included, with the device and the
 * results that *p has now.
 */
void uvd_prog_print_like(const struct uvd_prog *p, FILE *in, FILE *out);
void uvd_prog_call_print(const struct uvd_prog_call *call, FILE *out);

/* Does the program make calls at the same time? Then it can have other results in the next run. */
bool uvd_prog_races(const struct uvd_prog *p);
void uvd_prog_drop_item(struct uvd_prog_call *call, unsigned int i);
void uvd_prog_drop_call(struct uvd_prog *p, unsigned int i);
/* Appends an item, printf-like. */
void uvd_prog_add_item(struct uvd_prog_call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sets bytes from pairs of hexadecimal digits, as many as there are, `size` at most. */
void uvd_prog_bytes_of(uint8_t *to, size_t size, const char *text);
/* Returns the text after NAME= in the call's items, "" for NAME alone, or NULL. */
const char *uvd_prog_item(const struct uvd_prog_call *call, const char *name);

#endif
