/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "broker/node.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <uverbsd/log.h>

static void name_it(struct uvd_node *node, const char *class, const char *name)
{
	snprintf(node->name, sizeof(node->name), "infiniband/%s", name);
	snprintf(node->path, sizeof(node->path), "/dev/infiniband/%s", name);
	snprintf(node->sysfs, sizeof(node->sysfs), "/sys/class/cuse/infiniband!%s", name);
	snprintf(node->kernel, sizeof(node->kernel), "/sys/class/%s/%s", class, name);
}

void uvd_node_name(struct uvd_node *node, int number)
{
	char name[24];

	*node = (struct uvd_node){ .number = number };
	snprintf(name, sizeof(name), "uverbs%d", number);
	name_it(node, "infiniband_verbs", name);
}

void uvd_node_name_ucap(struct uvd_node *node, const char *ucap)
{
	*node = (struct uvd_node){ .number = -1 };
	name_it(node, "infiniband_ucaps", ucap);
}

const char *uvd_node_taken(const struct uvd_node *node)
{
	if (!access(node->sysfs, F_OK))
		return "another CUSE device has that name";
	if (!access(node->kernel, F_OK))
		return "the kernel has an RDMA device of that name";
	if (!access(node->path, F_OK))
		return "there is a node of that name already";
	return NULL;
}

static int read_rdev(struct uvd_node *node)
{
	unsigned int major_, minor_;
	char path[96];
	int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/dev", node->sysfs);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	n = fscanf(f, "%u:%u", &major_, &minor_);
	fclose(f);
	if (n != 2)
		return -EIO;
	node->rdev = makedev(major_, minor_);
	return 0;
}

/* Where /dev is no devtmpfs (in a container) nobody makes nodes for us. */
static int make(struct uvd_node *node, struct uvd_log *log)
{
	mkdir("/dev/infiniband", 0755);
	if (mknod(node->path, S_IFCHR | 0600, node->rdev)) {
		uvd_logf(log, UVD_ERR, "cannot make %s: %s", node->path, strerror(errno));
		return -errno;
	}
	node->made = 1;
	return 0;
}

int uvd_node_verify(struct uvd_node *node, struct uvd_log *log)
{
	int err = read_rdev(node);
	struct stat st;

	if (err) {
		uvd_logf(log, UVD_ERR, "CUSE did not make a device %s: %s/dev: %s", node->name, node->sysfs, strerror(-err));
		return err;
	}
	if (lstat(node->path, &st))
		return errno == ENOENT ? make(node, log) : -errno;
	return S_ISCHR(st.st_mode) && st.st_rdev == node->rdev ? 0 : -EEXIST;
}

int uvd_node_permit(const struct uvd_node *node, unsigned int mode, gid_t group, struct uvd_log *log)
{
	if ((group == (gid_t)-1 || !lchown(node->path, -1, group)) && !chmod(node->path, mode))
		return 0;
	uvd_logf(log, UVD_ERR, "cannot set the mode or group of %s: %s", node->path, strerror(errno));
	return -errno;
}

/* Where devtmpfs has made it, it takes a node that is gone for one that it has removed itself. */
void uvd_node_hide(struct uvd_node *node)
{
	struct stat st;

	if (!lstat(node->path, &st) && S_ISCHR(st.st_mode) && st.st_rdev == node->rdev)
		unlink(node->path);
	node->made = 0;
}

void uvd_node_remove(struct uvd_node *node)
{
	if (node->made)
		unlink(node->path);
	node->made = 0;
}
