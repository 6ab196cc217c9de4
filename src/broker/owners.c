/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "broker/owners.h"
#include <errno.h>
#include <linux/nsfs.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Is this our own user namespace? The walk ends there: our namespace and its ancestors are the same for all clients. */
static bool owners_ns_is_ours(const struct stat *ours, int ns)
{
	struct stat st;

	return !fstat(ns, &st) && st.st_dev == ours->st_dev && st.st_ino == ours->st_ino;
}

int uvd_ns_owners(int ns, uid_t *uids, unsigned int max)
{
	struct stat ours;
	int ret = stat("/proc/self/ns/user", &ours) ? -errno : 0, parent;
	unsigned int num = 0;

	while (!ret && !owners_ns_is_ours(&ours, ns)) {
		if (num == max)
			ret = -ENOSPC;
		else if (ioctl(ns, NS_GET_OWNER_UID, &uids[num]))
			ret = -errno;
		if (ret)
			break;
		num++;
		parent = ioctl(ns, NS_GET_PARENT);
		/*
		 * EPERM: the parent is neither our own namespace nor below it, for example if we are in a container
		 * and the client is not.
		 */
		if (parent < 0) {
			ret = errno == EPERM ? 0 : -errno;
			break;
		}
		close(ns);
		ns = parent;
	}
	close(ns);
	return ret ? ret : (int)num;
}
