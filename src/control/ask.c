/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "control/control.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* Returns a socket, or -1 and errno. */
static int control_connect(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(sa.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(sa.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		close(fd);
		return -1;
	}
	return fd;
}

int uvd_control_pidfd(const char *path)
{
	const int fd = control_connect(path);
	struct ucred cred = {};
	socklen_t len = sizeof(cred);
	int pidfd = -1;

	if (fd < 0)
		return -1;
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		pidfd = syscall(SYS_pidfd_open, cred.pid, 0);
	close(fd);
	return pidfd;
}

char *uvd_control_ask_more(const char *path, const char *command, FILE **rest)
{
	const int fd = control_connect(path);
	char *line = NULL;
	size_t size = 0;
	FILE *f;
	int err;

	if (fd < 0)
		return NULL;
	f = fdopen(fd, "r+");
	if (!f) {
		close(fd);
		return NULL;
	}
	errno = 0;
	if (fprintf(f, "%s\n", command) < 0 || fflush(f) || getline(&line, &size, f) <= 0) {
		err = errno ? errno : EPIPE;
		free(line);
		fclose(f);
		errno = err;
		return NULL;
	}
	*rest = f;
	return line;
}

char *uvd_control_ask(const char *path, const char *command)
{
	FILE *rest;
	char *line = uvd_control_ask_more(path, command, &rest);

	if (line)
		fclose(rest);
	return line;
}
