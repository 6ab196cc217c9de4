/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shares and turns. A user's calls are carried out at once while a part of the user's share (UVD_RES_CALLS) is free.
 * Further calls wait in a FIFO queue of the user's own, and the queues take turns. The last close of a file is not a
 * call: it is never refused and not charged to the share, but at most UVD_TURN_CLOSES closes of one user are carried
 * out at a time. The user is uvd_account_person(): all mapped ids of a user's namespaces have one queue.
 *
 * With a broker an open of the node is a call (serve.c).
 *
 * A request that waits is a copy. A call's copy is charged to its account as UVD_RES_BYTES.
 *
 * Every function may be called from any thread, and waits for no client. While no request waits, a call that may begin
 * takes no lock and no memory.
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

enum { UVD_TURN_CLOSES = UVD_SHARE_CLOSES, UVD_TURN_BUCKETS = 1024 };

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
	pthread_mutex_t lock; /* protects what follows */
	struct list_head users; /* with waiting requests or closes in progress; the first one's turn is next */
	unsigned int num_users;
	bool ended;
	struct list_head buckets[UVD_TURN_BUCKETS]; /* requests that wait, by unique */
	struct turn_user *user_buckets[UVD_TURN_BUCKETS]; /* the users, by id */
};

void uvd_turns_init(struct uvd_turns *t);
/* No request may wait or be in progress. */
void uvd_turns_fini(struct uvd_turns *t);

/*
 * A request has arrived. Returns 0: the caller carries it out now, then calls uvd_turns_leave(); 1: a copy waits;
 * -ENOMEM: the account is at its limit of bytes, or there is no memory; -EIO: it would have to wait, but
 * uvd_turns_end() was called.
 */
int uvd_turns_enter(struct uvd_turns *t, struct uvd_account *account, bool close, uint64_t unique, const void *request,
		    size_t size);
/*
 * For a request that uvd_turns_enter() let begin, but that no thread can carry out: gives its share back, and puts a
 * copy before all others of its user. Returns 1, or an errno as above.
 */
int uvd_turns_postpone(struct uvd_turns *t, struct uvd_account *account, bool close, uint64_t unique,
		       const void *request, size_t size);
/* A request was carried out: gives its share back. The caller then looks for a waiting one: uvd_turns_take(). */
void uvd_turns_leave(struct uvd_turns *t, struct uvd_account *account, bool close);

/* Does any request wait? */
static inline bool uvd_turns_any(struct uvd_turns *t)
{
	return atomic_load_explicit(&t->waiting, memory_order_relaxed);
}

/*
 * Takes the next request whose user has a part of the share free, in the order of turns. The caller carries it out,
 * then calls uvd_turns_leave(), puts turn->account and calls free(turn), whose bytes are not charged any more. NULL:
 * there is none.
 */
struct uvd_turn *uvd_turns_take(struct uvd_turns *t);
/*
 * The client of this request has a signal. Returns whether the request waits here. *turn: a call that has left its
 * queue, which the caller answers and frees with uvd_turn_free(); NULL for a close, which is carried out in any case.
 */
bool uvd_turns_interrupt(struct uvd_turns *t, uint64_t unique, struct uvd_turn **turn);
/* From now on no request is queued. Takes one of those that wait, or returns NULL if there is none. */
struct uvd_turn *uvd_turns_end(struct uvd_turns *t);
/* Frees a turn that one of the last two functions has returned. NULL: nothing. */
void uvd_turn_free(struct uvd_turn *turn);

#endif
