/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * ADVISE_MR for on-demand regions. Their memory is accessed only when a request uses it, so there is nothing to
 * prefetch. This file tells whether a prefetch could succeed, with the errors of the kernel's mlx5.
 */
#include <errno.h>
#include "backends/soft/memory/mr.h"

static bool advice_writes(enum ibv_advise_mr_advice advice)
{
	return advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
}

/* Looks up an on-demand region and takes a reference to it. Returns 0, -ENOENT or -EPERM. */
static int get_mr(struct uvd_pd *pd, enum ibv_advise_mr_advice advice, uint32_t lkey, struct soft_mr **found)
{
	struct soft_mr_table *table = &soft_device(pd->context->dev)->mrs;
	struct soft_mr *mr;
	int err = 0;

	pthread_rwlock_rdlock(&table->lock);
	mr = soft_find_mr(table, lkey);
	if (!mr || !mr->on_demand || mr->mr.dm)
		err = -ENOENT;
	else if (mr->mr.pd != pd || (advice_writes(advice) && !mr->mr.umem.writable))
		err = -EPERM;
	else
		soft_ref_get(&mr->ref);
	pthread_rwlock_unlock(&table->lock);
	*found = mr;
	return err;
}

static bool advise_covers(const struct uvd_mr *mr, const struct ibv_sge *sge)
{
	return sge->addr >= mr->iova && sge->length <= mr->length && sge->addr - mr->iova <= mr->length - sge->length;
}

static int advise_sge(struct uvd_pd *pd, enum ibv_advise_mr_advice advice, const struct ibv_sge *sge, bool look)
{
	struct soft_mr *mr;
	int err = get_mr(pd, advice, sge->lkey, &mr);

	if (err)
		return err;
	if (look && !advise_covers(&mr->mr, sge))
		err = -EFAULT;
	else if (look && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		err = uvd_mm_check(mr->mr.umem.mm, mr->mr.umem.addr + (sge->addr - mr->mr.iova), sge->length,
				   advice_writes(advice));
	soft_ref_put(&mr->ref);
	return err;
}

int soft_advise_mr(struct uvd_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, const struct ibv_sge *sg_list,
		   unsigned int num_sge)
{
	int err = advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT ? -EOPNOTSUPP : 0;

	/* Without FLUSH a driver replies before it looks at the memory, but after it has looked up the regions. */
	for (unsigned int i = 0; i < num_sge && !err; i++)
		err = advise_sge(pd, advice, &sg_list[i], flags & IBV_ADVISE_MR_FLAG_FLUSH);
	return err;
}
