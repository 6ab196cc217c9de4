/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Calls by path: what stat() says of nodes, and the folder that stands for /sys/class/infiniband* and /dev/infiniband. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "run/internal.h"
#include "run/link.h"

enum { KERNEL_O_LARGEFILE = 0100000 }; /* the C library's O_LARGEFILE is 0 */

/* ---- what stat() says -------------------------------------------------------------------------------------------- */

static long answer_put(struct uvd_run_tree *tree, uint64_t addr, const void *src, size_t size)
{
	return uvd_caller_write(&tree->call->caller, addr, src, size);
}

static void node_stat(const struct uvd_run_node *node, struct stat *st)
{
	*st = (struct stat){
		.st_ino = node->ino,
		.st_nlink = 1,
		.st_mode = S_IFCHR | node->mode,
		.st_blksize = 4096,
		.st_rdev = node->rdev,
	};
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

long uvd_run_answer_node(struct uvd_run_tree *tree, const struct uvd_run_args *args, const struct uvd_run_node *node)
{
	struct stat st;

	node_stat(node, &st);
	switch (args->op) {
	case UVD_RUN_ACCESS:
		return stat_check_access(&st, args->mode);
	case UVD_RUN_READLINK:
		return -EINVAL;
	case UVD_RUN_XATTR:
		return -EOPNOTSUPP;
	default:
		return put_stat(tree, args, &st);
	}
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

/* resolve: the caller's. Of these, the kernel has to obey the ones about symbolic links and about waiting. */
static int open_below(int folder, const char *path, unsigned int flags, uint64_t resolve)
{
	const uint64_t kept = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_CACHED;
	struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | (resolve & kept) };
	int fd = syscall(SYS_openat2, folder, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

static long folder_open(struct uvd_run_tree *tree, int folder, const char *path, unsigned int flags, uint64_t resolve)
{
	/* Not O_PATH: SECCOMP_IOCTL_NOTIF_ADDFD takes no such descriptor. */
	unsigned int kept = O_NOFOLLOW | O_DIRECTORY | O_NONBLOCK;
	int fd = open_below(folder, path, flags & kept, resolve), number;

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

static long answer_folder(struct uvd_run_tree *tree, const struct uvd_run_args *args, int folder, const char *path)
{
	unsigned int flags = O_PATH;
	struct stat st;
	long ret;
	int fd;

	if (args->op == UVD_RUN_OPEN)
		return folder_open(tree, folder, path, args->flags, args->resolve);
	if (args->op == UVD_RUN_XATTR)
		return -EOPNOTSUPP;
	if (args->flags & AT_SYMLINK_NOFOLLOW || args->op == UVD_RUN_READLINK)
		flags |= O_NOFOLLOW;
	fd = open_below(folder, path, flags, 0);
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

/* May this struct be an argument of openat2()? Otherwise the kernel fails the call before it looks at the path. */
static bool how_is_valid(const struct open_how *how)
{
	const uint64_t flags = O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK | O_SYNC |
			       O_DSYNC | O_ASYNC | O_DIRECT | KERNEL_O_LARGEFILE | O_DIRECTORY | O_NOFOLLOW |
			       O_NOATIME | O_CLOEXEC | O_PATH | O_TMPFILE;
	const uint64_t with_path = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		       scope = RESOLVE_BENEATH | RESOLVE_IN_ROOT;
	const uint64_t tmpfile = O_TMPFILE & ~O_DIRECTORY, creates = O_CREAT | tmpfile;
	const uint64_t resolve = scope | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_CACHED;

	if (how->flags & ~flags || how->resolve & ~resolve || (how->resolve & scope) == scope)
		return false;
	if (how->mode & ~(how->flags & creates ? UINT64_C(07777) : 0))
		return false;
	if (how->flags & O_PATH && how->flags & ~with_path)
		return false;
	return !(how->resolve & RESOLVE_CACHED) || !(how->flags & (creates | O_TRUNC));
}

/* The kernel accepts a longer struct than it knows if the rest is zero. */
static bool rest_is_zero(struct uvd_run_tree *tree, uint64_t addr, uint64_t size)
{
	enum { MOST = 4096 };
	char rest[64];

	if (size > MOST)
		return false;
	for (uint64_t at = 0, n; at < size; at += n) {
		n = size - at < sizeof(rest) ? size - at : sizeof(rest);
		if (uvd_caller_read(&tree->call->caller, rest, addr + at, n))
			return false;
		for (uint64_t i = 0; i < n; i++)
			if (rest[i])
				return false;
	}
	return true;
}

/* Reads the struct of openat2(). Returns false if the kernel shall carry out the call, which fails there. */
static bool read_how(struct uvd_run_tree *tree, struct uvd_run_args *args)
{
	struct open_how how;

	if (args->size < sizeof(how) || uvd_caller_read(&tree->call->caller, &how, args->buf, sizeof(how)) ||
	    !rest_is_zero(tree, args->buf + sizeof(how), args->size - sizeof(how)) || !how_is_valid(&how))
		return false;
	args->flags = how.flags;
	args->resolve = how.resolve;
	return true;
}

/* Is this path below the run's folder mounted where the program looks for it? */
static bool is_mounted_folder(const struct uvd_run_tree *tree, const char *path)
{
	static const char classes[] = "sys/class/infiniband"; /* the class misc is the machine's (mount.c) */

	if (!strncmp(path, "dev/", 4))
		return tree->mounted & UVD_RUN_MOUNTED_DEV;
	return tree->mounted & UVD_RUN_MOUNTED_SYS && !strncmp(path, classes, strlen(classes));
}

static long answer_published(struct uvd_run_tree *tree, const struct uvd_run_args *args, const struct uvd_run_target *t)
{
	int folder;

	if (args->op == UVD_RUN_OPEN)
		uvd_run_show_counters_at(tree->engine, t->path);
	if (!t->in_run && is_mounted_folder(tree, t->path))
		return UVD_RUN_CONTINUE;
	folder = uvd_run_folder(tree, t->in_run);
	return folder < 0 ? UVD_RUN_CONTINUE : answer_folder(tree, args, folder, t->path);
}

long uvd_run_answer_path(struct uvd_run_tree *tree, const struct uvd_run_args *call)
{
	struct uvd_run_args args = *call;
	struct uvd_run_target target;

	if (!uvd_run_caller(tree) || (args.how && !read_how(tree, &args)))
		return UVD_RUN_CONTINUE;
	uvd_run_resolve(&tree->call->caller, tree->engine->root, &args, &target);
	switch (target.place) {
	case UVD_RUN_NODE:
		return uvd_run_node_path(tree, &args, target.path);
	case UVD_RUN_TREE:
		return answer_published(tree, &args, &target);
	default:
		return UVD_RUN_CONTINUE;
	}
}
