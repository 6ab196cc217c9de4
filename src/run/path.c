/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <uverbsd/config.h>

#include "cm/cm.h"
#include "cpu/cpu.h"
#include "run/path.h"

#define DEV_DIR "/dev/infiniband"
#define SYS_DIR "/sys/class/infiniband" /* the names of our classes begin with it */
#define CM_DIR "/sys/class/misc/" UVD_CM_NODE

/* ---- decoding ---------------------------------------------------------------------------------------------------- */

static void decode_path_call(int nr, const __u64 *a, struct uvd_run_args *args)
{
	switch (nr) {
#ifdef SYS_open
	case SYS_open:
		*args = (struct uvd_run_args){ .op = UVD_RUN_OPEN, .fd = AT_FDCWD, .path = a[0], .flags = a[1] };
		break;
	case SYS_stat:
	case SYS_lstat:
		*args = (struct uvd_run_args){ .op = UVD_RUN_STAT, .fd = AT_FDCWD, .path = a[0], .buf = a[1] };
		args->flags = nr == SYS_lstat ? AT_SYMLINK_NOFOLLOW : 0;
		break;
	case SYS_access:
		*args = (struct uvd_run_args){ .op = UVD_RUN_ACCESS, .fd = AT_FDCWD, .path = a[0], .mode = a[1] };
		break;
	case SYS_readlink:
		*args = (struct uvd_run_args){ UVD_RUN_READLINK, AT_FDCWD, a[0], .buf = a[1], .size = (int)a[2] };
		break;
#endif
	case SYS_openat:
		*args = (struct uvd_run_args){ .op = UVD_RUN_OPEN, .fd = a[0], .path = a[1], .flags = a[2] };
		break;
	case SYS_openat2:
		*args = (struct uvd_run_args){ UVD_RUN_OPEN, a[0], a[1], .buf = a[2], .size = a[3], .how = true };
		break;
	case SYS_newfstatat:
		*args = (struct uvd_run_args){ UVD_RUN_STAT, a[0], a[1], .buf = a[2], .flags = a[3] };
		break;
	case SYS_statx:
		*args = (struct uvd_run_args){ UVD_RUN_STATX, a[0], a[1], .buf = a[4], .flags = a[2], .mode = a[3] };
		break;
	case SYS_faccessat:
		*args = (struct uvd_run_args){ UVD_RUN_ACCESS, a[0], a[1], .mode = a[2] };
		break;
	case SYS_faccessat2:
		*args = (struct uvd_run_args){ UVD_RUN_ACCESS, a[0], a[1], .mode = a[2], .flags = a[3] };
		break;
	case SYS_readlinkat:
		*args = (struct uvd_run_args){ UVD_RUN_READLINK, a[0], a[1], .buf = a[2], .size = (int)a[3] };
		break;
	case SYS_getxattr:
	case SYS_lgetxattr:
	case SYS_listxattr:
	case SYS_llistxattr:
		*args = (struct uvd_run_args){ .op = UVD_RUN_XATTR, .fd = AT_FDCWD, .path = a[0] };
		break;
	case SYS_execve:
	case SYS_execveat:
		*args = (struct uvd_run_args){ .op = UVD_RUN_EXEC };
		break;
	default:
		*args = (struct uvd_run_args){ .op = UVD_RUN_SETID };
		break;
	}
}

void uvd_run_decode(const struct seccomp_data *data, struct uvd_run_args *args)
{
	const __u64 *a = data->args;

	switch (data->nr) {
	case SYS_write:
		*args = (struct uvd_run_args){ .op = UVD_RUN_WRITE, .fd = a[0], .buf = a[1], .size = a[2] };
		break;
	case SYS_writev:
		*args = (struct uvd_run_args){ .op = UVD_RUN_WRITEV, .fd = a[0], .buf = a[1], .size = a[2] };
		break;
	case SYS_read:
	case SYS_readv:
		*args = (struct uvd_run_args){ .op = UVD_RUN_READ, .fd = a[0] };
		break;
	case SYS_ioctl:
		*args = (struct uvd_run_args){ .op = UVD_RUN_IOCTL, .fd = a[0], .flags = a[1], .buf = a[2] };
		break;
	case SYS_fstat:
		*args = (struct uvd_run_args){ .op = UVD_RUN_FSTAT, .fd = a[0], .buf = a[1] };
		break;
	case SYS_dup:
		*args = (struct uvd_run_args){ .op = UVD_RUN_DUP, .fd = a[0] };
		break;
	case SYS_socket:
		*args = (struct uvd_run_args){ .op = UVD_RUN_NETLINK };
		break;
#ifdef SYS_setrlimit
	case SYS_setrlimit:
		*args = (struct uvd_run_args){ .op = UVD_RUN_LIMIT, .buf = a[1] };
		break;
#endif
	case SYS_prlimit64:
		*args = (struct uvd_run_args){ .op = UVD_RUN_LIMIT, .fd = a[0], .buf = a[2] };
		break;
	case SYS_close:
		*args = (struct uvd_run_args){ .op = UVD_RUN_CLOSE, .fd = a[0] };
		break;
#ifdef SYS_dup2
	case SYS_dup2:
#endif
	case SYS_dup3:
		*args = (struct uvd_run_args){ .op = UVD_RUN_CLOSE, .fd = a[1] };
		break;
	case SYS_close_range:
		*args = (struct uvd_run_args){ .op = UVD_RUN_CLOSE, .fd = -1 };
		break;
	case SYS_io_uring_setup:
		*args = (struct uvd_run_args){ .op = UVD_RUN_RING };
		break;
	case SYS_exit_group:
		*args = (struct uvd_run_args){ .op = UVD_RUN_EXIT, .fd = a[0] & 0xff };
		break;
	case SYS_fcntl:
		*args = (struct uvd_run_args){ .op = UVD_RUN_DUP, .fd = a[0], .mode = a[2] };
		args->flags = (unsigned int)a[1] == F_DUPFD_CLOEXEC ? O_CLOEXEC : 0;
		break;
	default:
		decode_path_call(data->nr, a, args);
		break;
	}
}

bool uvd_run_is_fstat(struct uvd_caller *c, const struct uvd_run_args *args)
{
	char first = 0;

	if (args->op == UVD_RUN_FSTAT)
		return true;
	if ((args->op != UVD_RUN_STAT && args->op != UVD_RUN_STATX) || !(args->flags & AT_EMPTY_PATH) || args->fd < 0)
		return false;
	return !args->path || (!uvd_caller_read(c, &first, args->path, 1) && !first);
}

/* ---- what a path means ------------------------------------------------------------------------------------------- */

/* A path may end just before a page that is not mapped, so no read crosses the end of a page unless the path does. */
static int run_path_read(struct uvd_caller *c, uint64_t addr, char *path)
{
	enum { MOST_PATHS = 256, PAGE = UVD_CPU_PAGE_MIN };
	size_t got = 0;

	while (got < PATH_MAX) {
		size_t n = PAGE - ((addr + got) & (PAGE - 1)), most = got ? PATH_MAX - got : MOST_PATHS;

		n = n < most ? n : most;
		if (uvd_caller_read(c, path + got, addr + got, n))
			return -EFAULT;
		if (memchr(path + got, 0, n))
			return 0;
		got += n;
	}
	return -ENAMETOOLONG;
}

/*
 * Removes "//", "." and ".." from a path that begins with "/", in place, as if no part of it were a symbolic link. The
 * result is never longer: each part keeps the "/" before it.
 */
static void path_normalise(char *path)
{
	char *out = path, *p = path;

	while (*p) {
		char *end;

		while (*p == '/')
			p++;
		end = strchrnul(p, '/');
		if (end - p == 2 && p[0] == '.' && p[1] == '.') {
			while (out > path && *--out != '/')
				;
		} else if (end > p && !(end - p == 1 && *p == '.')) {
			*out++ = '/';
			memmove(out, p, end - p);
			out += end - p;
		}
		p = end;
	}
	*out = 0;
}

/* Reads the link /proc/TID/name. Returns its length or a negative errno. */
static ssize_t base_link(struct uvd_caller *c, const char *name, char *link)
{
	const bool by_number = !c->proc || !c->proc->base;
	char path[64];
	ssize_t n;
	int fd = -1;

	if (!by_number) {
		fd = c->proc->open(c->proc, c->tid, name, O_PATH);
		if (fd < 0)
			return fd;
	}
	if (by_number)
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)c->tid, name);
	else
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, link, PATH_MAX - 1);
	if (n < 0)
		n = -errno;
	if (fd >= 0)
		close(fd);
	return n;
}

/*
 * Stores the path of the folder where a relative path begins. If it is in the run's folder, the path is that of the
 * system's folder for which it stands. Returns 0 or a negative errno: -ENOTDIR for pipes, sockets and others whose
 * links are no paths ("pipe:[71]"), as path_normalise() needs a path that begins with "/".
 */
static int base_dir(struct uvd_caller *c, const char *root, int fd, char *base)
{
	size_t len = strlen(root);
	char name[32];
	ssize_t n;

	if (fd == AT_FDCWD)
		strcpy(name, "cwd");
	else
		snprintf(name, sizeof(name), "fd/%d", fd);
	n = base_link(c, name, base);
	if (n < 0)
		return n;
	base[n] = 0;
	if (base[0] != '/')
		return -ENOTDIR;
	if (*root && !strncmp(base, root, len) && base[len] == '/')
		memmove(base, base + len, n - len + 1);
	return 0;
}

/* Does a relative path lead above the folder where it begins? */
static bool path_escapes(const char *path)
{
	int depth = 0;

	for (const char *p = path; *p && depth >= 0;) {
		size_t len = strcspn(p, "/");

		if (len == 2 && p[0] == '.' && p[1] == '.')
			depth--;
		else if (len && !(len == 1 && *p == '.'))
			depth++;
		p += len + (p[len] == '/');
	}
	return depth < 0;
}

/* Are both paths in /dev, or both in /sys? These are file systems of their own. */
static bool same_top(const char *a, const char *b)
{
	const size_t len = strcspn(a + 1, "/") + 1;

	return len > 1 && !strncmp(a, b, len) && (!b[len] || b[len] == '/');
}

/*
 * Makes path absolute in abs, and resolves it as far as its text allows. Returns false if it cannot be one of ours, or
 * if args->resolve forbids it.
 */
static bool make_absolute(struct uvd_caller *c, const char *root, const struct uvd_run_args *args, char *path,
			  char *abs)
{
	const bool in_root = args->resolve & RESOLVE_IN_ROOT, beneath = args->resolve & RESOLVE_BENEATH;
	char base[PATH_MAX] = "/";
	size_t len;

	if (beneath && (path[0] == '/' || path_escapes(path)))
		return false;
	if ((path[0] != '/' || in_root) && base_dir(c, root, args->fd, base))
		return false;
	if (in_root) {
		memmove(path + 1, path, strlen(path) + 1);
		path[0] = '/';
		path_normalise(path); /* ".." does not lead out of the root */
	}
	len = strlen(base);
	if (len + 1 + strlen(path) >= PATH_MAX)
		return false;
	memcpy(abs, base, len);
	abs[len] = '/';
	strcpy(abs + len + 1, path);
	path_normalise(abs);
	return !(args->resolve & RESOLVE_NO_XDEV) || same_top(base, abs);
}

/* Is it sys/ of the run's folder, which SYSFS_PATH names, or a file below it? Then makes abs the path below that folder. */
static bool path_is_in_run(char *abs, const char *root)
{
	const size_t len = strlen(root);
	const char *below = abs + len;

	if (!len || strncmp(abs, root, len) || strncmp(below, "/sys", 4) || (below[4] && below[4] != '/'))
		return false;
	memmove(abs, below + 1, strlen(below));
	return true;
}

bool uvd_run_device_name(const char *name, unsigned int *number)
{
	static const char begins[] = "uverbs";
	const char *digits = name + strlen(begins);
	unsigned long n;
	char *end;

	if (strncmp(name, begins, strlen(begins)) || *digits < '0' || *digits > '9')
		return false;
	n = strtoul(digits, &end, 10);
	if (*end || (digits[0] == '0' && digits[1]) || n > INT_MAX)
		return false;
	*number = n;
	return true;
}

/* Of the class misc only our entry is the run's: the others are the machine's. */
static bool path_is_sysfs(const char *abs)
{
	const size_t len = strlen(CM_DIR);

	if (!strncmp(abs, SYS_DIR, strlen(SYS_DIR)))
		return true;
	return !strncmp(abs, CM_DIR, len) && (!abs[len] || abs[len] == '/');
}

static bool path_is_node_name(const char *name)
{
	unsigned int number;

	return uvd_run_device_name(name, &number) || !strcmp(name, UVD_CM_NODE) || uvd_ucap_name_ok(name);
}

static void path_classify(char *abs, struct uvd_run_target *t)
{
	const char *name = abs + strlen(DEV_DIR "/");

	t->place = UVD_RUN_ELSEWHERE;
	if (path_is_sysfs(abs) || !strcmp(abs, DEV_DIR)) {
		memmove(abs, abs + 1, strlen(abs));
		t->place = UVD_RUN_TREE;
	} else if (!strncmp(abs, DEV_DIR "/", strlen(DEV_DIR "/")) && path_is_node_name(name)) {
		memmove(abs, name, strlen(name) + 1);
		t->place = UVD_RUN_NODE;
	}
}

void uvd_run_resolve(struct uvd_caller *c, const char *root, const struct uvd_run_args *args, struct uvd_run_target *t)
{
	char path[PATH_MAX + 1];

	t->place = UVD_RUN_ELSEWHERE;
	t->in_run = false;
	/* If the path cannot be read, the kernel carries out the call, and finds the errno. */
	if (!args->path || run_path_read(c, args->path, path))
		return;
	/* All paths of ours contain one of these, except those that are relative to one of our own folders. */
	if (!strstr(path, "infiniband") && !strstr(path, "uverbs") && !strstr(path, UVD_CM_NODE))
		return;
	if (!make_absolute(c, root, args, path, t->path))
		return;
	t->in_run = path_is_in_run(t->path, root);
	if (t->in_run)
		t->place = UVD_RUN_TREE;
	else
		path_classify(t->path, t);
}
