/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A loan of a client's thread. This process borrows the thread (broker/borrow.h), or the broker does for an engine
 * process without privileges. The order: take a place, seize, answer the call that the thread waits in, take, release,
 * close, give the place back.
 */
#ifndef UVD_GRANT_LOAN_H
#define UVD_GRANT_LOAN_H

#include "broker/broker.h"

struct uvd_account;
struct uvd_event_file;
struct uvd_loan_place;
struct uvd_registration;

struct uvd_loan {
	struct uvd_link *link; /* NULL: this process borrows */
	struct uvd_loan_place *place;
	struct uvd_borrow b; /* with a link: only its descriptors, tid and `dead` are used */
	bool lost; /* with a link: our descriptor table was full, so the release must close the client's number */
	bool hung_up; /* with a link: the broker's process for this loan has hung up, or is dead */
	bool killed; /* with a link: the broker has ended the loan, and killed the client's process */
	long number; /* of the adapter's device file, which the transport has passed to the client; -1: it has not */
	long way; /* the descriptor's number in the client, or a negative errno */
	uint64_t cpu_ns; /* used by the broker's child, known after the release */
};

/*
 * Takes what a loan of the thread needs, for the account's users. Returns 0; -EAGAIN: they have their share, or none is free; or
 * another negative errno.
 */
int uvd_loan_place_take(struct uvd_loan_place *place, struct uvd_link *link, struct uvd_ways *ways, pid_t tid,
			const struct uvd_account *account);
/* Gives it back after the loan. Returns false if its sender, or the broker's process, has not ended: then call it again. */
bool uvd_loan_place_put(struct uvd_loan_place *place, struct uvd_ways *ways);
/* Waits until it may be free. With a link only: else the loan itself has waited for its sender. */
void uvd_loan_place_wait(const struct uvd_loan_place *place, unsigned int ms);
/* Forgets it, at the end of all loans. */
void uvd_loan_place_drop(struct uvd_loan_place *place);

/* Returns 0 or a negative errno; uvd_loan_close() follows in any case. nice: the nice value of the broker's child. */
int uvd_loan_seize(struct uvd_loan *l, struct uvd_link *link, struct uvd_loan_place *place, pid_t tid, int nice);
/*
 * Makes the socket pair of `file` and passes the client's end. Returns its number in the client; -ESRCH: the thread is
 * dead; or another negative errno. From then on l->b.memfd and l->b.mapsfd reach the client's memory; -1: there is
 * none.
 */
int uvd_loan_take(struct uvd_loan *l, struct uvd_ways *ways, struct uvd_event_file *file);
/*
 * Has the thread make the registration, instead of uvd_loan_take(). Sets r->executed. Returns the result for
 * r->end(). The client keeps no descriptor of it.
 */
int64_t uvd_loan_register(struct uvd_loan *l, struct uvd_ways *ways, struct uvd_registration *r);
/*
 * Lets the client's thread run on. close_it: closes the descriptor in the client first. result: what the thread's call
 * returns instead of the answer; NULL: the answer. Returns nonzero if the thread is dead.
 */
int uvd_loan_release(struct uvd_loan *l, bool close_it, const long *result);
void uvd_loan_close(struct uvd_loan *l);
/* Kills the client's process. On any thread, between seize and release. With a link: nothing, the broker does it. */
void uvd_loan_kill(const struct uvd_loan *l);
/* On any thread: is the client's thread being killed? */
bool uvd_loan_dying(struct uvd_link *link, pid_t tid);

#endif
