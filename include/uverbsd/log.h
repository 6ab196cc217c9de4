/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The log writes each message as one line to a file descriptor. Any thread may log, with any lock held. Logging keeps
 * errno.
 *
 * Messages that a client can cause must use uvd_log_of_user(), or uvd_log_limited() where the user is not known, so that
 * no client can fill a disk, or hide what the log says of other users: in 5 seconds at most 10 lines of a format and a
 * user are written, 30 of a user, and 150 in all. Later one line for each format and user has the number of those that
 * were left out. uvd_log_limited() counts as one user more.
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
#define UVD_LOG_NO_USER (~0u)
/* uid: the user who causes the message; UVD_LOG_NO_USER: not known. */
UVD_API void uvd_log_of_user(struct uvd_log *log, unsigned int uid, enum uvd_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Are messages of this level written? */
UVD_API bool uvd_log_shows(const struct uvd_log *log, enum uvd_log_level level);
/*
 * Is this the first time that it is called for this process and kind of message? It remembers the latest 64. Processes
 * are told apart by their number only.
 */
UVD_API bool uvd_log_first(struct uvd_log *log, int pid, const char *kind);

#endif
