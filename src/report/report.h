/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The report of a run: an observer that counts what each process does with the engine's devices, and what it leaves. Its
 * *findings* are wrong results or certain failures; *notices* may be meant so. docs/report.md has the rules.
 */
#ifndef UVD_REPORT_H
#define UVD_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct uvd_caller;
struct uvd_engine;
struct uvd_report;

enum uvd_report_format { UVD_REPORT_TEXT, UVD_REPORT_JSON, UVD_REPORT_JUNIT };

/*
 * Questions about a process, which the transport answers. They are asked under the lock of the observers, on the thread of
 * a client's call or of a close.
 */
struct uvd_report_config {
	/* Stores the name of its program, or "" if it is not known. */
	void (*program)(void *arg, pid_t pid, char *name, size_t size);
	/* When has it started? In any unit; 0: not known. */
	uint64_t (*started)(void *arg, pid_t pid);
	/* Does it run, and not exit at this moment? False if that is not known. */
	bool (*runs)(void *arg, pid_t pid);
	void *arg;
	bool stacks; /* the transport calls uvd_report_take_stack() */
};

/* Returns NULL on failure: *err is -ENOMEM, or -EBUSY (too many observers). *config may go. */
struct uvd_report *uvd_report_new(struct uvd_engine *engine, const struct uvd_report_config *config, int *err);
/* The process exits by itself, with this status. Call it before its files are closed. */
void uvd_report_exits(struct uvd_report *r, pid_t pid, int status);
/* Can this build tell where objects were created (config.stacks)? */
bool uvd_report_has_stacks(void);
/*
 * Keeps the stack of the caller, whose call the calling thread has just carried out, if the call has made objects. Call it
 * before the answer. Accesses the client's memory.
 */
void uvd_report_take_stack(struct uvd_report *r, struct uvd_caller *caller);
/* Ends the observation. Call it when all files are closed, and before uvd_engine_fini(). */
void uvd_report_end(struct uvd_report *r);
/* Writes the report, after uvd_report_end(). Returns 0 or a negative errno. */
int uvd_report_write(struct uvd_report *r, int fd, enum uvd_report_format format);
/* Returns the number of findings, after uvd_report_end(). */
uint64_t uvd_report_findings(const struct uvd_report *r);
/* After uvd_report_end(). NULL is allowed. */
void uvd_report_free(struct uvd_report *r);

#endif
