/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* One run of a program on one node, in a process of its own, and its results. */
#ifndef DIFF_RUN_H
#define DIFF_RUN_H

#include <stddef.h>
#include <sys/types.h>
#include "program.h"
#include "shape.h"

enum {
	MAX_MSG = 1024, /* bytes of a message that are compared (an ioctl's header and attributes) */
	MAX_OUT = 4096, /* bytes of output that are compared */
	MAX_REGIONS = 24,
	MAX_VALUES = 64,
	OUT_SLACK = 64, /* bytes behind each buffer that nobody may touch */
	OUT_UNTOUCHED = 0xa5,
};

/* Where an output lies; the names of its bytes. */
struct region {
	char name[48]; /* of its attribute; "" where only its fields have names */
	uint32_t at, len;
	struct fields fields;
};

/* What one call did. */
struct record {
	bool done; /* false: the program ended before or within */
	long ret;
	int err;
	/* The message after the call (the kernel writes handles and flags to attributes), and the output. */
	uint32_t msg_len, out_len;
	uint8_t msg[MAX_MSG], out[MAX_OUT];
	bool is_ioctl;
	unsigned int num_regions;
	struct region regions[MAX_REGIONS];
	/* The call's input values, by the names that programs use. */
	unsigned int num_values;
	struct value {
		char name[48];
		uint64_t value;
	} values[MAX_VALUES];
};

struct run {
	const char *node;
	int cpu; /* the child's CPU; -1: any */
	uint16_t driver_id;
	pid_t pid;
	int status; /* from waitpid(), once the child has ended */
	char trouble[128]; /* why the program cannot be run; "": it can */
	struct record records[MAX_CALLS];
};

/* Allocates a run in memory that it shares with its children. */
struct run *run_new(const char *node, int cpu);
/* Returns the driver id that the node accepts in ioctl headers; -1: it cannot be opened, or accepts none. */
int run_find_driver(const char *node);
void run_start(struct run *run, const struct program *p);
void run_wait(struct run *run);

/* ---- within the child -------------------------------------------------------------------------------------------- */

#define ARENA 0x200000000ull
#define ARENA_MSG ARENA /* 64 KiB, unmapped after that */
#define ARENA_MSG_SIZE 0x10000
#define ARENA_IN (ARENA + 0x100000)
#define ARENA_IN_SIZE 0x20000
#define ARENA_OUT (ARENA + 0x200000)
#define ARENA_OUT_SIZE 0x40000
#define ARENA_MEM (ARENA + 0x300000) /* the client's, for memory regions */
#define ARENA_MEM_SIZE 0x40000
#define ARENA_RO (ARENA + 0x400000)
#define ARENA_RO_SIZE 0x4000
#define ARENA_SCRATCH (ARENA + 0x500000) /* where a driver may write; not compared */
#define ARENA_SCRATCH_SIZE 0x1000
#define ARENA_NONE (ARENA + 0x600000)
#define ARENA_EDGE (ARENA_MEM + ARENA_MEM_SIZE - 0x1000) /* a page, unmapped after that */

/* One call in bytes, in the arena. */
struct built {
	uint8_t *msg;
	size_t len; /* write()'s length argument */
	uint64_t arg; /* ioctl()'s argument */
	unsigned long cmd;
};

/* Return NULL, or what is wrong with the program. They fill the record's regions and values. */
const char *build_write(struct run *run, const struct program *p, unsigned int i, struct built *b);
const char *build_ioctl(struct run *run, const struct program *p, unsigned int i, struct built *b);
/* Returns the value of a word. A label without a value (a failed call, no such output) gives UINT32_MAX. */
uint64_t value_of(struct run *run, const struct program *p, unsigned int i, const char *word);
/* Finds the value of an output of an earlier call. Returns false if there is none. */
bool output_of(const struct record *r, const char *name, uint64_t *value);

#endif
