/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * x86-64, and i386 for 32-bit callers. Programs of the x32 ABI enter the kernel as those of x86-64 do, and a borrowed
 * thread of theirs makes calls of x86-64.
 */
#include <errno.h>
#include <immintrin.h>
#include <linux/audit.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include "cpu/cpu.h"

enum { X32_BIT = 0x40000000, RED_ZONE = 128 };

const enum uvd_cpu uvd_cpu = UVD_CPU_X86_64;

/* ---- system calls ------------------------------------------------------------------------------------------------ */

/* A number of i386 or x32 that is another call of x86-64 never waits for a node there. */
static const struct {
	unsigned int nr;
	enum uvd_cpu_call call;
} cpu_calls[] = {
	{ 1, UVD_CPU_CALL_WRITE },
	{ 16, UVD_CPU_CALL_IOCTL },
	{ 18, UVD_CPU_CALL_PWRITE },
	{ 20, UVD_CPU_CALL_WRITEV },
	{ 4 /* i386 */, UVD_CPU_CALL_WRITE },
	{ 54 /* i386 */, UVD_CPU_CALL_IOCTL },
	{ 146 /* i386 */, UVD_CPU_CALL_WRITEV },
	{ 181 /* i386 */, UVD_CPU_CALL_PWRITE },
	{ 514 /* x32 */, UVD_CPU_CALL_IOCTL },
	{ 516 /* x32 */, UVD_CPU_CALL_WRITEV },
	{ 2, UVD_CPU_CALL_OPEN },
	{ 257, UVD_CPU_CALL_OPENAT },
	{ 437 /* openat2, i386 too */, UVD_CPU_CALL_OPENAT },
	{ 5 /* i386 */, UVD_CPU_CALL_OPEN },
	{ 295 /* i386 */, UVD_CPU_CALL_OPENAT },
};

uint64_t uvd_cpu_call_number(uint64_t nr)
{
	return nr & ~(uint64_t)X32_BIT;
}

enum uvd_cpu_call uvd_cpu_call_of(uint64_t nr)
{
	for (size_t i = 0; i < sizeof(cpu_calls) / sizeof(cpu_calls[0]); i++)
		if (cpu_calls[i].nr == uvd_cpu_call_number(nr))
			return cpu_calls[i].call;
	return UVD_CPU_CALL_OTHER;
}

__attribute__((no_sanitize("address", "thread", "undefined"))) long uvd_cpu_spawn(void (*run)(void *arg), void *arg,
										  void *top)
{
	void **stack = top;
	long ret;

	*--stack = run;
	*--stack = arg;
	__asm__ volatile("xor %%r10d, %%r10d\n\t"
			 "xor %%r8d, %%r8d\n\t"
			 "syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "pop %%rdi\n\t"
			 "pop %%rax\n\t"
			 "call *%%rax\n\t"
			 "ud2\n"
			 "1:"
			 : "=a"(ret)
			 : "a"(SYS_clone), "D"((long)CLONE_VM), "S"(stack), "d"(0L)
			 : "rcx", "r8", "r10", "r11", "memory", "cc");
	return ret;
}

/* ---- a thread that ptrace has stopped ---------------------------------------------------------------------------- */

static int x86_get(pid_t tid, struct user_regs_struct *regs)
{
	return ptrace(PTRACE_GETREGS, tid, 0, regs);
}

static int x86_set(pid_t tid, const struct user_regs_struct *regs)
{
	return ptrace(PTRACE_SETREGS, tid, 0, regs);
}

static int x86_cancel(pid_t tid)
{
	return ptrace(PTRACE_POKEUSER, tid, offsetof(struct user, regs.orig_rax), -1ull);
}

static uint64_t x86_insn(const struct user_regs_struct *regs)
{
	return regs->rip - 2; /* both instructions have 2 bytes */
}

static int x86_find(const struct user_regs_struct *regs, const unsigned char insn[UVD_CPU_INSN], bool *compat)
{
	*compat = insn[0] == 0xcd && insn[1] == 0x80; /* int $0x80 */
	if (!*compat && (insn[0] != 0x0f || insn[1] != 0x05)) /* syscall */
		return -ENOSYS;
	return (long)regs->orig_rax < 0 ? -ENOSYS : 0;
}

static uint64_t x86_stack(const struct user_regs_struct *regs)
{
	return regs->rsp - RED_ZONE;
}

static void x86_order(struct user_regs_struct *regs, bool compat, long nr, const long args[3])
{
	regs->rip = x86_insn(regs);
	regs->orig_rax = -1; /* not in a system call: the kernel must not restart one on the way out */
	regs->rax = nr;
	if (compat) {
		regs->rbx = args[0];
		regs->rcx = args[1];
		regs->rdx = args[2];
	} else {
		regs->rdi = args[0];
		regs->rsi = args[1];
		regs->rdx = args[2];
	}
}

static struct uvd_cpu_order x86_ordered(const struct user_regs_struct *r, bool compat)
{
	struct uvd_cpu_order order = { .nr = r->rax, .pc = r->rip + 2 };

	if (compat) {
		order.arch = AUDIT_ARCH_I386;
		order.mask = UINT32_MAX;
		__builtin_memcpy(order.args, (uint64_t[]){ r->rbx, r->rcx, r->rdx, r->rsi, r->rdi, r->rbp },
				 sizeof(order.args));
	} else {
		order.arch = AUDIT_ARCH_X86_64;
		order.mask = UINT64_MAX;
		__builtin_memcpy(order.args, (uint64_t[]){ r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9 },
				 sizeof(order.args));
	}
	return order;
}

static long x86_result(const struct user_regs_struct *regs, bool compat)
{
	return compat ? (int)regs->rax : (long)regs->rax;
}

static void x86_set_result(struct user_regs_struct *regs, long result)
{
	regs->rax = result;
}

static const struct uvd_cpu_thread x86_thread = {
	.get = x86_get,
	.set = x86_set,
	.cancel = x86_cancel,
	.insn_size = 2,
	.insn = x86_insn,
	.find = x86_find,
	.stack = x86_stack,
	.order = x86_order,
	.ordered = x86_ordered,
	.result = x86_result,
	.set_result = x86_set_result,
};

const struct uvd_cpu_thread *const uvd_cpu_thread = &x86_thread;

/* ---- the registers that a signal handler gets -------------------------------------------------------------------- */

uint64_t uvd_cpu_signal_arg(const ucontext_t *context, int n)
{
	return context->uc_mcontext.gregs[n ? REG_RSI : REG_RDI];
}

void uvd_cpu_signal_return(ucontext_t *context, long result)
{
	context->uc_mcontext.gregs[REG_RAX] = result;
}

uintptr_t uvd_cpu_signal_pc(const ucontext_t *context)
{
	return context->uc_mcontext.gregs[REG_RIP];
}

uintptr_t uvd_cpu_signal_caller(const ucontext_t *context)
{
	return *(const uintptr_t *)context->uc_mcontext.gregs[REG_RSP];
}

/* ---- checksums --------------------------------------------------------------------------------------------------- */

/* Instructions of every x86-64 that has carry-less multiplication. */
#define X86_CRC __attribute__((target("pclmul,sse4.1")))

/* The remainder moves on by as many bits as the constants say, and `data` joins it. */
X86_CRC static inline __m128i crc_fold(__m128i x, __m128i constants, __m128i data)
{
	return _mm_xor_si128(data, _mm_xor_si128(_mm_clmulepi64_si128(x, constants, 0x00),
						 _mm_clmulepi64_si128(x, constants, 0x11)));
}

/* Returns the 128 bits, and 32 zero bits behind them, modulo the polynomial. */
X86_CRC static inline uint32_t crc_reduce(__m128i x, __m128i fold16)
{
	const __m128i fold8 = _mm_set_epi64x(0, 0x163cd6124), barrett = _mm_set_epi64x(0x1f7011641, 0x1db710641);
	const __m128i low = _mm_set_epi32(0, ~0, 0, ~0);
	__m128i quotient;

	x = _mm_xor_si128(_mm_srli_si128(x, 8), _mm_clmulepi64_si128(x, fold16, 0x10));
	x = _mm_xor_si128(_mm_srli_si128(x, 4), _mm_clmulepi64_si128(_mm_and_si128(x, low), fold8, 0x00));
	quotient = _mm_and_si128(_mm_clmulepi64_si128(_mm_and_si128(x, low), barrett, 0x10), low);
	return _mm_extract_epi32(_mm_xor_si128(x, _mm_clmulepi64_si128(quotient, barrett, 0x00)), 1);
}

/*
 * By carry-less multiplication: Gopal and others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ", Intel 2009,
 * for the reflected polynomial. Four lanes of 16 bytes, as one multiplication waits for the one before it. len is a
 * multiple of 16, and not 0.
 */
X86_CRC static uint32_t crc_by_multiplication(uint32_t crc, const uint8_t *b, size_t len)
{
	const __m128i fold64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4),
		      fold16 = _mm_set_epi64x(0xccaa009e, 0x1751997d0);
	const __m128i *at = (const __m128i *)b, *end = (const __m128i *)(b + len);
	__m128i x = _mm_xor_si128(_mm_loadu_si128(at++), _mm_cvtsi32_si128(crc)), lane[3];

	if (end - at >= 3) {
		for (int i = 0; i < 3; i++)
			lane[i] = _mm_loadu_si128(at++);
		for (; end - at >= 4; at += 4) {
			x = crc_fold(x, fold64, _mm_loadu_si128(at));
			for (int i = 0; i < 3; i++)
				lane[i] = crc_fold(lane[i], fold64, _mm_loadu_si128(at + 1 + i));
		}
		for (int i = 0; i < 3; i++)
			x = crc_fold(x, fold16, lane[i]);
	}
	while (at < end)
		x = crc_fold(x, fold16, _mm_loadu_si128(at++));
	return crc_reduce(x, fold16);
}

/* Newer ones multiply in two lanes at once. */
#define X86_WIDE_CRC __attribute__((target("vpclmulqdq,pclmul,avx2")))

enum { WIDE_BYTES = 128, WIDE_LANES = WIDE_BYTES / 32 };

X86_WIDE_CRC static inline __m256i crc_fold_wide(__m256i x, __m256i constants, __m256i data)
{
	return _mm256_xor_si256(data, _mm256_xor_si256(_mm256_clmulepi64_epi128(x, constants, 0x00),
						       _mm256_clmulepi64_epi128(x, constants, 0x11)));
}

/* As crc_by_multiplication(), with eight lanes. len is a multiple of WIDE_BYTES, and not 0. */
X86_WIDE_CRC static uint32_t crc_by_wide_multiplication(uint32_t crc, const uint8_t *b, size_t len)
{
	const __m256i fold128 = _mm256_set_epi64x(0x14a7fe880, 0x1e88ef372, 0x14a7fe880, 0x1e88ef372);
	const __m256i *at = (const __m256i *)b, *end = (const __m256i *)(b + len);
	uint8_t lanes[WIDE_BYTES];
	__m256i lane[WIDE_LANES];

	for (int i = 0; i < WIDE_LANES; i++)
		lane[i] = _mm256_loadu_si256(at++);
	lane[0] = _mm256_xor_si256(lane[0], _mm256_set_epi32(0, 0, 0, 0, 0, 0, 0, crc));
	for (; at < end; at += WIDE_LANES)
		for (int i = 0; i < WIDE_LANES; i++)
			lane[i] = crc_fold_wide(lane[i], fold128, _mm256_loadu_si256(at + i));
	for (int i = 0; i < WIDE_LANES; i++)
		_mm256_storeu_si256((__m256i *)lanes + i, lane[i]);
	_mm256_zeroupper();
	return crc_by_multiplication(0, lanes, sizeof(lanes));
}

size_t uvd_cpu_crc32(uint32_t *crc, const void *bytes, size_t len)
{
	size_t wide = 0;

	len &= ~(size_t)15;
	if (!len || !__builtin_cpu_supports("pclmul") || !__builtin_cpu_supports("sse4.1"))
		return 0;
	if (len >= 2 * WIDE_BYTES && __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx2")) {
		wide = len - len % WIDE_BYTES;
		*crc = crc_by_wide_multiplication(*crc, bytes, wide);
	}
	if (len > wide)
		*crc = crc_by_multiplication(*crc, (const uint8_t *)bytes + wide, len - wide);
	return len;
}
