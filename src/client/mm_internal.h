/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* struct uvd_mm, for mm.c, mm_memory.c and mm_view.c. */
#ifndef UVD_CLIENT_MM_INTERNAL_H
#define UVD_CLIENT_MM_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include "client/mm.h"
#include "util/util.h"

struct member;
struct uvd_account;

struct uvd_mm {
	struct uvd_mm_table *table;
	struct list_head of_table;
	atomic_int refs; /* reaches 0 only under the table's lock */
	_Atomic uint64_t charged;
	struct uvd_account *account; /* of the client that was seen in it first; pays for the descriptors */
	int memfd;
	int mmfd; /* for uvd_mmfd_alive(): unlike memfd, it never waits for the mm's lock, which a client can hold */
	pid_t bulk_tgid; /* a process of it, for struct uvd_proc.bulk_by_number; valid while pidfd has not exited */
	int pidfd; /* of bulk_tgid; -1: none, do not use bulk_tgid */
	atomic_int mapsfd; /* -1 until uvd_mm_watch() */
	bool maps_query; /* set before mapsfd */
	pthread_mutex_t maps_lock; /* protects opening mapsfd and, without PROCMAP_QUERY, its position */
	uint64_t print; /* the fingerprint: see mm.c */
	pid_t base; /* struct uvd_proc.base of its processes */
	struct member *members;
	pthread_mutex_t views_lock; /* protects the list, and the last reference to each view */
	struct list_head views;
};

struct uvd_mapping;

/*
 * Is bulk_tgid still the id of the same process, and has the address space users? Once false, it stays false. pidfd
 * must not be -1.
 */
bool uvd_mm_number_is_ours(struct uvd_mm *mm);

/*
 * Finds the mapping that contains addr, or else the next one after it. Returns 0 or a negative errno. mapsfd must not
 * be -1.
 */
int uvd_mm_find_mapping(struct uvd_mm *mm, uint64_t addr, struct uvd_mapping *m);

#endif
