/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>

#include "run/internal.h"

/* The one that most calls are for comes first. */
static const struct uvd_run_node_kind *const node_kinds[] = { &uvd_run_device_nodes, &uvd_run_cm_nodes,
							      &uvd_run_ucap_nodes };

enum { NODE_KINDS = sizeof(node_kinds) / sizeof(node_kinds[0]) };

long uvd_run_node_path(struct uvd_run_tree *tree, const struct uvd_run_args *args, const char *name)
{
	struct uvd_run_node node = {};
	long ret = UVD_RUN_CONTINUE;

	for (unsigned int i = 0; i < NODE_KINDS && ret == UVD_RUN_CONTINUE; i++) {
		node.kind = node_kinds[i];
		ret = node.kind->find(tree, name, &node);
	}
	if (ret)
		return ret;
	if (args->op != UVD_RUN_OPEN)
		ret = uvd_run_answer_node(tree, args, &node);
	else
		ret = args->flags & O_DIRECTORY ? -ENOTDIR : node.kind->open(tree, &node, args->flags);
	if (node.kind->put)
		node.kind->put(&node);
	return ret;
}

static bool node_find_open(struct uvd_run_tree *tree, const struct uvd_run_inode *inode, struct uvd_run_node *node)
{
	for (unsigned int i = 0; i < NODE_KINDS; i++) {
		node->kind = node_kinds[i];
		if (node->kind->opened(tree, inode, node))
			return true;
	}
	return false;
}

static long node_answer(struct uvd_run_tree *tree, struct uvd_run_node *node, struct uvd_run_slot *slot,
			const struct uvd_run_args *args)
{
	const struct uvd_run_node_kind *kind = node->kind;

	switch (args->op) {
	case UVD_RUN_WRITE:
	case UVD_RUN_WRITEV:
		return kind->write ? kind->write(tree, node, slot, args) : -EINVAL;
	case UVD_RUN_READ:
		return kind->read ? kind->read(tree, node) : -EINVAL;
	case UVD_RUN_IOCTL:
		return kind->ioctl ? kind->ioctl(tree, node, args) : UVD_RUN_CONTINUE;
	case UVD_RUN_DUP:
		return uvd_run_answer_dup(tree, args, node->direct);
	default:
		return uvd_run_answer_node(tree, args, node); /* fstat(), by whichever call */
	}
}

long uvd_run_node_call(struct uvd_run_tree *tree, const struct uvd_run_args *args)
{
	struct uvd_run_node node = {};
	struct uvd_run_inode inode;
	struct uvd_run_slot *slot = uvd_run_caller_fd(tree, args->fd, &inode);
	long ret;

	if (!slot || !node_find_open(tree, &inode, &node))
		return UVD_RUN_CONTINUE;
	ret = node_answer(tree, &node, slot, args);
	if (node.kind->release)
		node.kind->release(tree, &node);
	return ret;
}
