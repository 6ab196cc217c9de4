/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* All calls of a program and of a trace are made here, one by one or several at the same time. */
#ifndef UVD_PROG_RUNNER_H
#define UVD_PROG_RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct uvd_prog_run;

/*
 * How calls reach the device: by system calls, or the device is in the process itself. The functions return -1 and set errno, as
 * system calls do. Several threads call them at the same time.
 */
struct uvd_prog_node_ops {
	/* Makes the device, in the child of uvd_prog_run_start(). Returns an fd, which can be mapped. NULL: run->node is opened. */
	int (*open)(struct uvd_prog_run *run);
	ssize_t (*write)(int fd, const void *bytes, size_t len);
	int (*ioctl)(int fd, unsigned long cmd, uint64_t arg);
	bool (*has_fd)(int fd); /* can a program close it and read from it? */
	int (*close)(int fd); /* an fd that a call has returned, or the device's */
};

/* One call in bytes. */
struct uvd_prog_built {
	bool is_ioctl;
	uint8_t *msg;
	size_t len; /* write()'s length argument */
	uint64_t arg; /* ioctl()'s argument */
	unsigned long cmd;
};

enum { UVD_PROG_MAX_BESIDE = 4 }; /* calls at the same time */

/* A call on its way. Any of the functions may be NULL. */
struct uvd_prog_step {
	/* Writes the call in bytes. Returns 0, or -1: neither this call nor one beside it is made. */
	int (*prepare)(struct uvd_prog_step *step);
	/* For the thread that has made the call, at once. */
	void (*answered)(struct uvd_prog_step *step);
	/* When the calls beside it have returned, too. */
	void (*finish)(struct uvd_prog_step *step);
	struct uvd_prog_built call;
	int fd; /* the open file; -1: no call is made, and the result is -EBADF */
	bool is_close; /* of fd */
	long result; /* or a negative errno */
};

/*
 * Prepares n calls (at most UVD_PROG_MAX_BESIDE), makes them, and finishes them. More than one are made by threads that start at the
 * same moment. Returns 0, or -1 if a call could not be prepared, or -EAGAIN if a thread could not be started.
 */
int uvd_prog_steps_run(const struct uvd_prog_node_ops *ops, struct uvd_prog_step *const *steps, unsigned int n);

#endif
