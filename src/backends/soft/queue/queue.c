/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Queues of work requests: own rings and mapped queues. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "backends/soft/queue/queue.h"

/* ---- rings ------------------------------------------------------------------------------------------------------- */

static uint64_t ring_bytes(const struct soft_ring *ring)
{
	return (uint64_t)(ring->size ? ring->size : 1) * ring->entry_size;
}

int soft_ring_init(struct soft_ring *ring, struct uvd_account *account, unsigned int size, size_t entry_size)
{
	int ret;

	ring->entry_size = (entry_size + 7) & ~(size_t)7;
	ring->size = size;
	ring->account = account;
	ret = uvd_charge_bytes(account, ring_bytes(ring));
	if (ret)
		return ret;
	/* Untouched entries cost no memory, but all are charged: the client can make us touch them at any time. */
	ring->entries = calloc(1, ring_bytes(ring));
	if (ring->entries)
		return 0;
	uvd_uncharge_bytes(account, ring_bytes(ring));
	return -ENOMEM;
}

void soft_ring_destroy(struct soft_ring *ring)
{
	if (ring->entries)
		uvd_uncharge_bytes(ring->account, ring_bytes(ring));
	free(ring->entries);
}

/* nr: from the oldest; at most the ring's size. */
static void *ring_entry(struct soft_ring *ring, unsigned int nr)
{
	size_t place = (size_t)ring->head + nr;

	/* Not %: a division would take a good part of the time of a small request. */
	if (place >= ring->size)
		place -= ring->size;
	return ring->entries + place * ring->entry_size;
}

void *soft_ring_peek(struct soft_ring *ring, unsigned int n)
{
	return n < ring->count ? ring_entry(ring, n) : NULL;
}

void soft_ring_pop(struct soft_ring *ring)
{
	ring->head = ring->head + 1 == ring->size ? 0 : ring->head + 1;
	ring->count--;
}

void *soft_ring_next(struct soft_ring *ring)
{
	return ring->count < ring->size ? ring_entry(ring, ring->count) : NULL;
}

void soft_ring_push(struct soft_ring *ring)
{
	ring->count++;
}

void soft_ring_clear(struct soft_ring *ring)
{
	ring->head = ring->count = 0;
}

/* ---- receive queues ---------------------------------------------------------------------------------------------- */

/* src can be NULL if the list is empty. */
void soft_sges_copy(struct ibv_sge *dst, const struct ibv_sge *src, int n)
{
	if (n)
		memcpy(dst, src, n * sizeof(*dst));
}

uint64_t soft_sge_length(const struct ibv_sge *sge, int num_sge)
{
	uint64_t length = 0;

	for (int i = 0; i < num_sge; i++)
		length += sge[i].length;
	return length;
}

/* Pops only what is there now: requests that the client adds meanwhile stay. */
void soft_queue_skip(struct uvd_queue *q)
{
	for (uint32_t n = q->ops->count(q); n; n--)
		q->ops->pop(q);
}

unsigned int soft_queue_copies(unsigned int size)
{
	return !size ? 1 : size < SOFT_BURST ? size : SOFT_BURST;
}

size_t soft_recv_wqe_size(uint32_t max_sge)
{
	return sizeof(struct soft_recv_wqe) + max_sge * sizeof(struct ibv_sge);
}

int soft_rq_init(struct soft_rq *rq, struct uvd_account *account, unsigned int size, uint32_t max_sge,
		 struct uvd_queue *mapped)
{
	/* load_recv() puts a receive with one entry in the place of an invalid one, so there must be room for that. */
	if (mapped && !max_sge)
		max_sge = 1;
	rq->mapped = mapped;
	rq->max_sge = max_sge;
	return soft_ring_init(&rq->ring, account, mapped ? soft_queue_copies(size) : size, soft_recv_wqe_size(max_sge));
}

void soft_rq_destroy(struct soft_rq *rq)
{
	soft_ring_destroy(&rq->ring);
}

unsigned int soft_rq_count(const struct soft_rq *rq)
{
	return rq->mapped ? rq->mapped->ops->count(rq->mapped) : rq->ring.count;
}

unsigned int soft_rq_size(const struct soft_rq *rq)
{
	return rq->mapped ? rq->mapped->shape.entries - 1 : rq->ring.size;
}

int soft_queue_recv(struct soft_ring *ring, uint32_t max_sge, const struct uvd_recv_wr *wr)
{
	struct soft_recv_wqe *wqe;

	if (wr->num_sge < 0 || (unsigned int)wr->num_sge > max_sge)
		return -EINVAL;
	wqe = soft_ring_next(ring);
	if (!wqe)
		return -ENOMEM;
	wqe->wr_id = wr->wr_id;
	wqe->num_sge = wr->num_sge;
	soft_sges_copy(wqe->sge, wr->sg_list, wr->num_sge);
	soft_ring_push(ring);
	return 0;
}

/* Copies the client's next request from the mapped queue to the ring. Returns false if there is none, or no room. */
static bool load_recv(struct soft_rq *rq)
{
	/* Stands for an invalid receive. Key 0 is never valid, so a message for it fails as with any invalid key. */
	static const struct ibv_sge nothing = { .length = UINT32_MAX };
	struct uvd_recv_wr wr;

	if (!rq->mapped->ops->peek_recv(rq->mapped, rq->ring.count, &wr))
		return false;
	return !soft_queue_recv(&rq->ring, rq->max_sge, &wr) ||
	       !soft_queue_recv(&rq->ring, rq->max_sge,
				&(struct uvd_recv_wr){ .wr_id = wr.wr_id, .num_sge = 1, .sg_list = &nothing });
}

struct soft_recv_wqe *soft_rq_peek(struct soft_rq *rq, unsigned int n)
{
	while (rq->mapped && rq->ring.count <= n && load_recv(rq))
		;
	return soft_ring_peek(&rq->ring, n);
}

void soft_rq_pop(struct soft_rq *rq)
{
	soft_ring_pop(&rq->ring);
	if (rq->mapped)
		rq->mapped->ops->pop(rq->mapped);
}

void soft_rq_clear(struct soft_rq *rq)
{
	soft_ring_clear(&rq->ring);
	if (rq->mapped)
		soft_queue_skip(rq->mapped);
}
