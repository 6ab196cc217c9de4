/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* dir.c: files and folders below an open folder. */
#ifndef UVD_UTIL_DIR_H
#define UVD_UTIL_DIR_H

#include <limits.h>
#include <stdbool.h>

/*
 * Makes one file (0444) below dir, and the folders that its path needs (0755). Returns 0 or a negative errno, as the
 * next three do.
 */
int uvd_dir_put(int dir, const char *path, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Replaces a file, which readers may be reading, by a new one with this text. */
int uvd_dir_replace(int dir, const char *path, const char *text);
int uvd_dir_mkdir(int dir, const char *path);
int uvd_dir_link(int dir, const char *path, const char *target);
/*
 * Are root and we the only users that can replace what is at path? path need not exist yet. Returns false and sets
 * culprit to the part of path that another user owns or may write to. A sticky folder such as /tmp passes if its entry
 * exists, because only the owner can replace that; if it does not exist, another user could create it first.
 */
bool uvd_dir_is_ours(const char *path, char culprit[PATH_MAX]);
/* Removes name and all below it. Follows no link. Returns 0 also if name does not exist. */
int uvd_dir_remove(int dir, const char *name);
/* Removes everything in dir. */
int uvd_dir_clear(int dir);
/* Is dir empty? Returns 1 (empty), 0, or a negative errno. */
int uvd_dir_empty(int dir);

#endif
