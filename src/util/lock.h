/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Locks that clients share, and memory that one of them can make us wait for.
 *
 * A client's memory can be made to answer never (a FUSE file system or userfaultfd behind it, or its lock held), and not even
 * SIGKILL ends that wait in every case. So it must not be touched with a lock that another client needs. Such locks are taken
 * with uvd_lock(), and what touches a client's memory or asks about a client's process says so with uvd_might_fault(), as the
 * kernel's might_fault(): unless NDEBUG is defined, the program stops if both meet.
 *
 * For locks of one client alone (of an open file's handles, of an address space) pthread_mutex_lock() is right.
 */
#ifndef UVD_LOCK_H
#define UVD_LOCK_H

#include <pthread.h>

#ifdef NDEBUG
static inline void uvd_locks_count(int by)
{
}

static inline void uvd_might_fault(void)
{
}
#else
/* Adds to the number of shared locks that this thread holds. */
void uvd_locks_count(int by);
/* Stops the program if this thread holds one. */
void uvd_might_fault(void);
#endif

static inline void uvd_lock(pthread_mutex_t *lock)
{
	pthread_mutex_lock(lock);
	uvd_locks_count(1);
}

static inline void uvd_unlock(pthread_mutex_t *lock)
{
	uvd_locks_count(-1);
	pthread_mutex_unlock(lock);
}

#endif
