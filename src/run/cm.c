/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The node rdma_cm, and the calls on it: open, write, read. A call that waits for an event is parked (park.c). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "run/internal.h"
#include "run/link.h"
#include "run/park.h"

/* ---- the engine's ------------------------------------------------------------------------------------------------ */

static const char cm_node_path[] = "dev/infiniband/" UVD_CM_NODE;

static int cm_publish(struct uvd_run_engine *e)
{
	char sys[PATH_MAX + 8];

	snprintf(sys, sizeof(sys), "%s/sys", e->root);
	/* An empty file, so that listings of /dev/infiniband show the name. Calls on the node do not use it. */
	return uvd_dir_put(e->rootfd, cm_node_path, "%s", "")
		       ?: uvd_sysfs_add_cm(sys, makedev(UVD_RUN_CM_MAJOR, 0), e->log);
}

int uvd_run_cm_init(struct uvd_run_engine *e)
{
	int err = uvd_run_cm_files_init(&e->cm_files);

	if (err)
		return err;
	e->cm = uvd_cm_new(&e->core, &err);
	return e->cm ? cm_publish(e) : err;
}

void uvd_run_cm_fini(struct uvd_run_engine *e)
{
	uvd_run_cm_files_closed(&e->cm_files);
	uvd_run_cm_files_fini(&e->cm_files);
	uvd_cm_free(e->cm);
}

void uvd_run_settle(struct uvd_run_engine *e)
{
	uvd_run_cm_files_closed(&e->cm_files);
	uvd_run_files_settle(&e->files, 1000);
}

/* ---- a descriptor of the caller ---------------------------------------------------------------------------------- */

/* Returns a duplicate of the caller's fd, which this function's caller closes, or a negative errno. */
static int cm_get_fd(struct uvd_run_tree *tree, int fd)
{
	const pid_t tid = uvd_run_number(tree, tree->call->caller.tid);
	const pid_t tgid = uvd_run_number(tree, uvd_caller_tgid(&tree->call->caller));
	char name[32];

	snprintf(name, sizeof(name), "getfd/%d", fd);
	return tree->agent < 0 ? uvd_run_get_fd(tid, tgid, fd) : uvd_run_agent_open(tree->agent, tid, name, tgid);
}

/* Takes the excess bytes out of the client's end. The caller's fd can be another file by now: then a later command on it does so. */
static void cm_settle(struct uvd_run_tree *tree, struct uvd_run_cm_file *f, int fd)
{
	struct uvd_run_inode inode;
	int theirs;

	if (!uvd_run_cm_file_is_unsettled(f))
		return;
	theirs = cm_get_fd(tree, fd);
	if (theirs < 0)
		return;
	if (!uvd_run_own_inode(theirs, &inode) && uvd_run_inode_equal(&inode, &f->inode))
		uvd_run_cm_file_settle(f, theirs);
	close(theirs);
}

/* Stores which file the caller's fd is. Returns 0, or a negative errno as of struct uvd_cm_file_ops.file_of. */
static int cm_fd_inode(struct uvd_run_tree *tree, int fd, struct uvd_run_inode *inode)
{
	unsigned int flags;
	char name[32];
	int info, err;

	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	info = fd < 0 ? -EBADF : tree->proc.open(&tree->proc, tree->call->caller.tid, name, O_RDONLY);
	if (info < 0)
		return -ENOENT;
	err = uvd_run_flags_read(info, &flags) ?: uvd_run_inode_read(info, inode);
	close(info);
	return err || flags & O_PATH ? -ENOENT : 0; /* the kernel's fdget() finds no O_PATH file */
}

static void cm_put_other(struct uvd_run_tree *tree)
{
	if (!tree->cm_other)
		return;
	cm_settle(tree, tree->cm_other, tree->cm_other_fd);
	uvd_run_cm_file_put(tree->cm_other);
	tree->cm_other = NULL;
}

/*
 * struct uvd_cm_file_ops.file_of: MIGRATE_ID names the file from which it takes the identifier, and its events. The file stays open
 * until the command has ended, as the tree has a reference.
 */
static int cm_file_of(void *owner, struct uvd_caller *caller, int fd, struct uvd_cm_file **file)
{
	struct uvd_run_tree *tree = uvd_run_tree_of(caller);
	struct uvd_run_inode inode;
	int err = cm_fd_inode(tree, fd, &inode);

	if (err)
		return err;
	cm_put_other(tree);
	tree->cm_other = uvd_run_cm_file_get(&tree->engine->cm_files, &inode);
	if (!tree->cm_other)
		return -EINVAL;
	tree->cm_other_fd = fd;
	*file = uvd_cm_file_get(tree->cm_other->file);
	return 0;
}

static const struct uvd_cm_file_ops cm_file_ops = { .events = uvd_run_cm_file_events, .file_of = cm_file_of };

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void cm_node_set(struct uvd_run_node *node, struct uvd_run_cm_file *f)
{
	node->rdev = makedev(UVD_RUN_CM_MAJOR, 0);
	node->mode = 0666;
	node->ino = 8192;
	node->priv = f;
}

static long cm_node_find(struct uvd_run_tree *tree, const char *name, struct uvd_run_node *node)
{
	if (strcmp(name, UVD_CM_NODE))
		return UVD_RUN_CONTINUE;
	cm_node_set(node, NULL);
	return 0;
}

static int cm_open(struct uvd_run_engine *e, struct uvd_caller *c, unsigned int flags, int *fd)
{
	return uvd_run_cm_file_open(&e->cm_files, e->cm, c, flags, &cm_file_ops, uvd_run_serial_new(&e->files), fd);
}

static long cm_node_open(struct uvd_run_tree *tree, struct uvd_run_node *node, unsigned int flags)
{
	struct uvd_run_engine *e = tree->engine;
	int fd, err;

	uvd_run_cm_files_closed(&e->cm_files); /* they count against the limits */
	err = cm_open(e, &tree->call->caller, flags, &fd);
	if (err == -EMFILE) {
		/* Files that clients have closed may still be charged: wait for them, and try once more. */
		uvd_run_settle(e);
		err = cm_open(e, &tree->call->caller, flags, &fd);
	}
	return err ? err : uvd_run_answer_fd(tree, fd, 0, flags, false);
}

static bool cm_node_opened(struct uvd_run_tree *tree, const struct uvd_run_inode *inode, struct uvd_run_node *node)
{
	struct uvd_run_cm_file *f = uvd_run_cm_file_get(&tree->engine->cm_files, inode);

	if (f)
		cm_node_set(node, f);
	return f;
}

static void cm_node_release(struct uvd_run_tree *tree, struct uvd_run_node *node)
{
	uvd_run_cm_file_put(node->priv);
}

/* Carries one command out: the argument `piece` of uvd_run_writev(). */
static long cm_command(struct uvd_run_tree *tree, void *file, uint64_t buf, uint64_t size, bool first)
{
	struct uvd_run_cm_file *f = file;
	long ret = uvd_cm_write_from(f->file, &tree->call->caller, buf, size);

	cm_put_other(tree);
	return ret;
}

long uvd_run_cm_write(struct uvd_run_tree *tree, struct uvd_run_cm_file *f, struct uvd_run_cm_write *w)
{
	const struct uvd_run_args *args = &w->args;
	long ret;

	if (args->op == UVD_RUN_WRITE)
		ret = cm_command(tree, f, args->buf, args->size, true);
	else
		ret = uvd_run_writev(tree, args, &w->done, cm_command, f);
	cm_settle(tree, f, args->fd);
	return ret;
}

static long cm_node_write(struct uvd_run_tree *tree, struct uvd_run_node *node, struct uvd_run_slot *slot,
			  const struct uvd_run_args *args)
{
	struct uvd_run_cm_file *f = node->priv;

	if (f->mode == O_RDONLY)
		return -EBADF;
	if (!uvd_run_caller_opened(tree, slot, &f->opener))
		return -EACCES;
	return uvd_run_park(tree, f, &(struct uvd_run_cm_write){ .args = *args });
}

static long cm_node_read(struct uvd_run_tree *tree, struct uvd_run_node *node)
{
	const struct uvd_run_cm_file *f = node->priv;

	return f->mode == O_WRONLY ? -EBADF : -EINVAL; /* the kernel's file has no read() */
}

const struct uvd_run_node_kind uvd_run_cm_nodes = {
	.find = cm_node_find,
	.open = cm_node_open,
	.opened = cm_node_opened,
	.release = cm_node_release,
	.write = cm_node_write,
	.read = cm_node_read,
};
