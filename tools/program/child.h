/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A child that has the device (in_process.h) and makes the calls of programs, for `fuzz --in-process` and `replay
 * --in-process`. What the child is about to do is in memory that both share: when the child dies, its parent has the
 * program.
 */
#ifndef UVD_PROGRAM_CHILD_H
#define UVD_PROGRAM_CHILD_H

#include "check.h"
#include "in_process.h"

/* The close of a file has waited for its work, so little can be on its way; but machines are busy. */
enum { UVD_CHILD_LEAK_SECONDS = 10 };

/* The child and its parent share this memory. */
struct uvd_child_shared {
	struct uvd_prog p; /* that the child is running, or has just run */
	struct uvd_program_finding found;
	unsigned long programs, calls; /* of all children */
	bool ended; /* the child has ended by itself */
	bool unusable; /* the device could not be opened, which is no finding */
};

struct uvd_child {
	const char *who; /* begins each message */
	char name[64]; /* begins those about options */
	char **argv;
	struct uvd_options options; /* of the device, if `parsed` */
	bool parsed;
	struct uvd_prog_run *run; /* shared with the child, too */
	struct uvd_child_shared *shared;
	bool model; /* check the results against the model */
	unsigned int leak_seconds; /* how long to wait for what is still charged; 0: do not look */
};

/*
 * Reads n options of `uverbsctl run`, learns the calls of their plug-ins, and makes the run and the shared memory. Keeps the
 * options' text. Returns 0, or -1 after a message on stderr; call uvd_child_free() in either case.
 */
int uvd_child_init(struct uvd_child *c, const char *who, int n, char **run_options);
void uvd_child_free(struct uvd_child *c);

/*
 * Starts a child that makes the device and calls what(arg), and waits for it. Returns 0, with the finding in c->shared;
 * or -1 if there is no child, or it could not make its device.
 */
int uvd_child_run(struct uvd_child *c, void (*what)(void *arg), void *arg);

/* ---- within the child -------------------------------------------------------------------------------------------- */

/* Runs the program of c->shared on the device of this process, and looks at what it has left. */
void uvd_child_program(struct uvd_child *c);
/* The same until it has a finding: up to UVD_PROGRAM_RACES times if its calls race, else once. arg: a struct uvd_child. */
void uvd_child_trial(void *arg);

#endif
