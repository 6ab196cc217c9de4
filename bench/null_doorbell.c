/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * null_doorbell: the least that a message of 64 bytes costs by doorbells without an answer (src/doorbell). Two processes that poll send
 * each other messages through a third one, a null engine: the sender writes a record of 32 bytes to a file, inotify wakes the engine, and
 * that copies 64 bytes from the one memory to the other. "null_doorbell" is half a round trip. No queues, no checks, no locks.
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>
#include "clock.h"
#include "cpu/cpu.h"

enum { SENDER, ECHOER, ENDS, MESSAGE = 64, RECORD = 32 };

static unsigned char out[MESSAGE] __attribute__((aligned(MESSAGE))), in[MESSAGE] __attribute__((aligned(MESSAGE)));

static int ring(int file)
{
	static const char record[RECORD];

	return pwrite(file, record, sizeof(record), 0) == sizeof(record) ? 0 : -1;
}

static void wait_for(unsigned char number)
{
	while (*(volatile unsigned char *)in != number)
		uvd_cpu_relax();
}

static unsigned int null_doorbell(void *arg, unsigned long count)
{
	const int file = *(int *)arg;

	for (unsigned long i = 0; i < count; i++) {
		out[0] = in[0] + 1;
		if (ring(file))
			return 0;
		wait_for(out[0]);
	}
	return 2;
}

static int echo(int file)
{
	for (;;) {
		wait_for(out[0] + 1);
		out[0] = in[0];
		if (ring(file))
			return 1;
	}
}

static void client_ended(int sig)
{
	_exit(0);
}

static int carry(const pid_t *ends, int inotify, const int *watches)
{
	char data[MESSAGE];
	struct iovec here = { data, sizeof(data) }, from = { out, sizeof(out) }, to = { in, sizeof(in) };
	struct inotify_event events[8];
	ssize_t n;

	while ((n = read(inotify, events, sizeof(events))) > 0)
		for (int i = 0; i < n / (ssize_t)sizeof(*events); i++) {
			const int end = events[i].wd == watches[SENDER] ? SENDER : ECHOER;

			if (process_vm_readv(ends[end], &here, 1, &from, 1, 0) != MESSAGE ||
			    process_vm_writev(ends[!end], &here, 1, &to, 1, 0) != MESSAGE)
				return 0; /* it has ended */
		}
	return 1;
}

/* Returns a file whose writes make events: reopened, as the descriptor that memfd_create() returns makes none. */
static int file_new(char *path)
{
	snprintf(path, PATH_MAX, "/proc/self/fd/%d", memfd_create("null_doorbell", 0));
	return open(path, O_RDWR);
}

static const struct bench all[] = { { "null_doorbell", null_doorbell }, { NULL, NULL } };

int main(void)
{
	const pid_t engine = getpid();
	int inotify = inotify_init(), files[ENDS], watches[ENDS];
	char path[PATH_MAX];
	pid_t ends[ENDS];

	for (int end = 0; end < ENDS; end++) {
		files[end] = file_new(path);
		watches[end] = inotify_add_watch(inotify, path, IN_MODIFY);
		if (files[end] < 0 || watches[end] < 0)
			return 1;
	}
	for (int end = 0; end < ENDS; end++) {
		ends[end] = fork();
		if (ends[end] < 0)
			return 1;
		if (ends[end])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != engine)
			return 1;
		return end == SENDER ? bench_serve(all, &files[SENDER]) : echo(files[ECHOER]);
	}
	signal(SIGCHLD, client_ended);
	close(STDIN_FILENO);
	setsid(); /* as the engine */
	return carry(ends, inotify, watches);
}
