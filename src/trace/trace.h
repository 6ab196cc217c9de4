/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Recorders: an observer that writes all calls of an engine's clients to a file or a socket, in the format of
 * trace/format.h. A recorder has a ring and a thread. A client never waits for the reader of the trace: what does not
 * fit into the ring is counted, and the trace says so.
 *
 * Meters: an observer that only counts the calls of each verb, with a histogram of how long they took.
 */
#ifndef UVD_TRACE_H
#define UVD_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "trace/format.h"

struct uvd_engine;
struct uvd_recorder;

struct uvd_recorder_config {
	pid_t pid; /* record this process or thread only; 0: all */
	bool one_user; /* record files of the user `uid` only */
	uid_t uid;
	bool explanations; /* record explanations only; they are in other traces, too */
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

/* ---- meters ------------------------------------------------------------------------------------------------------ */

struct uvd_meter;

/*
 * A bucket of the histogram counts durations in ns. Those below 8 ns have a bucket each; above that each power of two
 * has 8 buckets of equal width, so a bucket's limits differ by an eighth at most. The last one, of more than 18 minutes,
 * has no upper limit.
 */
enum {
	UVD_METER_BUCKETS = 304,
	UVD_METER_ERRNOS = 134, /* EHWPOISON is the last one */
	UVD_METER_VERBS = 512, /* of all devices, that a meter counts */
};

/* The calls of one verb of one device since the meter began. */
struct uvd_meter_counts {
	const char *device; /* hfi1_0 */
	const char *object; /* UVERBS_OBJECT_CQ */
	const char *name; /* UVERBS_METHOD_CQ_CREATE, IB_USER_VERBS_CMD_CREATE_CQ */
	uint64_t calls, errors;
	uint64_t total, max; /* ns */
	uint64_t buckets[UVD_METER_BUCKETS]; /* add up to `calls` */
	uint64_t errnos[UVD_METER_ERRNOS]; /* add up to `errors`; 0: of numbers that no errno has */
};

/*
 * Starts to count calls that begin from now on: of all clients, or, if one_user, on files that the user `uid` has
 * opened. Returns NULL on failure: *err is -ENOMEM, or -EBUSY (there are UVD_MAX_COUNTERS meters).
 */
struct uvd_meter *uvd_meter_new(struct uvd_engine *engine, bool one_user, uid_t uid, int *err);
/* Call it before uvd_engine_fini(). NULL is allowed. */
void uvd_meter_free(struct uvd_meter *m);
/*
 * Calls fn for each verb that was called, in no particular order. Holds no lock, and holds up no client. `counts` is valid
 * during fn. Call it on one thread at a time.
 */
void uvd_meter_each(struct uvd_meter *m, void (*fn)(void *arg, const struct uvd_meter_counts *counts), void *arg);
/* Returns how many calls were not counted: they named no verb, or there were more verbs than UVD_METER_VERBS. */
uint64_t uvd_meter_uncounted(const struct uvd_meter *m);
/* Returns the highest duration, in ns, that this bucket counts. */
uint64_t uvd_meter_highest(unsigned int bucket);

#endif
