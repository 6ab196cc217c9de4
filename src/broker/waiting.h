/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Checks whether a thread waits for the engine at this moment. The broker trusts no thread ID that the engine process
 * gives: it opens a file of a thread only if the thread waits in a call on one of the broker's own nodes, both before
 * and after the open.
 */
#ifndef UVD_WAITING_H
#define UVD_WAITING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uverbsd/config.h>
#include "broker/serve.h"

/* UVD_NODES_MAX: more than there can be devices: a removed device keeps its node while clients have it open. */
enum { UVD_NODES_MAX = 512, UVD_LOANS_MAX = 256 };

/* The nodes' device numbers, in shared memory. The broker writes them, its children read them. */
struct uvd_nodes {
	enum uvd_root_clients root_clients;
	_Atomic uint64_t rdev[UVD_NODES_MAX]; /* 0: free */
	_Atomic uint64_t
		queues; /* st_dev of the file system of queues, whose files take the place of nodes; 0: there is none */
	_Atomic uint64_t
		adapters[UVD_MAX_DEVICES]; /* by the device's index: the adapter that it forwards to; 0: none */
};

/*
 * Makes an empty table. *nodes is for the calling process alone: no child inherits that mapping. *view shows the same memory.
 * Children inherit it, and cannot make it writable: the memory's seal refuses that. Returns 0 or a negative errno.
 */
int uvd_nodes_new(struct uvd_nodes **nodes, const struct uvd_nodes **view);

/*
 * Returns the place for one more node: a free one, or that of a node that no longer exists. NULL: all are in use. Only
 * the broker calls this.
 */
_Atomic uint64_t *uvd_nodes_place(struct uvd_nodes *nodes);

enum uvd_wait_for { UVD_WAITS_IN_CALL = 1, UVD_WAITS_IN_OPEN = 2 };

struct uvd_wait {
	uint64_t nr; /* of the system call, as uvd_cpu_call_number() returns it */
	uint64_t arg[3];
	pid_t tgid; /* the thread's process */
	bool hidden; /* the kernel lets only root inspect it, and not its own user */
};

/*
 * Does the thread wait in a call (an ioctl or a write) on one of the nodes, or in an open of one, as `what` says?
 * Returns 0: it does; -ESRCH: it does not; -EPERM: it does, but its program has more rights than the user who started
 * it, or it is root's and root_clients refuses it, or it is hidden, and either root_clients is UVD_ROOT_REFUSE or it does not
 * wait in RDMA_VERBS_IOCTL or in an open. UVD_ROOT_ALLOW refuses programs that were executed as setuid programs and have
 * set all their ids to root's since; hidden ones are refused that were executed so. Gives a thread that is still "running"
 * up to about 2.6 s to start waiting.
 */
int uvd_waits(pid_t tid, const struct uvd_nodes *nodes, enum uvd_wait_for what, struct uvd_wait *wait);

/* Is the thread's descriptor one of a node, or of a file of queues? Never waits. */
bool uvd_is_of_node(pid_t tid, int fd, const struct uvd_nodes *nodes);

enum { UVD_STATUS_MAX = 4096 };
/* Reads /proc/TID/status as a string, without the groups. Returns false if there is no such thread. */
bool uvd_read_status(pid_t tid, char status[UVD_STATUS_MAX]);

#endif
