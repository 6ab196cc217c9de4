/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A compromised engine process asks the broker's children about arbitrary threads. The node is a terminal whose output
 * is stopped: a thread that writes to it blocks, as a client blocks in a call until the engine answers.
 */
#ifndef TEST_BROKER_ENGINE_H
#define TEST_BROKER_ENGINE_H

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "broker/child.h"
#include "broker/waiting.h"
#include "broker/way.h"
#include "../suite.h"

enum { USER = 65534, GROUP = 65533 };

static int node = -1, other = -1; /* terminals */
static int questions; /* the engine's end */
static struct uvd_nodes nodes;
static _Atomic uint32_t registers;
static pid_t helper;
static volatile uint64_t secret = 1;

static inline int stopped_terminal(dev_t *rdev)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;
	struct stat st;

	ck_assert(master >= 0 && !grantpt(master) && !unlockpt(master));
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	ck_assert(slave >= 0 && !fstat(slave, &st) && !tcflow(slave, TCOOFF));
	if (rdev)
		*rdev = st.st_rdev;
	return slave;
}

static uid_t charged __attribute__((unused)); /* instead of the thread's user; 0: that user */

static inline pid_t serve_loan(pid_t tid, int *sock)
{
	struct uvd_borrower borrower = { .tid = tid };
	struct uvd_ways ways;
	int pair[2];
	pid_t pid;

	ck_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	(void)uvd_owners_of(tid, &borrower.owners);
	if (charged)
		borrower.owners.uid[0] = charged;
	pid = fork();
	if (!pid) {
		close(pair[0]);
		uvd_ways_init(&ways);
		if (ways.dir >= 0)
			fchmod(ways.dir, 01777);
		uvd_loan_serve(pair[1], &borrower,
			       &(struct uvd_child_files){ .nodes = &nodes, .ways = &ways, .queues = -1 }, &registers);
		_exit(0);
	}
	close(pair[1]);
	*sock = pair[0];
	return pid;
}

static inline void set_up(void)
{
	dev_t rdev, adapter;
	int pair[2];

	node = stopped_terminal(&rdev);
	other = stopped_terminal(&adapter);
	nodes.root_clients = UVD_ROOT_ALLOW;
	nodes.rdev[0] = rdev;
	nodes.adapters[2] = adapter;
	ck_assert(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	helper = fork();
	if (!helper) {
		close(pair[0]);
		if (!uvd_process_role_take(UVD_PROCESS_QUESTIONS))
			_exit(1);
		uvd_questions_serve(pair[1], &nodes);
		_exit(0);
	}
	close(pair[1]);
	questions = pair[0];
}

static struct uvd_wire_fds fds;
static int64_t values[2];

static inline int ask(int sock, struct uvd_wire_request r, int fd)
{
	struct uvd_wire_fds in = { { fd, -1, -1, -1 } };
	struct uvd_wire_answer a;

	r.version = UVD_WIRE_VERSION;
	fds = uvd_wire_no_fds;
	if (uvd_wire_ask(sock, &r, &in) || uvd_wire_answered(sock, r.op, &a, &fds))
		return -EPIPE;
	memcpy(values, a.values, sizeof(values));
	return r.op == UVD_WIRE_TAKE && !a.result ? (int)a.values[0] : a.result;
}

static inline int ask_about(enum uvd_wire_op op, pid_t tid, enum uvd_wire_file file, int64_t value)
{
	return ask(questions, (struct uvd_wire_request){ .op = op, .tid = tid, .index = file, .value = value }, -1);
}

/* Starts a process that calls as() and then blocks in a write to fd; fd < 0: in pause(). */
static inline pid_t start(void (*as)(void), int fd)
{
	int ready[2];
	char c;
	pid_t pid;

	ck_assert(!pipe(ready));
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		as();
		(void)!write(ready[1], "x", 1);
		close(ready[1]);
		_exit(fd < 0 ? pause() : write(fd, "x", 1) == 1 ? 0 : 2);
	}
	close(ready[1]);
	ck_assert(read(ready[0], &c, 1) == 1);
	close(ready[0]);
	return pid;
}

static inline void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static inline void user(void)
{
	if (setgroups(0, NULL) || setresgid(GROUP, GROUP, GROUP) || setresuid(USER, USER, USER))
		_exit(1);
	prctl(PR_SET_DUMPABLE, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static inline void root(void)
{
}

static inline void check_gets_nothing(pid_t tid, int err)
{
	static const int with_value[] = { UVD_WIRE_MEM, UVD_WIRE_FD, UVD_WIRE_FDINFO };

	ck_assert_int_eq(ask_about(UVD_WIRE_PEER, tid, 0, 0), err);
	ck_assert_int_eq(ask_about(UVD_WIRE_OPENER, tid, 0, 0), -ESRCH);
	ck_assert_int_eq(ask_about(UVD_WIRE_WRITE, tid, 0, 0), err);
	ck_assert_int_eq(ask_about(UVD_WIRE_SAME_MEMORY, tid, 0, getpid()), err);
	for (int file = 0; file < UVD_WIRE_STATUS; file++)
		ck_assert_int_eq(ask_about(UVD_WIRE_OPEN, tid, file, 0), err);
	for (unsigned int i = 0; i < 3; i++)
		ck_assert_int_eq(ask_about(UVD_WIRE_OPEN, tid, with_value[i], 1), err);
}

static inline void check_loan_is_refused(pid_t tid, int err)
{
	int sock;
	pid_t pid = serve_loan(tid, &sock);

	ck_assert_int_eq(ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_SEIZE, .tid = tid }, -1), err);
	ck_assert_int_eq(ask(sock, (struct uvd_wire_request){ .op = UVD_WIRE_TAKE }, other), -EPIPE);
	close(sock);
	waitpid(pid, NULL, 0);
}

#endif
