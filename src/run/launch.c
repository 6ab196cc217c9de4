/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The launcher: the process that the user started, and that the shell waits for. */
#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/launch.h"
#include "util/util.h"

/* ---- what the processes share ------------------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Closes all other fds from 3 on. Inherited files are PROGRAM's: a pipe that we kept open would never end. */
static void close_others(const int *keep, unsigned int num)
{
	int fds[16];
	unsigned int from = STDERR_FILENO + 1;

	memcpy(fds, keep, num * sizeof(*keep));
	qsort(fds, num, sizeof(*fds), by_value);
	for (unsigned int i = 0; i < num; i++) {
		if (fds[i] < (int)from)
			continue;
		if (fds[i] > (int)from)
			close_range(from, fds[i] - 1, 0);
		from = fds[i] + 1;
	}
	close_range(from, ~0U, 0);
}

/*
 * A background process that writes a log line may get SIGTTOU from its terminal, SIGPIPE if stderr is a closed pipe, or
 * SIGXFSZ if it is a file of PROGRAM's RLIMIT_FSIZE. If the terminal hangs up (SIGHUP), PROGRAM decides what happens.
 */
static bool signal_is_ignored(int sig)
{
	return sig == SIGPIPE || sig == SIGHUP || sig == SIGTTOU || sig == SIGXFSZ || sig == SIGXCPU;
}

/*
 * The soft limits are meant for PROGRAM. An engine needs several fds for each open of the device and one or two for each
 * client thread, and a file as large as all that clients may map.
 */
static void background_raise_limits(void)
{
	static const int limits[] = { RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_CPU };
	struct rlimit r;

	for (size_t i = 0; i < UVD_COUNT(limits); i++) {
		if (getrlimit(limits[i], &r))
			continue;
		r.rlim_cur = r.rlim_max;
		setrlimit(limits[i], &r);
	}
}

static sighandler_t signal_handler(int sig)
{
	struct sigaction sa;

	return sigaction(sig, NULL, &sa) ? SIG_ERR : sa.sa_handler;
}

int uvd_run_background(const int *keep, unsigned int num)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), fd;
	sigset_t chld;

	background_raise_limits();
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return -errno;
	close_others(keep, num);
	/* The terminal sends its signals to a process group, so a new group is enough: file.c says why it is no new session yet. */
	if (setpgid(0, 0) || prctl(PR_SET_CHILD_SUBREAPER, 1))
		return -errno;
	if (chdir("/"))
		return -errno;
	/* The launcher has blocked SIGCHLD and the signals that it forwards before it forked us. */
	for (int sig = 1; sig < NSIG; sig++)
		if (sig != SIGCHLD)
			signal(sig, signal_is_ignored(sig) ? SIG_IGN : SIG_DFL);
	/* Do not set the default again: that discards the SIGCHLD of a child that has ended already. */
	if (signal_handler(SIGCHLD) != SIG_DFL)
		signal(SIGCHLD, SIG_DFL);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	fd = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

void uvd_run_drop_stderr(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null >= 0) {
		dup2(null, STDERR_FILENO);
		close(null);
	}
}

int uvd_run_exit_status(int wait_status)
{
	return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

void uvd_run_report(int up, int status, bool stays)
{
	struct uvd_run_msg msg = { .kind = UVD_RUN_ENDED, .status = status, .stays = stays };

	if (up >= 0)
		uvd_run_send(up, &msg, NULL, 0);
}

/* ---- may we? ----------------------------------------------------------------------------------------------------- */

const char *uvd_run_yama_refusal(const char *path, bool privileged)
{
	FILE *f = fopen(path, "re");
	int scope = 0;

	if (!f)
		return NULL; /* no Yama */
	if (fscanf(f, "%d", &scope) != 1)
		scope = 0;
	fclose(f);
	if (scope >= 3)
		return "kernel.yama.ptrace_scope is 3: no process may look into another, not even its parent";
	if (scope == 2 && !privileged)
		return "kernel.yama.ptrace_scope is 2: only a process with CAP_SYS_PTRACE may look into another";
	return NULL;
}

static bool launch_is_privileged(void)
{
	capng_get_caps_process();
	return capng_have_capability(CAPNG_EFFECTIVE, CAP_SYS_PTRACE);
}

bool uvd_run_needs_agent(void)
{
	FILE *f = getenv("UVERBSD_RUN_AGENT") ? NULL : fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = 0;

	if (!f)
		return getenv("UVERBSD_RUN_AGENT"); /* for tests on kernels without Yama */
	if (fscanf(f, "%d", &scope) != 1)
		scope = 0;
	fclose(f);
	return scope >= 1 && !launch_is_privileged();
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

static const int forwarded[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH };

static void launch_block_signals(sigset_t *old)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < UVD_COUNT(forwarded); i++)
		sigaddset(&set, forwarded[i]);
	sigprocmask(SIG_BLOCK, &set, old);
}

/*
 * The terminal's signals (SI_KERNEL) go to the whole foreground group, PROGRAM included: do not send them twice. Returns true if
 * the signal asks PROGRAM to end.
 */
static bool launch_forward_signal(int signals, int program)
{
	struct signalfd_siginfo info;

	if (read(signals, &info, sizeof(info)) != sizeof(info))
		return false;
	if (info.ssi_code != SI_KERNEL && program >= 0)
		syscall(SYS_pidfd_send_signal, program, info.ssi_signo, NULL, 0);
	return info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT || info.ssi_signo == SIGQUIT;
}

/* ---- the launcher ------------------------------------------------------------------------------------------------ */

enum { STOPPED_MS = 2000 };

/*
 * Waits for the guardian, after PROGRAM has ended. As process 1 it waits as long as other runs need the engine, so a signal ends
 * the wait. stopped: there was one already, so it waits only for an engine that nobody needs.
 */
static void launch_wait_for_guardian(const struct uvd_run_launch *l, pid_t guardian, int signals, bool stopped)
{
	struct pollfd p[] = {
		{ .fd = syscall(SYS_pidfd_open, guardian, 0), .events = POLLIN },
		{ .fd = signals, .events = POLLIN },
	};
	struct signalfd_siginfo info;

	if (l->is_init && stopped && poll(p, 1, STOPPED_MS) <= 0)
		return;
	while (l->is_init && !p[0].revents) {
		if (poll(p, 2, -1) < 0 || !p[1].revents || read(signals, &info, sizeof(info)) != sizeof(info))
			continue;
		if (info.ssi_signo != SIGWINCH)
			return;
	}
	while (waitpid(guardian, NULL, 0) < 0 && errno == EINTR)
		;
}

/* Forwards signals until PROGRAM has ended. Returns its exit status. */
static int wait_for_end(const struct uvd_run_launch *l, int up, pid_t guardian)
{
	struct uvd_run_msg msg;
	int fds[UVD_RUN_LINK_FDS], program = -1, signals;
	bool stopped = false;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < UVD_COUNT(forwarded); i++)
		sigaddset(&set, forwarded[i]);
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	for (;;) {
		struct pollfd p[] = {
			{ .fd = up, .events = POLLIN },
			/* A signal stays pending until PROGRAM has started. */
			{ .fd = program >= 0 ? signals : -1, .events = POLLIN },
		};

		if (poll(p, 2, -1) < 0)
			continue;
		if (p[1].revents)
			stopped |= launch_forward_signal(signals, program);
		if (!p[0].revents)
			continue;
		if (uvd_run_receive(up, &msg, fds))
			msg = (struct uvd_run_msg){ .kind = UVD_RUN_ENDED, .status = UVD_RUN_FAILED };
		if (msg.kind == UVD_RUN_STARTED)
			program = fds[0];
		if (msg.kind != UVD_RUN_ENDED)
			continue;
		if (!msg.stays)
			launch_wait_for_guardian(l, guardian, signals, stopped);
		return msg.status;
	}
}

/* Makes the memfd that guardian and engine share. Returns 0 or a negative errno. */
static int launch_share_notif(struct uvd_run_launch *l)
{
	void *notif;

	l->notif_fd = memfd_create(UVD_RUN_NOTIF_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (l->notif_fd < 0 || ftruncate(l->notif_fd, sizeof(*l->notif)) ||
	    fcntl(l->notif_fd, F_ADD_SEALS, UVD_RUN_NOTIF_SEALS))
		return -errno;
	notif = mmap(NULL, sizeof(*l->notif), PROT_READ | PROT_WRITE, MAP_SHARED, l->notif_fd, 0);
	if (notif == MAP_FAILED)
		return -errno;
	l->notif = notif;
	return 0;
}

static int launch_prepare(struct uvd_run_launch *l)
{
	struct rlimit nofile, fsize, raised;
	int err;

	getrlimit(RLIMIT_NOFILE, &nofile);
	uvd_run_windows(l->windows, &nofile, l->options->doorbells != UVD_DOORBELLS_CALLS);
	/* The soft limit is meant for PROGRAM's files. Beyond it SIGXFSZ would end this process. */
	getrlimit(RLIMIT_FSIZE, &fsize);
	raised = (struct rlimit){ fsize.rlim_max, fsize.rlim_max };
	setrlimit(RLIMIT_FSIZE, &raised);
	err = uvd_run_filter_make(l->windows, l->options->report, &l->filter) ?: launch_share_notif(l);
	setrlimit(RLIMIT_FSIZE, &fsize);
	return err;
}

static int launch_start(struct uvd_run_launch *l)
{
	pid_t guardian;
	int up[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, up)) {
		perror("uverbsctl run");
		return UVD_RUN_FAILED;
	}
	launch_block_signals(&l->mask);
	fflush(NULL);
	guardian = fork();
	err = errno;
	if (!guardian) {
		close(up[0]);
		l->up = up[1];
		uvd_run_guardian_main(l);
	}
	close(up[1]);
	if (l->link >= 0)
		close(l->link);
	if (l->join_sock >= 0)
		close(l->join_sock);
	if (l->join_lock >= 0)
		close(l->join_lock);
	if (guardian < 0) {
		fprintf(stderr, "uverbsctl run: cannot start: %s\n", uvd_errno_name(err));
		return UVD_RUN_FAILED;
	}
	return wait_for_end(l, up[0], guardian);
}

int uvd_run(const struct uvd_run_options *options, char **argv)
{
	struct uvd_run_launch l = {
		.options = options, .argv = argv, .is_init = getpid() == 1, .link = -1, .join_sock = -1, .join_lock = -1
	};
	const char *why = uvd_run_yama_refusal("/proc/sys/kernel/yama/ptrace_scope", launch_is_privileged());
	int err, status;

	if (!uvd_run_check_system())
		return UVD_RUN_FAILED;
	if (why) {
		fprintf(stderr, "uverbsctl run: %s\n", why);
		return UVD_RUN_FAILED;
	}
	err = launch_prepare(&l);
	if (err)
		fprintf(stderr, "uverbsctl run: cannot prepare the filter: %s\n", uvd_errno_name(err));
	status = err || (options->join && uvd_run_join(&l)) ? UVD_RUN_FAILED : launch_start(&l);
	free(l.filter.filter);
	return status;
}
