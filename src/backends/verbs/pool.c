/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The buffers of a PD: powers of two of bytes, cut from chunks that are registered with the adapter. A chunk stays
 * until the PD goes, so a program that posts what it posted before needs no memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <uverbsd/log.h>
#include "backends/verbs/verbs.h"

struct hca_pool *hca_pool_new(struct uvd_account *account)
{
	struct hca_pool *pool = uvd_zalloc(sizeof(*pool));

	if (pool) {
		pool->refs = 1;
		pool->account = account;
	}
	return pool;
}

static void chunk_free(struct hca_pool *pool, struct hca_chunk *chunk)
{
	munmap(chunk->memory, chunk->size);
	uvd_uncharge_bytes(pool->account, chunk->charged);
	free(chunk);
}

static void pool_log_failure(const struct hca_pd *pd, size_t size, int err)
{
	const struct hca_device *dev = hca_device(pd->pd.context->dev);

	uvd_log_of_user(dev->ibdev->log, uvd_account_person(pd->pd.context->account), UVD_WARN,
			"%s: the adapter %s does not register %zu bytes for buffers: %s: the client's post fails with "
			"ENOMEM; raise RLIMIT_MEMLOCK of this process, or post fewer or shorter requests",
			dev->ibdev->config.ibdev, dev->hca, size, uvd_errno_name(err));
}

/* Returns NULL, and has charged nothing, if there is no memory or no room in the user's account or on the adapter. */
static struct hca_chunk *chunk_new(struct hca_pd *pd, size_t size, size_t num_slots)
{
	struct uvd_account *account = pd->pool->account;
	const size_t own = sizeof(struct hca_chunk) + num_slots * sizeof(struct hca_slot);
	struct hca_chunk *chunk;

	if (uvd_charge_bytes(account, size + own))
		return NULL;
	chunk = uvd_zalloc(own);
	if (!chunk)
		goto uncharge;
	chunk->size = size;
	chunk->num_slots = num_slots;
	chunk->charged = size + own;
	chunk->memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (chunk->memory == MAP_FAILED)
		goto free_chunk;
	/* A child of the daemon must not share pages that the adapter writes to (ibv_fork_init(3)). */
	madvise(chunk->memory, size, MADV_DONTFORK);
	/* Without remote access: no key of a peer opens it. */
	chunk->mr = ibv_reg_mr(pd->adapter, chunk->memory, size, IBV_ACCESS_LOCAL_WRITE);
	if (!chunk->mr) {
		pool_log_failure(pd, size, hca_errno());
		chunk_free(pd->pool, chunk);
		return NULL;
	}
	return chunk;
free_chunk:
	free(chunk);
uncharge:
	uvd_uncharge_bytes(account, size + own);
	return NULL;
}

static void pool_add_free(struct hca_pool *pool, struct hca_slot *slot, unsigned int order)
{
	slot->next = pool->free[order];
	pool->free[order] = slot;
}

static int pool_grow(struct hca_pd *pd, unsigned int order)
{
	const size_t size = (size_t)1 << order;
	const size_t chunk_size = order > HCA_CHUNK_ORDER ? size : (size_t)1 << HCA_CHUNK_ORDER;
	const size_t num_slots = chunk_size / size;
	struct hca_chunk *chunk = chunk_new(pd, chunk_size, num_slots);

	if (!chunk)
		return -ENOMEM;
	chunk->next = pd->pool->chunks;
	pd->pool->chunks = chunk;
	for (size_t i = 0; i < num_slots; i++) {
		chunk->slots[i].data = (uint8_t *)chunk->memory + i * size;
		chunk->slots[i].lkey = chunk->mr->lkey;
		pool_add_free(pd->pool, &chunk->slots[i], order);
	}
	return 0;
}

int hca_buffer_take(struct hca_pd *pd, size_t size, struct hca_buffer *out)
{
	unsigned int order = HCA_MIN_ORDER;
	struct hca_slot *slot;

	while (order <= HCA_MAX_ORDER && (size_t)1 << order < size)
		order++;
	if (order > HCA_MAX_ORDER || (!pd->pool->free[order] && pool_grow(pd, order)))
		return -ENOMEM;
	slot = pd->pool->free[order];
	pd->pool->free[order] = slot->next;
	*out = (struct hca_buffer){ .data = slot->data, .lkey = slot->lkey, .order = order, .slot = slot };
	return 0;
}

void hca_buffer_give(struct hca_pool *pool, struct hca_buffer *buffer)
{
	if (buffer->data && buffer->slot->lkey != HCA_NO_LKEY)
		pool_add_free(pool, buffer->slot, buffer->order);
	buffer->data = NULL;
}

void hca_pool_deregister(struct hca_pool *pool)
{
	memset(pool->free, 0, sizeof(pool->free));
	for (struct hca_chunk *chunk = pool->chunks; chunk; chunk = chunk->next) {
		if (chunk->mr && !ibv_dereg_mr(chunk->mr))
			chunk->mr = NULL;
		for (size_t i = 0; i < chunk->num_slots; i++)
			chunk->slots[i].lkey = HCA_NO_LKEY;
	}
}

void hca_pool_put(struct hca_pool *pool)
{
	struct hca_chunk *chunk;

	if (--pool->refs)
		return;
	while ((chunk = pool->chunks)) {
		pool->chunks = chunk->next;
		chunk_free(pool, chunk);
	}
	free(pool);
}
