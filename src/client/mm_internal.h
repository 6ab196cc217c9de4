/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The inside of an address space, for mm.c, mm_memory.c and mm_view.c. */
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
	struct uvd_account *account; /* whose client was seen in it first: pays for the descriptors */
	int memfd;
	int mmfd; /* for uvd_mmfd_alive(): unlike memfd it never waits for the address space's lock, which its owner may hold */
	pid_t bulk_tgid; /* struct uvd_proc.bulk_by_number: a process of it, */
	int pidfd; /* which it is as long as this says so; -1: none */
	atomic_int mapsfd; /* -1 until uvd_mm_watch() */
	bool maps_query; /* set before mapsfd */
	pthread_mutex_t maps_lock; /* the position in mapsfd, where its text has to be read */
	uint64_t print;
	struct member *members;
	pthread_mutex_t views_lock; /* the list */
	struct list_head views;
};

struct uvd_mapping;

/* Is bulk_tgid still the process's, and has the address space users? Neither comes back once it is lost. pidfd is not -1. */
bool uvd_mm_number_is_ours(struct uvd_mm *mm);

/* The mapping that contains addr, or the next one after it. 0 or a negative errno. mapsfd is not -1. */
int uvd_mm_find_mapping(struct uvd_mm *mm, uint64_t addr, struct uvd_mapping *m);

#endif
