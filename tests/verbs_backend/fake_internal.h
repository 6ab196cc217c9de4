/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* fake_verbs.c, fake_events.c and fake_queues.c share this. fake_lock protects all of it. */
#ifndef UVD_TESTS_FAKE_INTERNAL_H
#define UVD_TESTS_FAKE_INTERNAL_H

#include <pthread.h>
#include "fake_verbs.h"
#include "util/util.h"

enum { FAKE_CQ_ROOM = 256 };

struct fake_context {
	struct ibv_context context;
	struct list_head link;
	int kernel; /* the other end of context.async_fd */
};

/* A completion event. */
struct fake_completion {
	struct list_head link;
	struct fake_cq *cq;
};

struct fake_channel {
	struct ibv_comp_channel channel;
	struct list_head completions;
};

struct fake_mr {
	struct ibv_mr mr;
	struct list_head link;
};

struct fake_cq {
	struct ibv_cq cq;
	struct ibv_wc wc[FAKE_CQ_ROOM];
	unsigned int num;
	unsigned int unacked, async_unacked;
	bool armed;
};

/* A work request in a queue. */
struct fake_request {
	struct list_head link;
	uint64_t wr_id, remote_addr;
	enum ibv_wr_opcode opcode;
	bool signaled;
	struct ibv_sge sge;
};

struct fake_srq {
	struct ibv_srq srq;
	struct ibv_srq_attr attr;
	struct list_head rq;
	unsigned int unacked;
};

struct fake_qp {
	struct ibv_qp qp;
	struct ibv_qp_cap cap;
	struct list_head link, sq, rq;
	uint32_t peer;
	unsigned int unacked;
};

extern pthread_mutex_t fake_lock;
extern const struct ibv_context_ops fake_queue_ops;
extern struct list_head fake_contexts;

int fake_result(enum fake_call call);
/* Caller of the rest holds fake_lock. */
/* Return a descriptor for events. */
int fake_async_open(struct fake_context *c);
int fake_completions_open(struct fake_channel *c);
void fake_async_close(struct fake_context *c);
void fake_completions_close(struct fake_channel *c);
void fake_completion_event(struct fake_cq *cq);
/* As libibverbs before it frees an object: drops its events, and waits until those taken are acknowledged. */
void fake_async_end(struct ibv_context *context, const void *object, const unsigned int *unacked);
void fake_completions_end(struct fake_cq *cq);
bool fake_mr_has(uint32_t lkey, const void *addr, uint32_t length);
struct fake_qp *fake_qp_find(uint32_t qp_num);
/* Drops what is queued. */
void fake_qp_drop(struct fake_qp *qp);
void fake_qps_each(void (*fn)(struct fake_qp *qp));
/* Drops the completions of a QP. */
void fake_cq_clean(struct ibv_cq *cq, uint32_t qp_num);
void fake_queue_drop(struct list_head *queue);

#endif
