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

/* What a hostile client can make us keep. Beyond these, things are counted, and the report says how many. */
enum {
	REPORT_PROCESSES = 512, /* with a record of their own */
	REPORT_LEFT = 64, /* objects of a process that are listed */
	REPORT_REASONS = 32, /* kinds of explanations of a process */
	REPORT_VERBS = 256, /* of a process */
	REPORT_OBJECTS = 65536, /* that live at one moment */
	REPORT_NAME = 64,
	REPORT_SAMPLE = 512,
};

/* What can be wrong with an object. The table in judge.c has their texts. */
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
};

enum report_end { REPORT_LIVES, REPORT_EXITED, REPORT_GONE /* killed, as far as is known */ };

struct report_process {
	pid_t pid;
	uint64_t started;
	char program[REPORT_NAME];
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
	uint64_t lost; /* observations for which there was no memory */
	json_t *document; /* after the end; NULL: no memory */
	uint64_t findings;
};

/* Copies a text of a client's or a plug-in's: only characters that can be printed, others become '?'. */
void uvd_report_copy_text(char *to, size_t size, const char *from);
/* judge.c: makes r->document, and counts the findings. */
void uvd_report_judge(struct uvd_report *r);
/* text.c and junit.c */
void uvd_report_print_text(const json_t *document, FILE *out);
void uvd_report_print_junit(const json_t *document, FILE *out);

#endif
