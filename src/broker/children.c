/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The broker's list of its children. Each serves one socket of the engine process, and exits when that is closed. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "broker/child.h"
#include "broker/waiting.h"
#include "broker/way.h"
#include "util/util.h"

enum { LOAN_MS = 10000 /* a loan takes milliseconds */, LOAN_MIB_MS = 20, LOAN_MAX_MS = 300000 };

static uint64_t children_now_ms(void)
{
	return uvd_now_ns() / 1000000;
}

/*
 * Closes all descriptors but the standard ones, the child's socket (then 3) and the directory of names, if there is
 * one (then 4).
 */
static void keep_only(int *sock, int *dir)
{
	int high = fcntl(*sock, F_DUPFD_CLOEXEC, 10), high_dir = *dir < 0 ? -1 : fcntl(*dir, F_DUPFD_CLOEXEC, 10);

	if (high < 0 || dup3(high, 3, O_CLOEXEC) < 0 || (high_dir >= 0 && dup3(high_dir, 4, O_CLOEXEC) < 0))
		_exit(1);
	*sock = 3;
	*dir = high_dir < 0 ? -1 : 4;
	close_range(*dir < 0 ? 4 : 5, ~0u, 0);
}

static void child_main(enum uvd_wire_kind kind, int sock, struct uvd_nodes *nodes, struct uvd_ways *ways)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_IGN); /* the terminal's is for the broker: this process ends with its socket */
	keep_only(&sock, &ways->dir);
	ways->next = getpid(); /* unique among the loans: each process makes one name */
	mprotect(nodes, sizeof(*nodes), PROT_READ);
	if (kind == UVD_WIRE_QUESTIONS) {
		if (!uvd_role_take(UVD_ROLE_QUESTIONS))
			_exit(1);
		uvd_questions_serve(sock, nodes);
	} else {
		uvd_loan_serve(sock, nodes, ways);
	}
	_exit(0);
}

uint64_t uvd_loan_ms(int64_t mib)
{
	if (mib <= 0)
		return LOAN_MS;
	return mib < (LOAN_MAX_MS - LOAN_MS) / LOAN_MIB_MS ? LOAN_MS + mib * LOAN_MIB_MS : LOAN_MAX_MS;
}

int uvd_children_start(struct uvd_children *children, enum uvd_wire_kind kind, int64_t mib, int sock,
		       struct uvd_nodes *nodes, struct uvd_ways *ways)
{
	struct uvd_child *c = children->list + (kind == UVD_WIRE_LOAN ? UVD_CHILDREN_OF_KIND : 0),
			 *end = c + UVD_CHILDREN_OF_KIND;
	int copy, err = 0;
	pid_t pid;

	if (kind == UVD_WIRE_CONTROL)
		return -EINVAL;
	while (c < end && c->pid)
		c++;
	if (c == end)
		return -EAGAIN;
	copy = fcntl(sock, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return -errno;
	pid = fork();
	if (!pid)
		child_main(kind, sock, nodes, ways);
	if (pid < 0) {
		err = -errno;
		close(copy);
		return err;
	}
	*c = (struct uvd_child){ pid, copy, kind == UVD_WIRE_LOAN ? children_now_ms() + uvd_loan_ms(mib) : 0 };
	return 0;
}

void uvd_children_ended(struct uvd_children *children, pid_t pid)
{
	for (struct uvd_child *c = children->list; c < children->list + UVD_CHILDREN_MAX; c++) {
		if (c->pid != pid)
			continue;
		close(c->sock);
		c->pid = 0;
	}
}

/* A client's thread that the loan has stopped dies with it (PTRACE_O_EXITKILL). One that was only seized goes on. */
void uvd_children_check(struct uvd_children *children, struct uvd_log *log)
{
	for (struct uvd_child *c = children->list; c < children->list + UVD_CHILDREN_MAX; c++) {
		if (!c->pid || !c->kill_at || c->kill_at > children_now_ms())
			continue;
		uvd_log_limited(log, UVD_WARN, "a loan does not end: killing its process");
		kill(c->pid, SIGKILL);
		c->kill_at = 0;
	}
}

void uvd_children_hang_up(struct uvd_children *children)
{
	for (struct uvd_child *c = children->list; c < children->list + UVD_CHILDREN_MAX; c++)
		if (c->pid)
			shutdown(c->sock, SHUT_RDWR);
}

void uvd_children_close(struct uvd_children *children)
{
	for (struct uvd_child *c = children->list; c < children->list + UVD_CHILDREN_MAX; c++)
		if (c->pid)
			close(c->sock);
}
