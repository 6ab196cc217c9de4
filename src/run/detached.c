/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The run's folder for programs that have another root than the engine: in a chroot, a sandbox (bwrap) or a container that
 * is started inside. The path of the folder means nothing there, or something else, so the engine answers it. But an open
 * folder leads by ".." to all that is above it: with one of the engine's own the program would walk out of its root.
 *
 * So its folders are those of a detached mount. ".." ends at the root of that mount, which has only the run's sys/ and dev/,
 * without the control socket: a program that can talk to that can load a plug-in. The mount is read-only, as the engine
 * writes the files below it by their paths, and would follow a link that a program puts there.
 *
 * To make mounts takes a user namespace. It takes two of them to keep the mount read-only: the program can have a user
 * namespace, too, and may then change the flags of any detached mount, except those that the kernel has locked, as it does
 * when a mount namespace is copied for another user namespace.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/launch.h"
#include "sysfs/sysfs.h"

enum { DETACHED_SECONDS = 10 };

/* ---- in the process that makes the mount ---------------------------------------------------------------------------- */

/*
 * It is a copy of one thread of the engine, so it calls no function that may wait for a lock of another thread. Each
 * function returns 0 or a negative errno.
 */

/* Mounts the folder behind the mount `from` at root/name. Closes from. */
static int detached_attach(int from, const char *root, const char *name)
{
	char path[PATH_MAX + 8];
	int ret = 0;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	if (mkdir(path, 0755) || move_mount(from, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH))
		ret = -errno;
	close(from);
	return ret;
}

static int detached_copy(const char *path, unsigned int flags)
{
	int fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | flags);

	return fd < 0 ? -errno : fd;
}

/* Replaces the folder root, in this mount namespace, by a read-only one that only has its sys/ and dev/. */
static int detached_arrange(const char *root)
{
	const unsigned int flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					       MOUNT_ATTR_NOEXEC };
	char path[PATH_MAX + 8];
	int sys, dev, err;

	snprintf(path, sizeof(path), "%s/sys", root);
	sys = detached_copy(path, 0);
	snprintf(path, sizeof(path), "%s/dev", root);
	dev = detached_copy(path, 0);
	if (sys < 0 || dev < 0)
		return sys < 0 ? sys : dev;
	if (mount("uverbsd", root, "tmpfs", flags, "mode=755"))
		return -errno;
	err = detached_attach(sys, root, "sys") ?: detached_attach(dev, root, "dev");
	if (!err && mount_setattr(AT_FDCWD, root, AT_RECURSIVE, &attr, sizeof(attr)))
		err = -errno;
	return err;
}

/* Returns the detached mount. */
static int detached_make(const char *root)
{
	int err = uvd_sysfs_user_namespace() ?: detached_arrange(root);

	if (!err && unshare(CLONE_NEWUSER | CLONE_NEWNS))
		err = -errno;
	return err ?: detached_copy(root, AT_RECURSIVE);
}

/* ---- in the engine ----------------------------------------------------------------------------------------------- */

/*
 * Returns the detached mount that another process makes, or a negative errno. The user can stop that process, and a tree's
 * thread waits for it: so it has DETACHED_SECONDS.
 */
static int detached_fetch(const char *root)
{
	const struct timeval patience = { .tv_sec = DETACHED_SECONDS };
	struct uvd_run_msg msg = { 0 };
	int fds[UVD_RUN_LINK_FDS], pair[2], err;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	pid = fork();
	if (!pid) {
		const int fd = detached_make(root);

		msg.status = fd < 0 ? fd : 0;
		_exit(uvd_run_send(pair[1], &msg, &fd, fd >= 0));
	}
	err = pid < 0 ? -errno : 0;
	close(pair[1]);
	if (!err && setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		err = -errno;
	err = err ?: uvd_run_receive(pair[0], &msg, fds) ?: msg.status;
	if (err == -EAGAIN)
		err = -ETIMEDOUT;
	close(pair[0]);
	if (pid > 0)
		kill(pid, SIGKILL); /* it has answered, or never will */
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return err ?: fds[0];
}

static int detached_get(struct uvd_run_engine *e)
{
	int fd;

	uvd_lock(&e->detached_lock);
	if (!e->detached) {
		e->detached = detached_fetch(e->root);
		if (e->detached < 0)
			uvd_logf(
				e->log, UVD_WARN,
				"a program whose root is not this run's (a chroot, sandbox or container) finds no device: "
				"cannot make a mount for it: %s: allow user namespaces (`unshare --user --mount true`)",
				uvd_errno_name(e->detached));
	}
	fd = e->detached;
	uvd_unlock(&e->detached_lock);
	return fd;
}

/* fd: where path begins. The file system may be the program's own, in FUSE: without DONT_SYNC it would be asked. */
static int slash_at(int fd, const char *path, struct uvd_run_inode *slash)
{
	struct statx stx;

	if (statx(fd, path, AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_MNT_ID, &stx))
		return -errno;
	*slash = (struct uvd_run_inode){ .ino = stx.stx_ino, .mnt_id = stx.stx_mnt_id };
	return 0;
}

int uvd_run_slash(pid_t tid, struct uvd_run_inode *slash)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/root", (int)tid);
	return slash_at(AT_FDCWD, path, slash);
}

int uvd_run_root_open(struct uvd_run_engine *e, const char *root)
{
	int err;

	pthread_mutex_init(&e->detached_lock, NULL);
	/* Without symbolic links and "//", as in what the kernel says of an open file: paths are compared. */
	if (!realpath(root, e->root))
		return -errno;
	err = uvd_run_slash(getpid(), &e->slash);
	if (err)
		return err;
	e->rootfd = open(e->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return e->rootfd < 0 ? -errno : 0;
}

void uvd_run_root_close(struct uvd_run_engine *e)
{
	close(e->rootfd);
	if (e->detached > 0)
		close(e->detached);
	pthread_mutex_destroy(&e->detached_lock);
}

/*
 * The caller is named by its number, as the engine holds nothing else of it yet. While its call waits no other thread can get
 * that number; if it ends before it is looked at, the kernel takes no answer to its call.
 */
static int slash_of_caller(struct uvd_run_tree *tree, struct uvd_run_inode *slash)
{
	int fd, err;

	if (!tree->proc.base)
		return uvd_run_slash(tree->tid, slash);
	fd = tree->proc.open(&tree->proc, tree->tid, "root", O_PATH);
	if (fd < 0)
		return fd;
	err = slash_at(fd, "", slash);
	close(fd);
	return err;
}

int uvd_run_folder(struct uvd_run_tree *tree, bool in_run)
{
	const struct uvd_run_inode *here = in_run ? &tree->slash : &tree->engine->slash;
	struct uvd_run_inode slash;
	int err = slash_of_caller(tree, &slash);

	/* A caller that has been killed has no root any more, and gets no answer: make no mount for it. */
	if (err == -ENOENT || err == -ESRCH)
		return err;
	if (err || slash.ino != here->ino || slash.mnt_id != here->mnt_id)
		return detached_get(tree->engine);
	return in_run ? -ENOENT : tree->engine->rootfd;
}
