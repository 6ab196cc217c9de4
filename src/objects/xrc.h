/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * XRC definitions that qp.c, srq.c, xrc_qp.c and xrcd.c share. A domain can have handles in many open files, and so
 * can each of its target QPs. All handles of a target QP stand for one QP of the backend, which the last of them
 * destroys.
 */
#ifndef UVD_OBJECTS_XRC_H
#define UVD_OBJECTS_XRC_H

#include "account/account.h"
#include "objects/internal.h"

/* One handle of a domain (struct ib_uxrcd_object): `object` of a uobject of type UVERBS_OBJECT_XRCD. */
struct uvd_xrcd_handle {
	struct uvd_xrcd *xrcd;
	atomic_uint users; /* target QPs and SRQs made or opened by this handle, which is busy while there are any */
};

struct uvd_xrc_target;

/* The core's part of struct ib_xrcd: xrcd->owner. */
struct uvd_xrcd_domain {
	struct uvd_xrcd *xrcd;
	struct uvd_xrcd_domain *next; /* the device's list of shared domains, by its xrcd_lock */
	struct uvd_account *account; /* its creator's, is charged for path; a reference, or NULL */
	struct uvd_payers
		payers; /* if it is shared: those that have it open, for UVD_RES_NAMED_XRCDS. Under xrcd_lock */
	int path; /* an O_PATH fd that pins the file's inode; -1: the domain is private to one handle */
	dev_t st_dev;
	ino_t st_ino;
	pthread_mutex_t lock; /* of targets and their openers; only event file locks are taken under it */
	pthread_mutex_t allow_lock; /* as that of a file, for the targets */
	struct uvd_xrc_target *targets;
};

/*
 * Creates a target QP with uobj as its first handle. The caller has filled in qp except for xrcd, owner and
 * event_handler, and frees it on error. Returns 0 or a negative errno.
 */
int uvd_xrc_target_create(struct uvd_qp *qp, struct uvd_uobject *uobj, struct uvd_xrcd_handle *handle,
			  struct uvd_qp_init_attr *init, struct uvd_udata *udata);
/*
 * Closes one handle; the last one destroys the QP. On error nothing has changed. With UVD_REMOVE_DRIVER_FAILURE the
 * handle goes even if the backend refuses to destroy the QP, which is then leaked.
 */
int uvd_xrc_target_close(struct uvd_uobject *uobj, enum uvd_remove_reason why);

/* xrc_qp.c, row in xrcd.c */
extern const uvd_step uvd_open_qp_steps[];

#endif
