/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Movers: threads that move data. A client's memory can be slow for as long as the client likes, and a thread that
 * waits there cannot be called back. So a thread moves data only as a mover, and other threads can take its QPs away:
 *
 *   - A thread that ends the requester takes it away while the mover is in the responder's memory, and goes on.
 *   - A datagram's sender waits for the receiver's memory no longer than drop_ns: then the watcher takes the requester
 *     away, if the thread is blocked. It does not if the thread only waits for a processor. The mover keeps the receiver
 *     and delivers the datagram when the memory answers; others to that receiver are dropped until then.
 *   - If a mover is in one access for longer than patience_ns, the watcher takes both QPs away and fails the transfer:
 *     give_up().
 *
 * A mover that has lost a QP accesses neither the QP nor its work requests any more.
 */
#ifndef UVD_SOFT_MOVER_H
#define UVD_SOFT_MOVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uverbsd/backend.h>
#include <uverbsd/reason.h>

struct soft_qp;

enum {
	/*
	 * Bytes that are moved between two checks of the QPs. A process_vm_* call costs as much as copying 64 KiB. A
	 * quarter of a usual L2 cache holds this.
	 */
	SOFT_CHUNK = 256 * 1024,
	SOFT_MOST_LOST = 8, /* with so many lost movers in one user's memory, those of other users keep out of it */
};

enum soft_place { SOFT_NOWHERE, SOFT_AT_REQUESTER, SOFT_AT_RESPONDER };

/* The result of one access, or of several. */
enum soft_copy_error {
	SOFT_COPY_OK,
	SOFT_COPY_BAD, /* no such memory, or not allowed; at the requester also: a mover is lost there */
	SOFT_COPY_DEAD, /* BAD, as all processes of the address space have exited or left it */
	SOFT_COPY_CUT, /* no access: a QP is reset, destroyed or in error, or a mover is lost at the responder */
	SOFT_COPY_SOURCE, /* the bytes of a struct soft_foreign are gone */
	SOFT_COPY_LOST, /* the mover has lost the requester, and perhaps the responder */
};

/* A QP that a mover works for, with a reference, and those of its fields that this room uses. */
struct soft_party {
	struct soft_qp *qp; /* NULL: none, or it was taken away */
	const atomic_int *state; /* enum ibv_qp_state */
	uid_t user; /* requester: uvd_account_person() of the QP's account; also valid when the QP was taken away */
	atomic_bool *is_slow; /* responder: datagrams are dropped, as a mover with one is stuck in its memory */
};

struct soft_movers;

struct soft_mover {
	struct soft_movers *movers;
	struct soft_mover *next, *next_free; /* the movers' lock */
	struct uvd_worker *worker; /* or NULL */
	pid_t tid; /* of the thread that uses it */
	unsigned int index; /* from 0; the lowest are in use most */
	pthread_mutex_t lock; /* of what follows. May be taken under a QP's. held_up() and given_up() run under it */
	/*
	 * Written by the mover; during an access, by the thread that takes the QP away. The mover has a responder while
	 * it has one claimed, so not between two chunks.
	 */
	struct soft_party requester, responder;
	struct uvd_why
		why; /* the latest refusal of a responder; only the mover uses it. No reason: none since the request began */
	uid_t why_user; /* the user whose responder it was */
	enum soft_place place;
	struct uvd_mm *mm; /* it is in that; NULL: in the engine's memory, or it waits for another mover */
	struct uvd_account *owner; /* of that memory */
	uid_t owner_user; /* uvd_account_person() of it */
	unsigned int nr; /* number of accesses so far */
	bool may_drop; /* it delivers a datagram. Only the mover writes it */
	/* Not NULL: it is in no memory, but waits for the mover with the responder whose is_slow this is. Only it writes this. */
	const atomic_bool *waits_for;
	bool is_foreign; /* it writes the bytes of a struct soft_foreign. Only the mover uses it */
	bool lost; /* the watcher took a QP away, and the mover is not back from that access */
	/* For the watcher: */
	unsigned int seen_nr;
	uint64_t seen_ns;
	bool told; /* held_up() was called; until the mover has another worker */
	uint8_t buffer[SOFT_CHUNK]; /* only the mover uses it */
};

struct soft_movers {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct soft_mover *all, *free;
	unsigned int used; /* number of movers in use */
	unsigned int num; /* of `all` */
	atomic_uint lost; /* number of lost movers */
	pthread_t watcher;
	bool watching, stop;
	bool idle; /* the watcher sleeps until a mover is taken */
	/* Limits for one access, in ns: then the thread is replaced, a datagram dropped, the transfer given up. */
	uint64_t held_up_ns, drop_ns, patience_ns;
	/* Fails a transfer that got stuck at `place`. Takes over both references. Either QP may be NULL. */
	void (*give_up)(struct soft_qp *requester, struct soft_qp *responder, enum soft_place place);
};

void soft_movers_init(struct soft_movers *movers,
		      void (*give_up)(struct soft_qp *requester, struct soft_qp *responder, enum soft_place place));
/* Call after all QPs are destroyed. Returns false if a mover has not come back: then do not free the fabric. */
bool soft_movers_destroy(struct soft_movers *movers);
/*
 * Is m, which works for this requester, blocked in its responder's memory? Not if it only waits for a processor. Needs the
 * watcher, which notes when an access began. May be called under qp->lock.
 */
bool soft_mover_is_stuck(struct soft_mover *m, const struct soft_qp *qp);
/* worker: the caller's, or NULL. Returns NULL if out of memory. */
struct soft_mover *soft_mover_get(struct soft_movers *movers, struct uvd_worker *worker);
void soft_mover_put(struct soft_mover *m);
/* Answers the client's call before work that the client should not wait for (struct uvd_worker.answer). Caller holds no lock. */
static inline void soft_mover_answer(struct soft_mover *m)
{
	if (m->worker && m->worker->answer)
		m->worker->answer(m->worker);
}

/*
 * Call before an access to memory of mm (NULL: the engine's memory, or a wait for another mover) that is charged to
 * owner (NULL: to nobody). If the result is SOFT_COPY_OK, the caller accesses the memory and calls soft_mover_leave();
 * else it does neither. SOFT_COPY_CUT: one of the QPs is reset, destroyed or in error. SOFT_COPY_CUT (at the requester
 * SOFT_COPY_BAD): another mover is lost there.
 */
enum soft_copy_error soft_mover_enter(struct soft_mover *m, enum soft_place place, struct uvd_mm *mm,
				      struct uvd_account *owner);
/* Call after the access. Returns false if the requester was taken away meanwhile, and there is no datagram to deliver. */
bool soft_mover_leave(struct soft_mover *m);
/*
 * Takes the requester away from a mover that is in the responder's memory, so that the caller can end its requests.
 * Caller holds the requester's lock. Returns true if it was taken: then the mover's reference is the caller's.
 */
bool soft_mover_take_requester(struct soft_mover *m, const struct soft_qp *qp);

#endif
