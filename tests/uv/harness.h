/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Devices in this process, without a transport: harness_node_ops passes what uv.h encodes to the dispatcher, and grants
 * fds to this process. The fd of an open file is a memfd, which stands for the struct uvd_file.
 *
 * Return values: 0 or a negative errno, unless a comment says otherwise.
 */
#ifndef UVD_TESTS_HARNESS_H
#define UVD_TESTS_HARNESS_H

#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "backends/backends.h"
#include "host/host.h"
#include "objects/internal.h"
#include "persona/persona.h"
#include "uv.h"

enum { HARNESS_DEVICES = 16 };

/* An engine, its devices, and a file of the first one. */
struct harness {
	struct uvd_engine engine;
	struct uvd_account *account; /* charged for everything; harness_close() checks that it is back at 0 */
	struct uvd_device_config config; /* of the first device */
	struct uvd_device *dev;
	struct uvd_device *added[HARNESS_DEVICES]; /* by number; NULL: there is no node of this number */
	struct uvd_file *file;
	int fd; /* of `file` */
	struct uvd_backend ops; /* of the first device; a test may replace functions */
	struct uvd_call *call; /* of `file`; other files use its `caller`, except for the thread */
	int refuse_grant; /* every grant fails with this errno; 0: grants succeed */
	/* Registrations by a thread of the client: their result, and whether the thread executed the call. */
	int64_t registered;
	bool executes;
	atomic_int granted; /* fd of the last grant, which the test closes; -1: none */
};

/* "status" in its directory /proc/TID shows all effective capabilities, or none: the client seems to be root's, or not. */
extern struct uvd_proc harness_root, harness_nobody;

/* Sets *limits to no limit. */
void harness_no_limits(struct uvd_account_limits *limits);
/* Makes the engine and a device's configuration. A test may change both before harness_start(). */
void harness_init_limited(struct harness *h, const char *backend, const struct uvd_account_limits *limits);
void harness_init(struct harness *h, const char *backend);
/* Makes the device and opens a file of it. From now on uv_open() opens files of the devices of h. */
void harness_start(struct harness *h, const struct uvd_mem_ops *mem);
/* backend: "null" or "soft". mem: uvd_mem_process detects faults; uvd_mem_self is faster and does not. */
void harness_open_with(struct harness *h, const char *backend, const struct uvd_mem_ops *mem);
/* Closes h->file, which destroys all its objects. A test may have put another file there, which has no fd. */
void harness_close_file(struct harness *h);
/*
 * Closes all files and devices. Clears h, so that no pointer is left in it: at the end of a test's process
 * LeakSanitizer does not report memory that a pointer still reaches.
 */
void harness_close(struct harness *h);

/* Adds a device like the first one. Returns its number: its node is /dev/infiniband/uverbsNUMBER. */
unsigned int harness_add_device(struct harness *h);
/* Takes the node away, then removes the device under its open files. */
void harness_remove_device(struct harness *h, unsigned int number);

/* The open file of this fd, or NULL. */
struct uvd_file *harness_file(int fd);

/* Does what a transport does after every call: grants the fd, if the call asks for one. */
long harness_finish(struct harness *h, struct uvd_call *call, long ret);

/* harness_start() makes uv_node_ops point to it. Its functions pass other fds to the system calls. */
extern const struct uv_node_ops harness_node_ops;

#endif
