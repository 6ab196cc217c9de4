/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The log. Each line is formatted first and written with one write(), so that lines of several threads and processes in
 * the same file do not mix.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "util/util.h"

#define LINE_MAX_BYTES 1024
#define MOST_TOLD 64
#define INTERVAL_NS (5 * 1000000000ll)
/* Limited lines in one interval: of a kind and a user, of a user, and of all. */
#define MOST_OF_KIND 10
#define MOST_OF_USER 30
#define MOST_OF_ALL 150
#define MOST_COUNTS 256 /* kinds and users in one interval, with a line each; no other leaves it before the next */

/* The log counts the lines of each user, and those of each kind and user, in this interval. */
struct log_count {
	uint64_t hash;
	unsigned int printed, left_out;
	char first[80]; /* the beginning of the first line, or the kind; of a user: empty */
};

struct uvd_log {
	int fd;
	_Atomic enum uvd_log_level most;
	char *name;
	pthread_mutex_t lock; /* protects the members below, which limit the messages that a client can cause */
	int64_t begin; /* of the current interval; 0: there is none yet */
	unsigned int printed, left_out; /* in that interval; left out: those that have no place in counts */
	struct log_count counts[MOST_COUNTS];
	unsigned int num_counts;
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

/*
 * A client chooses its name, which must not forge a line or send control characters to a terminal. In UTF-8 the controls
 * U+0080 to U+009F are 0xc2 and their number.
 */
static void line_replace_controls(unsigned char *line, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (line[i] < ' ' || line[i] == 0x7f)
			line[i] = '?';
		else if (line[i] == 0xc2 && i + 1 < len && line[i + 1] >= 0x80 && line[i + 1] < 0xa0)
			line[i] = line[i + 1] = '?';
	}
}

/* is_bare: without name and level. */
static void write_line(struct uvd_log *log, enum uvd_log_level level, bool is_bare, const char *fmt, va_list ap)
{
	char line[LINE_MAX_BYTES];
	int saved_errno = errno;
	size_t len, max = sizeof(line) - 1;
	ssize_t ret;
	int n = 0;

	if (!is_bare)
		n = snprintf(line, sizeof(line), "%s%s%s", log->name, *log->name ? ": " : "", level_word(level));
	len = n < 0 ? 0 : (size_t)n > max ? max : (size_t)n;
	n = vsnprintf(line + len, sizeof(line) - len, fmt, ap);
	if (n > 0)
		len = (size_t)n > max - len ? max : len + n;
	line_replace_controls((unsigned char *)line, len);
	line[len++] = '\n';
	do
		ret = write(log->fd, line, len);
	while (ret < 0 && errno == EINTR);
	errno = saved_errno;
}

void uvd_logf(struct uvd_log *log, enum uvd_log_level level, const char *fmt, ...)
{
	va_list ap;

	if (!uvd_log_shows(log, level))
		return;
	va_start(ap, fmt);
	write_line(log, level, false, fmt, ap);
	va_end(ap);
}

/* FNV-1a, of 64 bits: two kinds are not expected to meet. */
static uint64_t kind_hash(unsigned int owner, const char *kind)
{
	uint64_t hash = (0xcbf29ce484222325 ^ owner) * 0x100000001b3;

	for (; *kind; kind++)
		hash = (hash ^ (unsigned char)*kind) * 0x100000001b3;
	return hash;
}

/*
 * Logs how many messages the log has left out in this interval, and begins the next one. Caller holds log->lock, or no
 * other thread uses the log.
 */
static void interval_end(struct uvd_log *log)
{
	for (struct log_count *c = log->counts; c < log->counts + log->num_counts; c++)
		if (c->left_out)
			uvd_logf(log, UVD_WARN, "%u similar message%s left out: %s", c->left_out,
				 c->left_out == 1 ? "" : "s", c->first);
	if (log->left_out)
		uvd_logf(log, UVD_WARN, "%u message%s left out", log->left_out, log->left_out == 1 ? "" : "s");
	log->printed = log->left_out = log->num_counts = 0;
}

/* Returns NULL if there are too many. Caller holds log->lock. */
static struct log_count *count_of(struct uvd_log *log, unsigned int uid, const char *kind)
{
	const uint64_t hash = kind_hash(uid, kind);
	struct log_count *c = log->counts;

	while (c < log->counts + log->num_counts && c->hash != hash)
		c++;
	if (c == log->counts + MOST_COUNTS)
		return NULL;
	if (c == log->counts + log->num_counts) {
		*c = (struct log_count){ .hash = hash };
		log->num_counts++;
	}
	return c;
}

/* Begins a new interval if the current one is over. Caller holds log->lock. */
static void interval_check(struct uvd_log *log)
{
	const int64_t now = uvd_now_ns();

	if (log->begin && now - log->begin < INTERVAL_NS)
		return;
	interval_end(log);
	log->begin = now;
}

/*
 * Counts one more line of the kind and the user. *passes: may it be written in this interval? Returns the count of the kind,
 * or NULL if there are too many. Caller holds log->lock.
 */
static struct log_count *line_count(struct uvd_log *log, unsigned int uid, const char *kind, bool *passes)
{
	struct log_count *of_user, *of_kind;

	interval_check(log);
	of_user = count_of(log, uid, "");
	of_kind = count_of(log, uid, kind);
	*passes = false;
	if (!of_user || !of_kind) {
		log->left_out++;
		return NULL;
	}
	if (of_kind->printed == MOST_OF_KIND || of_user->printed == MOST_OF_USER || log->printed == MOST_OF_ALL) {
		of_kind->left_out++;
		return of_kind;
	}
	of_kind->printed++;
	of_user->printed++;
	log->printed++;
	*passes = true;
	return of_kind;
}

__attribute__((format(printf, 2, 0))) static void count_set_first(struct log_count *c, const char *fmt, va_list ap)
{
	if (c && !*c->first)
		vsnprintf(c->first, sizeof(c->first), fmt, ap);
}

/* All lines of a format are one kind. */
__attribute__((format(printf, 4, 0))) static void log_limited(struct uvd_log *log, unsigned int uid,
							      enum uvd_log_level level, const char *fmt, va_list ap)
{
	va_list again;
	bool passes;

	if (!uvd_log_shows(log, level))
		return;
	va_copy(again, ap);
	pthread_mutex_lock(&log->lock);
	count_set_first(line_count(log, uid, fmt, &passes), fmt, again);
	pthread_mutex_unlock(&log->lock);
	va_end(again);
	if (passes)
		write_line(log, level, false, fmt, ap);
}

void uvd_log_limited(struct uvd_log *log, enum uvd_log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_limited(log, UVD_LOG_NO_USER, level, fmt, ap);
	va_end(ap);
}

void uvd_log_of_user(struct uvd_log *log, unsigned int uid, enum uvd_log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_limited(log, uid, level, fmt, ap);
	va_end(ap);
}

bool uvd_log_passes(struct uvd_log *log, unsigned int uid, enum uvd_log_level level, const char *kind)
{
	struct log_count *c;
	bool passes;

	if (!uvd_log_shows(log, level))
		return false;
	pthread_mutex_lock(&log->lock);
	c = line_count(log, uid, kind, &passes);
	if (c && !*c->first)
		snprintf(c->first, sizeof(c->first), "%s", kind);
	pthread_mutex_unlock(&log->lock);
	return passes;
}

__attribute__((format(printf, 4, 5))) static void write_linef(struct uvd_log *log, enum uvd_log_level level,
							      bool is_bare, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_line(log, level, is_bare, fmt, ap);
	va_end(ap);
}

void uvd_log_line(struct uvd_log *log, enum uvd_log_level level, bool is_bare, const char *line)
{
	write_linef(log, level, is_bare, "%s", line);
}

bool uvd_log_shows(const struct uvd_log *log, enum uvd_log_level level)
{
	return log && level <= uvd_log_most(log);
}

void uvd_log_set_most(struct uvd_log *log, enum uvd_log_level most)
{
	if (log)
		atomic_store_explicit(&log->most, most, memory_order_relaxed);
}

enum uvd_log_level uvd_log_most(const struct uvd_log *log)
{
	return log ? atomic_load_explicit(&log->most, memory_order_relaxed) : UVD_ERR;
}

#define LEVEL_NAME(level, name) [level] = name,
static const char *const level_names[] = { UVD_LOG_LEVELS(LEVEL_NAME) };

const char *uvd_log_level_name(enum uvd_log_level level)
{
	return level_names[level];
}

bool uvd_log_level_parse(const char *name, enum uvd_log_level *level)
{
	for (size_t i = 0; i < sizeof(level_names) / sizeof(*level_names); i++) {
		if (strcmp(name, level_names[i]) != 0)
			continue;
		*level = i;
		return true;
	}
	return false;
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
	interval_end(log);
	pthread_mutex_destroy(&log->lock);
	free(log->name);
	free(log);
}
