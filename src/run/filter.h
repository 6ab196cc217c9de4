/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The seccomp filter: which system calls of the process tree the engine receives. */
#ifndef UVD_RUN_FILTER_H
#define UVD_RUN_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <sys/resource.h>

/*
 * A range of fd numbers for fds of the device. Other files get such numbers only in a process with many open files. A
 * filter sees numbers, not files, so this range is how it recognises a write() on the device. The size is a power of
 * two and the base is aligned to it: the test is one masked comparison.
 *
 * The lower half is for files whose doorbells go into a log (src/doorbell): there a write() of UVD_DOORBELL_BYTES is not trapped.
 */
struct uvd_run_window {
	unsigned int base, size; /* size 0: unused */
	unsigned int direct; /* how many of the numbers are for files with a log: half of them or none */
};

enum { UVD_RUN_WINDOWS = 4 }; /* each is used when those before it are full or above the caller's limit */

static inline bool uvd_run_in_window(const struct uvd_run_window *w, unsigned long long fd)
{
	return w->size && (unsigned int)fd - w->base < w->size; /* the kernel also looks at 32 bits of an fd only */
}

/* Chooses the windows for a process tree with these limits on open files. logs: some files have logs. */
void uvd_run_windows(struct uvd_run_window *windows, const struct rlimit *nofile, bool logs);

/*
 * Compiles the filter. exits: it traps exit_group(), too. The caller frees prog->filter. Returns 0 or a negative errno.
 */
int uvd_run_filter_make(const struct uvd_run_window *windows, bool exits, struct sock_fprog *prog);

/*
 * Installs the filter for this process and its future descendants. Returns the listener, or a negative errno: -EBUSY if
 * this process tree has a listener already, -EINVAL if the kernel is older than 5.19. Until another process serves the
 * listener, this process must not make a trapped system call.
 */
int uvd_run_filter_install(const struct sock_fprog *prog);

#endif
