/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Moves pieces of one client's memory with as few system calls as possible. */
#include "backends/soft/memory/memory.h"

/*
 * Can the piece be moved together with the others? On-demand regions cannot, because they are checked before each
 * access. Large pieces that may have a view should not, because alone they need only one copy.
 */
static bool is_like_the_others(const struct soft_pieces *pieces, struct soft_mr *mr, uint32_t len)
{
	if (mr->mr.dm || mr->on_demand || (pieces->apart && soft_mr_may_have_view(mr, len)))
		return false;
	return !pieces->num || pieces->mm == mr->mr.umem.mm;
}

/*
 * Returns true, and sets *at, if the piece lies in the last run, or directly behind it: then that run becomes longer.
 */
static bool join_last_run(struct soft_pieces *pieces, uint64_t addr, uint32_t len, uint32_t *at)
{
	struct iovec *run = &pieces->runs[pieces->num_runs - 1];
	uint64_t start = (uintptr_t)run->iov_base;

	if (!pieces->apart && addr >= start && addr - start <= run->iov_len && len <= run->iov_len - (addr - start)) {
		*at = pieces->length - run->iov_len + (addr - start);
		return true;
	}
	if (addr != start + run->iov_len)
		return false;
	*at = pieces->length;
	run->iov_len += len;
	pieces->length += len;
	return true;
}

bool soft_pieces_add(struct soft_pieces *pieces, struct soft_seg *seg, uint32_t len, uint32_t *at)
{
	if (!is_like_the_others(pieces, seg->mr, len)) {
		soft_seg_put(seg);
		return false;
	}
	pieces->mm = seg->mr->mr.umem.mm;
	pieces->owner = seg->mr->account;
	pieces->segs[pieces->num++] = *seg;
	if (pieces->num_runs && join_last_run(pieces, seg->addr, len, at))
		return true;
	*at = pieces->length;
	pieces->runs[pieces->num_runs++] = (struct iovec){ (void *)(uintptr_t)seg->addr, len };
	pieces->length += len;
	return true;
}

enum soft_copy_error soft_pieces_move(struct soft_mover *m, enum soft_place place, const struct soft_pieces *pieces,
				      void *bytes, bool write)
{
	enum soft_copy_error err;
	int ret;

	if (!pieces->num)
		return SOFT_COPY_OK;
	err = soft_mover_enter(m, place, pieces->mm, pieces->owner);
	if (err)
		return err;
	ret = write ? uvd_mm_writev(pieces->mm, pieces->runs, pieces->num_runs, bytes)
		    : uvd_mm_readv(pieces->mm, bytes, pieces->runs, pieces->num_runs);
	if (!soft_mover_leave(m))
		return SOFT_COPY_LOST;
	return ret ? SOFT_COPY_BAD : SOFT_COPY_OK;
}

void soft_pieces_put(struct soft_pieces *pieces)
{
	while (pieces->num)
		soft_seg_put(&pieces->segs[--pieces->num]);
}
