/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Borrowing a client's thread: ptrace stops the thread on its way out of a system call, the thread executes system
 * calls of ours, and then goes on as if nothing had happened. What that takes of a CPU is in cpu/cpu.h: x86-64 has it,
 * with i386 callers.
 *
 * The client's other threads run meanwhile. They can change the borrowed thread's code and memory at any moment, so
 * nothing that was read before the thread runs is trusted: at the entry of each system call the call is compared with
 * what was ordered, and cancelled there if it differs.
 *
 * Only the thread of ours that called uvd_borrow_seize() may call the functions, except uvd_borrow_dying() and
 * uvd_borrow_kill(). That thread traces nothing else, and has no children with an exit signal: it waits for all that it
 * traces. The order is: seize, answer the system call that the client waits in, stop, call as often as
 * needed, release, close. Each of them can wait for as long as the client likes; uvd_borrow_kill() ends such a wait.
 */
#ifndef UVD_BORROW_H
#define UVD_BORROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>
#include "broker/syscalls.h"

struct uvd_borrow {
	pid_t tid, tracer; /* tracer: the thread of ours that called uvd_borrow_seize() */
	bool compat; /* it made its call as a 32-bit program does: i386 numbers and registers */
	bool holding; /* registers and mask are saved, and the thread's may have been changed */
	bool dead; /* it died while we traced it */
	bool may_be_parent; /* set after the seizure: the thread's process may be a child of ours, which another thread reaps */
	/*
	 * Set after the seizure: how many seccomp filters our clients have from the start. They allow the calls that we
	 * order, so a thread with that many can be borrowed. 0: none.
	 */
	unsigned int filters;
	bool disobeyed; /* it entered a call that was not ordered: nothing more is ordered */
	struct user_regs_struct regs; /* saved by uvd_borrow_stop() */
	uint64_t mask; /* of blocked signals, saved too */
	int pidfd; /* of its process; -1: none */
	/*
	 * /proc/TID/mem and /proc/TID/maps. They were opened while we had the thread stopped, so they never stand for
	 * a process that gets its number later. -1 before uvd_borrow_stop().
	 */
	int memfd, mapsfd;
};

enum { UVD_BORROW_SCRATCH = 144 }; /* bytes at the address that uvd_borrow_scratch() returns */

/*
 * Makes the thread stop before it returns to user space. Can wait: an exec in another thread of the client holds a lock
 * that PTRACE_SEIZE needs. Returns 0; -EPERM: the thread is gone, is traced already, or must not be traced; -EMFILE: we
 * have no descriptor left; -EPERM too: UVD_CPU_LOANS is lacking. The caller calls uvd_borrow_close() in any case.
 */
int uvd_borrow_seize(struct uvd_borrow *b, pid_t tid);
/* Returns the number of the thread's seccomp filters. 0: it has none, or the number cannot be read. */
unsigned int uvd_borrow_num_filters(pid_t tid);
/* Has the thread a seccomp filter that b->filters does not count? */
bool uvd_borrow_is_filtered(const struct uvd_borrow *b);
/* Is the thread being killed, by a signal or by an exec in another thread? Any thread of ours may call this. */
bool uvd_borrow_dying(pid_t tid);
/*
 * Kills the client's process if we still trace the thread. Any thread of ours may call it, between seize and release.
 */
void uvd_borrow_kill(const struct uvd_borrow *b);
/*
 * Call after the client's call was answered. Waits until the thread has stopped, saves its state and blocks its
 * signals. Returns 0; -ESRCH: it is dead; -ENOSYS: its call was made by no instruction that the CPU's table knows; -EPERM: a
 * seccomp filter of its own would check our calls, and cannot be suspended; -EMFILE: we have no descriptor left; or
 * another error of opening its files below /proc.
 */
int uvd_borrow_stop(struct uvd_borrow *b);
/*
 * Do we still have the thread stopped? If so, whatever was read by its number just before was its own: otherwise an
 * exec in another thread of the client may have killed it, and taken its number over.
 */
bool uvd_borrow_holds(const struct uvd_borrow *b);
/*
 * Returns the address of memory that the thread does not use, below its stack's red zone. Returns 0 if an i386 call
 * could not address it.
 */
uint64_t uvd_borrow_scratch(const struct uvd_borrow *b);
/* Copy between our memory and the thread's, without a look at its page protection. Return false if not all is copied. */
bool uvd_borrow_read(const struct uvd_borrow *b, uint64_t at, void *buf, size_t len);
bool uvd_borrow_write(const struct uvd_borrow *b, uint64_t at, const void *buf, size_t len);
/*
 * Executes one system call in the thread. Returns its result; -ESRCH: the thread died; -EPERM: it entered another
 * call, so nothing was executed, here or at an earlier call.
 */
long uvd_borrow_call(struct uvd_borrow *b, enum uvd_syscall call, const long args[3]);
/*
 * Restores the thread's state and detaches from it. *result: what its own call returns instead of the answer it got;
 * NULL: the answer stays. Returns 0; -ESRCH: the thread is dead. It is reaped only here, or with b->may_be_parent when
 * the calling thread ends: until then its parent learns nothing of its death.
 */
int uvd_borrow_release(struct uvd_borrow *b, const long *result);
/*
 * Closes the descriptors. Call it last: no other thread of ours may be in uvd_borrow_kill(). If the client's thread was
 * only seized and not released, it goes on when the thread of ours that seized it ends.
 */
void uvd_borrow_close(struct uvd_borrow *b);

#endif
