/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Trapped calls that name a path: decoding, and which of our files the path means. */
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
	UVD_RUN_IOCTL,
	UVD_RUN_DUP,
	/* From here on they are only seen: what they do is the kernel's. */
	UVD_RUN_SETID,
	UVD_RUN_EXEC,
	UVD_RUN_CLOSE, /* fd: the number that will be free, or another's; -1: any */
	UVD_RUN_RING,
};

/* A trapped call, one form for all that do the same. */
struct uvd_run_args {
	enum uvd_run_op op;
	int fd; /* or dirfd */
	uint64_t path; /* address; 0 for calls by fd */
	uint64_t buf, size; /* result buffer or data */
	unsigned int flags; /* O_* or AT_* */
	unsigned int mode; /* access: R_OK...; statx: the mask; DUP: least number */
	bool how; /* flags are in a struct open_how at buf */
};

void uvd_run_decode(const struct seccomp_data *data, struct uvd_run_args *args);

/* Is it fstat(), which also comes as newfstatat(fd, "", AT_EMPTY_PATH), or with a NULL path (6.11)? */
bool uvd_run_is_fstat(struct uvd_caller *c, const struct uvd_run_args *args);

enum uvd_run_place {
	UVD_RUN_ELSEWHERE,
	UVD_RUN_NODE, /* /dev/infiniband/uverbsN */
	UVD_RUN_UCAP, /* /dev/infiniband/NAME, where that can be a User Capability's name */
	UVD_RUN_TREE, /* in the folder of ours that stands for /dev/infiniband and /sys/class/infiniband* */
};

struct uvd_run_target {
	enum uvd_run_place place;
	unsigned int number; /* NODE: N */
	char path[PATH_MAX]; /* TREE: below our folder; UCAP: the name */
};

/* Most paths are none of ours: then this costs one short read of the caller's memory. root: our folder. */
void uvd_run_resolve(struct uvd_caller *c, const char *root, const struct uvd_run_args *args, struct uvd_run_target *t);

#endif
