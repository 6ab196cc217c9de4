/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Functions for the files of the core only. */
#ifndef UVD_CORE_INTERNAL_H
#define UVD_CORE_INTERNAL_H

#include "core/core.h"

/* ---- features.c: a device's features, from its making to its end -------------------------------------------------- */

void uvd_device_features_init(struct uvd_device *dev);
/* One more; before merge(). 0 or -ENOSPC. */
int uvd_device_features_add(struct uvd_device *dev, const struct uvd_feature *feature);
/*
 * Makes dev->tree. dev->ib.ops is set. 0, or as uvd_tree_new(): features that only some contexts see must fit together, too.
 */
int uvd_device_features_merge(struct uvd_device *dev);
void uvd_device_features_fini(struct uvd_device *dev);

/* ---- ucap.c ------------------------------------------------------------------------------------------------------ */

/* The device goes: puts all User Capabilities that it created. */
void uvd_device_remove_ucaps(struct uvd_device *dev);

/* ---- file.c ------------------------------------------------------------------------------------------------------ */

/* Takes the file out of its device's list, if it is there. dev->lock is held. */
void uvd_file_unlist(struct uvd_file *file);
/*
 * uverbs_destroy_ufile_hw(): ends the objects and the context. DRIVER_REMOVE: the handles stay. At the close and when the
 * device goes; perhaps both at once.
 */
void uvd_file_destroy_hw(struct uvd_file *file, enum uvd_remove_reason why);
/* The last one frees it: the opener's (after the close) or a removal's. */
void uvd_file_put(struct uvd_file *file);

/* ---- uobject.c --------------------------------------------------------------------------------------------------- */

/*
 * Calls the row's destroy, and forgets the object if it is gone. uobj is locked exclusively. The
 * caller unlinks it.
 */
int uvd_uobject_end(struct uvd_uobject *uobj, enum uvd_remove_reason why);
/* Takes a committed object out of the file's lists; its handle or place is free. file->lock is held. */
void uvd_uobject_unlink(struct uvd_uobject *uobj);
/* Its device is gone, and the backend's object: only the handle stays. file->lock is held. */
void uvd_uobject_disassociate(struct uvd_uobject *uobj);
/* One more user of a uobject's memory, and one less. */
void uvd_uobject_ref(struct uvd_uobject *uobj);
void uvd_uobject_unref(struct uvd_uobject *uobj);

#endif
