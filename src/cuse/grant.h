/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Grants over CUSE: a new event file's fd for a client that waits in a call on the device. CUSE cannot pass one, so the
 * waiting thread is borrowed (broker/borrow.h) and receives it by a socket of its own (broker/way.h).
 *
 * A client can be slow, stopped or dying, so each grant has a thread of its own, for well under a millisecond as a rule.
 */
#ifndef UVD_GRANT_H
#define UVD_GRANT_H

#include <stdbool.h>
#include "dispatch/dispatch.h"
#include "util/util.h"

struct uvd_account;
struct uvd_loan;
struct uvd_grants;

/* One grant. Belongs to the grant from uvd_grants_start() until done() is called. */
struct uvd_grant_job {
	struct uvd_call *call; /* grant.uobj is set */
	struct uvd_account *account; /* who pays for the loan: UVD_RES_LOANS, until the job is done; NULL: nobody */
	/*
	 * Answers the system call that the client waits in; once a job. Not 0: the client was not waiting any more, and must
	 * be left alone.
	 */
	int (*reply)(struct uvd_grant_job *job, long result);
	/*
	 * The call has ended; once a job, before done(). The client runs on after this (unless it had gone already), and what
	 * it closes then must find no reference of ours.
	 */
	void (*ended)(struct uvd_grant_job *job);
	void (*done)(struct uvd_grant_job *job); /* the last use of the job */
	/* The grant's own. */
	struct uvd_grants *grants;
	struct list_head of_grants;
	unsigned int ticks;
	struct uvd_loan *loan; /* while the thread is ours, for the watchdog; NULL before and afterwards */
	bool answered;
	bool over; /* the watchdog has ended it */
};

/* false: refused, the job is untouched. The caller ends the call with uvd_call_granted(call, -EPERM). */
bool uvd_grants_start(struct uvd_grants *g, struct uvd_grant_job *job);
/* Ends a call whose client does not wait any more: its memory, its thread's id may be anything by now. */
void uvd_grant_give_up(struct uvd_call *call);
/* The memory of such a client: EFAULT. */
extern const struct uvd_mem_ops uvd_grant_no_memory;

#endif
