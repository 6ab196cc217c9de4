/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The system calls that a client's thread executes for us when it is borrowed (borrow.h), and those in which it waits for the
 * engine (waiting.h), with their numbers in each ABI of x86. This is the only place that has them.
 */
#ifndef UVD_SYSCALLS_H
#define UVD_SYSCALLS_H

#include <stdbool.h>
#include <stdint.h>

enum uvd_syscall {
	UVD_SYSCALL_CLOSE,
	UVD_SYSCALL_DUP3,
	UVD_SYSCALL_IOCTL,
	UVD_SYSCALL_OPEN,
	UVD_SYSCALL_OPENAT,
	UVD_SYSCALL_OPENAT2,
	UVD_SYSCALL_PWRITE64,
	UVD_SYSCALL_RECVMSG,
	UVD_SYSCALL_SOCKET,
	UVD_SYSCALL_WRITE,
	UVD_SYSCALL_WRITEV,
	UVD_NUM_SYSCALLS
};

/* x32: without the bit that tells x32 calls from x86-64 calls. */
struct uvd_syscall_numbers {
	unsigned int x86_64, i386, x32;
};

static inline const struct uvd_syscall_numbers *uvd_syscall_numbers(enum uvd_syscall call)
{
	static const struct uvd_syscall_numbers numbers[UVD_NUM_SYSCALLS] = {
		[UVD_SYSCALL_CLOSE] = { 3, 6, 3 },	  [UVD_SYSCALL_DUP3] = { 292, 330, 292 },
		[UVD_SYSCALL_IOCTL] = { 16, 54, 514 },	  [UVD_SYSCALL_OPEN] = { 2, 5, 2 },
		[UVD_SYSCALL_OPENAT] = { 257, 295, 257 }, [UVD_SYSCALL_OPENAT2] = { 437, 437, 437 },
		[UVD_SYSCALL_PWRITE64] = { 18, 181, 18 }, [UVD_SYSCALL_RECVMSG] = { 47, 372, 519 },
		[UVD_SYSCALL_SOCKET] = { 41, 359, 41 },	  [UVD_SYSCALL_WRITE] = { 1, 4, 1 },
		[UVD_SYSCALL_WRITEV] = { 20, 146, 516 },
	};

	return &numbers[call];
}

/* Is nr the call's number in any of the ABIs? x32 numbers come without their bit. */
static inline bool uvd_syscall_has_number(enum uvd_syscall call, uint64_t nr)
{
	const struct uvd_syscall_numbers *n = uvd_syscall_numbers(call);

	return nr == n->x86_64 || nr == n->i386 || nr == n->x32;
}

#endif
