/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "broker/waiting.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/auxvec.h>
#include <linux/openat2.h>
#include <rdma/rdma_user_ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>
#include "cpu/cpu.h"
#include "util/util.h"

enum { LONGEST_US = 2000000 };

/* The system calls in which a thread can wait for the engine. */
static const struct wait_call {
	enum uvd_wait_for what; /* 0: it never waits */
	int dirfd, path; /* of an open: the indexes of these arguments; dirfd -1: there is none */
} wait_calls[] = {
	[UVD_CPU_CALL_OTHER] = {},
	[UVD_CPU_CALL_WRITE] = { UVD_WAITS_IN_CALL },
	[UVD_CPU_CALL_PWRITE] = { UVD_WAITS_IN_CALL },
	[UVD_CPU_CALL_WRITEV] = { UVD_WAITS_IN_CALL },
	[UVD_CPU_CALL_IOCTL] = { UVD_WAITS_IN_CALL },
	[UVD_CPU_CALL_OPEN] = { UVD_WAITS_IN_OPEN, -1, 0 },
	[UVD_CPU_CALL_OPENAT] = { UVD_WAITS_IN_OPEN, 0, 1 },
};

/*
 * Reads the system call that the thread is blocked in. Returns 0 or -ESRCH. A thread on its way to sleep can wait for
 * a CPU, and is "running" meanwhile: so this function tries again for about 2.6 s.
 */
static int read_call(pid_t tid, struct uvd_wait *w)
{
	char path[48], line[192] = "";
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)tid);
	for (long us = 20; us < LONGEST_US; us *= 2) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return -ESRCH;
		n = read(fd, line, sizeof(line) - 1);
		close(fd);
		if (n <= 0)
			return -ESRCH;
		line[n] = 0;
		if (sscanf(line, "%" SCNu64 " %" SCNx64 " %" SCNx64 " %" SCNx64, &w->nr, &w->arg[0], &w->arg[1],
			   &w->arg[2]) == 4) {
			w->nr = uvd_cpu_call_number(w->nr);
			return 0;
		}
		if (strncmp(line, "running", 7))
			return -ESRCH;
		nanosleep(&(struct timespec){ .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 }, NULL);
	}
	return -ESRCH;
}

/* F_SEAL_FUTURE_WRITE refuses mappings that can be written, or made so, from then on. */
static int nodes_map(int fd, struct uvd_nodes **nodes, const struct uvd_nodes **view)
{
	const size_t size = sizeof(**nodes);
	void *mine, *theirs;

	if (ftruncate(fd, size))
		return -errno;
	mine = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mine == MAP_FAILED)
		return -errno;
	if (madvise(mine, size, MADV_DONTFORK) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	theirs = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (theirs == MAP_FAILED)
		return -errno;
	*nodes = mine;
	*view = theirs;
	return 0;
}

int uvd_nodes_new(struct uvd_nodes **nodes, const struct uvd_nodes **view)
{
	int fd = memfd_create("uverbsd-nodes", MFD_CLOEXEC | MFD_ALLOW_SEALING), err;

	if (fd < 0)
		return -errno;
	err = nodes_map(fd, nodes, view);
	close(fd);
	return err;
}

_Atomic uint64_t *uvd_nodes_place(struct uvd_nodes *nodes)
{
	char path[64];

	for (int i = 0; i < UVD_NODES_MAX; i++)
		if (!nodes->rdev[i])
			return &nodes->rdev[i];
	for (int i = 0; i < UVD_NODES_MAX; i++) {
		snprintf(path, sizeof(path), "/sys/dev/char/%u:%u", major(nodes->rdev[i]), minor(nodes->rdev[i]));
		if (access(path, F_OK))
			return &nodes->rdev[i];
	}
	return NULL;
}

static bool is_node(const struct uvd_nodes *nodes, const struct statx *x)
{
	if (!S_ISCHR(x->stx_mode))
		return false;
	for (int i = 0; i < UVD_NODES_MAX; i++)
		if (nodes->rdev[i] && nodes->rdev[i] == makedev(x->stx_rdev_major, x->stx_rdev_minor))
			return true;
	return false;
}

static bool is_queue_file(const struct uvd_nodes *nodes, const struct statx *x)
{
	return nodes->queues && nodes->queues == makedev(x->stx_dev_major, x->stx_dev_minor);
}

/* AT_STATX_DONT_SYNC: the client may itself be the FUSE server of the file, so that is not asked. */
bool uvd_is_of_node(pid_t tid, int fd, const struct uvd_nodes *nodes)
{
	struct statx x;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)tid, fd);
	return !statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE, &x) &&
	       (is_node(nodes, &x) || is_queue_file(nodes, &x));
}

/* Reads the path that the thread opens; it lies in the thread's memory. Only path look-ups use it. */
static bool waiter_read_path(pid_t tid, uint64_t addr, char *path, size_t size)
{
	const size_t in_page = UVD_CPU_PAGE_MIN - addr % UVD_CPU_PAGE_MIN;
	char mem[48];
	ssize_t n;
	int fd;

	snprintf(mem, sizeof(mem), "/proc/%d/mem", (int)tid);
	fd = open(mem, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	/* First to the end of the page: the next page may not be mapped. */
	n = pread(fd, path, size < in_page ? size : in_page, (off_t)addr);
	if (n > 0 && !memchr(path, 0, n) && (size_t)n < size) {
		ssize_t more = pread(fd, path + n, size - n, (off_t)(addr + n));

		n += more > 0 ? more : 0;
	}
	close(fd);
	return n > 0 && memchr(path, 0, n);
}

/*
 * A fallback if the kernel cannot resolve the path from memory, because the thread's root is a network file system or an
 * overlay of one. If that root is ours, no client serves it, so it may be asked for /dev: what is mounted there in the
 * thread's mount namespace. From there on the look-up is from memory again. Returns an O_PATH descriptor or -1.
 */
static int open_in_dev(int root, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED | RESOLVE_BENEATH };
	static const char folder[] = "/dev/infiniband/", in_dev[] = "infiniband/";
	struct statx theirs, ours;
	int dev, fd;

	if (strncmp(path, folder, strlen(folder)) || strchr(path + strlen(folder), '/') ||
	    statx(root, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &theirs) ||
	    statx(AT_FDCWD, "/", AT_STATX_DONT_SYNC, STATX_INO, &ours) || theirs.stx_ino != ours.stx_ino ||
	    theirs.stx_dev_major != ours.stx_dev_major || theirs.stx_dev_minor != ours.stx_dev_minor)
		return -1;
	dev = openat(root, "dev", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dev < 0)
		return -1;
	fd = syscall(SYS_openat2, dev, path + strlen(folder) - strlen(in_dev), &how, sizeof(how));
	close(dev);
	return fd;
}

/*
 * Does the thread open a node? openat2() resolves the path from the thread's own root or directory. RESOLVE_CACHED:
 * only from the dentry cache, so that it never waits.
 */
static bool is_open_of_node(pid_t tid, const struct wait_call *call, const struct uvd_wait *w,
			    const struct uvd_nodes *nodes)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED };
	char path[4096], base[64];
	struct statx x;
	int at, fd;
	bool yes;

	if (!waiter_read_path(tid, w->arg[call->path], path, sizeof(path)))
		return false;
	if (path[0] == '/') {
		how.resolve |= RESOLVE_IN_ROOT;
		snprintf(base, sizeof(base), "/proc/%d/root", (int)tid);
	} else if (call->dirfd < 0 || (int)w->arg[call->dirfd] == AT_FDCWD) {
		snprintf(base, sizeof(base), "/proc/%d/cwd", (int)tid);
	} else {
		snprintf(base, sizeof(base), "/proc/%d/fd/%d", (int)tid, (int)w->arg[call->dirfd]);
	}
	at = open(base, O_PATH | O_CLOEXEC);
	if (at < 0)
		return false;
	fd = syscall(SYS_openat2, at, path, &how, sizeof(how));
	if (fd < 0 && errno == EAGAIN)
		fd = open_in_dev(at, path);
	yes = fd >= 0 && !statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &x) && is_node(nodes, &x);
	if (fd >= 0)
		close(fd);
	close(at);
	return yes;
}

/* ---- rights ------------------------------------------------------------------------------------------------------ */

bool uvd_read_status(pid_t tid, char status[UVD_STATUS_MAX])
{
	char path[48];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = uvd_status_read(fd, status, UVD_STATUS_MAX);
	close(fd);
	return n > 0;
}

static bool line_of(const char *status, const char *key, unsigned long long v[4], int base)
{
	const char *p = strstr(status, key);
	char *end;

	if (!p)
		return false;
	p += strlen(key);
	for (int i = 0; i < (base == 16 ? 1 : 4); i++, p = end)
		v[i] = strtoull(p, &end, base);
	return true;
}

static bool same_user_ns(pid_t tid)
{
	struct stat ours, theirs;
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)tid);
	return !stat(path, &theirs) && !stat("/proc/self/ns/user", &ours) && ours.st_ino == theirs.st_ino;
}

/*
 * Returns the value of AT_SECURE in an auxiliary vector of `len` bytes, or -1. A vector of a 32-bit program has 32-bit words: its
 * first value is never 0, and would be the upper half of a 64-bit vector's first type, which is.
 */
static int64_t auxv_secure(const void *auxv, size_t len)
{
	const uint64_t *v64 = auxv;
	const uint32_t *v32 = auxv;

	if (len < 2 * sizeof(*v64))
		return -1;
	if (v64[0] > UINT32_MAX) {
		for (size_t i = 0; i + 1 < len / sizeof(*v32) && v32[i] != AT_NULL; i += 2)
			if (v32[i] == AT_SECURE)
				return v32[i + 1];
	} else {
		for (size_t i = 0; i + 1 < len / sizeof(*v64) && v64[i] != AT_NULL; i += 2)
			if (v64[i] == AT_SECURE)
				return v64[i + 1] ? 1 : 0;
	}
	return -1;
}

/*
 * Was the program executed without a change of rights? The kernel says so to the program's loader. The vector belongs to the
 * address space: children inherit it, an exec makes another one. A program can change its own vector only, and for that it
 * needs no capability, so the answer counts for programs that an attacker has not written: those with root's ids.
 */
static bool is_plain_exec(pid_t tid)
{
	uint64_t auxv[128];
	char path[48];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/auxv", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, auxv, sizeof(auxv));
	close(fd);
	return n > 0 && auxv_secure(auxv, n) == 0;
}

/*
 * A setuid program may have set all its ids to root's, to act as root for its user. A program that it executes then, as sudo
 * does, is root's own.
 */
static bool root_may(pid_t tid, const struct uvd_nodes *nodes)
{
	return nodes->root_clients == UVD_ROOT_ALL || (nodes->root_clients == UVD_ROOT_ALLOW && is_plain_exec(tid));
}

/*
 * May the program of a process be a client that the kernel lets only root inspect? It has changed its user without an exec, or
 * hides its memory (PR_SET_DUMPABLE): nobody can tell one from the other, and both may know what their user must not. So what
 * counts is that the program means to be a client: only a client of verbs issues this ioctl, but many programs write what others
 * choose into files that others choose. A program that exec has given more rights stays refused, whatever rights it has now.
 */
static bool hidden_may_be_client(pid_t tid, const struct uvd_wait *w, const struct uvd_nodes *nodes)
{
	if (nodes->root_clients == UVD_ROOT_REFUSE || !is_plain_exec(tid))
		return false;
	switch (uvd_cpu_call_of(w->nr)) {
	case UVD_CPU_CALL_OPEN:
	case UVD_CPU_CALL_OPENAT:
		return true;
	case UVD_CPU_CALL_IOCTL:
		return (uint32_t)w->arg[1] == RDMA_VERBS_IOCTL;
	default:
		return false;
	}
}

/*
 * Does the program have only the rights of the user who started it? A setuid program whose output is a descriptor of
 * the node waits on the node like a client, but an attacker in the engine process must not get its memory.
 * (/proc/TID/mem belongs to root if the user may not trace the process.) Stores the process, and whether it is
 * hidden, in *w.
 */
static bool has_own_rights(pid_t tid, const struct uvd_nodes *nodes, struct uvd_wait *w)
{
	unsigned long long uid[4], gid[4], cap[4];
	char path[48], status[UVD_STATUS_MAX], *p;
	struct stat st;

	w->hidden = false;
	if (!uvd_read_status(tid, status))
		return false;
	p = strstr(status, "\nTgid:");
	w->tgid = p ? atoi(p + 6) : 0;
	if (!line_of(status, "\nUid:", uid, 10) || !line_of(status, "\nGid:", gid, 10) ||
	    !line_of(status, "\nCapPrm:", cap, 16))
		return false;
	for (int i = 1; i < 4; i++)
		if (uid[i] != uid[0] || gid[i] != gid[0])
			return false;
	if (!uid[0])
		return root_may(tid, nodes);
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)tid);
	if ((cap[0] && same_user_ns(tid)) || stat(path, &st))
		return false;
	w->hidden = st.st_uid != uid[0];
	return !w->hidden || hidden_may_be_client(tid, w, nodes);
}

int uvd_waits(pid_t tid, const struct uvd_nodes *nodes, enum uvd_wait_for what, struct uvd_wait *wait)
{
	const struct wait_call *call;
	int err = read_call(tid, wait);

	if (err)
		return err;
	call = &wait_calls[uvd_cpu_call_of(wait->nr)];
	if (call->what != what)
		return -ESRCH;
	if (what == UVD_WAITS_IN_OPEN ? !is_open_of_node(tid, call, wait, nodes)
				      : !uvd_is_of_node(tid, (int)wait->arg[0], nodes))
		return -ESRCH;
	return has_own_rights(tid, nodes, wait) ? 0 : -EPERM;
}
