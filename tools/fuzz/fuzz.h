/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * uverbsctl fuzz. The fuzzing process (command.c) starts workers, each with a device of its own, under a `uverbsctl
 * run` or in a child of the worker, and tries programs on fresh devices while it shrinks one. A worker (worker.c,
 * in_process.c) makes random programs until one has a finding, or runs one program that it is given. Both share a
 * folder:
 *
 *	current.prog	the program that the worker is running
 *	finding		what the worker found
 *	count		how many programs and calls it has run
 *	log		what its engine said, or the kernel's log, if that has a report
 *	stop		tells the worker to end
 */
#ifndef UVD_FUZZ_H
#define UVD_FUZZ_H

#include "../program/check.h"
#include "../program/node.h"

#define UVD_FUZZ_NAME "uverbsctl fuzz" /* begins its messages */

struct uvd_fuzz {
	const char *device; /* NULL: a device of its own for each worker */
	const char *control; /* tells a worker about leaks; NULL: do not look for them */
	bool in_process; /* the worker's own child has the device, and no `uverbsctl run` */
	bool cm; /* programs of rdma_cm */
	const char *output; /* findings are written to OUTPUT.prog, .c and .log */
	unsigned int jobs, hang; /* hang: seconds that a program may take */
	unsigned long programs; /* to run, by all workers together */
	double seconds;
	uint64_t seed, step; /* a worker takes every step-th seed */
	char **run_options; /* for `uverbsctl run`, or for the device in the process */
	int num_run_options;
	const char *folder; /* of a worker */
	bool trial; /* the worker runs current.prog, and nothing else */
	bool first; /* of several workers: says what holds for all of them */
	const char *emit; /* NULL, or the file to which the worker writes its program in C */
};

/* Runs as the worker. Returns the exit status: 0, 1 if there is a finding, 2 if the device cannot be used. */
int uvd_fuzz_worker(const struct uvd_fuzz *f);

/*
 * The same for a worker whose child has the device (tools/program/in_process.h). Programs on it run on a device of
 * `uverbsctl run`, too.
 */
int uvd_fuzz_in_process(const struct uvd_fuzz *f);

/* ---- start.c: the fuzzing process and its workers ---------------------------------------------------------------- */

/* Blocks the signals that end fuzzing, until uvd_fuzz_wait() takes them. Call before the other functions below. */
void uvd_fuzz_signals_block(void);
/* Returns the signal that ends fuzzing, or 0. */
int uvd_fuzz_stopped(void);
/*
 * Starts a worker in its folder, which writes its program to `emit` if that is not NULL. mode: "worker", or "trial" for one that
 * runs current.prog. Returns its pid, or -1.
 */
pid_t uvd_fuzz_start(const struct uvd_fuzz *f, const char *folder, const char *mode, const char *emit);
/*
 * Waits until one of the n workers ends; pids[] has those that run, and -1. Returns its index, with its exit status in *status (2
 * for a signal) and -1 in pids[]; or -1 if none is left. After a signal: if `patient`, returns -1 once, so that the caller tells
 * the workers to end, and kills those that have not in 5 seconds; else kills them at once.
 */
int uvd_fuzz_wait(const struct uvd_fuzz *f, pid_t *pids, unsigned int n, bool patient, int *status);
/* Starts a worker and waits for it. Returns its exit status; 2 if fuzzing ends. */
int uvd_fuzz_run(const struct uvd_fuzz *f, const char *folder, const char *mode, const char *emit);

/* Seconds, of a clock that never goes back. */
double uvd_fuzz_now(void);
/* May the worker run one more program? Not if its time is up, or another worker has a finding. */
bool uvd_fuzz_goes_on(const struct uvd_fuzz *f, double end);
/* Writes how many programs and calls a worker has run. */
void uvd_fuzz_count(const char *folder, unsigned long programs, unsigned long calls);

/* The files of the folder. They return false after a message on stderr. */
bool uvd_fuzz_write_program(const char *folder, const char *name, const struct uvd_prog *p);
bool uvd_fuzz_write_finding(const char *folder, const struct uvd_program_finding *found);
/* Returns false, without a message, if there is none. */
bool uvd_fuzz_read_finding(const char *folder, struct uvd_program_finding *found);

#endif
