/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A device with an administrator's allow-lists and quotas, and cases of what it refuses: one row each. What a client does is
 * called in each front that a verb has.
 */
#ifndef UVD_TEST_REFUSALS_H
#define UVD_TEST_REFUSALS_H

#include <check.h>
#include "../suite.h"
#include "encode.h"

#define BACKEND "soft"
#define BASE "verbs:base,ALLOC_PD,CREATE_CQ"
#define GID1 "fe80::77" /* the second one of port 1 */

enum {
	PAGE = 4096,
	LW = IBV_ACCESS_LOCAL_WRITE,
	RW = IBV_ACCESS_REMOTE_WRITE,
	RR = IBV_ACCESS_REMOTE_READ,
	METHODS = 1 << UV_METHOD,
	ALL = (1 << UV_FRONTS) - 1,
	PLAIN = 1 << UV_WRITE | 1 << UV_INVOKE,
};

struct refusal_case {
	const char *name;
	const char *texts[4]; /* of allow-lists, where "GID0" is the device's first GID; after "quota ": of quotas */
	int (*run)(enum uv_front front); /* returns 0 or a negative errno */
	unsigned int fronts;
	int err;
	const char *line; /* what the log has, with the pid; NULL: nothing */
};

/* A process runs one case at a time. */
extern struct harness h;
extern uint8_t mem[4 * PAGE];
extern uint32_t pd, cq; /* those that refusals_objects() has made; a case may make others */

/* Calls of the device that both tables have. Each returns 0 or a negative errno. */
int refusals_context(enum uv_front front);
/* A context, `pd` and `cq`. */
int refusals_objects(void);

/* Before each test: the first ioctl tries driver ids, which leaves lines in the log. */
void refusals_setup(void);
/* Makes an engine with these texts, up to NULL, and no device yet: h.config is for the caller to change. */
void refusals_prepare(const char *const *texts);
/* The same, and starts the device. */
void refusals_begin(const char *const *texts);
/* The log writes from this level on, again from the beginning of its file. */
void refusals_log(int level);
/* Reads what the log has. */
void refusals_read_log(char *text, size_t size);
void refusals_end(void);

/* Texts of which the device cannot begin, and the line about it. */
struct refusal_of_device {
	const char *texts[3], *line;
	bool borrows; /* the device has an adapter, and --memory=borrow */
};

/* The device does not begin; without the texts it has its name, and `run` works there. */
void refusals_run_device(const struct refusal_of_device *d, int (*run)(enum uv_front front));

/* Runs a case in each of its fronts: its errno, its line and no other, the device's count, and nothing stays charged to it. */
void refusals_run(const struct refusal_case *c);

/* test_allow.c has the tests, allow_cases.c the table. */
extern const struct refusal_case allow_cases[];
extern const unsigned int num_allow_cases;
int allow_reg_remote_write(enum uv_front front);

#endif
