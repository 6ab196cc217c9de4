/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fuzz/client.h"

enum { LENGTH = FUZZ_MEMORY_END - FUZZ_MEMORY, PROC_FILES = 4 };

static struct {
	int memory; /* the memfd; bytes begin at the offset FUZZ_MEMORY */
	uint8_t *bytes; /* at the address FUZZ_MEMORY */
	uint64_t dirty; /* the highest address in each half that was written, plus one */
	uint64_t dirty_out; /* the same at and above FUZZ_OUT */
	int fds[FUZZ_FDS]; /* ours, by the client's number less FUZZ_FIRST_FD */
	unsigned int num_fds;
	struct {
		const char *name;
		int fd; /* its honest contents; -1: those of our own /proc, or none */
	} proc[PROC_FILES];
	const char *lie; /* the name of the file that has the contents of lie_fd; NULL: none */
	int lie_fd;
} client = { .proc = { { "status", -1 }, { "maps", -1 }, { "stat", -1 }, { "auxv", -1 } }, .lie_fd = -1 };

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static bool client_has(uint64_t addr, size_t len, bool write)
{
	uint64_t end = addr + len, last = write ? FUZZ_READ_ONLY : FUZZ_HOLE;

	if (end < addr)
		return false;
	return (addr >= FUZZ_MEMORY && end <= last) || (addr >= FUZZ_SHARED && end <= FUZZ_MEMORY_END);
}

static void client_dirty(uint64_t addr, size_t len)
{
	uint64_t *high = addr < FUZZ_OUT ? &client.dirty : &client.dirty_out;

	if (addr + len > *high)
		*high = addr + len;
}

static int client_read(struct uvd_caller *c, void *dst, uint64_t src, size_t len)
{
	if (!client_has(src, len, false))
		return -EFAULT;
	memcpy(dst, (const void *)(uintptr_t)src, len);
	return 0;
}

static ssize_t client_read_ahead(struct uvd_caller *c, void *dst, uint64_t src, size_t least, size_t most)
{
	if (client_has(src, most, false))
		return client_read(c, dst, src, most) ? -EFAULT : (ssize_t)most;
	return client_read(c, dst, src, least) ? -EFAULT : (ssize_t)least;
}

static int client_write(struct uvd_caller *c, uint64_t dst, const void *src, size_t len)
{
	if (!client_has(dst, len, true))
		return -EFAULT;
	memcpy((void *)(uintptr_t)dst, src, len);
	client_dirty(dst, len);
	return 0;
}

static int client_writev(struct uvd_caller *c, const struct uvd_write_vec *v, unsigned int n)
{
	int err = 0;

	for (unsigned int i = 0; i < n && !err; i++)
		err = v[i].len ? client_write(c, v[i].addr, v[i].src, v[i].len) : 0;
	return err;
}

static const struct uvd_mem_ops client_mem = {
	.read = client_read,
	.write = client_write,
	.writev = client_writev,
	.read_ahead = client_read_ahead,
};

void fuzz_client_put(uint64_t addr, const void *bytes, size_t len)
{
	if (client_write(NULL, addr, bytes, len))
		abort();
}

static void client_zero(uint64_t from, uint64_t *high)
{
	if (*high > from)
		memset((void *)(uintptr_t)from, 0, *high - from);
	*high = 0;
}

void fuzz_client_clear(bool all)
{
	if (all)
		client.dirty_out = FUZZ_MEMORY_END;
	client_zero(FUZZ_MEMORY, &client.dirty);
	client_zero(FUZZ_OUT, &client.dirty_out);
}

/* ---- descriptors and /proc --------------------------------------------------------------------------------------- */

/* Opens one of our descriptors anew, with an offset of its own. */
static int client_reopen(int fd, const char *folder, int flags)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/self/%s/%d", folder, fd);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Returns our descriptor behind a number of the client's; -1: the client has no such number. */
static int client_fd_of(int number)
{
	if (number == FUZZ_FILE)
		return client.memory;
	if (number < FUZZ_FIRST_FD || number >= FUZZ_FIRST_FD + (int)client.num_fds)
		return -1;
	return client.fds[number - FUZZ_FIRST_FD];
}

static int client_proc_open(struct uvd_proc *proc, pid_t tid, const char *name, int flags)
{
	char folder[8];
	int number, fd;

	if (!strcmp(name, "mem") || !strcmp(name, "pagemap")) {
		fd = fcntl(client.memory, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? -errno : fd;
	}
	if (client.lie && !strcmp(name, client.lie))
		return client_reopen(client.lie_fd, "fd", flags);
	for (unsigned int i = 0; i < PROC_FILES; i++)
		if (!strcmp(name, client.proc[i].name))
			return client_reopen(client.proc[i].fd, "fd", flags);
	if (sscanf(name, "%7[a-z]/%d", folder, &number) == 2)
		return client_fd_of(number) < 0 ? -ENOENT : client_reopen(client_fd_of(number), folder, flags);
	return strcmp(name, "ns/user") ? -ENOENT : uvd_proc_local.open(proc, tid, name, flags);
}

static struct uvd_proc client_proc = { .open = client_proc_open };

static int client_fd_add(int fd)
{
	if (client.num_fds == FUZZ_FDS) {
		close(fd);
		return -EMFILE;
	}
	client.fds[client.num_fds] = fd;
	return FUZZ_FIRST_FD + client.num_fds++;
}

/* The client keeps the descriptor of a failed call until fuzz_client_close_fds(), as its numbers only go up. */
static void client_fd_take(int number)
{
}

const struct uvd_host_fds fuzz_client_fds = { .add = client_fd_add, .take = client_fd_take };

void fuzz_client_close_fds(void)
{
	while (client.num_fds)
		close(client.fds[--client.num_fds]);
}

static void client_put_text(int *fd, const void *text, size_t len)
{
	if (*fd < 0)
		*fd = memfd_create("proc", MFD_CLOEXEC);
	if (*fd < 0 || ftruncate(*fd, 0) || (len && pwrite(*fd, text, len, 0) != (ssize_t)len))
		abort();
}

void fuzz_client_lie(const char *name, const void *text, size_t len)
{
	client.lie = name;
	if (name)
		client_put_text(&client.lie_fd, text, len);
}

/* Answers for /proc as an honest client's files would. */
static void client_proc_init(const struct stat *st)
{
	static const char stat[] = "7 (fuzz) R 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0 0\n";
	static const char status[] = "Name:\tfuzz\nTgid:\t7\nPid:\t7\nUid:\t1000\t1000\t1000\t1000\n"
				     "Gid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\nVmPin:\t0 kB\n";
	char maps[512];

	snprintf(
		maps, sizeof(maps),
		"%08x-%08x rw-p 00000000 00:00 0\n%08x-%08x r--p 00000000 00:00 0\n%08x-%08x rw-s %08x %x:%x %llu /memfd:c\n",
		FUZZ_MEMORY, FUZZ_READ_ONLY, FUZZ_READ_ONLY, FUZZ_HOLE, FUZZ_SHARED, FUZZ_MEMORY_END, FUZZ_SHARED,
		major(st->st_dev), minor(st->st_dev), (unsigned long long)st->st_ino);
	client_put_text(&client.proc[1].fd, maps, strlen(maps));
	client_put_text(&client.proc[2].fd, stat, strlen(stat));
	client_put_text(&client.proc[0].fd, status, strlen(status));
	client_put_text(&client.proc[3].fd, "auxiliary vector", 16);
}

void fuzz_client_silence(void)
{
	stderr = fopen("/dev/null", "we");
	if (!stderr)
		abort();
}

void fuzz_client_init(void)
{
	struct stat st;

	client.memory = memfd_create("client", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (client.memory < 0 || ftruncate(client.memory, FUZZ_MEMORY_END) || fstat(client.memory, &st) ||
	    fcntl(client.memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		abort();
	client.bytes = mmap((void *)FUZZ_MEMORY, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE,
			    client.memory, FUZZ_MEMORY);
	if (client.bytes != (void *)FUZZ_MEMORY) {
		perror("fuzz: the client's memory");
		abort();
	}
	client_proc_init(&st);
}

struct uvd_caller fuzz_client_caller(struct uvd_account *account)
{
	return uvd_host_caller(&client_mem, &client_proc, account);
}

void fuzz_client_trust(struct uvd_caller *caller, bool trusted)
{
	caller->mem = trusted ? &uvd_mem_self : &client_mem;
}
