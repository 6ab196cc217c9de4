/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Who answers a call: the worker that carries it out, or, if the client has a signal while the worker waits for the client's
 * memory, the tick, which lets the call go with EINTR. Whoever takes the claim answers; the other one leaves the client alone.
 *
 * Once a call was let go, its thread may run another program, and its number may be another thread's. A write by that number
 * would go to whoever has it when the kernel looks the number up, and cannot be taken back. So writes have a state of their
 * own: the tick may let go of a call that writes only after it has seen the worker blocked within the system call
 * (uvd_claim_let_go(inside)), when the kernel has looked the number up already: what is written then goes to the address
 * space that the call was made from.
 *
 * Lock-free; each function is atomic. A call begins with uvd_claim_begin().
 */
#ifndef UVD_CUSE_CLAIM_H
#define UVD_CUSE_CLAIM_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct uvd_claim {
	/*
	 * One of the states below, and above it how many calls and writes have begun: what the tick has seen in one of them
	 * changes nothing in the next.
	 */
	atomic_uint_fast64_t state;
};

enum {
	UVD_CLAIM_NONE, /* no call, or it is answered */
	UVD_CLAIM_WORKS, /* the worker looks at the client, or at nothing of the client's */
	UVD_CLAIM_WRITES, /* the worker writes to the client */
	UVD_CLAIM_TAKEN, /* the worker will answer, for sure */
	UVD_CLAIM_LETTING_GO, /* the tick is answering */
	UVD_CLAIM_LET_GO, /* the tick has answered */
	UVD_CLAIM_STATES = 8,
};

static inline unsigned int uvd_claim_state(uint64_t seen)
{
	return seen % UVD_CLAIM_STATES;
}

/* The same call, in another state. */
static inline uint64_t uvd_claim_with(uint64_t seen, unsigned int state)
{
	return seen - uvd_claim_state(seen) + state;
}

/* The worker: of its own call, which stays the same meanwhile. */
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

/* Not let go so far? */
static inline bool uvd_claim_holds(struct uvd_claim *c)
{
	return uvd_claim_state(atomic_load(&c->state)) < UVD_CLAIM_LETTING_GO;
}

/* The worker, before and after each write. False: the call was let go, before or meanwhile. */
static inline bool uvd_claim_write(struct uvd_claim *c)
{
	uint64_t seen = uvd_claim_with(atomic_load(&c->state), UVD_CLAIM_WORKS);

	return atomic_compare_exchange_strong(&c->state, &seen, uvd_claim_with(seen + UVD_CLAIM_STATES, UVD_CLAIM_WRITES));
}

static inline bool uvd_claim_written(struct uvd_claim *c)
{
	return uvd_claim_change(c, UVD_CLAIM_WRITES, UVD_CLAIM_WORKS);
}

/* The worker: from now on the call cannot be let go. False: it was. May be asked again. */
static inline bool uvd_claim_take(struct uvd_claim *c)
{
	return uvd_claim_change(c, UVD_CLAIM_WORKS, UVD_CLAIM_TAKEN) ||
	       uvd_claim_state(atomic_load(&c->state)) == UVD_CLAIM_TAKEN;
}

/* The worker has taken the claim, and gives it back without an answer: the call goes on. */
static inline void uvd_claim_give_back(struct uvd_claim *c)
{
	uvd_claim_set(c, UVD_CLAIM_WORKS);
}

/*
 * The worker, at the end. True: it answers. False: the tick has, and is done with it when this returns.
 */
static inline bool uvd_claim_end(struct uvd_claim *c)
{
	bool ours = uvd_claim_take(c);

	while (!ours && uvd_claim_state(atomic_load(&c->state)) != UVD_CLAIM_LET_GO)
		sched_yield();
	uvd_claim_set(c, UVD_CLAIM_NONE);
	return ours;
}

/*
 * The tick. seen: the claim's state before the tick looked at anything else of the call. inside: after that it has seen the worker
 * within the write. False: not now, or the call or the write has ended meanwhile. True: uvd_claim_gone() follows the
 * answer.
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
