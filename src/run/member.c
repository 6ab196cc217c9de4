/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What another run's guardian sends to the engine. Every process of the user can connect to the socket of --join, so the
 * engine looks at all of it before it uses any. No look may wait for whoever serves a file that was sent: so none is a
 * fstat() or a poll() until the file is known not to be of FUSE.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "options/options.h"
#include "run/launch.h"

enum { MEMBER_MOST_FDS = 65536, MEMBER_MOST_WINDOW = 8192 };

/* The links of anonymous inodes do not begin with "/", as the paths of all files do. */
static bool member_is_listener(int fd)
{
	static const char listener[] = "anon_inode:seccomp notify";
	char path[64], link[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, link, sizeof(link));
	return n == (ssize_t)strlen(listener) && !memcmp(link, listener, n);
}

/* Only memfds have these seals. Pages of a memfd on hugetlbfs can be missing: an access to one is SIGBUS. */
static bool member_is_notif(int fd)
{
	const int seals = fcntl(fd, F_GET_SEALS), wanted = F_SEAL_SHRINK | F_SEAL_GROW;
	struct statfs fs;
	struct stat st;

	if (seals < 0 || (seals & wanted) != wanted)
		return false;
	return !fstatfs(fd, &fs) && fs.f_type == TMPFS_MAGIC && !fstat(fd, &st) &&
	       st.st_size >= (off_t)sizeof(struct uvd_run_notif);
}

static bool member_is_agent(int fd)
{
	int domain = 0, type = 0;
	socklen_t len = sizeof(int);

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) && domain == AF_UNIX &&
	       !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) && type == SOCK_SEQPACKET;
}

/* The engine looks in a window for a number that is free. */
static bool member_window_ok(const struct uvd_run_window *w)
{
	return w->size <= MEMBER_MOST_WINDOW && (!w->direct || w->direct == w->size / 2) &&
	       !(w->size & (w->size - 1)) && w->base <= MEMBER_MOST_FDS - w->size && !(w->size && w->base % w->size);
}

bool uvd_run_listener_ok(const struct uvd_run_msg *msg, const int *fds)
{
	if (msg->kind != UVD_RUN_LISTENER || !uvd_options_ucaps_ok(&msg->granted))
		return false;
	for (unsigned int i = 0; i < UVD_RUN_WINDOWS; i++)
		if (!member_window_ok(&msg->windows[i]))
			return false;
	return member_is_listener(fds[0]) && member_is_notif(fds[1]) &&
	       (fds[2] < 0 ? !msg->receives : member_is_agent(fds[2]));
}
