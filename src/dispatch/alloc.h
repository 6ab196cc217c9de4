/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The core's allocations. One function of its own, so that a test can replace it (ld --wrap=uvd_zalloc) and let the n-th
 * allocation fail; the n-th access to client memory fails by way of struct uvd_mem_ops.
 */
#ifndef UVD_ALLOC_H
#define UVD_ALLOC_H

#include <stddef.h>

/* Zeroed memory for free(), or NULL. */
void *uvd_zalloc(size_t size);

#endif
