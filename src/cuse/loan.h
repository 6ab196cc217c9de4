/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A loan of a client's thread: borrowed by this process (broker/borrow.h), or by the broker for an engine process without
 * privileges. In this order: seize, answer the call that the thread waits in, take, release, close.
 */
#ifndef UVD_CUSE_LOAN_H
#define UVD_CUSE_LOAN_H

#include "broker/broker.h"

struct uvd_event_file;

struct uvd_loan {
	struct uvd_link *link; /* NULL: this process borrows */
	int sock; /* to the broker's process for this loan */
	struct uvd_borrow b; /* with a link: its descriptors, number and `dead` alone */
	bool lost; /* with a link: our table was full when its descriptors came */
	bool killed; /* with a link: the broker has ended the loan, and the client's process with it */
	long way; /* the number in the client, or a negative errno */
	uint64_t cpu_ns; /* of the broker's child, once it has released the client */
};

/* 0 or a negative errno. uvd_loan_close() follows in any case. nice: the priority of a process that borrows. */
int uvd_loan_seize(struct uvd_loan *l, struct uvd_link *link, pid_t tid, int nice);
/*
 * Passes the client's end of `file`, whose pair is made here. Returns its number there; -ESRCH: the thread is dead; another
 * negative errno. From then on l->b.memfd and l->b.mapsfd are the client's memory.
 */
int uvd_loan_take(struct uvd_loan *l, struct uvd_ways *ways, struct uvd_event_file *file);
/* close_it: the number is closed first. Not 0: the thread is dead. */
int uvd_loan_release(struct uvd_loan *l, bool close_it, const long *result);
void uvd_loan_close(struct uvd_loan *l);
/* On any thread, between seize and release: the client's process is killed. The broker does that by itself. */
void uvd_loan_kill(const struct uvd_loan *l);
/* On any thread: is the client's thread being killed? */
bool uvd_loan_dying(struct uvd_link *link, pid_t tid);

#endif
