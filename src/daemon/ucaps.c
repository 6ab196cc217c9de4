/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The nodes of User Capabilities, as the broker has them. Root grants one by an option, by a udev rule, or by chown: the broker
 * remembers what the node has, and gives it to the next node of that name, after a restart or a crash of the engine process.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/internal.h"
#include "sysfs/sysfs.h"
#include "util/util.h"

int uvd_ucap_permit(const struct uvd_node *node, const struct uvd_ucap_grant *grant, struct uvd_log *log)
{
	struct stat st;

	/* Somebody can have the node open already who may not have it, but not in /dev, where it is root's until here. */
	if (!lstat(node->path, &st) && S_ISCHR(st.st_mode) && st.st_rdev == node->rdev &&
	    !lchown(node->path, grant->uid, grant->gid) && !chmod(node->path, grant->mode))
		return 0;
	uvd_logf(log, UVD_ERR, "cannot set the owner and the mode of %s: %s", node->path, uvd_errno_name(errno));
	return -EIO;
}

struct uvd_ucap_own *uvd_ucap_find(struct uvd_ucap_nodes *nodes, const char *name)
{
	for (struct uvd_ucap_own *u = nodes->list; u < nodes->list + UVD_COUNT(nodes->list); u++)
		if (u->made && !strcmp(u->grant.name, name))
			return u;
	return NULL;
}

/* Returns the place that this User Capability had, or a free one. NULL: all are in use. */
static struct uvd_ucap_own *ucap_place(struct uvd_ucap_nodes *nodes, const char *name)
{
	struct uvd_ucap_own *free_one = NULL, *others = NULL;

	for (struct uvd_ucap_own *u = nodes->list; u < nodes->list + UVD_COUNT(nodes->list); u++) {
		if (u->made)
			continue;
		if (!strcmp(u->grant.name, name))
			return u;
		if (u->grant.name[0])
			others = u;
		else if (!free_one)
			free_one = u;
	}
	return free_one ? free_one : others;
}

static void ucap_remember(struct uvd_ucap_own *u)
{
	struct stat st;

	if (lstat(u->node.path, &st) || !S_ISCHR(st.st_mode) || st.st_rdev != u->node.rdev)
		return;
	u->grant.uid = st.st_uid;
	u->grant.gid = st.st_gid;
	u->grant.mode = st.st_mode & 0777;
}

void uvd_ucaps_look(struct uvd_ucap_nodes *nodes)
{
	for (struct uvd_ucap_own *u = nodes->list; u < nodes->list + UVD_COUNT(nodes->list); u++)
		if (u->made)
			ucap_remember(u);
}

/* Publishes the node, and gives it its owner and mode. */
static int ucap_begin(struct uvd_ucap_own *u, const char *sysfs, struct uvd_log *log)
{
	int err = uvd_ucap_permit(&u->node, &u->grant, log);

	return err ? err : uvd_sysfs_add_ucap(sysfs, u->grant.name, u->node.rdev, log);
}

int uvd_ucap_make(struct uvd_ucap_nodes *nodes, const char *name, const char *sysfs,
		  const struct uvd_ucap_grants *grants, const struct uvd_node_orphans *orphans,
		  int (*make)(void *arg, struct uvd_node *node), void *arg, struct uvd_log *log)
{
	struct uvd_ucap_own *u = ucap_place(nodes, name);
	int fd, err;

	if (!u || uvd_ucap_find(nodes, name))
		return -EINVAL;
	fd = uvd_node_make_ucap(&u->node, name, orphans, make, arg, log);
	if (fd < 0)
		return fd;
	if (strcmp(u->grant.name, name) != 0)
		u->grant = uvd_options_ucap_grant(grants, name);
	err = ucap_begin(u, sysfs, log);
	if (err) {
		close(fd);
		uvd_node_remove(&u->node);
		return err;
	}
	u->made = true;
	return fd;
}

void uvd_ucap_end(struct uvd_ucap_own *u, const struct uvd_options *options)
{
	ucap_remember(u);
	uvd_sysfs_remove_ucap(options->sysfs, u->grant.name);
	uvd_node_remove(&u->node);
	u->made = false;
}

void uvd_ucaps_end(struct uvd_ucap_nodes *nodes, const struct uvd_options *options)
{
	for (struct uvd_ucap_own *u = nodes->list; u < nodes->list + UVD_COUNT(nodes->list); u++) {
		if (!u->made)
			continue;
		ucap_remember(u);
		uvd_node_hide(&u->node);
		uvd_ucap_end(u, options);
	}
}

void uvd_ucaps_grant(struct uvd_ucap_nodes *nodes, const struct uvd_ucap_grants *before,
		     const struct uvd_ucap_grants *now, struct uvd_log *log)
{
	for (struct uvd_ucap_own *u = nodes->list; u < nodes->list + UVD_COUNT(nodes->list); u++) {
		const struct uvd_ucap_grant had = uvd_options_ucap_grant(before, u->grant.name);
		const struct uvd_ucap_grant has = uvd_options_ucap_grant(now, u->grant.name);

		if (!u->grant.name[0] || (had.uid == has.uid && had.gid == has.gid && had.mode == has.mode))
			continue;
		u->grant = has;
		if (u->made)
			uvd_ucap_permit(&u->node, &has, log);
	}
}
