/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What needs privilege, as a table of operations. A process that has all privileges carries them out itself (local.c). An engine
 * process has none, and asks the broker (link_ops.c). Who starts the process chooses the table, once; nobody else asks which it is.
 */
#ifndef UVD_PRIVILEGE_H
#define UVD_PRIVILEGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "broker/borrow.h"

struct uvd_log;
struct uvd_node;
struct uvd_node_orphans;
struct uvd_owners;
struct uvd_registration;

/*
 * What a loan occupies until its sender has been reaped (broker/way.h), which may be long after its end. -1: nothing of that
 * kind.
 */
struct uvd_loan_place {
	int number; /* of the place, where this process borrows */
	int sock; /* to the broker's process for this loan, where the broker does */
	pid_t pid; /* of that process; 0: there is none */
};

/*
 * A loan of a client's thread. The order: take a place, seize, answer the call that the thread waits in, stop, pass or register,
 * release, close, put the place.
 */
struct uvd_loan {
	struct uvd_loan_place *place;
	struct uvd_borrow b; /* where the broker borrows: only its descriptors, tid and `dead` are used */
	bool lost; /* our descriptor table was full, so the release must close the client's number */
	bool hung_up; /* the broker's process for this loan has hung up, or is dead */
	bool killed; /* the broker has ended the loan, and killed the client's process */
	long number; /* of the adapter's device file, which the transport has passed to the client; -1: it has not */
	long way; /* the descriptor's number in the client, or a negative errno */
	uint64_t cpu_ns; /* used by the broker's child, known after the release */
};

/* The length of the memory of a file of queues, which is sparse: no offset need be used twice. */
#define UVD_BACKING_BYTES ((off_t)1 << 62)

struct uvd_privilege {
	const struct uvd_privilege_ops *ops;
};

struct uvd_privilege_ops {
	/*
	 * Takes what a loan of the thread needs, for its users. Returns 0; -EAGAIN: they have their share, or none is free; or
	 * another negative errno.
	 */
	int (*place_take)(struct uvd_privilege *p, struct uvd_loan_place *place, pid_t tid,
			  const struct uvd_owners *owners);
	/*
	 * Gives it back after the loan. Returns false if its sender, or the broker's process, has not ended: then call it
	 * again.
	 */
	bool (*place_put)(struct uvd_privilege *p, struct uvd_loan_place *place);
	/* Waits until it may be free, if the loan has not waited for that itself. */
	void (*place_wait)(struct uvd_privilege *p, const struct uvd_loan_place *place, unsigned int ms);
	/* Forgets it, at the end of all loans. */
	void (*place_drop)(struct uvd_privilege *p, struct uvd_loan_place *place);
	/*
	 * Begins the loan: *l has its place, `number` and `way`. Returns 0 or a negative errno; close() follows in any case.
	 * nice: the nice value of the broker's child.
	 */
	int (*seize)(struct uvd_privilege *p, struct uvd_loan *l, pid_t tid, int nice);
	/* Waits until the thread has stopped. Returns 0 or a negative errno. */
	int (*stop)(struct uvd_privilege *p, struct uvd_loan *l);
	/*
	 * Passes the descriptor to the stopped thread. fd -1: there is none to pass, -EPERM. Returns its number in the client;
	 * -ESRCH: the thread is dead; or another negative errno. From then on l->b.memfd and l->b.mapsfd reach the client's
	 * memory; -1: there is none.
	 */
	long (*pass)(struct uvd_privilege *p, struct uvd_loan *l, int fd);
	/*
	 * Stops the thread and has it make the registration, instead of stop() and pass(). Sets r->executed. Returns the result
	 * for r->end(). The client keeps no descriptor of it.
	 */
	int64_t (*register_memory)(struct uvd_privilege *p, struct uvd_loan *l, struct uvd_registration *r);
	/*
	 * After pass(), while the thread is stopped: puts the file of queues with this name in the place of the descriptor that the thread's
	 * call is on. The process of l->place->pid opens it meanwhile. position: that of the file, as a power of two; 0: its begin. Returns 0
	 * or a negative errno.
	 */
	int (*replace)(struct uvd_privilege *p, struct uvd_loan *l, uint64_t name, unsigned int position);
	/*
	 * Lets the client's thread run on. close_it: closes the descriptor in the client first. result: what the thread's call
	 * returns instead of the answer; NULL: the answer. Returns nonzero if the thread is dead.
	 */
	int (*release)(struct uvd_privilege *p, struct uvd_loan *l, bool close_it, const long *result);
	void (*close)(struct uvd_privilege *p, struct uvd_loan *l);
	/*
	 * The loan has lasted too long: kills the client's process, and logs that. On any thread, between seize and release.
	 * Returns false if it does nothing, because the broker limits its own loans.
	 */
	bool (*end_overdue)(struct uvd_privilege *p, const struct uvd_loan *l);
	/* On any thread: is the client's thread being killed? */
	bool (*dying)(struct uvd_privilege *p, pid_t tid);
	/* From now on no loan waits for its sender. */
	void (*end_loans)(struct uvd_privilege *p);

	/*
	 * Makes the node of the device with this index. number: of the node; -1: any. Sets *node, and *fd to the channel, which the
	 * caller owns. Returns 0; -EEXIST: the number is taken; or another negative errno.
	 */
	int (*make_node)(struct uvd_privilege *p, unsigned int index, int number, struct uvd_node *node, int *fd);
	/* The same for the node of a User Capability. */
	int (*make_ucap)(struct uvd_privilege *p, const char *name, struct uvd_node *node, int *fd);
	/* The same for the connection manager's. -EEXIST: there is one already; the log has a warning. */
	int (*make_cm)(struct uvd_privilege *p, struct uvd_node *node, int *fd);
	/*
	 * Makes the file system of queues (queues.h), whose channel the caller owns. Returns 0; -EOPNOTSUPP: not with this kernel, or not by this
	 * process; or another negative errno, logged.
	 */
	int (*make_queues)(struct uvd_privilege *p, int *fd);
	/* The memory of a new file there, whose memfd the caller owns, and its number in the answer to the kernel's open. */
	int (*make_backing)(struct uvd_privilege *p, int *number, int *memfd);
	void (*end_backing)(struct uvd_privilege *p, int number);
	/*
	 * An inotify instance, and a file that it watches, which the caller owns; and what has the instance watch such memory. The second one returns
	 * the watch descriptor.
	 */
	int (*make_ears)(struct uvd_privilege *p, int *inotify, int *bell);
	int (*watch_backing)(struct uvd_privilege *p, int number);
	/*
	 * Unlinks the device's node: open files keep working. The broker then takes the device out of the sysfs directory, too.
	 */
	void (*withdraw)(struct uvd_privilege *p, unsigned int index, struct uvd_node *node);
	/* Call it when the node is served no longer, before its channel is closed. */
	void (*end_node)(struct uvd_privilege *p, struct uvd_node *node);

	/* As uvd_peer_owners(). */
	int (*peer_owners)(struct uvd_privilege *p, pid_t pid, uid_t uid, uid_t *uids, unsigned int max);
	/*
	 * As uvd_sockets_in_use(), for all processes but this one. num: from 1 to UVD_WIRE_SOCKETS_MAX. *cpu_ns: processor time that
	 * another process has used for it.
	 */
	int (*sockets_in_use)(struct uvd_privilege *p, const uint64_t *inos, unsigned int num, bool *used,
			      uint64_t *cpu_ns);
	/* Opens a process's file /proc/PID/comm. Returns the descriptor or a negative errno. */
	int (*open_comm)(struct uvd_privilege *p, pid_t pid);
};

/* How a process that makes nodes itself makes them. */
struct uvd_local_nodes {
	unsigned int mode;
	gid_t group; /* -1: unchanged */
	const struct uvd_node_orphans *orphans; /* CUSE devices of dead processes: their names in /dev are free */
};

/*
 * local.c. Changes how this process learns of stopped children (SIGCHLD). nodes, which must stay valid, may be NULL for a process
 * that makes none. Returns NULL if there is no memory. No loan may be left at the end. NULL is allowed there.
 */
struct uvd_privilege *uvd_local_new(const struct uvd_local_nodes *nodes, struct uvd_log *log);
void uvd_local_free(struct uvd_privilege *p);

#endif
