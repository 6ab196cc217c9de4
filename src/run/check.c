/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Checks that the system has what a run needs, before anything is made, so that the message names what is missing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "run/launch.h"
#include "util/util.h"

enum { LEAST_FILES = 64, LEAST_SIZE = 64 << 20 };

/* The engine looks its callers up in /proc, by the ids that the kernel gives it. */
static bool has_proc(void)
{
	char self[16];
	ssize_t n = readlink("/proc/self", self, sizeof(self) - 1);

	if (n < 0) {
		fprintf(stderr, "uverbsctl run: /proc/self: %s: mount proc on /proc\n", uvd_errno_name(errno));
		return false;
	}
	self[n] = 0;
	if (atoi(self) == getpid())
		return true;
	fprintf(stderr, "uverbsctl run: /proc is that of another pid namespace: mount proc on /proc in this one "
			"(unshare --mount-proc)\n");
	return false;
}

static bool has_null(void)
{
	if (!access("/dev/null", R_OK | W_OK))
		return true;
	fprintf(stderr, "uverbsctl run: /dev/null: %s: make it (mknod -m 666 /dev/null c 1 3)\n",
		uvd_errno_name(errno));
	return false;
}

/*
 * The engine needs some twenty fds for itself and a few for each open of the device. Without them it may leave files
 * behind.
 */
static bool enough_files(void)
{
	struct rlimit nofile;

	if (getrlimit(RLIMIT_NOFILE, &nofile) || nofile.rlim_max >= LEAST_FILES)
		return true;
	fprintf(stderr, "uverbsctl run: the hard limit of open files is %llu, and %d are needed (ulimit -Hn)\n",
		(unsigned long long)nofile.rlim_max, LEAST_FILES);
	return false;
}

/* Each open of the device is a file, as large as all that the client may map of it. */
static bool large_files(void)
{
	struct rlimit fsize;

	if (getrlimit(RLIMIT_FSIZE, &fsize) || fsize.rlim_max >= LEAST_SIZE)
		return true;
	fprintf(stderr, "uverbsctl run: the hard limit of file sizes is %llu bytes, and %d are needed (ulimit -Hf)\n",
		(unsigned long long)fsize.rlim_max, LEAST_SIZE);
	return false;
}

bool uvd_run_check_system(void)
{
	return has_proc() && has_null() && enough_files() && large_files();
}
