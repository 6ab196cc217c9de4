/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Functions for the files of the core only. */
#ifndef UVD_CORE_INTERNAL_H
#define UVD_CORE_INTERNAL_H

#include "core/core.h"

/* ---- tree.c ------------------------------------------------------------------------------------------------------ */

/* uvd_tree_new(), with the message in `error`, and not in the log, unless that is NULL. */
struct uvd_tree *uvd_tree_merge(const struct uvd_feature *const *features, const struct uvd_backend *ops,
				uint16_t driver_id, struct uvd_log *log, char error[UVD_PLUGIN_ERROR], int *err);

/* ---- tree_wrap.c ------------------------------------------------------------------------------------------------- */

/*
 * Adds a wrapper to the list of a method or command. Returns 0 or -ENOMEM. *other: the owner of another INSTEAD, then
 * -EEXIST.
 */
int uvd_tree_wrap_add(struct uvd_tree_wrap **list, enum uvd_when when, const uvd_step *steps, const char *owner,
		      const char **other);
void uvd_tree_wraps_free(struct uvd_tree_wrap **list);
/*
 * Merges a row's own steps (NULL: none) with their wrappers into *merged, which the caller frees. before: with those of
 * UVD_STEPS_BEFORE; rest: with all others. Returns 0 or -ENOMEM.
 */
int uvd_tree_steps_merge(const struct uvd_tree_wrap *list, const uvd_step *own, bool before, bool rest,
			 uvd_step **merged);

/* ---- device.c ---------------------------------------------------------------------------------------------------- */

/* The index of a type of objects in object_counts. */
unsigned int uvd_object_count_index(unsigned int id);
/* Sets uobj->facts. Caller holds the file's lock, and has locked the object; it may not be visible yet. */
void uvd_uobject_take_facts(struct uvd_uobject *uobj);
/* Sets the name of a count. Files can do this at the same time: the first one sets it. */
void uvd_object_count_name(struct uvd_object_count *count, const char *name);
/* Takes the device out of the engine's list. Caller does not hold plugins_lock. */
void uvd_device_unlist(struct uvd_device *dev);

/* ---- replug.c ---------------------------------------------------------------------------------------------------- */

/* Returns how often devices of this name were replugged. Caller holds plugins_lock. */
uint64_t uvd_engine_replugs(const struct uvd_engine *engine, const char *ibdev);

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
