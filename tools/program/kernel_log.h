/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The kernel's log, /dev/kmsg, in which the kernel reports its own bugs: KASAN's and lockdep's reports, warnings, hung tasks. Most of
 * them end no process, so nothing else shows them.
 */
#ifndef UVD_KERNEL_LOG_H
#define UVD_KERNEL_LOG_H

#include <stddef.h>

#define UVD_KERNEL_LOG "/dev/kmsg"

struct uvd_kernel_log {
	int fd;
	const char *begins; /* the beginning in the table that the report has; NULL: the last look found no report */
	char report[160]; /* the first line of the report */
	size_t len;
	char lines[65536]; /* what the log has said since the look before; a report that is longer loses its end */
};

/*
 * Opens the log at its end: what it already has is ignored. path: UVD_KERNEL_LOG; a test gives another file, which has one record a
 * read. Returns 0, or a negative errno: EPERM without CAP_SYSLOG.
 */
int uvd_kernel_log_open(struct uvd_kernel_log *log, const char *path);
void uvd_kernel_log_close(struct uvd_kernel_log *log);

/*
 * Reads the records that are new, and those that come until the log is silent for `ms` milliseconds. Once one of them has
 * begun a report, for a moment instead, so that `lines` has the whole report. Records that the kernel has overwritten
 * before they were read are skipped.
 */
void uvd_kernel_log_look(struct uvd_kernel_log *log, int ms);

/* Writes `lines` into the file. Returns 0, or a negative errno. */
int uvd_kernel_log_write(const struct uvd_kernel_log *log, const char *path);

#endif
