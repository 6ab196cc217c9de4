/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An object of an open file: struct ib_uobject, with the kernel's locking (drivers/infiniband/core/rdma_core.c).
 *
 * usecnt locks it. -1: one exclusive user (creation, destruction, UVD_UOBJ_WRITE); > 0: that many shared users; 0:
 * unlocked. No thread waits for it: a conflict is EBUSY.
 */
#ifndef UVD_CORE_UOBJECT_H
#define UVD_CORE_UOBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uverbsd/request.h>
#include <uverbsd/schema.h>
#include "core/facts.h"
#include "core/quota.h"
#include "util/util.h"

struct uvd_caller;
struct uvd_event_file;
struct uvd_file;
struct uvd_mcast;
struct uvd_xrcd_handle;

struct uvd_uobject {
	struct uvd_file *file;
	const struct uvd_object_row *row;
	struct list_head of_file; /* in the file's `objects`, newest first, or `disassociated` */
	atomic_int ref; /* to the memory */
	atomic_int usecnt; /* see above */
	uint32_t id; /* IDR: the handle */
	uint64_t bytes; /* charged to the file's account until the uobject is freed */
	uint64_t registered; /* likewise, of UVD_RES_REGISTERED; it goes with the object (uvd_uobject_swap()) */
	/* uvd_uobject_hold(): likewise, of one more resource, which the type of the object decides. */
	enum uvd_resource held_res;
	uint64_t held;
	/* QP: how many send requests, receives, and bytes of inline data its creator asked for; else 0. */
	uint32_t asked[3];
	bool committed;
	/*
	 * The request that makes the object sets these. made: the backend's object exists, and an abort destroys it. dropped: abort the object,
	 * although the request itself succeeds.
	 */
	bool made, dropped;
	bool disassociated; /* the device is gone: the handle can only be destroyed */
	void *object; /* struct uvd_pd and so on; NULL once destroyed */
	uint64_t user_handle; /* CQ, QP, SRQ: the value that events carry */
	/* References, put when the uobject is freed, unless a destroy has put them before and set them to NULL. */
	struct uvd_event_file *event_file; /* FD objects: the file itself; CQ, QP, SRQ, WQ: where async events go */
	struct uvd_event_file *channel; /* CQ: the completion channel, or NULL */
	atomic_uint comp_events, async_events; /* posted so far */
	struct uvd_mcast *mcast; /* QP: attached groups (mcast.c), under the file's mcast_lock */
	struct uvd_uobject *fd_next; /* FD objects: the file's list */
	struct uvd_object_facts facts; /* for a status; under the file's lock */
	struct uvd_xrcd_handle *xrcd; /* XRC targets and SRQs: the handle of their domain in this file */
};

/* Returns how many events of the object were posted, without those that were taken back. */
static inline unsigned int uvd_uobject_events(const struct uvd_uobject *uobj)
{
	return atomic_load_explicit(&uobj->comp_events, memory_order_relaxed) +
	       atomic_load_explicit(&uobj->async_events, memory_order_relaxed);
}

/*
 * Begins an object: locked exclusively, not yet visible, with a handle if its class is IDR. Holds destroy_lock for
 * reading until commit or abort. Returns 0; -EINVAL: no context yet; -EIO: the device is gone, or a teardown is in
 * progress; -EAGAIN, -EMFILE, -ENOMEM: the opener has too many objects, event files, or bytes.
 */
int uvd_uobject_begin(struct uvd_file *file, const struct uvd_object_row *row, struct uvd_uobject **out);
/* The same for a call: if a quota refuses the object the log has a line. */
int uvd_uobject_begin_by(struct uvd_file *file, const struct uvd_object_row *row, const struct uvd_asker *asker,
			 struct uvd_uobject **out);
/*
 * Makes the object visible and unlocks it. An object of class FD must have its event_file. The first asynchronous event
 * file that is committed becomes the file's default_async.
 */
void uvd_uobject_commit(struct uvd_uobject *uobj);
/* Discards the object. hw: destroy the backend's object first; if that fails, commit the object (handle-10). */
void uvd_uobject_abort(struct uvd_uobject *uobj, bool hw);
/*
 * Looks an object up by its handle (row NULL: any type) and takes a reference. READ and WRITE lock it, DESTROY does
 * not. Returns 0; -EINVAL: id < 0, or another type; -ENOENT: no such handle; -EBUSY: in use; -EIO: the device is gone
 * (READ and WRITE only).
 */
int uvd_uobject_get(struct uvd_file *file, const struct uvd_object_row *row, int64_t id, enum uvd_uobj_access access,
		    struct uvd_uobject **out);
/*
 * Looks an object of class FD up by the caller's fd number, for READ. -EBADF: not open, not an event file of this
 * type, or of another open file.
 */
int uvd_uobject_get_fd(struct uvd_file *file, struct uvd_caller *c, const struct uvd_object_row *row, int fd,
		       struct uvd_uobject **out);
/* Undoes a look-up. */
void uvd_uobject_put(struct uvd_uobject *uobj, enum uvd_uobj_access access);
/*
 * Destroys an object looked up with UVD_UOBJ_DESTROY: locks it, calls the row's destroy function, and frees the
 * handle. The caller's reference stays. On error nothing has changed.
 */
int uvd_uobject_destroy(struct uvd_uobject *uobj);
/*
 * Exchanges the backend's objects of `uobj` and of `fresh`, an object that was begun and is not visible. uobj keeps its
 * handle and becomes the newest object. Caller has locked both exclusively.
 */
void uvd_uobject_swap(struct uvd_uobject *uobj, struct uvd_uobject *fresh);
/* Exchanges only what is charged for their pinned memory. Caller has locked both exclusively. */
void uvd_uobject_swap_registered(struct uvd_uobject *uobj, struct uvd_uobject *fresh);

#endif
