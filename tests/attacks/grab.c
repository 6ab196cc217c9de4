/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * grab N: while the daemon gives a thread an event file, another thread duplicates every descriptor that appears. The
 * program then sends the device's descriptor through each duplicate: a descriptor queued in a socket that only the
 * daemon holds would keep the device open after our exit.
 *
 * Prints how many descriptors were grabbed, and how many sends succeeded. Exit status 0.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "uv.h"
#include "slow.h"

enum { FROM = 300, WATCHED = 3 };

static atomic_int first = -1; /* lowest free number: the descriptors of a grant appear from there on */
static atomic_bool stop;

static void *grab(void *arg)
{
	bool have[WATCHED] = {};

	while (!stop) {
		int at = first;

		for (int i = 0; i < WATCHED; i++)
			have[i] = at >= 0 && (have[i] || fcntl(at + i, F_DUPFD_CLOEXEC, FROM) >= 0);
	}
	return NULL;
}

static bool send_fd(int sock, int fd)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr h;
	} u = { .h = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct iovec v = { "12345678", 8 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &u, .msg_controllen = sizeof(u) };
	struct sockaddr_storage self;
	socklen_t len = sizeof(self);

	memcpy(CMSG_DATA(&u.h), &fd, sizeof(int));
	if (!getsockname(sock, (struct sockaddr *)&self, &len))
		connect(sock, (struct sockaddr *)&self, len); /* connect it to itself, if it has a name */
	return sendmsg(sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

int main(int argc, char **argv)
{
	int fd = uv_open(), async, channel, grabbed = 0, sent = 0;
	uint32_t vectors;
	pthread_t thread;

	MUST(fd >= 0 && argc > 1 && !uv_get_context(fd, UV_INVOKE, &async, &vectors));
	MUST(!pthread_create(&thread, NULL, grab, NULL));
	for (int i = 0; i < atoi(argv[1]); i++) {
		int next = dup(0);

		close(next);
		first = next;
		if (uv_create_channel(fd, UV_INVOKE, &channel))
			channel = -1;
		first = -1;
		nap(1);
		for (int other = FROM; other < FROM + 2 * WATCHED; other++) {
			if (fcntl(other, F_GETFD) < 0)
				continue;
			grabbed++;
			sent += send_fd(other, fd);
			/* The last close of a socket drops the descriptors queued in it. */
			close(other);
		}
		if (channel >= 0)
			close(channel);
	}
	stop = true;
	printf("%d grabbed, %d sent\n", grabbed, sent);
	return 0;
}
