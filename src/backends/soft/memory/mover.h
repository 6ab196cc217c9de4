/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Who moves data, and in whose memory. A client's memory can be slow for as long as the client likes, and the thread that waits
 * there cannot be called back. So whoever moves data does so as a mover, which others can take its QPs from:
 *
 *   - The end of the requester takes that away while the mover is in the responder's memory, and goes on.
 *   - A datagram whose receiver's memory is slow is dropped: the requester is taken away after a while (drop_ns).
 *   - Once a mover has been in the same access for too long (patience_ns), both are taken away, and the transfer fails: give_up().
 *
 * A mover that has lost a QP touches nothing of it any more, nor of its work requests.
 */
#ifndef UVD_SOFT_MOVER_H
#define UVD_SOFT_MOVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uverbsd/backend.h>

struct soft_qp;

enum {
	/*
	 * Bytes that are moved between two looks at the QPs. A process_vm call costs as much as 64 KiB of copying, and a quarter of a
	 * usual L2 cache holds this.
	 */
	SOFT_CHUNK = 256 * 1024,
	SOFT_MOST_LOST = 8, /* movers that wait in one account's memory after they were given up, before others keep out of it */
};

enum soft_place { SOFT_NOWHERE, SOFT_AT_REQUESTER, SOFT_AT_RESPONDER };

/* What became of an access, or of several. */
enum soft_copy_error {
	SOFT_COPY_OK,
	SOFT_COPY_BAD, /* the client has no such memory, or may not use it so, or it answers nobody */
	SOFT_COPY_DEAD, /* nor any more: its processes have exited */
	SOFT_COPY_CUT, /* nothing was done: one of the QPs is reset, destroyed or in error, or the responder's memory answers nobody */
	SOFT_COPY_SOURCE, /* struct soft_foreign: they are gone */
	SOFT_COPY_LOST, /* the mover has lost the requester, and perhaps the responder */
};

/* A QP that a mover works for, with a reference, and what others see of it. */
struct soft_party {
	struct soft_qp *qp; /* NULL: none, or it was taken away */
	const atomic_int *state; /* enum ibv_qp_state */
	const struct uvd_account *account; /* of a requester: who pays for the QP */
	atomic_bool *is_slow; /* of a responder: datagrams are dropped, as the mover has let go of one */
};

struct soft_movers;

struct soft_mover {
	struct soft_movers *movers;
	struct soft_mover *next, *next_free; /* the movers' lock */
	struct uvd_worker *worker; /* or NULL */
	pthread_mutex_t lock; /* what follows. Taken under a QP's lock; under it only the users' (users.c) */
	/*
	 * Written by the mover, or by who takes it away while the mover is somewhere. The responder is there while the mover has
	 * claimed it: between chunks it has not.
	 */
	struct soft_party requester, responder;
	enum soft_place place;
	struct uvd_mm *mm; /* where it is; NULL: it waits for others, or its memory is ours */
	struct uvd_account *owner; /* of that memory */
	unsigned int nr; /* counts accesses */
	bool may_drop; /* it is a datagram. The mover's alone */
	bool is_foreign; /* what it writes are the bytes of a struct soft_foreign. The mover's alone */
	bool lost; /* something was taken away by the watcher, and the mover is not back */
	/* The watcher's: */
	unsigned int seen_nr;
	uint64_t seen_ns;
	bool told; /* the worker; it stays so until the mover has another */
	uint8_t buffer[SOFT_CHUNK]; /* the mover's alone */
};

struct soft_movers {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct soft_mover *all, *free;
	unsigned int used;
	atomic_uint lost;
	pthread_t watcher;
	bool watching, stop;
	bool idle; /* the watcher sleeps until a mover is taken */
	/* How long a mover is in one access before its thread is replaced, a datagram dropped, and the transfer given up. */
	uint64_t held_up_ns, drop_ns, patience_ns;
	/* The transfer at `place` has failed. Takes both references over; either may be NULL. */
	void (*give_up)(struct soft_qp *requester, struct soft_qp *responder, enum soft_place place);
};

void soft_movers_init(struct soft_movers *movers,
		     void (*give_up)(struct soft_qp *requester, struct soft_qp *responder, enum soft_place place));
/* No QP is left, and so no mover has one. Returns false if one has not come back: then the fabric has to stay. */
bool soft_movers_destroy(struct soft_movers *movers);
/* NULL: no memory. */
struct soft_mover *soft_mover_get(struct soft_movers *movers, struct uvd_worker *worker);
void soft_mover_put(struct soft_mover *m);
/* Answers the client's call before work that the client should not wait for (struct uvd_worker.answer). Caller holds no lock. */
static inline void soft_mover_answer(struct soft_mover *m)
{
	if (m->worker && m->worker->answer)
		m->worker->answer(m->worker);
}

/*
 * Before an access to memory of mm (NULL: a wait for others), which belongs to owner (NULL: nobody pays). There is none, and no
 * soft_mover_leave(), unless the result is SOFT_COPY_OK: one of the QPs is gone (CUT), or another mover is lost there (CUT; at the
 * requester BAD).
 */
enum soft_copy_error soft_mover_enter(struct soft_mover *m, enum soft_place place, struct uvd_mm *mm, struct uvd_account *owner);
/* After it. False: the requester was taken away meanwhile. */
bool soft_mover_leave(struct soft_mover *m);
/*
 * With the requester's lock held, by whoever ends its requests: takes the QP away from a mover that is in the responder's memory.
 * The reference is the caller's then.
 */
bool soft_mover_take_requester(struct soft_mover *m, const struct soft_qp *qp);

#endif
