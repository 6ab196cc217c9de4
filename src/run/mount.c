/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * --mount: PROGRAM gets a mount namespace in which the run's folders are mounted where programs look for them. Then
 * the kernel carries out chdir(), ".." and symbolic links, which the filter cannot do for PROGRAM. The engine still
 * answers opens of nodes, by their paths. /dev cannot be replaced as /sys/class is, because /dev/ptmx looks for its pts
 * beside it.
 */
#include <stdio.h>
#include <unistd.h>

#include "run/launch.h"
#include "sysfs/sysfs.h"

#define NODES "/dev/infiniband"

static int mount_complain(const struct uvd_sysfs_why *why)
{
	fprintf(stderr, "uverbsctl run: --mount: %s\n", why->text);
	return -1;
}

int uvd_run_mount(const char *root, unsigned int *mounted)
{
	char path[PATH_MAX + 16];
	struct uvd_sysfs_why why;

	snprintf(path, sizeof(path), "%s/sys", root);
	if (uvd_sysfs_namespace(&why) || uvd_sysfs_mount(path, false, &why))
		return mount_complain(&why);
	*mounted = UVD_RUN_MOUNTED_SYS;
	if (access(NODES, F_OK))
		return 0; /* nothing to mount on: the engine answers calls by path, as without --mount */
	snprintf(path, sizeof(path), "%s" NODES, root);
	*mounted |= UVD_RUN_MOUNTED_DEV;
	return uvd_sysfs_bind(path, NODES, &why) ? mount_complain(&why) : 0;
}
