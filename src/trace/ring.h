/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A ring of bytes with one reader. Each record goes in whole or not at all. The caller locks. */
#ifndef UVD_TRACE_RING_H
#define UVD_TRACE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct uvd_ring {
	uint8_t *bytes;
	size_t size;
	uint64_t head, tail; /* ever written, ever read */
};

/* Returns 0 or -ENOMEM. */
int uvd_ring_init(struct uvd_ring *ring, size_t size);
void uvd_ring_fini(struct uvd_ring *ring);
static inline size_t uvd_ring_room(const struct uvd_ring *ring)
{
	return ring->size - (ring->head - ring->tail);
}
/* Appends bytes. There must be room for them. */
void uvd_ring_put(struct uvd_ring *ring, const void *bytes, size_t len);
/*
 * Returns bytes that the reader can take next, and how many: 0 if the ring is empty. They stay where they are, also
 * without the lock, until uvd_ring_took().
 */
const uint8_t *uvd_ring_next(const struct uvd_ring *ring, size_t *len);
void uvd_ring_took(struct uvd_ring *ring, size_t len);

#endif
