/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Locks that clients share, and a check that no thread waits for a client's memory under them.
 *
 * A client can make an access to its memory wait forever (by a FUSE file system or userfaultfd, or by holding its mm's
 * lock), and in some cases not even SIGKILL ends the wait. So no thread may access a client's memory while it holds a
 * lock that another client needs. Take such locks with uvd_lock(). Code that accesses a client's memory, or asks about
 * a client's process, calls uvd_might_fault(), like the kernel's might_fault(). Unless NDEBUG is defined, that stops
 * the program if the thread holds such a lock.
 *
 * Locks that only one client needs (maps_lock of struct uvd_mm, lock of struct uvd_peer) are taken with
 * pthread_mutex_lock(). docs/locking.md lists all locks.
 */
#ifndef UVD_LOCK_H
#define UVD_LOCK_H

#include <pthread.h>
#include <stdbool.h>

#ifdef NDEBUG
static inline void uvd_locks_count(int by)
{
}

static inline void uvd_might_fault(void)
{
}
#else
/* Adds `by` to the number of shared locks that this thread holds. */
void uvd_locks_count(int by);
/* Stops the program if this thread holds a shared lock. */
void uvd_might_fault(void);
#endif

static inline void uvd_lock(pthread_mutex_t *lock)
{
	pthread_mutex_lock(lock);
	uvd_locks_count(1);
}

/* Returns false if another thread holds it. */
static inline bool uvd_trylock(pthread_mutex_t *lock)
{
	if (pthread_mutex_trylock(lock))
		return false;
	uvd_locks_count(1);
	return true;
}

static inline void uvd_unlock(pthread_mutex_t *lock)
{
	uvd_locks_count(-1);
	pthread_mutex_unlock(lock);
}

#endif
