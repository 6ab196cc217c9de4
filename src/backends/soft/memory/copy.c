/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Between clients' memory and a mover's buffer. */
#include <errno.h>
#include "backends/soft/memory/memory.h"

static bool allowed(const struct soft_mr *mr, uint64_t addr, size_t len, bool write)
{
	return !mr->on_demand || !uvd_mm_check(mr->mr.umem.mm, addr, len, write);
}

int soft_mem_read(const struct soft_mr *mr, void *dst, uint64_t src, size_t len)
{
	if (mr->mr.dm) {
		soft_dm_read(mr->mr.dm, dst, src, len);
		return 0;
	}
	return allowed(mr, src, len, false) ? uvd_mm_read(mr->mr.umem.mm, dst, src, len) : -EFAULT;
}

int soft_mem_write(const struct soft_mr *mr, uint64_t dst, const void *src, size_t len)
{
	if (mr->mr.dm) {
		soft_dm_write(mr->mr.dm, dst, src, len);
		return 0;
	}
	return allowed(mr, dst, len, true) ? uvd_mm_write(mr->mr.umem.mm, dst, src, len) : -EFAULT;
}

enum soft_copy_error soft_seg_move(struct soft_mover *m, enum soft_place place, const struct soft_seg *seg, uint64_t offset,
				   void *bytes, size_t len, bool write)
{
	const struct uvd_mr *mr = &seg->mr->mr;
	enum soft_copy_error err = soft_mover_enter(m, place, mr->umem.mm, seg->mr->account);
	bool dead;
	int ret;

	if (err)
		return err;
	ret = write ? soft_mem_write(seg->mr, seg->addr + offset, bytes, len) :
		      soft_mem_read(seg->mr, bytes, seg->addr + offset, len);
	dead = ret && !mr->dm && !uvd_mm_alive(mr->umem.mm);
	if (!soft_mover_leave(m))
		return SOFT_COPY_LOST;
	return !ret ? SOFT_COPY_OK : dead ? SOFT_COPY_DEAD : SOFT_COPY_BAD;
}

bool soft_list_ok(const struct soft_list *list)
{
	struct soft_seg seg;

	for (const struct ibv_sge *sge = list->sge; sge < list->sge + list->num_sge; sge++) {
		if (!sge->length)
			continue;
		if (soft_seg_get(list->pd, sge->lkey, sge->addr, sge->length, list->access, &seg))
			return false;
		soft_seg_put(&seg);
	}
	return true;
}

enum soft_copy_error soft_list_move(struct soft_mover *m, enum soft_place place, const struct soft_list *list, uint64_t offset,
				    void *bytes, size_t len, bool write)
{
	enum soft_copy_error err;
	uint8_t *at = bytes;

	for (const struct ibv_sge *sge = list->sge; len && sge < list->sge + list->num_sge; sge++) {
		struct soft_seg seg;
		size_t n;

		if (offset >= sge->length) {
			offset -= sge->length;
			continue;
		}
		n = len < sge->length - offset ? len : sge->length - offset;
		if (soft_seg_get(list->pd, sge->lkey, sge->addr, sge->length, list->access, &seg))
			return SOFT_COPY_BAD;
		err = soft_seg_move(m, place, &seg, offset, at, n, write);
		soft_seg_put(&seg);
		if (err)
			return err;
		at += n;
		len -= n;
		offset = 0;
	}
	return len ? SOFT_COPY_BAD : SOFT_COPY_OK;
}
