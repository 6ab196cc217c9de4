/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Checks of a device after a program ran on it, for `replay` and `fuzz`. */
#ifndef UVD_PROGRAM_CHECK_H
#define UVD_PROGRAM_CHECK_H

#include "kernel_log.h"
#include "program/program.h"

enum uvd_program_kind {
	UVD_PROGRAM_FINE,
	UVD_PROGRAM_LOST, /* the device does not answer any more: its engine has died */
	UVD_PROGRAM_HANG, /* a call did not return in time */
	UVD_PROGRAM_KILLED, /* the program died by a signal */
	UVD_PROGRAM_MODEL, /* a result contradicts the model */
	UVD_PROGRAM_LEAK, /* objects or charges stay after the program has ended */
	UVD_PROGRAM_REPORT, /* the kernel has reported a bug in its log; d.kernel has the beginning that the table has */
};

struct uvd_program_finding {
	enum uvd_program_kind kind;
	struct uvd_prog_difference d; /* of MODEL, and of HANG and KILLED the call */
	char text[256]; /* for people, one line */
};

enum {
	UVD_PROGRAM_RACES =
		30, /* how often a program whose calls race is run before it counts as one without a finding */
	UVD_PROGRAM_LATE_MS =
		200, /* how long after the last program a task of the kernel may report what it has done */
};

/*
 * Runs the program and checks the device. control: the socket that tells of leaks; NULL: do not look for them. log: NULL, or the
 * kernel's log, for a device of the kernel.
 */
void uvd_program_check(struct uvd_prog_run *run, const struct uvd_prog *p, const char *control, bool model,
		       struct uvd_kernel_log *log, struct uvd_program_finding *found);
/* Has the log a report? Waits until it is silent for `ms` milliseconds. *found is not changed if there is none. */
bool uvd_program_check_log(struct uvd_kernel_log *log, int ms, struct uvd_program_finding *found);
/* Does a result contradict the model? *found is not changed if none does. */
void uvd_program_check_model(const struct uvd_prog_run *run, const struct uvd_prog *p,
			     struct uvd_program_finding *found);
/* The call in which a program ended that did not reach its end. */
unsigned int uvd_program_last_call(const struct uvd_prog_run *run, const struct uvd_prog *p);
/* Is it the same finding? The handles in it may differ. */
bool uvd_program_same(const struct uvd_program_finding *a, const struct uvd_program_finding *b);
/* The state of a device after a program. UNKNOWN: nobody answers at the control socket. */
enum uvd_program_left { UVD_PROGRAM_LEFT_NOTHING, UVD_PROGRAM_LEFT_MUCH, UVD_PROGRAM_LEFT_UNKNOWN };
/* Do objects or charges stay? Waits some seconds for those that are on their way. text: what stays. */
enum uvd_program_left uvd_program_leaks(const char *control, char *text, size_t size);

#endif
