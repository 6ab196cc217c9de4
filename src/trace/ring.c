/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "trace/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int uvd_ring_init(struct uvd_ring *ring, size_t size)
{
	*ring = (struct uvd_ring){ .bytes = malloc(size), .size = size };
	return ring->bytes ? 0 : -ENOMEM;
}

void uvd_ring_fini(struct uvd_ring *ring)
{
	free(ring->bytes);
}

void uvd_ring_put(struct uvd_ring *ring, const void *bytes, size_t len)
{
	const size_t at = ring->head % ring->size, to_end = ring->size - at, first = len < to_end ? len : to_end;

	memcpy(ring->bytes + at, bytes, first);
	memcpy(ring->bytes, (const uint8_t *)bytes + first, len - first);
	ring->head += len;
}

const uint8_t *uvd_ring_next(const struct uvd_ring *ring, size_t *len)
{
	const size_t at = ring->tail % ring->size, to_end = ring->size - at, used = ring->head - ring->tail;

	*len = used < to_end ? used : to_end;
	return ring->bytes + at;
}

void uvd_ring_took(struct uvd_ring *ring, size_t len)
{
	ring->tail += len;
}
