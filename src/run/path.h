/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Decodes trapped calls, and finds out which of our files a path means. */
#ifndef UVD_RUN_PATH_H
#define UVD_RUN_PATH_H

#include <limits.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include "client/client.h"

enum uvd_run_op {
	UVD_RUN_OTHER,
	UVD_RUN_OPEN,
	UVD_RUN_STAT,
	UVD_RUN_STATX,
	UVD_RUN_FSTAT,
	UVD_RUN_ACCESS,
	UVD_RUN_READLINK,
	UVD_RUN_XATTR,
	UVD_RUN_WRITE,
	UVD_RUN_WRITEV,
	UVD_RUN_READ, /* or readv() */
	UVD_RUN_IOCTL,
	UVD_RUN_DUP,
	UVD_RUN_NETLINK, /* socket() of NETLINK_RDMA */
	UVD_RUN_LIMIT, /* setrlimit(RLIMIT_FSIZE) or prlimit(); fd: the process, 0: the caller's; buf: the limit */
	/* The engine only takes note of the following; the kernel carries them out. */
	UVD_RUN_SETID,
	UVD_RUN_EXEC,
	UVD_RUN_CLOSE, /* fd: the number that is closed or replaced; -1: any */
	UVD_RUN_RING, /* io_uring_setup() */
	UVD_RUN_EXIT, /* exit_group(); fd: its status */
};

/* A trapped call, decoded: calls that do the same have the same form. */
struct uvd_run_args {
	enum uvd_run_op op;
	int fd; /* or dirfd */
	uint64_t path; /* address; 0 for calls by fd */
	uint64_t buf, size; /* result buffer or data */
	unsigned int flags; /* O_* or AT_* */
	unsigned int mode; /* access: R_OK...; statx: the mask; DUP: least number */
	bool how; /* flags are in a struct open_how at buf */
	uint64_t resolve; /* RESOLVE_*, once that struct was read */
};

void uvd_run_decode(const struct seccomp_data *data, struct uvd_run_args *args);

/* Is it fstat()? That also comes as newfstatat() or statx() with AT_EMPTY_PATH and a path of "", or NULL (6.11). */
bool uvd_run_is_fstat(struct uvd_caller *c, const struct uvd_run_args *args);

enum uvd_run_place {
	UVD_RUN_ELSEWHERE,
	UVD_RUN_NODE, /* /dev/infiniband/NAME, where a node can have that name */
	UVD_RUN_TREE, /* a file of the run's folder, which stands for /dev/infiniband, /sys/class/infiniband*, /sys/class/misc/rdma_cm */
};

struct uvd_run_target {
	enum uvd_run_place place;
	bool in_run; /* TREE: the path names the run's folder itself, as SYSFS_PATH does */
	char path[PATH_MAX]; /* TREE: below the run's folder; NODE: the name */
};

/* Is it the name of a device's node, uverbsN? Then stores N. */
bool uvd_run_device_name(const char *name, unsigned int *number);

/*
 * Finds out which of our files the path means. root: the run's folder, or "". For other paths, which are most, it costs
 * one short read of the caller's memory. A path that args->resolve forbids is elsewhere: the kernel finds the errno.
 */
void uvd_run_resolve(struct uvd_caller *c, const char *root, const struct uvd_run_args *args, struct uvd_run_target *t);

#endif
