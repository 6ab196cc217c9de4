/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "broker/borrow.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cpu/cpu.h"

#define OPTIONS PTRACE_O_TRACESYSGOOD

/*
 * The calling thread waits for all that it traces, which is this thread alone, and not for a number: if another thread of the
 * client executes a program while its first thread is borrowed, the program takes that thread's number over. The kernel then
 * wakes only those that wait for any number, and the wait fails with ECHILD. __WNOTHREAD: the program may be the child of
 * another thread of ours. Without __WALL, as children without an exit signal are way.c's.
 */
enum { BORROW_WAIT = __WNOTHREAD };

/*
 * Waits until the thread stops. *stop: the signal, and above bit 7 the ptrace event. Returns false if the thread is
 * dead or dying. This function does not reap it, uvd_borrow_release() does: its parent learns of the death only then,
 * and the caller can free what it has of the client before.
 */
static bool wait_stop(pid_t tid, int *stop)
{
	siginfo_t info = { 0 };
	int err;

	do {
		err = waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOWAIT | BORROW_WAIT);
	} while (err && errno == EINTR);
	if (err || (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED))
		return false;
	info.si_pid = 0; /* stays 0 if the thread was killed meanwhile */
	*stop = info.si_status;
	return !waitid(P_PID, tid, &info, WSTOPPED | WNOHANG | BORROW_WAIT) && info.si_pid;
}

static void borrow_reap(pid_t tid)
{
	int status;
	pid_t r;

	do {
		r = waitpid(-1, &status, BORROW_WAIT);
	} while ((r < 0 && errno == EINTR) || (r == tid && WIFSTOPPED(status)));
}

/* Runs the thread to its next entry to or exit from a system call. Returns false if it is dead. */
static bool to_syscall_stop(pid_t tid)
{
	int stop, sig = 0;

	for (;;) {
		if (ptrace(PTRACE_SYSCALL, tid, 0, sig) || !wait_stop(tid, &stop))
			return false;
		if (stop == (SIGTRAP | 0x80))
			return true;
		/*
		 * All signals that can be blocked are, so this one is SIGSTOP: pass it on. Then the group stop is
		 * reported as an event. It must not delay this thread, which joins the group stop after the release.
		 */
		sig = stop >> 8 ? 0 : stop;
	}
}

/* Returns a number from /proc/TID/status, or `otherwise` if it cannot be read. name: with the colon. */
static unsigned long long borrow_status_number(pid_t tid, const char *name, int base, unsigned long long otherwise)
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
	enum { BASE = 36, DEAD = 33 /* X */, ZOMBIE = 35 /* Z */ }; /* the state is a letter */
	unsigned long long state;

	if (borrow_status_number(tid, "SigPnd:", 16, 0) >> (SIGKILL - 1) & 1)
		return true;
	/* It has taken the signal. */
	state = borrow_status_number(tid, "State:", BASE, 0);
	return state == ZOMBIE || state == DEAD;
}

unsigned int uvd_borrow_num_filters(pid_t tid)
{
	return borrow_status_number(tid, "Seccomp_filters:", 10, 0);
}

bool uvd_borrow_is_filtered(const struct uvd_borrow *b)
{
	return borrow_status_number(b->tid, "Seccomp:", 10, 1) &&
	       (!b->filters || uvd_borrow_num_filters(b->tid) != b->filters);
}

int uvd_borrow_seize(struct uvd_borrow *b, pid_t tid)
{
	*b = (struct uvd_borrow){ .tid = tid, .tracer = gettid(), .pidfd = -1, .memfd = -1, .mapsfd = -1 };
	if (tid <= 0 || !uvd_cpu_thread || ptrace(PTRACE_SEIZE, tid, 0, OPTIONS))
		return -EPERM;
	/* While we trace the thread, neither its number nor its process's can be reused. */
	b->pidfd = syscall(SYS_pidfd_open, (pid_t)borrow_status_number(tid, "Tgid:", 10, 0), 0);
	if (b->pidfd < 0)
		return errno == EMFILE || errno == ENFILE ? -EMFILE : -EPERM;
	/*
	 * This only marks the thread: it goes on waiting for our answer, and stops on its way back to user space,
	 * before any signal handler. PTRACE_INTERRUPT fails for a thread that is being killed: uvd_borrow_stop()
	 * notices that.
	 */
	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	return 0;
}

void uvd_borrow_kill(const struct uvd_borrow *b)
{
	/* If we no longer trace the thread, the process may have executed another program, which must not be killed. */
	if (b->pidfd >= 0 && (pid_t)borrow_status_number(b->tid, "TracerPid:", 10, 0) == b->tracer)
		syscall(SYS_pidfd_send_signal, b->pidfd, SIGKILL, NULL, 0);
}

static int open_proc(pid_t tid, const char *name, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", tid, name);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

bool uvd_borrow_holds(const struct uvd_borrow *b)
{
	struct user_regs_struct regs;

	return !uvd_cpu_thread->get(b->tid, &regs);
}

static int open_memory(struct uvd_borrow *b)
{
	b->memfd = open_proc(b->tid, "mem", O_RDWR);
	if (b->memfd < 0)
		return b->memfd;
	b->mapsfd = open_proc(b->tid, "maps", O_RDONLY);
	if (b->mapsfd < 0)
		return b->mapsfd;
	return uvd_borrow_holds(b) ? 0 : -ESRCH;
}

/* Suspends the client's seccomp filter for the thread, or ends that. Sets PTRACE_O_EXITKILL in both cases. */
static int suspend_seccomp(const struct uvd_borrow *b, bool suspend)
{
	return ptrace(PTRACE_SETOPTIONS, b->tid, 0,
		      OPTIONS | PTRACE_O_EXITKILL | (suspend ? PTRACE_O_SUSPEND_SECCOMP : 0));
}

/*
 * Would a seccomp filter of the client check our calls, too? It may kill the client for a call that it does not
 * expect. To suspend it we need CAP_SYS_ADMIN, and must not have a filter ourselves.
 */
static bool filter_is_in_the_way(const struct uvd_borrow *b)
{
	if (!uvd_borrow_is_filtered(b))
		return false;
	return suspend_seccomp(b, true) || suspend_seccomp(b, false);
}

/*
 * Guesses by which instruction the thread has made its call. Returns 0 or -ENOSYS. The client can change the
 * instruction afterwards, so is_ordered() checks how the thread really enters the kernel.
 */
static int find_instruction(struct uvd_borrow *b)
{
	const size_t size = uvd_cpu_thread->insn_size;
	unsigned char insn[UVD_CPU_INSN];

	if (pread(b->memfd, insn, size, (off_t)uvd_cpu_thread->insn(&b->regs)) != (ssize_t)size)
		return -ENOSYS;
	return uvd_cpu_thread->find(&b->regs, insn, &b->compat);
}

int uvd_borrow_stop(struct uvd_borrow *b)
{
	uint64_t all = ~0ull;
	int stop, err;

	if (!wait_stop(b->tid, &stop)) {
		b->dead = true;
		return -ESRCH;
	}
	/*
	 * From here to the release the thread must not run on without us: with our registers it could do anything. So
	 * PTRACE_O_EXITKILL kills it if we are killed. Before this point it may go on unharmed.
	 */
	if (suspend_seccomp(b, false) || uvd_cpu_thread->get(b->tid, &b->regs) ||
	    ptrace(PTRACE_GETSIGMASK, b->tid, sizeof(b->mask), &b->mask))
		return -ESRCH;
	err = open_memory(b);
	if (err == -ESRCH || err == -ENOENT)
		return -ESRCH;
	if (err)
		return err == -ENFILE ? -EMFILE : err;
	b->holding = true;
	if (ptrace(PTRACE_SETSIGMASK, b->tid, sizeof(all), &all))
		return -ESRCH;
	return filter_is_in_the_way(b) ? -EPERM : find_instruction(b);
}

uint64_t uvd_borrow_scratch(const struct uvd_borrow *b)
{
	uint64_t at = (uvd_cpu_thread->stack(&b->regs) - UVD_BORROW_SCRATCH) & ~15ull;

	/* 64-bit code may use int 0x80, whose pointers have 32 bits. */
	return b->compat && at >> 32 ? 0 : at;
}

bool uvd_borrow_read(const struct uvd_borrow *b, uint64_t at, void *buf, size_t len)
{
	return pread(b->memfd, buf, len, (off_t)at) == (ssize_t)len;
}

bool uvd_borrow_write(const struct uvd_borrow *b, uint64_t at, const void *buf, size_t len)
{
	return pwrite(b->memfd, buf, len, (off_t)at) == (ssize_t)len;
}

/*
 * The thread is at the entry of a system call: is that exactly the call that was ordered? The registers alone do not
 * tell: `int 0x80` with the registers of an x86-64 call is the i386 call of that number.
 */
static bool is_ordered(const struct uvd_borrow *b, const struct user_regs_struct *r)
{
	const struct uvd_cpu_order order = uvd_cpu_thread->ordered(r, b->compat);
	struct __ptrace_syscall_info info = {};

	if (ptrace(PTRACE_GET_SYSCALL_INFO, b->tid, sizeof(info), &info) <= 0 || info.op != PTRACE_SYSCALL_INFO_ENTRY ||
	    info.arch != order.arch || info.entry.nr != order.nr || info.instruction_pointer != order.pc)
		return false;
	for (int i = 0; i < 6; i++)
		if ((info.entry.args[i] & order.mask) != (order.args[i] & order.mask))
			return false;
	return true;
}

/* Cancels the system call at whose entry the thread is, and runs the thread to that call's exit. */
static bool borrow_cancel_call(struct uvd_borrow *b)
{
	return !uvd_cpu_thread->cancel(b->tid) && to_syscall_stop(b->tid);
}

long uvd_borrow_call(struct uvd_borrow *b, enum uvd_syscall call, const long args[3])
{
	const struct uvd_syscall_numbers *nr = uvd_syscall_numbers(call);
	struct user_regs_struct r = b->regs;

	if (b->dead || b->disobeyed)
		return b->dead ? -ESRCH : -EPERM;
	uvd_cpu_thread->order(&r, b->compat, b->compat ? nr->i386 : nr->x86_64, args);
	if (uvd_cpu_thread->set(b->tid, &r) || !to_syscall_stop(b->tid))
		goto dead;
	if (!is_ordered(b, &r)) {
		b->disobeyed = true;
		if (!borrow_cancel_call(b))
			goto dead;
		return -EPERM;
	}
	(void)suspend_seccomp(b, true); /* not earlier: its filter must check a call that was not ordered */
	if (!to_syscall_stop(b->tid) || uvd_cpu_thread->get(b->tid, &r))
		goto dead;
	(void)suspend_seccomp(b, false);
	return uvd_cpu_thread->result(&r, b->compat);
dead:
	b->dead = true;
	return -ESRCH;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void uvd_borrow_close(struct uvd_borrow *b)
{
	close_fd(&b->memfd);
	close_fd(&b->mapsfd);
	close_fd(&b->pidfd);
}

int uvd_borrow_release(struct uvd_borrow *b, const long *result)
{
	if (b->holding && !b->dead) {
		/* All registers are restored, so that the thread leaves its own call as if there had been no other. */
		if (result)
			uvd_cpu_thread->set_result(&b->regs, *result);
		if (uvd_cpu_thread->set(b->tid, &b->regs) ||
		    ptrace(PTRACE_SETSIGMASK, b->tid, sizeof(b->mask), &b->mask))
			b->dead = true;
	}
	if (ptrace(PTRACE_DETACH, b->tid, 0, 0)) {
		b->dead = true;
		/* The thread was killed meanwhile. Until its tracer has reaped it, its parent cannot. */
		if (!b->may_be_parent)
			borrow_reap(b->tid);
	}
	return b->dead ? -ESRCH : 0;
}
