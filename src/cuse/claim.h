/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The claim of a call is the right to answer it. The worker that carries out the call answers it, as a rule. If the
 * client has a signal while the worker waits for the client's memory, the tick (uvd_cuse_tick()) lets the call go: it
 * answers EINTR. The one that takes the claim answers; the other one leaves the client alone.
 *
 * After a call was let go, its thread may run another program, and its thread id may belong to another thread. A write
 * by thread id reaches the thread that has the id when the kernel looks it up, and cannot be undone. So writes have a
 * state of their own: the tick may let go of a call that writes only after it has seen the worker blocked inside the
 * system call (`inside` of uvd_claim_let_go()). By then the kernel has looked up the id, so the data goes to the
 * address space that the call was made from.
 *
 * No locks: the state is atomic. Only uvd_claim_end() waits, until the tick has answered. A call begins with
 * uvd_claim_begin().
 */
#ifndef UVD_CUSE_CLAIM_H
#define UVD_CUSE_CLAIM_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct uvd_claim {
	/*
	 * One of the states below, plus UVD_CLAIM_STATES times the number of calls and writes that have begun. The
	 * number makes the tick's compare-exchange fail if the call or write that the tick has seen is over.
	 */
	atomic_uint_fast64_t state;
};

enum {
	UVD_CLAIM_NONE, /* no call, or it is answered */
	UVD_CLAIM_WORKS, /* the worker carries out the call, and does not write to the client */
	UVD_CLAIM_WRITES, /* the worker writes to the client */
	UVD_CLAIM_TAKEN, /* the worker has the claim, and will answer */
	UVD_CLAIM_LETTING_GO, /* the tick is answering */
	UVD_CLAIM_LET_GO, /* the tick has answered */
	UVD_CLAIM_STATES = 8,
};

static inline unsigned int uvd_claim_state(uint64_t seen)
{
	return seen % UVD_CLAIM_STATES;
}

/* `seen` with another state and the same number of calls. */
static inline uint64_t uvd_claim_with(uint64_t seen, unsigned int state)
{
	return seen - uvd_claim_state(seen) + state;
}

/* For the worker, which alone begins calls and writes. Returns false if the state was not `from`. */
static inline bool uvd_claim_change(struct uvd_claim *c, unsigned int from, unsigned int to)
{
	uint64_t seen = uvd_claim_with(atomic_load(&c->state), from);

	return atomic_compare_exchange_strong(&c->state, &seen, uvd_claim_with(seen, to));
}

static inline void uvd_claim_set(struct uvd_claim *c, unsigned int state)
{
	atomic_store(&c->state, uvd_claim_with(atomic_load(&c->state), state));
}

static inline void uvd_claim_begin(struct uvd_claim *c)
{
	atomic_store(&c->state, uvd_claim_with(atomic_load(&c->state) + UVD_CLAIM_STATES, UVD_CLAIM_WORKS));
}

/* Returns false if the call was let go, or is being let go. */
static inline bool uvd_claim_holds(struct uvd_claim *c)
{
	return uvd_claim_state(atomic_load(&c->state)) < UVD_CLAIM_LETTING_GO;
}

/* The worker calls these two before and after each write to the client. They return false if the call was let go. */
static inline bool uvd_claim_write(struct uvd_claim *c)
{
	uint64_t seen = uvd_claim_with(atomic_load(&c->state), UVD_CLAIM_WORKS);

	return atomic_compare_exchange_strong(&c->state, &seen,
					      uvd_claim_with(seen + UVD_CLAIM_STATES, UVD_CLAIM_WRITES));
}

static inline bool uvd_claim_written(struct uvd_claim *c)
{
	return uvd_claim_change(c, UVD_CLAIM_WRITES, UVD_CLAIM_WORKS);
}

/* The worker takes the claim, so that the call cannot be let go. Returns false if it already was. May be repeated. */
static inline bool uvd_claim_take(struct uvd_claim *c)
{
	return uvd_claim_change(c, UVD_CLAIM_WORKS, UVD_CLAIM_TAKEN) ||
	       uvd_claim_state(atomic_load(&c->state)) == UVD_CLAIM_TAKEN;
}

/* The worker, which has the claim, gives it back without an answer: the call goes on. */
static inline void uvd_claim_give_back(struct uvd_claim *c)
{
	uvd_claim_set(c, UVD_CLAIM_WORKS);
}

/* For the worker, at the end of a call. Returns true if the worker must answer; false: the tick has done so. */
static inline bool uvd_claim_end(struct uvd_claim *c)
{
	bool ours = uvd_claim_take(c);

	while (!ours && uvd_claim_state(atomic_load(&c->state)) != UVD_CLAIM_LET_GO)
		sched_yield();
	uvd_claim_set(c, UVD_CLAIM_NONE);
	return ours;
}

/*
 * The tick takes the claim to let the call go. seen: the claim's state, read before anything else of the call. inside:
 * after that the tick has seen the worker inside the write. Returns true if the tick must answer, and then call
 * uvd_claim_gone(). Returns false if the call cannot be let go now, or if the call or write that `seen` belongs to has
 * ended.
 */
static inline bool uvd_claim_let_go(struct uvd_claim *c, uint64_t seen, bool inside)
{
	if (uvd_claim_state(seen) != UVD_CLAIM_WORKS && !(inside && uvd_claim_state(seen) == UVD_CLAIM_WRITES))
		return false;
	return atomic_compare_exchange_strong(&c->state, &seen, uvd_claim_with(seen, UVD_CLAIM_LETTING_GO));
}

static inline void uvd_claim_gone(struct uvd_claim *c)
{
	uvd_claim_set(c, UVD_CLAIM_LET_GO);
}

#endif
