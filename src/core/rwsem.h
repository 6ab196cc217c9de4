/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A lock for many readers or one writer, like the kernel's struct rw_semaphore. Another thread than the one that took
 * it may release it: a call that waits for its client to get an fd continues on a thread of its own. (POSIX leaves
 * undefined what pthread_rwlock_unlock() by another thread does.)
 *
 * As in the kernel, a waiting writer keeps new readers out. A holder must keep the lock's memory valid until its call
 * to release the lock has returned.
 */
#ifndef UVD_RWSEM_H
#define UVD_RWSEM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct uvd_rwsem {
	atomic_int count; /* of readers; negative while a writer waits or is in */
	pthread_mutex_t lock; /* the waiters' */
	pthread_cond_t changed;
};

void uvd_rwsem_init(struct uvd_rwsem *sem);
void uvd_rwsem_fini(struct uvd_rwsem *sem);

/* down_read_trylock(): returns false if a writer holds the lock or waits for it. */
bool uvd_rwsem_try_read(struct uvd_rwsem *sem);
void uvd_rwsem_read(struct uvd_rwsem *sem);
void uvd_rwsem_read_done(struct uvd_rwsem *sem);

void uvd_rwsem_write(struct uvd_rwsem *sem);
void uvd_rwsem_write_done(struct uvd_rwsem *sem);

#endif
