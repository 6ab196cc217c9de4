/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* From client to client, through a buffer on the stack. */
#include <errno.h>
#include "backends/soft/soft.h"

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

/* The next bytes of one segment, at most len. */
static uint32_t piece(struct soft_span *span, uint64_t len, uint64_t *addr)
{
	uint32_t left;

	while (span->offset >= span->segs->length) {
		span->offset -= span->segs->length;
		span->segs++;
		span->num_segs--;
	}
	left = span->segs->length - span->offset;
	*addr = span->segs->addr + span->offset;
	return len < left ? len : left;
}

static int fill(struct soft_span *src, uint8_t *buf, uint64_t len)
{
	while (len) {
		uint64_t addr;
		uint32_t n = piece(src, len, &addr);

		if (soft_mem_read(src->segs->mr, buf, addr, n))
			return -1;
		src->offset += n;
		buf += n;
		len -= n;
	}
	return 0;
}

static int drain(struct soft_span *dst, const uint8_t *buf, uint64_t len)
{
	while (len) {
		uint64_t addr;
		uint32_t n = piece(dst, len, &addr);

		if (soft_mem_write(dst->segs->mr, addr, buf, n))
			return -1;
		dst->offset += n;
		buf += n;
		len -= n;
	}
	return 0;
}

enum soft_copy_error soft_copy(struct soft_span dst, struct soft_span src, uint64_t length, struct soft_qp *qp,
			       struct soft_qp *peer)
{
	uint8_t bounce[SOFT_BOUNCE];

	while (length) {
		uint64_t n = length < sizeof(bounce) ? length : sizeof(bounce);
		const uint8_t *bytes = bounce;

		if (soft_gone(qp) || soft_gone(peer))
			return SOFT_COPY_CUT;
		if (src.bytes) {
			bytes = src.bytes + src.offset;
			src.offset += n;
		} else if (fill(&src, bounce, n)) {
			return SOFT_COPY_SRC;
		}
		if (drain(&dst, bytes, n))
			return SOFT_COPY_DST;
		length -= n;
	}
	return SOFT_COPY_OK;
}

int soft_gather(uint8_t *dst, const struct soft_seg *segs, int num_segs)
{
	for (int i = 0; i < num_segs; dst += segs[i++].length)
		if (soft_mem_read(segs[i].mr, dst, segs[i].addr, segs[i].length))
			return -1;
	return 0;
}
