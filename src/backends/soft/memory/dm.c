/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Device memory: bytes of the engine that only RDMA can reach. A region of it is zero based: an address is an offset in
 * the region. The configuration limits how much all clients of the device can have together.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "backends/soft/memory/mr.h"

enum { MAX_ALIGNMENT = 12 /* log2: a page */ };

static struct soft_dm *soft_dm(struct uvd_dm *dm)
{
	return (struct soft_dm *)dm;
}

static int dm_reserve(struct soft_device *dev, uint64_t length)
{
	const uint64_t max = dev->ibdev->config.limits.max_dm_size;
	uint64_t used = atomic_load(&dev->dm_used);

	do {
		if (length > max - used)
			return -ENOMEM;
	} while (!atomic_compare_exchange_weak(&dev->dm_used, &used, used + length));
	return 0;
}

int soft_alloc_dm(struct uvd_dm *base)
{
	struct soft_device *dev = soft_device(base->context->dev);
	struct soft_dm *dm = soft_dm(base);
	int err;

	if (!base->length || base->alignment > MAX_ALIGNMENT)
		return -EINVAL;
	err = dm_reserve(dev, base->length);
	if (err)
		return err;
	err = uvd_charge_bytes(base->context->account, base->length);
	if (err)
		goto unreserve;
	dm->bytes = calloc(1, base->length);
	if (!dm->bytes) {
		err = -ENOMEM;
		goto uncharge;
	}
	pthread_mutex_init(&dm->lock, NULL);
	return 0;
uncharge:
	uvd_uncharge_bytes(base->context->account, base->length);
unreserve:
	atomic_fetch_sub(&dev->dm_used, base->length);
	return err;
}

int soft_dealloc_dm(struct uvd_dm *base)
{
	struct soft_dm *dm = soft_dm(base);

	pthread_mutex_destroy(&dm->lock);
	free(dm->bytes);
	uvd_uncharge_bytes(base->context->account, base->length);
	atomic_fetch_sub(&soft_device(base->context->dev)->dm_used, base->length);
	return 0;
}

int soft_reg_dm_mr(struct uvd_mr *mr, struct uvd_udata *udata)
{
	return soft_mr_add((struct soft_mr *)mr, 0);
}

void soft_dm_read(struct uvd_dm *base, void *dst, uint64_t offset, size_t len)
{
	struct soft_dm *dm = soft_dm(base);

	pthread_mutex_lock(&dm->lock);
	memcpy(dst, dm->bytes + offset, len);
	pthread_mutex_unlock(&dm->lock);
}

void soft_dm_write(struct uvd_dm *base, uint64_t offset, const void *src, size_t len)
{
	struct soft_dm *dm = soft_dm(base);

	pthread_mutex_lock(&dm->lock);
	memcpy(dm->bytes + offset, src, len);
	pthread_mutex_unlock(&dm->lock);
}
