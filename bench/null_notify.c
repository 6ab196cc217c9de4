/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * null_notify: a seccomp supervisor answers a system call at once. This is the minimum cost of any device that is
 * served by user notification. The supervisor wakes the caller as `uverbsctl run` does
 * (SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP if the kernel has it). The other benchmarks add the minimum of a command's memory
 * accesses: "null_notify_read" reads 24 bytes of the caller's memory; "null_notify_write" also writes a response of 8
 * bytes; "null_notify_ioctl" reads the attributes and what they point to (512 bytes), and writes a response and, in
 * another page, an attribute's flags.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "clock.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV /* 5.19 */
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS /* 6.6 */
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP 1UL
#endif

enum { TRAPPED = SYS_getpgid, PAGE = 4096, PLAIN, READS, WRITES, IOCTL };

/* Installs a filter that notifies of TRAPPED, which nothing else in this program calls. Returns the listener, or -1. */
static int install_filter(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TRAPPED, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(f) / sizeof(f[0]), f };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		       SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &prog);
}

/* Accesses the caller's memory at `at` as a command of this kind would. */
static void command_copies(const struct seccomp_notif *q, char *at)
{
	char buf[512] = "";
	struct iovec in = { buf, q->data.args[0] == IOCTL ? 512 : 24 }, from = { at, in.iov_len };
	struct iovec out = { buf, 8 }, to = { at, 8 };
	struct iovec outs = { buf, 16 }, tos[] = { { at, 8 }, { at + PAGE, 8 } };

	if (q->data.args[0] == PLAIN)
		return;
	process_vm_readv(q->pid, &in, 1, &from, 1, 0);
	if (q->data.args[0] == WRITES)
		process_vm_writev(q->pid, &out, 1, &to, 1, 0);
	if (q->data.args[0] == IOCTL)
		process_vm_writev(q->pid, &outs, 1, tos, 2, 0);
}

static void supervise(int listener)
{
	struct seccomp_notif q;
	struct seccomp_notif_resp r;

	ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
	for (;;) {
		memset(&q, 0, sizeof(q));
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &q)) {
			if (errno == EINTR)
				continue;
			return;
		}
		command_copies(&q, (char *)q.data.args[1]);
		memset(&r, 0, sizeof(r));
		r.id = q.id;
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &r);
	}
}

static unsigned int trapped_calls(unsigned long count, int kind)
{
	char buf[2 * PAGE] __attribute__((aligned(PAGE))) = "";

	while (count--)
		if (syscall(TRAPPED, kind, buf))
			return 0;
	return 1;
}

static unsigned int null_notify(void *arg, unsigned long count)
{
	return trapped_calls(count, PLAIN);
}

static unsigned int null_notify_read(void *arg, unsigned long count)
{
	return trapped_calls(count, READS);
}

static unsigned int null_notify_write(void *arg, unsigned long count)
{
	return trapped_calls(count, WRITES);
}

static unsigned int null_notify_ioctl(void *arg, unsigned long count)
{
	return trapped_calls(count, IOCTL);
}

static const struct bench all[] = {
	{ "null_notify", null_notify },
	{ "null_notify_read", null_notify_read },
	{ "null_notify_write", null_notify_write },
	{ "null_notify_ioctl", null_notify_ioctl },
	{ NULL, NULL },
};

int main(void)
{
	pid_t client, supervisor = getpid();
	int pair[2], listener;

	/*
	 * The supervisor is the parent, as in `uverbsctl run`. The child sends the number of its listener, which the
	 * parent duplicates.
	 */
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return 1;
	client = fork();
	if (client < 0)
		return 1;
	if (!client) {
		char byte;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != supervisor)
			return 1;
		listener = install_filter();
		if (listener < 0 || write(pair[0], &listener, sizeof(listener)) != sizeof(listener) ||
		    read(pair[0], &byte, 1) != 1)
			return 1;
		close(listener);
		return bench_serve(all, NULL);
	}
	if (read(pair[1], &listener, sizeof(listener)) != sizeof(listener))
		return 1;
	listener = syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, client, 0), listener, 0);
	if (listener < 0 || write(pair[1], "", 1) != 1)
		return 1;
	close(STDIN_FILENO);
	supervise(listener);
	return 0;
}
