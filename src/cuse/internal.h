/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The CUSE transport's types and functions that cuse_dev.c (calls), workers.c (threads), serve.c (requests) and session.c (the
 * node) share.
 */
#ifndef UVD_CUSE_INTERNAL_H
#define UVD_CUSE_INTERNAL_H

#define FUSE_USE_VERSION 31
#include <cuse_lowlevel.h>
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdatomic.h>
#include <uverbsd/backend.h>
#include "account/account.h"
#include "broker/broker.h"
#include "cuse/claim.h"
#include "cuse/cuse.h"
#include "cuse/kind.h"
#include "cuse/queues.h"
#include "cuse/remote.h"
#include "cuse/split_write.h"
#include "cuse/turns.h"
#include "dispatch/dispatch.h"
#include "doorbell/doorbell.h"
#include "util/util.h"

enum {
	MAX_WORKERS = UVD_WHOLE_WORKERS,
	MAX_CALLERS = UVD_WHOLE_CALLS, /* that calls may occupy: the rest serves opens and closes */
	MAX_OPENERS = MAX_WORKERS - 16, /* that calls and opens may occupy: the rest serves closes */
};

enum { WORKER_HAS_SIGNAL = 1 /* in `unique` of struct worker */ };

struct cuse_call;

/* clients.c */
struct uvd_cuse_clients {
	const struct uvd_mem_ops *mem; /* the memory of callers */
	void (*begin)(struct uvd_cuse *c); /* sets c->calls and c->opens */
	/* A grant takes the call over from its worker: takes what only the worker can ask for. */
	void (*keep_process)(struct cuse_call *call);
	/* As uvd_cuse_write_whole(). */
	int (*write_whole)(struct uvd_cuse *c, pid_t tid, uint64_t *addr, size_t *len);
	bool open_waits; /* an open asks about the opener, and may wait: it is charged and queued as a call */
	/* An open without a descriptor of the opener's memory is refused: an exec of the opener would go unnoticed. */
	bool opener_has_mm;
	bool writes_by_descriptor; /* of the client's address space, and not by the thread's id */
};

/* One open of a node whose kind has open(). */
struct cuse_file {
	struct list_head of_node;
	struct uvd_cuse *cuse;
	atomic_int ref; /* the client's open, each grant until it has ended, a worker whose call was let go */
	void *priv; /* of the kind: a device's struct uvd_file */
	struct uvd_cuse_memory memory; /* that the client maps */
	struct uvd_opener opener;
	pthread_mutex_t peer_lock;
	struct uvd_peer *peer; /* with a broker: the process that called last */
	struct uvd_cuse_writes writes;
	pthread_mutex_t poll_lock; /* of the next. An inner lock: no other one is taken under it */
	struct fuse_pollhandle *poll; /* by which the kernel is told of events; NULL: nobody has polled yet */
};

struct cuse_call {
	struct uvd_call call;
	struct uvd_cuse *cuse;
	struct uvd_peer *peer; /* with a broker: the caller's process, once it was asked for */
	int no_peer; /* why there is none, a negative errno; 0: not asked for, or there is one */
	struct worker *worker; /* that carries it out; NULL: a grant does, and the tick does not let go of it */
};

struct worker {
	struct uvd_worker worker; /* as backends see it */
	bool is_lost; /* the backend gave up what it waits for, so its user's share of calls is free again */
	struct uvd_account *blamed; /* the account that is charged for that call instead, a reference; NULL: none */
	struct uvd_cuse *cuse;
	pthread_t thread;
	pid_t tid;
	struct cuse_file *file; /* of the call or the open, until it is answered */
	fuse_req_t req;
	struct uvd_claim claim; /* the right to answer req */
	uint64_t seen_write; /* uvd_cuse_tick(): the claim's state if the worker was inside a write then; else 0 */
	struct fuse_buf buf; /* what it has read from the channel */
	struct uvd_turn *turn; /* the request, if it has waited in a queue */
	void **memory; /* points to buf.mem or turn: the request is there; a grant that takes it sets NULL */
	struct cuse_call *call;
	struct uvd_account *account; /* that the request is charged to; NULL: none */
	int nice; /* of the thread */
	uint64_t cpu_ns; /* of the thread, at the last uvd_cuse_spend() */
	/*
	 * The kernel's number of the served request, which is even; 0: none. Plus WORKER_HAS_SIGNAL once its client had a signal: in one
	 * variable, as an interrupt must not get lost between the end of a request and its parking.
	 */
	_Atomic uint64_t unique;
	uint64_t seen; /* uvd_cuse_tick(): the number then. If it has not changed, the worker may be stuck */
	bool waits; /* the call that it has just carried out waits for an event, and has no answer */
	atomic_bool used, exited;
	atomic_bool leaves; /* exits as soon as it may */
	atomic_ulong served; /* requests */
};

struct uvd_cuse {
	struct uvd_cuse_config config;
	struct uvd_node node;
	struct uvd_proc *calls, *opens; /* for threads that wait in a call, and in an open of the node */
	struct uvd_remote remote; /* used by uvd_cuse_clients_remote */
	struct uvd_engine *engine; /* once it is served; its accounts are charged */
	struct uvd_device *dev; /* that the node stands for; NULL: none */
	struct fuse_session *se;
	atomic_bool stopping;
	atomic_bool never_nice; /* threads that raised their nice value cannot lower it again */
	atomic_bool aborted; /* the kernel has ended the session: no client waits for an answer any more */
	pthread_mutex_t lock; /* files, grants */
	struct list_head files;
	unsigned int num_files;
	struct list_head grants; /* jobs of grants that have not ended */
	struct uvd_cuse_offers offers;
	struct uvd_turns turns;
	int wake; /* eventfd: how many idle workers are to look for waiting requests; -1: the kind's calls wait for no event */
	pthread_mutex_t starting; /* held to start or clear a worker; only the main thread clears one */
	atomic_uint num_workers;
	/*
	 * Workers that read the channel, or will read it without waiting for a client before. Never 0: so requests that
	 * wait for nothing (interrupts, and opens without a broker) are always served.
	 */
	atomic_uint readers;
	unsigned int least_readers, ticks; /* uvd_cuse_tick(): the minimum of readers in so many ticks */
	unsigned long served_before; /* requests, by workers that are gone */
	atomic_ulong served_mapped; /* requests on the node's files that came through the channel of queues */
	atomic_uint num_mapped; /* files that the channel of queues has a reference to */
	struct worker workers[MAX_WORKERS];
};

/* ---- ../cuse_dev.c ----------------------------------------------------------------------------------------------- */

extern const struct cuse_lowlevel_ops uvd_cuse_operations;

struct cuse_call *uvd_cuse_call_new(struct uvd_cuse *c);
/* The worker of the calling thread. */
struct worker *uvd_cuse_self(void);
/* Carries out the request in buf, whose memory is *w->memory. The calling thread is w's. */
void uvd_cuse_process(struct worker *w, const struct fuse_buf *buf);
/* Returns a reference to the account that a request on this file is charged to. by, tid: user and id of the caller. */
struct uvd_account *uvd_cuse_call_account(struct cuse_file *f, uid_t by, pid_t tid);
/* Returns a reference to the account of the thread that opens the node, or NULL with *err. */
struct uvd_account *uvd_cuse_open_account(struct uvd_cuse *c, pid_t tid, int *err);
/* Is a grant for this request in progress? */
bool uvd_cuse_is_granting(struct uvd_cuse *c, uint64_t unique);
/* Puts a reference to an open file; the last one closes it. */
void uvd_cuse_file_put(struct cuse_file *f);

/* ---- device.c: calls on an open of a device, see struct uvd_cuse_kind --------------------------------------------- */

long uvd_cuse_device_write(struct cuse_file *f, struct uvd_call *call, const void *data, size_t size);
long uvd_cuse_device_write_from(struct cuse_file *f, struct uvd_call *call, uint64_t addr, size_t size);
long uvd_cuse_device_ioctl(struct cuse_file *f, struct uvd_call *call, unsigned int cmd, uint64_t arg);

/* ---- clients.c --------------------------------------------------------------------------------------------------- */

/* Does the caller's call still wait? */
bool uvd_cuse_call_waits(struct uvd_caller *c);
/* Takes the right to answer the caller's call. Returns false if the tick has taken it. */
bool uvd_cuse_call_claim(struct uvd_caller *c);
/* Puts the call's reference to the caller's process, if it has one. */
void uvd_cuse_drop_peer(struct cuse_call *call);

/* ---- channel.c --------------------------------------------------------------------------------------------------- */

/* Makes a session of the channel: c->se. Takes over fd; if it fails, the node is gone, too. Returns 0 or a negative errno, logged. */
int uvd_cuse_channel_adopt(struct uvd_cuse *c, int fd);
void uvd_cuse_channel_close(struct uvd_cuse *c);

/* ---- poll.c ------------------------------------------------------------------------------------------------------ */

/* Takes over the handle, which replaces the former one. NULL: nothing. */
void uvd_cuse_poll_keep(struct cuse_file *f, struct fuse_pollhandle *handle);
/* Wakes those who poll the file. Under any lock: it waits for nobody. */
void uvd_cuse_notify(struct cuse_file *f);
/* From now on nobody is woken. Call it before the session is freed, and before the file is. */
void uvd_cuse_poll_end(struct cuse_file *f);

/* ---- workers.c --------------------------------------------------------------------------------------------------- */

/*
 * The calling worker leaves the readers, as it may wait for a client; uvd_cuse_join_readers() takes it back. Returns
 * false if it must not leave: `most` workers are away from the channel, or it is the last reader and no other can be
 * started.
 */
bool uvd_cuse_leave_readers(struct uvd_cuse *c, unsigned int most);
void uvd_cuse_join_readers(struct uvd_cuse *c);
/* Has an idle worker, or the next one that becomes idle, look for waiting requests. Under any lock. The node has c->wake. */
void uvd_cuse_wake(struct uvd_cuse *c);
/* The number of the request that the worker serves; 0: none. */
static inline uint64_t uvd_cuse_unique(struct worker *w)
{
	return atomic_load(&w->unique) & ~(uint64_t)WORKER_HAS_SIGNAL;
}

static inline bool uvd_cuse_has_signal(struct worker *w)
{
	return atomic_load(&w->unique) & WORKER_HAS_SIGNAL;
}
/* Returns false if a worker does not come back. */
bool uvd_cuse_stop_workers(struct uvd_cuse *c);

/* ---- serve.c ----------------------------------------------------------------------------------------------------- */

/* Serves the request that the worker has read into its buffer. */
void uvd_cuse_serve(struct worker *w);
/* Charges the CPU time that the worker has used since the last such call. account NULL: charges nobody. */
void uvd_cuse_spend(struct worker *w, struct uvd_account *account);
/* Carries out the waiting request whose turn it is. Returns false if none may begin, or no other worker reads. */
bool uvd_cuse_serve_next(struct worker *w);
/* Answers all waiting requests, before the end of the node. */
void uvd_cuse_answer_waiting(struct uvd_cuse *c);

#endif
