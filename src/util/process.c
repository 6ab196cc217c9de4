/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "util/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/select.h>
#include <unistd.h>

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

bool uvd_process_stat(pid_t pid, struct uvd_process_stat *stat)
{
	char path[64], line[1024];
	const char *fields;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fields = stat_fields(path, line, sizeof(line));
	return fields &&
	       sscanf(fields, " %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		      &stat->state, &stat->parent, &stat->flags, &stat->start) == 4;
}

bool uvd_process_lives(pid_t pid, unsigned long long *start)
{
	struct uvd_process_stat stat;

	if (!uvd_process_stat(pid, &stat))
		return false;
	if (start)
		*start = stat.start;
	return stat.state != 'Z' && stat.state != 'X';
}

/* Appends part of a status file to text. *skips: in the line of the groups. Returns the new length. */
static size_t status_append(char *text, size_t len, size_t size, const char *part, size_t num, bool *skips)
{
	static const char key[] = "\nGroups:";
	const size_t key_len = sizeof(key) - 1;

	for (size_t i = 0; i < num; i++) {
		if (*skips) {
			*skips = part[i] != '\n';
			continue;
		}
		if (len == size - 1)
			break;
		text[len++] = part[i];
		if (len >= key_len && !memcmp(text + len - key_len, key, key_len)) {
			len -= key_len - 1;
			*skips = true;
		}
	}
	return len;
}

ssize_t uvd_status_read(int fd, char *text, size_t size)
{
	bool skips = false;
	size_t len = 0;
	char part[1024];
	ssize_t n;

	while ((n = read(fd, part, sizeof(part)))) {
		if (n > 0)
			len = status_append(text, len, size, part, n, &skips);
		else if (errno != EINTR)
			return -errno;
	}
	text[len] = 0;
	return (ssize_t)len;
}

uint32_t uvd_random(uint32_t limit)
{
	uint32_t number = 0;

	(void)!getrandom(&number, sizeof(number), GRND_NONBLOCK);
	return number % limit;
}

int uvd_fd_raise(int fd)
{
	const int high = fd >= 0 && fd < FD_SETSIZE ? fcntl(fd, F_DUPFD_CLOEXEC, FD_SETSIZE) : -1;

	if (high < 0)
		return fd;
	close(fd);
	return high;
}

int uvd_fd_open_standard(void)
{
	int fd;

	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* open() returns the lowest free number: those below it are open already. */
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			return -errno;
	}
	return 0;
}
