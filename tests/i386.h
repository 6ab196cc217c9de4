/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Calls as a 32-bit program makes them. Addresses are below 4 GiB. */
#ifndef UVD_TEST_I386_H
#define UVD_TEST_I386_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef MAP_32BIT
enum { I386_MAP = MAP_32BIT };
#else
enum { I386_MAP = 0 };
#endif
enum { I386_READ = 3, I386_OPEN = 5, I386_GETPID = 20 };

/* Returns what the kernel does, or -ENOSYS on another CPU. A kernel without 32-bit calls sends SIGSEGV. */
static inline long i386_call(int number, long a, long b, long c)
{
	long ret = -ENOSYS;
#ifdef __x86_64__
	__asm__ volatile("int $0x80"
			 : "=a"(ret)
			 : "a"(number), "b"(a), "c"(b), "d"(c)
			 : "memory", "r8", "r9", "r10", "r11");
#endif
	return (int)ret;
}

/* Some kernels have no such calls, by their configuration or by the host below them. */
static inline bool i386_works(void)
{
	const pid_t pid = fork();
	int status = 1;

	if (!pid) {
		signal(SIGSEGV, SIG_DFL); /* no sanitizer's report */
		_exit(i386_call(I386_GETPID, 0, 0, 0) <= 0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

#endif
