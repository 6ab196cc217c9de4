/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What depends on the CPU. A further architecture gives one file like x86_64.c, an enumerator below, its column in
 * parts.c, and its case in each inline function below:
 *
 *   what                    declared below          who needs it
 *   ----------------------  ----------------------  ------------------------------------------------------
 *   registers of a thread   struct uvd_cpu_thread   broker/borrow.c: a client's thread makes calls of ours
 *   entry stops             struct uvd_cpu_thread   broker/borrow.c: is it the call that was ordered?
 *   audit architectures     struct uvd_cpu_thread   broker/borrow.c; for filters libseccomp has the build's
 *   system call numbers     uvd_cpu_call_of()       broker/{waiting,questions}.c, cuse/split_write.c
 *   calls it does not have  uvd_cpu_call_instead()  broker/sandbox.c: its C library makes other calls
 *   32-bit callers          UVD_CPU_COMPAT          cuse_dev.c, broker/waiting.c; broker/borrow.c (compat)
 *   system calls of ours    uvd_cpu_syscall(),      broker/sender.c: a process that shares our memory
 *                           uvd_cpu_spawn()
 *   registers of a signal   uvd_cpu_signal_arg()    broker/loader.c: a call that a filter traps;
 *                           and its neighbours      util/crash.c: where was the crash?
 *   numbers of registers    UVD_CPU_DWARF_SP        report/unwind.c: in unwind tables
 *   page size               uvd_cpu_page_size()     what is mapped, and what the kernel rounds to pages
 *                           UVD_CPU_PAGE_MIN        reads that must not cross the end of a page
 *   huge pages              uvd_cpu_huge_page()     pin/umem.c: IBV_ACCESS_HUGETLB
 *   most processors         UVD_CPU_MAX_CPUS        client/caller.c: a mask with room for all of a kernel
 *   waiting for a CPU       uvd_cpu_relax()         backends/soft/schedule/stream.c
 *   memory order            uvd_cpu_read_barrier()  doorbell/log.c: records at odd places. Elsewhere nothing:
 *                                                   persona/rxe_queue.c loads the indexes of mapped queues
 *                                                   with acquire and stores them with release
 *   checksums               uvd_cpu_crc32()         wire/icrc.c: elsewhere the ICRC is by tables in C
 *
 * All of them are little endian with 64-bit pointers, as the structs of the ABI are read in place.
 */
#ifndef UVD_CPU_H
#define UVD_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>
#include <ucontext.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && sizeof(void *) == 8,
	       "not ported to such a CPU: see the table above");

/* ---- what is written --------------------------------------------------------------------------------------------- */

enum uvd_cpu { UVD_CPU_X86_64, UVD_CPU_AARCH64, UVD_CPUS };

/* Parts that an architecture may lack. docs/cpu.md says what does not work without them. */
enum uvd_cpu_part {
	UVD_CPU_LOANS, /* uvd_cpu_thread */
	UVD_CPU_SENDERS, /* uvd_cpu_spawn() */
	UVD_CPU_COMPAT, /* 32-bit programs as clients of a daemon */
	UVD_CPU_PARTS
};

extern const enum uvd_cpu uvd_cpu; /* of this build */

/* Returns the name, as `uname -m` has it. */
const char *uvd_cpu_name(enum uvd_cpu cpu);
/*
 * Returns a sentence that names the part and what is missing, for a message at the start; NULL: the part is written.
 * Whoever needs a part asks at the start, and neither tries nor assumes it without.
 */
const char *uvd_cpu_lacks(enum uvd_cpu cpu, enum uvd_cpu_part part);

/* ---- system calls ------------------------------------------------------------------------------------------------ */

/* The calls in which a client's thread can wait for a device. */
enum uvd_cpu_call {
	UVD_CPU_CALL_OTHER,
	UVD_CPU_CALL_WRITE,
	UVD_CPU_CALL_PWRITE,
	UVD_CPU_CALL_WRITEV,
	UVD_CPU_CALL_IOCTL,
	UVD_CPU_CALL_OPEN,
	UVD_CPU_CALL_OPENAT, /* openat2() too */
};

/* Returns a number of /proc/TID/syscall without bits that stand for the caller's ABI. */
uint64_t uvd_cpu_call_number(uint64_t nr);
/*
 * Returns which call this number of /proc/TID/syscall is, in any ABI whose programs can be clients. The file does not
 * tell the ABI, so a number is listed for one only if it is no call in another that waits with a descriptor or a path
 * in the same arguments.
 */
enum uvd_cpu_call uvd_cpu_call_of(uint64_t nr);
/*
 * Returns the name of the call that programs of `cpu` make where others make `name`, which `cpu` does not have; NULL:
 * there is none that tables of calls do not have anyway. Its arguments can differ.
 */
const char *uvd_cpu_call_instead(enum uvd_cpu cpu, const char *name);

/*
 * Makes a system call. Returns what the kernel returns. It touches neither errno nor data of a sanitizer about the
 * thread.
 */
__attribute__((no_sanitize("address", "thread", "undefined"))) static inline long
uvd_cpu_syscall(long nr, long a, long b, long c, long d, long e)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return ret;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory", "cc");
	return x0;
#else
#error "system calls: see the table above"
#endif
}

/*
 * Starts a process that shares our memory and has a copy of our descriptor table: it executes run(arg) on the stack
 * that ends at `top`, a multiple of 16, and run() does not return. It replaces clone(): the sanitizers' clone() has a
 * child that still needs the caller's stack. The process has no exit signal, because that would wake another thread
 * of ours. Returns its PID or a negative errno; -ENOSYS: UVD_CPU_SENDERS is lacking.
 */
long uvd_cpu_spawn(void (*run)(void *arg), void *arg, void *top);

/* ---- a thread that ptrace has stopped ---------------------------------------------------------------------------- */

enum { UVD_CPU_INSN = 4 }; /* bytes of the longest instruction that makes a system call */

/* A system call as its entry stop shows it (PTRACE_GET_SYSCALL_INFO). */
struct uvd_cpu_order {
	uint32_t arch; /* AUDIT_ARCH_* */
	uint64_t nr, args[6], pc;
	uint64_t mask; /* of the bits of each argument that count */
};

/* compat: the thread has made its call as a 32-bit program does. */
struct uvd_cpu_thread {
	/* As ptrace(): return 0, or -1 and set errno. */
	int (*get)(pid_t tid, struct user_regs_struct *regs);
	int (*set)(pid_t tid, const struct user_regs_struct *regs);
	/* Cancels the system call at whose entry the thread is. */
	int (*cancel)(pid_t tid);
	size_t insn_size; /* of the instruction that makes a call, at most UVD_CPU_INSN */
	/* The thread is on its way out of a call: returns the address of the instruction that has made it. */
	uint64_t (*insn)(const struct user_regs_struct *regs);
	/* Looks at that instruction's bytes. Returns 0, or -ENOSYS: it makes no call, or the thread is in none. */
	int (*find)(const struct user_regs_struct *regs, const unsigned char insn[UVD_CPU_INSN], bool *compat);
	/* Returns the address below which the thread does not use its stack. */
	uint64_t (*stack)(const struct user_regs_struct *regs);
	/* Changes the registers so that the thread executes that instruction again, and by it this call. */
	void (*order)(struct user_regs_struct *regs, bool compat, long nr, const long args[3]);
	/* Returns what the entry stop of a call shows that was ordered by these registers, changed by order(). */
	struct uvd_cpu_order (*ordered)(const struct user_regs_struct *regs, bool compat);
	long (*result)(const struct user_regs_struct *regs, bool compat);
	void (*set_result)(struct user_regs_struct *regs, long result);
};

extern const struct uvd_cpu_thread *const uvd_cpu_thread; /* NULL: UVD_CPU_LOANS is lacking */

/* ---- the registers that a signal handler gets -------------------------------------------------------------------- */

/* A system call that a seccomp filter has trapped: its argument n (0 or 1), and its result. */
uint64_t uvd_cpu_signal_arg(const ucontext_t *context, int n);
void uvd_cpu_signal_return(ucontext_t *context, long result);
/* Where the program was. */
uintptr_t uvd_cpu_signal_pc(const ucontext_t *context);
/* Where the function returns to whose first instruction is pc. Reads the stack if the CPU keeps that there. */
uintptr_t uvd_cpu_signal_caller(const ucontext_t *context);

/* The number of the stack pointer in DWARF. */
#if defined(__x86_64__)
enum { UVD_CPU_DWARF_SP = 7 };
#elif defined(__aarch64__)
enum { UVD_CPU_DWARF_SP = 31 };
#endif

/* ---- memory and processors --------------------------------------------------------------------------------------- */

enum {
	UVD_CPU_PAGE_MIN = 4096, /* bytes: the pages of every kernel are a multiple of this */
	UVD_CPU_MAX_CPUS = 8192, /* the most that NR_CPUS can be, of all architectures: x86-64's */
};

/* Returns the bytes of a page of this kernel. */
static inline uint64_t uvd_cpu_page_size(void)
{
	return sysconf(_SC_PAGESIZE);
}

/* Returns the bytes of the kernel's HPAGE_SIZE: what one table of the lowest level maps, whose entries have 8 bytes. */
static inline uint64_t uvd_cpu_huge_page(void)
{
	return uvd_cpu_page_size() / 8 * uvd_cpu_page_size();
}

/*
 * Adds bytes to a CRC-32 (Ethernet's; not inverted), if this CPU has instructions for it that are faster than tables. Returns
 * how many of the bytes, from the first on, it has added; 0: none.
 */
size_t uvd_cpu_crc32(uint32_t *crc, const void *bytes, size_t len);

/* Orders reads: no later read is carried out before an earlier one. (ThreadSanitizer cannot compile atomic_thread_fence().) */
static inline void uvd_cpu_read_barrier(void)
{
#if defined(__x86_64__)
	__asm__ volatile("" ::: "memory");
#elif defined(__aarch64__)
	__asm__ volatile("dmb ishld" ::: "memory");
#endif
}

/* Call it in a loop that waits for another CPU. */
static inline void uvd_cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

#endif
