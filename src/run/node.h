/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The nodes of /dev/infiniband, as a process tree finds them. A kind of nodes is a table of operations: those of devices
 * (call.c), those of User Capabilities (ucap.c), and that of the connection manager (cm.c). node.c calls them, and has what is alike for all nodes.
 */
#ifndef UVD_RUN_NODE_H
#define UVD_RUN_NODE_H

#include <stdbool.h>
#include <sys/types.h>
#include "run/file.h"
#include "run/path.h"

struct uvd_run_node_kind;
struct uvd_run_slot;
struct uvd_run_tree;

struct uvd_run_node {
	const struct uvd_run_node_kind *kind;
	dev_t rdev;
	unsigned int mode; /* permissions, as the tree has them */
	ino_t ino;
	bool direct; /* of an open file: its doorbells have a log */
	void *priv; /* of the kind; after opened() of an open file, else of the node */
};

/* Results are those of internal.h: a number, a negative errno, UVD_RUN_CONTINUE or UVD_RUN_ANSWERED. */
struct uvd_run_node_kind {
	/*
	 * Sets all but `kind` of the node that has this name in /dev/infiniband. Returns 0, and put() follows; -ENOENT: the run had
	 * that node, and it was removed; UVD_RUN_CONTINUE: there is no such node of this kind.
	 */
	long (*find)(struct uvd_run_tree *tree, const char *name, struct uvd_run_node *node);
	void (*put)(struct uvd_run_node *node); /* NULL: nothing to put */
	/* Opens the node for the caller, and answers the call. flags: O_*, without O_DIRECTORY. */
	long (*open)(struct uvd_run_tree *tree, struct uvd_run_node *node, unsigned int flags);
	/* Has an open of such a node this inode? Then sets all but `kind`, and release() follows. */
	bool (*opened)(struct uvd_run_tree *tree, const struct uvd_run_inode *inode, struct uvd_run_node *node);
	void (*release)(struct uvd_run_tree *tree, struct uvd_run_node *node); /* NULL: nothing to put */
	/* Calls on an open file. Without write() and read() they fail with EINVAL; without ioctl() the kernel answers it. */
	long (*write)(struct uvd_run_tree *tree, struct uvd_run_node *node, struct uvd_run_slot *slot,
		      const struct uvd_run_args *args); /* or writev() */
	long (*read)(struct uvd_run_tree *tree, struct uvd_run_node *node); /* or readv() */
	long (*ioctl)(struct uvd_run_tree *tree, struct uvd_run_node *node, const struct uvd_run_args *args);
};

extern const struct uvd_run_node_kind uvd_run_device_nodes, uvd_run_cm_nodes, uvd_run_ucap_nodes;

/* Answers a call by path on the node of this name in /dev/infiniband. UVD_RUN_CONTINUE: the run has no such node. */
long uvd_run_node_path(struct uvd_run_tree *tree, const struct uvd_run_args *args, const char *name);
/* Answers a call by fd. UVD_RUN_CONTINUE: it is not open, or no node of the run. */
long uvd_run_node_call(struct uvd_run_tree *tree, const struct uvd_run_args *args);

#endif
