/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The seccomp filter: which system calls of the tree come to the engine. */
#ifndef UVD_RUN_FILTER_H
#define UVD_RUN_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <sys/resource.h>

/*
 * A range of fd numbers that device fds get, and no others while there are few files open. A filter sees numbers and not
 * files, so this is how write() on the device is told from every other write(). Power of two, aligned: one masked
 * comparison.
 */
struct uvd_run_window {
	unsigned int base, size; /* size 0: there is none */
};

enum { UVD_RUN_WINDOWS = 2 }; /* the second is for when the first is full */

static inline bool uvd_run_in_window(const struct uvd_run_window *w, unsigned long long fd)
{
	return w->size && (unsigned int)fd - w->base < w->size; /* the kernel too looks at 32 bits of an fd */
}

/* The windows for a tree with these limits on fd numbers. */
void uvd_run_windows(struct uvd_run_window *windows, const struct rlimit *nofile);

/* Compiles the filter. prog->filter is the caller's to free(). 0 or a negative errno. */
int uvd_run_filter_make(const struct uvd_run_window *windows, struct sock_fprog *prog);

/*
 * Sets it for this process and all that it will start. The listener, or a negative errno: -EBUSY, there is a listener in
 * this tree already; -EINVAL, the kernel is older than 5.19. Between this and the answers of whoever has the listener,
 * this process must make no system call that is trapped.
 */
int uvd_run_filter_install(const struct sock_fprog *prog);

#endif
