/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The thread of a sandboxed engine process that maps the code of plug-ins. dlopen() opens its file by a path, which the
 * sandbox does not allow. So this thread's filter traps openat(), and its handler answers with the number of a slot
 * (wire.h), whose file is open. There is one such thread in a process: it begins with the sandbox.
 */
#ifndef UVD_BROKER_LOADER_H
#define UVD_BROKER_LOADER_H

#include <stddef.h>

/* Starts the thread, with a filter of these rows. Only uvd_engine_sandbox() calls it. Returns 0 or a negative errno. */
int uvd_loader_start(const char *const *rows);
/*
 * dlopen() of the file in a slot, on that thread. fd: the slot's. name: by which the dynamic loader and debuggers know
 * it. Returns the handle; or NULL, and text (size bytes) says why. Any thread; one at a time.
 */
void *uvd_loader_map(int fd, const char *name, char *text, size_t size);

#endif
