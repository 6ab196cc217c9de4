/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The log: one line a message, to stderr or a file descriptor. Thread safe. Messages that a client can cause go through
 * uvd_log_limited(), so that no client can fill a disk: at most 10 lines in 5 seconds, then one that says how many were
 * left out.
 */
#ifndef UVERBSD_LOG_H
#define UVERBSD_LOG_H

#include <stdarg.h>

enum uvd_log_level { UVD_ERR, UVD_WARN, UVD_INFO, UVD_DEBUG };

struct uvd_log;

/* fd stays the caller's. name stands before every line. NULL if there is no memory. */
struct uvd_log *uvd_log_new(int fd, const char *name, enum uvd_log_level most);
void uvd_log_free(struct uvd_log *log);
/* log may be NULL: then nothing happens. */
void uvd_logf(struct uvd_log *log, enum uvd_log_level level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void uvd_log_limited(struct uvd_log *log, enum uvd_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
