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
#include "util/util.h"

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

char *uvd_control_read_line(FILE *f)
{
	enum { LONGEST = 64 << 20 };
	char *line = NULL;
	size_t len = 0, size;
	FILE *to = open_memstream(&line, &size);
	int c = EOF, err;

	if (!to)
		return NULL;
	while (len < LONGEST && (c = getc_unlocked(f)) != EOF && c != '\n' && putc_unlocked(c, to) != EOF)
		len++;
	err = len >= LONGEST ? EMSGSIZE : ferror(f) ? errno : EPIPE;
	if (fclose(to) || (c != '\n' && (c != EOF || !len))) {
		free(line);
		errno = err;
		return NULL;
	}
	return line;
}

/* Sends the command. A daemon that has refused the connection may have closed it: its reason can still be read. */
static int control_send(int fd, const char *command)
{
	char *line;
	int len = asprintf(&line, "%s\n", command), sent = 0, ret = 0;
	ssize_t n;

	if (len < 0)
		return -ENOMEM;
	while (!ret && sent < len) {
		n = send(fd, line + sent, len - sent, MSG_NOSIGNAL);
		if (n >= 0)
			sent += n;
		else if (errno != EINTR)
			ret = errno == EPIPE || errno == ECONNRESET ? -EPIPE : -errno;
	}
	free(line);
	return ret == -EPIPE ? 0 : ret;
}

char *uvd_control_ask_more(const char *path, const char *command, FILE **rest)
{
	const int fd = control_connect(path);
	int err = fd < 0 ? -errno : control_send(fd, command);
	FILE *f = fd < 0 || err ? NULL : fdopen(fd, "r");
	char *line;

	if (!f) {
		err = err ? err : -errno;
		if (fd >= 0)
			close(fd);
		errno = -err;
		return NULL;
	}
	line = uvd_control_read_line(f);
	if (line) {
		*rest = f;
		return line;
	}
	err = errno == EPIPE ? ECONNRESET : errno;
	fclose(f);
	errno = err;
	return NULL;
}

char *uvd_control_ask(const char *path, const char *command)
{
	FILE *rest;
	char *line = uvd_control_ask_more(path, command, &rest);

	if (line)
		fclose(rest);
	return line;
}

/* ---- what an answer says ------------------------------------------------------------------------------------------ */

/* Returns a copy that can be printed. In UTF-8 the controls U+0080 to U+009F are 0xc2 and their number. */
static char *answer_copy_text(const char *text)
{
	char *copy = malloc(strlen(text) + 1), *to = copy;

	for (; copy && *text; text++) {
		const unsigned char c = text[0], next = text[1];

		if (c == 0xc2 && next >= 0x80 && next < 0xa0)
			text++;
		*to++ = c < ' ' || c == 0x7f || (c == 0xc2 && next < 0xa0) ? '?' : (char)c;
	}
	if (copy)
		*to = 0;
	return copy;
}

static json_t *answer_copy(const char *key, json_t *value);

static json_t *answer_copy_object(json_t *object)
{
	json_t *copy = json_object(), *value;
	const char *key;

	json_object_foreach(object, key, value) {
		char *name = answer_copy_text(key);

		if (name)
			json_object_set_new(copy, name, answer_copy(key, value));
		free(name);
	}
	return copy;
}

/* Returns a new reference. The names of clients' programs are left: who prints them escapes them. */
static json_t *answer_copy(const char *key, json_t *value)
{
	json_t *copy, *entry;
	char *text;
	size_t i;

	if (json_is_object(value))
		return answer_copy_object(value);
	if (json_is_array(value)) {
		copy = json_array();
		json_array_foreach(value, i, entry)
			json_array_append_new(copy, answer_copy("", entry));
		return copy;
	}
	if (!json_is_string(value) || !strcmp(key, "program"))
		return json_incref(value);
	text = answer_copy_text(json_string_value(value));
	copy = text ? json_string(text) : NULL;
	free(text);
	return copy;
}

json_t *uvd_control_parse(const char *line)
{
	json_t *answer = line ? json_loads(line, 0, NULL) : NULL, *copy;

	if (!answer)
		return NULL;
	copy = answer_copy("", answer);
	json_decref(answer);
	return copy;
}

void uvd_control_complain(const char *who, const char *path)
{
	if (errno == ECONNRESET)
		fprintf(stderr,
			"uverbsctl %s: the uverbsd on %s closed the connection without an answer (ECONNRESET): it may be ending "
			"or starting anew, so try again\n",
			who, path);
	else if (errno == EACCES)
		fprintf(stderr, "uverbsctl %s: no permission to connect to %s: EACCES\n", who, path);
	else
		fprintf(stderr, "uverbsctl %s: no uverbsd answers on %s: %s\n", who, path, uvd_errno_name(errno));
}
