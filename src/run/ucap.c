/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The nodes of User Capabilities in the process tree. A client's fd of a node is an open of the node's memfd, whose
 * inode tells GET_CONTEXT which capability it is. The user names the capabilities that the tree may open with --ucap;
 * on a machine the permissions of the node decide.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "run/internal.h"
#include "sysfs/sysfs.h"
#include "util/util.h"

/* ---- for the core ------------------------------------------------------------------------------------------------ */

static dev_t rdev_of(unsigned int bit)
{
	return makedev(UVD_RUN_UCAP_MAJOR, bit);
}

static int make_file(struct uvd_run_ucap *u, struct stat *st)
{
	char name[UVD_UCAP_NAME + 32];
	int err;

	snprintf(name, sizeof(name), "uverbsd-ucap:%s", u->name);
	u->memfd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (u->memfd < 0)
		return -errno;
	err = uvd_run_own_inode(u->memfd, &u->inode);
	if (!err && (fchmod(u->memfd, 0600) || fstat(u->memfd, st) ||
		     fcntl(u->memfd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)))
		err = -errno;
	if (err)
		close(u->memfd);
	return err;
}

static void run_ucap_unpublish(struct uvd_run_engine *e, const char *name)
{
	char sys[PATH_MAX + 8], node[UVD_UCAP_NAME + 32];

	snprintf(sys, sizeof(sys), "%s/sys", e->root);
	uvd_sysfs_remove_ucap(sys, name);
	snprintf(node, sizeof(node), "dev/infiniband/%s", name);
	uvd_dir_remove(e->rootfd, node);
}

static int run_ucap_publish(struct uvd_run_engine *e, const char *name, unsigned int bit)
{
	char sys[PATH_MAX + 8], node[UVD_UCAP_NAME + 32];
	int err;

	snprintf(sys, sizeof(sys), "%s/sys", e->root);
	snprintf(node, sizeof(node), "dev/infiniband/%s", name);
	err = uvd_dir_put(e->rootfd, node, "%s", "") ?: uvd_sysfs_add_ucap(sys, name, rdev_of(bit), e->log);
	if (err)
		run_ucap_unpublish(e, name);
	return err;
}

static int run_ucap_create(struct uvd_engine *core, const char *name, unsigned int bit, struct uvd_ucap_node *node)
{
	struct uvd_run_engine *e = container_of(core, struct uvd_run_engine, core);
	struct uvd_run_ucap u = { .bit = bit };
	struct stat st;
	int err;

	strcpy(u.name, name);
	err = make_file(&u, &st);
	if (err)
		return err;
	err = run_ucap_publish(e, name, bit);
	if (err) {
		close(u.memfd);
		return err;
	}
	uvd_lock(&e->ucaps_lock);
	e->ucaps[bit] = u;
	uvd_unlock(&e->ucaps_lock);
	*node = (struct uvd_ucap_node){ .priv = &e->ucaps[bit], .dev = st.st_dev, .ino = st.st_ino };
	return 0;
}

static void run_ucap_remove(struct uvd_engine *core, const struct uvd_ucap_node *node)
{
	struct uvd_run_engine *e = container_of(core, struct uvd_run_engine, core);
	struct uvd_run_ucap *u = node->priv;

	run_ucap_unpublish(e, u->name);
	uvd_lock(&e->ucaps_lock);
	close(u->memfd);
	u->name[0] = 0;
	uvd_unlock(&e->ucaps_lock);
}

static const struct uvd_ucap_ops ops = { .create = run_ucap_create, .remove = run_ucap_remove };

void uvd_run_ucaps_init(struct uvd_run_engine *e)
{
	pthread_mutex_init(&e->ucaps_lock, NULL);
	e->core.ucaps.ops = &ops;
}

/* ---- for the tree ------------------------------------------------------------------------------------------------ */

/* Caller holds e->ucaps_lock. */
static struct uvd_run_ucap *run_ucap_find(struct uvd_run_engine *e, const char *name)
{
	for (struct uvd_run_ucap *u = e->ucaps; u < e->ucaps + UVD_MAX_UCAPS; u++)
		if (!strcmp(u->name, name))
			return u;
	return NULL;
}

void uvd_run_ucaps_grant(struct uvd_run_tree *tree, const struct uvd_ucap_names *granted)
{
	struct uvd_run_engine *e = tree->engine;

	tree->granted = *granted;
	for (unsigned int i = 0; i < tree->granted.num; i++) {
		const char *name = tree->granted.names[i];

		uvd_lock(&e->ucaps_lock);
		if (!run_ucap_find(e, name))
			uvd_logf(e->log, UVD_WARN, "--ucap %s: no device has created it (--ucaps)", name);
		uvd_unlock(&e->ucaps_lock);
	}
}

/* Caller holds e->ucaps_lock. */
static void ucap_node_set(const struct uvd_run_tree *tree, struct uvd_run_ucap *u, struct uvd_run_node *node)
{
	node->rdev = rdev_of(u->bit);
	node->mode = uvd_ucap_named(&tree->granted, u->name) ? 0666 : 0600;
	node->ino = 4096 + u->bit;
	node->priv = u;
}

/* Opens the memfd again: each open has its own mode. Caller holds ucaps_lock. Returns an fd or a negative errno. */
static int run_ucap_reopen(const struct uvd_run_ucap *u, unsigned int flags)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", u->memfd);
	fd = open(path, (flags & (O_ACCMODE | O_NONBLOCK)) | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static long ucap_node_find(struct uvd_run_tree *tree, const char *name, struct uvd_run_node *node)
{
	struct uvd_run_engine *e = tree->engine;
	struct uvd_run_ucap *u;

	uvd_lock(&e->ucaps_lock);
	u = run_ucap_find(e, name);
	if (u)
		ucap_node_set(tree, u, node);
	uvd_unlock(&e->ucaps_lock);
	return u ? 0 : UVD_RUN_CONTINUE;
}

/* If the capability has been removed since it was found, its entry has no name. */
static long ucap_node_open(struct uvd_run_tree *tree, struct uvd_run_node *node, unsigned int flags)
{
	struct uvd_run_engine *e = tree->engine;
	const struct uvd_run_ucap *u = node->priv;
	int fd;

	/* In the kernel anyone may open a node with O_PATH. We cannot: ADDFD does not accept an O_PATH fd. */
	if (node->mode != 0666)
		return -EACCES;
	if (flags & O_PATH)
		return -EOPNOTSUPP;
	uvd_lock(&e->ucaps_lock);
	fd = uvd_ucap_named(&tree->granted, u->name) ? run_ucap_reopen(u, flags) : -ENOENT;
	uvd_unlock(&e->ucaps_lock);
	return fd < 0 ? fd : uvd_run_answer_fd(tree, fd, 0, flags, false);
}

/* Caller holds e->ucaps_lock. */
static struct uvd_run_ucap *find_open(struct uvd_run_engine *e, const struct uvd_run_inode *inode)
{
	for (struct uvd_run_ucap *u = e->ucaps; u < e->ucaps + UVD_MAX_UCAPS; u++)
		if (u->name[0] && uvd_run_inode_equal(&u->inode, inode))
			return u;
	return NULL;
}

static bool ucap_node_opened(struct uvd_run_tree *tree, const struct uvd_run_inode *inode, struct uvd_run_node *node)
{
	struct uvd_run_engine *e = tree->engine;
	struct uvd_run_ucap *u;

	uvd_lock(&e->ucaps_lock);
	u = find_open(e, inode);
	if (u)
		ucap_node_set(tree, u, node);
	uvd_unlock(&e->ucaps_lock);
	return u;
}

/* As the kernel's nodes they have no operation but open(). */
const struct uvd_run_node_kind uvd_run_ucap_nodes = {
	.find = ucap_node_find,
	.open = ucap_node_open,
	.opened = ucap_node_opened,
};
