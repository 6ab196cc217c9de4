/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Counters, and how many completion counters there are. */
#include <errno.h>
#include "backends/soft/soft.h"

/* What a client reads, in this order. */
enum { PACKETS, BYTES, NUM_VALUES };

int soft_create_counters(struct uvd_counters *counters)
{
	return 0;
}

int soft_destroy_counters(struct uvd_counters *counters)
{
	return 0;
}

int soft_read_counters(struct uvd_counters *base, uint64_t *values, size_t num, uint32_t flags)
{
	struct soft_counters *counters = (struct soft_counters *)base;

	/* As mlx5: there must be room for all of them. */
	if (num < NUM_VALUES)
		return -EINVAL;
	values[PACKETS] = atomic_load(&counters->packets);
	values[BYTES] = atomic_load(&counters->bytes);
	return 0;
}

void soft_counters_add(struct uvd_counters *base, uint64_t packets, uint64_t bytes)
{
	struct soft_counters *counters = (struct soft_counters *)base;

	atomic_fetch_add_explicit(&counters->packets, packets, memory_order_relaxed);
	atomic_fetch_add_explicit(&counters->bytes, bytes, memory_order_relaxed);
}

int soft_create_comp_cntr(struct uvd_comp_cntr *cntr)
{
	struct soft_device *dev = soft_device(cntr->context->dev);

	return soft_count(&dev->num_comp_cntrs, dev->ibdev->config.limits.max_cq);
}

int soft_destroy_comp_cntr(struct uvd_comp_cntr *cntr)
{
	soft_device(cntr->context->dev)->num_comp_cntrs--;
	return 0;
}
