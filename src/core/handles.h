/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The handle table of one open file. Handles are u32, and an allocation gets the lowest free one, as in the kernel's
 * xarray with XA_FLAGS_ALLOC (rule handle-01). The table is a tree of 64-way nodes. Each node knows which of its slots
 * are full, so to allocate, look up or free a handle costs one step a level (4 levels: 16 million handles).
 * Not thread safe: callers hold the open file's lock.
 */
#ifndef UVD_HANDLES_H
#define UVD_HANDLES_H

#include <stdbool.h>
#include <stdint.h>

struct uvd_account;
struct uvd_handle_node;

struct uvd_handles {
	struct uvd_handle_node *root;
	struct uvd_handle_node *spare; /* so that repeated use of a node's first handle does not allocate each time */
	unsigned int levels; /* of the tree; 0: empty */
	uint32_t count; /* allocated handles */
	struct uvd_account *account; /* pays for the nodes; NULL: nobody does. It outlives the table */
};

/* Allocates the lowest free handle, which reads as NULL until it is set. Returns 0 or -ENOMEM. */
int uvd_handles_alloc(struct uvd_handles *h, uint32_t *id);
/* Sets what an allocated handle stands for. */
void uvd_handles_set(struct uvd_handles *h, uint32_t id, void *object);
/* Returns what the handle stands for. NULL: it is not allocated, or not set yet. */
void *uvd_handles_get(const struct uvd_handles *h, uint32_t id);
void uvd_handles_free(struct uvd_handles *h, uint32_t id);
/* Frees the table's own memory, not the objects. */
void uvd_handles_fini(struct uvd_handles *h);

#endif
