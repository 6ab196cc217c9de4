/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The system calls that a client's thread executes for us when it is borrowed (borrow.h), with their numbers in each ABI of x86:
 * no other CPU has loans. Those in which it waits for the engine (waiting.h) are in cpu/cpu.h.
 */
#ifndef UVD_SYSCALLS_H
#define UVD_SYSCALLS_H

enum uvd_syscall {
	UVD_SYSCALL_CLOSE,
	UVD_SYSCALL_DUP3,
	UVD_SYSCALL_IOCTL,
	UVD_SYSCALL_RECVMSG,
	UVD_SYSCALL_SOCKET,
	UVD_NUM_SYSCALLS
};

struct uvd_syscall_numbers {
	unsigned int x86_64, i386;
};

static inline const struct uvd_syscall_numbers *uvd_syscall_numbers(enum uvd_syscall call)
{
	static const struct uvd_syscall_numbers numbers[UVD_NUM_SYSCALLS] = {
		[UVD_SYSCALL_CLOSE] = { 3, 6 },	    [UVD_SYSCALL_DUP3] = { 292, 330 },
		[UVD_SYSCALL_IOCTL] = { 16, 54 },   [UVD_SYSCALL_RECVMSG] = { 47, 372 },
		[UVD_SYSCALL_SOCKET] = { 41, 359 },
	};

	return &numbers[call];
}

#endif
