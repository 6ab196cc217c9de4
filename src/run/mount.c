/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * --mount: PROGRAM gets a mount namespace in which the run's folders are mounted where programs look for them. Then
 * the kernel carries out chdir(), ".." and symbolic links, which the filter cannot do for PROGRAM. The engine still
 * answers opens of nodes, by their paths.
 *
 * /sys/class has no folder to mount on if the kernel has no RDMA, and sysfs allows no mkdir(). So /sys/class becomes a
 * tmpfs with a bind mount of each of the kernel's classes and of ours. It is not the overlay of uverbsd: an overlay may
 * not show devices that are added later. /dev cannot be replaced likewise, because /dev/ptmx looks for its pts beside it.
 */
#include <cap-ng.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/launch.h"
#include "util/util.h"

#define CLASS "/sys/class"
#define NODES "/dev/infiniband"
#define OURS "infiniband" /* the names of our classes begin with it */

/* remedy: makes the end of the message, or NULL. */
static int mount_complain(const char *what, int err, const char *(*remedy)(void))
{
	fprintf(stderr, "uverbsctl run: --mount: %s: %s%s%s\n", what, uvd_errno_name(err), remedy ? ": " : "",
		remedy ? remedy() : "");
	return -1;
}

/* ---- the namespaces ---------------------------------------------------------------------------------------------- */

static bool sysctl_is(const char *path, int value)
{
	FILE *f = fopen(path, "re");
	int is = !value;

	if (!f)
		return false;
	if (fscanf(f, "%d", &is) != 1)
		is = !value;
	fclose(f);
	return is == value;
}

static const char *mount_remedy(void)
{
	if (sysctl_is("/proc/sys/user/max_user_namespaces", 0))
		return "set the sysctl user.max_user_namespaces to more than 0, or run it as root";
	if (sysctl_is("/proc/sys/kernel/unprivileged_userns_clone", 0))
		return "set the sysctl kernel.unprivileged_userns_clone to 1, or run it as root";
	if (sysctl_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1))
		return "set the sysctl kernel.apparmor_restrict_unprivileged_userns to 0, or run it as root";
	return "this container or chroot forbids user namespaces: allow them, or run it as root with CAP_SYS_ADMIN";
}

/* Returns 0, or -1 with errno. */
static int mount_put_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err;
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, text, strlen(text));
	err = errno;
	close(fd);
	errno = err;
	return n < 0 ? -1 : 0;
}

/* Maps the user and the group to themselves, so that the ids stay. Returns 0, or -1 with errno. */
static int mount_map_ids(uid_t uid, gid_t gid)
{
	char users[32], groups[32];

	snprintf(users, sizeof(users), "%u %u 1\n", uid, uid);
	snprintf(groups, sizeof(groups), "%u %u 1\n", gid, gid);
	/* Without "deny" the kernel lets no unprivileged user map a group. */
	return mount_put_text("/proc/self/setgroups", "deny") ?: mount_put_text("/proc/self/uid_map", users) ?:
	       mount_put_text("/proc/self/gid_map", groups);
}

int uvd_run_enter_user_namespace(void)
{
	const uid_t uid = geteuid();
	const gid_t gid = getegid();

	return unshare(CLONE_NEWUSER | CLONE_NEWNS) || mount_map_ids(uid, gid) ? -errno : 0;
}

static int mount_enter_namespaces(void)
{
	int err;

	capng_get_caps_process();
	if (capng_have_capability(CAPNG_EFFECTIVE, CAP_SYS_ADMIN))
		return unshare(CLONE_NEWNS) ? mount_complain("cannot make a mount namespace", errno, NULL) : 0;
	err = uvd_run_enter_user_namespace();
	return err ? mount_complain("cannot make a user namespace", -err, mount_remedy) : 0;
}

/* ---- the mounts -------------------------------------------------------------------------------------------------- */

static int mount_bind(const char *from, const char *to)
{
	if (mount(from, to, NULL, MS_BIND | MS_REC, NULL))
		return mount_complain(to, errno, NULL);
	return 0;
}

/* The same, read-only: PROGRAM may own the folder, and must not remove devices from it. */
static int mount_bind_read_only(const char *from, const char *to)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };

	if (mount_bind(from, to))
		return -1;
	if (mount_setattr(AT_FDCWD, to, AT_RECURSIVE, &attr, sizeof(attr)))
		return mount_complain(to, errno, NULL);
	return 0;
}

/* Mounts the folder `name` of the open folder `dir` into CLASS. ours: it is the run's. */
static int mount_bind_class(int dir, const char *name, bool ours)
{
	char from[32 + NAME_MAX], to[32 + NAME_MAX];

	snprintf(from, sizeof(from), "/proc/self/fd/%d/%s", dir, name);
	snprintf(to, sizeof(to), CLASS "/%s", name);
	if (mkdir(to, 0755))
		return mount_complain(to, errno, NULL);
	return ours ? mount_bind_read_only(from, to) : mount_bind(from, to);
}

/* Mounts the classes in `dir` into CLASS: ours, or all others. Closes dir. */
static int mount_bind_classes(int dir, bool ours)
{
	DIR *list = fdopendir(dir);
	struct dirent *e;
	struct stat st;
	int ret = 0;

	if (!list) {
		ret = mount_complain(CLASS, errno, NULL);
		close(dir);
		return ret;
	}
	while (!ret && (errno = 0, e = readdir(list))) {
		const bool is_ours = !strncmp(e->d_name, OURS, strlen(OURS));

		if (e->d_name[0] != '.' && is_ours == ours && !fstatat(dir, e->d_name, &st, 0) && S_ISDIR(st.st_mode))
			ret = mount_bind_class(dir, e->d_name, ours);
	}
	if (!ret && errno)
		ret = mount_complain(CLASS, errno, NULL);
	closedir(list);
	return ret;
}

static int mount_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? mount_complain(path, errno, NULL) : fd;
}

static int mount_class(const char *root)
{
	const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
	char path[PATH_MAX + 16];
	int kernels, ours;

	kernels = mount_open(CLASS);
	if (kernels < 0)
		return -1;
	snprintf(path, sizeof(path), "%s" CLASS, root);
	ours = mount_open(path);
	if (ours < 0) {
		close(kernels);
		return -1;
	}
	if (mount("uverbsd", CLASS, "tmpfs", flags, "mode=755")) {
		close(ours);
		close(kernels);
		return mount_complain("cannot mount a tmpfs on " CLASS, errno, mount_remedy);
	}
	if (mount_bind_classes(kernels, false)) {
		close(ours);
		return -1;
	}
	if (mount_bind_classes(ours, true))
		return -1;
	if (mount(NULL, CLASS, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | flags, NULL))
		return mount_complain(CLASS, errno, NULL);
	return 0;
}

int uvd_run_mount(const char *root, unsigned int *mounted)
{
	char nodes[PATH_MAX + 16];

	/* "Slave": mounts that the system makes later appear here too, and ours do not appear in the system. */
	if (mount_enter_namespaces() || (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) &&
					 mount_complain("cannot separate the mounts", errno, mount_remedy)))
		return -1;
	if (mount_class(root))
		return -1;
	*mounted = UVD_RUN_MOUNTED_SYS;
	snprintf(nodes, sizeof(nodes), "%s" NODES, root);
	if (access(NODES, F_OK))
		return 0; /* nothing to mount on: the engine answers calls by path, as without --mount */
	*mounted |= UVD_RUN_MOUNTED_DEV;
	return mount_bind_read_only(nodes, NODES);
}
