/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "kernel_log.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	RECORD = 16384, /* twice what the kernel returns at most */
	MAX_RECORDS = 100000, /* in one look: a log that never ends must not hold up the caller */
	SILENCE_MS = 100,
};

/* The kernel begins the first line of a report with one of these. */
static const char *const beginnings[] = {
	"BUG:", /* KASAN, KMSAN, KCSAN, page faults, sleeping in atomic context, locks held at exit */
	"BUG ", /* SLUB's checks of its objects */
	"WARNING:", /* WARN_ON(), lockdep, RCU */
	"KASAN",
	"KFENCE",
	"UBSAN:",
	"Oops",
	"Internal error:", /* arm64's Oops */
	"Unable to handle kernel", /* arm64's page fault */
	"general protection fault",
	"stack segment:",
	"divide error:",
	"invalid opcode:",
	"double fault:",
	"kernel BUG at",
	"kernel tried to execute",
	"Kernel panic",
	"INFO: task",
	"INFO: rcu",
	"INFO: possible recursive locking",
	"INFO: trying to register non-static key",
	"rcu: INFO:",
	"watchdog: BUG:", /* soft lockups */
	"watchdog: Watchdog detected",
	"possible circular locking",
	"unreferenced object",
	"kmemleak: unreferenced object",
	"refcount_t:",
	"list_add corruption",
	"list_del corruption",
	"ODEBUG:",
	"DEBUG_LOCKS_WARN_ON",
};

int uvd_kernel_log_open(struct uvd_kernel_log *log, const char *path)
{
	memset(log, 0, sizeof(*log));
	log->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (log->fd < 0)
		return -errno;
	lseek(log->fd, 0, SEEK_END);
	return 0;
}

void uvd_kernel_log_close(struct uvd_kernel_log *log)
{
	close(log->fd);
	log->fd = -1;
}

static const char *report_beginning(const char *text)
{
	for (unsigned int i = 0; i < sizeof(beginnings) / sizeof(*beginnings); i++)
		if (!strncmp(text, beginnings[i], strlen(beginnings[i])))
			return beginnings[i];
	return NULL;
}

/* A record is `LEVEL,NUMBER,TIME,FLAGS[,...];TEXT`, and further lines that tell of a device. Takes its text. */
static void record_take(struct uvd_kernel_log *log, char *record)
{
	const char *text = strchr(record, ';');
	size_t len;

	if (!text)
		return;
	text++;
	len = strcspn(text, "\n");
	record[text - record + len] = 0;
	if (!log->begins) {
		if (log->len > sizeof(log->lines) / 2)
			log->len = 0; /* the report needs the room */
		log->begins = report_beginning(text);
		if (log->begins)
			snprintf(log->report, sizeof(log->report), "%.*s", (int)sizeof(log->report) - 1, text);
	}
	if (len + 1 > sizeof(log->lines) - log->len)
		return;
	memcpy(log->lines + log->len, text, len);
	log->lines[log->len + len] = '\n';
	log->len += len + 1;
}

/* Does the log get a record in this time? */
static bool log_goes_on(const struct uvd_kernel_log *log, int ms)
{
	struct pollfd pfd = { .fd = log->fd, .events = POLLIN };

	return ms && poll(&pfd, 1, ms) > 0 && pfd.revents & POLLIN;
}

void uvd_kernel_log_look(struct uvd_kernel_log *log, int ms)
{
	char record[RECORD + 1];
	ssize_t n;

	log->begins = NULL;
	log->report[0] = 0;
	log->len = 0;
	for (unsigned int i = 0; i < MAX_RECORDS; i++) {
		n = read(log->fd, record, RECORD);
		if (n > 0) {
			record[n] = 0;
			record_take(log, record);
		} else if (n < 0 && (errno == EPIPE || errno == EINTR)) {
			continue; /* EPIPE: records were overwritten, and the next read() returns the oldest that is left */
		} else if (!n || errno != EAGAIN || !log_goes_on(log, log->begins ? SILENCE_MS : ms)) {
			return;
		}
	}
}

int uvd_kernel_log_write(const struct uvd_kernel_log *log, const char *path)
{
	FILE *out = fopen(path, "we");
	bool ok;

	if (!out)
		return -errno;
	ok = fwrite(log->lines, 1, log->len, out) == log->len;
	if (fclose(out) || !ok)
		return errno ? -errno : -EIO;
	return 0;
}
