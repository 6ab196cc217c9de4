/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "control/control.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

char *uvd_control_ask_more(const char *path, const char *command, FILE **rest)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	char *line = NULL;
	size_t size = 0;
	FILE *f;
	int fd, err;

	if (strlen(path) >= sizeof(sa.sun_path)) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	strcpy(sa.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return NULL;
	f = connect(fd, (struct sockaddr *)&sa, sizeof(sa)) ? NULL : fdopen(fd, "r+");
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
