/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Files and directories. Sets every mode explicitly: the daemon's umask must not hide the devices from other users. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "util/util.h"

static int make_folder(int dir, const char *path)
{
	if (mkdirat(dir, path, 0755))
		return errno == EEXIST ? 0 : -errno;
	return fchmodat(dir, path, 0755, 0) ? -errno : 0;
}

/* Makes the folders of path above its last component. Returns 0 or a negative errno. */
static int dir_make_parents(int dir, const char *path)
{
	char buf[PATH_MAX];

	if (snprintf(buf, sizeof(buf), "%s", path) >= (int)sizeof(buf))
		return -ENAMETOOLONG;
	for (char *slash = buf; (slash = strchr(slash + 1, '/'));) {
		*slash = 0;
		int err = make_folder(dir, buf);
		if (err)
			return err;
		*slash = '/';
	}
	return 0;
}

int uvd_dir_mkdir(int dir, const char *path)
{
	int err = dir_make_parents(dir, path);

	return err ? err : make_folder(dir, path);
}

int uvd_dir_put(int dir, const char *path, const char *fmt, ...)
{
	va_list ap;
	int err = dir_make_parents(dir, path);

	if (err)
		return err;
	int fd = openat(dir, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
	if (fd < 0)
		return -errno;
	va_start(ap, fmt);
	if (vdprintf(fd, fmt, ap) < 0 || fchmod(fd, 0444))
		err = -errno;
	va_end(ap);
	if (close(fd) && !err)
		err = -errno;
	return err;
}

int uvd_dir_replace(int dir, const char *path, const char *text)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char aside[PATH_MAX];
	int err;

	/* Programs that list the folder do not see it. */
	if (snprintf(aside, sizeof(aside), "%.*s.%s.new", (int)(name - path), path, name) >= (int)sizeof(aside))
		return -ENAMETOOLONG;
	uvd_dir_remove(dir, aside);
	err = uvd_dir_put(dir, aside, "%s", text);
	return err ? err : renameat(dir, aside, dir, path) ? -errno : 0;
}

int uvd_dir_link(int dir, const char *path, const char *target)
{
	int err = dir_make_parents(dir, path);

	if (err)
		return err;
	return symlinkat(target, dir, path) ? -errno : 0;
}

static bool is_dot(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* Opens the folder with a read position of its own, so that it can be read again through dir. */
static DIR *open_list(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);

	if (!list && fd >= 0)
		close(fd);
	return list;
}

int uvd_dir_clear(int dir)
{
	DIR *list = open_list(dir);
	struct dirent *e;
	int err = 0;

	if (!list)
		return -errno;
	while (!err && (e = readdir(list)))
		if (!is_dot(e->d_name))
			err = uvd_dir_remove(dir, e->d_name);
	closedir(list);
	return err;
}

int uvd_dir_remove(int dir, const char *name)
{
	if (!unlinkat(dir, name, 0) || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int err = uvd_dir_clear(fd);
	close(fd);
	if (!err && unlinkat(dir, name, AT_REMOVEDIR))
		err = -errno;
	return err;
}

int uvd_dir_empty(int dir)
{
	DIR *list = open_list(dir);
	struct dirent *e;
	int empty = 1;

	if (!list)
		return -errno;
	while (empty && (e = readdir(list)))
		empty = is_dot(e->d_name);
	closedir(list);
	return empty;
}

/* ---- who can change a path? -------------------------------------------------------------------------------------- */

static bool others_may_create_in(const struct stat *st)
{
	return S_ISDIR(st->st_mode) && (st->st_mode & S_IWOTH || (st->st_mode & S_IWGRP && st->st_gid));
}

static bool others_may_change(const struct stat *st)
{
	if (st->st_uid && st->st_uid != geteuid())
		return true;
	return others_may_create_in(st) && !(st->st_mode & S_ISVTX);
}

/*
 * Are root and we the only ones that can change any part of this absolute path? links: symbolic links in it are
 * allowed.
 */
static bool path_is_ours(const char *path, char *culprit, bool links)
{
	bool shared = false; /* others may create entries in the folder that comes before */
	char target[PATH_MAX];
	struct stat st;

	for (const char *slash = path; slash; slash = strchr(slash + 1, '/')) {
		const char *end = strchr(slash + 1, '/');

		snprintf(culprit, PATH_MAX, "%.*s", end ? (int)(end - path) : PATH_MAX, path);
		if (lstat(culprit, &st)) {
			if (shared)
				snprintf(culprit, PATH_MAX, "%.*s", (int)(slash - path), path);
			return errno == ENOENT && !shared;
		}
		if (others_may_change(&st))
			return false;
		shared = others_may_create_in(&st);
		/* Others cannot redirect the link, as it and its folder are ours. Its target must be ours, too. */
		if (S_ISLNK(st.st_mode) &&
		    (!links || !realpath(culprit, target) || !path_is_ours(target, culprit, false)))
			return false;
	}
	return true;
}

bool uvd_dir_is_ours(const char *path, char culprit[PATH_MAX])
{
	char absolute[PATH_MAX], here[PATH_MAX] = "";
	int n;

	snprintf(culprit, PATH_MAX, "%s", path);
	if (path[0] != '/' && !getcwd(here, sizeof(here)))
		return false;
	n = snprintf(absolute, sizeof(absolute), "%s%s%s", here, here[0] ? "/" : "", path);
	return n < (int)sizeof(absolute) && path_is_ours(absolute, culprit, true);
}
