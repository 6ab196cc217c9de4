/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Allocations, client copies and looks into /proc that fail when they are told to. */
#ifndef TESTS_FAULTS_INJECT_H
#define TESTS_FAULTS_INJECT_H

#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include "client/client.h"

/* Not ck_assert(), which allocates even where it holds: blocks are counted here. */
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

/* ---- what fails (inject.c) --------------------------------------------------------------------------------------- */

enum fault { FAULT_ALLOC, FAULT_COPY, FAULT_BACKEND, FAULT_PROC, FAULT_KINDS };

/* What failing ones return, but for allocations. An errno that nothing else gives, so that it can be told where it ends. */
enum { BACKEND_ERRNO = EXDEV, PROC_ERRNO = EMFILE };

/* The n-th (from 1) of the kind fails in this thread, and onwards: all after it too. */
void fault_arm(enum fault kind, unsigned int n, bool onwards);
/* Ends it. Has any failed? */
bool fault_disarm(void);
/* Is it one that must fail? Of those who can. */
bool fault_here(enum fault kind);

/* Blocks of memory that are allocated and not free. */
long fault_blocks(void);
extern const struct uvd_mem_ops fault_mem; /* process_vm_readv() and _writev() */
extern struct uvd_proc fault_proc, *fault_proc_behind; /* our own /proc, unless a test puts another one here */

#endif
