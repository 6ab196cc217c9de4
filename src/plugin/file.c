/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The file of a plug-in: who may change it, and the private copy that is mapped. A copy can be loaded beside an older
 * one, although dlopen() takes equal inodes for one object, and does not change when a build overwrites the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "plugin/internal.h"

enum { MAX_FILE = 256 << 20 /* bytes */ };
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U /* since 6.3 */
#endif

/* In a sticky folder of root's, such as /tmp, another user can neither rename nor remove what is root's. */
static bool plugin_sticky_protects(const struct stat *folder, const char *next)
{
	struct stat st;

	return folder->st_mode & S_ISVTX && !lstat(next, &st) && !st.st_uid;
}

/*
 * Only root may change the part `next` of a folder that root's plug-ins are in: another user could put another file
 * there. next: the path of the folder's entry that leads to the file. A symbolic link counts as itself.
 */
static int plugin_folder_check(const char *path, const char *folder, const char *next, char error[UVD_PLUGIN_ERROR])
{
	struct stat st;

	if (stat(folder, &st))
		return uvd_plugin_error(error, -errno, "%s: %s: %s", path, folder, strerrorname_np(errno));
	if (st.st_uid)
		return uvd_plugin_error(
			error, -EPERM,
			"%s: user %u owns the folder %s (mode %04o), and could put another file there: root "
			"loads plug-ins from folders that only root may change: copy it to one",
			path, st.st_uid, folder, st.st_mode & 07777);
	if (!(st.st_mode & (S_IWGRP | S_IWOTH)) || plugin_sticky_protects(&st, next))
		return 0;
	if (st.st_mode & S_ISVTX)
		return uvd_plugin_error(error, -EPERM,
					"%s: group or others may write to the folder %s (root's, mode %04o), and %s is "
					"not root's: copy it to a folder that only root may change",
					path, folder, st.st_mode & 07777, next);
	return uvd_plugin_error(error, -EPERM,
				"%s: group or others may write to the folder %s (root's, mode %04o): chmod go-w %s",
				path, folder, st.st_mode & 07777, folder);
}

/* Checks each folder that leads to the file. `file` is absolute. */
static int plugin_folders_check(const char *path, const char *file, char error[UVD_PLUGIN_ERROR])
{
	char folder[PATH_MAX] = "/", next[PATH_MAX];
	int err = 0;

	for (const char *end = file; *end && !err;) {
		const char *next_end = strchrnul(end + 1, '/');

		snprintf(next, sizeof(next), "%.*s", (int)(next_end - file), file);
		err = plugin_folder_check(path, folder, next, error);
		strcpy(folder, next);
		end = next_end;
	}
	return err;
}

static int plugin_file_check(const char *path, int fd, uid_t owner, struct stat *st, char error[UVD_PLUGIN_ERROR])
{
	if (fstat(fd, st))
		return uvd_plugin_error(error, -errno, "%s: %s", path, strerrorname_np(errno));
	if (!S_ISREG(st->st_mode))
		return uvd_plugin_error(error, -EINVAL, "%s: not a regular file", path);
	if (st->st_uid && st->st_uid != owner)
		return uvd_plugin_error(error, -EPERM, "%s: user %u owns it: only root and user %u may", path,
					st->st_uid, owner);
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return uvd_plugin_error(error, -EPERM, "%s: group or others may write to it: chmod go-w %s", path,
					path);
	if (st->st_size > MAX_FILE)
		return uvd_plugin_error(error, -EFBIG, "%s: larger than 256 MiB", path);
	return 0;
}

static int plugin_memfd(const char *path)
{
	const char *base = strrchr(path, '/');
	const unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd;

	base = base ? base + 1 : path;
	fd = memfd_create(base, flags | MFD_NOEXEC_SEAL);
	return fd < 0 && errno == EINVAL ? memfd_create(base, flags) : fd;
}

static int plugin_file_read(const char *path, int from, off_t size, char error[UVD_PLUGIN_ERROR])
{
	int to = plugin_memfd(path), err;
	char buf[1 << 16];
	off_t at;
	ssize_t n, done;

	if (to < 0)
		return uvd_plugin_error(error, -errno, "%s: memfd_create: %s", path, strerrorname_np(errno));
	for (at = 0; at < size; at += n) {
		n = pread(from, buf, sizeof(buf), at);
		done = n > 0 ? pwrite(to, buf, n, at) : n;
		if (n > 0 && done == n)
			continue;
		err = done < 0 ? -errno : -EIO;
		close(to);
		return uvd_plugin_error(error, err, "%s: cannot be copied: %s", path, uvd_errno_name(err));
	}
	fcntl(to, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
	return to;
}

static int plugin_file_open(const char *path, const char *file, uid_t owner, char error[UVD_PLUGIN_ERROR])
{
	struct stat st;
	int fd, ret;

	ret = owner ? 0 : plugin_folders_check(path, file, error);
	if (!ret && !owner && *path == '/')
		ret = plugin_folders_check(path, path, error);
	if (ret)
		return ret;
	/*
	 * Another user cannot change what leads to the file, or the folders are the user's own: file cannot have
	 * become a symbolic link since realpath().
	 */
	fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return uvd_plugin_error(error, -errno, "%s: %s", path, strerrorname_np(errno));
	ret = plugin_file_check(path, fd, owner, &st, error);
	if (!ret)
		ret = plugin_file_read(file, fd, st.st_size, error);
	close(fd);
	return ret;
}

int uvd_plugin_file_copy(const char *path, uid_t owner, char error[UVD_PLUGIN_ERROR])
{
	char *file = realpath(path, NULL);
	int fd;

	if (!file)
		return uvd_plugin_error(error, -errno, "%s: %s", path, strerrorname_np(errno));
	fd = plugin_file_open(path, file, owner, error);
	free(file);
	return fd;
}

/* Opens the file without following a link, and nothing but a file of this folder. */
static int plugin_file_open_in(int dir, const char *path, const char *name, char error[UVD_PLUGIN_ERROR])
{
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
					   RESOLVE_NO_XDEV };
	struct stat st;
	int fd = syscall(SYS_openat2, dir, name, &how, sizeof(how)), ret;

	if (fd < 0 && errno == ELOOP)
		return uvd_plugin_error(error, -ELOOP, "%s: a symbolic link: copy the file itself into the folder",
					path);
	if (fd < 0)
		return uvd_plugin_error(error, -errno, "%s: %s", path, strerrorname_np(errno));
	ret = plugin_file_check(path, fd, 0, &st, error);
	if (!ret)
		ret = plugin_file_read(path, fd, st.st_size, error);
	close(fd);
	return ret;
}

int uvd_plugin_file_copy_in(const char *folder, const char *name, char error[UVD_PLUGIN_ERROR])
{
	char path[PATH_MAX], real[PATH_MAX], file[PATH_MAX + 64];
	int dir, ret;

	if (!uvd_plugin_name_ok(name, "-_.+", 63) || *name == '.')
		return uvd_plugin_error(error, -EINVAL, "not a valid name of a file in %s", folder);
	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return uvd_plugin_error(error, -ENAMETOOLONG, "%s: the path is too long", name);
	if (!realpath(folder, real))
		return uvd_plugin_error(error, -errno, "%s: %s", folder, strerrorname_np(errno));
	snprintf(file, sizeof(file), "%s/%s", real, name);
	ret = plugin_folders_check(path, path, error) ?: plugin_folders_check(path, file, error);
	if (ret)
		return ret;
	/* Only root can have changed what leads to the folder since. */
	dir = open(real, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return uvd_plugin_error(error, -errno, "%s: %s", folder, strerrorname_np(errno));
	ret = plugin_file_open_in(dir, path, name, error);
	close(dir);
	return ret;
}
