/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The table of what each backend and each feature needs from the kernel in a sandboxed process. A new backend or
 * feature is one new row in sandbox_rows.c. Internal.
 */
#ifndef UVD_BROKER_SANDBOX_H
#define UVD_BROKER_SANDBOX_H

#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>

enum { UVD_SANDBOX_SKIP = -1 };

/*
 * One rule of the filter. A system call that is in none of the loaded rows kills the process; in the row `look` it fails. A
 * rule that lets all of a call fail holds only where no other loaded row allows some of it.
 */
struct uvd_sandbox_call {
	const char *name;
	const char *only; /* describes the arguments that `cmp` allows; NULL: all */
	int err; /* 0: the call is executed; UVD_SANDBOX_SKIP: it returns 0 and does nothing; an errno: it fails with it */
	bool own; /* argument 0 must also be the process's own PID */
	unsigned int num_cmp;
	struct scmp_arg_cmp cmp[3];
	bool no_slot; /* argument 0 is a descriptor that is not that of a slot; cmp is empty */
};

struct uvd_sandbox_row {
	const char *name;
	const char *when; /* describes the processes that the row is for */
	const char *opened; /* the descriptors that are opened before entering the sandbox; NULL: none */
	int keeps; /* CLONE_NEW* of the host's namespaces that the row needs; the others are replaced by empty ones */
	unsigned int num_calls;
	const struct uvd_sandbox_call *calls;
	bool adapters; /* the root has the adapters' sysfs files, and a folder for their nodes, which the broker makes */
	bool reports; /* the root has /proc of this user, and the folder of a sanitizer's reports */
};

/* Return NULL if the table has no such row. */
const struct uvd_sandbox_row *uvd_sandbox_row_at(unsigned int i);
const struct uvd_sandbox_row *uvd_sandbox_row(const char *name);

/*
 * Loads the filter that these rows make together, for the calling thread and for threads and children that it starts
 * later. names ends with NULL. otherwise: SCMP_ACT_*, for all calls that are in no row. Returns 0; -EOPNOTSUPP: a name
 * has no row; or another negative errno.
 */
int uvd_sandbox_load(const char *const *names, uint32_t otherwise);

/* Prints the table as docs/security-processes.md shows it. */
void uvd_sandbox_print(FILE *f);

#endif
