/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The open files of rdma_cm in the process trees. The client's fd is one end of a socket pair. Its inode tells us which open
 * an fd belongs to, also after fork, dup and SCM_RIGHTS. There is something to read in it as long as the file has events, so poll(),
 * epoll and O_NONBLOCK are the kernel's own work (cm_file.c).
 */
#ifndef UVD_RUN_CM_FILE_H
#define UVD_RUN_CM_FILE_H

#include <pthread.h>
#include <stdatomic.h>
#include "cm/cm.h"
#include "run/file.h"

struct uvd_run_cm_files;

struct uvd_run_cm_file {
	struct uvd_run_cm_file *next; /* in the same bucket */
	struct uvd_cm_file *file;
	struct uvd_run_opener opener;
	struct uvd_run_inode inode; /* of the client's end */
	int mode; /* O_ACCMODE part of the open's flags */
	struct uvd_account *account; /* charged for `ours`; a reference, or NULL: not charged yet */
	int ours; /* our end */
	unsigned int bytes; /* that we have sent for events which the file still has; under the lock of struct uvd_cm */
	atomic_uint excess; /* bytes that we have sent for events which it has no more: uvd_run_cm_file_settle() */
	atomic_int refs; /* the table's, and one for each call in progress or parked */
};

struct uvd_run_cm_files {
	pthread_mutex_t lock; /* protects hash */
	pthread_mutex_t closing; /* one thread closes files at a time */
	struct uvd_run_cm_file *hash[UVD_RUN_FILE_HASH];
	int epoll; /* poll it, and call uvd_run_cm_files_closed() when it is readable */
};

/* Returns 0 or a negative errno; uvd_run_cm_files_fini() may follow in both cases. */
int uvd_run_cm_files_init(struct uvd_run_cm_files *files);
/* Closes every file. Call when no call is in progress. */
void uvd_run_cm_files_fini(struct uvd_run_cm_files *files);

/*
 * Opens the node for a client, c; flags: O_*. ops: their owner is the struct uvd_run_cm_file, and events() is
 * uvd_run_cm_file_events(). serial: of the file (uvd_run_serial_new()). The function's caller installs *fd in the
 * client, and closes its own copy. After the last close of that (also if the client never got it) uvd_run_cm_files_closed() closes
 * the file. Returns 0 or a negative errno.
 */
int uvd_run_cm_file_open(struct uvd_run_cm_files *files, struct uvd_cm *cm, struct uvd_caller *c, unsigned int flags,
			 const struct uvd_cm_file_ops *ops, uint64_t serial, int *fd);
/* Returns the file with a reference, or NULL if the inode is not of a file of ours. */
struct uvd_run_cm_file *uvd_run_cm_file_get(struct uvd_run_cm_files *files, const struct uvd_run_inode *inode);
/* The last put closes the file, and waits for no client. */
void uvd_run_cm_file_put(struct uvd_run_cm_file *file);
/* Closes the files whose last fd is gone. Any thread may call it: before it refuses a client for lack of a resource it should. */
void uvd_run_cm_files_closed(struct uvd_run_cm_files *files);

/* struct uvd_cm_file_ops.events. */
void uvd_run_cm_file_events(void *owner, unsigned int num, bool added);

/* Does the client's end have bytes for events that the file has no more? */
static inline bool uvd_run_cm_file_is_unsettled(const struct uvd_run_cm_file *file)
{
	return atomic_load(&file->excess);
}

/*
 * Takes these bytes out of the client's end, of which theirs is a duplicate. Call it after each command, before the client has its
 * answer: it may poll then. It may wait for a client that receives from the fd, so call it on the thread of the client's tree.
 */
void uvd_run_cm_file_settle(struct uvd_run_cm_file *file, int theirs);

/*
 * For the guardian: is the fd a client's end, and has its engine died? It knows them only as AF_UNIX sockets that have hung up and have
 * the least send buffer. The kernel would answer a write() to one with EPIPE.
 */
bool uvd_run_cm_file_is_orphan(int fd);

#endif
