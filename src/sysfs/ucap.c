/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* class/infiniband_ucaps: the nodes of User Capabilities. The first one creates the class, as in the kernel. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "sysfs/internal.h"
#include "sysfs/sysfs.h"
#include "util/util.h"

#define CLASS "class/infiniband_ucaps"

struct ucap_names {
	char aside[UVD_UCAP_NAME + 8], place[UVD_UCAP_NAME + 32];
};

static void sysfs_ucap_name_places(struct ucap_names *n, const char *name)
{
	snprintf(n->aside, sizeof(n->aside), ".ucap-%s", name);
	snprintf(n->place, sizeof(n->place), CLASS "/%s", name);
}

static int sysfs_ucap_fill(int root, const struct ucap_names *n, const char *name, dev_t node)
{
	char path[UVD_UCAP_NAME + 16];
	int err = uvd_dir_remove(root, n->aside);

	snprintf(path, sizeof(path), "%s/dev", n->aside);
	err = err ? err : uvd_dir_put(root, path, "%u:%u\n", major(node), minor(node));
	snprintf(path, sizeof(path), "%s/uevent", n->aside);
	return err ? err
		   : uvd_dir_put(root, path, "MAJOR=%u\nMINOR=%u\nDEVNAME=infiniband/%s\nDEVMODE=0600\n", major(node),
				 minor(node), name);
}

int uvd_sysfs_add_ucap(const char *path, const char *name, dev_t node, struct uvd_log *log)
{
	int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;
	struct ucap_names n;

	sysfs_ucap_name_places(&n, name);
	err = root < 0 ? -errno : sysfs_ucap_fill(root, &n, name, node);
	err = err ? err : uvd_dir_mkdir(root, CLASS);
	if (!err && renameat2(root, n.aside, root, n.place, RENAME_NOREPLACE))
		err = -errno;
	if (root >= 0) {
		uvd_dir_remove(root, n.aside);
		close(root);
	}
	if (err)
		uvd_logf(log, UVD_ERR, "cannot publish the User Capability %s in %s: %s", name, path,
			 uvd_errno_name(err));
	return err;
}

void uvd_sysfs_remove_ucap(const char *path, const char *name)
{
	int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct ucap_names n;

	if (root < 0)
		return;
	/* Rename the folder out of sight first, then delete it. */
	sysfs_ucap_name_places(&n, name);
	uvd_dir_remove(root, n.aside);
	renameat(root, n.place, root, n.aside);
	uvd_dir_remove(root, n.aside);
	close(root);
}
