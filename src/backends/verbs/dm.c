/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Device memory, and regions of it. The adapter reaches it without any memory of the client. So the engine registers the
 * regions, whatever --memory says, their keys are the adapter's, and peers reach them. A provider may map device memory
 * into the daemon: it counts as a ring, of its full size.
 */
#include <errno.h>
#include "backends/verbs/verbs.h"

int hca_alloc_dm(struct uvd_dm *base)
{
	struct ibv_alloc_dm_attr attr = { .length = base->length, .log_align_req = base->alignment };
	struct hca_dm *dm = (struct hca_dm *)base;
	int ret;

	if (atomic_load(&hca_device(base->context->dev)->dead))
		return -EIO;
	ret = hca_charge_rings(base->context, HCA_DM_RINGS, base->length);
	if (ret)
		return ret;
	dm->adapter = ibv_alloc_dm(hca_context(base->context)->adapter, &attr);
	if (dm->adapter)
		return 0;
	ret = hca_errno();
	hca_uncharge_rings(base->context, HCA_DM_RINGS, base->length);
	return ret;
}

int hca_dealloc_dm(struct uvd_dm *base)
{
	const int ret = hca_destroyed(hca_device(base->context->dev), ibv_free_dm(((struct hca_dm *)base)->adapter));

	if (!ret)
		hca_uncharge_rings(base->context, HCA_DM_RINGS, base->length);
	return ret;
}

int hca_reg_dm_mr(struct uvd_mr *base, struct uvd_udata *udata)
{
	struct hca_context *context = hca_context(base->pd->context);
	struct hca_mr *mr = (struct hca_mr *)base;

	if (atomic_load(&hca_device(base->pd->context->dev)->dead))
		return -EIO;
	mr->of_dm = ibv_reg_dm_mr(((struct hca_pd *)base->pd)->adapter, ((struct hca_dm *)base->dm)->adapter,
				  base->dm_offset, base->length, base->access);
	if (!mr->of_dm)
		return hca_errno();
	base->lkey = mr->of_dm->lkey;
	base->rkey = mr->of_dm->rkey;
	uvd_lock(&context->lock);
	list_add_tail(&mr->of_context, &context->dm_mrs);
	atomic_fetch_add(&context->num_dm_mrs, 1);
	uvd_unlock(&context->lock);
	return 0;
}

static int dm_mr_dereg(struct hca_mr *mr)
{
	struct hca_context *context = hca_context(mr->mr.pd->context);
	const int ret = hca_destroyed(hca_device(context->context.dev), ibv_dereg_mr(mr->of_dm));

	if (ret)
		return ret;
	uvd_lock(&context->lock);
	list_del_init(&mr->of_context);
	atomic_fetch_sub(&context->num_dm_mrs, 1);
	uvd_unlock(&context->lock);
	return 0;
}

int hca_dereg_any_mr(struct uvd_mr *mr)
{
	return mr->dm ? dm_mr_dereg((struct hca_mr *)mr) : hca_dereg_mr(mr);
}

/* Caller holds the context's lock. */
static bool dm_has_entry(const struct hca_context *context, const struct hca_pd *pd, const struct ibv_sge *sge)
{
	const struct hca_mr *mr;

	list_for_each_entry(mr, &context->dm_mrs, of_context)
		if (mr->mr.lkey == sge->lkey && mr->mr.pd == &pd->pd)
			return true;
	return false;
}

bool hca_dm_has(struct hca_context *context, const struct hca_pd *pd, const struct ibv_sge *sges, uint32_t num_sge)
{
	bool has = num_sge && atomic_load(&context->num_dm_mrs);

	if (!has)
		return false;
	/* All of them: a key of the PD's buffers beside one of device memory would reach the buffers. */
	uvd_lock(&context->lock);
	for (uint32_t i = 0; i < num_sge && has; i++)
		has = dm_has_entry(context, pd, &sges[i]);
	uvd_unlock(&context->lock);
	return has;
}
