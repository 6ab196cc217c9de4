/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef UVD_DOORBELL_INTERNAL_H
#define UVD_DOORBELL_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include "dispatch/dispatch.h"
#include "doorbell/doorbell.h"
#include "util/util.h"

struct uvd_doorbell_log {
	struct uvd_doorbells *reader; /* a reference */
	struct uvd_file *file;
	int memfd, number; /* as uvd_doorbell_log_new() gets them */
	uint64_t charged; /* bytes */
	/* Under the reader's lock: */
	struct list_head same_hash;
	struct list_head place; /* in the reader's list `active` or `quiet`; empty: in neither */
	int watch; /* the inotify watch descriptor; -1: none, as the log is quiet */
	bool is_heard; /* an event says that it was written */
	uint64_t quiet_end; /* CLOCK_MONOTONIC, ns; 0: the log is not quiet */
	uint64_t used_at; /* when the reader found something in it last; likewise */
	unsigned int
		pays; /* to look for the next doorbell after one of this log: how many more vain looks it is worth */
	/* Under this lock. It is taken after the reader's, and then only tried. */
	pthread_mutex_t lock;
	struct uvd_call *call;
	uint8_t *window; /* WINDOW bytes of the log, mapped */
	off_t base; /* where in the file the window begins */
	size_t at; /* the next record, bytes from the window's begin */
	size_t given; /* bytes from the window's begin that the kernel has back */
	unsigned int times_quiet; /* in a row */
	unsigned int junk; /* what was no doorbell of a QP, less the doorbells since */
	bool ring_all; /* the next turn rings every QP */
	bool is_odd; /* what is at `at` is no doorbell, and none was found behind it */
	bool is_new; /* the client may have written since; look again */
};

/* ---- log.c ------------------------------------------------------------------------------------------------------- */

/* Caller holds log->lock. Carries out some of the doorbells in the log. Returns false if there were none. */
bool uvd_doorbell_log_turn(struct uvd_doorbell_log *log);
/* Caller holds log->lock. Gives the kernel back all pages outside of the window, which a client has written there. */
void uvd_doorbell_log_trim(struct uvd_doorbell_log *log);

/* Drops a reference of a log. */
void uvd_doorbells_put(struct uvd_doorbells *r);

/* ---- work.c ------------------------------------------------------------------------------------------------------ */

struct uvd_doorbell_works {
	pthread_mutex_t lock; /* all below; the last one to be taken */
	struct uvd_work *list; /* a ring of `max` */
	unsigned int first, num, max;
	unsigned int running; /* works that threads carry out, but for those that are held up */
	pthread_cond_t idle; /* num and running are 0 */
};

/* Initializes a zeroed struct. */
void uvd_doorbell_works_init(struct uvd_doorbell_works *w);
void uvd_doorbell_works_fini(struct uvd_doorbell_works *w);
/* Returns false if there is no memory. */
bool uvd_doorbell_works_add(struct uvd_doorbell_works *w, struct uvd_work work);
/* Returns the oldest work; run is NULL: there is none. If there is one, uvd_doorbell_works_leave() follows. */
struct uvd_work uvd_doorbell_works_take(struct uvd_doorbell_works *w);
/* A work is over, or held up: nobody waits for it any more. */
void uvd_doorbell_works_leave(struct uvd_doorbell_works *w);
bool uvd_doorbell_works_any(struct uvd_doorbell_works *w);
/* Waits until all are over, or held up, or until `end` (CLOCK_MONOTONIC, ns). */
void uvd_doorbell_works_wait(struct uvd_doorbell_works *w, uint64_t end);

/* ---- reader.c ---------------------------------------------------------------------------------------------------- */

/* Has the reader's thread run this work. If there is no memory to note it, runs it. */
void uvd_doorbells_add_work(struct uvd_doorbells *r, struct uvd_work work);
/*
 * Waits until all work is done, but for no longer than 2 ms, and not for work that is held up in a client's memory. Caller holds no lock.
 */
void uvd_doorbells_wait(struct uvd_doorbells *r);
/* Has the reader look at the log from now on, and takes a reference to the reader for it. Returns 0 or a negative errno. */
int uvd_doorbells_add(struct uvd_doorbells *r, struct uvd_doorbell_log *log);
/* The reader looks at the log no more when this returns. The reference stays the log's. */
void uvd_doorbells_remove(struct uvd_doorbells *r, struct uvd_doorbell_log *log);

#endif
