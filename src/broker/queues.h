/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The file system of queues: a FUSE file system that is mounted nowhere, and whose files clients can map, as they cannot map a CUSE
 * node. Each open of a device gets one file of it, which is a window to a memfd (FUSE passthrough, Linux 6.9). The broker makes the file
 * system and the memfds, as both need privilege. The engine process serves the channel. A loan's process opens a file for its client: the
 * engine process has no way to the files, so it can never wait for itself.
 *
 * The broker keeps the channel open, and closes it when the engine process has ended: then all calls on the files fail.
 */
#ifndef UVD_BROKER_QUEUES_H
#define UVD_BROKER_QUEUES_H

#include <stdint.h>
#include <sys/types.h>

struct uvd_log;

enum { UVD_BACKINGS_MAX = 16384 };

struct uvd_queue_files {
	int channel, mount; /* -1: there is no file system now */
	dev_t st_dev; /* of its files */
	int inotify, bell; /* by which the engine process hears of write()s into memory; -1: there are none yet */
	/* The memfds of files, by the kernel's number for each, from 1; -1: free. */
	int *memfds;
	unsigned int num;
};

void uvd_queue_files_init(struct uvd_queue_files *q);
/* Ends the file system: all calls on open files fail with ENOTCONN, and write() with EPERM. What clients have mapped stays. */
void uvd_queue_files_end(struct uvd_queue_files *q);

/* Can a file system be made here? Makes one, and ends it. Returns 0; -EOPNOTSUPP: the kernel has no passthrough; or another negative errno. */
int uvd_queue_files_look(void);
/* Says in the log that there are no mapped queues, why, and what to do. */
void uvd_queue_files_say(int err, struct uvd_log *log);
/* Makes the file system, unless there is one. Returns 0; -EOPNOTSUPP: the kernel has no passthrough; or another negative errno, logged. */
int uvd_queue_files_begin(struct uvd_queue_files *q, struct uvd_log *log);
/*
 * Makes the memory of a new file. Returns the number by which the engine process names it to the kernel, with *memfd, which stays the
 * broker's; or a negative errno.
 */
int uvd_queue_files_back(struct uvd_queue_files *q, int *memfd);
/* The file has been closed. Returns 0, or -EINVAL: there is no such number. */
int uvd_queue_files_drop(struct uvd_queue_files *q, int64_t number);

/*
 * Opens a file for a client, in the process of a loan. The engine process answers each request for it, and may be an attacker's: what is no
 * regular file of this file system is refused (-EPERM, or -ELOOP for a symbolic link), as is a name that it does not know. Waits for that
 * process. mount: the root; st_dev: of the files. flags: O_*. Returns a descriptor or a negative errno.
 */
int uvd_queue_files_open(int mount, uint64_t st_dev, int64_t name, int flags);
/* The inotify instance, and a file that it watches and only the engine process writes. Both stay the broker's. Returns 0 or a negative errno. */
int uvd_queue_files_ears(struct uvd_queue_files *q);
/* Has the instance watch this memory. Returns the watch descriptor, or a negative errno. */
int uvd_queue_files_watch(struct uvd_queue_files *q, int64_t number);

#endif
