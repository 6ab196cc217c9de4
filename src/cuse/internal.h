/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The CUSE transport's types and functions that cuse_dev.c (calls), workers.c (threads) and session.c (the node) share. */
#ifndef UVD_CUSE_INTERNAL_H
#define UVD_CUSE_INTERNAL_H

#define FUSE_USE_VERSION 31
#include <cuse_lowlevel.h>
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdatomic.h>
#include "broker/broker.h"
#include "cuse/claim.h"
#include "cuse/cuse.h"
#include "cuse/grant.h"
#include "cuse/remote.h"
#include "cuse/split_write.h"
#include "dispatch/dispatch.h"
#include "util/util.h"

enum { MAX_WORKERS = 32 /* with those that uvd_cuse_tick() adds */ };

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
	struct uvd_cuse *cuse;
	pthread_t thread;
	pid_t tid;
	struct cuse_file *file; /* of the call, until it is answered */
	fuse_req_t req;
	struct uvd_claim claim; /* to answer it */
	atomic_ulong writes; /* to clients, so far */
	unsigned long seen_write; /* uvd_cuse_tick(): the one that the worker was in then; 0: none */
	atomic_bool interrupted; /* the client has a signal, or was killed */
	struct fuse_buf buf; /* the request */
	struct cuse_call *call;
	bool extra; /* exits when it is not needed any more */
	atomic_bool used, busy, exited;
	atomic_ulong begun, served; /* requests */
	unsigned long seen; /* uvd_cuse_tick(): `begun` then. The same again: stuck in that request for a whole period */
};

struct uvd_cuse {
	struct uvd_cuse_config config;
	struct uvd_node node;
	struct uvd_remote remote; /* where config.link is set */
	struct uvd_device *dev;
	struct fuse_session *se;
	atomic_bool stopping;
	atomic_bool aborted; /* by the kernel: whoever waited for an answer has been let go */
	pthread_mutex_t lock; /* files */
	struct list_head files;
	unsigned int num_files;
	struct worker workers[MAX_WORKERS]; /* set up and cleared by the main thread alone */
};

/* ---- ../cuse_dev.c ----------------------------------------------------------------------------------------------- */

extern const struct cuse_lowlevel_ops uvd_cuse_operations;

struct cuse_call *uvd_cuse_call_new(struct uvd_cuse *c);
/* Carries out the request in w->buf, on w's thread. */
void uvd_cuse_process(struct worker *w);
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

/* false: one does not come back. */
bool uvd_cuse_stop_workers(struct uvd_cuse *c);

#endif
