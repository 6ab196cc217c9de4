/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Passing a descriptor of ours to a borrowed thread (borrow.h).
 *
 * The thread makes a datagram socket, whose number comes back in a register. A process of ours takes a copy of it, gives it
 * a name that nobody else can reach, sends the descriptor there, and ends: whatever the number stands for by then, a file of
 * the client's own file system for example, it is that process that has it open and waits for its close. The thread
 * receives the descriptor, and puts it in the socket's place. (The process has descriptors of its own, and shares our memory.)
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

/* Where the names are, and the processes that send, those included that did not end in time. Thread safe. */
struct uvd_ways {
	int dir; /* a file system that nobody else sees; -1: there is none, so names are abstract */
	atomic_uint next; /* name */
	pthread_mutex_t lock;
	struct {
		pid_t pid; /* 0: the place is free */
		bool left; /* nobody waits for it any more */
		struct uvd_way_room *room; /* NULL: the place was never used */
	} children[UVD_WAY_CHILDREN];
};

void uvd_ways_init(struct uvd_ways *ways);
void uvd_ways_fini(struct uvd_ways *ways);

/*
 * Gives fd, a socket, to the thread, close-on-exec; fd stays ours. Returns its number there; or a negative errno: what the
 * client's own socket() said, as -EMFILE; -EPERM: it cannot be done here; -ESRCH: the thread died; -EFAULT: its stack cannot
 * be used. Waits some seconds at most for the process that sends, and for the client's memory as long as that takes.
 */
int uvd_way_pass(struct uvd_ways *ways, struct uvd_borrow *b, int fd);

#endif
