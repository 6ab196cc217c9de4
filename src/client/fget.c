/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a client's descriptor really is. One that was opened with O_PATH needed no permission on the file, so where a
 * descriptor is a proof it is none. Only /proc/TID/fdinfo tells; and between that look and the fstat the client could put
 * another file under the number. So the two must be of one file: the same inode of the same mount, which is held meanwhile,
 * so that neither number can be another's.
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

/* All lines come from one look of the kernel's at the descriptor. */
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
	ino = strstr(text, "\nino:\t"); /* since 5.14; without it nothing is proved */
	if (!flags || !mnt || !ino || sscanf(flags, "flags:\t%o", &info->flags) != 1 ||
	    sscanf(mnt, "\nmnt_id:\t%d", &info->mnt_id) != 1 || sscanf(ino, "\nino:\t%" SCNu64, &info->ino) != 1)
		return -EBADF;
	return 0;
}

/* Is what `path`, an O_PATH fd of ours, holds the file of the client's descriptor, and really open there? */
static int check(struct uvd_caller *c, int fd, int path, struct stat *st)
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
	err = check(c, fd, path, st);
	if (!err)
		return path;
	close(path);
	return err;
}

int uvd_caller_fget(struct uvd_caller *c, int fd, struct stat *st)
{
	int path;

	if (fd >= 0 && uvd_caller_is_self(c))
		return fcntl(fd, F_GETFL) & O_PATH || fstat(fd, st) ? -EBADF : 0; /* of a closed one all bits are set */
	path = uvd_caller_hold(c, fd, st);
	if (path < 0)
		return path;
	close(path);
	return 0;
}
