/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The answer to `status`, as both transports give it. A transport collects facts while the devices cannot change, in a
 * time that does not depend on the number of objects. It can format them later, on another thread: that looks up the names
 * of programs.
 */
#ifndef UVD_FLEET_STATUS_H
#define UVD_FLEET_STATUS_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>
#include "core/core.h"

struct uvd_cm;
struct uvd_status;

/* Returns NULL if there is no memory. */
struct uvd_status *uvd_status_new(void);
void uvd_status_free(struct uvd_status *s);

/*
 * Begins a device that has a node, and takes a reference to it. Files that are added now are the device's. Returns the
 * answer's part for it, without the files, which the transport can add to; no reference. NULL: no memory.
 */
json_t *uvd_status_add_device(struct uvd_status *s, struct uvd_device *dev, const char *node, dev_t rdev, bool removed);
/* Adds an open file, which the transport keeps open meanwhile; beyond 4096 of a device it only counts them. */
void uvd_status_add_file(struct uvd_status *s, struct uvd_file *file, pid_t pid, uid_t uid);
/* Adds the pinned memory of address spaces. */
void uvd_status_add_memory(struct uvd_status *s, struct uvd_mm_table *mms);

/* Adds the identifiers of the connection manager. NULL: there is none. Without memory, none is added. */
void uvd_status_add_cm(struct uvd_status *s, struct uvd_cm *cm);

/*
 * Adds all that to the answer. program: stores the name of a process's program, or ""; may block. Any thread. Takes over
 * the reference to the answer, and returns it.
 */
json_t *uvd_status_format(struct uvd_status *s, json_t *answer,
			  void (*program)(void *arg, pid_t pid, char *name, size_t size), void *arg);

#endif
