/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * places: one user takes as many senders as it can (src/broker/way.h). Each of its clients calls without end for an event file, and
 * replaces the socket, over which it would receive that, by a file of its own file system. The process of the daemon's that has
 * duplicated the file waits in its close for the file's server, which never answers.
 *
 * Prints "ready" and reads a line before the calls. The test must delay the duplication meanwhile, so that each replacement is in
 * time. Prints "stuck" when STUCK processes wait. Reads a line, opens the device as any program of the user's does, and prints its
 * asynchronous event file: -2 is none. At the next line prints how many processes wait, and ends.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uv.h"
#include "slow.h"

enum { CLIENTS = 12, STUCK = 8, LOOKED_MS = 100 /* after which the daemon has identified the socket */ };

static const struct slow *files;
static atomic_int expected = -1; /* the number that the next socket gets */

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

static void *replace(void *arg)
{
	for (int socket;; nap(5)) {
		socket = expected;
		if (socket < 0 || fcntl(socket, F_GETFD) != FD_CLOEXEC)
			continue;
		nap(LOOKED_MS);
		if (expected == socket)
			dup3(files->never_flush, socket, O_CLOEXEC);
		expected = -1;
	}
	return NULL;
}

static void client(int ready, int go)
{
	int fd = uv_open(), async, channel, number;
	uint32_t vectors;
	pthread_t thread;
	char c;

	MUST(fd >= 0 && !uv_get_context(fd, UV_INVOKE, &async, &vectors) && async >= 0);
	MUST(!pthread_create(&thread, NULL, replace, NULL));
	MUST(write(ready, "r", 1) == 1 && !read(go, &c, 1));
	for (;;) {
		number = dup(0);
		MUST(number >= 0 && !close(number));
		expected = number;
		uv_create_channel(fd, UV_INVOKE, &channel);
		expected = -1;
		close(number);
	}
}

int main(void)
{
	int ready[2], go[2], fd, async = -1, stuck;
	struct slow slow;
	uint32_t vectors;
	char c;

	MUST(setsid() > 0);
	slow_start(&slow);
	files = &slow;
	MUST(!pipe(ready) && !pipe(go));
	for (int i = 0; i < CLIENTS; i++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(go[1]);
		client(ready[1], go[0]);
	}
	for (int i = 0; i < CLIENTS; i++)
		MUST(read(ready[0], &c, 1) == 1);
	say("ready");
	read_line();
	close(go[1]);
	for (stuck = 0; stuck < STUCK; stuck++)
		MUST(slow_asked(&slow, 300000));
	say("stuck");
	read_line();
	fd = uv_open();
	MUST(fd >= 0 && !uv_get_context(fd, UV_INVOKE, &async, &vectors));
	printf("async file %d\n", async);
	fflush(stdout);
	read_line();
	while (slow_asked(&slow, 0))
		stuck++;
	printf("%d stuck\n", stuck);
	return 0;
}
