/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl tree: merges the rows of one or several parse trees, and prints them. */
#ifndef UVD_TOOLS_TREE_VIEW_H
#define UVD_TOOLS_TREE_VIEW_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uverbsd/abi.h>

#include "call/call.h"

struct uvd_tree_entry {
	uint64_t key; /* sorts the rows */
	struct uverbsd_tree_row row;
	unsigned int served; /* bits: the sources that have the row */
	const struct uvd_command_fields
		*command; /* of a command: its structs; NULL: those of this name that the kernel has */
	const struct uvd_attr_fields *value; /* of an attribute or element; NULL: alike */
};

struct uvd_tree_view {
	const char *who; /* the prefix of messages: "uverbsctl tree" */
	const char *title; /* the first line of the output for people */
	const char *device; /* the node that answered; NULL: the tree is of this build */
	const char *persona; /* of a tree of this build */
	unsigned int driver_id; /* enum rdma_driver_id */
	const char *sources[32]; /* the backends that a tree of this build was made for */
	unsigned int num_sources;
	struct uvd_tree_entry *entries;
	size_t num, room;
	struct uvd_learned *learned; /* what the device, or the trace, tells of its plug-ins' rows, or NULL */
};

/* Adds a copy of a row of source number `source`. Returns 0, or -ENOMEM. */
int uvd_view_add(struct uvd_tree_view *view, const struct uverbsd_tree_row *row, unsigned int source);
/* Adds a row that tells a role. Returns 0, or -ENOMEM. */
int uvd_view_add_role(struct uvd_tree_view *view, const struct uverbsd_tree_role *role);
/*
 * Sorts the rows and merges equal rows of several sources. Call once, after the last uvd_view_add() and before
 * printing. Roles that come later want another call.
 */
void uvd_view_finish(struct uvd_tree_view *view);
/* Frees the rows; the rest of *view is the caller's. */
void uvd_view_free(struct uvd_tree_view *view);
/*
 * Return what is known of the fields of a row, which is one of a view: as its device or trace tells it, else as this build
 * knows it of the kernel's. Neither they nor the structs of a command are NULL.
 */
const struct uvd_command_fields *uvd_view_command(const struct uverbsd_tree_row *row);
const struct uvd_attr_fields *uvd_view_value(const struct uverbsd_tree_row *row);
/* Does the device, or the trace, tell them? */
bool uvd_view_is_told(const struct uverbsd_tree_row *row);
/* Returns the name of the object with this id, or NULL. It is valid until uvd_view_free(). */
const char *uvd_view_object(const struct uvd_tree_view *view, uint16_t id);

/* Prints the tree on stdout, for people. */
void uvd_view_print(const struct uvd_tree_view *view);
/* Prints the tree on stdout as JSON. Returns false if that failed. */
bool uvd_view_print_json(const struct uvd_tree_view *view);

/*
 * Adds the rows of what devices of this build accept, one source for each backend that supports the persona, or only
 * the backend `only` (NULL: all). Returns 0, or the exit status after a message on stderr: 1, or 2 for an unknown name.
 */
int uvd_view_build(struct uvd_tree_view *view, const char *only, const char *persona);
/*
 * Adds all rows of the device at `node`, as source 0. Returns 0, or a negative errno, which it has reported on stderr.
 */
int uvd_view_ask(struct uvd_tree_view *view, const char *node);
/*
 * The same for a device that is open, without a message. view->driver_id is tried first, unless it is 0. -ENOTTY: it has no ioctl. -EPROTONOSUPPORT: it is not
 * uverbsd's; view->driver_id is the device's.
 */
int uvd_view_ask_file(struct uvd_tree_view *view, int fd);
/* Is it the path of the node rdma_cm, or its name? */
bool uvd_node_is_cm(const char *node);
/* Adds the rows of that node, which are the same for each ABI 4: no node tells them. Returns 0, or a negative errno. */
int uvd_view_cm(struct uvd_tree_view *view);
/* Does the view have that node's rows? */
bool uvd_view_is_cm(const struct uvd_tree_view *view);
/*
 * Sets view->driver_id to what the device's name in sysfs suggests: of rxe0, the persona rxe. Returns true if sysfs has
 * the node, so it is a uverbs device.
 */
bool uvd_view_guess(struct uvd_tree_view *view, const char *node);

/*
 * Finds the node of a device by name (hfi1_0 or uverbs0; NULL: the only device), or rdma_cm: where libibverbs looks, then in the
 * sysfs directory that the daemon on the socket `control` reports. Returns 0, or -1 after a message, which begins with
 * `who`, on stderr.
 */
int uvd_node_find(const char *who, const char *control, const char *device, char node[PATH_MAX]);
/* Calls each() with the name of each device that uvd_node_find() would look at. */
void uvd_nodes_each(const char *control, void (*each)(void *arg, const char *name), void *arg);

#endif
