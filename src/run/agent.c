/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Under Yama's ptrace_scope 1 only an ancestor may access a process's memory. An engine that serves a process tree of
 * another run asks that run's guardian, an ancestor of the tree, to open it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/client.h"
#include "run/link.h"

#ifndef PIDFD_THREAD /* 6.9 */
#define PIDFD_THREAD O_EXCL
#endif

enum { AGENT_MAX_ERRNO = 4095 };

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

int uvd_run_agent_open(int agent, pid_t tid, const char *name, int flags)
{
	struct request r = { .tid = tid, .flags = flags };
	struct uvd_run_msg reply;
	int fds[UVD_RUN_LINK_FDS], err;

	if (snprintf(r.name, sizeof(r.name), "%s", name) >= (int)sizeof(r.name))
		return -ENAMETOOLONG;
	if (send(agent, &r, sizeof(r), MSG_NOSIGNAL) != sizeof(r))
		return -EIO;
	err = uvd_run_receive(agent, &reply, fds);
	return err ? -EIO : agent_take_reply(&reply, fds);
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

bool uvd_run_agent_answer(int agent)
{
	struct request r;
	struct uvd_run_msg reply = { .status = 0 };
	int fd;

	if (recv(agent, &r, sizeof(r), 0) != sizeof(r))
		return false;
	r.name[sizeof(r.name) - 1] = 0;
	fd = do_request(&r);
	reply.status = fd < 0 ? fd : 0;
	uvd_run_send(agent, &reply, &fd, fd >= 0);
	if (fd >= 0)
		close(fd);
	return true;
}
