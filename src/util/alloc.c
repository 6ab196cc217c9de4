/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "util/util.h"

#include <stdlib.h>
#include <string.h>

/* Not calloc(): glibc's does not use the thread's cache, which makes malloc() several times as fast for small blocks. */
void *uvd_zalloc(size_t size)
{
	void *p = malloc(size);

	return p ? memset(p, 0, size) : NULL;
}
