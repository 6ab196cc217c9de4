/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An event file: the counterpart of the kernel's [infinibandevent]. The client gets it as the fd of a completion
 * channel or of an asynchronous event file.
 *
 * The client's fd is one end of a SOCK_SEQPACKET pair. So one read() takes one event, and poll, O_NONBLOCK, signals and
 * dup work as usual. We keep the other end, and a duplicate of the client's end. Through the duplicate we remove the
 * unread events of an object that is destroyed, and learn how many events the client has read. Differences from the
 * kernel's file are listed in docs/abi-differences.md.
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
 * size: bytes of one event, 8 (completion) or 16 (asynchronous). The file has no descriptors yet, but account (or NULL)
 * is charged for them and for the socket's buffer from now on. Takes a reference to account. Returns NULL on failure,
 * and in *err -EMFILE (the user has too many event files or descriptors), -ENOMEM, or -EINVAL (size).
 */
struct uvd_event_file *uvd_event_file_new(size_t size, struct uvd_account *account, int *err);
struct uvd_event_file *uvd_event_file_ref(struct uvd_event_file *f);
void uvd_event_file_put(struct uvd_event_file *f); /* NULL is allowed */

/* Makes the pair. Returns the client's end, which the caller closes once it has passed it on; or a negative errno. */
int uvd_event_file_open(struct uvd_event_file *f);
/*
 * Uses a pair that was made elsewhere (in the client, by a grant). Takes ownership of both fds, and closes them on
 * failure. Returns 0 or a negative errno; -EBUSY: the file has a pair; -EINVAL: theirs is no socket.
 */
int uvd_event_file_adopt(struct uvd_event_file *f, int ours, int theirs);

/* Is *st, from fstat() of a client's fd, the client's end? */
bool uvd_event_file_is(struct uvd_event_file *f, const struct stat *st);
/*
 * Posts one event of the file's size. Never blocks. Returns 0; or drops the event, which the caller may log, and
 * returns -EPIPE (the file is closed) or -EAGAIN (it is full).
 */
int uvd_event_file_post(struct uvd_event_file *f, const void *event);
/*
 * Removes every unread event for which match() returns true, and puts the others back in order. Events that are posted
 * meanwhile follow them. A client can make it wait for ever: call it without a lock that another client needs. Returns how many it removed: the number of events posted less this one is the number of events that the client has
 * read.
 */
unsigned int uvd_event_file_take_back(struct uvd_event_file *f, bool (*match)(const void *event, void *arg), void *arg);
/* Shuts the pair down, as the device file is closed: the client's read() returns 0, and its poll() POLLHUP. */
void uvd_event_file_hang_up(struct uvd_event_file *f);
/* Returns the inode number of the client's end, as /proc shows it for each descriptor of it; 0: there is no pair. */
ino_t uvd_event_file_ino(struct uvd_event_file *f);

#endif
