/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory that answers when we say so, without any privilege: a file of a FUSE file system in a user namespace of our own.
 *
 * And an address space that nobody else gets into: a page of the file that is being read is locked; a second open of the file,
 * with direct I/O, makes mmap() wait for that page while it holds mmap_lock for writing. Whoever wants to read or write the
 * memory of that process waits for mmap_lock, and not even SIGKILL ends that wait in every case.
 */
#ifndef ATTACK_SLOW_H
#define ATTACK_SLOW_H

#include <stdbool.h>
#include <sys/types.h>

struct slow {
	pid_t server;
	char *content; /* of the file's SLOW_PAGES pages; shared with the server */
	int file; /* its pages are read when the gate is open */
	int direct; /* the same file with direct I/O */
	int asked; /* a byte for each page that somebody has asked for */
	int gate;
	int go[2]; /* to the process that holds our lock */
	int never_flush; /* the third open: its flush() is never answered, but for processes of our own user and session */
};

enum { SLOW_PAGES = 64 };

/*
 * As root: mounts the file system as fusermount3 does for its user, who this process is from then on. In its own user namespace
 * a file system is refused to root, whose page faults then fail instead of waiting.
 */
void slow_mount_for(uid_t user);
/* Starts the server. It ends with the process that called this. */
void slow_start(struct slow *slow);
/* Waits until somebody has asked for a page, or (ms) false. */
bool slow_asked(struct slow *slow, int ms);
/* Answers those who wait now. */
void slow_answer(struct slow *slow);
/* From now on every page is answered. */
void slow_open_gate(struct slow *slow);
/* Starts a process that shares our memory and holds its lock until the gate opens. Returns when it holds it. */
void slow_hold_mmap_lock(struct slow *slow);

void nap(int ms);
void give_up(const char *why) __attribute__((noreturn));
#define MUST(ok) ((ok) ? (void)0 : give_up(#ok))

#endif
