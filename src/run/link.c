/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "run/link.h"
#include "util/util.h"

union control {
	char room[CMSG_SPACE(UVD_RUN_LINK_FDS * sizeof(int))];
	struct cmsghdr align;
};

int uvd_run_send(int sock, const struct uvd_run_msg *msg, const int *fds, unsigned int num_fds)
{
	union control control = { 0 };
	struct iovec iov = { .iov_base = (void *)msg, .iov_len = sizeof(*msg) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (num_fds) {
		struct cmsghdr *h = &control.align;

		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(num_fds * sizeof(int));
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(num_fds * sizeof(int));
		memcpy(CMSG_DATA(h), fds, num_fds * sizeof(int));
	}
	while (sendmsg(sock, &m, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

static void *link_close_thread(void *arg)
{
	close((intptr_t)arg);
	return NULL;
}

/*
 * The fd may be a file of a FUSE file system: its close waits for the server, so a thread of its own does it. If none can be
 * started the fd stays open.
 */
static void link_close(int *fd)
{
	if (*fd >= 0)
		uvd_thread_start(NULL, 0, link_close_thread, (void *)(intptr_t)*fd);
	*fd = -1;
}

void uvd_run_drop_fds(int fds[UVD_RUN_LINK_FDS])
{
	for (unsigned int i = 0; i < UVD_RUN_LINK_FDS; i++)
		link_close(&fds[i]);
}

/* Returns how many came: the room for three ends on a boundary that a fourth reaches. It is closed. */
static unsigned int take_fds(struct msghdr *m, int fds[UVD_RUN_LINK_FDS])
{
	const struct cmsghdr *h = CMSG_FIRSTHDR(m);
	unsigned int num = 0;
	int fd;

	for (unsigned int i = 0; i < UVD_RUN_LINK_FDS; i++)
		fds[i] = -1;
	if (!h || h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
		return 0;
	for (; CMSG_LEN((num + 1) * sizeof(int)) <= h->cmsg_len; num++) {
		memcpy(&fd, CMSG_DATA(h) + num * sizeof(int), sizeof(fd));
		if (num < UVD_RUN_LINK_FDS)
			fds[num] = fd;
		else
			link_close(&fd);
	}
	return num;
}

/* Any process of the user can send to the socket of --join, and the receiver copies root as a string. */
static bool is_terminated(const struct uvd_run_msg *msg)
{
	return memchr(msg->root, 0, sizeof(msg->root));
}

int uvd_run_receive(int sock, struct uvd_run_msg *msg, int *fds)
{
	union control control;
	struct iovec iov = { .iov_base = msg, .iov_len = sizeof(*msg) };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	unsigned int num;
	ssize_t n;

	while ((n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC)) < 0)
		if (errno != EINTR)
			return -errno;
	num = take_fds(&m, fds);
	if (n == sizeof(*msg) && num <= UVD_RUN_LINK_FDS && !(m.msg_flags & MSG_CTRUNC) && is_terminated(msg))
		return 0;
	uvd_run_drop_fds(fds);
	return n ? -EPROTO : -EPIPE;
}
