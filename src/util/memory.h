/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory: alloc.c, guard.c. */
#ifndef UVD_UTIL_MEMORY_H
#define UVD_UTIL_MEMORY_H

#include <stddef.h>

/*
 * Returns zeroed memory, which the caller frees with free(); or NULL. The core allocates with this function only, so
 * that a test can replace it (ld --wrap=uvd_zalloc) and make the n-th allocation fail.
 */
void *uvd_zalloc(size_t size);

/*
 * Copies from or to a mapping of a file that others can truncate. An access beyond the file's end raises
 * SIGBUS; uvd_guarded_copy() then returns -EFAULT, and some bytes may have been copied. uvd_guard_start() installs the
 * handler: call it once in a process, before the first copy. Both return 0 or a negative errno.
 */
int uvd_guard_start(void);
int uvd_guarded_copy(void *dst, const void *src, size_t len);

#endif
