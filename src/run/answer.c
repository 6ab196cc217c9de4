/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Calls by path: the node, and the folder that stands for /sys/class/infiniband* and /dev/infiniband. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "run/internal.h"

/* ---- what stat() says -------------------------------------------------------------------------------------------- */

static long answer_put(struct uvd_run_tree *tree, uint64_t addr, const void *src, size_t size)
{
	return uvd_caller_write(&tree->call.caller, addr, src, size);
}

void uvd_run_node_stat(dev_t rdev, unsigned int mode, ino_t ino, struct stat *st)
{
	*st = (struct stat){
		.st_ino = ino,
		.st_nlink = 1,
		.st_mode = S_IFCHR | mode,
		.st_blksize = 4096,
		.st_rdev = rdev,
	};
}

static void device_node_stat(unsigned int number, struct stat *st)
{
	uvd_run_node_stat(makedev(UVD_RUN_MAJOR, UVD_RUN_MINOR + number), 0666, number + 1, st);
}

static void to_statx(const struct stat *st, struct statx *stx)
{
	*stx = (struct statx){
		.stx_mask = STATX_BASIC_STATS,
		.stx_blksize = st->st_blksize,
		.stx_nlink = st->st_nlink,
		.stx_mode = st->st_mode,
		.stx_ino = st->st_ino,
		.stx_size = st->st_size,
		.stx_blocks = st->st_blocks,
		.stx_atime = { .tv_sec = st->st_atim.tv_sec, .tv_nsec = st->st_atim.tv_nsec },
		.stx_mtime = { .tv_sec = st->st_mtim.tv_sec, .tv_nsec = st->st_mtim.tv_nsec },
		.stx_ctime = { .tv_sec = st->st_ctim.tv_sec, .tv_nsec = st->st_ctim.tv_nsec },
		.stx_rdev_major = major(st->st_rdev),
		.stx_rdev_minor = minor(st->st_rdev),
		.stx_dev_major = major(st->st_dev),
		.stx_dev_minor = minor(st->st_dev),
	};
}

/* The folder belongs to the user who runs us, but it stands for files of the system: the owner is root. */
static long put_stat(struct uvd_run_tree *tree, const struct uvd_run_args *args, struct stat *st)
{
	struct statx stx;

	st->st_uid = st->st_gid = 0;
	if (args->op != UVD_RUN_STATX)
		return answer_put(tree, args->buf, st, sizeof(*st));
	to_statx(st, &stx);
	return answer_put(tree, args->buf, &stx, sizeof(stx));
}

static long stat_check_access(const struct stat *st, unsigned int mode)
{
	if (mode & ~(unsigned int)(R_OK | W_OK | X_OK))
		return -EINVAL;
	return (st->st_mode & mode) == mode ? 0 : -EACCES; /* the permissions of others: S_IROTH is R_OK, and so on */
}

long uvd_run_answer_fstat(struct uvd_run_tree *tree, const struct uvd_run_args *args, unsigned int number)
{
	struct stat st;

	device_node_stat(number, &st);
	return put_stat(tree, args, &st);
}

long uvd_run_answer_node(struct uvd_run_tree *tree, const struct uvd_run_args *args, struct stat *st)
{
	switch (args->op) {
	case UVD_RUN_ACCESS:
		return stat_check_access(st, args->mode);
	case UVD_RUN_READLINK:
		return -EINVAL;
	case UVD_RUN_XATTR:
		return -EOPNOTSUPP;
	default:
		return put_stat(tree, args, st);
	}
}

/* ---- the node ---------------------------------------------------------------------------------------------------- */

static long answer_node(struct uvd_run_tree *tree, const struct uvd_run_args *args, unsigned int number)
{
	struct uvd_device *dev;
	struct stat st;
	bool ours;
	long ret;

	dev = uvd_run_device_find(tree->engine, number, &ours);
	if (!dev) /* the machine may have a device of that name: it must not replace one that was unplugged */
		return ours ? -ENOENT : UVD_RUN_CONTINUE;
	if (args->op == UVD_RUN_OPEN) {
		ret = uvd_run_device_open(tree, dev, args->flags);
		uvd_device_put(dev);
		return ret;
	}
	uvd_device_put(dev);
	device_node_stat(number, &st);
	return uvd_run_answer_node(tree, args, &st);
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static int open_below(struct uvd_run_engine *engine, const char *path, unsigned int flags)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	int fd = syscall(SYS_openat2, engine->rootfd, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

static long folder_open(struct uvd_run_tree *tree, const char *path, unsigned int flags)
{
	/* Not O_PATH: SECCOMP_IOCTL_NOTIF_ADDFD takes no such descriptor. */
	unsigned int kept = O_NOFOLLOW | O_DIRECTORY | O_NONBLOCK;
	int fd = open_below(tree->engine, path, flags & kept), number;

	if (fd < 0)
		return fd;
	if (flags & O_ACCMODE && !(flags & O_PATH)) {
		close(fd);
		return -EACCES;
	}
	number = uvd_run_add_fd(tree->listener, tree->notif->n.id, fd, -1, flags & O_CLOEXEC, true);
	close(fd);
	return number < 0 ? number : UVD_RUN_ANSWERED;
}

static long read_link(struct uvd_run_tree *tree, const struct uvd_run_args *args, int fd)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(fd, "", target, sizeof(target));

	if (n < 0 || (int64_t)args->size <= 0)
		return -EINVAL;
	if ((uint64_t)n > args->size)
		n = args->size;
	return answer_put(tree, args->buf, target, n) ? -EFAULT : n;
}

static long answer_folder(struct uvd_run_tree *tree, const struct uvd_run_args *args, const char *path)
{
	unsigned int flags = O_PATH;
	struct stat st;
	long ret;
	int fd;

	if (args->op == UVD_RUN_OPEN)
		return folder_open(tree, path, args->flags);
	if (args->op == UVD_RUN_XATTR)
		return -EOPNOTSUPP;
	if (args->flags & AT_SYMLINK_NOFOLLOW || args->op == UVD_RUN_READLINK)
		flags |= O_NOFOLLOW;
	fd = open_below(tree->engine, path, flags);
	if (fd < 0)
		return fd;
	if (args->op == UVD_RUN_READLINK)
		ret = read_link(tree, args, fd);
	else if (fstat(fd, &st))
		ret = -errno;
	else
		ret = args->op == UVD_RUN_ACCESS ? stat_check_access(&st, args->mode) : put_stat(tree, args, &st);
	close(fd);
	return ret;
}

/*
 * Reads the flags of openat2(), which are in memory. Returns false if the kernel shall carry out the call:
 * RESOLVE_BENEATH and RESOLVE_IN_ROOT change the meaning of a path, and a mode is for files that are created.
 */
static bool read_how(struct uvd_run_tree *tree, struct uvd_run_args *args)
{
	struct open_how how;

	if (args->size < sizeof(how) || uvd_caller_read(&tree->call.caller, &how, args->buf, sizeof(how)))
		return false;
	args->flags = how.flags;
	return !(how.resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT)) && !how.mode;
}

long uvd_run_answer_path(struct uvd_run_tree *tree, const struct uvd_run_args *call)
{
	struct uvd_run_args args = *call;
	struct uvd_run_target target;

	if (!uvd_run_caller(tree))
		return UVD_RUN_CONTINUE;
	uvd_run_resolve(&tree->call.caller, tree->engine->root, &args, &target);
	if (target.place == UVD_RUN_ELSEWHERE || (args.how && !read_how(tree, &args)))
		return UVD_RUN_CONTINUE;
	if (target.place == UVD_RUN_UCAP)
		return uvd_run_ucap_path(tree, &args, target.path);
	return target.place == UVD_RUN_NODE ? answer_node(tree, &args, target.number)
					    : answer_folder(tree, &args, target.path);
}
