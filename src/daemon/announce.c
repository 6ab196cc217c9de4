/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Announces that the daemon is ready, and that it ends: the pid file, and systemd's socket (sd_notify(3)). */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "daemon/internal.h"
#include "util/util.h"

/* Sends one datagram, without waiting. Ignores errors: the service manager may be gone. */
static void announce_notify(const struct uvd_announce *a, const char *text)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	const size_t len = strlen(a->notify);
	int fd;

	if (!len)
		return;
	memcpy(sa.sun_path, a->notify, len);
	if (sa.sun_path[0] == '@')
		sa.sun_path[0] = 0; /* an abstract name */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&sa,
		      offsetof(struct sockaddr_un, sun_path) + len);
	close(fd);
}

/* sd_watchdog_enabled(3). The interval is not looked at: signs of life come twice a second. */
static bool announce_is_watched(void)
{
	const char *pid = getenv("WATCHDOG_PID");

	return getenv("WATCHDOG_USEC") && (!pid || atoi(pid) == getpid());
}

void uvd_announce_init(struct uvd_announce *a, const struct uvd_options *options)
{
	const char *path = getenv("NOTIFY_SOCKET");

	*a = (struct uvd_announce){ .pid_file = options->pid_file, .watched = announce_is_watched() };
	if (path && (*path == '/' || *path == '@') && strlen(path) < sizeof(a->notify))
		strcpy(a->notify, path);
	/* The processes that we start must not speak for the service. */
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_PID");
	unsetenv("WATCHDOG_USEC");
}

int uvd_announce_ready(struct uvd_announce *a, struct uvd_log *log)
{
	char pid[16];
	int err = 0;

	if (a->ready)
		return 0;
	snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	if (a->pid_file[0])
		err = uvd_dir_replace(AT_FDCWD, a->pid_file, pid);
	if (err) {
		uvd_logf(log, UVD_ERR, "cannot write the pid file %s: %s", a->pid_file, uvd_errno_name(err));
		return err;
	}
	a->ready = true;
	announce_notify(a, "READY=1");
	return 0;
}

void uvd_announce_end(struct uvd_announce *a)
{
	if (!a->ready)
		return;
	a->ready = false;
	announce_notify(a, "STOPPING=1");
	if (a->pid_file[0])
		unlink(a->pid_file);
}

void uvd_announce_alive(const struct uvd_announce *a)
{
	if (a->ready && a->watched)
		announce_notify(a, "WATCHDOG=1");
}
