/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Work queues and the indirection tables that spread packets over them. The kernel's ABI has no command that posts to a
 * work queue: a provider posts to memory that it maps. A client of this device maps none, so the adapter's queues stay
 * empty, and no completion of theirs exists: one that comes in a CQ is forged, and finds no record.
 */
#include <errno.h>
#include <stdlib.h>
#include "backends/verbs/verbs.h"

/* ---- work queues ------------------------------------------------------------------------------------------------- */

int hca_create_wq(struct uvd_wq *base, struct ibv_wq_init_attr *init, struct uvd_udata *udata)
{
	struct hca_context *context = hca_context(base->pd->context);
	const struct hca_device *dev = hca_device(base->pd->context->dev);
	struct hca_wq *wq = (struct hca_wq *)base;
	struct ibv_wq_init_attr request = *init;
	int ret;

	if (atomic_load(&dev->dead))
		return -EIO;
	/* libibverbs does not know the flag. */
	if (init->create_flags >= IBV_WQ_FLAGS_RESERVED)
		return -EOPNOTSUPP;
	if (init->wq_type != IBV_WQT_RQ)
		return -EINVAL;
	wq->charged = hca_srq_bytes(init->max_wr, init->max_sge);
	ret = hca_charge_rings(base->pd->context, HCA_WQ_RINGS, wq->charged);
	if (ret)
		return ret;
	request.wq_context = base;
	request.pd = ((struct hca_pd *)base->pd)->adapter;
	request.cq = ((struct hca_cq *)base->cq)->adapter;
	request.comp_mask = init->create_flags ? IBV_WQ_INIT_ATTR_FLAGS : 0;
	wq->adapter = ibv_create_wq(context->adapter, &request);
	if (!wq->adapter) {
		ret = hca_errno();
		hca_uncharge_rings(base->pd->context, HCA_WQ_RINGS, wq->charged);
		return ret;
	}
	init->max_wr = request.max_wr;
	init->max_sge = request.max_sge;
	base->wq_num = wq->adapter->wq_num;
	hca_object_add(context, &wq->object, HCA_WQ, wq->adapter);
	return 0;
}

/* The adapter checks the transition: it knows a work queue that has failed, and this backend does not. */
int hca_modify_wq(struct uvd_wq *base, const struct ibv_wq_attr *attr, struct uvd_udata *udata)
{
	struct hca_context *context = hca_context(base->pd->context);
	struct ibv_wq_attr copy = *attr;
	int ret;

	if (atomic_load(&hca_device(base->pd->context->dev)->dead))
		return -EIO;
	/* Two threads may modify a work queue at once: its state here is the one that the adapter had last. */
	uvd_lock(&context->lock);
	ret = hca_result(ibv_modify_wq(((struct hca_wq *)base)->adapter, &copy));
	if (!ret && (attr->attr_mask & IBV_WQ_ATTR_STATE))
		atomic_store(&base->state, attr->wq_state);
	uvd_unlock(&context->lock);
	return ret;
}

static int wq_end(void *adapter)
{
	return ibv_destroy_wq(adapter);
}

int hca_destroy_wq(struct uvd_wq *base)
{
	struct hca_wq *wq = (struct hca_wq *)base;
	const int ret = hca_object_destroy(hca_context(base->pd->context), &wq->object, wq_end);

	if (!ret)
		hca_uncharge_rings(base->pd->context, HCA_WQ_RINGS, wq->charged);
	return ret;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

int hca_create_rwq_ind_table(struct uvd_rwq_ind_table *base, struct uvd_udata *udata)
{
	struct hca_rwq_ind_table *table = (struct hca_rwq_ind_table *)base;
	const size_t num = (size_t)1 << base->log_ind_tbl_size;
	struct ibv_rwq_ind_table_init_attr request = { .log_ind_tbl_size = base->log_ind_tbl_size };
	int ret = 0;

	if (atomic_load(&hca_device(base->context->dev)->dead))
		return -EIO;
	request.ind_tbl = uvd_zalloc(num * sizeof(*request.ind_tbl));
	if (!request.ind_tbl)
		return -ENOMEM;
	for (size_t i = 0; i < num; i++)
		request.ind_tbl[i] = ((struct hca_wq *)base->ind_tbl[i])->adapter;
	table->adapter = ibv_create_rwq_ind_table(hca_context(base->context)->adapter, &request);
	if (table->adapter)
		base->ind_tbl_num = table->adapter->ind_tbl_num;
	else
		ret = hca_errno();
	free(request.ind_tbl);
	return ret;
}

int hca_destroy_rwq_ind_table(struct uvd_rwq_ind_table *base)
{
	/* The adapter refuses while a QP that is left there has the table: the table is left, too. See objects.c. */
	if (atomic_load(&hca_context(base->context)->stuck))
		return 0;
	return hca_destroyed(hca_device(base->context->dev),
			     ibv_destroy_rwq_ind_table(((struct hca_rwq_ind_table *)base)->adapter));
}

/* ---- the hash of a QP with a table ------------------------------------------------------------------------------- */

int hca_rx_hash_read(struct uvd_udata *udata, struct uverbsd_rx_hash *hash)
{
	int ret;

	if (uvd_udata_inlen(udata) > sizeof(*hash))
		return -EINVAL;
	ret = uvd_udata_in(udata, hash);
	if (ret)
		return ret;
	for (size_t i = 0; i < sizeof(hash->reserved); i++)
		if (hash->reserved[i])
			return -EINVAL;
	return hash->key_len <= sizeof(hash->key) ? 0 : -EINVAL;
}
