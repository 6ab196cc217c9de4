/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "util/util.h"

#include <stdio.h>
#include <string.h>

bool uvd_process_lives(pid_t pid, unsigned long long *start)
{
	char path[64], line[1024] = "", state, *p;
	unsigned long long since = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	p = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL; /* the command's name may contain anything */
	fclose(f);
	if (!p || sscanf(p + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
			 &state, &since) != 2)
		return false;
	if (start)
		*start = since;
	return state != 'Z' && state != 'X';
}
