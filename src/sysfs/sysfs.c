/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The sysfs directory as a whole: its owner, and how devices are added and removed.
 *
 * The files of a device are written to a temporary folder, then renamed into place, so that no reader ever sees half a
 * device. class/infiniband_verbs/uverbsN, which libibverbs scans for, comes last. No entry of class/infiniband/IBDEV
 * itself changes afterwards (the files of a port are replaced further down): if its mtime changes, libibverbs takes it for a
 * new device.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "sysfs/internal.h"
#include "sysfs/sysfs.h"
#include "util/util.h"

/* This file names the process that publishes the directory: "PID STARTTIME". */
#define OWNER ".owner"
#define IB_USER_VERBS_ABI "6"

struct owner {
	pid_t pid;
	unsigned long long start; /* in clock ticks since boot: tells the process from a later one with the same pid */
};

static ssize_t read_small(int dir, const char *path, char *buf, size_t size)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	if (n < 0)
		n = -errno;
	else
		buf[n] = 0;
	close(fd);
	return n;
}

/* Returns 0 or a negative errno. -ENOENT: the folder is not a sysfs directory of uverbsd. */
static int read_owner(int root, struct owner *o)
{
	char buf[64];
	ssize_t n = read_small(root, OWNER, buf, sizeof(buf));

	if (n < 0)
		return n;
	/* The file is empty if its process died while writing it: the owner then has pid 0. */
	*o = (struct owner){};
	sscanf(buf, "%d %llu", &o->pid, &o->start);
	return 0;
}

static bool is_other_living(const struct owner *o)
{
	unsigned long long start;

	return o->pid > 0 && o->pid != getpid() && uvd_process_lives(o->pid, &start) && start == o->start;
}

static int make_folders(const char *path)
{
	char buf[PATH_MAX];

	if (snprintf(buf, sizeof(buf), "%s", path) >= (int)sizeof(buf))
		return -ENAMETOOLONG;
	return uvd_dir_mkdir(AT_FDCWD, buf);
}

static int open_root(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Empties the folder, if it is ours to use. -EBUSY: another living process has it. -ENOTEMPTY: it has other files. */
static int sysfs_take_over(int root, const char *path, struct uvd_log *log)
{
	struct owner o;
	int err = read_owner(root, &o);

	if (err == -ENOENT) {
		err = uvd_dir_empty(root);
		if (err == 0)
			uvd_logf(log, UVD_ERR, "%s contains other files: choose another directory with --sysfs", path);
		return err == 1 ? 0 : err ? err : -ENOTEMPTY;
	}
	if (err)
		return err;
	if (is_other_living(&o)) {
		uvd_logf(log, UVD_ERR, "%s belongs to process %d: choose another directory with --sysfs", path, o.pid);
		return -EBUSY;
	}
	if (o.pid != getpid())
		uvd_logf(log, UVD_INFO, "replacing the sysfs directory %s, which process %d left behind", path, o.pid);
	return uvd_dir_clear(root);
}

static int fill_root(int root)
{
	struct owner me = { .pid = getpid() };
	int err;

	if (!uvd_process_lives(me.pid, &me.start))
		return -ESRCH;
	/* The owner comes first, so that a directory that is never completed is recognised as uverbsd's. */
	err = uvd_dir_put(root, OWNER, "%d %llu\n", me.pid, me.start);
	err = err ? err : uvd_dir_mkdir(root, "class/infiniband");
	return err ? err : uvd_dir_put(root, "class/infiniband_verbs/abi_version", IB_USER_VERBS_ABI "\n");
}

int uvd_sysfs_create(const char *path, struct uvd_log *log)
{
	int err = make_folders(path), root;

	root = err ? err : open_root(path);
	if (root < 0) {
		uvd_logf(log, UVD_ERR, "cannot make %s: %s%s", path, uvd_errno_name(root),
			 root == -EROFS || root == -EACCES ? ": choose another directory with --sysfs" : "");
		return root;
	}
	/* The lock keeps two daemons that start at once from both finding the directory free. */
	flock(root, LOCK_EX);
	err = sysfs_take_over(root, path, log);
	if (!err) {
		err = fchmod(root, 0755) ? -errno : fill_root(root);
		if (err)
			uvd_logf(log, UVD_ERR, "cannot create the sysfs directory %s: %s%s", path, uvd_errno_name(err),
				 err == -ESRCH ? ": this process is not in /proc: mount proc on /proc" : "");
	}
	close(root);
	return err;
}

/* Reads "MAJ:MIN" from NAME/dev below the folder `class`. Returns false if there is none. */
static bool read_node(int class, const char *name, dev_t *node)
{
	unsigned int maj, min;
	char path[300], text[32];

	snprintf(path, sizeof(path), "%s/dev", name);
	if (read_small(class, path, text, sizeof(text)) <= 0 || sscanf(text, "%u:%u", &maj, &min) != 2)
		return false;
	*node = makedev(maj, min);
	return true;
}

static void each_node(int root, const char *class, void (*fn)(void *arg, const char *name, dev_t rdev), void *arg)
{
	int fd = openat(root, class, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	dev_t rdev;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && read_node(fd, entry->d_name, &rdev))
			fn(arg, entry->d_name, rdev);
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
}

void uvd_sysfs_each_orphan(const char *path, void (*fn)(void *arg, const char *name, dev_t rdev), void *arg)
{
	int root = open_root(path);
	struct owner o;

	if (root < 0)
		return;
	if (!read_owner(root, &o) && !is_other_living(&o) && o.pid != getpid()) {
		each_node(root, "class/infiniband_verbs", fn, arg);
		each_node(root, "class/infiniband_ucaps", fn, arg);
		each_node(root, "class/misc", fn, arg);
	}
	close(root);
}

struct names {
	char aside[32], aside_ib[48], aside_verbs[48], ib[32 + IBV_SYSFS_NAME_MAX], verbs[64];
};

static void sysfs_name_places(struct names *n, const struct uvd_device_config *config)
{
	snprintf(n->aside, sizeof(n->aside), ".uverbs%d", config->number);
	snprintf(n->aside_ib, sizeof(n->aside_ib), "%s/ib", n->aside);
	snprintf(n->aside_verbs, sizeof(n->aside_verbs), "%s/verbs", n->aside);
	snprintf(n->ib, sizeof(n->ib), "class/infiniband/%s", config->ibdev);
	snprintf(n->verbs, sizeof(n->verbs), "class/infiniband_verbs/uverbs%d", config->number);
}

static int build_aside(int root, const struct names *n, const struct uvd_device_config *config,
		       const struct uvd_persona *persona, dev_t node)
{
	int err = uvd_dir_remove(root, n->aside), ib, verbs;

	err = err ? err : uvd_dir_mkdir(root, n->aside_ib);
	err = err ? err : uvd_dir_mkdir(root, n->aside_verbs);
	if (err)
		return err;
	ib = openat(root, n->aside_ib, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	verbs = openat(root, n->aside_verbs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = ib < 0 || verbs < 0 ? -errno : 0;
	err = err ? err : uvd_sysfs_fill_ibdev(ib, config, persona);
	err = err ? err : uvd_sysfs_fill_uverbs(verbs, config, persona, node);
	if (ib >= 0)
		close(ib);
	if (verbs >= 0)
		close(verbs);
	return err;
}

static int sysfs_publish(int root, const struct names *n)
{
	int err;

	if (renameat2(root, n->aside_ib, root, n->ib, RENAME_NOREPLACE))
		return -errno;
	if (!renameat2(root, n->aside_verbs, root, n->verbs, RENAME_NOREPLACE))
		return 0;
	err = -errno;
	renameat(root, n->ib, root, n->aside_ib);
	return err;
}

int uvd_sysfs_add(const char *path, const struct uvd_device_config *config, const struct uvd_persona *persona,
		  dev_t node, struct uvd_log *log)
{
	int root = open_root(path), err;
	struct names n;

	sysfs_name_places(&n, config);
	err = root < 0 ? root : build_aside(root, &n, config, persona, node);
	err = err ? err : sysfs_publish(root, &n);
	if (root >= 0) {
		uvd_dir_remove(root, n.aside);
		close(root);
	}
	if (err)
		uvd_logf(log, UVD_ERR, "cannot publish %s (uverbs%d) in %s: %s", config->ibdev, config->number, path,
			 uvd_errno_name(err));
	return err;
}

/* Opens class/infiniband/IBDEV of a published device. Returns an fd or a negative errno. */
static int sysfs_open_ibdev(const char *path, const struct uvd_device_config *config)
{
	int root = open_root(path), ib;
	struct names n;

	if (root < 0)
		return root;
	sysfs_name_places(&n, config);
	ib = openat(root, n.ib, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ib = ib < 0 ? -errno : ib;
	close(root);
	return ib;
}

int uvd_sysfs_set_port(const char *path, const struct uvd_device_config *config, unsigned int port, bool up)
{
	int ib = sysfs_open_ibdev(path, config), err;

	if (ib < 0)
		return ib;
	err = uvd_sysfs_replace_state(ib, port, up);
	close(ib);
	return err;
}

int uvd_sysfs_set_tables(const char *path, const struct uvd_device_config *config, unsigned int port)
{
	int ib = sysfs_open_ibdev(path, config), err;

	if (ib < 0)
		return ib;
	err = uvd_sysfs_replace_port(ib, port, config);
	close(ib);
	return err;
}

int uvd_sysfs_set_counters(const char *path, const struct uvd_device_config *config, const struct uvd_persona *persona,
			   unsigned int port, struct uvd_sysfs_counters *shown,
			   const uint64_t values[UVD_PORT_COUNTERS])
{
	int ib, err;

	/* Most calls end here: no traffic, no system call. */
	if (!memcmp(shown->ports[port - 1], values, sizeof(shown->ports[0])))
		return 0;
	ib = sysfs_open_ibdev(path, config);
	if (ib < 0)
		return ib;
	err = uvd_sysfs_update_counters(ib, port, persona, shown, values);
	close(ib);
	return err;
}

void uvd_sysfs_remove(const char *path, const struct uvd_device_config *config)
{
	int root = open_root(path);
	struct names n;

	if (root < 0)
		return;
	/* Rename both folders out of sight first, in reverse order, then delete them. */
	sysfs_name_places(&n, config);
	uvd_dir_remove(root, n.aside);
	uvd_dir_mkdir(root, n.aside);
	renameat(root, n.verbs, root, n.aside_verbs);
	renameat(root, n.ib, root, n.aside_ib);
	uvd_dir_remove(root, n.aside);
	close(root);
}

void uvd_sysfs_destroy(const char *path)
{
	int root = open_root(path);
	struct owner o;

	if (root < 0)
		return;
	flock(root, LOCK_EX);
	if (!read_owner(root, &o) && !is_other_living(&o)) {
		uvd_dir_clear(root);
		rmdir(path);
	}
	close(root);
}
