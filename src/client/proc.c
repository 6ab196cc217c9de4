/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "client/client.h"
#include "client/internal.h"

static int local_open(struct uvd_proc *proc, pid_t tid, const char *name, int flags)
{
	char path[64];
	int fd;

	if ((size_t)snprintf(path, sizeof(path), "/proc/%d/%s", (int)tid, name) >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

struct uvd_proc uvd_proc_local = { .open = local_open };

bool uvd_caller_is_self(const struct uvd_caller *c)
{
	return c->mem && (c->mem->over ?: c->mem) == &uvd_mem_self;
}

pid_t uvd_proc_tid(const struct uvd_caller *c)
{
	return c->tid || !uvd_caller_is_self(c) ? c->tid : getpid();
}

/*
 * Opens a file of /proc/TID. tid is the calling thread's only if its call still waits afterwards: the caller of this
 * function must check that. Returns an fd or a negative errno.
 */
static int open_unconfirmed(struct uvd_caller *c, pid_t tid, const char *name, int flags)
{
	struct uvd_proc *proc = c->proc ? c->proc : &uvd_proc_local;

	uvd_might_fault(); /* some files need a lock that an exec in the client holds while it waits for memory */
	return tid > 0 ? proc->open(proc, tid, name, flags) : -ESRCH;
}

int uvd_proc_open(struct uvd_caller *c, pid_t tid, const char *name, int flags)
{
	int fd = open_unconfirmed(c, tid, name, flags);

	if (fd >= 0 && !uvd_caller_waits(c)) {
		close(fd);
		return -EINTR;
	}
	return fd;
}

/* Reads to the end of the file as a string. Returns the length or a negative errno. */
static ssize_t read_text(int fd, char *buf, size_t size)
{
	size_t len = 0;
	ssize_t n = 0;

	while (len < size - 1) {
		n = read(fd, buf + len, size - 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += n;
	}
	buf[len] = 0;
	return n < 0 ? -errno : (ssize_t)len;
}

static ssize_t proc_read_by(struct uvd_caller *c, pid_t tid, const char *name,
			    ssize_t (*read_it)(int fd, char *buf, size_t size), void *buf, size_t size)
{
	int fd = open_unconfirmed(c, tid, name, O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = read_it(fd, buf, size);
	close(fd);
	return uvd_caller_waits(c) ? n : -EINTR;
}

ssize_t uvd_proc_read(struct uvd_caller *c, pid_t tid, const char *name, void *buf, size_t size)
{
	return proc_read_by(c, tid, name, read_text, buf, size);
}

ssize_t uvd_proc_read_status(struct uvd_caller *c, pid_t tid, char *buf, size_t size)
{
	return proc_read_by(c, tid, "status", uvd_status_read, buf, size);
}

int uvd_path_stat(int path, struct stat *st)
{
	struct statx x;

	if (statx(path, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MODE | STATX_INO | STATX_SIZE, &x))
		return -errno;
	*st = (struct stat){
		.st_dev = makedev(x.stx_dev_major, x.stx_dev_minor),
		.st_rdev = makedev(x.stx_rdev_major, x.stx_rdev_minor),
		.st_ino = x.stx_ino,
		.st_mode = x.stx_mode,
		.st_size = x.stx_size,
	};
	return 0;
}

/* One system call transfers at most 2 GiB less a page. */
#define MEMFD_STEP (1u << 30)

int uvd_memfd_read(int memfd, void *dst, unsigned long long src, size_t len)
{
	uvd_might_fault();
	while (len) {
		size_t step = len < MEMFD_STEP ? len : MEMFD_STEP;
		ssize_t n = pread(memfd, dst, step, (off_t)src);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EFAULT;
		dst = (char *)dst + n;
		src += n;
		len -= n;
	}
	return 0;
}

int uvd_memfd_write(int memfd, unsigned long long dst, const void *src, size_t len)
{
	uvd_might_fault();
	while (len) {
		size_t step = len < MEMFD_STEP ? len : MEMFD_STEP;
		ssize_t n = pwrite(memfd, src, step, (off_t)dst);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EFAULT;
		src = (const char *)src + n;
		dst += n;
		len -= n;
	}
	return 0;
}

int uvd_mmfd_open(struct uvd_caller *c, pid_t tid)
{
	int fd = uvd_proc_open(c, tid, "pagemap", O_RDONLY), mem;

	if (fd >= 0 || fd == -EINTR)
		return fd;
	mem = uvd_proc_open(c, tid, "mem", O_RDONLY);
	/* During an open the broker is asked for pagemap alone: its refusal is the answer, and not that the thread is in no call. */
	return mem < 0 && fd == -EPERM ? fd : mem;
}

/*
 * A read of pagemap or mem returns 0 once the address space has no users. While it has, pagemap fails with EINVAL, as
 * one byte is no whole entry, and looks at no page. mem walks to address 0, finds nothing mapped and fails with EIO,
 * which costs eight times as much.
 */
bool uvd_mmfd_alive(int mmfd)
{
	char byte;

	return pread(mmfd, &byte, 1, 0) != 0;
}
