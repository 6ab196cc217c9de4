/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Recorders: an observer that writes all calls of an engine's clients to a file or a socket, in the format of
 * trace/format.h. A recorder has a ring and a thread. A client never waits for the reader of the trace: what does not
 * fit into the ring is counted, and the trace says so.
 */
#ifndef UVD_TRACE_H
#define UVD_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "trace/format.h"

struct uvd_engine;
struct uvd_recorder;

struct uvd_recorder_config {
	pid_t pid; /* record this process or thread only; 0: all */
	bool one_user; /* record files of the user `uid` only */
	uid_t uid;
	size_t ring; /* bytes; 0: the default. At least UVD_RECORDER_MIN_RING */
	const char *greeting; /* text that precedes the trace; NULL: none */
	/* Stores the name of a process's program, or "" if it is not known. NULL: it never is. On a client's thread. */
	void (*program)(void *arg, pid_t pid, char *name, size_t size);
	void *arg;
};

enum { UVD_RECORDER_RING = 4 << 20, UVD_RECORDER_MIN_RING = 2 * UVD_TRACE_MAX_RECORD };

/*
 * Starts to record. Takes over fd, which may be a file, a pipe or a socket; it is set to O_NONBLOCK. The caller copies
 * nothing: config may go. Returns NULL on failure: *err is -ENOMEM, -EBUSY (too many observers) or another negative
 * errno, and fd is still the caller's.
 */
struct uvd_recorder *uvd_recorder_new(struct uvd_engine *engine, int fd, const struct uvd_recorder_config *config,
				      int *err);
/* Returns true if the reader closed its end or a write failed. The recorder then records nothing more. */
bool uvd_recorder_ended(struct uvd_recorder *r);
/*
 * Stops to record, and writes what is in the ring. Gives a reader at most two seconds to take it. Call it before
 * uvd_engine_fini(). NULL is allowed. Returns 0, or the negative errno of a write that failed.
 */
int uvd_recorder_free(struct uvd_recorder *r);

#endif
