/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What every room may use: atomics, memory, threads, time, files in folders. The log is public: <uverbsd/log.h>. */
#ifndef UVD_UTIL_H
#define UVD_UTIL_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "util/list.h"
#include "util/lock.h"

/* The struct that contains `member` at `ptr`. */
#ifndef container_of
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#endif

/* The kernel's function of that name: adds 1 and returns true, unless the value is negative. Acquires. */
static inline bool atomic_inc_unless_negative(atomic_int *v)
{
	int old = atomic_load_explicit(v, memory_order_relaxed);

	do {
		if (old < 0)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(v, &old, old + 1, memory_order_acquire, memory_order_relaxed));
	return true;
}

/*
 * Zeroed memory for free(), or NULL. The core allocates with this function only, so that a test can replace it
 * (ld --wrap=uvd_zalloc) and fail the n-th allocation.
 */
void *uvd_zalloc(size_t size);

/* A condition variable whose timed waits are of CLOCK_MONOTONIC. */
void uvd_cond_init(pthread_cond_t *cond);
/*
 * Waits for cond, which uvd_cond_init() made, until the time `end` (uvd_now_ns()). Caller holds lock, which is released meanwhile.
 * Returns false if the time is over.
 */
bool uvd_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t end);

/*
 * Starts a thread with all signals blocked: signals are handled by the main thread. stack: bytes, 0 for the default.
 * thread: NULL for a detached thread. Returns 0, or a negative errno.
 */
int uvd_thread_start(pthread_t *thread, size_t stack, void *(*fn)(void *arg), void *arg);

/* Sets the calling thread's priority. False: it stays as it is, as it takes a privilege to raise one. */
bool uvd_thread_set_nice(int nice);
/* Processor time of the calling thread. */
uint64_t uvd_thread_cpu_ns(void);

/*
 * guard.c: a copy from or to a mapping of a file that others can truncate, for which the kernel sends SIGBUS. -EFAULT then, and some
 * may have been copied. Once in a process, before the first copy: uvd_guard_start(), which handles that signal. 0 or a negative errno.
 */
int uvd_guard_start(void);
int uvd_guarded_copy(void *dst, const void *src, size_t len);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t uvd_now_ns(void);

/*
 * Is there such a process, and is it more than a corpse? One that was killed can wait for a client's memory in a thread, for
 * as long as the client likes, while its first thread is a zombie: it does nothing any more, but keeps its descriptors.
 * *start (or NULL): when it began, in clock ticks since boot, so that a number that is used again is another process.
 */
bool uvd_process_lives(pid_t pid, unsigned long long *start);

/* ---- dir.c: files and folders below a folder that is held open ----------------------------------------------------- */

/* Writes one file, 0444, below dir, with the folders that its path needs (0755). 0 or a negative errno. */
int uvd_dir_put(int dir, const char *path, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same, in the place of a file that readers may be reading. */
int uvd_dir_replace(int dir, const char *path, const char *text);
int uvd_dir_mkdir(int dir, const char *path);
int uvd_dir_link(int dir, const char *path, const char *target);
/*
 * Is nobody but root and we able to put something else in the place of path, which need not be there yet? False: *culprit is
 * the part of it that somebody else owns or may write to. (In a sticky folder, as /tmp, each entry is its owner's.)
 */
bool uvd_dir_is_ours(const char *path, char culprit[PATH_MAX]);
/* Removes name and all below it; follows no link. What is not there is no error. */
int uvd_dir_remove(int dir, const char *name);
/* Removes everything in dir. */
int uvd_dir_clear(int dir);
/* 1: dir has nothing in it; 0; or a negative errno. */
int uvd_dir_empty(int dir);

/* In a loop that waits for another CPU. */
static inline void uvd_cpu_relax(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

#endif
