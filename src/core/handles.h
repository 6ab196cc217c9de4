/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The handle table of one open file: u32 handles, always the lowest free one, as the kernel's xarray with
 * XA_FLAGS_ALLOC (rule handle-01). A tree of 64-way nodes; each knows which of its slots are full, so finding a free
 * handle, looking one up and freeing one cost one step a level (4 levels: 16 million).
 * Not thread safe: the open file's lock protects it.
 */
#ifndef UVD_HANDLES_H
#define UVD_HANDLES_H

#include <stdbool.h>
#include <stdint.h>

struct uvd_account;
struct uvd_handle_node;

struct uvd_handles {
	struct uvd_handle_node *root;
	struct uvd_handle_node *spare; /* so that a handle at a node's edge does not allocate every time */
	unsigned int levels; /* of the tree; 0: empty */
	uint32_t count; /* allocated handles */
	struct uvd_account *account; /* who pays for the nodes, or NULL; as long as the table */
};

/* Allocates the lowest free handle; it reads as NULL until it is set. 0 or -ENOMEM. */
int uvd_handles_alloc(struct uvd_handles *h, uint32_t *id);
/* Sets what an allocated handle stands for. */
void uvd_handles_set(struct uvd_handles *h, uint32_t id, void *object);
/* NULL: not allocated, or not set yet. */
void *uvd_handles_get(const struct uvd_handles *h, uint32_t id);
void uvd_handles_free(struct uvd_handles *h, uint32_t id);
/* Frees the table's own memory. */
void uvd_handles_fini(struct uvd_handles *h);

#endif
