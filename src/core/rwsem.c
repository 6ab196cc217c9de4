/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "core/rwsem.h"

/* A writer subtracts this from the count: more than there can be readers. */
enum { WRITER = 1 << 30 };

void uvd_rwsem_init(struct uvd_rwsem *sem)
{
	atomic_init(&sem->count, 0);
	pthread_mutex_init(&sem->lock, NULL);
	pthread_cond_init(&sem->changed, NULL);
}

void uvd_rwsem_fini(struct uvd_rwsem *sem)
{
	pthread_mutex_destroy(&sem->lock);
	pthread_cond_destroy(&sem->changed);
}

bool uvd_rwsem_try_read(struct uvd_rwsem *sem)
{
	int count = atomic_load(&sem->count);

	while (count >= 0)
		if (atomic_compare_exchange_weak(&sem->count, &count, count + 1))
			return true;
	return false;
}

void uvd_rwsem_read(struct uvd_rwsem *sem)
{
	if (uvd_rwsem_try_read(sem))
		return;
	pthread_mutex_lock(&sem->lock);
	while (!uvd_rwsem_try_read(sem))
		pthread_cond_wait(&sem->changed, &sem->lock);
	pthread_mutex_unlock(&sem->lock);
}

void uvd_rwsem_read_done(struct uvd_rwsem *sem)
{
	if (atomic_fetch_sub(&sem->count, 1) - 1 != -WRITER)
		return;
	/* The last reader wakes the writer: under the lock, or the writer could be between its check and its wait. */
	pthread_mutex_lock(&sem->lock);
	pthread_cond_broadcast(&sem->changed);
	pthread_mutex_unlock(&sem->lock);
}

void uvd_rwsem_write(struct uvd_rwsem *sem)
{
	pthread_mutex_lock(&sem->lock);
	while (atomic_load(&sem->count) < 0) /* another writer; the lock keeps further ones out */
		pthread_cond_wait(&sem->changed, &sem->lock);
	atomic_fetch_sub(&sem->count, WRITER);
	while (atomic_load(&sem->count) != -WRITER)
		pthread_cond_wait(&sem->changed, &sem->lock);
	pthread_mutex_unlock(&sem->lock);
}

void uvd_rwsem_write_done(struct uvd_rwsem *sem)
{
	pthread_mutex_lock(&sem->lock);
	atomic_fetch_add(&sem->count, WRITER);
	pthread_cond_broadcast(&sem->changed);
	pthread_mutex_unlock(&sem->lock);
}
