/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * copies: the cost of moving memory between two processes without a device. "process_vm_SIZE" reads SIZE bytes of one
 * process into a buffer and writes them to another process, 64 KiB at a time. "memcpy_SIZE" copies SIZE bytes within
 * one process. Like perftest's bandwidth tests, each uses the same SIZE bytes at each end in every iteration.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "clock.h"

enum { CHUNK = 64 << 10, MOST = 1 << 20 };

struct ends {
	pid_t pid[2];
	char *at[2]; /* mapped here, and at the same address in process i */
	char *here[2];
	char buffer[CHUNK];
};

static size_t at_once(size_t left)
{
	return left < CHUNK ? left : CHUNK;
}

static unsigned int process_vm(struct ends *e, unsigned long count, size_t size)
{
	while (count--)
		for (size_t done = 0, n; done < size; done += n) {
			n = at_once(size - done);

			struct iovec here = { e->buffer, n }, from = { e->at[0] + done, n },
				     to = { e->at[1] + done, n };

			if (process_vm_readv(e->pid[0], &here, 1, &from, 1, 0) != (ssize_t)n ||
			    process_vm_writev(e->pid[1], &here, 1, &to, 1, 0) != (ssize_t)n)
				return 0;
		}
	return 1;
}

static unsigned int copy_memory(struct ends *e, unsigned long count, size_t size)
{
	while (count--) {
		memcpy(e->here[1], e->here[0], size);
		__asm__ volatile("" ::: "memory");
	}
	return 1;
}

#define SIZE(size) \
	static unsigned int process_vm_##size(void *arg, unsigned long count) \
	{ \
		return process_vm(arg, count, size); \
	} \
	static unsigned int memcpy_##size(void *arg, unsigned long count) \
	{ \
		return copy_memory(arg, count, size); \
	}

SIZE(64)
SIZE(4096)
SIZE(65536)
SIZE(1048576)

static const struct bench all[] = {
	{ "process_vm_64", process_vm_64 },
	{ "process_vm_4096", process_vm_4096 },
	{ "process_vm_65536", process_vm_65536 },
	{ "process_vm_1048576", process_vm_1048576 },
	{ "memcpy_64", memcpy_64 },
	{ "memcpy_4096", memcpy_4096 },
	{ "memcpy_65536", memcpy_65536 },
	{ "memcpy_1048576", memcpy_1048576 },
	{ NULL, NULL },
};

static char *map_memory(void)
{
	char *p = mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	memset(p, 1, MOST);
	return p;
}

/* Starts a process that has its own copy of the memory. */
static pid_t start_end(char *at)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	memset(at, 2, MOST);
	for (;;)
		pause();
}

int main(void)
{
	static struct ends e;
	int status;

	for (int i = 0; i < 2; i++) {
		e.at[i] = map_memory();
		e.here[i] = map_memory();
		e.pid[i] = start_end(e.at[i]);
		if (e.pid[i] < 0)
			return 1;
	}
	usleep(100000);
	status = bench_serve(all, &e);
	for (int i = 0; i < 2; i++)
		kill(e.pid[i], SIGKILL);
	return status;
}
