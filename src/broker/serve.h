/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The broker: the process that root starts. It keeps the privileges that the engine process must not have, and answers its
 * requests (wire.h). What belongs to higher rooms (sysfs directory, options) is a table of functions.
 */
#ifndef UVD_BROKER_SERVE_H
#define UVD_BROKER_SERVE_H

#include <stdbool.h>
#include <sys/types.h>

struct uvd_device_config;
struct uvd_log;

struct uvd_broker_ops {
	/* Each returns 0 or a negative errno. fd: the channel of a node that was verified; the caller closes it. */
	int (*node)(void *arg, unsigned int index, int *number, dev_t *rdev, int *fd);
	/* Makes a place for a device, or says why not; nothing of *device was checked. Returns its index. */
	int (*add)(void *arg, const struct uvd_device_config *device);
	int (*publish)(void *arg, unsigned int index);
	int (*withdraw)(void *arg, unsigned int index);
	int (*port)(void *arg, unsigned int index, unsigned int port, bool up);
	int (*ucap)(void *arg, const char *name, dev_t *rdev, int *fd);
	int (*ucap_gone)(void *arg, const char *name);
	int (*ready)(void *arg);
	void (*leave)(void *arg); /* nobody new shall find the devices */
	/*
	 * The engine process has died, or will never end: takes away all that it served, and prepares for another one. asked: by
	 * UVD_WIRE_RESTART.
	 */
	int (*renew)(void *arg, bool asked);
};

struct uvd_broker_config {
	const struct uvd_broker_ops *ops;
	void *arg;
	struct uvd_log *log;
	bool root_clients; /* root's processes may be clients */
	unsigned int end_ms; /* the engine process's time to end when it was told to; 0: 20 s */
};

/*
 * Runs engine(arg, socket) in a child, and answers its requests until it has ended. When a child that was ready is killed, does
 * not end, or asks for a restart, another one is started, but no more than five within a minute. A child has none of the broker's
 * descriptors but those that config->arg has. Call it in a process with one thread.
 * Returns the exit status; -1: in the child, whose exit status is *status.
 */
int uvd_broker_run(const struct uvd_broker_config *config, int (*engine)(void *arg, int sock), int *status);

enum { UVD_SANDBOX_BACKENDS = 8 };
/*
 * The engine process's own sandbox: another user, no capability, no_new_privs, not dumpable, empty mount, network and IPC
 * namespaces, and a filter of system calls, as the table's rows of these backends say (names, ended by NULL; repeated names
 * count once, UVD_SANDBOX_BACKENDS at most). It ends with the broker. Call it before the first thread is started. Returns 0,
 * -EOPNOTSUPP: the table has no row for a backend, or another negative errno, logged.
 */
int uvd_engine_sandbox(uid_t uid, gid_t gid, const char *const *backends, struct uvd_log *log);

/* channel.c: opens /dev/cuse and makes the node that `node` names, without libfuse. A descriptor or a negative errno. */
struct uvd_node;
int uvd_channel_make(struct uvd_node *node, struct uvd_log *log);

#endif
