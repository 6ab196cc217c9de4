/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Doorbells after the engine's death. Nobody reads the logs (src/doorbell) any more, but the kernel goes on carrying the write()s
 * out: posts would succeed without an end until a queue is full. So the guardian puts the clients' struct files into append mode: their
 * files cannot grow, and each further write() is EPERM.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/file.h"
#include "run/launch.h"
#include "util/util.h"

/* Is the process below this one? */
static bool brake_is_ours(pid_t pid)
{
	struct uvd_process_stat stat;

	while (pid > 1 && pid != getpid())
		pid = uvd_process_stat(pid, &stat) ? stat.parent : 0;
	return pid > 1;
}

/* Another file may have this number by now, or another process that one: so this looks at the copy, which is ours. */
static void brake_file(pid_t pid, int fd)
{
	int copy = uvd_run_get_fd(pid, pid, fd), flags;
	char path[64];

	if (copy < 0)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", copy);
	flags = uvd_run_file_is_linked(AT_FDCWD, path) ? fcntl(copy, F_GETFL) : -1;
	if (flags >= 0)
		fcntl(copy, F_SETFL, flags | O_APPEND);
	close(copy);
}

static void brake_process(pid_t pid)
{
	const struct dirent *e;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir)))
		if (uvd_run_file_is_linked(dirfd(dir), e->d_name))
			brake_file(pid, atoi(e->d_name));
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
