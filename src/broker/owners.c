/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "broker/owners.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "broker/waiting.h"
#include "util/util.h"

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

int uvd_owners_of(pid_t tid, struct uvd_owners *owners)
{
	static const char key[] = "\nUid:\t";
	char status[UVD_STATUS_MAX], path[48];
	const char *uid;
	int ns, num;

	if (!uvd_read_status(tid, status))
		return -ESRCH;
	uid = strstr(status, key);
	if (!uid)
		return -ESRCH;
	owners->uid[0] = strtoul(uid + sizeof(key) - 1, NULL, 10);
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)tid);
	ns = open(path, O_RDONLY | O_CLOEXEC);
	if (ns < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	num = uvd_ns_owners(ns, owners->uid + 1, UVD_OWNERS_MAX - 1);
	if (num < 0)
		return num;
	owners->num = num + 1;
	return 0;
}

bool uvd_owners_are(const struct uvd_owners *a, const struct uvd_owners *b)
{
	return a->num == b->num && !memcmp(a->uid, b->uid, a->num * sizeof(a->uid[0]));
}

static bool owners_name(const struct uvd_owners *owners, uid_t uid)
{
	for (unsigned int i = 0; i < owners->num; i++)
		if (owners->uid[i] == uid)
			return true;
	return false;
}

static bool owners_are_root(const struct uvd_owners *owners)
{
	for (unsigned int i = 0; i < owners->num; i++)
		if (owners->uid[i])
			return false;
	return true;
}

bool uvd_owners_may_take(const struct uvd_owners *owners, unsigned int share, unsigned int all,
			 const struct uvd_owners *(*entry)(const void *table, unsigned int i), const void *table)
{
	const bool root = owners_are_root(owners);
	unsigned int num[UVD_OWNERS_MAX] = { 0 }, roots = 0;

	for (unsigned int i = 0; i < all; i++) {
		const struct uvd_owners *other = entry(table, i);

		if (!other)
			continue;
		roots += owners_are_root(other);
		for (unsigned int k = 0; k < owners->num; k++)
			num[k] += owners_name(other, owners->uid[k]);
	}
	for (unsigned int k = 0; k < owners->num; k++)
		if (owners->uid[k] && num[k] >= share)
			return false;
	return !root || roots < all - all / 4;
}

/* process: a directory below /proc. Has the process this id as its real, effective or saved user id? */
static bool owners_process_is(int process, uid_t uid)
{
	char status[UVD_STATUS_MAX], *line;
	unsigned int ids[3];
	int fd = openat(process, "status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : uvd_status_read(fd, status, sizeof(status));

	if (fd >= 0)
		close(fd);
	line = n > 0 ? strstr(status, "\nUid:") : NULL;
	if (!line || sscanf(line, "\nUid: %u %u %u", &ids[0], &ids[1], &ids[2]) != 3)
		return false;
	return ids[0] == uid || ids[1] == uid || ids[2] == uid;
}

int uvd_peer_owners(pid_t pid, uid_t uid, uid_t *uids, unsigned int max)
{
	int process, ns, ret;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	process = pid > 0 ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (process < 0)
		return -ESRCH;
	/* The directory stays that process's: once it has exited, the files below cannot be opened. */
	ns = openat(process, "ns/user", O_RDONLY | O_CLOEXEC);
	ret = ns < 0 ? -errno : uvd_ns_owners(ns, uids, max);
	if (ret >= 0 && !owners_process_is(process, uid))
		ret = -ESRCH;
	close(process);
	return ret;
}

int uvd_owners_pack(const uid_t *uids, unsigned int num)
{
	const ssize_t size = num * sizeof(*uids);
	int fd = memfd_create("uverbsd-owners", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (write(fd, uids, size) == size)
		return fd;
	close(fd);
	return -ENOMEM;
}

int uvd_owners_unpack(int fd, uid_t *uids, unsigned int max)
{
	const ssize_t n = pread(fd, uids, max * sizeof(*uids), 0);

	close(fd);
	return n < 0 || n % sizeof(*uids) ? -EIO : n / (int)sizeof(*uids);
}
