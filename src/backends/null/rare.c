/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Operations that few adapters have. */
#include <errno.h>
#include "backends/null/null.h"

int null_query_context(struct uvd_context *context)
{
	return 0;
}

int null_modify_cq(struct uvd_cq *cq, uint16_t count, uint16_t period)
{
	return 0;
}

int null_dm(struct uvd_dm *dm)
{
	return 0;
}

int null_advise_mr(struct uvd_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, const struct ibv_sge *sg_list,
		   unsigned int num_sge)
{
	return advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT ? -EOPNOTSUPP : 0;
}

int null_dmah(struct uvd_dmah *dmah)
{
	return 0;
}

/* The device has no memory that a client could map. */
int null_pgoff_to_mmap_entry(struct uvd_context *context, uint64_t pgoff, uint64_t *length)
{
	return -EINVAL;
}

int null_counters(struct uvd_counters *counters)
{
	return 0;
}

/* Leaves the values, of packets and bytes, at 0. */
int null_read_counters(struct uvd_counters *counters, uint64_t *values, size_t num, uint32_t flags)
{
	return 0;
}

int null_bind_counters(struct uvd_qp *qp, struct uvd_counters *counters)
{
	return 0;
}

int null_comp_cntr(struct uvd_comp_cntr *cntr)
{
	return 0;
}
