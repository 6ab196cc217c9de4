/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Threads of this process, waits with a limit, and time. */
#ifndef UVD_UTIL_THREAD_H
#define UVD_UTIL_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Starts a thread with all signals but those of crashes blocked, as the main thread handles signals. stack: bytes, 0 for the default.
 * thread: NULL for a detached thread. Returns 0 or a negative errno.
 */
int uvd_thread_start(pthread_t *thread, size_t stack, void *(*fn)(void *arg), void *arg);

/* Sets the calling thread's nice value. Returns false if it is unchanged: lowering it takes a privilege. */
bool uvd_thread_set_nice(int nice);

/*
 * Asks for time slices of this length for the calling thread: a thread with shorter ones is scheduled sooner, and for no more
 * time. Returns false if the kernel refuses. Before Linux 6.12 it changes nothing.
 */
bool uvd_thread_set_slice(uint64_t ns);

/* Returns the processor time of the calling thread in nanoseconds. */
uint64_t uvd_thread_cpu_ns(void);
/* Returns the processor time that the calling thread has used since it was *last, and sets *last to what it is now. */
uint64_t uvd_thread_cpu_since(uint64_t *last);
/* Returns gettid(), without a system call after the first time. Not in a process that forks with threads. */
pid_t uvd_thread_id(void);
/*
 * Does this thread of our process run, or wait for nothing but a processor? False also if that cannot be known: the
 * sandboxed engine process has no /proc.
 */
bool uvd_thread_is_runnable(pid_t tid);

/* Initializes a condition variable whose timed waits use CLOCK_MONOTONIC. */
void uvd_cond_init(pthread_cond_t *cond);
/*
 * Waits for cond, which uvd_cond_init() has initialized, until the time `end` (ns, as uvd_now_ns()). Caller holds lock,
 * which is released meanwhile. Returns false if the wait timed out.
 */
bool uvd_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t end);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t uvd_now_ns(void);

#endif
