/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The linker wraps the allocation functions (meson.build), so every allocation of our own code counts, in all rooms.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include "inject.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *p);

static _Thread_local struct {
	enum fault kind;
	unsigned int at, seen; /* at 0: not armed */
	bool onwards, fired;
} armed;

static atomic_long blocks;

void fault_arm(enum fault kind, unsigned int n, bool onwards)
{
	armed.kind = kind;
	armed.at = n;
	armed.onwards = onwards;
	armed.seen = 0;
	armed.fired = false;
}

bool fault_disarm(void)
{
	armed.at = 0;
	return armed.fired;
}

bool fault_here(enum fault kind)
{
	if (!armed.at || kind != armed.kind)
		return false;
	armed.seen++;
	if (armed.seen != armed.at && !(armed.onwards && armed.seen > armed.at))
		return false;
	armed.fired = true;
	return true;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void *counted(void *p)
{
	if (p)
		blocks++;
	return p;
}

static bool no_memory(void)
{
	if (!fault_here(FAULT_ALLOC))
		return false;
	errno = ENOMEM;
	return true;
}

void *__wrap_malloc(size_t size)
{
	return no_memory() ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return no_memory() ? NULL : counted(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t size)
{
	if (no_memory())
		return NULL;
	return p ? __real_realloc(p, size) : counted(__real_realloc(NULL, size));
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return no_memory() ? NULL : counted(__real_aligned_alloc(alignment, size));
}

void __wrap_free(void *p)
{
	if (p)
		blocks--;
	__real_free(p);
}

long fault_blocks(void)
{
	return blocks;
}

/* ---- the client -------------------------------------------------------------------------------------------------- */

static int mem_read(struct uvd_caller *c, void *dst, uint64_t src, size_t len)
{
	return fault_here(FAULT_COPY) ? -EFAULT : uvd_mem_process.read(c, dst, src, len);
}

static int mem_write(struct uvd_caller *c, uint64_t dst, const void *src, size_t len)
{
	return fault_here(FAULT_COPY) ? -EFAULT : uvd_mem_process.write(c, dst, src, len);
}

static int mem_writev(struct uvd_caller *c, const struct uvd_write_vec *v, unsigned int n)
{
	return fault_here(FAULT_COPY) ? -EFAULT : uvd_mem_process.writev(c, v, n);
}

const struct uvd_mem_ops fault_mem = { .read = mem_read, .write = mem_write, .writev = mem_writev };

struct uvd_proc *fault_proc_behind = &uvd_proc_local;

static int proc_open(struct uvd_proc *proc, pid_t tid, const char *name, int flags)
{
	return fault_here(FAULT_PROC) ? -PROC_ERRNO : fault_proc_behind->open(fault_proc_behind, tid, name, flags);
}

struct uvd_proc fault_proc = { .open = proc_open };
