/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Address spaces that hold registered memory. Unlike a caller, an address space is valid after the call. */
#ifndef UVD_CLIENT_MM_H
#define UVD_CLIENT_MM_H

#include <stdint.h>
#include <sys/types.h>

struct uvd_caller;
struct uvd_mm;

/*
 * All address spaces that hold registered memory on this engine: one entry for each mm, which several processes may
 * share.
 */
struct uvd_mm_table;

struct uvd_mm_table *uvd_mm_table_new(void);
/* Address spaces that still have references stay valid. */
void uvd_mm_table_free(struct uvd_mm_table *t);
/*
 * Returns a reference (uvd_mm_put()) to the caller's address space: the same one for all threads and for processes made
 * with CLONE_VM, another one after exec or in a forked child. Returns NULL on failure, with errno set.
 */
struct uvd_mm *uvd_mm_get(struct uvd_mm_table *t, struct uvd_caller *c);
/*
 * Opens the maps file of mm, so that uvd_mm_check() works from now on. c must be in mm; the file stays bound to mm.
 * Returns 0 or a negative errno.
 */
int uvd_mm_watch(struct uvd_mm *mm, struct uvd_caller *c);
/* Adds to the pages that are charged to mm, atomically. Returns the new sum. */
uint64_t uvd_mm_charge(struct uvd_mm *mm, int64_t pages);
/*
 * Calls fn for every address space with a charge: tgid is a process that was seen in it, or 0. Holds the table's lock
 * meanwhile: fn must not call functions of this header.
 */
void uvd_mm_table_each(struct uvd_mm_table *t, void (*fn)(void *arg, pid_t tgid, uint64_t pages), void *arg);
/* uvd_mm_ref, uvd_mm_put, uvd_mm_alive, uvd_mm_read, uvd_mm_write, uvd_mm_check: include/uverbsd/mm.h */

#endif
