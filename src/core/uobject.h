/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An object of an open file: struct ib_uobject, with the kernel's locking (drivers/infiniband/core/rdma_core.c).
 *
 * usecnt locks it. -1: one exclusive user (creation, destruction); > 0: so many shared users; 0: free. Nobody ever waits for
 * it: a conflict is EBUSY.
 */
#ifndef UVD_CORE_UOBJECT_H
#define UVD_CORE_UOBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uverbsd/schema.h>

struct uvd_caller;
struct uvd_event_file;
struct uvd_file;
struct uvd_mcast;
struct uvd_xrcd_handle;

struct uvd_uobject {
	struct uvd_file *file;
	const struct uvd_object_row *row;
	struct uvd_uobject *prev, *next; /* the file's list of objects, newest first, or of those whose device is gone */
	atomic_int ref; /* memory */
	atomic_int usecnt; /* see above */
	uint32_t id; /* IDR: the handle */
	uint64_t bytes; /* charged to the file's account, until its memory goes */
	bool committed;
	/*
	 * The request that makes the object sets these. made: the backend's object exists. dropped: the request aborts the
	 * object although it succeeds itself.
	 */
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

/*
 * Begins an object: locked exclusively, not yet visible, with a handle if its class has one. Takes the destroy lock for
 * reading until commit or abort. -EINVAL: no context yet. -EIO: teardown is under way. -EAGAIN, -EMFILE, -ENOMEM: the opener
 * has too many objects, event files, or bytes.
 */
int uvd_uobject_begin(struct uvd_file *file, const struct uvd_object_row *row, struct uvd_uobject **out);
/*
 * Charges more, or less, memory to the account of the object's file, for as long as the uobject's memory stays. One thread at
 * a time for an object. 0 or -ENOMEM.
 */
int uvd_uobject_charge(struct uvd_uobject *uobj, uint64_t bytes);
void uvd_uobject_uncharge(struct uvd_uobject *uobj, uint64_t bytes);
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
 * The backend's object behind `uobj` becomes that of `fresh`, an object that was begun and is not visible, and the other
 * way round: the handle keeps its number, and is now the newest. Both are locked exclusively.
 */
void uvd_uobject_swap(struct uvd_uobject *uobj, struct uvd_uobject *fresh);

#endif
