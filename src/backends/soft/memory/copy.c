/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Copies between clients' memory and a mover's buffer, or directly from memory that has a view. */
#include <errno.h>
#include "backends/soft/memory/memory.h"

/* Reading fewer bytes is as fast as looking up their view. */
enum { VIEW_LEAST = 16 * 1024 };

static bool mr_allowed_now(const struct soft_mr *mr, uint64_t addr, size_t len, bool write)
{
	return !mr->on_demand || !uvd_mm_check(mr->mr.umem.mm, addr, len, write);
}

int soft_mem_read(const struct soft_mr *mr, void *dst, uint64_t src, size_t len)
{
	if (mr->mr.dm) {
		soft_dm_read(mr->mr.dm, dst, src, len);
		return 0;
	}
	return mr_allowed_now(mr, src, len, false) ? uvd_mm_read(mr->mr.umem.mm, dst, src, len) : -EFAULT;
}

int soft_mem_write(const struct soft_mr *mr, uint64_t dst, const void *src, size_t len)
{
	if (mr->mr.dm) {
		soft_dm_write(mr->mr.dm, dst, src, len);
		return 0;
	}
	return mr_allowed_now(mr, dst, len, true) ? uvd_mm_write(mr->mr.umem.mm, dst, src, len) : -EFAULT;
}

/* ---- views: memory that the engine has mapped, too --------------------------------------------------------------- */

static bool may_have_view(const struct soft_mr *mr, size_t len)
{
	return len >= VIEW_LEAST && mr->mr.umem.shared && !mr->on_demand;
}

bool soft_mr_may_have_view(struct soft_mr *mr, size_t len)
{
	return may_have_view(mr, len) && (!atomic_load(&mr->has_asked) || atomic_load(&mr->view));
}

/* Returns the region's view, or NULL, without a reference. May wait for the client: call as a mover in that memory. */
static struct uvd_mm_view *view_of(struct soft_mr *mr)
{
	struct uvd_mm_view *view, *none = NULL;

	if (!atomic_load(&mr->has_asked)) {
		view = uvd_mm_view_get(&mr->mr.umem);
		if (view && !atomic_compare_exchange_strong(&mr->view, &none, view))
			uvd_mm_view_put(view);
		atomic_store(&mr->has_asked, true);
	}
	return atomic_load(&mr->view);
}

enum soft_copy_error soft_seg_view(struct soft_mover *m, enum soft_place place, const struct soft_seg *seg,
				   uint64_t offset, size_t len, struct soft_foreign *foreign)
{
	struct soft_mr *mr = seg->mr;
	enum soft_copy_error err;

	*foreign = (struct soft_foreign){ 0 };
	if (!may_have_view(mr, len))
		return SOFT_COPY_OK;
	err = soft_mover_enter(m, place, mr->mr.umem.mm, mr->account);
	if (err)
		return err;
	foreign->view = view_of(mr);
	if (foreign->view) {
		uvd_mm_view_ref(foreign->view);
		foreign->at = uvd_mm_view_at(foreign->view, seg->addr + offset);
	}
	return soft_mover_leave(m) ? SOFT_COPY_OK : SOFT_COPY_LOST;
}

enum soft_copy_error soft_list_view(struct soft_mover *m, enum soft_place place, const struct soft_list *list,
				    uint64_t offset, size_t len, struct soft_foreign *foreign)
{
	const struct ibv_sge *sge = list->sge, *end = sge + list->num_sge;
	enum soft_copy_error err;
	struct soft_seg seg;

	*foreign = (struct soft_foreign){ 0 };
	while (sge < end && offset >= sge->length)
		offset -= sge++->length;
	if (sge == end || len < VIEW_LEAST || len > sge->length - offset)
		return SOFT_COPY_OK;
	/* The key is invalid: soft_list_move() reports that when the caller reads the list. */
	if (soft_seg_get(list->pd, sge->lkey, sge->addr, sge->length, list->access, &seg))
		return SOFT_COPY_OK;
	err = soft_seg_view(m, place, &seg, offset, len, foreign);
	soft_seg_put(&seg);
	return err;
}

void soft_foreign_put(struct soft_foreign *foreign)
{
	if (foreign->view)
		uvd_mm_view_put(foreign->view);
	foreign->view = NULL;
}

/* ---- writes, by a mover in that memory --------------------------------------------------------------------------- */

/*
 * An error of a direct write does not tell whether the source or the target is gone. So copy the bytes to the mover's
 * buffer: an error there is the source's, and one after that the target's. Device memory is written from the buffer
 * alone, because only uvd_mm_view_copy() survives a file that was truncated.
 */
static enum soft_copy_error write_foreign(struct soft_mover *m, struct soft_mr *mr, uint64_t dst, const void *bytes,
					  size_t len)
{
	if (!mr->mr.dm && !soft_mem_write(mr, dst, bytes, len))
		return SOFT_COPY_OK;
	if (uvd_mm_view_copy(m->buffer, bytes, len))
		return SOFT_COPY_SOURCE;
	return soft_mem_write(mr, dst, m->buffer, len) ? SOFT_COPY_BAD : SOFT_COPY_OK;
}

static enum soft_copy_error write_to(struct soft_mover *m, struct soft_mr *mr, uint64_t dst, const void *bytes,
				     size_t len)
{
	struct uvd_mm_view *view = may_have_view(mr, len) ? view_of(mr) : NULL;

	if (view && uvd_mm_view_writable(view) && !uvd_mm_view_copy(uvd_mm_view_at(view, dst), bytes, len))
		return SOFT_COPY_OK;
	if (m->is_foreign)
		return write_foreign(m, mr, dst, bytes, len);
	return soft_mem_write(mr, dst, bytes, len) ? SOFT_COPY_BAD : SOFT_COPY_OK;
}

/* ---- segments and lists ------------------------------------------------------------------------------------------ */

enum soft_copy_error soft_seg_move(struct soft_mover *m, enum soft_place place, const struct soft_seg *seg,
				   uint64_t offset, void *bytes, size_t len, bool write)
{
	const struct uvd_mr *mr = &seg->mr->mr;
	const uint64_t addr = seg->addr + offset;
	enum soft_copy_error err;

	/* The key allows no more, whatever a peer's packets say. */
	if (offset > seg->length || len > seg->length - offset)
		return SOFT_COPY_BAD;
	err = soft_mover_enter(m, place, mr->umem.mm, seg->mr->account);
	if (err)
		return err;
	if (write)
		err = write_to(m, seg->mr, addr, bytes, len);
	else if (soft_mem_read(seg->mr, bytes, addr, len))
		err = SOFT_COPY_BAD;
	if (err == SOFT_COPY_BAD && !mr->dm && !uvd_mm_alive(mr->umem.mm))
		err = SOFT_COPY_DEAD;
	return soft_mover_leave(m) ? err : SOFT_COPY_LOST;
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

enum soft_copy_error soft_list_move(struct soft_mover *m, enum soft_place place, const struct soft_list *list,
				    uint64_t offset, void *bytes, size_t len, bool write)
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
