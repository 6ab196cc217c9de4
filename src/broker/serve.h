/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The broker: the process that root starts. It keeps the privileges that the engine process must not have, and
 * answers the engine process's requests (wire.h). It reaches higher rooms (sysfs directory, options) through a table
 * of functions.
 */
#ifndef UVD_BROKER_SERVE_H
#define UVD_BROKER_SERVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct uvd_device_config;
struct uvd_log;

/* May root's processes be clients? uvd_waits() says what ALLOW refuses. */
enum uvd_root_clients { UVD_ROOT_REFUSE, UVD_ROOT_ALLOW, UVD_ROOT_ALL };

struct uvd_broker_ops {
	/*
	 * Each returns 0 or a negative errno. *number: in, the number that the node must have, below UVD_NODE_NUMBERS, -1: any;
	 * out, its number. *fd: the channel of a node that was verified; the caller owns it.
	 */
	int (*node)(void *arg, unsigned int index, int *number, dev_t *rdev, int *fd);
	/* Adds a device, and returns its index or a negative errno. Must check all of *device: the caller has not. */
	int (*add)(void *arg, const struct uvd_device_config *device);
	/*
	 * Makes a node of the device's adapter in /dev/infiniband of the engine process, which no other process sees.
	 * check(), which may be NULL, is called every 200 ms, and unlinks the nodes of adapters that are gone.
	 */
	int (*adapter)(void *arg, pid_t engine, unsigned int index, dev_t *rdev);
	void (*check)(void *arg, pid_t engine);
	/* Takes over what the device's adapter has of this port; port 0: all. Must check all of *device. */
	int (*tables)(void *arg, unsigned int index, unsigned int port, const struct uvd_device_config *device);
	int (*publish)(void *arg, unsigned int index);
	int (*withdraw)(void *arg, unsigned int index);
	int (*port)(void *arg, unsigned int index, unsigned int port, bool up);
	int (*counters)(void *arg, unsigned int index, unsigned int port,
			const uint64_t *values); /* UVD_PORT_COUNTERS */
	int (*ucap)(void *arg, const char *name, dev_t *rdev, int *fd);
	int (*ucap_gone)(void *arg, const char *name);
	int (*cm)(void *arg, dev_t *rdev, bool *aside, int *fd);
	int (*cm_gone)(void *arg);
	/*
	 * Copies a plug-in into a slot: the file `name` in the folder of plug-ins, or if name is NULL that of the nth
	 * --plugin. Must check both. Returns 0; or a negative errno, and *why is a memfd with the reason, or -1.
	 */
	int (*plugin)(void *arg, unsigned int slot, int64_t nth, const char *name, int *why);
	int (*ready)(void *arg);
	/*
	 * Reads the configuration again. *fd: what the engine process is to know of it; the caller owns it. May be NULL. The engine
	 * process can ask for it at any time.
	 */
	int (*reload)(void *arg, int *fd);
	void (*alive)(void *arg); /* the engine process's loop runs; may be NULL */
	void (*leave)(void *arg); /* hides the devices from new clients */
	/*
	 * Called after the engine process has died, or is dead and cannot exit. Removes everything that it served,
	 * and prepares for another one. asked: UVD_WIRE_RESTART was the reason.
	 */
	int (*renew)(void *arg, bool asked);
};

struct uvd_broker_config {
	const struct uvd_broker_ops *ops;
	void *arg;
	struct uvd_log *log;
	enum uvd_root_clients root_clients;
	unsigned int end_ms; /* the time that the engine process has to end after SIGTERM; 0: 20 s */
};

/* Has this process the capabilities that a broker needs? If not, the log names those that it lacks, and the remedy. */
bool uvd_broker_may_run(struct uvd_log *log);
/*
 * Runs engine(arg, socket) in a child, the engine process, and answers its requests until it has ended. Starts
 * another one if a child that was ready is killed by a signal, cannot exit, or asks for a restart, but at most five
 * within a minute. A child inherits only those of the broker's descriptors that config->arg has. Call it in a process
 * with one thread. Returns the broker's exit status in the broker. Returns -1 in a child: its exit status is *status.
 */
int uvd_broker_run(const struct uvd_broker_config *config, int (*engine)(void *arg, int sock), int *status);

enum { UVD_SANDBOX_BACKENDS = 9 };
/*
 * Enters the engine process's sandbox: another user, no capability, no_new_privs, not dumpable, empty mount, network
 * and IPC namespaces, and a filter of system calls. The table's rows for the backends say which namespaces stay and
 * which calls are allowed. backends ends with NULL; repeated names count once, and there are at most
 * UVD_SANDBOX_BACKENDS. From then on the process is killed when the broker ends. Call it before the first thread is
 * started; it starts the loader's (loader.h). Returns 0, or a negative errno, which it logs; -EOPNOTSUPP: the table has no row for a backend.
 */
int uvd_engine_sandbox(uid_t uid, gid_t gid, const char *const *backends, struct uvd_log *log);

/*
 * One more of those backends in the build of a sanitizer, whose run-time library writes its reports and looks for leaks in the
 * sandbox, too. NULL: there is no sanitizer.
 */
extern const char *const uvd_sandbox_sanitizer;

/*
 * Enters the sandbox of a process that looks at a plug-in's code (src/plugin/look.c): the user nobody if it is root, no
 * capability, no_new_privs, and a filter of system calls that lets it map code, start threads and open files for
 * reading; the others fail with EPERM. It ends with `parent`, whose child it is, and has 60 s of processor time. Returns 0
 * or a negative errno.
 */
int uvd_look_sandbox(pid_t parent);

/*
 * channel.c: opens /dev/cuse and makes the node that `node` names, without libfuse. Returns the channel, which the
 * caller owns, or a negative errno; -EEXIST: the name is taken.
 */
struct uvd_node;
int uvd_channel_make(struct uvd_node *node, struct uvd_log *log);

#endif
