/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "broker/node.h"
#include "util/util.h"
#include <errno.h>
#include <stdbool.h>
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
	snprintf(node->sysfs, sizeof(node->sysfs), "/sys/devices/virtual/cuse/infiniband!%s", name);
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

void uvd_node_name_cm(struct uvd_node *node, bool aside)
{
	*node = (struct uvd_node){ .number = -1, .aside = aside };
	name_it(node, "misc", aside ? "uverbsd_cm" : "rdma_cm");
}

static int read_rdev(struct uvd_node *node)
{
	unsigned int major_, minor_;
	char path[128];
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

static bool is_orphan(struct uvd_node *node, const struct uvd_node_orphans *orphans)
{
	if (!orphans->num || read_rdev(node))
		return false;
	for (unsigned int i = 0; i < orphans->num && i < UVD_NODE_ORPHANS; i++)
		if (orphans->rdev[i] == node->rdev)
			return true;
	return false;
}

const char *uvd_node_taken(struct uvd_node *node, const struct uvd_node_orphans *orphans)
{
	size_t name = strlen(node->name), sysfs = strlen(node->sysfs);

	if (is_orphan(node, orphans)) {
		/* A broker outlives engine processes, so a name with its PID alone could be taken already. */
		snprintf(node->name + name, sizeof(node->name) - name, ".%d.%u", (int)getpid(), orphans->num);
		snprintf(node->sysfs + sysfs, sizeof(node->sysfs) - sysfs, ".%d.%u", (int)getpid(), orphans->num);
	}
	if (!access(node->sysfs, F_OK))
		return "another CUSE device has that name";
	if (!access(node->kernel, F_OK))
		return "the kernel has an RDMA device of that name";
	if (!access(node->path, F_OK))
		return "there is a node of that name already";
	return NULL;
}

/* If /dev is not a devtmpfs (in a container), the kernel does not make the node. */
static int node_mknod(struct uvd_node *node, struct uvd_log *log)
{
	mkdir("/dev/infiniband", 0755);
	if (mknod(node->path, S_IFCHR | 0600, node->rdev)) {
		uvd_logf(log, UVD_ERR, "cannot make %s: %s", node->path, uvd_errno_name(errno));
		return -errno;
	}
	node->made = 1;
	return 0;
}

/* devtmpfs made a node of the CUSE name: unlink it if that is not the node's own path. */
static void remove_other_name(const struct uvd_node *node)
{
	char path[80];

	snprintf(path, sizeof(path), "/dev/%s", node->name);
	if (strcmp(path, node->path))
		unlink(path);
}

int uvd_node_make(struct uvd_node *node, int number, const struct uvd_node_orphans *orphans,
		  int (*make)(void *arg, struct uvd_node *node), void *arg, struct uvd_log *log)
{
	const char *taken;
	int n, ret;

	for (n = number < 0 ? 0 : number; n < UVD_NODE_NUMBERS; n++) {
		uvd_node_name(node, n);
		taken = uvd_node_taken(node, orphans);
		ret = taken ? -EEXIST : make(arg, node);
		if (ret != -EEXIST)
			return ret;
		if (!taken)
			taken = "another process has just taken that name";
		if (number >= 0) {
			uvd_logf(log, UVD_ERR, "%s: %s; choose another number, or none", node->path, taken);
			return ret;
		}
		uvd_logf(log, UVD_DEBUG, "%s: %s; trying the next number", node->path, taken);
	}
	uvd_logf(log, UVD_ERR, "no number below %d is free for a node", n);
	return -EEXIST;
}

int uvd_node_make_ucap(struct uvd_node *node, const char *ucap, const struct uvd_node_orphans *orphans,
		       int (*make)(void *arg, struct uvd_node *node), void *arg, struct uvd_log *log)
{
	const char *taken;
	int ret;

	uvd_node_name_ucap(node, ucap);
	taken = uvd_node_taken(node, orphans);
	ret = taken ? -EEXIST : make(arg, node);
	if (ret == -EEXIST)
		uvd_logf(log, UVD_ERR, "%s: %s", node->path,
			 taken ? taken : "another process has just taken that name");
	return ret;
}

/* As uvd_node_make_cm(), for one of the two names. *taken: a text that says what has the name, or NULL. */
static int node_try_cm(struct uvd_node *node, bool aside, const struct uvd_node_orphans *orphans,
		       int (*make)(void *arg, struct uvd_node *node), void *arg, const char **taken)
{
	int ret;

	uvd_node_name_cm(node, aside);
	*taken = uvd_node_taken(node, orphans);
	ret = *taken ? -EEXIST : make(arg, node);
	if (ret == -EEXIST && !*taken)
		*taken = "another process has just taken that name";
	return ret;
}

int uvd_node_make_cm(struct uvd_node *node, const struct uvd_node_orphans *orphans,
		     int (*make)(void *arg, struct uvd_node *node), void *arg, struct uvd_log *log)
{
	const char *taken, *kernels = "the kernel has its own, and `modprobe -r rdma_ucm` removes it";
	int ret = node_try_cm(node, false, orphans, make, arg, &taken);

	if (ret != -EEXIST)
		return ret;
	if (access(node->kernel, F_OK))
		kernels = taken;
	ret = node_try_cm(node, true, orphans, make, arg, &taken);
	if (ret >= 0)
		uvd_logf(log, UVD_WARN,
			 "/dev/infiniband/rdma_cm: %s; this uverbsd's is %s: programs that use librdmacm find it if "
			 "`uverbsctl exec` starts them",
			 kernels, node->path);
	else if (ret == -EEXIST)
		uvd_logf(
			log, UVD_WARN,
			"/dev/infiniband/rdma_cm is not served: %s; nor is %s: %s; programs that use librdmacm do not find uverbsd's "
			"devices until uverbsd is started without these",
			kernels, node->path, taken);
	return ret;
}

int uvd_node_verify(struct uvd_node *node, struct uvd_log *log)
{
	int err = read_rdev(node);
	struct stat st;

	if (err) {
		uvd_logf(log, UVD_ERR, "CUSE did not create the device %s: %s/dev: %s", node->name, node->sysfs,
			 uvd_errno_name(err));
		return err;
	}
	remove_other_name(node);
	if (lstat(node->path, &st))
		return errno == ENOENT ? node_mknod(node, log) : -errno;
	return S_ISCHR(st.st_mode) && st.st_rdev == node->rdev ? 0 : -EEXIST;
}

int uvd_node_permit(const struct uvd_node *node, unsigned int mode, gid_t group, struct uvd_log *log)
{
	if ((group == (gid_t)-1 || !lchown(node->path, -1, group)) && !chmod(node->path, mode))
		return 0;
	uvd_logf(log, UVD_ERR, "cannot set the mode or group of %s: %s", node->path, uvd_errno_name(errno));
	return -errno;
}

/* If devtmpfs made the node, it accepts later that the node is gone already. */
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

static bool write_abort(const struct uvd_node *node)
{
	char path[128];
	bool ok = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/abort", node->sysfs);
	f = fopen(path, "we");
	if (f) {
		ok = fputs("1", f) >= 0;
		ok = !fclose(f) && ok;
	}
	return ok;
}

void uvd_node_abort(struct uvd_node_orphans *orphans, const char *name, dev_t rdev, struct uvd_log *log)
{
	struct uvd_node node = { 0 };

	name_it(&node, "", name);
	if (read_rdev(&node) || node.rdev != rdev || !write_abort(&node))
		return;
	uvd_logf(log, UVD_WARN, "%s: its process has exited, but a client's call keeps the session open: aborting it",
		 node.path);
	orphans->rdev[orphans->num++ % UVD_NODE_ORPHANS] = rdev;
	uvd_node_hide(&node);
}

bool uvd_node_exists(const char *name, dev_t rdev)
{
	struct uvd_node node = { 0 };

	name_it(&node, "", name);
	return !read_rdev(&node) && node.rdev == rdev;
}
