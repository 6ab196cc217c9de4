/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which sockets do other processes have open? Only /proc tells: a socket that we have a duplicate of is never closed. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "util/util.h"

struct look {
	const uint64_t *inos;
	bool *used;
	unsigned int num, missing;
};

static void look_seen(struct look *look, uint64_t ino)
{
	for (unsigned int i = 0; i < look->num; i++)
		if (look->inos[i] == ino && !look->used[i]) {
			look->used[i] = true;
			look->missing--;
		}
}

/* Looks at the descriptors in one /proc/PID/task/TID/fd. */
static void look_at_folder(struct look *look, const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *d;
	uint64_t ino;
	char link[64];
	ssize_t n;

	if (!dir)
		return;
	while (look->missing && (d = readdir(dir))) {
		n = readlinkat(dirfd(dir), d->d_name, link, sizeof(link) - 1);
		if (n <= 0)
			continue;
		link[n] = 0;
		if (sscanf(link, "socket:[%" SCNu64 "]", &ino) == 1)
			look_seen(look, ino);
	}
	closedir(dir);
}

/* Looks at every thread, as each may have its own descriptor table. */
static void look_at_process(struct look *look, const char *pid)
{
	char path[80];
	struct dirent *d;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%.20s/task", pid);
	tasks = opendir(path);
	if (!tasks)
		return;
	while (look->missing && (d = readdir(tasks))) {
		if (d->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%.20s/task/%.20s/fd", pid, d->d_name);
		look_at_folder(look, path);
	}
	closedir(tasks);
}

int uvd_sockets_in_use(pid_t except, const uint64_t *inos, unsigned int num, bool *used)
{
	struct look look = { .inos = inos, .used = used, .num = num, .missing = num };
	DIR *proc = opendir("/proc");
	struct dirent *d;

	if (!proc)
		return -errno;
	for (unsigned int i = 0; i < num; i++)
		used[i] = false;
	while (look.missing && (d = readdir(proc)))
		if (d->d_name[0] >= '1' && d->d_name[0] <= '9' && atoi(d->d_name) != except)
			look_at_process(&look, d->d_name);
	closedir(proc);
	return 0;
}
