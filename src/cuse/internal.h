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
#include "cuse/grant.h"
#include "cuse/remote.h"
#include "cuse/split_write.h"
#include "cuse/turns.h"
#include "dispatch/dispatch.h"
#include "util/util.h"

enum {
	MAX_WORKERS = 256,
	MAX_CALLERS = MAX_WORKERS - 32, /* threads that calls may take: the rest is for those who open, and who close */
	MAX_OPENERS = MAX_WORKERS - 16, /* threads that calls and opens may take */
};

/* One open of the node. */
struct cuse_file {
	struct list_head of_node;
	struct uvd_cuse *cuse;
	atomic_int ref; /* the client's open, and each grant under way */
	struct uvd_file *file;
	struct uvd_opener opener;
	pthread_mutex_t peer_lock;
	struct uvd_peer *peer; /* with a broker: the process that called last */
	struct uvd_cuse_writes writes;
};

struct cuse_call {
	struct uvd_call call;
	struct uvd_cuse *cuse;
	struct uvd_peer *peer; /* with a broker: the caller's, once it was asked for */
	struct worker *worker; /* that carries it out; NULL: a grant does, and nobody lets go of it */
};

struct worker {
	struct uvd_worker worker; /* as backends see it */
	bool is_lost; /* its user's share of calls is free again: what it waits for was given up */
	struct uvd_account *blamed; /* who has that call in his share instead; NULL: nobody */
	struct uvd_cuse *cuse;
	pthread_t thread;
	pid_t tid;
	struct cuse_file *file; /* of the call or the open, until it is answered */
	fuse_req_t req;
	struct uvd_claim claim; /* to answer it */
	uint64_t seen_write; /* uvd_cuse_tick(): the claim's state in the write that the worker was in then; 0: none */
	struct fuse_buf buf; /* what it reads */
	struct uvd_turn *turn; /* the request, if that has waited */
	void **memory; /* that the request is in: of buf, or turn. NULL there: a grant has it */
	struct cuse_call *call;
	struct uvd_account *account; /* that the request is charged to; NULL: to none */
	int nice; /* of the thread */
	uint64_t cpu_ns; /* that the thread had used when that was last charged to somebody */
	/* The request that the worker serves, by the kernel's number, and the last one whose client has a signal. 0: none. */
	_Atomic uint64_t unique, interrupted;
	uint64_t seen; /* uvd_cuse_tick(): `unique` then. The same again: stuck in that request for a whole period */
	atomic_bool used, exited;
	atomic_bool leaves; /* exits as soon as it may */
	atomic_ulong served; /* requests */
};

struct uvd_cuse {
	struct uvd_cuse_config config;
	struct uvd_node node;
	struct uvd_remote remote; /* where config.link is set */
	struct uvd_device *dev;
	struct fuse_session *se;
	atomic_bool stopping;
	atomic_bool never_nice; /* threads cannot take back a priority that they gave away */
	atomic_bool aborted; /* by the kernel: whoever waited for an answer has been let go */
	pthread_mutex_t lock; /* files, grants */
	struct list_head files;
	unsigned int num_files;
	struct list_head grants; /* jobs of grants that have not ended */
	struct uvd_turns turns;
	pthread_mutex_t starting; /* who makes a worker; the main thread alone clears one */
	atomic_uint num_workers;
	/*
	 * Workers that read the channel, or will without waiting for any client before. Never none: requests that wait for
	 * nothing (interrupts; opens, where there is no broker) are served at all times.
	 */
	atomic_uint readers;
	unsigned int least_readers, ticks; /* uvd_cuse_tick(): the fewest in so many ticks */
	unsigned long served_before; /* by workers that are gone */
	struct worker workers[MAX_WORKERS];
};

/* ---- ../cuse_dev.c ----------------------------------------------------------------------------------------------- */

extern const struct cuse_lowlevel_ops uvd_cuse_operations;

struct cuse_call *uvd_cuse_call_new(struct uvd_cuse *c);
/* Carries out the request, whose memory is *w->memory, on w's thread. */
void uvd_cuse_process(struct worker *w, const struct fuse_buf *buf);
/* The account that a request on this file is charged to, with a reference. by, tid: the calling thread's. */
struct uvd_account *uvd_cuse_call_account(struct cuse_file *f, uid_t by, pid_t tid);
/* The account of a thread that opens the node, with a reference. NULL: *err says why. */
struct uvd_account *uvd_cuse_open_account(struct uvd_cuse *c, pid_t tid, int *err);
/* Does a grant hold up the client of this request? */
bool uvd_cuse_is_granting(struct uvd_cuse *c, uint64_t unique);
/* Puts a reference to an open file; the last one closes it. */
void uvd_cuse_file_put(struct cuse_file *f);

/* ---- channel.c --------------------------------------------------------------------------------------------------- */

/*
 * Makes the node's session, and makes sure that the node is ours. 0; -EEXIST: the name is taken; another negative errno,
 * logged.
 */
int uvd_cuse_channel_open(struct uvd_node *node, const struct cuse_lowlevel_ops *ops, void *userdata,
			  struct uvd_log *log, struct fuse_session **se);
/* The same of a channel that the broker has made; takes fd over. */
int uvd_cuse_channel_adopt(struct uvd_node *node, const struct cuse_lowlevel_ops *ops, void *userdata, struct uvd_log *log, int fd,
			   struct fuse_session **se);
void uvd_cuse_channel_close(struct uvd_node *node, struct fuse_session **se);

/* ---- workers.c --------------------------------------------------------------------------------------------------- */

/*
 * The worker will wait for a client. False: it must not, as no other is left to read the channel and none can be started, or as
 * `most` workers are away from the channel.
 */
bool uvd_cuse_leave_readers(struct uvd_cuse *c, unsigned int most);
void uvd_cuse_join_readers(struct uvd_cuse *c);
/* false: one does not come back. */
bool uvd_cuse_stop_workers(struct uvd_cuse *c);

/* ---- serve.c ----------------------------------------------------------------------------------------------------- */

/* Serves what the worker has read into its buffer. */
void uvd_cuse_serve(struct worker *w);
/* Charges the processor time that the worker has used since the last time. account NULL: nobody pays. */
void uvd_cuse_spend(struct worker *w, struct uvd_account *account);
/* Carries out the next request that waits and whose turn it is. False: there is none. */
bool uvd_cuse_serve_next(struct worker *w);
/* Answers the requests that wait: the node goes. */
void uvd_cuse_answer_waiting(struct uvd_cuse *c);

#endif
