/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The log. Each line is formatted first and written with one write(), so that lines of several threads and processes in
 * the same file do not mix.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "util/util.h"

#define LINE_MAX_BYTES 1024
#define BURST 10 /* limited lines in one interval */
#define MOST_TOLD 64
#define INTERVAL_NS (5 * 1000000000ll)

struct uvd_log {
	int fd;
	enum uvd_log_level most;
	char *name;
	pthread_mutex_t lock; /* protects the members below, which limit the messages that a client can cause */
	int64_t begin; /* of the current interval; 0: there is none yet */
	unsigned int printed, left_out; /* in that interval */
	uint64_t told[MOST_TOLD]; /* the latest kinds of uvd_log_first(): their hashes */
	unsigned int num_told;
};

struct uvd_log *uvd_log_new(int fd, const char *name, enum uvd_log_level most)
{
	struct uvd_log *log = calloc(1, sizeof(*log));

	if (!log)
		return NULL;
	log->name = strdup(name ? name : "");
	if (!log->name) {
		free(log);
		return NULL;
	}
	log->fd = fd;
	log->most = most;
	pthread_mutex_init(&log->lock, NULL);
	return log;
}

static const char *level_word(enum uvd_log_level level)
{
	switch (level) {
	case UVD_ERR:
		return "error: ";
	case UVD_WARN:
		return "warning: ";
	case UVD_DEBUG:
		return "debug: ";
	default:
		return "";
	}
}

static void write_line(struct uvd_log *log, enum uvd_log_level level, const char *fmt, va_list ap)
{
	char line[LINE_MAX_BYTES];
	int saved_errno = errno;
	size_t len, max = sizeof(line) - 1;
	ssize_t ret;
	int n;

	n = snprintf(line, sizeof(line), "%s%s%s", log->name, *log->name ? ": " : "", level_word(level));
	len = n < 0 ? 0 : (size_t)n > max ? max : (size_t)n;
	n = vsnprintf(line + len, sizeof(line) - len, fmt, ap);
	if (n > 0)
		len = (size_t)n > max - len ? max : len + n;
	/* A client chooses its name, which must not forge a line or send control characters to a terminal. */
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = '?';
	line[len++] = '\n';
	do
		ret = write(log->fd, line, len);
	while (ret < 0 && errno == EINTR);
	errno = saved_errno;
}

void uvd_logf(struct uvd_log *log, enum uvd_log_level level, const char *fmt, ...)
{
	va_list ap;

	if (!log || level > log->most)
		return;
	va_start(ap, fmt);
	write_line(log, level, fmt, ap);
	va_end(ap);
}

/*
 * May one more line be written in this interval? *left_out: how many lines the interval that has just ended left out,
 * for the caller to report; else 0.
 */
static bool within_limit(struct uvd_log *log, unsigned int *left_out)
{
	const int64_t now = uvd_now_ns();
	bool ok;

	*left_out = 0;
	pthread_mutex_lock(&log->lock);
	if (!log->begin || now - log->begin >= INTERVAL_NS) {
		*left_out = log->left_out;
		log->begin = now;
		log->printed = log->left_out = 0;
	}
	ok = log->printed < BURST;
	if (ok)
		log->printed++;
	else
		log->left_out++;
	pthread_mutex_unlock(&log->lock);
	return ok;
}

static void tell_left_out(struct uvd_log *log, unsigned int n)
{
	if (n)
		uvd_logf(log, UVD_WARN, "%u similar message%s left out", n, n == 1 ? "" : "s");
}

void uvd_log_limited(struct uvd_log *log, enum uvd_log_level level, const char *fmt, ...)
{
	unsigned int left_out;
	va_list ap;
	bool ok;

	if (!log || level > log->most)
		return;
	ok = within_limit(log, &left_out);
	tell_left_out(log, left_out);
	if (!ok)
		return;
	va_start(ap, fmt);
	write_line(log, level, fmt, ap);
	va_end(ap);
}

bool uvd_log_shows(const struct uvd_log *log, enum uvd_log_level level)
{
	return log && level <= log->most;
}

/* FNV-1a, of 64 bits: two kinds are not expected to meet. */
static uint64_t kind_hash(int pid, const char *kind)
{
	uint64_t hash = (0xcbf29ce484222325 ^ (unsigned int)pid) * 0x100000001b3;

	for (; *kind; kind++)
		hash = (hash ^ (unsigned char)*kind) * 0x100000001b3;
	return hash;
}

bool uvd_log_first(struct uvd_log *log, int pid, const char *kind)
{
	const uint64_t hash = kind_hash(pid, kind);
	bool found = false;

	pthread_mutex_lock(&log->lock);
	for (unsigned int i = 0; i < MOST_TOLD && i < log->num_told; i++)
		found |= log->told[i] == hash;
	if (!found)
		log->told[log->num_told++ % MOST_TOLD] = hash;
	pthread_mutex_unlock(&log->lock);
	return !found;
}

void uvd_log_free(struct uvd_log *log)
{
	if (!log)
		return;
	tell_left_out(log, log->left_out);
	pthread_mutex_destroy(&log->lock);
	free(log->name);
	free(log);
}
