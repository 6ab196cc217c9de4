/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "broker/borrow.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define OPTIONS PTRACE_O_TRACESYSGOOD

/*
 * Waits until the thread stops. *stop: the signal, and above it the event. false: it is dead, or about to be. Its parent
 * hears of that when it has been reaped, which is for uvd_borrow_release(): what the caller has of it can be let go before.
 */
static bool wait_stop(pid_t tid, int *stop)
{
	siginfo_t info = { 0 };
	int err;

	do {
		err = waitid(P_PID, tid, &info, WEXITED | WSTOPPED | WNOWAIT | __WALL);
	} while (err && errno == EINTR);
	if (err || (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED))
		return false;
	info.si_pid = 0; /* stays so if it has been killed meanwhile */
	*stop = info.si_status;
	return !waitid(P_PID, tid, &info, WSTOPPED | WNOHANG | __WALL) && info.si_pid;
}

static void reap(pid_t tid)
{
	int status;
	pid_t r;

	do {
		r = waitpid(tid, &status, __WALL);
	} while ((r < 0 && errno == EINTR) || (r == tid && WIFSTOPPED(status)));
}

/* Runs the thread to its next entry to or exit from a system call. */
static bool to_syscall_stop(pid_t tid)
{
	int stop, sig = 0;

	for (;;) {
		if (ptrace(PTRACE_SYSCALL, tid, 0, sig) || !wait_stop(tid, &stop))
			return false;
		if (stop == (SIGTRAP | 0x80))
			return true;
		/*
		 * Every signal that can be is blocked, so this is SIGSTOP: pass it on. The stop of the whole process
		 * that follows is an event, must not hold this thread up, and is joined after the release.
		 */
		sig = stop >> 8 ? 0 : stop;
	}
}

/* A number of /proc/TID/status; `otherwise` where it does not say. name: with a colon. */
static unsigned long long status_number(pid_t tid, const char *name, int base, unsigned long long otherwise)
{
	char path[64], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name))) {
			otherwise = strtoull(line + strlen(name), NULL, base);
			break;
		}
	if (f)
		fclose(f);
	return otherwise;
}

bool uvd_borrow_dying(pid_t tid)
{
	return status_number(tid, "SigPnd:", 16, 0) >> (SIGKILL - 1) & 1;
}

int uvd_borrow_seize(struct uvd_borrow *b, pid_t tid)
{
	*b = (struct uvd_borrow){ .tid = tid };
	if (tid <= 0)
		return -EPERM;
	/*
	 * A seccomp filter of the client judges our calls like its own, and may kill for one it does not expect.
	 * SUSPEND_SECCOMP keeps it out of them, but needs CAP_SYS_ADMIN and that no filter is on ourselves.
	 */
	if (ptrace(PTRACE_SEIZE, tid, 0, OPTIONS | PTRACE_O_SUSPEND_SECCOMP) &&
	    (status_number(tid, "Seccomp:", 10, 1) || ptrace(PTRACE_SEIZE, tid, 0, OPTIONS)))
		return -EPERM;
	/*
	 * Only marks it. The wait for our answer takes no notice, the way back to user space does, before any signal
	 * handler. It fails for a thread that is being killed, which uvd_borrow_stop() will see.
	 */
	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	return 0;
}

/* Which kind of system call instruction is it behind? */
static int find_instruction(struct uvd_borrow *b)
{
	unsigned char insn[2];
	struct iovec to = { insn, sizeof(insn) }, from = { (void *)(b->regs.rip - 2), sizeof(insn) };

	if (process_vm_readv(b->tid, &to, 1, &from, 1, 0) != sizeof(insn))
		return -ENOSYS;
	b->compat = insn[0] == 0xcd && insn[1] == 0x80;
	if (!b->compat && (insn[0] != 0x0f || insn[1] != 0x05))
		return -ENOSYS;
	return (long)b->regs.orig_rax < 0 ? -ENOSYS : 0;
}

int uvd_borrow_stop(struct uvd_borrow *b)
{
	uint64_t all = ~0ull;
	int stop;

	if (!wait_stop(b->tid, &stop)) {
		b->dead = true;
		return -ESRCH;
	}
	/*
	 * From here to the release the thread must not run on without us: with our registers it would do anything. If we
	 * are killed it is killed too. (Not from the start: until now it could go on unharmed.)
	 */
	if (ptrace(PTRACE_SETOPTIONS, b->tid, 0, OPTIONS | PTRACE_O_SUSPEND_SECCOMP | PTRACE_O_EXITKILL))
		ptrace(PTRACE_SETOPTIONS, b->tid, 0, OPTIONS | PTRACE_O_EXITKILL);
	if (ptrace(PTRACE_GETREGS, b->tid, 0, &b->regs) ||
	    ptrace(PTRACE_GETSIGMASK, b->tid, sizeof(b->mask), &b->mask))
		return -ESRCH;
	b->holding = true;
	if (ptrace(PTRACE_SETSIGMASK, b->tid, sizeof(all), &all))
		return -ESRCH;
	return find_instruction(b);
}

uint64_t uvd_borrow_scratch(const struct uvd_borrow *b)
{
	uint64_t at = (b->regs.rsp - 128 - UVD_BORROW_SCRATCH) & ~15ull;

	/* 64-bit code may use int 0x80, whose pointers have 32 bits. */
	return b->compat && at >> 32 ? 0 : at;
}

long uvd_borrow_call(struct uvd_borrow *b, int nr, int nr_i386, const long args[4])
{
	struct user_regs_struct r = b->regs;

	r.rip -= 2; /* both instructions have 2 bytes */
	r.orig_rax = -1; /* it is in no system call: nothing on the way out may want to restart one */
	if (b->compat) {
		r.rax = nr_i386;
		r.rbx = args[0];
		r.rcx = args[1];
		r.rdx = args[2];
		r.rsi = args[3];
	} else {
		r.rax = nr;
		r.rdi = args[0];
		r.rsi = args[1];
		r.rdx = args[2];
		r.r10 = args[3];
	}
	if (b->dead)
		return -ESRCH;
	if (ptrace(PTRACE_SETREGS, b->tid, 0, &r) || !to_syscall_stop(b->tid) || !to_syscall_stop(b->tid) ||
	    ptrace(PTRACE_GETREGS, b->tid, 0, &r)) {
		b->dead = true;
		return -ESRCH;
	}
	return b->compat ? (int)r.rax : (long)r.rax;
}

int uvd_borrow_release(struct uvd_borrow *b, const long *result)
{
	if (b->holding) {
		/* orig_rax too: for the client nothing has happened since its own call. */
		if (result)
			b->regs.rax = *result;
		if (ptrace(PTRACE_SETREGS, b->tid, 0, &b->regs) ||
		    ptrace(PTRACE_SETSIGMASK, b->tid, sizeof(b->mask), &b->mask))
			b->dead = true;
	}
	if (ptrace(PTRACE_DETACH, b->tid, 0, 0)) {
		b->dead = true;
		/* Killed meanwhile. Its death is ours to take first, or its real parent never may. */
		reap(b->tid);
	}
	return b->dead ? -ESRCH : 0;
}
