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
 * A call that waits for an event of its file (kind.h) is parked: it has neither a thread nor a part of the share, and is charged as
 * UVD_RES_PARKED until it is answered. When the event has come, it waits for its turn again, and is carried out anew. The worker
 * that parks a call has carried it out before, and does so in this order:
 *
 *	uvd_turn_hold()        the turn is charged, and nobody else knows it
 *	the file's waiter      from now on uvd_turns_ready() may be called, which only notes that the event has come
 *	uvd_turns_park()       the turn is parked, or waits in its queue; the worker must not touch it any more
 *
 * So an interrupt and the end find only calls whose waiter is complete. Those that they take are answered after the waiter has ended
 * (`waits`): that takes the lock of the file's events, under which uvd_turns_ready() is called. So the lock of struct uvd_turns is
 * the inner one, and no function here calls the file.
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
#include "cm/cm.h"
#include "util/util.h"

enum { UVD_TURN_CLOSES = UVD_SHARE_CLOSES, UVD_TURN_BUCKETS = 1024 };

struct turn_user;

enum uvd_turn_state {
	UVD_TURN_QUEUED, /* or taken from its queue */
	UVD_TURN_PARKING, /* held by the worker that parks it */
	UVD_TURN_READY, /* the same, and the event has come */
	UVD_TURN_PARKED,
	UVD_TURN_ENDS, /* was parked; the thread that has taken it ends its waiter */
};

/* A request that waits. */
struct uvd_turn {
	struct list_head of_user, of_bucket; /* a parked one's of_user is in the list of all parked ones */
	struct uvd_account *account; /* a reference */
	uint64_t unique; /* the kernel's number of the request */
	bool close;
	bool held; /* charged as UVD_RES_PARKED, and its bytes are charged while it is carried out, too */
	bool charged; /* its bytes are */
	enum uvd_turn_state state;
	struct uvd_cm_waiter waiter; /* for the transport; used if held */
	size_t size;
	unsigned char request[] __attribute__((aligned(8)));
};

struct uvd_turns {
	atomic_ulong waiting; /* requests in queues */
	pthread_mutex_t lock; /* protects what follows */
	struct list_head users; /* with waiting requests or closes in progress; the first one's turn is next */
	unsigned int num_users;
	struct list_head parked;
	bool ended;
	struct list_head buckets[UVD_TURN_BUCKETS]; /* requests that wait, by unique */
	struct turn_user *user_buckets[UVD_TURN_BUCKETS]; /* the users, by id */
};

void uvd_turns_init(struct uvd_turns *t);
/* No request may wait, be parked or be in progress. */
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
 * then calls uvd_turns_leave(), and parks it or calls uvd_turn_free(). Unless it is held, its bytes are not charged any
 * more, and the caller may instead keep its memory, put turn->account, and call free(turn) later. NULL: there is none.
 */
struct uvd_turn *uvd_turns_take(struct uvd_turns *t);
/*
 * The client of this request has a signal. Returns whether the request waits here. *turn: a call that has left its
 * queue or was parked, which the caller answers and frees with uvd_turn_free(); NULL for a close, which is carried out in
 * any case. Before that the caller ends the turn's waiter if its state is UVD_TURN_ENDS.
 */
bool uvd_turns_interrupt(struct uvd_turns *t, uint64_t unique, struct uvd_turn **turn);
/* From now on no request is queued or parked. Takes one of those that are, as above, or returns NULL if there is none. */
struct uvd_turn *uvd_turns_end(struct uvd_turns *t);
/* Frees a turn, and what it is charged. NULL: nothing. */
void uvd_turn_free(struct uvd_turn *turn);

/* ---- calls that wait for an event: see above -------------------------------------------------------------------------- */

/* Copies a call that was carried out, and charges nothing. Returns NULL if there is no memory. */
struct uvd_turn *uvd_turn_copy(struct uvd_account *account, uint64_t unique, const void *request, size_t size);
/*
 * turn: of uvd_turn_copy() or uvd_turns_take(). Charges it, unless it is held, and begins to park it. Returns 0; -ENOMEM: the
 * account is at its limit of parked calls or of bytes.
 */
int uvd_turn_hold(struct uvd_turn *turn);
/*
 * waits: the file's waiter does; false: the file has an event. Returns 0: the turn is parked; 1: it waits in its queue, before all
 * others of its user; a negative errno: the turn is still the caller's, who ends the waiter, answers the call and frees the turn.
 * -EIO: uvd_turns_end() was called; -ENOMEM.
 */
int uvd_turns_park(struct uvd_turns *t, struct uvd_turn *turn, bool waits);
/*
 * The event has come. Takes no other lock than that of *t, and allocates nothing. Returns true if the turn waits in its queue now: the
 * caller wakes a worker, and must not touch the turn, which may be gone.
 */
bool uvd_turns_ready(struct uvd_turns *t, struct uvd_turn *turn);

#endif
