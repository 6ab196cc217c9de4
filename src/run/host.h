/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* An engine process of `run`. */
#ifndef UVD_RUN_HOST_H
#define UVD_RUN_HOST_H

#include "run/launch.h"
#include "run/park.h"

struct uvd_run_host {
	struct uvd_run_launch *l;
	struct uvd_run_engine e;
	struct uvd_run_control *control;
	struct uvd_run_outputs outputs;
	pid_t program; /* 0: it has ended */
	struct uvd_run_tree *own; /* PROGRAM's process tree; NULL: it has ended */
	int status; /* PROGRAM's exit status */
	bool reported; /* to the launcher */
	struct uvd_run_tree *left; /* trees that have ended, but whose threads wait for somebody else */
	bool reap_later; /* a child may have ended that host_reap() has not seen */
	uint64_t show_at; /* when to show the counters next; CLOCK_MONOTONIC, ns */
};

/* host.c: h is zero but for h->l. Returns 0 or a negative errno, after a message; then the process can only exit. */
int uvd_run_host_setup(struct uvd_run_host *h);
/* Ends and frees all but the link to the guardian. If threads still wait for clients it leaves what they use. */
void uvd_run_host_teardown(struct uvd_run_host *h);

#endif
