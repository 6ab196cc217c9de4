/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory regions and their keys. A key is an index and a tag. The tag changes each time the index is reused, and of the
 * free indexes the one that was freed first is reused first, so a stale key fails.
 */
#include <errno.h>
#include <stdlib.h>
#include "backends/soft/memory/mr.h"
#include "explain/explain.h"

enum { MAX_INDEX = (1 << 24) - 1 };

int soft_count(atomic_int *count, int max)
{
	if (atomic_fetch_add(count, 1) < max)
		return 0;
	atomic_fetch_sub(count, 1);
	return -ENOMEM;
}

int soft_count_told(atomic_int *count, int max, const char *what, struct uvd_udata *udata)
{
	const int err = soft_count(count, max);

	return err ? uvd_udata_refuse(udata, err, &uvd_why(DEVICE_FULL, { max }, { .word = what })) : 0;
}

int soft_mr_table_init(struct soft_mr_table *table)
{
	table->room = 1;
	table->slots = calloc(1, sizeof(table->slots[0]));
	return table->slots ? -pthread_rwlock_init(&table->lock, NULL) : -ENOMEM;
}

void soft_mr_table_destroy(struct soft_mr_table *table)
{
	pthread_rwlock_destroy(&table->lock);
	soft_ended_free(table);
	free(table->slots);
}

void soft_index_give(struct soft_mr_table *table, uint32_t index)
{
	table->slots[index].next_free = 0;
	if (table->free_last)
		table->slots[table->free_last].next_free = index;
	else
		table->free_first = index;
	table->free_last = index;
}

static int mr_table_grow(struct soft_mr_table *table)
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
		soft_index_give(table, i);
	}
	table->room = room;
	return 0;
}

uint32_t soft_index_take(struct soft_mr_table *table)
{
	uint32_t index;

	if (!table->free_first && mr_table_grow(table))
		return 0;
	index = table->free_first;
	table->free_first = table->slots[index].next_free;
	if (!table->free_first)
		table->free_last = 0;
	return index;
}

/* An implicit region is on demand and covers the whole address space. */
static bool is_implicit(const struct uvd_mr *mr)
{
	return (mr->access & IBV_ACCESS_ON_DEMAND) && !mr->umem.addr && mr->length == UINT64_MAX;
}

int soft_mr_add(struct soft_mr *mr, uint32_t spare)
{
	struct soft_device *dev = soft_device(mr->mr.pd->context->dev);
	struct soft_mr_table *table = &dev->mrs;
	uint32_t index = 0;

	/* The key table grows by a slot for each region. */
	if (uvd_charge_bytes(mr->mr.pd->context->account, sizeof(struct soft_mr_slot)))
		return -ENOMEM;
	pthread_rwlock_wrlock(&table->lock);
	if (table->num_mrs < (uint32_t)dev->ibdev->config.limits.max_mr + spare)
		index = soft_index_take(table);
	if (index) {
		table->num_mrs++;
		mr->dev = dev;
		mr->account = mr->mr.pd->context->account;
		mr->on_demand = mr->mr.access & IBV_ACCESS_ON_DEMAND;
		mr->mr.lkey = mr->mr.rkey = index << SOFT_TAG_BITS | ++table->slots[index].tag;
		table->slots[index].mr = mr;
	}
	pthread_rwlock_unlock(&table->lock);
	if (!index)
		uvd_uncharge_bytes(mr->mr.pd->context->account, sizeof(struct soft_mr_slot));
	return index ? 0 : -ENOMEM;
}

/* The core checks neither the range nor the limit. Neither do the kernel's core, rdmavt and rxe. */
static int add_mr(struct uvd_mr *mr, uint32_t spare)
{
	if (mr->iova + mr->length < mr->iova)
		return -EINVAL;
	if (mr->length > mr->pd->context->dev->config.limits.max_mr_size && !is_implicit(mr))
		return -EINVAL;
	return soft_mr_add((struct soft_mr *)mr, spare);
}

int soft_reg_mr(struct uvd_mr *base, struct uvd_udata *udata)
{
	return add_mr(base, 0);
}

/*
 * A new translation gets a new region with new keys, and the old keys become invalid. A change of access rights or PD
 * keeps the keys. An access in progress is still allowed what it was; the next chunk of the same request is checked
 * anew.
 */
int soft_rereg_mr(struct uvd_mr *base, int flags, struct uvd_mr *to, struct uvd_udata *udata)
{
	struct soft_mr *mr = (struct soft_mr *)base;
	struct soft_mr_table *table = &mr->dev->mrs;
	int err;

	pthread_rwlock_wrlock(&table->lock);
	/* As for deregistration: no window may be bound to it. */
	err = mr->num_mws ? -EINVAL : 0;
	if (!err && !(flags & IBV_REREG_MR_CHANGE_TRANSLATION)) {
		base->pd = to->pd;
		base->access = to->access;
	}
	pthread_rwlock_unlock(&table->lock);
	if (err || !(flags & IBV_REREG_MR_CHANGE_TRANSLATION))
		return err ? err : UVD_REREG_CHANGED;
	/* One more than the limit: the old region is still there. */
	err = add_mr(to, 1);
	return err ? err : UVD_REREG_NEW;
}

int soft_dereg_mr(struct uvd_mr *base)
{
	struct soft_mr *mr = (struct soft_mr *)base;
	struct soft_mr_table *table = &mr->dev->mrs;
	uint32_t index = base->lkey >> SOFT_TAG_BITS;

	pthread_rwlock_wrlock(&table->lock);
	if (mr->num_mws) {
		/* As rxe: a region with bound windows cannot be deregistered (IBTA 10.6.7.2.6). */
		pthread_rwlock_unlock(&table->lock);
		return -EINVAL;
	}
	table->slots[index].mr = NULL;
	soft_index_give(table, index);
	table->num_mrs--;
	soft_key_ended(table, base->pd->context->account, base->lkey, false, base->length);
	pthread_rwlock_unlock(&table->lock);
	uvd_uncharge_bytes(base->pd->context->account, sizeof(struct soft_mr_slot));
	soft_ref_wait(&mr->ref);
	if (mr->view)
		uvd_mm_view_put(mr->view);
	return 0;
}

struct soft_mr *soft_find_mr(struct soft_mr_table *table, uint32_t key)
{
	uint32_t index = key >> SOFT_TAG_BITS;
	struct soft_mr *mr = index < table->room ? table->slots[index].mr : NULL;

	return mr && mr->mr.lkey == key ? mr : NULL;
}

bool soft_mr_covers(const struct uvd_mr *mr, uint64_t addr, uint32_t length)
{
	return addr >= mr->iova && length <= mr->length && addr - mr->iova <= mr->length - length;
}

/* Fills seg, and takes a reference to mr, and to mw unless NULL. Caller holds the table's lock. Returns 0. */
static int seg_set(struct soft_seg *seg, struct soft_mr *mr, struct soft_mw *mw, uint64_t addr, uint32_t length)
{
	seg->mr = mr;
	seg->mw = mw;
	seg->addr = (mr->mr.dm ? mr->mr.dm_offset : mr->mr.umem.addr) + (addr - mr->mr.iova);
	seg->length = length;
	soft_ref_get(&mr->ref);
	if (mw)
		soft_ref_get(&mw->ref);
	return 0;
}

static bool mr_allows(const struct soft_mr *mr, struct uvd_pd *pd, uint64_t addr, uint32_t length, unsigned int access)
{
	return mr->mr.pd == pd && (mr->mr.access & access) == access && soft_mr_covers(&mr->mr, addr, length);
}

int soft_seg_get(struct uvd_pd *pd, uint32_t key, uint64_t addr, uint32_t length, unsigned int access,
		 struct soft_seg *seg)
{
	struct soft_mr_table *table = &soft_device(pd->context->dev)->mrs;
	struct soft_mr *mr;
	int err = -EINVAL;

	pthread_rwlock_rdlock(&table->lock);
	mr = soft_find_mr(table, key);
	if (mr && mr_allows(mr, pd, addr, length, access))
		err = seg_set(seg, mr, NULL, addr, length);
	pthread_rwlock_unlock(&table->lock);
	return err;
}

int soft_remote_seg_get(struct uvd_pd *pd, uint32_t qpn, uint32_t key, uint64_t addr, uint32_t length,
			unsigned int access, struct soft_seg *seg)
{
	struct soft_mr_table *table = &soft_device(pd->context->dev)->mrs;
	uint32_t index = key >> SOFT_TAG_BITS;
	struct soft_mr *mr;
	struct soft_mw *mw;
	int err = -EINVAL;

	pthread_rwlock_rdlock(&table->lock);
	mr = soft_find_mr(table, key);
	mw = index < table->room ? table->slots[index].mw : NULL;
	if (mr && mr_allows(mr, pd, addr, length, access))
		err = seg_set(seg, mr, NULL, addr, length);
	else if (mw && soft_window_allows(mw, pd, qpn, key, addr, length, access))
		err = seg_set(seg, mw->mr, mw, mw->mr_addr + (addr - mw->start), length);
	pthread_rwlock_unlock(&table->lock);
	return err;
}

void soft_seg_put(struct soft_seg *seg)
{
	soft_ref_put(&seg->mr->ref);
	if (seg->mw)
		soft_ref_put(&seg->mw->ref);
}
