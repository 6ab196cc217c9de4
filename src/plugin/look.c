/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a plug-in declares, without its code in this process. Its constructors run as soon as it is mapped, so a child
 * maps it that has no rights, and tells the facts over a pipe. The child may be the plug-in's: all that it says is checked.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "broker/broker.h"
#include "plugin/internal.h"

enum {
	MAX_FACTS = 1 << 20, /* bytes */
	END_MS = 2000, /* that a killed child may take to end */
	PIPE_FD = 3,
	COPY_FD = 4
};

/* ---- the child --------------------------------------------------------------------------------------------------- */

/* Leaves the child no descriptor but the pipe and the copy of the file. 0, 1 and 2 become /dev/null. */
static bool look_place_fds(int pipe_end, int copy)
{
	const int high[] = { fcntl(pipe_end, F_DUPFD, COPY_FD + 1), fcntl(copy, F_DUPFD, COPY_FD + 1) };
	const int null = open("/dev/null", O_RDWR);

	return high[0] >= 0 && high[1] >= 0 && dup2(null, 0) >= 0 && dup2(null, 1) >= 0 && dup2(null, 2) >= 0 &&
	       dup2(high[0], PIPE_FD) >= 0 && dup2(high[1], COPY_FD) >= 0 && !close_range(COPY_FD + 1, ~0u, 0);
}

static char *look_facts(struct uvd_module *m, pid_t parent)
{
	char error[UVD_PLUGIN_ERROR];
	int err = uvd_look_sandbox(parent);

	if (err)
		uvd_plugin_error(error, err, "%s: no sandbox for its constructors: %s", m->path, uvd_errno_name(err));
	else
		err = uvd_module_map(NULL, m, NULL, error);
	return err ? uvd_facts_write_error(err, error) : uvd_facts_write(&m->plugin);
}

static void look_child(struct uvd_module *m, int pipe_end, pid_t parent)
{
	static const int own[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGPIPE };
	char *text;
	size_t done = 0, len;
	sigset_t none;
	ssize_t n;

	for (unsigned int i = 0; i < UVD_COUNT(own); i++)
		signal(own[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (!look_place_fds(pipe_end, m->fd))
		_exit(1);
	m->fd = COPY_FD;
	text = look_facts(m, parent);
	len = text ? strlen(text) : 0;
	while (done < len && (n = write(PIPE_FD, text + done, len - done)) > 0)
		done += n;
	_exit(len && done == len ? 0 : 1);
}

/* ---- this process ------------------------------------------------------------------------------------------------ */

/* Reads until the child closes the pipe. Returns the length; -EFBIG, or -ETIMEDOUT. */
static ssize_t look_read(int from, char *text, unsigned int limit_ms)
{
	const uint64_t end = uvd_now_ns() / 1000000 + limit_ms;
	struct pollfd p = { .fd = from, .events = POLLIN };
	size_t len = 0;
	ssize_t n;

	while (len < MAX_FACTS) {
		const uint64_t now = uvd_now_ns() / 1000000;

		if (now >= end)
			return -ETIMEDOUT;
		if (poll(&p, 1, end - now) <= 0)
			continue;
		n = read(from, text + len, MAX_FACTS - len);
		if (!n)
			return len;
		len += n > 0 ? n : 0;
	}
	return -EFBIG;
}

/* Returns 0, or a negative errno and the message if the child has told nothing. */
static int look_check_end(const char *path, ssize_t len, int status, unsigned int limit_ms,
			  char error[UVD_PLUGIN_ERROR])
{
	if (len == -ETIMEDOUT)
		return uvd_plugin_error(error, -ETIMEDOUT, "%s: its constructors have not returned within %u ms", path,
					limit_ms);
	if (len == -EFBIG)
		return uvd_plugin_error(error, -EFBIG, "%s: it declares more than 1 MiB", path);
	if (WIFSIGNALED(status))
		return uvd_plugin_error(error, -ELIBBAD, "%s: its constructors crashed with SIG%s", path,
					sigabbrev_np(WTERMSIG(status)) ?: "?");
	if (!len)
		return uvd_plugin_error(error, -ELIBBAD, "%s: its constructors ended the process", path);
	return 0;
}

/*
 * Kills the child, which has nothing more to do and must not stay. A child that has crashed keeps its status. Returns
 * false if the child does not end, as in a system call that no signal interrupts: only the later reaper waits for it.
 */
static bool look_end(pid_t child, int *status)
{
	pid_t ended = 0;

	kill(child, SIGKILL);
	for (unsigned int ms = 0; ms < END_MS && ended != child; ms++) {
		ended = waitpid(child, status, WNOHANG);
		if (ended != child)
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return ended == child;
}

/* Waits for the facts and for the child's end. Returns their length, or a negative errno and the message. */
static ssize_t look_wait(const char *path, pid_t child, int from, char *text, unsigned int limit_ms,
			 char error[UVD_PLUGIN_ERROR])
{
	ssize_t len = look_read(from, text, limit_ms);
	int status = 0, err;

	if (!look_end(child, &status))
		return uvd_plugin_error(error, -ETIMEDOUT, "%s: a process that runs its constructors does not end",
					path);
	err = look_check_end(path, len, len > 0 ? 0 : status, limit_ms, error);
	return err ? err : len;
}

static int look_with(struct uvd_module *m, char *text, unsigned int limit_ms, char error[UVD_PLUGIN_ERROR])
{
	int ends[2];
	ssize_t len;
	const pid_t parent = getpid();
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return uvd_plugin_error(error, -errno, "%s: pipe2: %s", m->path, strerrorname_np(errno));
	fflush(stdout);
	child = fork();
	if (!child)
		look_child(m, ends[1], parent);
	close(ends[1]);
	len = child > 0 ? look_wait(m->path, child, ends[0], text, limit_ms, error)
			: uvd_plugin_error(error, -errno, "%s: fork: %s", m->path, strerrorname_np(errno));
	close(ends[0]);
	return len < 0 ? (int)len : uvd_facts_read(m->path, text, len, &m->plugin, &m->facts, error);
}

int uvd_module_look(struct uvd_module *module, unsigned int limit_ms, char error[UVD_PLUGIN_ERROR])
{
	char *text = malloc(MAX_FACTS);
	int err = text ? look_with(module, text, limit_ms, error)
		       : uvd_plugin_error(error, -ENOMEM, "%s: ENOMEM", module->path);

	free(text);
	return err;
}
