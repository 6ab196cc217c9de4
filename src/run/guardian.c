/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The guardian holds a copy of the listener. Without a listener every trapped call of the process tree, such as any
 * open(), would fail with ENOSYS. When the engine dies the guardian answers instead: EIO for calls on the device; the
 * kernel carries out all others.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/broker.h"
#include "run/file.h"
#include "run/launch.h"
#include "util/util.h"

enum { END_MS = 20000 }; /* that the engine has to clean up after the process tree has ended */

struct guardian {
	struct uvd_run_launch *l;
	int listener, sigchld;
	int agent; /* to the engine, if Yama or a pid namespace keeps it from our tree; else -1 */
	bool foreign; /* our pid namespace is not the engine's, so numbers of processes mean something else there */
	bool receives; /* we receive the calls for the engine */
	pid_t engine, program; /* 0: none, or it has ended */
	bool started; /* PROGRAM has been told to go on */
	bool bye; /* the engine has sent UVD_RUN_BYE */
	bool stays; /* the engine goes on for other trees */
	int program_fd; /* a pidfd of PROGRAM, which is the engine's child; -1: none */
	bool program_ended; /* though the engine may not have waited for it */
	uint64_t late_at; /* when the engine will have had its time to end; CLOCK_MONOTONIC, ns; 0: it need not end */
};

/* ---- without an engine ------------------------------------------------------------------------------------------- */

/* If the caller was killed meanwhile, its number may be another's. Then a file of that is only looked at, and the answer reaches nobody. */
static bool is_cm_file(struct uvd_caller *c, int fd)
{
	int copy = uvd_run_get_fd(c->tid, uvd_caller_tgid(c), fd);
	bool is = copy >= 0 && uvd_run_cm_file_is_orphan(copy);

	if (copy >= 0)
		close(copy);
	return is;
}

static bool is_device(struct uvd_caller *c, int fd)
{
	static const char socket_name[] = "socket:";
	char path[64], target[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)c->tid, fd);
	if (uvd_run_file_is_linked(AT_FDCWD, path))
		return true;
	n = readlink(path, target, sizeof(target));
	return n > (ssize_t)strlen(socket_name) && !strncmp(target, socket_name, strlen(socket_name)) &&
	       is_cm_file(c, fd);
}

static long guardian_answer(const struct seccomp_notif *n)
{
	struct uvd_caller c = { .mem = &uvd_mem_process, .proc = &uvd_proc_local, .tid = n->pid, .memfd = -1 };
	struct uvd_run_target target;
	struct uvd_run_args args;
	unsigned int number;

	uvd_run_decode(&n->data, &args);
	if (args.op == UVD_RUN_NETLINK)
		return -EPROTONOSUPPORT;
	if (args.op >= UVD_RUN_LIMIT)
		return UVD_RUN_CONTINUE;
	if (args.op == UVD_RUN_OPEN) {
		uvd_run_resolve(&c, "", &args, &target);
		if (target.place == UVD_RUN_NODE &&
		    (uvd_run_device_name(target.path, &number) || !strcmp(target.path, UVD_CM_NODE)))
			return -EIO;
		return UVD_RUN_CONTINUE;
	}
	if (args.path && !uvd_run_is_fstat(&c, &args))
		return UVD_RUN_CONTINUE;
	return is_device(&c, args.fd) ? -EIO : UVD_RUN_CONTINUE;
}

static void answer_one(struct guardian *g)
{
	struct uvd_run_notif n;

	if (!uvd_run_recv(g->listener, &n))
		uvd_run_reply(g->listener, n.n.id, guardian_answer(&n.n));
}

/* Does the thread wait in this system call? */
static bool guardian_is_caller(pid_t tid, const struct seccomp_data *data)
{
	const __u64 *a = data->args;
	char call[256], text[256];
	ssize_t n;
	int fd;

	snprintf(text, sizeof(text), "/proc/%d/syscall", (int)tid);
	fd = open(text, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n < 0 ? 0 : n] = 0;
	n = snprintf(call, sizeof(call), "%d 0x%llx 0x%llx 0x%llx 0x%llx 0x%llx 0x%llx ", data->nr, a[0], a[1], a[2],
		     a[3], a[4], a[5]);
	return !strncmp(text, call, n) && strtoull(strrchr(text, ' '), NULL, 16) == data->instruction_pointer;
}

/*
 * Returns the number that the caller has in our pid namespace, or 0. The kernel has told the engine the one that it has there, and
 * tells nothing again.
 */
static pid_t guardian_find_caller(const struct seccomp_data *data)
{
	glob_t threads;
	pid_t tid = 0;

	if (glob("/proc/[0-9]*/task/[0-9]*", GLOB_NOSORT, NULL, &threads))
		return 0;
	for (size_t i = 0; i < threads.gl_pathc && !tid; i++) {
		const pid_t this = atoi(strrchr(threads.gl_pathv[i], '/') + 1);

		if (guardian_is_caller(this, data))
			tid = this;
	}
	globfree(&threads);
	return tid;
}

/* Answers the current call. If the engine had answered it our reply fails, which does no harm. */
static void guardian_answer_current(struct guardian *g)
{
	struct seccomp_notif n = g->l->notif->n;

	if (g->listener < 0 || !n.pid || !uvd_run_valid(g->listener, n.id))
		return;
	if (g->foreign && !g->receives)
		n.pid = guardian_find_caller(&n.data);
	uvd_run_reply(g->listener, n.id, guardian_answer(&n));
}

/* The engine asks no more. If it died, or gave up, after its last question, nobody else answers the call that we have received. */
static void guardian_drop_agent(struct guardian *g)
{
	if (g->agent < 0)
		return;
	close(g->agent);
	g->agent = -1;
	if (g->receives)
		guardian_answer_current(g);
}

/* The engine may have died before it answered some calls, whose callers would wait forever: answer them. */
static void guardian_take_over(struct guardian *g)
{
	if (g->started)
		fprintf(stderr, "uverbsctl run: the engine has died: calls on the device fail with EIO from now on\n");
	uvd_dir_remove(AT_FDCWD, g->l->root);
	if (g->listener < 0)
		return;
	uvd_run_brake();
	guardian_drop_agent(g); /* it may have asked for a call that we must not receive for it any more */
	guardian_answer_current(g);
	for (unsigned int i = 0; i < UVD_RUN_MAX_LENT; i++)
		if (g->l->notif->lent[i])
			uvd_run_reply(g->listener, g->l->notif->lent[i], -EIO);
}

/* ---- children ---------------------------------------------------------------------------------------------------- */

static void program_ended(struct guardian *g, int status)
{
	g->program = 0;
	/* The engine has died with its report. */
	if (!status && g->l->options->report_fails)
		status = UVD_RUN_FAILED;
	uvd_run_report(g->l->up, status, g->listener >= 0 && !uvd_run_hung_up(g->listener));
}

static void guardian_reap(struct guardian *g)
{
	struct signalfd_siginfo info;
	pid_t pid;
	int status;

	if (read(g->sigchld, &info, sizeof(info)) < 0)
		return;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == g->engine)
			g->engine = 0;
		else if (pid == g->program)
			program_ended(g, uvd_run_exit_status(status));
	}
	/*
	 * We adopt a dead engine's children. If PROGRAM is not our child then, the engine has reaped it and reported
	 * its status. PROGRAM may also have ended since the loop.
	 */
	if (g->engine || g->l->joined || !g->program)
		return;
	pid = waitpid(g->program, &status, WNOHANG);
	if (pid > 0)
		program_ended(g, uvd_run_exit_status(status));
	else if (pid < 0)
		g->program = 0;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* Leaves the engine. The process that would become PROGRAM exits, and its status is the run's. */
static void guardian_stay_out(struct guardian *g)
{
	close(g->l->link);
	close(g->l->program);
	g->l->link = g->l->program = -1;
}

static void from_engine(struct guardian *g)
{
	struct uvd_run_msg msg;
	int fds[UVD_RUN_LINK_FDS];

	if (uvd_run_receive(g->l->link, &msg, fds)) {
		close(g->l->link);
		g->l->link = -1;
		if (!g->bye)
			guardian_take_over(g);
		if (!g->started) {
			close(g->l->program); /* the process that would become PROGRAM exits */
			g->l->program = -1;
		}
	} else if (msg.kind == UVD_RUN_READY && g->l->joined && !uvd_run_may_join(g->l->options, &msg)) {
		guardian_stay_out(g);
	} else if (msg.kind == UVD_RUN_READY) {
		strcpy(g->l->root, msg.root);
		g->foreign = msg.pid_ns != uvd_run_pid_ns();
		g->receives = g->foreign && (msg.outside || uvd_run_needs_agent());
		g->started = true;
		uvd_run_send(g->l->program, &msg, NULL, 0);
	} else if (msg.kind == UVD_RUN_BYE) {
		g->bye = true;
		g->stays = msg.stays;
	}
}

/* Makes the agent's socket pair if the engine cannot reach this tree. Returns the engine's end, or -1. */
static int make_agent(struct guardian *g)
{
	int pair[2];

	if (!g->l->joined || !(g->receives || uvd_run_needs_agent()) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -1;
	g->agent = pair[0];
	return pair[1];
}

static void from_program(struct guardian *g)
{
	struct uvd_run_msg msg;
	int fds[UVD_RUN_LINK_FDS];

	if (!uvd_run_receive(g->l->program, &msg, fds)) {
		g->listener = fds[0];
		if (!g->program) {
			g->program = msg.status; /* a child of the engine, and ours if the engine dies */
			g->program_fd = syscall(SYS_pidfd_open, g->program, 0);
		}
		memcpy(msg.windows, g->l->windows, sizeof(msg.windows));
		msg.receives = g->receives;
		uvd_run_slash(msg.status, &msg.slash);
		/* PROGRAM waits in its exec until the listener is served, so it has set no filter of its own yet. */
		msg.filters = uvd_borrow_num_filters(msg.status);
		msg.granted = g->l->options->granted;
		msg.busy_poll = g->l->options->busy_poll;
		fds[1] = g->l->notif_fd;
		fds[2] = make_agent(g);
		if (g->l->link >= 0)
			uvd_run_send(g->l->link, &msg, fds, fds[2] >= 0 ? 3 : 2);
		if (fds[2] >= 0)
			close(fds[2]);
	} else if (g->l->link >= 0) {
		close(g->l->link); /* PROGRAM ended before it installed the filter: nothing to serve */
		g->l->link = -1;
	}
	close(g->l->program);
	g->l->program = -1;
}

/* ---- an engine that hangs ---------------------------------------------------------------------------------------- */

/*
 * Has the process tree ended? Before Linux 6.11 the listener does not hang up as long as the engine, PROGRAM's parent, has not
 * waited for it.
 */
static bool guardian_tree_ended(const struct guardian *g)
{
	if (g->listener < 0)
		return false;
	return uvd_run_hung_up(g->listener) ||
	       (g->program_ended && !syscall(SYS_pidfd_send_signal, g->program_fd, 0, NULL, 0));
}

static unsigned int guardian_end_ms(void)
{
	const char *text = getenv("UVERBSD_RUN_END_MS"); /* for tests */

	return text ? strtoul(text, NULL, 10) : END_MS;
}

/* An engine of ours is killed, and guardian_take_over() cleans up. What belongs to another run is left to that run. */
static void guardian_end_engine(struct guardian *g)
{
	fprintf(stderr, "uverbsctl run: the engine hangs: it did not end within %u ms after the last process%s\n",
		guardian_end_ms(), g->engine ? "; it is killed" : "");
	if (g->engine) {
		kill(g->engine, SIGKILL);
	} else {
		close(g->l->link);
		g->l->link = -1;
	}
	g->bye = !g->engine;
	g->late_at = UINT64_MAX;
}

/* Ends an engine that is late. Returns how long poll() may wait until it would be, or -1. */
static int guardian_watch_engine(struct guardian *g)
{
	const uint64_t now = uvd_now_ns();

	if (g->l->link < 0 || g->bye || !guardian_tree_ended(g))
		g->late_at = 0;
	else if (!g->late_at)
		g->late_at = now + guardian_end_ms() * 1000000ull;
	else if (now >= g->late_at)
		guardian_end_engine(g);
	if (g->l->link < 0 && g->late_at)
		return 0;
	return g->late_at && g->late_at != UINT64_MAX ? (int)((g->late_at - now) / 1000000) + 1 : -1;
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

/*
 * Has the whole process tree ended, and was PROGRAM's status reported? The launcher waits for us, unless processes of
 * the tree outlive PROGRAM.
 */
static bool guardian_done(struct guardian *g)
{
	bool alone = g->listener < 0 ? g->l->program < 0 : uvd_run_hung_up(g->listener);
	bool reported = (g->bye && !g->l->joined) || (!g->program && !g->engine);

	return alone && g->l->link < 0 && reported;
}

static void guardian_loop(struct guardian *g)
{
	while (!guardian_done(g)) {
		/* While the engine lives its thread receives the calls, or asks for one, and we wait for POLLHUP only. */
		const int patience = guardian_watch_engine(g);
		short calls = g->l->link < 0 ? POLLIN : 0;
		struct pollfd p[] = {
			{ .fd = g->sigchld, .events = POLLIN },
			{ .fd = g->l->link, .events = POLLIN },
			{ .fd = g->l->program, .events = POLLIN },
			{ .fd = g->agent, .events = POLLIN },
			{ .fd = g->l->up },
			{ .fd = g->listener, .events = calls },
			{ .fd = g->program_ended ? -1 : g->program_fd, .events = POLLIN },
		};

		/* Do not poll a listener that has hung up: poll() would never sleep. */
		if (g->listener >= 0 && uvd_run_hung_up(g->listener))
			p[5].fd = -1;
		if (poll(p, UVD_COUNT(p), patience) < 0)
			continue;
		if (p[6].revents)
			g->program_ended = true;
		if (p[0].revents)
			guardian_reap(g);
		if (p[1].revents)
			from_engine(g);
		if (p[2].revents && g->l->program >= 0)
			from_program(g);
		if (p[3].revents && g->agent >= 0 && !uvd_run_agent_answer(g->agent, g->listener, g->l->notif))
			guardian_drop_agent(g);
		if (p[4].revents) {
			close(g->l->up);
			g->l->up = -1;
			uvd_run_drop_stderr();
		}
		if (p[5].revents & POLLIN)
			answer_one(g);
	}
}

static int fork_engine(struct guardian *g)
{
	int pair[2];

	if (chmod(g->l->root, 0755) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	g->engine = fork();
	if (!g->engine) {
		close(pair[0]);
		close(g->l->program);
		g->l->link = pair[1];
		uvd_run_engine_main(g->l);
	}
	close(pair[1]);
	g->l->link = pair[0];
	return g->engine < 0 ? -errno : 0;
}

static int guardian_start_engine(struct guardian *g)
{
	const char *tmp = getenv("TMPDIR");
	int err;

	if (!tmp || *tmp != '/')
		tmp = "/tmp";
	snprintf(g->l->root, sizeof(g->l->root), "%.3900s/uverbsd-run-XXXXXX", tmp);
	if (!mkdtemp(g->l->root)) {
		fprintf(stderr,
			"uverbsctl run: cannot make a folder in %s: %s: set TMPDIR to a folder that can be written\n",
			tmp, uvd_errno_name(errno));
		_exit(UVD_RUN_FAILED);
	}
	err = fork_engine(g);
	if (err)
		rmdir(g->l->root);
	return err;
}

static int start_program(struct guardian *g)
{
	g->program = fork();
	if (!g->program) {
		close(g->l->link);
		close(g->l->program);
		uvd_run_program_main(g->l);
	}
	return g->program < 0 ? -errno : 0;
}

/* The engine is about to exit, unless another run needs it. All our other children have already exited. */
static void wait_for_engine(struct guardian *g)
{
	if (g->l->is_init)
		while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
			;
	for (int i = 0; i < 100 && !g->stays; i++) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (waitpid(-1, NULL, WNOHANG) < 0)
			return;
		usleep(i < 50 ? 200 : 10000);
	}
}

void uvd_run_guardian_main(struct uvd_run_launch *l)
{
	struct guardian g = { .l = l, .listener = -1, .agent = -1, .program_fd = -1 };
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		_exit(UVD_RUN_FAILED);
	l->program = pair[0];
	l->program_end = pair[1];
	err = l->joined ? start_program(&g) : guardian_start_engine(&g);
	close(pair[1]);
	if (l->join_sock >= 0)
		close(l->join_sock);
	g.sigchld = uvd_run_background((int[]){ l->link, l->up, l->program, l->notif_fd }, 4);
	if (err || g.sigchld < 0) {
		fprintf(stderr, "uverbsctl run: cannot start: %s\n", uvd_errno_name(err ? -err : -g.sigchld));
		_exit(UVD_RUN_FAILED);
	}
	guardian_loop(&g);
	wait_for_engine(&g);
	exit(0);
}
