/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The client's memory during a call, from the accesses that the trace has. */
#include <string.h>

#include "trace.h"

static size_t piece_size(const struct uvd_piece *p)
{
	return sizeof(*p) + ((p->kept + (size_t)7) & ~(size_t)7);
}

bool uvd_image_ok(const struct uvd_trace_image *image)
{
	size_t at = 0;

	while (at < image->len) {
		const struct uvd_piece *p = (const void *)(image->pieces + at);

		if (image->len - at < sizeof(*p) || p->kept > p->len || p->kept > image->len - at - sizeof(*p) ||
		    piece_size(p) > image->len - at)
			return false;
		at += piece_size(p);
	}
	return true;
}

const struct uvd_piece *uvd_image_first(const struct uvd_trace_image *image)
{
	return image->len ? (const void *)image->pieces : NULL;
}

const struct uvd_piece *uvd_image_next(const struct uvd_trace_image *image, const struct uvd_piece *p)
{
	const size_t at = (const uint8_t *)p - image->pieces + piece_size(p);

	return at < image->len ? (const void *)(image->pieces + at) : NULL;
}

/* Returns the last piece that has the byte at addr, as a later write replaces an earlier one; or NULL. */
static const struct uvd_piece *image_piece_at(const struct uvd_trace_image *image, enum uvd_piece_kind kind,
					      uint64_t addr)
{
	const struct uvd_piece *found = NULL, *p;

	for (size_t at = 0; at < image->len; at += piece_size(p)) {
		p = (const void *)(image->pieces + at);
		if (p->kind == kind && addr >= p->addr && addr - p->addr < p->kept)
			found = p;
	}
	return found;
}

size_t uvd_image_get(const struct uvd_trace_image *image, enum uvd_piece_kind kind, uint64_t addr, void *to, size_t len)
{
	size_t got = 0, n;

	while (got < len) {
		const struct uvd_piece *p = image_piece_at(image, kind, addr + got);

		if (!p)
			break;
		n = p->kept - (addr + got - p->addr);
		if (n > len - got)
			n = len - got;
		memcpy((uint8_t *)to + got, (const uint8_t *)(p + 1) + (addr + got - p->addr), n);
		got += n;
	}
	return got;
}
