/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <string.h>
#include "backends/soft/memory/memory.h"

/* An atomic operation in progress. Others on the same place wait for it, as they would for that memory itself. */
struct soft_atomic {
	struct soft_atomic *next;
	struct uvd_mm_place place;
};

void soft_atomics_init(struct soft_atomics *atomics)
{
	pthread_mutex_init(&atomics->lock, NULL);
	pthread_cond_init(&atomics->changed, NULL);
}

void soft_atomics_destroy(struct soft_atomics *atomics)
{
	pthread_cond_destroy(&atomics->changed);
	pthread_mutex_destroy(&atomics->lock);
}

/* Caller holds atomics->lock. */
static bool is_under_way(const struct soft_atomics *atomics, const struct uvd_mm_place *place)
{
	for (const struct soft_atomic *a = atomics->under_way; a; a = a->next)
		if (!memcmp(&a->place, place, sizeof(*place)))
			return true;
	return false;
}

static void atomics_begin(struct soft_atomics *atomics, struct soft_atomic *atomic)
{
	pthread_mutex_lock(&atomics->lock);
	while (is_under_way(atomics, &atomic->place))
		pthread_cond_wait(&atomics->changed, &atomics->lock);
	atomic->next = atomics->under_way;
	atomics->under_way = atomic;
	pthread_mutex_unlock(&atomics->lock);
}

static void atomics_end(struct soft_atomics *atomics, struct soft_atomic *atomic)
{
	struct soft_atomic **p = &atomics->under_way;

	pthread_mutex_lock(&atomics->lock);
	while (*p != atomic)
		p = &(*p)->next;
	*p = atomic->next;
	pthread_cond_broadcast(&atomics->changed);
	pthread_mutex_unlock(&atomics->lock);
}

static int seg_find_place(const struct soft_seg *seg, struct uvd_mm_place *place)
{
	const struct uvd_mr *mr = &seg->mr->mr;

	if (!mr->dm)
		return uvd_mm_find(&mr->umem, seg->addr, place);
	*place = (struct uvd_mm_place){ { (uintptr_t)mr->dm }, seg->addr };
	return 0;
}

static int seg_change_word(const struct soft_seg *seg, struct soft_atomic_op *op)
{
	uint64_t new;
	int err;

	if (op->opcode == IBV_WR_ATOMIC_WRITE)
		return soft_mem_write(seg->mr, seg->addr, &op->value, sizeof(op->value));
	err = soft_mem_read(seg->mr, &op->value, seg->addr, sizeof(op->value));
	if (err)
		return err;
	if (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		new = op->value + op->compare_add;
	else
		new = op->value == op->compare_add ? op->swap : op->value;
	return new == op->value ? 0 : soft_mem_write(seg->mr, seg->addr, &new, sizeof(new));
}

enum soft_copy_error soft_atomic(struct soft_mover *m, struct soft_atomics *atomics, const struct soft_seg *seg,
				 struct soft_atomic_op *op)
{
	const struct uvd_mr *mr = &seg->mr->mr;
	enum soft_copy_error err = soft_mover_enter(m, SOFT_AT_RESPONDER, mr->umem.mm, seg->mr->account);
	struct soft_atomic atomic = { 0 };
	bool dead;
	int ret;

	if (err)
		return err;
	ret = seg_find_place(seg, &atomic.place);
	if (!ret) {
		atomics_begin(atomics, &atomic);
		ret = seg_change_word(seg, op);
		atomics_end(atomics, &atomic);
	}
	dead = ret && !mr->dm && !uvd_mm_alive(mr->umem.mm);
	if (!soft_mover_leave(m))
		return SOFT_COPY_LOST;
	return !ret ? SOFT_COPY_OK : dead ? SOFT_COPY_DEAD : SOFT_COPY_BAD;
}
