/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include "backends/soft/soft.h"

static int fetch_and_change(const struct soft_seg *seg, const struct soft_send_wqe *wqe, uint64_t *old)
{
	int err = soft_mem_read(seg->mr, old, seg->addr, sizeof(*old));
	uint64_t new;

	if (err)
		return err;
	if (wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		new = *old + wqe->compare_add;
	else
		new = *old == wqe->compare_add ? wqe->swap : *old;
	return new == *old ? 0 : soft_mem_write(seg->mr, seg->addr, &new, sizeof(new));
}

int soft_atomic(struct uvd_fabric *fabric, const struct soft_seg *seg, const struct soft_send_wqe *wqe, uint64_t *old)
{
	pthread_mutex_t *lock = &fabric->atomic_locks[seg->addr % 4096 / sizeof(uint64_t) % SOFT_ATOMIC_LOCKS];
	int err;

	pthread_mutex_lock(lock);
	if (wqe->opcode == IBV_WR_ATOMIC_WRITE)
		err = soft_mem_write(seg->mr, seg->addr, wqe->data, sizeof(*old));
	else
		err = fetch_and_change(seg, wqe, old);
	pthread_mutex_unlock(lock);
	return err;
}
