/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The log of refused calls, and a table of calls with their lines. */
#ifndef TESTS_OBJECTS_WHY_H
#define TESTS_OBJECTS_WHY_H

#include "tests.h"

static int log_fd;

static inline void log_begin(void)
{
	log_fd = memfd_create("log", 0);
	h.engine.log = uvd_log_new(log_fd, "test", UVD_INFO);
}

static void why_teardown(void)
{
	struct uvd_log *log = h.engine.log;

	teardown();
	uvd_log_free(log);
	close(log_fd);
}

static const char *said(void)
{
	static char text[4096];
	ssize_t n = pread(log_fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = 0;
	return text;
}

/* A call that is one expression. */
#define CALL(name, ...) \
	static int name(void) \
	{ \
		return __VA_ARGS__; \
	}

/* line: without what precedes it and the process. %x: *qpn of why_check(), after the call. */
struct why_case {
	int (*call)(void);
	int err;
	const char *line;
};

static void why_check(const struct why_case *c, const uint32_t *qpn)
{
	char line[512], pid[32];

	ck_assert_int_eq(c->call(), -c->err);
	snprintf(pid, sizeof(pid), ", pid %d\n", getpid());
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(line, sizeof(line), c->line, *qpn);
#pragma GCC diagnostic pop
	ck_assert_msg(strstr(said(), line), "%s\n%s", line, said());
	ck_assert_msg(strstr(strstr(said(), line), pid), "%s", said());
	ck_assert_msg(!strchr(strchr(said(), '\n') + 1, '\n'), "%s", said());
	ck_assert_int_eq(!!strstr(said(), "warning: "), c->err != EBUSY && c->err != EOPNOTSUPP);
}

#endif
