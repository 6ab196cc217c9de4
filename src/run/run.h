/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * `uverbsctl run`: the device for one process tree, without root and without a device in the kernel. A seccomp filter
 * brings the tree's opens, stats and device calls to the engine, a process that answers them.
 *
 *   launcher      what the user started: forwards signals, returns PROGRAM's exit status (launch.c)
 *   └ guardian    keeps a copy of the listener, and answers when the engine is dead (guardian.c)
 *     └ engine    the devices; one thread for each listener (engine.c, serve.c)
 *       └ PROGRAM and its tree
 *
 * With --join, one engine serves several such trees; a later one has no engine of its own, and its guardian opens for the
 * engine what only an ancestor may (join.c).
 */
#ifndef UVD_RUN_H
#define UVD_RUN_H

#include <stdbool.h>
#include <uverbsd/config.h>
#include <uverbsd/log.h>
#include "account/account.h"

/* Exit statuses of our own, as env(1), nohup(1) and timeout(1) have them. */
enum { UVD_RUN_FAILED = 125, UVD_RUN_CANNOT_EXEC = 126, UVD_RUN_NOT_FOUND = 127 };

struct uvd_run_options {
	const struct uvd_device_config *devices;
	unsigned int num_devices;
	const char *join; /* NULL: an engine of its own */
	unsigned int busy_poll; /* us that the engine looks for PROGRAM's next call before it sleeps */
	struct uvd_ucap_names granted; /* User Capabilities that PROGRAM may open */
	struct uvd_account_limits limits; /* of each user: its process trees are one */
	enum uvd_log_level log_level;
};

/* Runs argv[0] with its arguments (NULL at the end). Its exit status, or one of the above, reported on stderr. */
int uvd_run(const struct uvd_run_options *options, char **argv);

/*
 * May a process look into one that it started? Yama can forbid it: then the text says how, and NULL says that all is
 * well. `path` is Yama's ptrace_scope.
 */
const char *uvd_run_yama_refusal(const char *path, bool privileged);

#endif
