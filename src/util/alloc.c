/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "util/util.h"

#include <stdlib.h>
#include <string.h>

/*
 * Not calloc(): glibc's calloc() bypasses the thread's cache, with which malloc() of small blocks is several times as
 * fast.
 */
void *uvd_zalloc(size_t size)
{
	void *p = malloc(size);

	return p ? memset(p, 0, size) : NULL;
}
