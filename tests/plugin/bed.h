/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* An engine with one device of backend null, and its client. */
#ifndef UVD_TESTS_PLUGIN_BED_H
#define UVD_TESTS_PLUGIN_BED_H

#include <check.h>
#include "harness.h"
#include "toys.h"

extern struct harness h;
extern struct trace trace;
extern char error[UVD_PLUGIN_ERROR]; /* of the last load, reload or unload */

void bed_setup(void);
void bed_teardown(void);

/* Loads the toy, with the trace and another value (NULL: none). Returns the errno. */
int toy_load(const char *toy, const char *value);
int toy_reload(const char *name, const char *toy);
int toy_unload(const char *name, bool wait);
/* Is the toy's file mapped? */
bool toy_is_mapped(const char *toy);

/* Opens a file with a context. */
int open_context(void);
int kv_create(int fd, uint32_t *handle);
int kv_destroy(int fd, uint32_t handle);
/* Returns the version of the plug-in that answers, or a negative errno. */
int kv_version(int fd, struct kv_answer *answer);
/* Returns the trace's text since the last call. */
const char *traced(void);

#endif
