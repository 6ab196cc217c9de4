/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * flush: while the daemon gives a thread an event file, the client replaces the thread's new socket by a file of its
 * own file system. A process that has duplicated that file and closes it waits for the file's server, which never
 * answers. The server outlives the client: the daemon cannot end that wait by killing the client.
 *
 * Prints "ready" and reads a line before the call, reads another line before it replaces the socket, and then prints
 * "in place". The test must stop the daemon after it has identified the socket and before it duplicates it. Prints
 * "stuck" when a process waits in close(), and exits when another line comes on stdin.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uv.h"
#include "slow.h"

static void say(const char *line)
{
	puts(line);
	fflush(stdout);
}

static void read_line(void)
{
	char c;

	MUST(read(0, &c, 1) == 1);
}

static void *call(void *fd)
{
	int channel;

	uv_create_channel(*(int *)fd, UV_INVOKE, &channel);
	return NULL;
}

static void client(const struct slow *slow)
{
	int fd = uv_open(), async, socket;
	uint32_t vectors;
	pthread_t thread;

	MUST(fd >= 0 && !uv_get_context(fd, UV_INVOKE, &async, &vectors));
	socket = dup(0); /* the lowest free number: the new socket will get it */
	MUST(socket >= 0 && !close(socket));
	say("ready");
	read_line();
	MUST(!pthread_create(&thread, NULL, call, &fd));
	read_line();
	MUST(fcntl(socket, F_GETFD) == FD_CLOEXEC && dup3(slow->never_flush, socket, O_CLOEXEC) == socket);
	say("in place");
	pthread_join(thread, NULL);
}

int main(void)
{
	struct slow slow;
	pid_t child;

	MUST(setsid() > 0);
	slow_start(&slow);
	child = fork();
	MUST(child >= 0);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		client(&slow);
		_exit(0);
	}
	MUST(slow_asked(&slow, 300000));
	say("stuck");
	waitpid(child, NULL, 0);
	read_line();
	return 0;
}
