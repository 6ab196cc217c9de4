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

/*
 * For device.c: makes the lists of a new device, whose backend is open. Returns 0 or a negative errno, and the log says why:
 * -EINVAL: a text is wrong, names what the device lacks, or cannot be enforced on this device.
 */
int uvd_device_allow_begin(struct uvd_device *dev);
/* Returns how many calls the lists of the device have refused. */
uint64_t uvd_device_disallowed(const struct uvd_device *dev);

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
