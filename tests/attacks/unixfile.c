/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * unixfile N: while the daemon gives a thread an event file, another thread duplicates the socket that the daemon binds to a file of
 * its private file system. In a network namespace of its own the client then gets a descriptor of that file by SIOCUNIXFILE, and
 * tries to get from the file to other files.
 *
 * Prints how many such files it got, how many of its attempts have succeeded, and how many files the file system has room for, or 0
 * if that has no limit. Exit status 0.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "uv.h"
#include "slow.h"

enum { FROM = 300, ROOM = 8, UNIXFILE = SIOCPROTOPRIVATE };

static atomic_int first = -1; /* lowest free number: the descriptors of a grant appear from there on */
static atomic_bool stop;

static void *grab(void *arg)
{
	bool have[3] = {};

	while (!stop) {
		int at = first;

		for (int i = 0; i < 3; i++)
			have[i] = at >= 0 && (have[i] || fcntl(at + i, F_DUPFD_CLOEXEC, FROM) >= 0);
	}
	return NULL;
}

static int succeeded(const char *what, long ret)
{
	if (ret < 0)
		return 0;
	printf("%s has succeeded\n", what);
	return 1;
}

/* Tries what leads from a file to its folder or to its file system. Returns how often it has succeeded. */
static int leave(int file)
{
	union {
		struct file_handle h;
		char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} u = { .h.handle_bytes = MAX_HANDLE_SZ };
	char path[64], above[80];
	int mount_id, n = 0;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	snprintf(above, sizeof(above), "%s/..", path);
	n += succeeded("open of its folder", openat(file, "..", O_PATH));
	n += succeeded("open of its folder by path", open(above, O_PATH));
	n += succeeded("open", open(path, O_RDWR | O_NONBLOCK));
	n += succeeded("fchdir", fchdir(file));
	n += succeeded("link", linkat(AT_FDCWD, path, AT_FDCWD, "/tmp/uverbsd-unixfile", AT_SYMLINK_FOLLOW));
	n += succeeded("open_tree", syscall(SYS_open_tree, file, "", AT_EMPTY_PATH | 1 /* OPEN_TREE_CLONE */));
	n += succeeded("mount", mount(path, "/proc/self/exe", NULL, MS_BIND, NULL));
	n += succeeded("umount", umount2(path, MNT_DETACH));
	if (!name_to_handle_at(file, "", &u.h, &mount_id, AT_EMPTY_PATH))
		n += succeeded("open_by_handle_at", open_by_handle_at(file, &u.h, O_PATH));
	return n;
}

int main(int argc, char **argv)
{
	int fd, async, channel, files = 0, left = 0, keep = -1;
	struct statfs fs = {};
	uint32_t vectors;
	pthread_t thread;

	MUST(argc > 1 && !unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS));
	fd = uv_open();
	MUST(fd >= 0 && !uv_get_context(fd, UV_INVOKE, &async, &vectors));
	MUST(!pthread_create(&thread, NULL, grab, NULL));
	for (int i = 0; i < atoi(argv[1]); i++) {
		int next = dup(0);

		close(next);
		first = next;
		if (uv_create_channel(fd, UV_INVOKE, &channel))
			channel = -1;
		first = -1;
		nap(1);
		for (int other = FROM; other < FROM + ROOM; other++) {
			int file = ioctl(other, UNIXFILE, 0);

			if (file >= 0 && keep < 0)
				keep = dup(file);
			if (file >= 0) {
				files++;
				left += leave(file);
				close(file);
			}
			close(other);
		}
		if (channel >= 0)
			close(channel);
	}
	stop = true;
	MUST(keep < 0 || !fstatfs(keep, &fs));
	printf("%d files, %d ways out of them, room for %ld\n", files, left, (long)fs.f_files);
	return 0;
}
