/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Access to a caller's memory during its call, and what /proc tells about the caller.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "client/client.h"
#include "client/internal.h"
#include "client/maps.h"
#include "cpu/cpu.h"

enum { PAGE = UVD_CPU_PAGE_MIN };

/* ---- memory by process_vm_readv() and process_vm_writev() -------------------------------------------------------- */

/* Every failure counts as a bad address, also where the thread is gone or we may not access it. */
static int process_read(struct uvd_caller *c, void *dst, uint64_t src, size_t len)
{
	struct iovec local = { .iov_base = dst, .iov_len = len };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)src, .iov_len = len };

	if (!c->tid || process_vm_readv(c->tid, &local, 1, &remote, 1, 0) != (ssize_t)len)
		return -EFAULT;
	return 0;
}

/*
 * process_vm_readv() transfers an iovec element completely or not at all: split the range at the first page boundary.
 */
static ssize_t process_read_ahead(struct uvd_caller *c, void *dst, uint64_t src, size_t least, size_t most)
{
	const size_t in_page = PAGE - src % PAGE, first = in_page < most ? in_page : most;
	struct iovec local = { .iov_base = dst, .iov_len = most };
	struct iovec remote[] = { { .iov_base = (void *)(uintptr_t)src, .iov_len = first },
				  { .iov_base = (void *)(uintptr_t)(src + first), .iov_len = most - first } };
	ssize_t n;

	n = c->tid ? process_vm_readv(c->tid, &local, 1, remote, first < most ? 2 : 1, 0) : -1;
	return n < (ssize_t)least ? -EFAULT : n;
}

static int process_write(struct uvd_caller *c, uint64_t dst, const void *src, size_t len)
{
	struct iovec local = { .iov_base = (void *)src, .iov_len = len };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)dst, .iov_len = len };

	if (!c->tid || process_vm_writev(c->tid, &local, 1, &remote, 1, 0) != (ssize_t)len)
		return -EFAULT;
	return 0;
}

static int process_writev(struct uvd_caller *c, const struct uvd_write_vec *v, unsigned int n)
{
	struct iovec local[UVD_WRITEV_AT_ONCE], remote[UVD_WRITEV_AT_ONCE];

	if (!c->tid)
		return -EFAULT;
	while (n) {
		unsigned int now = n < UVD_WRITEV_AT_ONCE ? n : UVD_WRITEV_AT_ONCE;
		size_t len = 0;

		for (unsigned int i = 0; i < now; i++) {
			local[i] = (struct iovec){ .iov_base = (void *)v[i].src, .iov_len = v[i].len };
			remote[i] = (struct iovec){ .iov_base = (void *)(uintptr_t)v[i].addr, .iov_len = v[i].len };
			len += v[i].len;
		}
		if (process_vm_writev(c->tid, local, now, remote, now, 0) != (ssize_t)len)
			return -EFAULT;
		v += now;
		n -= now;
	}
	return 0;
}

const struct uvd_mem_ops uvd_mem_process = {
	.read = process_read,
	.write = process_write,
	.writev = process_writev,
	.read_ahead = process_read_ahead,
};

/* ---- memory by a /proc/TID/mem fd -------------------------------------------------------------------------------- */

static int procfd_read(struct uvd_caller *c, void *dst, uint64_t src, size_t len)
{
	return uvd_memfd_read(c->memfd, dst, src, len);
}

static bool mapping_writable(const struct uvd_mapping *m, uint64_t end, void *arg)
{
	return m->write;
}

static ssize_t procfd_read_ahead(struct uvd_caller *c, void *dst, uint64_t src, size_t least, size_t most)
{
	ssize_t n = pread(c->memfd, dst, most, (off_t)src);

	return n < (ssize_t)least ? -EFAULT : n;
}

/* pwrite() to /proc/TID/mem ignores write protection, and copy_to_user() does not: check the mappings first. */
static int write_where_allowed(struct uvd_caller *c, struct uvd_maps *maps, uint64_t dst, const void *src, size_t len)
{
	int err = dst + len < dst ? -EFAULT : uvd_maps_all(maps, dst, dst + len, mapping_writable, NULL);

	return err ? err : uvd_memfd_write(c->memfd, dst, src, len);
}

static int procfd_write(struct uvd_caller *c, uint64_t dst, const void *src, size_t len)
{
	struct uvd_maps maps;

	if (!len)
		return 0;
	uvd_maps_from_fd(&maps, c->mapsfd, true);
	return lseek(c->mapsfd, 0, SEEK_SET) ? -EFAULT : write_where_allowed(c, &maps, dst, src, len);
}

static int procfd_writev(struct uvd_caller *c, const struct uvd_write_vec *v, unsigned int n)
{
	int err = 0;

	for (unsigned int i = 0; i < n && !err; i++)
		err = procfd_write(c, v[i].addr, v[i].src, v[i].len);
	return err;
}

const struct uvd_mem_ops uvd_mem_procfd = {
	.read = procfd_read,
	.write = procfd_write,
	.writev = procfd_writev,
	.read_ahead = procfd_read_ahead,
};

/* ---- our own memory ---------------------------------------------------------------------------------------------- */

static int self_read(struct uvd_caller *c, void *dst, uint64_t src, size_t len)
{
	memcpy(dst, (const void *)(uintptr_t)src, len);
	return 0;
}

static int self_write(struct uvd_caller *c, uint64_t dst, const void *src, size_t len)
{
	memcpy((void *)(uintptr_t)dst, src, len);
	return 0;
}

static int self_writev(struct uvd_caller *c, const struct uvd_write_vec *v, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (v[i].len)
			memcpy((void *)(uintptr_t)v[i].addr, v[i].src, v[i].len);
	return 0;
}

const struct uvd_mem_ops uvd_mem_self = {
	.read = self_read,
	.write = self_write,
	.writev = self_writev,
};

/* ---- identity ---------------------------------------------------------------------------------------------------- */

/*
 * Returns the text after "\nKey:" in a status file, or NULL. The first line has the process's name, in which the kernel
 * escapes newlines, so a name cannot pose as a key.
 */
static const char *status_field(const char *status, const char *key)
{
	size_t len = strlen(key);

	for (const char *p = status; (p = strchr(p, '\n')); p++)
		if (!strncmp(p + 1, key, len) && p[1 + len] == ':')
			return p + 2 + len;
	return NULL;
}

static uint64_t status_field_number(const char *status, const char *key, int base)
{
	const char *p = status_field(status, key);

	return p ? strtoull(p, NULL, base) : 0;
}

static void status_ids(const char *status, const char *key, unsigned int *real, unsigned int *effective,
		       unsigned int *saved, unsigned int *fs)
{
	const char *p = status_field(status, key);

	if (!p || sscanf(p, "%u %u %u %u", real, effective, saved, fs) != 4)
		*real = *effective = *saved = *fs = -1;
}

/* Copies the name from the first line, as "Name:\ta\\nb\n...", and undoes the kernel's escapes. */
static void status_name(const char *status, char *comm, size_t size)
{
	const char *p = strchr(status, '\t');
	size_t n = 0;

	while (p && *++p && *p != '\n' && n < size - 1) {
		if (*p == '\\' && p[1] && p[1] != '\n') {
			p++;
			comm[n++] = *p == 'n' ? '\n' : *p;
		} else {
			comm[n++] = *p;
		}
	}
	comm[n] = 0;
}

int uvd_caller_identity(struct uvd_caller *c, struct uvd_identity *id)
{
	char status[4096];
	ssize_t n = uvd_proc_read_status(c, uvd_proc_tid(c), status, sizeof(status));
	uint64_t tgid;

	memset(id, 0, sizeof(*id));
	if (n < 0)
		return n == -ENOENT ? -ESRCH : n;
	tgid = status_field_number(status, "Tgid", 10);
	if (!tgid || tgid >= UVD_PROC_NUMBERS)
		return -ESRCH;
	id->tgid = (pid_t)tgid + (c->proc ? c->proc->base : 0);
	status_ids(status, "Uid", &id->uid, &id->euid, &id->suid, &id->fsuid);
	status_ids(status, "Gid", &id->gid, &id->egid, &id->sgid, &id->fsgid);
	id->cap_eff = status_field_number(status, "CapEff", 16);
	id->cap_prm = status_field_number(status, "CapPrm", 16);
	id->vm_pin_pages = status_field_number(status, "VmPin", 10) * 1024 / sysconf(_SC_PAGESIZE);
	status_name(status, id->comm, sizeof(id->comm));
	c->tgid = id->tgid;
	return 0;
}

pid_t uvd_caller_tgid(struct uvd_caller *c)
{
	struct uvd_identity id;
	int err;

	if (c->tgid)
		return c->tgid;
	if (uvd_caller_is_self(c))
		return c->tgid = getpid();
	err = uvd_caller_identity(c, &id);
	return err ? err : c->tgid;
}

int uvd_caller_in_our_user_ns(struct uvd_caller *c)
{
	int fd = uvd_proc_open(c, uvd_proc_tid(c), "ns/user", O_PATH);
	struct stat ours, theirs;
	bool known;

	/* ENOENT: a kernel without user namespaces has only the initial one */
	if (fd == -ENOENT && !uvd_self_user_ns(&ours) && errno == ENOENT)
		return 1;
	if (fd < 0)
		return fd;
	known = !fstat(fd, &theirs) && uvd_self_user_ns(&ours);
	close(fd); /* uvd_proc_open() has confirmed that the fd is of the caller's namespace */
	return known ? ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino : -EIO;
}

bool uvd_caller_capable_as(struct uvd_caller *c, const struct uvd_identity *id, int cap)
{
	return id->cap_eff >> cap & 1 && uvd_caller_in_our_user_ns(c) > 0;
}

bool uvd_caller_capable(struct uvd_caller *c, int cap)
{
	struct uvd_identity id;

	return !uvd_caller_identity(c, &id) && uvd_caller_capable_as(c, &id, cap);
}

/* key: as in "Max locked memory         65536                65536                bytes" */
static int caller_read_limits(struct uvd_caller *c, const char *key, uint64_t *bytes)
{
	char limits[4096], *p;
	ssize_t n = uvd_proc_read(c, uvd_proc_tid(c), "limits", limits, sizeof(limits));

	if (n < 0)
		return n == -ENOENT ? -ESRCH : n;
	p = strstr(limits, key);
	if (!p)
		return -ESRCH;
	p += strlen(key);
	p += strspn(p, " ");
	if (!strncmp(p, "unlimited", 9)) {
		*bytes = RLIM_INFINITY;
		return 0;
	}
	return sscanf(p, "%" SCNu64, bytes) == 1 ? 0 : -ESRCH;
}

static int caller_limit(struct uvd_caller *c, int resource, const char *key, uint64_t *bytes)
{
	pid_t tid = uvd_proc_tid(c);
	struct rlimit limit;

	if (!tid)
		return -ESRCH;
	if (!prlimit(tid, resource, NULL, &limit)) {
		*bytes = limit.rlim_cur;
		return uvd_caller_confirm(c, 0);
	}
	return caller_read_limits(c, key, bytes);
}

int uvd_caller_memlock(struct uvd_caller *c, uint64_t *bytes)
{
	return caller_limit(c, RLIMIT_MEMLOCK, "Max locked memory", bytes);
}

int uvd_caller_file_size(struct uvd_caller *c, uint64_t *bytes)
{
	return caller_limit(c, RLIMIT_FSIZE, "Max file size", bytes);
}

/* Returns an O_PATH fd for the file of the caller's fd, or a negative errno. O_PATH does not open the file itself. */
static int open_fd(struct uvd_caller *c, int fd)
{
	pid_t tid = uvd_proc_tid(c);
	char name[32];
	int path;

	if (fd < 0 || !tid)
		return -EBADF;
	snprintf(name, sizeof(name), "fd/%d", fd);
	path = uvd_proc_open(c, tid, name, O_PATH);
	return path == -ENOENT ? -EBADF : path;
}

int uvd_caller_fstat(struct uvd_caller *c, int fd, struct stat *st)
{
	int path, err;

	if (uvd_caller_is_self(c))
		return fstat(fd, st) ? -EBADF : 0;
	path = open_fd(c, fd);
	if (path < 0)
		return path;
	err = uvd_path_stat(path, st);
	close(path);
	return err;
}

/* Checks the name first: fstatfs() can ask a FUSE server, which the client may control. */
static bool is_dmabuf(int path)
{
	char link[32];
	struct statfs fs;
	int n = uvd_self_fd_link(path, link, sizeof(link));

	return n >= 8 && !memcmp(link, "/dmabuf:", 8) && !fstatfs(path, &fs) && fs.f_type == DMA_BUF_MAGIC;
}

int uvd_caller_dmabuf(struct uvd_caller *c, int fd, uint64_t *size)
{
	int path = open_fd(c, fd), err = 0;
	struct stat st;

	if (path < 0)
		return path;
	if (!is_dmabuf(path))
		err = -EINVAL;
	else
		err = uvd_path_stat(path, &st);
	if (!err)
		*size = st.st_size;
	close(path);
	return err;
}

/* "Cpus_allowed_list:\t0-3,8": for a thread whose number means nothing to sched_getaffinity(). */
static bool status_has_cpu(struct uvd_caller *c, unsigned int cpu)
{
	char status[4096], *p;
	ssize_t n = uvd_proc_read_status(c, uvd_proc_tid(c), status, sizeof(status));

	p = n < 0 ? NULL : (char *)status_field(status, "Cpus_allowed_list");
	while (p && *p && *p != '\n') {
		const unsigned long first = strtoul(p + 1, &p, 10), last = *p == '-' ? strtoul(p + 1, &p, 10) : first;

		if (cpu >= first && cpu <= last)
			return true;
		if (*p != ',')
			return false;
	}
	return false;
}

int uvd_caller_may_run_on(struct uvd_caller *c, unsigned int cpu)
{
	const size_t size = CPU_ALLOC_SIZE(UVD_CPU_MAX_CPUS);
	cpu_set_t *set;
	int err = 0;

	if (cpu >= UVD_CPU_MAX_CPUS || cpu >= uvd_num_cpu_ids())
		return -EINVAL;
	set = CPU_ALLOC(UVD_CPU_MAX_CPUS);
	if (!set)
		return -ENOMEM;
	if (c->proc && c->proc->base)
		err = status_has_cpu(c, cpu) ? 0 : -EPERM;
	else if (!uvd_proc_tid(c) || sched_getaffinity(uvd_proc_tid(c), size, set) || !CPU_ISSET_S(cpu, size, set))
		err = -EPERM;
	CPU_FREE(set);
	return uvd_caller_confirm(c, err);
}

int uvd_caller_peek(struct uvd_caller *c, uint64_t addr)
{
	char byte;
	struct iovec local = { .iov_base = &byte, .iov_len = 1 };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)addr, .iov_len = 1 };

	if (!uvd_caller_is_self(c))
		return uvd_caller_read(c, &byte, addr, 1);
	/* An ordinary read of our own memory would raise SIGBUS beyond a file's end. */
	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1 ? 0 : -EFAULT;
}

int uvd_caller_peek_forced(struct uvd_caller *c, uint64_t addr)
{
	int memfd = uvd_proc_open(c, uvd_proc_tid(c), "mem", O_RDONLY), err;
	char byte;

	if (memfd < 0)
		return -EFAULT;
	err = uvd_memfd_read(memfd, &byte, addr, 1);
	close(memfd);
	return err;
}
