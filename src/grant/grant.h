/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Grants, for both transports: what a client that waits in a call on the device gets by a loan of its waiting thread
 * (broker/borrow.h). The thread registers memory with an adapter (broker/register.h). Over CUSE, which cannot pass
 * descriptors, the thread also receives the descriptor of a new event file, on a socket of its own (broker/way.h).
 *
 * A client can be slow, stopped or dying, so each grant runs on a thread of its own, usually for well under a
 * millisecond.
 */
#ifndef UVD_GRANT_H
#define UVD_GRANT_H

#include <stdbool.h>
#include <sys/types.h>
#include "broker/broker.h"
#include "dispatch/dispatch.h"
#include "util/util.h"

struct uvd_account;
struct uvd_grants;
struct uvd_log;

/* A grant waits no longer for its turn: as long as a loan of little memory may last. */
#define UVD_GRANT_TURN_NS UINT64_C(10000000000)

/* The place of a grant among those of its user that wait for a loan. All zero: it does not wait. */
struct uvd_grant_turn {
	struct list_head of_turns;
	struct uvd_account *account; /* a reference */
};

/* One grant. grant.c owns it from uvd_grants_start() until done() is called. */
struct uvd_grant_job {
	struct uvd_call *call; /* uvd_call_is_pending() */
	struct uvd_account *account; /* charged UVD_RES_LOANS until the place is free; NULL: nobody is */
	/*
	 * Answers the system call that the client waits in. Called once per job. Returns nonzero if the client did not
	 * wait any more: then it must be left alone.
	 */
	int (*reply)(struct uvd_grant_job *job, long result);
	/*
	 * Installs our fd in the client, with close-on-exec, while it waits for the answer: for a transport that can do
	 * so, and is the parent of clients. Returns its number there or a negative errno. The registration closes the
	 * number. NULL: the thread receives the descriptor.
	 */
	int (*pass)(struct uvd_grant_job *job, int fd);
	/*
	 * Puts a descriptor that can be mapped in the place of the client's, while the thread is stopped. Returns 0 or a negative errno.
	 * Needed for calls whose grant.replaces is set.
	 */
	int (*replace)(struct uvd_grant_job *job, struct uvd_privilege *p, struct uvd_loan *l);
	struct uvd_grant_turn *turn; /* Used by the start only. */
	unsigned int filters; /* seccomp filters of the transport's clients, which allow ioctl() and close(); 0: none */
	/*
	 * The call has ended. Called once per job, before done() and before the client runs on (unless it already
	 * has). It drops references to what the client may now close.
	 */
	void (*ended)(struct uvd_grant_job *job);
	void (*done)(struct uvd_grant_job *job); /* the last use of the job */
	/* Private to grant.c. */
	struct uvd_grants *grants;
	struct list_head of_grants;
	unsigned int ticks, max_ticks; /* of the loan */
	struct uvd_loan_place place;
	struct uvd_grant_left *left; /* memory for what outlives the job */
	struct uvd_loan *loan; /* while the client's thread is borrowed, for the watchdog; else NULL */
	bool answered;
	bool over; /* the watchdog has ended it */
};

/*
 * Starts the grant on a thread of its own. Returns 0. Or a negative errno if it is refused: then the job stays the caller's, which
 * ends the call with uvd_call_granted(). -EAGAIN: not now. The job waits for its turn from then on: later ones of the same user
 * are refused until it has started, or uvd_grants_turn_end(). Another errno: it cannot start later either.
 */
int uvd_grants_start(struct uvd_grants *g, struct uvd_grant_job *job);
/* Waits until a grant has ended, 5 ms at most: then try again. */
void uvd_grants_wait(struct uvd_grants *g);
void uvd_grants_turn_end(struct uvd_grants *g, struct uvd_grant_turn *turn);
/* Has the caller's thread been killed, or does it wait no more? */
bool uvd_grants_is_killed(struct uvd_grants *g, struct uvd_caller *c);
/* Can a grant that was refused start later? No: clients' threads are not borrowed at all, or no more. */
bool uvd_grants_can_wait(struct uvd_grants *g);
/* Ends a call whose client no longer waits. Does not touch the client: its thread id may be another thread's by now. */
void uvd_grant_give_up(struct uvd_call *call);

/* ---- all grants of a transport --------------------------------------------------------------------------------- */

struct uvd_grant_counters {
	unsigned long granted, fell_back, gone, late, killed;
	unsigned int under_way;
};

/*
 * privilege: how threads are borrowed; it must outlive the grants. enabled false: no client may be traced, so every grant is
 * refused. Returns NULL if there is no memory.
 */
struct uvd_grants *uvd_grants_new(bool enabled, struct uvd_privilege *privilege, struct uvd_log *log);
/* All grants must be done. What loans have left behind is uncharged, and not waited for. */
void uvd_grants_free(struct uvd_grants *g);
/*
 * Refuses new grants and waits for those in progress, `milliseconds` at most, but for no sender. Returns false if some are not
 * done.
 */
bool uvd_grants_drain(struct uvd_grants *g, unsigned int milliseconds);
void uvd_grants_count(struct uvd_grants *g, struct uvd_grant_counters *counters);

#endif
