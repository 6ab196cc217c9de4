/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include "backends/soft/soft.h"

int soft_atomic(struct uvd_fabric *fabric, const struct soft_seg *seg, const struct soft_send_wqe *wqe, uint64_t *old)
{
	pthread_mutex_t *lock = &fabric->atomic_locks[seg->addr % 4096 / sizeof(uint64_t) % SOFT_ATOMIC_LOCKS];
	uint64_t new;
	int err;

	pthread_mutex_lock(lock);
	err = soft_mem_read(seg->mr, old, seg->addr, sizeof(*old));
	if (!err) {
		if (wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
			new = *old + wqe->compare_add;
		else
			new = *old == wqe->compare_add ? wqe->swap : *old;
		if (new != *old)
			err = soft_mem_write(seg->mr, seg->addr, &new, sizeof(new));
	}
	pthread_mutex_unlock(lock);
	return err;
}
