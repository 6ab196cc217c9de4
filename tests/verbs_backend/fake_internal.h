/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* fake_verbs.c and fake_queues.c share this. fake_lock protects all of it. */
#ifndef UVD_TESTS_FAKE_INTERNAL_H
#define UVD_TESTS_FAKE_INTERNAL_H

#include <pthread.h>
#include "fake_verbs.h"
#include "util/util.h"

enum { FAKE_CQ_ROOM = 256 };

struct fake_event {
	struct list_head link;
	struct ibv_async_event async;
	void *object; /* the QP or the CQ; NULL: of the device */
};

struct fake_events {
	struct list_head list;
};

struct fake_context {
	struct ibv_context context;
	struct list_head link;
	struct fake_events events;
};

struct fake_channel {
	struct ibv_comp_channel channel;
	struct fake_events events;
};

struct fake_mr {
	struct ibv_mr mr;
	struct list_head link;
};

struct fake_cq {
	struct ibv_cq cq;
	struct ibv_wc wc[FAKE_CQ_ROOM];
	unsigned int num;
	unsigned int unacked;
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

int fake_result(enum fake_call call);
/* Caller of the rest holds fake_lock. */
void fake_events_add(struct fake_events *events, int fd, struct ibv_async_event async, void *object);
bool fake_mr_has(uint32_t lkey, const void *addr, uint32_t length);
struct fake_qp *fake_qp_find(uint32_t qp_num);
void fake_qps_each(void (*fn)(struct fake_qp *qp));
/* Drops the completions of a QP. */
void fake_cq_clean(struct ibv_cq *cq, uint32_t qp_num);
void fake_queue_drop(struct list_head *queue);

#endif
