/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Functions for the files of the core only. */
#ifndef UVD_CORE_INTERNAL_H
#define UVD_CORE_INTERNAL_H

#include "core/core.h"

/* ---- features.c: the features of a device ------------------------------------------------------------------------ */

void uvd_device_features_init(struct uvd_device *dev);
/* Adds a feature; call it before uvd_device_features_merge(). Returns 0 or -ENOSPC. */
int uvd_device_features_add(struct uvd_device *dev, const struct uvd_feature *feature);
/*
 * Makes dev->tree. dev->ib.ops must be set. Returns 0, or an error of uvd_tree_new(): all features must fit together,
 * even those that only some contexts see.
 */
int uvd_device_features_merge(struct uvd_device *dev);
void uvd_device_features_fini(struct uvd_device *dev);

/* ---- ucap.c ------------------------------------------------------------------------------------------------------ */

/* Removes all User Capabilities that the device has created, when it goes. */
void uvd_device_remove_ucaps(struct uvd_device *dev);

/* ---- file.c ------------------------------------------------------------------------------------------------------ */

/* Takes the file out of its device's list, if it is there. Caller holds dev->lock. */
void uvd_file_unlist(struct uvd_file *file);
/*
 * uverbs_destroy_ufile_hw(): destroys the objects and the context. With UVD_REMOVE_DRIVER_REMOVE the handles stay. A
 * close and a removal of the device may call it at the same time.
 */
void uvd_file_destroy_hw(struct uvd_file *file, enum uvd_remove_reason why);
/* Puts the transport's reference (at the close), or a removal's. The last one frees the file. */
void uvd_file_put(struct uvd_file *file);

/* ---- uobject.c --------------------------------------------------------------------------------------------------- */

/*
 * Calls the row's destroy function for the backend's object, and clears uobj->object if it succeeds. Returns its errno.
 * Caller has locked uobj exclusively, and unlinks it.
 */
int uvd_uobject_end(struct uvd_uobject *uobj, enum uvd_remove_reason why);
/*
 * Takes a committed object out of the file's lists, and frees its handle, or its place among the event files. Caller
 * holds file->lock, or the last reference to the file.
 */
void uvd_uobject_unlink(struct uvd_uobject *uobj);
/*
 * Moves an object to the list of those that are only handles, as the device and the backend's object are gone.
 * Unlocks it. Caller holds file->lock.
 */
void uvd_uobject_disassociate(struct uvd_uobject *uobj);
/* Take and put a reference to a uobject's memory. */
void uvd_uobject_ref(struct uvd_uobject *uobj);
void uvd_uobject_unref(struct uvd_uobject *uobj);

#endif
