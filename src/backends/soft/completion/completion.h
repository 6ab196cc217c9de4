/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completion queues, and the handlers that completions and events make due. Completions are added under QP locks. The
 * thread that added them calls the handlers that are due after it has released all locks.
 */
#ifndef UVD_SOFT_COMPLETION_H
#define UVD_SOFT_COMPLETION_H

#include "backends/backends.h"
#include "backends/soft/queue/queue.h"

struct soft_cq {
	struct uvd_cq cq;
	struct uvd_cq_ring ring;
};

/*
 * An explanation that waits until no lock is held. It has been allocated with malloc(). As long as `ref` is held, which is of a QP or an SRQ,
 * the context stays open.
 */
struct soft_explained {
	struct soft_explained *next;
	struct uvd_ibdev *dev;
	struct uvd_context *context; /* NULL: of nobody in particular */
	struct soft_ref *ref;
	struct uvd_explained explained;
};

/* Handlers to call once no lock is held. There is room for the CQs and events of the two QPs of one work request. */
struct soft_due {
	struct soft_cq *cqs[8];
	unsigned int num_cqs;
	struct {
		struct uvd_qp *qp;
		enum ibv_event_type type;
	} events[8];
	unsigned int num_events;
	struct uvd_srq *limit_reached;
	struct soft_explained *explained; /* the latest first */
};

int soft_create_cq(struct uvd_cq *cq, struct uvd_udata *udata);
int soft_destroy_cq(struct uvd_cq *cq);
uint64_t soft_query_cq_lost(struct uvd_cq *cq);
int soft_poll_cq(struct uvd_cq *cq, int n, struct ibv_wc *wc);
int soft_req_notify_cq(struct uvd_cq *cq, bool solicited_only);
int soft_resize_cq(struct uvd_cq *cq, int cqe, struct uvd_udata *udata);
int soft_replace_cq_queue(struct uvd_cq *cq, struct uvd_queue **queue);
/* Adds a completion to cq, unless that is NULL, and notes in due whether handlers are to be called. */
void soft_cq_add(struct uvd_cq *cq, const struct ibv_wc *wc, bool solicited, struct soft_due *due);
void soft_due_event(struct soft_due *due, struct uvd_qp *qp, enum ibv_event_type type);
/* Takes over e, and takes a reference to e->ref. */
void soft_due_explain(struct soft_due *due, struct soft_explained *e);
void soft_due_srq_limit(struct soft_due *due, struct uvd_srq *srq);
/* Calls the handlers and empties due. Caller holds no lock. */
void soft_due_run(struct soft_due *due);

#endif
