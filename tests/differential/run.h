/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* One run of a program on one node, in a process of its own, and what it left behind. */
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

/* A call, as it was carried out. */
struct record {
	bool done; /* false: the program ended before or within */
	long ret;
	int err;
	/* What was sent, after the call: attributes get handles and flags. */
	uint32_t msg_len, out_len;
	uint8_t msg[MAX_MSG], out[MAX_OUT];
	bool is_ioctl;
	unsigned int num_regions;
	struct region regions[MAX_REGIONS];
	/* The numbers that went in, by the names that programs use. */
	unsigned int num_values;
	struct value {
		char name[48];
		uint64_t value;
	} values[MAX_VALUES];
};

struct run {
	const char *node;
	int cpu; /* that the child stays on; -1: any */
	uint16_t driver_id;
	pid_t pid;
	int status; /* of waitpid(), when it has ended */
	char trouble[128]; /* the program itself is wrong */
	struct record records[MAX_CALLS];
};

/* In memory that is shared with children. */
struct run *run_new(const char *node, int cpu);
/* What the node answers to in ioctl headers; -1: it cannot be opened or has none. */
int run_find_driver(const char *node);
void run_start(struct run *run, const struct program *p);
void run_wait(struct run *run);

/* ---- within the child -------------------------------------------------------------------------------------------- */

#define ARENA 0x200000000ull
#define ARENA_MSG ARENA /* 64 KiB, then nothing */
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
#define ARENA_EDGE (ARENA_MEM + ARENA_MEM_SIZE - 0x1000) /* a page, then nothing */

/* One call in bytes, in the arena. */
struct built {
	uint8_t *msg;
	size_t len; /* what write() is told */
	uint64_t arg; /* what ioctl() is told */
	unsigned long cmd;
};

/* NULL, or what is wrong with the program. Fills the record's regions and values. */
const char *build_write(struct run *run, const struct program *p, unsigned int i, struct built *b);
const char *build_ioctl(struct run *run, const struct program *p, unsigned int i, struct built *b);
/* The value of a word; how it was wrong is said in run->trouble. */
uint64_t value_of(struct run *run, const struct program *p, unsigned int i, const char *word);
/* The value of an output of an earlier call. */
bool output_of(const struct record *r, const char *name, uint64_t *value);

#endif
