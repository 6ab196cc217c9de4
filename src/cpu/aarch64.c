/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* AArch64. parts.c says what it lacks. */
#include <errno.h>
#include <sys/syscall.h>
#include "cpu/cpu.h"

const enum uvd_cpu uvd_cpu = UVD_CPU_AARCH64;

/* ---- system calls ------------------------------------------------------------------------------------------------ */

/*
 * 64-bit programs' alone. In 32-bit programs one of these numbers can wait: 29 is pause() there. A thread in it with
 * a node's descriptor in its first register passes for a client, which it can be, as it has the node open.
 */
static const struct {
	unsigned int nr;
	enum uvd_cpu_call call;
} cpu_calls[] = {
	{ SYS_write, UVD_CPU_CALL_WRITE },   { SYS_ioctl, UVD_CPU_CALL_IOCTL },	  { SYS_pwrite64, UVD_CPU_CALL_PWRITE },
	{ SYS_writev, UVD_CPU_CALL_WRITEV }, { SYS_openat, UVD_CPU_CALL_OPENAT }, { SYS_openat2, UVD_CPU_CALL_OPENAT },
};

uint64_t uvd_cpu_call_number(uint64_t nr)
{
	return nr;
}

enum uvd_cpu_call uvd_cpu_call_of(uint64_t nr)
{
	for (size_t i = 0; i < sizeof(cpu_calls) / sizeof(cpu_calls[0]); i++)
		if (cpu_calls[i].nr == nr)
			return cpu_calls[i].call;
	return UVD_CPU_CALL_OTHER;
}

long uvd_cpu_spawn(void (*run)(void *arg), void *arg, void *top)
{
	return -ENOSYS;
}

/* ---- a thread that ptrace has stopped ---------------------------------------------------------------------------- */

const struct uvd_cpu_thread *const uvd_cpu_thread;

/* ---- the registers that a signal handler gets -------------------------------------------------------------------- */

uint64_t uvd_cpu_signal_arg(const ucontext_t *context, int n)
{
	return context->uc_mcontext.regs[n];
}

void uvd_cpu_signal_return(ucontext_t *context, long result)
{
	context->uc_mcontext.regs[0] = result;
}

uintptr_t uvd_cpu_signal_pc(const ucontext_t *context)
{
	return context->uc_mcontext.pc;
}

uintptr_t uvd_cpu_signal_caller(const ucontext_t *context)
{
	return context->uc_mcontext.regs[30];
}

/* ---- checksums --------------------------------------------------------------------------------------------------- */

size_t uvd_cpu_crc32(uint32_t *crc, const void *bytes, size_t len)
{
	return 0;
}
