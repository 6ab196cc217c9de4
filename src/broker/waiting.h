/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which threads use the device at this moment? The broker believes no number that the engine process gives: it opens a file of
 * a thread only if the thread waits in a call on one of the broker's own nodes, before and after the file was opened.
 */
#ifndef UVD_WAITING_H
#define UVD_WAITING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { UVD_NODES_MAX = 64 };

/* The nodes' device numbers. The broker writes them, and its children read them, in memory that they share. */
struct uvd_nodes {
	bool root_clients; /* may root's processes be clients? */
	_Atomic uint64_t rdev[UVD_NODES_MAX]; /* 0: free */
};

enum uvd_wait_for { UVD_WAITS_IN_CALL = 1, UVD_WAITS_IN_OPEN = 2 };

struct uvd_wait {
	uint64_t nr; /* of the system call, in the caller's own table */
	uint64_t arg[3];
	pid_t tgid; /* its process */
};

/*
 * 0: the thread waits in a call (ioctl or write) on one of the nodes, or in an open of one. -ESRCH: it does not. -EPERM: it
 * does, but its program has more rights than the user who started it. Waits for a thread that is about to wait.
 */
int uvd_waits(pid_t tid, const struct uvd_nodes *nodes, enum uvd_wait_for what, struct uvd_wait *wait);

enum { UVD_STATUS_MAX = 4096 };
/* Reads /proc/TID/status, and puts a 0 behind it. Returns false if there is no such thread. */
bool uvd_read_status(pid_t tid, char status[UVD_STATUS_MAX]);

#endif
