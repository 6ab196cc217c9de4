/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "run/link.h"

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

int uvd_run_receive(int sock, struct uvd_run_msg *msg, int *fds)
{
	union control control;
	struct iovec iov = { .iov_base = msg, .iov_len = sizeof(*msg) };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	unsigned int num = 0;
	ssize_t n;

	while ((n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC)) < 0)
		if (errno != EINTR)
			return -errno;
	if (n && m.msg_controllen >= CMSG_LEN(0) && control.align.cmsg_type == SCM_RIGHTS) {
		num = (control.align.cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(&control.align), num * sizeof(int));
	}
	for (unsigned int i = num; i < UVD_RUN_LINK_FDS; i++)
		fds[i] = -1;
	if (n == sizeof(*msg))
		return 0;
	for (unsigned int i = 0; i < num; i++)
		close(fds[i]);
	return n ? -EPROTO : -EPIPE;
}
