/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* One run of a program on one node, in a process of its own, and its results. */
#ifndef UVD_PROG_RUN_H
#define UVD_PROG_RUN_H

#include <stddef.h>
#include <sys/types.h>
#include "format.h"
#include "runner.h"
#include "shape.h"

enum {
	UVD_PROG_MAX_MSG = 1024, /* bytes of a message that are compared (an ioctl's header and attributes) */
	UVD_PROG_MAX_OUT = 4096, /* bytes of output that are compared */
	UVD_PROG_MAX_REGIONS = 24,
	UVD_PROG_MAX_VALUES = 64,
	UVD_PROG_OUT_SLACK = 64, /* bytes behind each buffer that nobody may touch */
	UVD_PROG_UNTOUCHED = 0xa5,
	UVD_PROG_SLOTS = UVD_PROG_MAX_BESIDE,
};

/* The place of an output, and the names of its bytes. */
struct uvd_prog_region {
	char name[48]; /* of its attribute; "" where only its fields have names */
	uint32_t at, len;
	struct uvd_shape_fields fields;
	/* In an expected run a line of results names these fields, a bit each. The others are copies of the actual ones. */
	bool is_expected;
	uint64_t named;
};

/* The results of one call. */
struct uvd_prog_record {
	bool done; /* false: the program ended before or within */
	long ret;
	int err;
	/* The message after the call (the kernel writes handles and flags to attributes), and the output. */
	uint32_t msg_len, out_len;
	uint8_t msg[UVD_PROG_MAX_MSG] __attribute__((aligned(8))), out[UVD_PROG_MAX_OUT] __attribute__((aligned(8)));
	bool is_ioctl;
	long full; /* the result that stands for `ok`: write() returns the length that it was given */
	uint32_t new_at; /* offset in msg of the attribute that got the new handle; 0: there is none */
	unsigned int num_regions;
	struct uvd_prog_region regions[UVD_PROG_MAX_REGIONS];
	/* The call's input values, by the names that programs use. */
	unsigned int num_values;
	struct uvd_prog_value {
		char name[48];
		uint64_t value;
	} values[UVD_PROG_MAX_VALUES];
};

struct uvd_prog_run {
	const struct uvd_prog_node_ops *ops;
	const char *node;
	int cpu; /* the child's CPU; -1: any */
	unsigned int patience; /* seconds; a program that takes longer counts as hanging */
	const char *emit; /* NULL, or a file to which the child writes the calls in bytes, in C (emit.h) */
	unsigned int slot; /* of the child's next call */
	uint16_t driver_id;
	pid_t pid;
	int status; /* from waitpid(), once the child has ended */
	char trouble[128]; /* why the program cannot be run; "": it can */
	struct uvd_prog_record records[UVD_PROG_MAX_CALLS];
};

/* Allocates a run in memory that it shares with its children. Returns NULL, with errno, if the node does not answer. */
struct uvd_prog_run *uvd_prog_run_new(const char *node, int cpu);
/* The same, for a device that is reached by `ops` and accepts this driver id. node: its name, for messages. */
struct uvd_prog_run *uvd_prog_run_new_with(const struct uvd_prog_node_ops *ops, const char *node, uint16_t driver_id);
void uvd_prog_run_free(struct uvd_prog_run *run);
/* Returns the driver id that the node accepts in ioctl headers; -1: it cannot be opened, or accepts none. */
int uvd_prog_find_driver(const char *node);
void uvd_prog_run_start(struct uvd_prog_run *run, const struct uvd_prog *p);
void uvd_prog_run_wait(struct uvd_prog_run *run);

/*
 * For a process that runs several programs itself: make the arena once; then, for each program, clear the arena, reset the run
 * and make the calls on an open node, one program at a time.
 */
/* Maps the areas. Returns 0, or -1 if their addresses are in use. */
int uvd_prog_arena_make(void);
/* Makes all of it zero, as it is in a new process. */
void uvd_prog_arena_clear(void);
void uvd_prog_run_reset(struct uvd_prog_run *run, const struct uvd_prog *p);
/* Makes all calls of the program. Returns 0, or -1 if the program is wrong: run->trouble says why. */
int uvd_prog_run_calls(struct uvd_prog_run *run, const struct uvd_prog *p, int node);

extern const struct uvd_prog_node_ops uvd_prog_system_calls;

/* ---- within the child -------------------------------------------------------------------------------------------- */

/* An address at which no sanitizer has its own memory. */
#ifdef __SANITIZE_ADDRESS__
#define UVD_PROG_ARENA 0x400000000000ull
#else
#define UVD_PROG_ARENA 0x200000000ull
#endif
/* Each call that is made beside others has a slot: a message, inputs and outputs of its own. */
#define UVD_PROG_SLOT_SIZE 0x1000000ull
#define UVD_PROG_MSG(run) ((run)->slot * UVD_PROG_SLOT_SIZE + UVD_PROG_ARENA) /* 64 KiB, unmapped after that */
#define UVD_PROG_MSG_SIZE 0x10000
#define UVD_PROG_IN(run) ((run)->slot * UVD_PROG_SLOT_SIZE + UVD_PROG_ARENA + 0x100000)
#define UVD_PROG_IN_SIZE 0x20000
#define UVD_PROG_OUT(run) ((run)->slot * UVD_PROG_SLOT_SIZE + UVD_PROG_ARENA + 0x200000)
#define UVD_PROG_OUT_SIZE 0x40000
#define UVD_PROG_MEM (UVD_PROG_ARENA + 0x300000) /* the client's, for memory regions */
#define UVD_PROG_MEM_SIZE 0x40000
#define UVD_PROG_RO (UVD_PROG_ARENA + 0x400000)
#define UVD_PROG_RO_SIZE 0x4000
#define UVD_PROG_SCRATCH (UVD_PROG_ARENA + 0x500000) /* where a driver may write; not compared */
#define UVD_PROG_SCRATCH_SIZE 0x1000
#define UVD_PROG_NONE (UVD_PROG_ARENA + 0x600000)
#define UVD_PROG_EDGE (UVD_PROG_MEM + UVD_PROG_MEM_SIZE - 0x1000) /* a page, unmapped after that */

/* The mapped areas, in the order of their addresses. */
enum { UVD_PROG_AREAS = 3 * UVD_PROG_SLOTS + 3 };
struct uvd_prog_area {
	uint64_t at;
	size_t size;
	bool writable;
};
void uvd_prog_areas(struct uvd_prog_area areas[UVD_PROG_AREAS]);

/* Write a call in bytes, into the arena. Return NULL, or what is wrong with the program. They fill the record's regions and values. */
const char *uvd_prog_build_write(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i,
				 struct uvd_prog_built *b);
const char *uvd_prog_build_cm(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i,
			      struct uvd_prog_built *b);
const char *uvd_prog_build_ioctl(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i,
				 struct uvd_prog_built *b);
/* Returns the value of a word. A label without a value (a failed call, no such output) gives UINT32_MAX. */
uint64_t uvd_prog_value_of(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i, const char *word);

#endif
