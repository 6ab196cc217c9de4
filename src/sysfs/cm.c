/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* class/misc/rdma_cm: the node of the connection manager. librdmacm reads its abi_version. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "sysfs/internal.h"
#include "sysfs/sysfs.h"
#include "util/util.h"

#define CM_CLASS "class/misc"
#define CM_PLACE CM_CLASS "/rdma_cm"
#define CM_ASIDE ".rdma_cm"
#define RDMA_USER_CM_ABI "4"

static int sysfs_cm_fill(int root, dev_t node)
{
	int err = uvd_dir_remove(root, CM_ASIDE);

	err = err ? err : uvd_dir_put(root, CM_ASIDE "/dev", "%u:%u\n", major(node), minor(node));
	return err ? err : uvd_dir_put(root, CM_ASIDE "/abi_version", RDMA_USER_CM_ABI "\n");
}

int uvd_sysfs_add_cm(const char *path, dev_t node, struct uvd_log *log)
{
	int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;

	err = root < 0 ? -errno : sysfs_cm_fill(root, node);
	err = err ? err : uvd_dir_mkdir(root, CM_CLASS);
	if (!err && renameat2(root, CM_ASIDE, root, CM_PLACE, RENAME_NOREPLACE))
		err = -errno;
	if (root >= 0) {
		uvd_dir_remove(root, CM_ASIDE);
		close(root);
	}
	if (err)
		uvd_logf(log, UVD_ERR, "cannot publish rdma_cm in %s: %s", path, uvd_errno_name(err));
	return err;
}

void uvd_sysfs_remove_cm(const char *path)
{
	int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (root < 0)
		return;
	/* Rename the folder out of sight first, then delete it. */
	uvd_dir_remove(root, CM_ASIDE);
	renameat(root, CM_PLACE, root, CM_ASIDE);
	uvd_dir_remove(root, CM_ASIDE);
	close(root);
}
