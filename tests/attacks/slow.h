/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory that answers only when we say so, without any privilege: a file of a FUSE file system in our own user
 * namespace.
 *
 * And an address space that no other process can access: the kernel keeps a page of the file locked while it reads
 * it. An mmap() of a second open of the file, with direct I/O, waits for that page while it holds mmap_lock for
 * writing. A process that reads or writes this memory then waits for mmap_lock, and in some cases even SIGKILL does
 * not end that wait.
 */
#ifndef ATTACK_SLOW_H
#define ATTACK_SLOW_H

#include <stdbool.h>
#include <sys/types.h>

struct slow {
	pid_t server;
	char *content; /* of the file's SLOW_PAGES pages; shared with the server */
	int file; /* reads of its pages wait until the gate opens */
	int direct; /* the same file with direct I/O */
	int asked; /* the server writes a byte for each read, and each flush that it does not answer */
	int gate; /* tells the server to answer */
	int go[2]; /* tells the process that is to hold our mmap_lock to start */
	int never_flush; /* the third open: the server answers its flush only for processes of our user and session */
};

enum { SLOW_PAGES = 64 };

/*
 * Call as root. Mounts the file system for `user`, as fusermount3 does, and becomes that user. Needed where root is
 * to wait: FUSE refuses root access to a file system that was mounted in a user namespace, so root's page faults
 * would fail.
 */
void slow_mount_for(uid_t user);
/* Starts the server. It ends with the process that called this. */
void slow_start(struct slow *slow);
/* Waits for a read, or a flush that is not answered. Returns false after `ms` milliseconds. */
bool slow_asked(struct slow *slow, int ms);
/* Answers the reads that wait now. */
void slow_answer(struct slow *slow);
/* Answers the reads that wait now, and all later ones. */
void slow_open_gate(struct slow *slow);
/*
 * Starts a process that shares our memory and holds its mmap_lock until the gate opens. Returns once it holds the
 * lock.
 */
void slow_hold_mmap_lock(struct slow *slow);

void nap(int ms);
void give_up(const char *why) __attribute__((noreturn));
#define MUST(ok) ((ok) ? (void)0 : give_up(#ok))

#endif
