/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The allow-lists of devices (src/allow), and their enforcement. They hold for an open file: its opener's user decides,
 * also if the descriptor was passed on. The lists do not depend on the backend. A refused call fails with -EPERM, as the
 * kernel answers who lacks a privilege; -EOPNOTSUPP would say that nobody has the feature.
 */
#ifndef UVD_CORE_ALLOW_H
#define UVD_CORE_ALLOW_H

#include "allow/allow.h"
#include "core/file.h"

struct uvd_caller;

/* One text for devices of this name. */
struct uvd_device_allow {
	char ibdev[IBV_SYSFS_NAME_MAX];
	char *text;
	bool quota; /* it is the text of a quota (core/quota.h) */
	struct uvd_device_allow *next;
};

/*
 * From now on a device of this name that is created gets this text, too. Returns 0 or -ENOMEM.
 * uvd_engine_allow_forget() removes all that the name would get.
 */
int uvd_engine_allow_add(struct uvd_engine *engine, const char *ibdev, const char *text);
void uvd_engine_allow_forget(struct uvd_engine *engine, const char *ibdev);
/*
 * For a change that may fail. uvd_engine_allow_take() removes all that the name would get and returns it; NULL: nothing.
 * The caller gives that back in the place of what the name would get now (restore), or frees it (drop).
 */
struct uvd_device_allow *uvd_engine_allow_take(struct uvd_engine *engine, const char *ibdev);
void uvd_engine_allow_restore(struct uvd_engine *engine, const char *ibdev, struct uvd_device_allow *taken);
void uvd_engine_allow_drop(struct uvd_device_allow *taken);
void uvd_engine_allow_fini(struct uvd_engine *engine);

/*
 * For device.c: makes the lists and quotas of a new device, whose backend is open. Returns 0 or a negative errno, and the
 * log says why: -EINVAL: a text is wrong, names what the device lacks, or cannot be enforced on this device.
 */
int uvd_device_allow_begin(struct uvd_device *dev);
/* Returns how many calls the lists and the quotas of the device have refused. */
uint64_t uvd_device_refused(const struct uvd_device *dev);

/* For file.c: finds the lists of the file's opener. */
void uvd_file_allow_begin(struct uvd_file *file);
/* For GET_CONTEXT, at most once for a file: finds them anew for a context with these User Capabilities. */
void uvd_file_allow_context(struct uvd_file *file, uint64_t ucaps);

/*
 * Counts and logs a refusal. Returns -EPERM. caller: of the call; verb: the name of its row; what: the field and its
 * value, as in "qp_type UD"; word: what would have to be added to the list.
 */
int uvd_file_refuse(struct uvd_file *file, struct uvd_caller *caller, const char *verb, struct uvd_allow_list *list,
		    const char *what, const char *word) __attribute__((cold));
/* Check a verb (a row's name, and uvd_allow_verb() of it) and an object (the name of its row). Return 0 or -EPERM. */
int uvd_file_check_verb(struct uvd_file *file, struct uvd_caller *caller, const char *row, uint64_t verb);
int uvd_file_check_object(struct uvd_file *file, struct uvd_caller *caller, const char *verb, const char *row);

#endif
