/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Borrowing a client's thread: stopped with ptrace on its way out of a system call, it executes system calls of ours and
 * goes on as if nothing had happened. x86-64 and i386 callers.
 *
 * The client's other threads run meanwhile. They can change the borrowed thread's code and memory at any moment, so nothing
 * that was looked at before the thread runs is believed: each call is compared with what was ordered when the thread has
 * entered it, and what differs is cancelled there.
 *
 * All functions but uvd_borrow_dying() and uvd_borrow_kill() belong to the one thread of ours that called
 * uvd_borrow_seize(), in this order: seize, answer the system call that the client waits in, stop, call as often as needed,
 * release, close. Each of them can wait for as long as the client likes; uvd_borrow_kill() ends such a wait.
 */
#ifndef UVD_BORROW_H
#define UVD_BORROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct uvd_borrow {
	pid_t tid, tracer; /* the thread of ours */
	bool compat; /* it called by int 0x80: i386 numbers and registers */
	bool holding; /* registers and mask are saved, and may have been changed */
	bool dead; /* it died in our hands */
	bool disobeyed; /* it was about to execute something else: nothing more is ordered */
	struct user_regs_struct regs; /* as they were */
	uint64_t mask;
	int pidfd; /* of its process; -1: none */
	/*
	 * Descriptors of its address space, /proc/TID/mem and /proc/TID/maps, which were opened while the thread was stopped in
	 * our hands: they never reach a process that has its number later. -1 before uvd_borrow_stop().
	 */
	int memfd, mapsfd;
};

enum { UVD_BORROW_SCRATCH = 128 }; /* bytes that uvd_borrow_scratch() gives */

/*
 * Makes the thread stop before it is back in user space. It may wait: an exec in another thread of the client holds a lock
 * that this needs. Returns 0; -EPERM: it has a debugger, or tracing is forbidden; -EMFILE: we have no descriptor left.
 * uvd_borrow_close() follows in any case.
 */
int uvd_borrow_seize(struct uvd_borrow *b, pid_t tid);
/* Is the thread being killed, by a signal or by an exec in another thread? On any thread of ours. */
bool uvd_borrow_dying(pid_t tid);
/* Kills the client's process, if the thread still is ours. On any thread of ours, between seize and release. */
void uvd_borrow_kill(const struct uvd_borrow *b);
/*
 * After the client's call was answered: waits until the thread has stopped, saves its state and blocks its signals.
 * 0; -ESRCH: it is dead; -ENOSYS: it is in no state to execute anything for us; -EPERM: a seccomp filter of its own would
 * judge our calls; -EMFILE: we have no descriptor left.
 */
int uvd_borrow_stop(struct uvd_borrow *b);
/*
 * Is the thread stopped in our hands, still? What was asked by its number just before is about itself then; an exec in another
 * thread of the client kills it and can take its number over.
 */
bool uvd_borrow_holds(const struct uvd_borrow *b);
/* Memory of the thread that nobody uses: below its stack's red zone. 0: there is none that it could address. */
uint64_t uvd_borrow_scratch(const struct uvd_borrow *b);
/*
 * Executes one call there. Returns its result; -ESRCH: the thread died; -EPERM: it was about to execute something else, so
 * nothing was executed.
 */
long uvd_borrow_call(struct uvd_borrow *b, int nr, int nr_i386, const long args[3]);
/*
 * Restores the thread and lets it go. result: what its own call returns, where that differs from what it was answered;
 * NULL: leave it. -ESRCH: it is dead, and reaped only now: its parent has not heard of it before.
 */
int uvd_borrow_release(struct uvd_borrow *b, const long *result);
/*
 * Closes the descriptors, at the very end: no other thread of ours may be in uvd_borrow_kill(). Where there was no release the
 * client's thread goes on when the thread of ours that seized it ends.
 */
void uvd_borrow_close(struct uvd_borrow *b);

#endif
