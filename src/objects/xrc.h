/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * XRC between the files of the common verbs. A domain may have handles in many open files, and so may each of its target
 * QPs: the backend's QP is one, all its handles stand for it, and it ends with the last of them.
 */
#ifndef UVD_OBJECTS_XRC_H
#define UVD_OBJECTS_XRC_H

#include "objects/internal.h"

/* What the handle of a domain stands for (struct ib_uxrcd_object): uobject->object of UVERBS_OBJECT_XRCD. */
struct uvd_xrcd_handle {
	struct uvd_xrcd *xrcd;
	atomic_uint users; /* target QPs and SRQs that were made or opened by this very handle: it goes after them */
};

struct uvd_xrc_target;

/* struct ib_xrcd, the core's part: xrcd->owner. */
struct uvd_xrcd_domain {
	struct uvd_xrcd *xrcd;
	struct uvd_xrcd_domain *next; /* in the device's list, if it is known by a file; by the device's xrcd_lock */
	struct uvd_account *account; /* who pays for path; a reference, or NULL */
	int path; /* an O_PATH fd that keeps the file's inode; -1: the domain is private to one handle */
	dev_t st_dev;
	ino_t st_ino;
	pthread_mutex_t lock; /* targets and who has them open; a leaf, but for event files */
	struct uvd_xrc_target *targets;
};

/*
 * Makes a target QP, with uobj as its first handle. qp is filled in but for what is XRC's; the caller frees it on error.
 */
int uvd_xrc_target_create(struct uvd_qp *qp, struct uvd_uobject *uobj, struct uvd_xrcd_handle *handle,
			  struct uvd_qp_init_attr *init);
/* One handle less, and with the last one the QP itself. On error nothing has changed. */
int uvd_xrc_target_close(struct uvd_uobject *uobj, enum uvd_remove_reason why);

/* xrc_qp.c, row in xrcd.c */
extern const uvd_step uvd_open_qp_steps[];

#endif
