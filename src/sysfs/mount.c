/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A mount namespace for one program, in which a sysfs directory is mounted where programs look for it.
 *
 * /sys/class has no folder to mount on if the kernel has no RDMA, and sysfs allows no mkdir(). So /sys/class becomes a
 * tmpfs with a bind mount of each of the kernel's classes and of ours; the kernel's own RDMA classes are left out. It is not the overlay
 * of uverbsd: that shows both, and may not show devices that are added later.
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

#include "sysfs/sysfs.h"
#include "util/util.h"

#define CLASS "/sys/class"
#define OURS "infiniband" /* the names of our classes begin with it */

/* Stores what failed, why, and what to do about it. remedy: makes the end of the text, or NULL. Returns -err. */
static int mount_fail(struct uvd_sysfs_why *why, const char *what, int err, const char *(*remedy)(void))
{
	snprintf(why->text, sizeof(why->text), "%s: %s%s%s", what, uvd_errno_name(err), remedy ? ": " : "",
		 remedy ? remedy() : "");
	return -err;
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

int uvd_sysfs_user_namespace(void)
{
	const uid_t uid = geteuid();
	const gid_t gid = getegid();

	return unshare(CLONE_NEWUSER | CLONE_NEWNS) || mount_map_ids(uid, gid) ? -errno : 0;
}

int uvd_sysfs_namespace(struct uvd_sysfs_why *why)
{
	int err = 0;

	capng_get_caps_process();
	if (!capng_have_capability(CAPNG_EFFECTIVE, CAP_SYS_ADMIN))
		err = uvd_sysfs_user_namespace();
	else if (unshare(CLONE_NEWNS))
		return mount_fail(why, "cannot make a mount namespace", errno, NULL);
	if (err)
		return mount_fail(why, "cannot make a user namespace", -err, mount_remedy);
	/* "Slave": mounts that the system makes later appear here too, and ours do not appear in the system. */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		return mount_fail(why, "cannot separate the mounts", errno, mount_remedy);
	return 0;
}

/* ---- the mounts -------------------------------------------------------------------------------------------------- */

static int mount_bind(const char *from, const char *to, struct uvd_sysfs_why *why)
{
	return mount(from, to, NULL, MS_BIND | MS_REC, NULL) ? mount_fail(why, to, errno, NULL) : 0;
}

int uvd_sysfs_bind(const char *from, const char *to, struct uvd_sysfs_why *why)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	int err = mount_bind(from, to, why);

	if (!err && mount_setattr(AT_FDCWD, to, AT_RECURSIVE, &attr, sizeof(attr)))
		err = mount_fail(why, to, errno, NULL);
	return err;
}

struct mount_classes {
	bool ours; /* those of the sysfs directory; else the kernel's others */
	const char *links; /* the folder's path: they become symbolic links to that; NULL: mounts of its folders */
};

/* Shows the folder `name` of the open folder `dir` in CLASS. */
static int mount_class(int dir, const char *name, const struct mount_classes *what, struct uvd_sysfs_why *why)
{
	char from[PATH_MAX + NAME_MAX + 2], to[32 + NAME_MAX];

	snprintf(to, sizeof(to), CLASS "/%s", name);
	if (what->links) {
		snprintf(from, sizeof(from), "%s/%s", what->links, name);
		return symlink(from, to) ? mount_fail(why, to, errno, NULL) : 0;
	}
	snprintf(from, sizeof(from), "/proc/self/fd/%d/%s", dir, name);
	if (mkdir(to, 0755))
		return mount_fail(why, to, errno, NULL);
	return what->ours ? uvd_sysfs_bind(from, to, why) : mount_bind(from, to, why);
}

/* Shows the classes in `dir` in CLASS. Closes dir. */
static int mount_each_class(int dir, const struct mount_classes *what, struct uvd_sysfs_why *why)
{
	DIR *list = fdopendir(dir);
	struct dirent *e;
	struct stat st;
	int err = 0;

	if (!list) {
		err = mount_fail(why, CLASS, errno, NULL);
		close(dir);
		return err;
	}
	while (!err && (errno = 0, e = readdir(list))) {
		const bool is_ours = !strncmp(e->d_name, OURS, strlen(OURS));

		if (e->d_name[0] != '.' && is_ours == what->ours && !fstatat(dir, e->d_name, &st, 0) &&
		    S_ISDIR(st.st_mode))
			err = mount_class(dir, e->d_name, what, why);
	}
	if (!err && errno)
		err = mount_fail(why, CLASS, errno, NULL);
	closedir(list);
	return err;
}

static int mount_open(const char *path, struct uvd_sysfs_why *why)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? mount_fail(why, path, errno, NULL) : fd;
}

int uvd_sysfs_mount(const char *root, bool follows, struct uvd_sysfs_why *why)
{
	const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
	char path[PATH_MAX + 16];
	int kernels, ours, err;

	kernels = mount_open(CLASS, why);
	if (kernels < 0)
		return kernels;
	snprintf(path, sizeof(path), "%s/class", root);
	ours = mount_open(path, why);
	if (ours < 0) {
		close(kernels);
		return ours;
	}
	if (mount("uverbsd", CLASS, "tmpfs", flags, "mode=755")) {
		err = mount_fail(why, "cannot mount a tmpfs on " CLASS, errno, mount_remedy);
		close(ours);
		close(kernels);
		return err;
	}
	err = mount_each_class(kernels, &(struct mount_classes){}, why);
	if (err)
		close(ours);
	else
		err = mount_each_class(ours, &(struct mount_classes){ .ours = true, .links = follows ? path : NULL },
				       why);
	if (!err && mount(NULL, CLASS, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | flags, NULL))
		err = mount_fail(why, CLASS, errno, NULL);
	if (err)
		umount2(CLASS, MNT_DETACH); /* the program has all classes or the kernel's */
	return err;
}
