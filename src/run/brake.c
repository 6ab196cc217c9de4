/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Doorbells after the engine's death. Nobody reads the logs (src/doorbell) any more, but the kernel goes on carrying the write()s
 * out: posts would succeed without an end until a queue is full. So the guardian puts the clients' struct files into append mode: their
 * files cannot grow, and each further write() is EPERM.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/launch.h"
#include "util/util.h"

/* Returns the number of the parent, or 0. */
static pid_t brake_parent(pid_t pid)
{
	char path[64], text[256];
	const char *state;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n < 0 ? 0 : n] = 0;
	state = strrchr(text, ')'); /* "PID (NAME) S PPID" */
	return state && strlen(state) > 4 ? atoi(state + 4) : 0;
}

/* Is the process below this one? */
static bool brake_is_ours(pid_t pid)
{
	while (pid > 1 && pid != getpid())
		pid = brake_parent(pid);
	return pid > 1;
}

static void brake_file(pid_t pid, int fd)
{
	int copy = uvd_run_get_fd(pid, pid, fd), flags;

	if (copy < 0)
		return;
	flags = fcntl(copy, F_GETFL);
	if (flags >= 0)
		fcntl(copy, F_SETFL, flags | O_APPEND);
	close(copy);
}

static void brake_process(pid_t pid)
{
	static const char name[] = "/memfd:" UVD_RUN_MEMFD_NAME;
	const struct dirent *e;
	char path[64], target[64];
	ssize_t n;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		n = readlinkat(dirfd(dir), e->d_name, target, sizeof(target));
		if (n >= (ssize_t)strlen(name) && !strncmp(target, name, strlen(name)))
			brake_file(pid, atoi(e->d_name));
	}
	if (dir)
		closedir(dir);
}

void uvd_run_brake(void)
{
	DIR *proc = opendir("/proc");
	const struct dirent *e;

	while (proc && (e = readdir(proc)))
		if (*e->d_name >= '1' && *e->d_name <= '9' && brake_is_ours(atoi(e->d_name)))
			brake_process(atoi(e->d_name));
	if (proc)
		closedir(proc);
}
