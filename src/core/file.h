/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* One open of a device: struct ib_uverbs_file. */
#ifndef UVD_CORE_FILE_H
#define UVD_CORE_FILE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/device.h"
#include "core/handles.h"
#include "core/rwsem.h"

struct uvd_account;
struct uvd_event_file;
struct uvd_uobject;

/* A transport whose clients can map the open file has these. Any thread; none of them waits for a client. */
struct uvd_share_ops {
	/*
	 * Memory of `length` bytes (whole pages) that the client sees at *offset of its file: zeros, unless the client has written
	 * there already. No offset is given out twice. 0 or a negative errno.
	 */
	int (*get)(void *owner, size_t length, uint8_t **memory, uint64_t *offset);
	void (*put)(void *owner, uint8_t *memory, size_t length, uint64_t offset);
};

/* One open of the device. */
struct uvd_file {
	struct uvd_device *dev;
	const struct uvd_share_ops *share; /* the transport sets both before the first call; NULL: the client cannot map it */
	void *share_owner;
	struct uvd_account *account; /* the opener's, a reference: pays for the file and what is in it; NULL: nobody pays */
	struct list_head of_device; /* empty: not in the device's list; its lock */
	atomic_uint ref; /* the opener's, and a removal's */
	unsigned int counter; /* which of the device's call counters */
	struct uvd_rwsem destroy_lock;
	pthread_mutex_t lock; /* handles, objects, default_async */
	struct uvd_handles handles;
	struct uvd_uobject *objects; /* newest first: the order of cleanup */
	atomic_uint num_objects; /* of that list; to be read without the lock */
	struct uvd_uobject *disassociated; /* what is left of objects when the device is gone */
	pthread_mutex_t context_lock; /* creation of the context */
	pthread_mutex_t mcast_lock; /* the groups of its QPs; held while the backend attaches and detaches */
	struct uvd_context *_Atomic context; /* NULL before GET_CONTEXT */
	struct uvd_tree *_Atomic tree; /* what it accepts: the device's, or one of a context with User Capabilities */
	struct uvd_event_file *default_async; /* a ref */
	struct uvd_uobject *fd_objects; /* committed FD objects */
	unsigned int num_event_files; /* FD objects, begun ones too */
	unsigned int event_files_made; /* ever */
};

enum { UVD_MAX_EVENT_FILES = 1024 }; /* of an open file: we cannot see a client close one, so they have a limit */

/*
 * The transport opened the device for a client, whose account this is; takes a reference. NULL: *err is EIO (the device is
 * gone), EMFILE (the user has too many open files) or ENOMEM, negative.
 */
struct uvd_file *uvd_file_open(struct uvd_device *dev, struct uvd_account *account, int *err);
/*
 * The last close: destroys everything, newest object first, in passes (cleanup-01, -02), detaches multicast, unpins, and
 * frees the file. No call on it is under way.
 */
void uvd_file_close(struct uvd_file *file);

/*
 * Every call on a file is between these two, a grant that it needs included: see uvd_device_remove(). What enter() returns
 * is for leave(): a call that begins when the device is gone is not waited for, or a busy client could keep the removal for
 * ever. One that sees `gone` just too late for that sees it at its next look.
 */
static inline bool uvd_file_enter(struct uvd_file *file)
{
	if (atomic_load(&file->dev->gone))
		return false;
	atomic_fetch_add(&file->dev->calls[file->counter].num, 1);
	return true;
}

static inline void uvd_file_leave(struct uvd_file *file, bool entered)
{
	if (entered)
		atomic_fetch_sub(&file->dev->calls[file->counter].num, 1);
}

/* Returns the file's parse tree. It changes once, when the file's context is made with User Capabilities. */
static inline const struct uvd_tree *uvd_file_tree(struct uvd_file *file)
{
	return atomic_load_explicit(&file->tree, memory_order_acquire);
}

/* Handles of one type, newest object first; how many were stored (INFO_HANDLES). */
unsigned int uvd_file_list(struct uvd_file *file, const struct uvd_object_row *row, uint32_t *ids, unsigned int max);

/* The asynchronous event file that new objects get: default_async with a reference, or NULL. */
struct uvd_event_file *uvd_file_default_async(struct uvd_file *file);

#endif
