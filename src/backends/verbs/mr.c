/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory regions of clients. The adapter does not know those that are not borrowed: their keys are ours, an index and a
 * tag that changes with each use of the index. Copies between a client's memory and the buffers that the adapter reaches.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uverbsd/log.h>
#include "backends/verbs/verbs.h"

enum { TAG_BITS = 8, MAX_INDEX = 1 << 20 };

/* In each key of ours. Adapters begin with small keys: so a borrowed region hardly ever has a key that is ours, too. */
#define KEY_BASE UINT32_C(0xf0000000)

/* Does the access need the adapter to reach the client's memory by itself? */
static bool access_is_remote(unsigned int access)
{
	return access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
			 IBV_ACCESS_MW_BIND | IBV_ACCESS_ON_DEMAND);
}

static int mr_refuse(const struct hca_device *dev, const struct uvd_mr *mr, const char *why)
{
	uvd_log_of_user(dev->ibdev->log, uvd_account_person(mr->pd->context->account), UVD_WARN,
			"%s: a registration of %llu bytes with access flags 0x%x is refused: %s",
			dev->ibdev->config.ibdev, (unsigned long long)mr->length, mr->access, why);
	return -EOPNOTSUPP;
}

/* Makes room for one more key. Caller holds the context's lock. */
static int keys_grow(struct hca_context *context)
{
	const uint32_t room = context->num_mrs ? context->num_mrs * 2 : 64;
	struct hca_key *mrs;

	if (room > MAX_INDEX || uvd_charge_bytes(context->context.account, (room - context->num_mrs) * sizeof(*mrs)))
		return -ENOMEM;
	mrs = realloc(context->mrs, room * sizeof(*mrs));
	if (!mrs) {
		uvd_uncharge_bytes(context->context.account, (room - context->num_mrs) * sizeof(*mrs));
		return -ENOMEM;
	}
	memset(mrs + context->num_mrs, 0, (room - context->num_mrs) * sizeof(*mrs));
	context->mrs = mrs;
	context->num_mrs = room;
	return 0;
}

/* Gives the region its key. Slot 0 stays free: a key below 256 is in no region. Caller holds the context's lock. */
static int keys_add(struct hca_context *context, struct hca_mr *mr)
{
	const uint32_t slots = context->num_mrs;
	uint32_t i = context->last_mr, tries = 0;

	do
		i = i + 1 < slots ? i + 1 : 1;
	while (++tries < slots && context->mrs[i].mr);
	if (tries >= slots) {
		if (keys_grow(context))
			return -ENOMEM;
		i = slots ?: 1;
	}
	context->last_mr = i;
	context->mrs[i].mr = mr;
	mr->index = i;
	mr->mr.lkey = mr->mr.rkey = KEY_BASE | i << TAG_BITS | context->mrs[i].tag++;
	atomic_fetch_add(&context->bounced, 1);
	return 0;
}

int hca_bounce_check(const struct uvd_mr *mr)
{
	if (access_is_remote(mr->access))
		return mr_refuse(hca_device(mr->pd->context->dev), mr,
				 "its data is copied (--memory=bounce), and peers cannot access it");
	return mr->iova + mr->length < mr->iova ? -EINVAL : 0;
}

int hca_bounce_mr(struct hca_mr *mr)
{
	struct hca_context *context = hca_context(mr->mr.pd->context);
	int ret = hca_bounce_check(&mr->mr);

	if (ret)
		return ret;
	uvd_lock(&context->lock);
	ret = keys_add(context, mr);
	uvd_unlock(&context->lock);
	return ret;
}

int hca_reg_mr(struct uvd_mr *base, struct uvd_udata *udata)
{
	struct hca_device *dev = hca_device(base->pd->context->dev);

	if (atomic_load(&dev->dead))
		return -EIO;
	if (dev->ibdev->config.memory == UVD_MEMORY_REFUSE)
		return mr_refuse(dev, base, "the device has --memory=refuse");
	if (!hca_borrows(dev))
		return hca_bounce_mr((struct hca_mr *)base);
	hca_borrow_mr((struct hca_mr *)base);
	return 0;
}

int hca_dereg_mr(struct uvd_mr *base)
{
	struct hca_context *context = hca_context(base->pd->context);
	struct hca_mr *mr = (struct hca_mr *)base;

	if (mr->borrowed)
		return hca_borrow_dereg(mr);
	if (!mr->index)
		return 0;
	/* When the client has its memory back, no copy may write to it. */
	uvd_lock(&context->lock);
	context->mrs[mr->index].mr = NULL;
	atomic_fetch_sub(&context->bounced, 1);
	while (mr->users)
		pthread_cond_wait(&context->unused, &context->lock);
	uvd_unlock(&context->lock);
	return 0;
}

static bool mr_has(const struct uvd_mr *mr, const struct hca_pd *pd, const struct ibv_sge *sge, bool write)
{
	return mr->lkey == sge->lkey && mr->pd == &pd->pd && sge->addr >= mr->iova &&
	       sge->addr - mr->iova <= mr->length && sge->length <= mr->length - (sge->addr - mr->iova) &&
	       (!write || (mr->access & IBV_ACCESS_LOCAL_WRITE));
}

/*
 * Finds the region of an entry, and becomes a user of it. Returns NULL: no region of the PD has this key, these bytes
 * and this access.
 */
static struct hca_mr *mr_use(struct hca_context *context, struct hca_pd *pd, const struct ibv_sge *sge, bool write)
{
	const uint32_t index = (sge->lkey & ~KEY_BASE) >> TAG_BITS;
	struct hca_mr *mr;

	uvd_lock(&context->lock);
	mr = index < context->num_mrs ? context->mrs[index].mr : NULL;
	if (mr && mr_has(&mr->mr, pd, sge, write))
		mr->users++;
	else
		mr = NULL;
	uvd_unlock(&context->lock);
	return mr;
}

static void mr_unuse(struct hca_context *context, struct hca_mr *mr)
{
	uvd_lock(&context->lock);
	if (!--mr->users)
		pthread_cond_broadcast(&context->unused);
	uvd_unlock(&context->lock);
}

bool hca_bounces(struct hca_context *context, struct hca_pd *pd, const struct ibv_sge *sges, uint32_t num_sge)
{
	struct hca_mr *mr = NULL;

	if (!hca_borrows(hca_device(context->context.dev)))
		return true;
	for (uint32_t i = 0; i < num_sge && !mr && atomic_load(&context->bounced); i++) {
		mr = mr_use(context, pd, &sges[i], false);
		if (mr)
			mr_unuse(context, mr);
	}
	return mr;
}

/* Returns the address of the entry's bytes in the client's memory. */
static uint64_t mr_addr(const struct hca_mr *mr, const struct ibv_sge *sge)
{
	return mr->mr.umem.addr + (sge->addr - mr->mr.iova);
}

/*
 * Returns a copy. A long list of entries lies in memory that the adapter reaches, so a client with borrowed regions can write
 * there by work requests.
 */
static struct ibv_sge hca_read_once(const struct ibv_sge *sge)
{
	const volatile struct ibv_sge *from = sge;

	return (struct ibv_sge){ .addr = from->addr, .length = from->length, .lkey = from->lkey };
}

int hca_gather(struct hca_context *context, struct hca_pd *pd, void *to, const struct ibv_sge *sges, uint32_t num_sge)
{
	struct hca_mr *mr;
	int ret = 0;

	for (uint32_t i = 0; i < num_sge && !ret; i++) {
		const struct ibv_sge sge = hca_read_once(&sges[i]);

		if (!sge.length)
			continue;
		mr = mr_use(context, pd, &sge, false);
		if (!mr)
			return -EFAULT;
		ret = uvd_mm_read(mr->mr.umem.mm, to, mr_addr(mr, &sge), sge.length);
		mr_unuse(context, mr);
		to = (char *)to + sge.length;
	}
	return ret;
}

int hca_scatter(struct hca_context *context, struct hca_pd *pd, const struct ibv_sge *sges, uint32_t num_sge,
		const void *from, uint32_t length)
{
	struct hca_mr *mr;
	int ret = 0;

	for (uint32_t i = 0; i < num_sge && length && !ret; i++) {
		const struct ibv_sge sge = hca_read_once(&sges[i]);
		const uint32_t part = sge.length < length ? sge.length : length;

		if (!part)
			continue;
		mr = mr_use(context, pd, &sge, true);
		if (!mr)
			return -EFAULT;
		ret = uvd_mm_write(mr->mr.umem.mm, mr_addr(mr, &sge), from, part);
		mr_unuse(context, mr);
		from = (const char *)from + part;
		length -= part;
	}
	return ret;
}
