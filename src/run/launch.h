/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The processes of a run, and what they inherit from the launcher. */
#ifndef UVD_RUN_LAUNCH_H
#define UVD_RUN_LAUNCH_H

#include <signal.h>
#include "run/internal.h"
#include "run/link.h"

struct uvd_run_launch {
	const struct uvd_run_options *options;
	char **argv;
	struct uvd_run_window windows[UVD_RUN_WINDOWS];
	struct sock_fprog filter;
	sigset_t mask; /* as PROGRAM shall have it */
	int up; /* to the launcher */
	int notif_fd; /* a file with the union uvd_run_notif that guardian and engine share */
	union uvd_run_notif *notif;
	int link; /* between guardian and engine: each has its end */
	int program, program_end; /* between guardian and PROGRAM */
	char root[PATH_MAX];
	/* --join */
	bool joined; /* the engine was there: link leads to it */
	int join_sock; /* we are the first: where the others come; -1: nobody may join */
	int join_lock;
	char join_path[108];
};

/* Each is a process, and never returns. */
void uvd_run_guardian_main(struct uvd_run_launch *l) __attribute__((noreturn));
void uvd_run_engine_main(struct uvd_run_launch *l) __attribute__((noreturn));
void uvd_run_program_main(struct uvd_run_launch *l) __attribute__((noreturn));

/*
 * Makes this process one that nobody sees: a process group of its own, no files but stderr and those that it needs, deaf
 * to the terminal's signals; those that lose their parent become its children. signalfd for SIGCHLD, or a negative errno.
 */
int uvd_run_background(const int *keep, unsigned int num);
/* What waited for us has gone: stderr is no longer ours to hold. */
void uvd_run_drop_stderr(void);
/* wait status to exit status. */
int uvd_run_exit_status(int wait_status);
void uvd_run_report(int up, int status, bool stays);

/* join.c: finds the engine of that name, or becomes it. 0 or -1, reported. */
int uvd_run_join(struct uvd_run_launch *l);
/* The engine may not look into a tree that another run started. */
bool uvd_run_needs_agent(void);
/* Nobody is served any more. False: somebody is just coming. */
bool uvd_run_join_end(struct uvd_run_launch *l);

#endif
