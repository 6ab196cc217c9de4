/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An event file: what the kernel makes as [infinibandevent], and gives to the client as a completion channel's or as an
 * asynchronous event file's fd.
 *
 * It is one end of a SOCK_SEQPACKET pair, so one read() takes one event and poll, O_NONBLOCK, signals and dup work as
 * everywhere. We keep the other end, and a copy of the client's end: so that the events of an object that is destroyed
 * can be taken back (struct uvd_event_file's owner counts what was really read).
 * Differences from the kernel's file are listed in docs/abi-differences.md.
 */
#ifndef UVD_EVENT_FILE_H
#define UVD_EVENT_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct uvd_account;
struct uvd_event_file; /* reference counted, thread safe */

/*
 * size: bytes of one event, 8 (completion) or 16 (asynchronous). No descriptors yet; account, which may be NULL, pays for
 * them and for the socket's buffer from now on. NULL: *err is -EMFILE (the user has too many event files) or -ENOMEM.
 */
struct uvd_event_file *uvd_event_file_new(size_t size, struct uvd_account *account, int *err);
struct uvd_event_file *uvd_event_file_ref(struct uvd_event_file *f);
void uvd_event_file_put(struct uvd_event_file *f);

/* Makes the pair. The result is the client's end, still ours to close after it was passed on; or a negative errno. */
int uvd_event_file_open(struct uvd_event_file *f);
/* Takes over a pair that was made elsewhere (in the client, by a grant). Both fds are the event file's from now on. */
int uvd_event_file_adopt(struct uvd_event_file *f, int ours, int theirs);

/* Is this (an fstat of the client's fd) the client's end? */
bool uvd_event_file_is(struct uvd_event_file *f, const struct stat *st);
/*
 * Posts one event of the file's size. *written counts events posted for one object: see uvd_event_file_take_back().
 * Never blocks. A closed or full file drops the event (logged by the caller): -EPIPE, -EAGAIN.
 */
int uvd_event_file_post(struct uvd_event_file *f, const void *event);
/*
 * Removes every unread event for which match() is true and puts the others back in order. How many were removed: the
 * caller subtracts them from what it posted, and has what was read. Blocks posts meanwhile.
 */
unsigned int uvd_event_file_take_back(struct uvd_event_file *f, bool (*match)(const void *event, void *arg), void *arg);
/* The client's end is seen as closed by the peer: read gives 0, poll POLLHUP. (The device file was closed.) */
void uvd_event_file_hang_up(struct uvd_event_file *f);
/*
 * Of each: does the client still hold its end? As we hold a copy, that takes a look through /proc/PID/fd of all
 * processes, one for all files: for garbage collection when a client has made very many, not for every day. num: about
 * a thousand at most (they are kept in order on the stack).
 */
void uvd_event_files_in_use(struct uvd_event_file *const *files, unsigned int num, bool *used);

#endif
