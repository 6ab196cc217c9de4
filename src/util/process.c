/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "util/util.h"

#include <stdio.h>
#include <string.h>

/* Reads a stat file of /proc. Returns the fields after the name, which can contain anything, or NULL. */
static const char *stat_fields(const char *path, char *line, size_t size)
{
	FILE *f = fopen(path, "re");
	const char *end = NULL;

	if (!f)
		return NULL;
	if (fgets(line, size, f))
		end = strrchr(line, ')');
	fclose(f);
	return end ? end + 1 : NULL;
}

bool uvd_thread_is_runnable(pid_t tid)
{
	char path[48], line[1024];
	const char *fields;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	fields = stat_fields(path, line, sizeof(line));
	return fields && fields[0] == ' ' && fields[1] == 'R';
}

bool uvd_process_lives(pid_t pid, unsigned long long *start)
{
	char path[64], line[1024], state;
	unsigned long long since = 0;
	const char *fields;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fields = stat_fields(path, line, sizeof(line));
	if (!fields ||
	    sscanf(fields, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &state,
		   &since) != 2)
		return false;
	if (start)
		*start = since;
	return state != 'Z' && state != 'X';
}
