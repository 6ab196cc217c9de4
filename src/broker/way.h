/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Passing a descriptor of ours to a borrowed thread (borrow.h).
 *
 * The thread creates a datagram socket, whose number comes back in a register. A process of ours, the sender,
 * duplicates the socket by pidfd_getfd(), binds it to a name that nobody else can reach, sends the descriptor to that
 * name, and exits. The client may have put another file at that number, for example one of its own FUSE file system:
 * then only the sender has that file open, and only the sender waits for its close. The thread receives the
 * descriptor, and moves it to the socket's number by dup3(). The sender has a descriptor table of its own, and shares
 * our memory.
 */
#ifndef UVD_WAY_H
#define UVD_WAY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

struct uvd_borrow;
struct uvd_way_room;

enum { UVD_WAY_CHILDREN = 128 };

/* The directory of the names, and the senders, including those that did not end in time. Thread safe. */
struct uvd_ways {
	int dir; /* of a file system that nobody else sees; -1: none, names are abstract */
	atomic_uint next; /* number for a name */
	pthread_mutex_t lock;
	struct {
		pid_t pid; /* 0: the place is free */
		bool left; /* it did not end in time, and no thread waits for it any more */
		struct uvd_way_room *room; /* NULL: never used */
	} children[UVD_WAY_CHILDREN];
};

void uvd_ways_init(struct uvd_ways *ways);
void uvd_ways_fini(struct uvd_ways *ways);

/*
 * Gives the thread a duplicate of fd, with close-on-exec; fd stays ours. If fd is no socket, the client can put another
 * file in its place, and nobody notices. Returns its number in the client,
 * or a negative errno: -EMFILE, for example, if a system call in the thread failed so; -EPERM: it cannot be done
 * here; -ESRCH: the thread died; -EFAULT: its stack cannot be used. Waits for the sender 5 s at most, and for the
 * client's memory without limit.
 */
int uvd_way_pass(struct uvd_ways *ways, struct uvd_borrow *b, int fd);

#endif
