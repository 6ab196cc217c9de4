/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Keys: 24 bits of index and 8 of tag. The tag changes each time an index is used again, and indexes come back as late as
 * possible, so a stale key fails.
 */
#include <errno.h>
#include <stdlib.h>
#include "backends/soft/soft.h"

enum { TAG_BITS = 8, MAX_INDEX = (1 << 24) - 1 };

struct soft_mr_slot {
	struct soft_mr *mr;
	uint32_t next_free; /* 0: the last */
	uint8_t tag;
};

int soft_mr_table_init(struct soft_mr_table *table)
{
	table->room = 1;
	table->slots = calloc(1, sizeof(table->slots[0]));
	return table->slots ? -pthread_rwlock_init(&table->lock, NULL) : -ENOMEM;
}

void soft_mr_table_destroy(struct soft_mr_table *table)
{
	pthread_rwlock_destroy(&table->lock);
	free(table->slots);
}

static void free_index(struct soft_mr_table *table, uint32_t index)
{
	table->slots[index].next_free = 0;
	if (table->free_last)
		table->slots[table->free_last].next_free = index;
	else
		table->free_first = index;
	table->free_last = index;
}

static int grow(struct soft_mr_table *table)
{
	uint32_t room = table->room < 64 ? 128 : table->room * 2;
	struct soft_mr_slot *slots;

	if (room > MAX_INDEX + 1)
		room = MAX_INDEX + 1;
	if (room == table->room)
		return -ENOMEM;
	slots = realloc(table->slots, room * sizeof(slots[0]));
	if (!slots)
		return -ENOMEM;
	table->slots = slots;
	for (uint32_t i = table->room; i < room; i++) {
		slots[i] = (struct soft_mr_slot){ 0 };
		free_index(table, i);
	}
	table->room = room;
	return 0;
}

int soft_reg_mr(struct uvd_mr *base)
{
	struct soft_device *dev = soft_device(base->pd->context->dev);
	const struct uvd_limits *limits = &dev->ibdev->config.limits;
	struct soft_mr_table *table = &dev->mrs;
	struct soft_mr *mr = (struct soft_mr *)base;
	struct soft_mr_slot *slot;
	uint32_t index;
	int err = 0;

	/* The kernel's core has checked neither: rdmavt and rxe leave both to the driver. */
	if (base->length > limits->max_mr_size || base->iova + base->length < base->iova)
		return -EINVAL;

	pthread_rwlock_wrlock(&table->lock);
	if (table->count >= (uint32_t)limits->max_mr)
		err = -ENOMEM;
	else if (!table->free_first)
		err = grow(table);
	if (err)
		goto out;
	index = table->free_first;
	slot = &table->slots[index];
	table->free_first = slot->next_free;
	if (!table->free_first)
		table->free_last = 0;
	table->count++;
	mr->dev = dev;
	base->lkey = base->rkey = index << TAG_BITS | ++slot->tag;
	slot->mr = mr;
out:
	pthread_rwlock_unlock(&table->lock);
	return err;
}

int soft_dereg_mr(struct uvd_mr *base)
{
	struct soft_mr *mr = (struct soft_mr *)base;
	struct soft_mr_table *table = &mr->dev->mrs;
	uint32_t index = base->lkey >> TAG_BITS;

	pthread_rwlock_wrlock(&table->lock);
	table->slots[index].mr = NULL;
	free_index(table, index);
	table->count--;
	pthread_rwlock_unlock(&table->lock);
	soft_ref_wait(&mr->ref);
	return 0;
}

static struct soft_mr *get(struct soft_mr_table *table, uint32_t key)
{
	uint32_t index = key >> TAG_BITS;
	struct soft_mr *mr = NULL;

	pthread_rwlock_rdlock(&table->lock);
	if (index < table->room)
		mr = table->slots[index].mr;
	if (mr && mr->mr.lkey != key)
		mr = NULL;
	if (mr)
		soft_ref_get(&mr->ref);
	pthread_rwlock_unlock(&table->lock);
	return mr;
}

static bool covers(const struct uvd_mr *mr, uint64_t addr, uint32_t length)
{
	return addr >= mr->iova && length <= mr->length && addr - mr->iova <= mr->length - length;
}

int soft_seg_get(struct uvd_pd *pd, uint32_t key, uint64_t addr, uint32_t length, unsigned int access,
		 struct soft_seg *seg)
{
	struct soft_mr *mr = get(&soft_device(pd->context->dev)->mrs, key);

	if (!mr)
		return -EINVAL;
	if (mr->mr.pd != pd || (mr->mr.access & access) != access || !covers(&mr->mr, addr, length)) {
		soft_ref_put(&mr->ref);
		return -EINVAL;
	}
	seg->mr = mr;
	seg->addr = mr->mr.umem.addr + (addr - mr->mr.iova);
	seg->length = length;
	return 0;
}

int soft_segs_get(struct uvd_pd *pd, const struct ibv_sge *sge, int num_sge, unsigned int access, struct soft_seg *segs)
{
	int n = 0;

	for (int i = 0; i < num_sge; i++) {
		if (!sge[i].length)
			continue;
		if (soft_seg_get(pd, sge[i].lkey, sge[i].addr, sge[i].length, access, &segs[n])) {
			soft_segs_put(segs, n);
			return -EINVAL;
		}
		n++;
	}
	return n;
}

void soft_segs_put(struct soft_seg *segs, int n)
{
	for (int i = 0; i < n; i++)
		soft_ref_put(&segs[i].mr->ref);
}
