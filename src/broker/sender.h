/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The sender of a descriptor (way.h). Internal to the room. */
#ifndef UVD_BROKER_SENDER_H
#define UVD_BROKER_SENDER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

struct uvd_ways;

/* A descriptor that is to be sent, and its destination. */
struct uvd_errand {
	int pidfd, way; /* the client's process, and the number of its socket */
	ino_t ino; /* the socket's */
	int fd; /* to be sent */
	int dir;
	int held; /* set to the duplicate if it is not the socket: it stays open, as its close may wait; else -1 */
	struct sockaddr_un name;
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr h;
	} control;
	struct iovec byte;
	struct msghdr message;
};

/* Carries it out in the calling process. Returns true if the descriptor was sent. */
bool uvd_errand_carry_out(struct uvd_errand *e);

/* The errand of the place that the caller has taken. */
struct uvd_errand *uvd_sender_errand(struct uvd_ways *ways, int place);
/*
 * Carries it out in a process of its own. Waits 5 s at most, then that process stays in the place. Returns 0, or -EPERM if
 * the descriptor was not sent.
 */
int uvd_sender_run(struct uvd_ways *ways, int place);
void uvd_senders_fini(struct uvd_ways *ways);

#endif
