/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "core/handles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "account/account.h"
#include "util/util.h"

enum { BITS = 6, SLOTS = 1 << BITS, MAX_LEVELS = 6 };

/* Level 0 holds objects, the others hold nodes of the level below. */
struct uvd_handle_node {
	uint64_t full; /* bits: slots with no free handle below; at level 0: allocated handles */
	unsigned int used; /* slots in use; a node below the root is freed with its last */
	void *slot[SLOTS];
};

static unsigned int handle_slot_of(uint32_t id, unsigned int level)
{
	return (id >> (level * BITS)) & (SLOTS - 1);
}

static bool handles_fits(const struct uvd_handles *h, uint32_t id)
{
	return h->levels && (uint64_t)id >> (h->levels * BITS) == 0;
}

static struct uvd_handle_node *node_new(struct uvd_handles *h)
{
	struct uvd_handle_node *node = h->spare;

	if (node) {
		h->spare = NULL;
		return node;
	}
	if (uvd_account_charge(h->account, UVD_RES_BYTES, sizeof(*node)))
		return NULL;
	node = uvd_zalloc(sizeof(*node));
	if (!node)
		uvd_account_uncharge(h->account, UVD_RES_BYTES, sizeof(*node));
	return node;
}

static void node_end(struct uvd_handles *h, struct uvd_handle_node *node)
{
	if (node)
		uvd_account_uncharge(h->account, UVD_RES_BYTES, sizeof(*node));
	free(node);
}

/* Keeps one node as the spare: its slots are all NULL again, and its counts 0. */
static void node_free(struct uvd_handles *h, struct uvd_handle_node *node)
{
	if (h->spare)
		node_end(h, node);
	else
		h->spare = node;
}

/* Adds a level on top of a full tree, or the first level. Returns 0 or -ENOMEM. */
static int handles_grow(struct uvd_handles *h)
{
	struct uvd_handle_node *root;

	root = node_new(h);
	if (!root)
		return -ENOMEM;
	if (h->root) {
		root->slot[0] = h->root;
		root->full = 1;
		root->used = 1;
	}
	h->root = root;
	h->levels++;
	return 0;
}

/* Frees the empty nodes on the path to `id`, from the bottom. path[l] is the node at level l, or NULL. */
static void handles_prune(struct uvd_handles *h, struct uvd_handle_node **path, uint32_t id)
{
	for (unsigned int level = 0; level + 1 < h->levels; level++) {
		if (!path[level])
			continue;
		if (path[level]->used)
			break;
		path[level + 1]->slot[handle_slot_of(id, level + 1)] = NULL;
		path[level + 1]->used--;
		node_free(h, path[level]);
	}
}

int uvd_handles_alloc(struct uvd_handles *h, uint32_t *id)
{
	struct uvd_handle_node *path[MAX_LEVELS] = { NULL }, *node;
	uint64_t found = 0;
	unsigned int level, slot;

	/* The lowest free handle is at most the number of handles, so it fits in 32 bits and in MAX_LEVELS. */
	if (h->count == UINT32_MAX)
		return -ENOMEM;
	if ((!h->root || h->root->full == UINT64_MAX) && handles_grow(h))
		return -ENOMEM;
	node = h->root;
	for (level = h->levels - 1;; level--) {
		path[level] = node;
		slot = __builtin_ctzll(~node->full);
		found |= (uint64_t)slot << (level * BITS);
		if (!level)
			break;
		if (!node->slot[slot]) {
			node->slot[slot] = node_new(h);
			if (!node->slot[slot]) {
				handles_prune(h, path, found);
				return -ENOMEM;
			}
			node->used++;
		}
		node = node->slot[slot];
	}
	node->used++;
	for (level = 0; level < h->levels; level++) {
		path[level]->full |= 1ULL << handle_slot_of(found, level);
		if (path[level]->full != UINT64_MAX)
			break;
	}
	h->count++;
	*id = found;
	return 0;
}

static struct uvd_handle_node *leaf_of(const struct uvd_handles *h, uint32_t id)
{
	struct uvd_handle_node *node = h->root;

	if (!handles_fits(h, id))
		return NULL;
	for (unsigned int level = h->levels - 1; level && node; level--)
		node = node->slot[handle_slot_of(id, level)];
	return node;
}

void uvd_handles_set(struct uvd_handles *h, uint32_t id, void *object)
{
	leaf_of(h, id)->slot[handle_slot_of(id, 0)] = object;
}

void *uvd_handles_get(const struct uvd_handles *h, uint32_t id)
{
	struct uvd_handle_node *leaf = leaf_of(h, id);

	return leaf ? leaf->slot[handle_slot_of(id, 0)] : NULL;
}

void uvd_handles_free(struct uvd_handles *h, uint32_t id)
{
	struct uvd_handle_node *path[MAX_LEVELS] = { NULL }, *node = h->root;

	if (!handles_fits(h, id))
		return;
	for (unsigned int level = h->levels - 1; node; level--) {
		path[level] = node;
		if (!level)
			break;
		node = node->slot[handle_slot_of(id, level)];
	}
	if (!node || !(node->full & 1ULL << handle_slot_of(id, 0)))
		return;
	node->slot[handle_slot_of(id, 0)] = NULL;
	node->used--;
	for (unsigned int level = 0; level < h->levels; level++)
		path[level]->full &= ~(1ULL << handle_slot_of(id, level));
	h->count--;
	handles_prune(h, path, id);
}

static void free_below(struct uvd_handles *h, struct uvd_handle_node *node, unsigned int level)
{
	if (!node)
		return;
	for (unsigned int i = 0; level && i < SLOTS; i++)
		free_below(h, node->slot[i], level - 1);
	node_end(h, node);
}

void uvd_handles_fini(struct uvd_handles *h)
{
	if (h->levels)
		free_below(h, h->root, h->levels - 1);
	node_end(h, h->spare);
	memset(h, 0, sizeof(*h));
}
