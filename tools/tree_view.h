/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl tree: the rows of one tree or of several, and how they are shown. */
#ifndef UVD_TOOLS_TREE_H
#define UVD_TOOLS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uverbsd/abi.h>

struct uvd_tree_entry {
	uint64_t key; /* the place in the order */
	struct uverbsd_tree_row row;
	unsigned int served; /* a bit for each source that has it */
};

struct uvd_tree_view {
	const char *title; /* what it is the tree of, for people */
	const char *device; /* the node that answered, or NULL: this build's */
	const char *persona; /* of this build's */
	unsigned int driver_id; /* enum rdma_driver_id */
	const char *sources[32]; /* the backends that it was made for */
	unsigned int num_sources;
	struct uvd_tree_entry *entries;
	size_t num, room;
};

/* Adds what source number `source` has. -ENOMEM. */
int uvd_view_add(struct uvd_tree_view *view, const struct uverbsd_tree_row *row, unsigned int source);
/* Orders it; what several sources have becomes one entry. To be called once, before it is shown. */
void uvd_view_finish(struct uvd_tree_view *view);
void uvd_view_free(struct uvd_tree_view *view);
/* The name of the object with this id, or NULL. */
const char *uvd_view_object(const struct uvd_tree_view *view, uint16_t id);

void uvd_view_print(const struct uvd_tree_view *view);
/* false: it could not be written. */
bool uvd_view_print_json(const struct uvd_tree_view *view);

/* Asks the device at `node`. 0, or a negative errno; what is wrong has been said on stderr. */
int uvd_view_ask(struct uvd_tree_view *view, const char *node);

#endif
