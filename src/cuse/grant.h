/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A grant over CUSE gives the descriptor of a new event file to a client that waits in a call on the device. CUSE
 * cannot pass descriptors, so we borrow the waiting thread (broker/borrow.h), which receives the descriptor on a
 * socket of its own (broker/way.h). In the same way the waiting thread makes a registration with an adapter
 * (broker/register.h).
 *
 * A client can be slow, stopped or dying, so each grant runs on a thread of its own, usually for well under a
 * millisecond.
 */
#ifndef UVD_GRANT_H
#define UVD_GRANT_H

#include <stdbool.h>
#include "dispatch/dispatch.h"
#include "util/util.h"

struct uvd_account;
struct uvd_loan;
struct uvd_grants;

/* One grant. grant.c owns it from uvd_grants_start() until done() is called. */
struct uvd_grant_job {
	struct uvd_call *call; /* grant.uobj is set */
	struct uvd_account *account; /* charged UVD_RES_LOANS until the job is done; NULL: nobody is */
	/*
	 * Answers the system call that the client waits in. Called once per job. Returns nonzero if the client did not
	 * wait any more: then it must be left alone.
	 */
	int (*reply)(struct uvd_grant_job *job, long result);
	/*
	 * The call has ended. Called once per job, before done() and before the client runs on (unless it already
	 * has). It puts our references to what the client may close then.
	 */
	void (*ended)(struct uvd_grant_job *job);
	void (*done)(struct uvd_grant_job *job); /* the last use of the job */
	/* Private to grant.c. */
	struct uvd_grants *grants;
	struct list_head of_grants;
	unsigned int ticks;
	struct uvd_loan *loan; /* while the client's thread is borrowed, for the watchdog; else NULL */
	bool answered;
	bool over; /* the watchdog has ended it */
};

/*
 * Starts the grant on a thread of its own. Returns false if it is refused: then the job stays the caller's, which ends
 * the call with uvd_call_granted(call, -EPERM).
 */
bool uvd_grants_start(struct uvd_grants *g, struct uvd_grant_job *job);
/* Can a grant that was refused start later? No: clients' threads are not borrowed at all, or no more. */
bool uvd_grants_can_wait(struct uvd_grants *g);
/* Ends a call whose client no longer waits. Does not touch the client: its thread id may be another thread's by now. */
void uvd_grant_give_up(struct uvd_call *call);

#endif
