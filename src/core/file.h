/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* One open of a device: struct ib_uverbs_file. */
#ifndef UVD_CORE_FILE_H
#define UVD_CORE_FILE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "allow/allow.h"
#include "core/device.h"
#include "core/handles.h"
#include "core/rwsem.h"

struct uvd_account;
struct uvd_event_file;
struct uvd_uobject;

/* Operations of a transport whose clients can map the open file. Called on any thread; neither waits for a client. */
struct uvd_share_ops {
	/*
	 * Allocates `length` bytes (whole pages) of memory, which the client sees at *offset of its file. They are
	 * zero, unless the client has written there already. No offset is given out twice. Returns 0 or a negative
	 * errno.
	 */
	int (*get)(void *owner, size_t length, uint8_t **memory, uint64_t *offset);
	void (*put)(void *owner, uint8_t *memory, size_t length, uint64_t offset);
};

struct uvd_file {
	struct uvd_device *dev;
	const struct uvd_share_ops *share; /* the transport sets both before the first call; NULL: no mmap() */
	void *share_owner;
	/*
	 * The client's descriptor cannot be mapped. One that can takes its place in the call that makes the context. The transport sets it
	 * before the first call, and clears it when that is done.
	 */
	atomic_bool unmapped;
	uint16_t
		logged; /* id of the type whose objects its doorbells name in a log, to which nobody answers (src/doorbell); 0: none */
	struct uvd_watched watched;
	/* A reference; pays for the file and its objects, also against the device's quota. NULL: nobody pays. */
	struct uvd_account *account;
	struct list_head of_device; /* in the device's list, under its lock; empty: not listed */
	atomic_uint ref; /* the transport's, and a removal's */
	unsigned int counter; /* index of its counter in the device's `calls` */
	struct uvd_rwsem destroy_lock;
	pthread_mutex_t lock; /* handles, lists of objects, default_async, num_event_files */
	struct uvd_handles handles;
	struct list_head objects; /* newest first: the order of cleanup */
	atomic_uint num_objects; /* in that list; may be read without the lock */
	atomic_uint object_counts[UVD_OBJECT_COUNTS]; /* likewise, of each type; the device has their names */
	struct list_head disassociated; /* handles that remain when the device is gone */
	pthread_mutex_t context_lock; /* publication of `context` and `tree` */
	pthread_mutex_t mcast_lock; /* multicast groups of its QPs; held while the backend attaches and detaches */
	pthread_mutex_t
		allow_lock; /* one checked change of its QPs' ports and P_Keys at a time; outside the backend's */
	struct uvd_context *_Atomic context; /* NULL before GET_CONTEXT */
	void **plugin_data; /* of the context's plug-ins, in the order of trees->plugins; set before `context` */
	struct uvd_trees *trees; /* the generation that was current at the open; a reference */
	struct uvd_tree *_Atomic tree; /* the plain one of `trees`, or one for a context with User Capabilities */
	const struct uvd_allowed *_Atomic allowed; /* one of the two below; NULL: nothing is restricted */
	struct uvd_allowed allowed_at_open, allowed_in_context;
	struct uvd_event_file *default_async; /* a reference, or NULL */
	struct uvd_uobject *fd_objects; /* committed FD objects */
	unsigned int num_event_files; /* FD objects, including those not committed yet */
	unsigned int event_files_made; /* attempts to make one, ever */
};

enum { UVD_MAX_EVENT_FILES = 1024 }; /* of an open file: limited, as a client's close goes unnoticed */

/*
 * Opens the device for a client. Its account pays, which may be NULL: the file has a reference. Returns NULL on error:
 * *err is -EIO (the device is gone), -EMFILE (the user has too many open files) or -ENOMEM.
 */
struct uvd_file *uvd_file_open(struct uvd_device *dev, struct uvd_account *account, int *err);
/*
 * The last close: destroys all objects, newest first, in passes (cleanup-01, -02), detaches multicast, unpins memory,
 * and puts the transport's reference. No call on the file may be in progress.
 */
void uvd_file_close(struct uvd_file *file);

/*
 * Every call on a file, with the grant that it may need, runs between these two: see uvd_device_remove(). Pass the
 * result of uvd_file_enter() to uvd_file_leave(). A call that begins when the device is gone does not count, or a
 * busy client could delay the removal forever. If `gone` is set just after enter() has read it, the removal may miss
 * the call's count; then the call sees `gone` at its next check.
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

/*
 * Finds the parse tree of a context with these User Capabilities (bits of struct uvd_ucaps) in the file's generation,
 * and makes it at first use. The generation owns it. *tree is NULL if they add nothing to the plain tree. Returns 0,
 * -ENOMEM, or an error of uvd_tree_new().
 */
int uvd_file_tree_for(struct uvd_file *file, uint64_t ucaps, struct uvd_tree **tree);

/* Returns the allow-lists of the file's client. NULL: nothing is restricted. See core/allow.h. */
static inline const struct uvd_allowed *uvd_file_allowed(struct uvd_file *file)
{
	return atomic_load_explicit(&file->allowed, memory_order_acquire);
}

/* Returns the file's parse tree. It changes once, when the file's context is made with User Capabilities. */
static inline const struct uvd_tree *uvd_file_tree(struct uvd_file *file)
{
	return atomic_load_explicit(&file->tree, memory_order_acquire);
}

/* Stores at most `max` handles of one type, newest object first (INFO_HANDLES). Returns how many it has stored. */
unsigned int uvd_file_list(struct uvd_file *file, const struct uvd_object_row *row, uint32_t *ids, unsigned int max);

/* Returns the asynchronous event file that new objects get, default_async, with a reference; or NULL. */
struct uvd_event_file *uvd_file_default_async(struct uvd_file *file);

#endif
