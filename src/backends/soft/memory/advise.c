/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Advice on regions that are registered on demand. Their memory is looked at when it is used, so there is nothing to
 * prefetch: what is left is to say whether it could be done, as the kernel's mlx5 says it.
 */
#include <errno.h>
#include "backends/soft/memory/mr.h"

static bool writes(enum ibv_advise_mr_advice advice)
{
	return advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
}

/* With a reference. */
static int get_mr(struct uvd_pd *pd, enum ibv_advise_mr_advice advice, uint32_t lkey, struct soft_mr **found)
{
	struct soft_mr_table *table = &soft_device(pd->context->dev)->mrs;
	struct soft_mr *mr;
	int err = 0;

	pthread_rwlock_rdlock(&table->lock);
	mr = soft_find_mr(table, lkey);
	if (!mr || !mr->on_demand || mr->mr.dm)
		err = -ENOENT;
	else if (mr->mr.pd != pd || (writes(advice) && !mr->mr.umem.writable))
		err = -EPERM;
	else
		soft_ref_get(&mr->ref);
	pthread_rwlock_unlock(&table->lock);
	*found = mr;
	return err;
}

static bool covers(const struct uvd_mr *mr, const struct ibv_sge *sge)
{
	return sge->addr >= mr->iova && sge->length <= mr->length && sge->addr - mr->iova <= mr->length - sge->length;
}

static int advise(struct uvd_pd *pd, enum ibv_advise_mr_advice advice, const struct ibv_sge *sge, bool look)
{
	struct soft_mr *mr;
	int err = get_mr(pd, advice, sge->lkey, &mr);

	if (err)
		return err;
	if (look && !covers(&mr->mr, sge))
		err = -EFAULT;
	else if (look && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		err = uvd_mm_check(mr->mr.umem.mm, mr->mr.umem.addr + (sge->addr - mr->mr.iova), sge->length,
				   writes(advice));
	soft_ref_put(&mr->ref);
	return err;
}

int soft_advise_mr(struct uvd_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, const struct ibv_sge *sg_list,
		   unsigned int num_sge)
{
	int err = advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT ? -EOPNOTSUPP : 0;

	/* Without FLUSH a driver answers before it has looked at the memory, but not before it has found the regions. */
	for (unsigned int i = 0; i < num_sge && !err; i++)
		err = advise(pd, advice, &sg_list[i], flags & IBV_ADVISE_MR_FLAG_FLUSH);
	return err;
}
