/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Address spaces that hold registered memory: what outlives a call. */
#ifndef UVD_CLIENT_MM_H
#define UVD_CLIENT_MM_H

#include <stdint.h>
#include <sys/types.h>

struct uvd_caller;
struct uvd_mm;

/* All address spaces that hold registered memory on this engine. One for each mm, whatever process shares it. */
struct uvd_mm_table;

struct uvd_mm_table *uvd_mm_table_new(void);
void uvd_mm_table_free(struct uvd_mm_table *t);
/*
 * The caller's address space, with a reference (uvd_mm_put): the same one for all threads and CLONE_VM relatives, another
 * after exec or in a forked child. NULL: errno says why.
 */
struct uvd_mm *uvd_mm_get(struct uvd_mm_table *t, struct uvd_caller *c);
/*
 * From now on uvd_mm_check() may be asked about it: c is in it (its maps are opened now, and stay those of this address
 * space). 0 or a negative errno.
 */
int uvd_mm_watch(struct uvd_mm *mm, struct uvd_caller *c);
/* Pages that are charged to it. Atomic: add returns the new sum. */
uint64_t uvd_mm_charge(struct uvd_mm *mm, int64_t pages);
/* Every address space with a charge: a process that was seen in it, and the pages. With t's lock: call nothing of t in fn. */
void uvd_mm_table_each(struct uvd_mm_table *t, void (*fn)(void *arg, pid_t tgid, uint64_t pages), void *arg);
/* uvd_mm_ref, uvd_mm_put, uvd_mm_alive, uvd_mm_read, uvd_mm_write, uvd_mm_check: include/uverbsd/backend.h */

#endif
