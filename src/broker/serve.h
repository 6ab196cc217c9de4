/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The broker: the process that root starts. It keeps the privileges that the engine process must not have, and answers its
 * requests (wire.h). What belongs to higher rooms (sysfs directory, options) is a table of functions.
 */
#ifndef UVD_BROKER_SERVE_H
#define UVD_BROKER_SERVE_H

#include <stdbool.h>
#include <sys/types.h>

struct uvd_log;

struct uvd_broker_ops {
	/* Each returns 0 or a negative errno. fd: the channel of a node that was verified; the caller closes it. */
	int (*node)(void *arg, unsigned int index, int *number, dev_t *rdev, int *fd);
	int (*publish)(void *arg, unsigned int index);
	int (*withdraw)(void *arg, unsigned int index);
	int (*port)(void *arg, unsigned int index, unsigned int port, bool up);
	int (*ucap)(void *arg, const char *name, dev_t *rdev, int *fd);
	int (*ucap_gone)(void *arg, const char *name);
	int (*ready)(void *arg);
	void (*leave)(void *arg); /* nobody new shall find the devices */
};

struct uvd_broker_config {
	const struct uvd_broker_ops *ops;
	void *arg;
	struct uvd_log *log;
	bool root_clients; /* root's processes may be clients */
};

/*
 * Runs engine(arg, socket) in a child, and answers its requests until it has ended. Call it in a process with one thread.
 * Returns the exit status; -1: in the child, whose exit status is *status.
 */
int uvd_broker_run(const struct uvd_broker_config *config, int (*engine)(void *arg, int sock), int *status);

/*
 * The engine process's own sandbox: another user, no capability, no_new_privs, not dumpable, an empty mount namespace and an
 * empty network namespace, and a filter of system calls. It ends with the broker. Call it before the first thread is started.
 * 0 or a negative errno, logged.
 */
int uvd_engine_sandbox(uid_t uid, gid_t gid, struct uvd_log *log);

/* channel.c: opens /dev/cuse and makes the node that `node` names, without libfuse. A descriptor or a negative errno. */
struct uvd_node;
int uvd_channel_make(struct uvd_node *node, struct uvd_log *log);

#endif
