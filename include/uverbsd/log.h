/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The log writes each message as one line to a file descriptor. Any thread may log, with any lock held. Logging keeps
 * errno.
 *
 * Messages that a client can cause must use uvd_log_limited(), so that no client can fill a disk: it writes at most 10
 * lines in 5 seconds, and later one line with the number of messages that were left out.
 */
#ifndef UVERBSD_LOG_H
#define UVERBSD_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <uverbsd/api.h>

enum uvd_log_level { UVD_ERR, UVD_WARN, UVD_INFO, UVD_DEBUG };

struct uvd_log;

/*
 * The caller keeps fd, which must stay open. Every line begins with `name`. `most` is the last level that is written.
 * Returns NULL if there is no memory.
 */
UVD_API struct uvd_log *uvd_log_new(int fd, const char *name, enum uvd_log_level most);
/* Frees the log, which nobody may use any more. */
UVD_API void uvd_log_free(struct uvd_log *log);
/* log may be NULL in these functions: then they do nothing. */
UVD_API void uvd_logf(struct uvd_log *log, enum uvd_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
UVD_API void uvd_log_limited(struct uvd_log *log, enum uvd_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Are messages of this level written? */
UVD_API bool uvd_log_shows(const struct uvd_log *log, enum uvd_log_level level);
/*
 * Is this the first time that it is called for this process and kind of message? It remembers the latest 64. Processes
 * are told apart by their number only.
 */
UVD_API bool uvd_log_first(struct uvd_log *log, int pid, const char *kind);

#endif
