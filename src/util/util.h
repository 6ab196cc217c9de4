/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Utilities for every room: atomics, memory, threads, time, files in folders. The log is public: <uverbsd/log.h>. */
#ifndef UVD_UTIL_H
#define UVD_UTIL_H

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include "util/list.h"
#include "util/lock.h"

/* Returns the name of an errno, positive or negative, for messages: "ENOENT". */
static inline const char *uvd_errno_name(int err)
{
	const char *name = strerrorname_np(err < 0 ? -err : err);

	return name ? name : "an unknown error";
}

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
 * Returns zeroed memory, which the caller frees with free(); or NULL. The core allocates with this function only, so
 * that a test can replace it (ld --wrap=uvd_zalloc) and make the n-th allocation fail.
 */
void *uvd_zalloc(size_t size);

/* Stores the id of the user of this name or number. Returns NULL, or what is wrong: "is no user", "is no user id". */
const char *uvd_user_parse(const char *word, uid_t *uid);

/* Initializes a condition variable whose timed waits use CLOCK_MONOTONIC. */
void uvd_cond_init(pthread_cond_t *cond);
/*
 * Waits for cond, which uvd_cond_init() has initialized, until the time `end` (ns, as uvd_now_ns()). Caller holds lock,
 * which is released meanwhile. Returns false if the wait timed out.
 */
bool uvd_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t end);

/*
 * Starts a thread with all signals but those of crashes blocked, as the main thread handles signals. stack: bytes, 0 for the default.
 * thread: NULL for a detached thread. Returns 0 or a negative errno.
 */
int uvd_thread_start(pthread_t *thread, size_t stack, void *(*fn)(void *arg), void *arg);

/* Sets the calling thread's nice value. Returns false if it is unchanged: lowering it takes a privilege. */
bool uvd_thread_set_nice(int nice);
/* Returns a number below `limit` that differs from process to process: no secret. 0 if the kernel has none yet. */
uint32_t uvd_random(uint32_t limit);
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

/*
 * guard.c: copies from or to a mapping of a file that others can truncate. An access beyond the file's end raises
 * SIGBUS; uvd_guarded_copy() then returns -EFAULT, and some bytes may have been copied. uvd_guard_start() installs the
 * handler: call it once in a process, before the first copy. Both return 0 or a negative errno.
 */
int uvd_guard_start(void);
int uvd_guarded_copy(void *dst, const void *src, size_t len);

/* ---- crash.c: which plug-in a crash is in ---------------------------------------------------------------------------- */

/*
 * Installs handlers for SIGSEGV, SIGBUS, SIGABRT, SIGFPE and SIGILL, which write a line to stderr if the crash is in the
 * code of a plug-in, or below it on the stack. name: how the line begins. site: returns the name of the call that the
 * crashed thread is in, or NULL, and its client's thread; a signal handler calls it.
 */
void uvd_crash_start(const char *name, const char *(*site)(pid_t *thread));
/* Tells the code of a plug-in, by any address in it; and that it is about to be unmapped. */
void uvd_crash_add(const char *name, const void *symbol);
void uvd_crash_remove(const void *symbol);
/* What the handlers do first; for another handler of such a signal. context: its third argument. */
void uvd_crash_tell(int sig, const void *context);
/* For uvd_thread_start(): removes these signals from a set; the size of a thread's stack for the handlers, and sets it. */
void uvd_crash_unblock(sigset_t *set);
size_t uvd_crash_stack_size(void);
void uvd_crash_stack_set(void *stack);

/* ---- nearest.c: the known names that are nearest to a wrong one -------------------------------------------------- */

enum { UVD_NEAREST_NAME = 64, UVD_NEAREST_TEXT = 3 * UVD_NEAREST_NAME + 8 };

struct uvd_nearest {
	const char *wrong;
	struct {
		char name[UVD_NEAREST_NAME]; /* "": there is none */
		unsigned int distance;
	} best[3];
};

/* Do two names differ at most in case, or in '-' for '_'? */
bool uvd_names_equal(const char *a, const char *b);
/* Tells a known name. */
void uvd_nearest_add(struct uvd_nearest *n, const char *name);
/* Writes the nearest names, "a, b, c", to text, and returns it. It is empty if no name is known. */
const char *uvd_nearest_text(const struct uvd_nearest *n, char text[UVD_NEAREST_TEXT]);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t uvd_now_ns(void);

/*
 * Does the process exist, and is its first thread not a zombie? A thread of a killed process can wait for a client's
 * memory for as long as the client likes. Meanwhile the first thread is a zombie: the process does nothing any more,
 * but keeps its descriptors. *start (or NULL): its start time in clock ticks since boot, which tells apart two
 * processes that had the same pid.
 */
bool uvd_process_lives(pid_t pid, unsigned long long *start);
/*
 * For a descriptor that is kept for a client: gives it a number of FD_SETSIZE or more. Returns that, or fd if there is none. The
 * low numbers stay for libraries that call select(), whatever the clients have open.
 */
int uvd_fd_raise(int fd);
/*
 * Opens /dev/null as each of the descriptors 0, 1 and 2 that is closed: else a file that the program opens later gets that number,
 * and messages, or the closing of standard input, go to it. Call it before anything opens a file. Returns 0 or a negative errno.
 */
int uvd_fd_open_standard(void);
/*
 * Reads a status file of /proc, just opened, as a string. Leaves out the groups: with 64 Ki of them the text has 700 KB.
 * Cuts off what does not fit. Returns the length or a negative errno.
 */
ssize_t uvd_status_read(int fd, char *text, size_t size);

/*
 * sockets.c: tells for each of these inode numbers whether a process other than `except` has a socket with it open. Searches the
 * descriptors of all threads in /proc, once for all numbers, which is slow. Returns 0 or a negative errno: /proc cannot be read.
 */
int uvd_sockets_in_use(pid_t except, const uint64_t *inos, unsigned int num, bool *used);

/* ---- dir.c: files and folders below an open folder --------------------------------------------------------------- */

/*
 * Makes one file (0444) below dir, and the folders that its path needs (0755). Returns 0 or a negative errno, as the
 * next three do.
 */
int uvd_dir_put(int dir, const char *path, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Replaces a file, which readers may be reading, by a new one with this text. */
int uvd_dir_replace(int dir, const char *path, const char *text);
int uvd_dir_mkdir(int dir, const char *path);
int uvd_dir_link(int dir, const char *path, const char *target);
/*
 * Are root and we the only users that can replace what is at path? path need not exist yet. Returns false and sets
 * culprit to the part of path that another user owns or may write to. A sticky folder such as /tmp passes if its entry
 * exists, because only the owner can replace that; if it does not exist, another user could create it first.
 */
bool uvd_dir_is_ours(const char *path, char culprit[PATH_MAX]);
/* Removes name and all below it. Follows no link. Returns 0 also if name does not exist. */
int uvd_dir_remove(int dir, const char *name);
/* Removes everything in dir. */
int uvd_dir_clear(int dir);
/* Is dir empty? Returns 1 (empty), 0, or a negative errno. */
int uvd_dir_empty(int dir);

/* Call it in a loop that waits for another CPU. */
static inline void uvd_cpu_relax(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

#endif
