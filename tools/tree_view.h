/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl tree: merges the rows of one or several parse trees, and prints them. */
#ifndef UVD_TOOLS_TREE_H
#define UVD_TOOLS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uverbsd/abi.h>

struct uvd_tree_entry {
	uint64_t key; /* sorts the rows */
	struct uverbsd_tree_row row;
	unsigned int served; /* bits: the sources that have the row */
};

struct uvd_tree_view {
	const char *title; /* the first line of the output for people */
	const char *device; /* the node that answered; NULL: the tree is of this build */
	const char *persona; /* of a tree of this build */
	unsigned int driver_id; /* enum rdma_driver_id */
	const char *sources[32]; /* the backends that a tree of this build was made for */
	unsigned int num_sources;
	struct uvd_tree_entry *entries;
	size_t num, room;
};

/* Adds a copy of a row of source number `source`. Returns 0, or -ENOMEM. */
int uvd_view_add(struct uvd_tree_view *view, const struct uverbsd_tree_row *row, unsigned int source);
/*
 * Sorts the rows and merges equal rows of several sources. Call once, after the last uvd_view_add() and before
 * printing.
 */
void uvd_view_finish(struct uvd_tree_view *view);
/* Frees the rows; the rest of *view is the caller's. */
void uvd_view_free(struct uvd_tree_view *view);
/* Returns the name of the object with this id, or NULL. It is valid until uvd_view_free(). */
const char *uvd_view_object(const struct uvd_tree_view *view, uint16_t id);

/* Prints the tree on stdout, for people. */
void uvd_view_print(const struct uvd_tree_view *view);
/* Prints the tree on stdout as JSON. Returns false if that failed. */
bool uvd_view_print_json(const struct uvd_tree_view *view);

/*
 * Adds all rows of the device at `node`, as source 0. Returns 0, or a negative errno, which it has reported on stderr.
 */
int uvd_view_ask(struct uvd_tree_view *view, const char *node);

#endif
