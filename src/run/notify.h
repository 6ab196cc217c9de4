/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The system calls of a seccomp listener. */
#ifndef UVD_RUN_NOTIFY_H
#define UVD_RUN_NOTIFY_H

#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "account/account.h"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS /* 6.6 */
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP 1UL
#endif

/*
 * The functions that answer calls return a result (0 and up), a negative errno, or one of these, which no system call
 * returns.
 */
enum { UVD_RUN_CONTINUE = -0x10000, /* the kernel carries it out */ UVD_RUN_ANSWERED, /* the reply was sent */ };

enum { UVD_RUN_MAX_LENT = UVD_WHOLE_LOANS + UVD_WHOLE_PARKED };

/*
 * The notification of the current call, in memory that engine and guardian share. The kernel writes it there when it
 * delivers the call, so the guardian knows which call waits for an answer at whatever moment the engine dies.
 */
struct uvd_run_notif {
	union {
		struct seccomp_notif n;
		char room[512]; /* the kernel's struct may be longer than that of our headers */
	};
	_Atomic uint64_t
		lent[UVD_RUN_MAX_LENT]; /* ids of calls that are answered later than others (lent.c); 0: none */
};

/* Waits for a call. Returns 0 or a negative errno: -EINTR, or -ENOENT if the caller was killed before. */
static inline int uvd_run_recv(int listener, struct uvd_run_notif *notif)
{
	memset(&notif->n, 0, sizeof(notif->n)); /* the kernel requires it */
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &notif->n) ? -errno : 0;
}

/* Does the thread that made this call still wait? If not, its id, and what was opened by it, may be another's. */
static inline bool uvd_run_valid(int listener, __u64 id)
{
	return !ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id);
}

/* Returns 0, or a negative errno: the caller does not wait any more. */
static inline int uvd_run_reply(int listener, __u64 id, long result)
{
	struct seccomp_notif_resp resp = { .id = id };

	if (result == UVD_RUN_CONTINUE)
		resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else if (result < 0)
		resp.error = result;
	else
		resp.val = result;
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp) ? -errno : 0;
}

/*
 * Duplicates our fd into the caller; flags: O_CLOEXEC or 0. number: where, replacing what is there; below 0: the lowest
 * free number. answer: also ends the call, with the number as its result. Returns the number or a negative errno.
 */
static inline int uvd_run_add_fd(int listener, __u64 id, int fd, int number, unsigned int flags, bool answer)
{
	struct seccomp_notif_addfd add = { .id = id, .srcfd = fd, .newfd_flags = flags };
	int ret;

	if (number >= 0) {
		add.flags |= SECCOMP_ADDFD_FLAG_SETFD;
		add.newfd = number;
	}
	if (answer)
		add.flags |= SECCOMP_ADDFD_FLAG_SEND;
	ret = ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
	if (ret < 0)
		return errno == EBADF ? -EMFILE : -errno; /* EBADF: the number is above the caller's RLIMIT_NOFILE */
	return ret;
}

/* Has the last process under the filter ended? */
static inline bool uvd_run_hung_up(int listener)
{
	struct pollfd p = { .fd = listener };

	return poll(&p, 1, 0) == 1 && (p.revents & POLLHUP);
}

#endif
