/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The open files of the device in the process tree. Each open has a memfd of its own, which the client can map. The
 * inode of the memfd tells us which open an fd belongs to, also after fork, dup, exec and SCM_RIGHTS.
 */
#ifndef UVD_RUN_FILE_H
#define UVD_RUN_FILE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>
#include "client/client.h"
#include "core/core.h"
#include "doorbell/doorbell.h"

/* The names of all these memfds begin with this, by which the guardian recognises them. */
#define UVD_RUN_MEMFD_NAME "uverbsd:"

struct uvd_account;

/* The inode of a caller's fd, as /proc/TID/fdinfo gives it. */
struct uvd_run_inode {
	uint64_t ino;
	int mnt_id;
};

static inline bool uvd_run_inode_equal(const struct uvd_run_inode *a, const struct uvd_run_inode *b)
{
	return a->ino == b->ino && a->mnt_id == b->mnt_id;
}

/* The opener of a file, with the number under which a slot remembers that its thread is this opener. */
struct uvd_run_opener {
	struct uvd_opener who;
	uint64_t serial; /* from 1; no two files of the engine have the same, of whichever kind they are */
};

struct uvd_run_file {
	struct uvd_run_file *next; /* in the same bucket */
	struct uvd_run_file *next_closing;
	struct uvd_file *file;
	struct uvd_run_opener opener;
	struct uvd_run_inode inode;
	unsigned int number; /* of the device: uverbsN */
	int mode; /* O_ACCMODE part of the open's flags */
	struct uvd_account *account; /* charged for memfd; a reference, or NULL: not charged yet */
	off_t size; /* of memfd */
	int memfd; /* our fd, from which shared queues are mapped; the client has a second open of the file */
	_Atomic uint64_t next_offset; /* of the next shared memory; an offset is never reused */
	struct uvd_doorbell_log *log; /* its doorbells; NULL: they are calls */
	int watch; /* the inotify watch descriptor */
	atomic_int refs; /* the table's, and one for each call in progress, or for its work */
	int probe_ms; /* ms until the next try at its flock(), after the last one; 0: not in the list `closing` */
};

enum { UVD_RUN_FILE_HASH = 256 };

struct uvd_run_files {
	pthread_mutex_t lock; /* protects ending, hash and closing, and the files' next_closing and probe_ms */
	pthread_cond_t settled; /* ending has become 0 */
	unsigned int ending; /* files whose objects are being destroyed now */
	struct uvd_run_file *hash[UVD_RUN_FILE_HASH];
	struct uvd_run_file *closing; /* files of which something was closed, perhaps the last fd or mapping */
	_Atomic uint64_t serial; /* of the last file, of any kind: uvd_run_serial_new() */
	off_t size; /* of a new file */
	atomic_bool has_logs; /* a file has one, or had one */
	int inotify; /* poll it, and call uvd_run_files_closed() when it is readable */
	int look; /* an eventfd: poll and read it, and do the same */
};

int uvd_run_files_init(struct uvd_run_files *files);
uint64_t uvd_run_serial_new(struct uvd_run_files *files);
/* Closes every file. Call when no call is in progress. */
void uvd_run_files_fini(struct uvd_run_files *files);

/*
 * Opens the device for a client, c; flags: O_*. doorbells: the reader of its doorbells; NULL: they are calls. The
 * function's caller installs *fd in the client, closes its own copy, and sets *direct if the doorbells have a log. After the last close of that (also if the client never got it) uvd_run_files_closed() closes the file. Returns
 * 0 or a negative errno.
 */
int uvd_run_file_open(struct uvd_run_files *files, struct uvd_doorbells *doorbells, struct uvd_device *dev,
		      struct uvd_caller *c, int flags, int *fd, bool *direct);

/*
 * Does this link, of a folder /proc/PID/fd, lead to the memfd of an open file, of whichever engine? If not, errno is that of readlinkat(),
 * or 0. It does not wait for the server of a file system, as stat() may.
 */
bool uvd_run_file_is_linked(int dir, const char *name);
/* Returns the file with a reference, or NULL if the inode is not of a file of ours. */
struct uvd_run_file *uvd_run_file_get(struct uvd_run_files *files, const struct uvd_run_inode *inode);
void uvd_run_file_put(struct uvd_run_file *file);
/* Returns false if that is the last reference: the caller keeps it. */
bool uvd_run_file_put_unless_last(struct uvd_run_file *file);

/*
 * Reads the inotify events, and closes files whose last fd and mapping are gone. Returns after how many ms to call it
 * again; -1: when `inotify` or `look` is readable.
 */
int uvd_run_files_closed(struct uvd_run_files *files);
/*
 * Waits until all files whose last close was before this call are gone, with their charges. A client's close() returns
 * before we hear of it, so call this before you refuse a client for lack of a resource. Returns false if not all are
 * gone after `ms` milliseconds, because a thread waits in a client's memory.
 */
bool uvd_run_files_settle(struct uvd_run_files *files, unsigned int ms);

/*
 * Call when the device is removed: what clients have mapped of its files reads as zeros from now on, and what they
 * write there has no effect (hotplug-03).
 */
void uvd_run_files_zap(struct uvd_run_files *files, const struct uvd_device *dev);

/* Reads an open fdinfo file again. Returns 0, or a negative errno if the fd is closed or its thread has ended. */
int uvd_run_inode_read(int fdinfo, struct uvd_run_inode *inode);
/* Reads the fd's O_* flags from an open fdinfo file. Returns as uvd_run_inode_read() does. */
int uvd_run_flags_read(int fdinfo, unsigned int *flags);
/* The inode of an fd of this process. */
int uvd_run_own_inode(int fd, struct uvd_run_inode *inode);

#endif
