/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Passing a descriptor of ours to a borrowed thread (borrow.h).
 *
 * The thread creates a datagram socket, whose number comes back in a register. A process of ours, the sender,
 * duplicates the socket by pidfd_getfd(), binds it to a name that nobody else can reach, sends the descriptor to that
 * name, and exits. The client may have put another file at that number, for example one of its own FUSE file system:
 * then only the sender has that file open, and only the sender waits for its close. The thread receives the
 * descriptor, and moves it to the socket's number by dup3().
 *
 * With one process the sender is a process that shares the daemon's memory, but has a descriptor table of its own
 * (sender.h). Such senders have places, and a user has a share of the places. A place stays taken until its sender has been
 * reaped. With two processes the sender is the broker's child for the loan: it closes the file by its exit, and the broker
 * counts it until it has reaped it (child.h).
 */
#ifndef UVD_WAY_H
#define UVD_WAY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>
#include "broker/owners.h"

struct uvd_borrow;
struct uvd_way_room;

enum {
	UVD_WAY_CHILDREN = 128,
	UVD_WAY_SHARE =
		UVD_WAY_CHILDREN / 16, /* of one user; also of the broker's children that may still be senders */
	UVD_WAY_OWN = -1, /* in place of a place: the calling process is the sender. It must exit soon. */
};

/* The directory of the names, and the places of senders. Thread safe. */
struct uvd_ways {
	int dir; /* of a file system that nobody else sees; -1: none, names are abstract */
	int held; /* with UVD_WAY_OWN: a file of the client's, whose close may wait; -1: none */
	atomic_uint next; /* number for a name */
	atomic_bool ending; /* no loan waits for its sender any more */
	pthread_mutex_t lock;
	struct uvd_way_place {
		struct uvd_owners owners; /* num 0: the place is free */
		pid_t pid; /* of the sender; 0: there is none, or it has been reaped */
		struct uvd_way_room *room; /* NULL: never used */
	} places[UVD_WAY_CHILDREN];
};

void uvd_ways_init(struct uvd_ways *ways);
void uvd_ways_fini(struct uvd_ways *ways);

/*
 * Takes a place for a loan of these users' thread. Returns it; -EAGAIN: they have UVD_WAY_SHARE places, or none is free;
 * or -ENOMEM.
 */
int uvd_ways_take(struct uvd_ways *ways, const struct uvd_owners *owners);
/* Gives the place back. Returns false if its sender has not ended: then the place stays the caller's. */
bool uvd_ways_put(struct uvd_ways *ways, int place);
/* Call in the process of a loan before it exits: closes all but the file whose close may wait. */
void uvd_ways_close_all_but_held(const struct uvd_ways *ways);
/* From now on loans do not wait for their senders. */
void uvd_ways_end(struct uvd_ways *ways);

/*
 * Gives the thread a duplicate of fd, with close-on-exec; fd stays ours. If fd is no socket, the client can put another
 * file in its place, and nobody notices. Returns its number in the client,
 * or a negative errno: -EMFILE, for example, if a system call in the thread failed so; -EPERM: it cannot be done
 * here; -ESRCH: the thread died; -EFAULT: its stack cannot be used. Waits for the sender 5 s at most, and for the
 * client's memory without limit.
 */
long uvd_way_pass(struct uvd_ways *ways, int place, struct uvd_borrow *b, int fd);

#endif
