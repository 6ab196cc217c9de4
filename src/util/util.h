/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Utilities for every room, by subject. The log is public: <uverbsd/log.h>. */
#ifndef UVD_UTIL_H
#define UVD_UTIL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <uverbsd/log.h>
#include "util/crash.h"
#include "util/dir.h"
#include "util/help.h"
#include "util/list.h"
#include "util/lock.h"
#include "util/memory.h"
#include "util/names.h"
#include "util/nearest.h"
#include "util/process.h"
#include "util/thread.h"

/* Returns the name of an errno, positive or negative, for messages: "ENOENT". */
static inline const char *uvd_errno_name(int err)
{
	const char *name = strerrorname_np(err < 0 ? -err : err);

	return name ? name : "an unknown error";
}

/* Names of levels, as --log-level has them. */
#define UVD_LOG_LEVELS(X) X(UVD_ERR, "error") X(UVD_WARN, "warning") X(UVD_INFO, "info") X(UVD_DEBUG, "debug")

/* log.c: the last level that is written. Any thread; a process that was forked before keeps its own. log: may be NULL. */
void uvd_log_set_most(struct uvd_log *log, enum uvd_log_level most);
enum uvd_log_level uvd_log_most(const struct uvd_log *log);
const char *uvd_log_level_name(enum uvd_log_level level);
/* Returns false if there is no such level. */
bool uvd_log_level_parse(const char *name, enum uvd_log_level *level);

/*
 * log.c: for lines that cost something to format, which a client can cause. uvd_log_passes() counts a line, and says whether the
 * limits of the user (log.h) leave room for it; kind: all lines of one kind are similar, and a line of those that were left out has
 * its text. Then uvd_log_line() writes the line. is_bare: it is for programs, and gets no prefix.
 */
bool uvd_log_passes(struct uvd_log *log, unsigned int uid, enum uvd_log_level level, const char *kind);
void uvd_log_line(struct uvd_log *log, enum uvd_log_level level, bool is_bare, const char *line);

enum { UVD_GUID_TEXT = 20 };

/* Writes a GUID, in host order, as sysfs and libibverbs do: "0002:c903:00ab:cdef". Returns the text. */
static inline const char *uvd_guid_text(uint64_t guid, char text[UVD_GUID_TEXT])
{
	snprintf(text, UVD_GUID_TEXT, "%04x:%04x:%04x:%04x", (unsigned int)(guid >> 48),
		 (unsigned int)(guid >> 32 & 0xffff), (unsigned int)(guid >> 16 & 0xffff),
		 (unsigned int)(guid & 0xffff));
	return text;
}

/* The struct that contains `member` at `ptr`. */
#ifndef container_of
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#endif

/* The kernel's function of that name: adds 1 and returns true, unless the value is negative. Acquires. */
static inline bool atomic_inc_unless_negative(atomic_int *v)
{
	int old = atomic_load_explicit(v, memory_order_relaxed);

	do {
		if (old < 0)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(v, &old, old + 1, memory_order_acquire, memory_order_relaxed));
	return true;
}

/* Returns a number below `limit` that differs from process to process: no secret. 0 if the kernel has none yet. */
uint32_t uvd_random(uint32_t limit);

#endif
