/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The broker's child processes, which may wait for a client: one for each socket of the engine process. Internal. */
#ifndef UVD_BROKER_CHILD_H
#define UVD_BROKER_CHILD_H

#include "broker/owners.h"
#include "broker/waiting.h"
#include "broker/wire.h"

struct uvd_log;
struct uvd_nodes;
struct uvd_ways;

/* A child inherits these from the broker. */
struct uvd_child_files {
	const struct uvd_nodes *nodes;
	struct uvd_ways *ways;
	int queues; /* the root of the file system of queues; -1: there is none. A loan's process alone has it. */
};

/* The thread of a loan. The broker charges its users before it starts the child. */
struct uvd_borrower {
	pid_t tid;
	struct uvd_owners owners;
};

/* A word in the page that a child for a loan shares with the broker, beside the registration of its thread. */
enum {
	UVD_LOAN_MIB = (1 << 30) - 1, /* the bits of that */
	UVD_LOAN_OVER = 1 << 30, /* the loan is over: the child waits for nothing but its own exit */
};
#define UVD_LOAN_PASSED \
	(UINT32_C(1) \
	 << 31) /* the thread registers, so the child has sent the descriptor and holds no file of the client's */

/*
 * Each serves the socket until the engine process closes it or breaks the protocol; uvd_loan_serve() ends after one
 * loan, of this thread. registers: as in struct uvd_child. The caller of uvd_questions_serve() has taken UVD_PROCESS_QUESTIONS;
 * uvd_loan_serve() drops the capabilities that its loan does not need. The caller exits afterwards, and may wait in that for a
 * file of the client's.
 */
void uvd_questions_serve(int sock, const struct uvd_nodes *nodes);
void uvd_loan_serve(int sock, const struct uvd_borrower *borrower, const struct uvd_child_files *files,
		    _Atomic uint32_t *registers);

/* ---- children.c: the list of them, in the broker ----------------------------------------------------------------------- */

enum {
	UVD_QUESTIONS_MAX =
		256, /* of one engine process: a limit for each kind, so that loans leave room for questions */
	UVD_CHILDREN_MAX =
		UVD_LOANS_MAX + 2 * UVD_QUESTIONS_MAX, /* loans; questions, with those of earlier engine processes */
	UVD_LOANS_OF_USER = UVD_LOANS_MAX / 4,
};

struct uvd_children {
	uint32_t most_mib; /* that all loans together may register: the machine's memory */
	struct uvd_child {
		pid_t pid; /* 0: free */
		int sock; /* the broker's duplicate, for uvd_children_hang_up() */
		bool old; /* its engine process has ended, but a client's memory may hold it up */
		uint64_t began; /* a loan: ms; 0: it may go on */
		/*
		 * A loan: a page that it shares with the broker alone. MiB that the client's thread registers at this moment;
		 * afterwards those for whose registration it would have had the time that it took; else 0.
		 */
		_Atomic uint32_t *registers;
		struct uvd_owners owners; /* a loan: of the borrowed thread, whatever engine process has asked for it */
	} list[UVD_CHILDREN_MAX];
};

/* Returns how many ms a loan gets that registers so much memory: a registration can pin and clear many pages. */
uint64_t uvd_loan_ms(uint32_t mib);
/* The MiB that a loan must register to get so many ms more than others. */
uint32_t uvd_loan_mib(uint64_t ms);
/* Sets the machine's limits. */
void uvd_children_init(struct uvd_children *c);
/*
 * Starts a child that serves the socket, which stays the caller's. tid: the thread of a loan. A child for a loan counts
 * until it has been reaped. A user has UVD_LOANS_OF_USER of them, of which UVD_WAY_SHARE may hold a file of the client's. Returns
 * its pid; -EAGAIN: there are too many of this kind, or too many of the thread's users; -ESRCH: there is no such thread;
 * -EINVAL: the kind is CONTROL; or another negative errno.
 */
int uvd_children_start(struct uvd_children *c, enum uvd_wire_kind kind, int sock, pid_t tid,
		       const struct uvd_child_files *files);
/* Frees the entry of a child that was reaped; ignores other processes. */
void uvd_children_ended(struct uvd_children *c, pid_t pid);
/*
 * Kills the children whose loans take too long. A loan has more time only while the client's thread is in the registration, and
 * all loans together not more than it takes to register the machine's memory: an engine process that an attacker controls may
 * order any registration of a client that helps it. A child that a file of the client's holds up stays in the list.
 */
void uvd_children_check(struct uvd_children *c, struct uvd_log *log);
/*
 * Call after the engine process has ended, or is dead and cannot exit. Shuts down all children's sockets, so that
 * they end even if a dead engine process still has the other ends open. Those for questions no longer count: a client whose
 * memory holds them up takes none from the next engine process, until as many as an engine process may have are held up.
 */
void uvd_children_hang_up(struct uvd_children *c);
/* Closes the broker's duplicates of the sockets. Call in a new engine process. */
void uvd_children_close(struct uvd_children *c);

/*
 * sandbox.c. Drops the capabilities that the role does not need, sets no_new_privs, and for QUESTIONS loads a filter
 * of system calls. Returns false if that fails: the process must not go on.
 */
enum uvd_process_role { UVD_PROCESS_BROKER, UVD_PROCESS_QUESTIONS, UVD_PROCESS_LOAN, UVD_PROCESS_ENGINE };
bool uvd_process_role_take(enum uvd_process_role role);

#endif
