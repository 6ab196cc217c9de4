/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whose turn it is. A user's calls are carried out at once until his share (UVD_RES_CALLS) is in use; further calls wait in a
 * queue of the user's own, first in, first out, and the queues take turns. The last close of a file is no call: it is never
 * refused and takes nothing of the share, but one user has no more than UVD_TURN_CLOSES of them carried out at one time.
 *
 * With a broker an open of the node is a call (serve.c).
 *
 * A request that waits is a copy, charged to its account as UVD_RES_BYTES.
 *
 * Every function may be called from any thread and waits for no client. While nobody has a call that waits, calls take no
 * lock and no memory.
 */
#ifndef UVD_CUSE_TURNS_H
#define UVD_CUSE_TURNS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "account/account.h"
#include "util/util.h"

enum { UVD_TURN_CLOSES = 8, UVD_TURN_BUCKETS = 1024 };

struct turn_user;

/* A request that waits. */
struct uvd_turn {
	struct list_head of_user, of_bucket;
	struct uvd_account *account; /* a reference */
	uint64_t unique; /* the kernel's number of the request */
	bool close;
	size_t size;
	unsigned char request[] __attribute__((aligned(8)));
};

struct uvd_turns {
	atomic_ulong waiting; /* requests in queues */
	pthread_mutex_t lock; /* what follows */
	struct list_head users; /* who have requests that wait, or closes in progress; the first is asked next */
	unsigned int num_users;
	bool ended;
	struct list_head buckets[UVD_TURN_BUCKETS]; /* requests that wait, by unique */
};

void uvd_turns_init(struct uvd_turns *t);
/* Nothing waits or is in progress. */
void uvd_turns_fini(struct uvd_turns *t);

/*
 * A request has come. Returns 0: it is to be carried out now, and uvd_turns_leave() follows. 1: a copy waits. -ENOMEM: the
 * account has too many bytes, or we have; -EIO: it would wait, but uvd_turns_end() was called.
 */
int uvd_turns_enter(struct uvd_turns *t, struct uvd_account *account, bool close, uint64_t unique, const void *request,
		    size_t size);
/* The request was to be carried out and cannot be, as there is no thread: it waits before all others of its user. As above. */
int uvd_turns_postpone(struct uvd_turns *t, struct uvd_account *account, bool close, uint64_t unique, const void *request,
		       size_t size);
/* A request was carried out. The caller looks for the next one that waits: uvd_turns_take(). */
void uvd_turns_leave(struct uvd_turns *t, struct uvd_account *account, bool close);

/* Does any request wait? */
static inline bool uvd_turns_any(struct uvd_turns *t)
{
	return atomic_load_explicit(&t->waiting, memory_order_relaxed);
}

/*
 * Takes the next request whose user has a part of his share free, of the user whose turn it is: to be carried out, with
 * uvd_turns_leave() afterwards. The caller gets turn->account's reference, and the memory, for free(): nobody is charged for it
 * any more. NULL: there is none.
 */
struct uvd_turn *uvd_turns_take(struct uvd_turns *t);
/*
 * The client of this request has a signal. Returns whether the request waits here. *turn: a call, out of its queue now, to be
 * answered and freed; NULL for a close, which is carried out in any case.
 */
bool uvd_turns_interrupt(struct uvd_turns *t, uint64_t unique, struct uvd_turn **turn);
/* No request waits from now on. Takes one of those that do; NULL: that was the last one. */
struct uvd_turn *uvd_turns_end(struct uvd_turns *t);
/* For those that the last two functions return. */
void uvd_turn_free(struct uvd_turn *turn);

#endif
