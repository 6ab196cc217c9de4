/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Fault injection: allocations, client copies, backend calls and look-ups in /proc that fail when armed. */
#ifndef TESTS_FAULTS_INJECT_H
#define TESTS_FAULTS_INJECT_H

#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include "client/client.h"

/* Not ck_assert(): it allocates even if the condition holds, and these tests count blocks. */
#define MUST(cond, ...) \
	do { \
		if (!(cond)) \
			ck_abort_msg(__VA_ARGS__); \
	} while (0)
#define WORKS(call) \
	do { \
		int ret_ = call; \
		MUST(!ret_, "%s: %d", #call, ret_); \
	} while (0)

/* ---- faults (inject.c) ------------------------------------------------------------------------------------------- */

enum fault { FAULT_ALLOC, FAULT_COPY, FAULT_BACKEND, FAULT_PROC, FAULT_KINDS };

/* The errno of an injected failure in a backend or /proc. No other code returns it, so it identifies the fault. */
enum { BACKEND_ERRNO = EXDEV, PROC_ERRNO = EMFILE };

/* Arms the fault: the n-th operation (from 1) of this kind in this thread fails. onwards: all later ones, too. */
void fault_arm(enum fault kind, unsigned int n, bool onwards);
/* Disarms the fault. Returns whether any operation has failed. */
bool fault_disarm(void);
/* Operations that can fail call this. Returns true if this one must. */
bool fault_here(enum fault kind);

/* Returns the number of allocated blocks of memory. */
long fault_blocks(void);
extern const struct uvd_mem_ops fault_mem; /* process_vm_readv() and _writev() */
extern struct uvd_proc fault_proc, *fault_proc_behind; /* our own /proc, unless a test puts another one here */

#endif
