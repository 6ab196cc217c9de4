/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Looks a client's descriptor up as fget() does. An fd that was opened with O_PATH needed no permission on the file, so
 * it proves no right to it. Only /proc/TID/fdinfo shows O_PATH. Between that look and the fstat() the client could put
 * another file under the same fd. So both must name the same inode of the same mount. An O_PATH fd of ours keeps the
 * file open meanwhile, so that neither number can be reused.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/client.h"
#include "client/internal.h"

struct info {
	unsigned int flags;
	int mnt_id;
	uint64_t ino;
};

/* The kernel looks the descriptor up once for all lines, so they are of one file. */
static int read_info(struct uvd_caller *c, int fd, struct info *info)
{
	const char *flags, *mnt, *ino;
	char name[32], text[512];
	ssize_t n;

	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	n = uvd_proc_read(c, uvd_proc_tid(c), name, text, sizeof(text));
	if (n < 0)
		return n == -ENOENT ? -EBADF : n;
	flags = strstr(text, "flags:\t");
	mnt = strstr(text, "\nmnt_id:\t");
	ino = strstr(text, "\nino:\t"); /* since Linux 5.14; without it there is no proof */
	if (!flags || !mnt || !ino || sscanf(flags, "flags:\t%o", &info->flags) != 1 ||
	    sscanf(mnt, "\nmnt_id:\t%d", &info->mnt_id) != 1 || sscanf(ino, "\nino:\t%" SCNu64, &info->ino) != 1)
		return -EBADF;
	return 0;
}

/*
 * Is `path`, an O_PATH fd of ours, of the file that the client's fd has open, and without O_PATH? Returns 0 or a
 * negative errno.
 */
static int fget_check(struct uvd_caller *c, int fd, int path, struct stat *st)
{
	struct statx stx;
	struct info info;
	int err;

	if (uvd_path_stat(path, st) || statx(path, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &stx) ||
	    !(stx.stx_mask & STATX_MNT_ID))
		return -EBADF;
	err = read_info(c, fd, &info);
	if (err)
		return err;
	return info.flags & O_PATH || info.ino != st->st_ino || info.mnt_id != (int)stx.stx_mnt_id ? -EBADF : 0;
}

int uvd_caller_hold(struct uvd_caller *c, int fd, struct stat *st)
{
	char name[32];
	int path, err;

	if (fd < 0 || !uvd_proc_tid(c))
		return -EBADF;
	snprintf(name, sizeof(name), "fd/%d", fd);
	path = uvd_proc_open(c, uvd_proc_tid(c), name, O_PATH);
	if (path < 0)
		return path == -ENOENT ? -EBADF : path;
	err = fget_check(c, fd, path, st);
	if (!err)
		return path;
	close(path);
	return err;
}

int uvd_caller_fget(struct uvd_caller *c, int fd, struct stat *st)
{
	int path;

	if (fd >= 0 && uvd_caller_is_self(c))
		return fcntl(fd, F_GETFL) & O_PATH || fstat(fd, st) ? -EBADF : 0; /* -1 for a closed fd has O_PATH */
	path = uvd_caller_hold(c, fd, st);
	if (path < 0)
		return path;
	close(path);
	return 0;
}
