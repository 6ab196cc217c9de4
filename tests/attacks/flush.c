/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * flush: while the daemon gives a thread an event file, another thread puts a file of its own file system in the place of
 * every descriptor that appears. Whoever has taken a copy of that and closes it waits for the file's server, which never
 * answers that.
 *
 * Prints "stuck" when somebody waits, and goes on with nothing until a line comes on stdin.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "../abi/uv.h"
#include "slow.h"

enum { TRIES = 2000 };

static struct slow slow;
static atomic_int first = -1;
static atomic_bool stop;

static void *replace(void *arg)
{
	while (!stop) {
		int at = first;

		if (at >= 0 && fcntl(at, F_GETFD) >= 0 && dup3(slow.never_flush, at, O_CLOEXEC) >= 0)
			first = -1;
	}
	return NULL;
}

int main(void)
{
	int fd = uv_open(), async, channel;
	bool waits = false;
	uint32_t vectors;
	pthread_t thread;
	char c;

	MUST(fd >= 0 && !uv_get_context(fd, UV_INVOKE, &async, &vectors));
	slow_start(&slow);
	MUST(!pthread_create(&thread, NULL, replace, NULL));
	for (int i = 0; i < TRIES && !waits; i++) {
		int next = dup(0);

		close(next);
		first = next;
		if (uv_create_channel(fd, UV_INVOKE, &channel))
			channel = -1;
		first = -1;
		waits = slow_asked(&slow, 0);
		close(next);
		if (channel >= 0 && channel != next)
			close(channel);
	}
	stop = true;
	printf(waits ? "stuck\n" : "nobody waits\n");
	fflush(stdout);
	return read(0, &c, 1) < 0;
}
