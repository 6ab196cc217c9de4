/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Doorbells without a call of ours. The provider of rxe rings by a write() of 32 bytes, whose answer it does not need. A transport
 * can let the kernel carry this write() out: the bytes land in the memory of the open file, at the position of the client's struct
 * file, which the transport has set to the begin of a *log* far above the queues. A thread of ours, a *reader*, reads the log as
 * memory, and sleeps on inotify.
 *
 * A log never wraps: a file is so long that no client fills it. The client can write anything there, at any time and at any
 * position, and truncate nothing. So a record counts only if it is a whole doorbell; it names a QP of the same open file, and all
 * that a client can cause is that a QP of its own is looked at.
 *
 * Locking: the functions may be called from any thread. None waits for a client.
 */
#ifndef UVD_DOORBELL_H
#define UVD_DOORBELL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "client/client.h"
#include "core/core.h"

/* Bytes of a doorbell's write(): struct ib_uverbs_cmd_hdr and struct ib_uverbs_post_send. Other commands have 32 bytes, too. */
enum { UVD_DOORBELL_BYTES = 32 };

/* The file of an open that has a log: its queues are below UVD_DOORBELL_QUEUES, its log begins at UVD_DOORBELL_LOG. */
#define UVD_DOORBELL_QUEUES ((off_t)1 << 60)
#define UVD_DOORBELL_LOG ((off_t)1 << 61)
#define UVD_DOORBELL_FILE ((off_t)1 << 62)

/* How doorbells are rung. */
enum uvd_doorbell_way {
	UVD_DOORBELLS_AUTO, /* without an answer wherever that can be */
	UVD_DOORBELLS_CALLS,
};

struct uvd_doorbells; /* a reader, with its thread */
struct uvd_doorbell_log; /* of one open file */

/* How a reader hears of write()s whose process cannot watch files by itself. */
struct uvd_doorbell_ears {
	int inotify; /* an inotify instance; the reader closes it */
	int bell; /* a file that only the reader writes, and that the instance watches (IN_MODIFY); the reader closes it */
	/* Has the instance watch the memory of a log by its number (IN_MODIFY). Returns the watch descriptor, or a negative errno. Waits for nobody. */
	int (*watch)(void *arg, int number);
	void *arg;
};

/* Returns a reader, or NULL. Its thread starts with its first log. ears: NULL: it watches files by itself. If that fails they stay the caller's. */
struct uvd_doorbells *uvd_doorbells_new(struct uvd_log *log, const struct uvd_doorbell_ears *ears);
/* The caller begins no other log. The reader ends after its last log, if it has one. NULL is allowed. Does not wait for its thread. */
void uvd_doorbells_stop(struct uvd_doorbells *r);

/*
 * Can doorbells on this file go without an answer? NULL: yes. Else the reason why they need one, in words for the log: the persona
 * has no mapped queues, the device takes commands by write(), or somebody looks at posts or may refuse them.
 */
const char *uvd_doorbell_refusal(struct uvd_file *file);

/*
 * Begins the log of a file: memfd, of UVD_DOORBELL_FILE bytes, which stays the caller's, must stay open as long. number: for the ears of the reader, if it has some. opener: as whom the doorbells are carried out. Call it
 * before the client has the file. Sets file->logged. Returns 0, or a negative errno: the file is as before.
 */
int uvd_doorbell_log_new(struct uvd_doorbells *r, struct uvd_file *file, int memfd, int number,
			 const struct uvd_caller *opener, struct uvd_doorbell_log **log);
/* Hands over all doorbells that are in the log now: call it before a call on the file, so that the client's order stays. */
void uvd_doorbell_log_drain(struct uvd_doorbell_log *log);
/* Gives the kernel back what the client has written outside of the log's window, from UVD_DOORBELL_LOG on. */
void uvd_doorbell_log_give_back(struct uvd_doorbell_log *log);
/* Ends the log. Call it before the file is closed, without calls in progress. NULL is allowed. */
void uvd_doorbell_log_end(struct uvd_doorbell_log *log);

#endif
