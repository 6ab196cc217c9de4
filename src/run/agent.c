/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Under Yama's ptrace_scope 1 only an ancestor may access a process's memory. An engine that serves a process tree of
 * another run asks that run's guardian, an ancestor of the tree, to open it.
 *
 * A guardian in another pid namespace than the engine's also receives the calls, as the kernel tells it the numbers of its own
 * namespace, and opens all files of /proc. The engine answers the calls itself. Each question of the engine has one answer, which
 * waits for no call: the engine asks for a call when one is there. Only the thread that serves the tree asks.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/client.h"
#include "run/link.h"
#include "run/notify.h"

#ifndef PIDFD_THREAD /* 6.9 */
#define PIDFD_THREAD O_EXCL
#endif

enum { AGENT_MAX_ERRNO = 4095 };

/* Names that ask for something else than an fd: these are no files of /proc. */
static const char agent_call[] = "call", agent_same_memory[] = "same_memory";

struct request {
	pid_t tid;
	int flags;
	char name[32];
};

/* The reply is a struct uvd_run_msg of kind 0: a negative errno in status, or 0 and one fd. The agent may be anybody's. */
static int agent_take_reply(const struct uvd_run_msg *reply, int fds[UVD_RUN_LINK_FDS])
{
	const int fd = reply->status ? -1 : fds[0];

	if (fd >= 0)
		fds[0] = -1;
	uvd_run_drop_fds(fds);
	if (fd >= 0)
		return fd;
	return reply->status < 0 && reply->status >= -AGENT_MAX_ERRNO ? reply->status : -EIO;
}

/*
 * Returns 0 and the reply with its fds, or -EPIPE: then the agent is never asked again, as an answer that comes late would be
 * taken for that to another question.
 */
static int agent_ask(int agent, const struct request *r, struct uvd_run_msg *reply, int fds[UVD_RUN_LINK_FDS])
{
	if (send(agent, r, sizeof(*r), MSG_NOSIGNAL) == sizeof(*r) && !uvd_run_receive(agent, reply, fds))
		return 0;
	shutdown(agent, SHUT_RDWR);
	return -EPIPE;
}

int uvd_run_agent_open(int agent, pid_t tid, const char *name, int flags)
{
	struct request r = { .tid = tid, .flags = flags };
	struct uvd_run_msg reply;
	int fds[UVD_RUN_LINK_FDS];

	if (snprintf(r.name, sizeof(r.name), "%s", name) >= (int)sizeof(r.name))
		return -ENAMETOOLONG;
	return agent_ask(agent, &r, &reply, fds) ? -EIO : agent_take_reply(&reply, fds);
}

/* The same for a question whose answer has no fd. */
static int agent_ask_status(int agent, const char *name, pid_t tid, int flags, int *status)
{
	struct request r = { .tid = tid, .flags = flags };
	struct uvd_run_msg reply;
	int fds[UVD_RUN_LINK_FDS], err;

	strcpy(r.name, name);
	err = agent_ask(agent, &r, &reply, fds);
	if (err)
		return err;
	uvd_run_drop_fds(fds);
	*status = reply.status;
	return 0;
}

int uvd_run_agent_recv(int agent)
{
	int status, err = agent_ask_status(agent, agent_call, 0, 0, &status);

	if (err)
		return err;
	return status ? -ENOENT : 0;
}

bool uvd_run_agent_same_memory(int agent, pid_t a, pid_t b)
{
	int status, err = agent_ask_status(agent, agent_same_memory, a, b, &status);

	return !err && !status;
}

/* A thread can have a file table of its own, but before Linux 6.9 a pidfd stands for a process only: then use that. */
int uvd_run_get_fd(pid_t tid, pid_t tgid, int fd)
{
	int pidfd = syscall(SYS_pidfd_open, tid, PIDFD_THREAD), copy;

	if (pidfd < 0)
		pidfd = syscall(SYS_pidfd_open, tgid, 0);
	if (pidfd < 0)
		return -errno;
	copy = syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	if (copy < 0)
		copy = -errno;
	close(pidfd);
	return copy;
}

static int do_request(const struct request *r)
{
	static const char getfd[] = "getfd/";

	if (!strncmp(r->name, getfd, strlen(getfd)))
		return uvd_run_get_fd(r->tid, r->flags, atoi(r->name + strlen(getfd)));
	return uvd_proc_local.open(&uvd_proc_local, r->tid, r->name, r->flags);
}

/*
 * Receives the call that waits. The kernel would let us wait for another one if its caller has been killed, so this looks first:
 * a call that is there then, and whose caller is killed, is -ENOENT.
 */
static int agent_receive(int listener, struct uvd_run_notif *notif)
{
	struct pollfd call = { .fd = listener, .events = POLLIN };

	if (poll(&call, 1, 0) != 1 || !(call.revents & POLLIN))
		return -ENOENT;
	return uvd_run_recv(listener, notif);
}

bool uvd_run_agent_answer(int agent, int listener, struct uvd_run_notif *notif)
{
	struct uvd_run_msg reply = { .status = 0 };
	struct request r;
	int fd = -1;

	if (recv(agent, &r, sizeof(r), 0) != sizeof(r))
		return false;
	r.name[sizeof(r.name) - 1] = 0;
	if (!strcmp(r.name, agent_call)) {
		reply.status = agent_receive(listener, notif);
	} else if (!strcmp(r.name, agent_same_memory)) {
		reply.status = syscall(SYS_kcmp, r.tid, r.flags, KCMP_VM, 0, 0) ? -ESRCH : 0;
	} else {
		fd = do_request(&r);
		reply.status = fd < 0 ? fd : 0;
	}
	uvd_run_send(agent, &reply, &fd, fd >= 0);
	if (fd >= 0)
		close(fd);
	return true;
}
