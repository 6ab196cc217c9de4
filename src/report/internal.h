/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The records of a report. collect.c fills them, judge.c makes a document of them, text.c and junit.c write that. */
#ifndef UVD_REPORT_INTERNAL_H
#define UVD_REPORT_INTERNAL_H

#include <infiniband/verbs.h>
#include <jansson.h>
#include <pthread.h>
#include "core/core.h"
#include "report/report.h"
#include "util/util.h"

/* Limits, as a client can be hostile. The report counts what is beyond them, and says how many. */
enum {
	REPORT_PROCESSES = 512, /* with a record of their own */
	REPORT_LEFT = 64, /* objects of a process that are listed */
	REPORT_REASONS = 32, /* kinds of explanations of a process */
	REPORT_VERBS = 256, /* of a process */
	REPORT_OBJECTS = 65536, /* that live at one moment */
	REPORT_NAME = 64,
	REPORT_SAMPLE = 512,
	REPORT_FRAMES = 32, /* of a stack */
	REPORT_STACK = 16384, /* bytes of a stack that are kept */
	REPORT_STACKS = 64 << 20, /* bytes of all stacks */
	REPORT_MODULES = 512, /* files that a process has mapped */
	REPORT_BUILD_ID = 32, /* bytes */
};

/* A file of code that a process has mapped. */
struct report_module {
	uint64_t start, end;
	char *path;
	uint8_t id[REPORT_BUILD_ID]; /* its build id */
	unsigned int id_len; /* 0: it has none */
};

/* The modules of a process at some moment. Constant, but for refs, which the report's lock protects. */
struct report_maps {
	unsigned int refs, num;
	uint64_t hash; /* of what is mapped where */
	struct report_module modules[];
};

/* A copy of the top of a stack. stack.c makes it while its thread waits, unwind.c unwinds it at the end. */
struct report_stack {
	struct report_maps *maps; /* a reference */
	uint64_t pc, sp; /* at the system call */
	size_t len;
	uint8_t bytes[]; /* from sp on */
};

struct report_frame {
	char function[2 * REPORT_NAME], file[4 * REPORT_NAME], module[2 * REPORT_NAME]; /* "": not known */
	int line;
	uint64_t offset; /* in the module */
};

/* An object can have these faults. The table in judge.c has their texts. */
enum report_issue_kind {
	REPORT_SENDS_STUCK, /* none of the QP's has ever completed */
	REPORT_SENDS_IN_FLIGHT,
	REPORT_RECEIVES_UNUSED,
	REPORT_EVENTS_UNREAD,
	REPORT_CQ_SMALL,
	REPORT_INLINE_LARGE,
	REPORT_ISSUES,
};

/* All issues of one kind of a process: how many objects, and those of the first one. */
struct report_issue {
	uint64_t objects, total;
	uint32_t first, value, limit; /* its number, what it has, what would do */
	char first_type[REPORT_NAME]; /* EVENTS_UNREAD */
};

/* Explanations with the same reason, of the same kind and with the same status. */
struct report_reason {
	char code[REPORT_NAME];
	enum uvd_explained_kind kind;
	int status; /* enum ibv_wc_status, or enum ibv_event_type, or errno */
	uint64_t count;
	char sample[REPORT_SAMPLE]; /* the first one */
};

struct report_verb {
	char name[REPORT_NAME];
	uint64_t calls, errors, bytes;
};

/* An object that was there when its file was closed. */
struct report_left {
	char type[REPORT_NAME];
	uint16_t id;
	uint32_t handle;
	uint64_t values[2];
	bool was_alive; /* the process had not ended: it has closed the device itself */
	struct report_stack *stack; /* of the call that made it; NULL: not known */
	struct report_frame *frames; /* num_frames of them */
	unsigned int num_frames;
};

enum report_end { REPORT_LIVES, REPORT_EXITED, REPORT_GONE /* killed, as far as is known */ };

struct report_process {
	pid_t pid;
	uint64_t started;
	char program[REPORT_NAME];
	struct report_maps *maps; /* the latest that a stack was taken with, a reference; NULL: none */
	unsigned int files; /* open now */
	enum report_end end;
	int status; /* EXITED */
	uint64_t num_left, left_bytes;
	uint64_t num_left_alive; /* those with was_alive */
	uint64_t num_left_used; /* without CQs and PDs, which are nothing by themselves */
	uint64_t num_qps, num_served; /* that have ended; the second: without a request or receive of their own */
	unsigned int num_listed, num_reasons, num_verbs;
	struct report_left *left[REPORT_LEFT];
	struct report_reason *reasons[REPORT_REASONS];
	struct report_verb *verbs[REPORT_VERBS];
	uint64_t lost_completions; /* of CQs that have ended */
	uint64_t other_reasons, other_calls; /* that had no room */
	struct report_issue issues[REPORT_ISSUES];
	uint64_t messages[UVD_QP_WORK_OPCODES], bytes[UVD_QP_WORK_OPCODES];
};

/* An open file. */
struct report_file {
	struct report_file *next;
	const struct uvd_watched *watched;
	struct report_process *process;
	enum { REPORT_NOT_ASKED, REPORT_RUNS, REPORT_ENDS } closing; /* does its process run while it is closed? */
};

/* An object that lives. */
struct report_object {
	struct report_object *next;
	const struct uvd_uobject *self;
	uint64_t serial; /* no other object of the report has it */
	struct report_stack *stack; /* NULL: not known */
	struct report_process *process;
	uint64_t demand, most; /* CQ: requests that its QPs can have at once: now, and at most */
	bool has_work; /* QP */
	struct uvd_qp_work work;
};

enum { REPORT_BUCKETS = 4096 };

struct uvd_report {
	struct uvd_observer observer;
	struct uvd_engine *engine;
	struct uvd_report_config config;
	pthread_mutex_t lock; /* all below */
	struct report_process *processes[REPORT_PROCESSES];
	unsigned int num_processes;
	struct report_process *others; /* stands for those beyond; NULL: there are none */
	uint64_t num_others;
	struct report_file *files[REPORT_BUCKETS];
	struct report_object *objects[REPORT_BUCKETS];
	unsigned int num_objects;
	uint64_t serial; /* the last that was given */
	uint64_t stack_bytes, stacks_lost; /* the second: they would have been too many */
	uint64_t lost; /* observations for which there was no memory */
	json_t *document; /* after the end; NULL: no memory */
	uint64_t findings;
};

/* Copies a text of a client's or a plug-in's: only characters that can be printed, others become '?'. */
void uvd_report_copy_text(char *to, size_t size, const char *from);
/* Returns where the record of the object is, or would be added. Caller holds the lock. */
struct report_object **uvd_report_object_at(struct uvd_report *r, const struct uvd_uobject *self);

/* stack.c. Caller holds the lock. made: the calling thread makes this object, whose stack is wanted. */
void uvd_report_stack_made(const struct report_object *object);
void uvd_report_stack_free(struct uvd_report *r, struct report_stack *stack);
void uvd_report_maps_put(struct report_maps *maps);
/* unwind.c: finds the frames of all objects that are left. Takes REPORT_UNWIND_MS at most. */
void uvd_report_unwind(struct uvd_report *r);
enum { REPORT_UNWIND_MS = 10000 };

/* judge.c: makes r->document, and counts the findings. */
void uvd_report_judge(struct uvd_report *r);
/* text.c and junit.c */
void uvd_report_print_text(const json_t *document, FILE *out);
void uvd_report_print_junit(const json_t *document, FILE *out);

#endif
