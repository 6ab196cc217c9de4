/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Open files of the device, as the tree has them: each is a memfd of its own, which the client can map and whose inode
 * tells us which open an fd belongs to, through fork, dup, exec and SCM_RIGHTS.
 */
#ifndef UVD_RUN_FILE_H
#define UVD_RUN_FILE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>
#include "client/client.h"
#include "core/core.h"

/* The name of every such memfd begins so: the guardian knows them by it. */
#define UVD_RUN_MEMFD_NAME "uverbsd:"

struct uvd_account;

/* A struct file of the caller's, as /proc/TID/fdinfo names it. */
struct uvd_run_inode {
	uint64_t ino;
	int mnt_id;
};

struct uvd_run_file {
	struct uvd_run_file *next; /* of the same hash */
	struct uvd_run_file *next_closing;
	struct uvd_file *file;
	struct uvd_opener opener;
	struct uvd_run_inode inode;
	uint64_t serial; /* from 1: no two files have the same, ever */
	unsigned int number; /* of the device: uverbsN */
	int mode; /* O_ACCMODE part of the open's flags */
	struct uvd_account *account; /* who pays for memfd; a reference, or NULL: nobody yet */
	int memfd; /* ours; what the client has is a second open of it. Queues that it maps are mapped from here. */
	_Atomic uint64_t next_offset; /* of the next memory that is shared: none is given out twice */
	int watch; /* inotify's */
	atomic_int refs; /* table: one, and each call that is under way */
	int probe_ms; /* closing: when the client's end is looked at again, after the last time */
};

enum { UVD_RUN_FILE_HASH = 256 };

struct uvd_run_files {
	pthread_mutex_t lock; /* all below */
	pthread_cond_t settled;
	unsigned int ending; /* files whose objects are being destroyed now */
	struct uvd_run_file *hash[UVD_RUN_FILE_HASH];
	struct uvd_run_file *closing; /* something of theirs was closed: the last of it? */
	uint64_t serial; /* of the last file */
	int inotify; /* to be polled: uvd_run_files_closed() */
	int look; /* an eventfd, to be polled and read: the same */
};

int uvd_run_files_init(struct uvd_run_files *files);
/* Closes every file; no call is under way. */
void uvd_run_files_fini(struct uvd_run_files *files);

/*
 * The caller opens the device; flags: O_*. *fd: what the caller is to be given. When that is closed for the last time (if
 * the caller never got it: at once) the file goes by itself. 0 or a negative errno.
 */
int uvd_run_file_open(struct uvd_run_files *files, struct uvd_device *dev, struct uvd_caller *c, int flags, int *fd);

/* With a reference, or NULL: an inode that is none of ours. */
struct uvd_run_file *uvd_run_file_get(struct uvd_run_files *files, const struct uvd_run_inode *inode);
void uvd_run_file_put(struct uvd_run_file *file);
/* False: it is the last reference, and still the caller's. */
bool uvd_run_file_put_unless_last(struct uvd_run_file *file);

/* Reads what inotify says, and closes files whose last fd and mapping are gone. When to call again, in ms; -1: when polled. */
int uvd_run_files_closed(struct uvd_run_files *files);
/*
 * Returns when everything that was closed before the call is gone, with its charges. A client's close() has returned
 * before we hear of it; so whoever is about to be refused for want of something asks for this first. False: not all is gone after
 * so many milliseconds, as somebody waits in a client's memory.
 */
bool uvd_run_files_settle(struct uvd_run_files *files, unsigned int ms);

/*
 * The device is gone: whatever its clients have mapped of their files reads as zeros from now on, and can be written
 * without anybody reading it (hotplug-03).
 */
void uvd_run_files_zap(struct uvd_run_files *files, const struct uvd_device *dev);

/* Reads an fdinfo file, anew. 0, or a negative errno: the fd is closed, or its thread gone. */
int uvd_run_inode_read(int fdinfo, struct uvd_run_inode *inode);
/* The same of an fd of ours. */
int uvd_run_own_inode(int fd, struct uvd_run_inode *inode);

#endif
