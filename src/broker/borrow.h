/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Borrowing a client's thread: stopped with ptrace on its way out of a system call, it executes system calls of ours and
 * goes on as if nothing had happened. x86-64 and i386 callers.
 *
 * All of it must happen on the one thread of ours that called uvd_borrow_seize(), in this order: seize, answer the system
 * call that the client waits in, stop, call as often as needed, release.
 */
#ifndef UVD_BORROW_H
#define UVD_BORROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct uvd_borrow {
	pid_t tid;
	bool compat; /* it called by int 0x80: i386 numbers and registers */
	bool holding; /* registers and mask are saved, and may have been changed */
	bool dead; /* it died in our hands */
	struct user_regs_struct regs; /* as they were */
	uint64_t mask;
};

enum { UVD_BORROW_SCRATCH = 64 }; /* bytes that uvd_borrow_scratch() gives */

/*
 * Makes the thread stop before it is back in user space. It may wait: an exec in another thread of the client holds a lock
 * that this needs. -EPERM: it has a debugger, or tracing is forbidden.
 */
int uvd_borrow_seize(struct uvd_borrow *b, pid_t tid);
/* Is it being killed, by a signal or by an exec in another thread? May be asked on any thread of ours. */
bool uvd_borrow_dying(pid_t tid);
/*
 * After the client's call was answered: waits until the thread has stopped, saves its state and blocks its signals.
 * 0; -ESRCH: it is dead; -ENOSYS: it is in no state to execute anything for us. uvd_borrow_release() follows in any case.
 */
int uvd_borrow_stop(struct uvd_borrow *b);
/* Memory of the thread that nobody uses: below its stack's red zone. 0: there is none that it could address. */
uint64_t uvd_borrow_scratch(const struct uvd_borrow *b);
/* Executes one call there. Its result, or -ESRCH: the thread died. */
long uvd_borrow_call(struct uvd_borrow *b, int nr, int nr_i386, const long args[4]);
/*
 * Restores the thread and lets it go. result: what its own call returns, where that differs from what it was answered;
 * NULL: leave it. -ESRCH: it is dead, and reaped only now: its parent has not heard of it before.
 */
int uvd_borrow_release(struct uvd_borrow *b, const long *result);

#endif
