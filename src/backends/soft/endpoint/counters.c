/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Counters of the requests that arrive at a QP, and the limit of completion counters. */
#include <errno.h>
#include "backends/soft/endpoint/endpoint.h"

/* The values that a client reads, in this order. */
enum { PACKETS, BYTES, NUM_VALUES };

int soft_create_counters(struct uvd_counters *counters)
{
	struct soft_device *dev = soft_device(counters->context->dev);

	return soft_count(&dev->num_counters, dev->ibdev->config.limits.max_counters);
}

int soft_destroy_counters(struct uvd_counters *counters)
{
	soft_device(counters->context->dev)->num_counters--;
	return 0;
}

int soft_read_counters(struct uvd_counters *base, uint64_t *values, size_t num, uint32_t flags)
{
	struct soft_counters *counters = (struct soft_counters *)base;

	/* mlx5, too, refuses a client that has no room for all values. */
	if (num < NUM_VALUES)
		return -EINVAL;
	values[PACKETS] = atomic_load(&counters->packets);
	values[BYTES] = atomic_load(&counters->bytes);
	return 0;
}

int soft_bind_counters(struct uvd_qp *qp, struct uvd_counters *counters)
{
	return 0;
}

static void count_operation(struct soft_qp *qp, enum ibv_wr_opcode opcode)
{
	if (opcode == IBV_WR_RDMA_READ)
		uvd_comp_cntr_count(&qp->qp, UVD_COMP_CNTR_REMOTE_RDMA_READ, true);
	else if (opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		uvd_comp_cntr_count(&qp->qp, UVD_COMP_CNTR_REMOTE_RDMA_WRITE, true);
}

void soft_count_arrival(struct soft_qp *qp, const struct soft_arrival *arrival)
{
	struct soft_counters *counters =
		(struct soft_counters *)atomic_load_explicit(&qp->qp.counters, memory_order_acquire);
	/* An RDMA READ arrives as one packet without data. */
	const bool reads = arrival->opcode == IBV_WR_RDMA_READ;

	count_operation(qp, arrival->opcode);
	if (!counters)
		return;
	atomic_fetch_add_explicit(&counters->packets, reads ? 1 : arrival->packets, memory_order_relaxed);
	atomic_fetch_add_explicit(&counters->bytes, reads ? 0 : arrival->length, memory_order_relaxed);
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
