/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Engine, devices, open files and their objects: struct ib_uverbs_device, ib_uverbs_file and ib_uobject, with the
 * kernel's locking (drivers/infiniband/core/rdma_core.c).
 *
 * Locking of an object: usecnt. -1: one exclusive user (creation, destruction); > 0: so many shared users; 0: free. Nobody
 * ever waits for it: a conflict is EBUSY. Locking of an open file: destroy_lock, held for reading by every creation and
 * destruction, for writing by the teardown; `lock` protects the handle table and the object list, and is held briefly.
 */
#ifndef UVD_FILE_H
#define UVD_FILE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uverbsd/backend.h>
#include <uverbsd/schema.h>
#include "objects/handles.h"
#include "objects/rwsem.h"
#include "objects/ucap.h"

struct uvd_caller;
struct uvd_event_file;
struct uvd_log;
struct uvd_mcast;
struct uvd_mm_table;
struct uvd_persona;
struct uvd_tree;
struct uvd_xrcd_domain;
struct uvd_xrcd_handle;

enum { UVD_MAX_FEATURES = 32 };

/* What a device may accept beyond its plain tree (device_features.c). */
struct uvd_device_trees {
	const struct uvd_feature *features[UVD_MAX_FEATURES + 1]; /* all that it has; ends with NULL */
	pthread_mutex_t lock; /* the list */
	struct uvd_tree_variant *variants; /* one for each set of features that a context turned on */
};

/* What all devices of one process share. No locks: set up before, torn down after everything else. */
struct uvd_engine {
	struct uvd_log *log;
	struct uvd_mm_table *mms;
	struct uvd_fabric *fabric;
	/*
	 * The transport's, or NULL: returns when every file that its client has closed before this moment is closed here too.
	 * Called before a client is refused at its RLIMIT_MEMLOCK, from a call on a file that is open.
	 */
	void (*settle)(struct uvd_engine *engine);
	/*
	 * The transport's, or NULL: what it has published of the device says from now on that this port is up or down. 0 or a
	 * negative errno: then it stays as it was.
	 */
	int (*publish_port)(struct uvd_engine *engine, const struct uvd_device_config *config, unsigned int port, bool up);
	/* Features of plug-ins, which all devices get; ends with NULL. NULL: none. */
	const struct uvd_feature *const *features;
	struct uvd_ucaps ucaps;
};

/* 0 or a negative errno. log stays the caller's. Sets malloc up for many small objects: in the whole process. */
int uvd_engine_init(struct uvd_engine *engine, struct uvd_log *log);
void uvd_engine_fini(struct uvd_engine *engine);

/*
 * Calls that are under way on a device's files, so that a removal can wait for them: the kernel's disassociate_srcu. Spread
 * over several counters, as threads on many files would meet at one.
 */
enum { UVD_CALL_COUNTERS = 16 };

struct uvd_calls {
	atomic_uint num;
	uint8_t pad[64 - sizeof(atomic_uint)]; /* a cache line for each */
};

struct uvd_device {
	struct uvd_engine *engine;
	atomic_uint ref; /* its owner's, and one for each open file */
	struct uvd_ibdev ib;
	const struct uvd_persona *persona;
	struct uvd_tree *tree; /* for contexts without User Capabilities, and before there is a context */
	struct uvd_device_trees trees; /* with them */
	uint8_t ucap_refs[UVD_MAX_UCAPS]; /* that it created, so many times; by the engine's ucaps.lock */
	struct uvd_device_config config;
	pthread_mutex_t lock; /* files */
	pthread_mutex_t port_lock; /* one change of a port after the other */
	struct uvd_file *files, *oldest; /* newest first, and the last of the list */
	unsigned int num_files;
	pthread_mutex_t xrcd_lock; /* the domains that are known by a file (xrcd.c) */
	struct uvd_xrcd_domain *xrcds;
	unsigned int num_xrcds;
	unsigned int files_opened; /* ever */
	struct uvd_calls calls[UVD_CALL_COUNTERS];
	atomic_bool gone; /* removed: everything but DESTROY is EIO. Set with `lock` held. */
	bool backend_closed; /* or not open yet. port_lock, once others know of the device */
};

/* NULL: *err says why, and the log. */
struct uvd_device *uvd_device_new(struct uvd_engine *engine, const struct uvd_device_config *config, int *err);
/* What such a device accepts, without the device. NULL: see uvd_tree_new(). */
struct uvd_tree *uvd_device_tree(const struct uvd_backend *ops, const struct uvd_persona *persona, struct uvd_log *log,
				 int *err);
struct uvd_device *uvd_device_get(struct uvd_device *dev);
void uvd_device_put(struct uvd_device *dev);
/* Puts the owner's reference. Where the device was not removed, all its files are closed. */
void uvd_device_free(struct uvd_device *dev);
/*
 * Unplugs the device under its open files (ib_uverbs_remove_one(), hotplug-01): from now on opens and commands fail with
 * EIO, destroys excepted; then calls that are under way are waited for, and every open file, oldest first, loses all its
 * objects (newest first) and its context; last the backend closes, and the device's User Capabilities go. Each
 * asynchronous event file tells IBV_EVENT_DEVICE_FATAL, completion channels end. Files stay open, with their handles, until
 * they are closed; the device's memory is freed after the last of them.
 *
 * Once for a device. Waits for calls that wait for a client's memory: for a thread that may.
 */
void uvd_device_remove(struct uvd_device *dev);
/*
 * Takes a port down or up, as an administrator would: for queries, for the backend, and last as an event for all open
 * files. 1: it was so already, and nothing happens. -EINVAL: no such port. Else as engine->publish_port().
 */
int uvd_device_set_port(struct uvd_device *dev, unsigned int port, bool up);

/*
 * What a context with these User Capabilities (bits of struct uvd_ucaps) accepts: made at the first question, and the
 * device's. *tree NULL: no more than any other. 0, -ENOMEM, or what uvd_tree_new() says.
 */
int uvd_device_tree_for(struct uvd_device *dev, uint64_t ucaps, struct uvd_tree **tree);
/*
 * Creates the User Capability for the device, or counts once more where it has done so; its bit, or as uvd_ucap_get().
 * What is not removed when the device goes is removed then.
 */
int uvd_device_create_ucap(struct uvd_device *dev, const char *name);
void uvd_device_remove_ucap(struct uvd_device *dev, const char *name);
/* The device goes: puts all that it created. */
void uvd_device_remove_ucaps(struct uvd_device *dev);

struct uvd_uobject {
	struct uvd_file *file;
	const struct uvd_object_row *row;
	struct uvd_uobject *prev, *next; /* the file's list of objects, newest first, or of those whose device is gone */
	atomic_int ref; /* memory */
	atomic_int usecnt; /* see above */
	uint32_t id; /* IDR: the handle */
	bool committed;
	/* Of the request that makes it: the backend's object exists; it is aborted though the request succeeds. */
	bool made, dropped;
	bool disassociated; /* the device is gone: a handle that can be destroyed, and nothing else */
	void *object; /* struct uvd_pd and so on; NULL once destroyed */
	uint64_t user_handle; /* CQ, QP, SRQ: what events carry */
	/* Both are put with the uobject's memory, unless a destroy has put them before and left NULL. */
	struct uvd_event_file *event_file; /* FD objects: the file itself; CQ, QP, SRQ: where their async events go (a ref) */
	struct uvd_event_file *channel; /* CQ: the completion channel (a ref), or NULL */
	atomic_uint comp_events, async_events; /* posted so far */
	struct uvd_mcast *mcast; /* QP: attached groups (mcast.c), by the file's mcast_lock */
	struct uvd_uobject *fd_next; /* FD objects: the file's list */
	struct uvd_xrcd_handle *xrcd; /* XRC targets and SRQs: the domain's handle in this file that they were made by */
};

/* One open of the device. */
struct uvd_file {
	struct uvd_device *dev;
	struct uvd_file *prev, *next; /* the device's list */
	bool listed; /* in it; the device's lock */
	atomic_uint ref; /* the opener's, and a removal's */
	unsigned int counter; /* which of the device's call counters */
	struct uvd_rwsem destroy_lock;
	pthread_mutex_t lock; /* handles, objects, default_async */
	struct uvd_handles handles;
	struct uvd_uobject *objects; /* newest first: the order of cleanup */
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

/* The transport opened the device for a client. NULL: *err is EIO (the device is gone) or ENOMEM, negative. */
struct uvd_file *uvd_file_open(struct uvd_device *dev, int *err);
/*
 * The last close: destroys everything, newest object first, in passes (cleanup-01, -02), detaches multicast, unpins, and
 * frees the file. No call on it is under way.
 */
void uvd_file_close(struct uvd_file *file);

/* For the core only. Takes the file out of its device's list, if it is there. dev->lock is held. */
void uvd_file_unlist(struct uvd_file *file);
/*
 * uverbs_destroy_ufile_hw(): ends the objects and the context. DRIVER_REMOVE: the handles stay. At the close and when the
 * device goes; perhaps both at once.
 */
void uvd_file_destroy_hw(struct uvd_file *file, enum uvd_remove_reason why);
/* The last one frees it: the opener's (after the close) or a removal's. */
void uvd_file_put(struct uvd_file *file);

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

/* What the file accepts. It changes once, when its context is made with User Capabilities. */
static inline const struct uvd_tree *uvd_file_tree(struct uvd_file *file)
{
	return atomic_load_explicit(&file->tree, memory_order_acquire);
}

/* ---- objects, for src/dispatch and src/objects ------------------------------------------------------------------- */

/*
 * Begins an object: locked exclusively, not yet visible, with a handle if its class has one. Takes the destroy lock for
 * reading until commit or abort. -EINVAL: no context yet. -EIO: teardown is under way.
 */
int uvd_uobject_begin(struct uvd_file *file, const struct uvd_object_row *row, struct uvd_uobject **out);
/* The same in a file whose context is only being made (GET_CONTEXT: see uvd_req_context()). */
int uvd_uobject_begin_early(struct uvd_file *file, const struct uvd_object_row *row, struct uvd_uobject **out);
/*
 * An object of class FD has its event_file by now. The first asynchronous one that is committed becomes the file's
 * default_async.
 */
void uvd_uobject_commit(struct uvd_uobject *uobj);
/* hw: the backend's object was made, destroy it first (if that fails the object is committed, handle-10). */
void uvd_uobject_abort(struct uvd_uobject *uobj, bool hw);
/*
 * By handle (row NULL: any type). READ and WRITE lock it, DESTROY only references it. -EINVAL id < 0 or another type,
 * -ENOENT no such handle, -EBUSY in use, -EIO device removed.
 */
int uvd_uobject_get(struct uvd_file *file, const struct uvd_object_row *row, int64_t id, enum uvd_access access,
		    struct uvd_uobject **out);
/* By the caller's fd number, FD classes. -EBADF: not open, not an event file of this type, or of another open file. */
int uvd_uobject_get_fd(struct uvd_file *file, struct uvd_caller *c, const struct uvd_object_row *row, int fd,
		       struct uvd_uobject **out);
void uvd_uobject_put(struct uvd_uobject *uobj, enum uvd_access access);
/* Destroys what get(DESTROY) found: locks, calls the row's destroy, frees the handle. On error nothing has changed. */
int uvd_uobject_destroy(struct uvd_uobject *uobj);

/*
 * For the core only: calls the row's destroy, and forgets the object if it is gone. uobj is locked exclusively. The
 * caller unlinks it.
 */
int uvd_uobject_end(struct uvd_uobject *uobj, enum uvd_remove_reason why);
/*
 * The backend's object behind `uobj` becomes that of `fresh`, an object that was begun and is not visible, and the other
 * way round: the handle keeps its number, and is now the newest. Both are locked exclusively.
 */
void uvd_uobject_swap(struct uvd_uobject *uobj, struct uvd_uobject *fresh);
/* Takes a committed object out of the file's lists; its handle or place is free. file->lock is held. */
void uvd_uobject_unlink(struct uvd_uobject *uobj);
/* Its device is gone, and the backend's object: only the handle stays. file->lock is held. */
void uvd_uobject_disassociate(struct uvd_uobject *uobj);
/* One more user of a uobject's memory, and one less. */
void uvd_uobject_ref(struct uvd_uobject *uobj);
void uvd_uobject_unref(struct uvd_uobject *uobj);

/* An event of the device or of a port, to all asynchronous event files of all open files. */
void uvd_device_event(struct uvd_ibdev *ib, enum ibv_event_type type, uint8_t port);

/* Handles of one type, newest object first; how many were stored (INFO_HANDLES). */
unsigned int uvd_file_list(struct uvd_file *file, const struct uvd_object_row *row, uint32_t *ids, unsigned int max);

/* The asynchronous event file that new objects get: default_async with a reference, or NULL. */
struct uvd_event_file *uvd_file_default_async(struct uvd_file *file);

#endif
