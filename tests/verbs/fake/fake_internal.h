/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The files of the adapter share this. fake_lock protects all of it. */
#ifndef UVD_TESTS_FAKE_INTERNAL_H
#define UVD_TESTS_FAKE_INTERNAL_H

#include <pthread.h>
#include "fake_verbs.h"
#include "util/util.h"

enum { FAKE_CQ_ROOM = 256 };

struct fake_context {
	struct list_head link;
	int kernel; /* the other end of the context's async_fd */
	struct verbs_context verbs;
};

/* A completion event. */
struct fake_completion {
	struct list_head link;
	struct fake_cq *cq;
};

static inline struct fake_context *fake_context(struct ibv_context *context)
{
	return container_of(verbs_get_ctx(context), struct fake_context, verbs);
}

struct fake_channel {
	struct ibv_comp_channel channel;
	struct list_head completions;
};

struct fake_mr {
	struct ibv_mr mr;
	struct list_head link;
	struct fake_dm *dm; /* of device memory: addresses are offsets from `bytes`; else NULL */
	char *bytes;
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

struct fake_xrcd;

struct fake_srq {
	struct ibv_srq srq;
	struct ibv_srq_attr attr;
	struct list_head link, rq; /* link: of XRC SRQs */
	struct fake_xrcd *xrcd; /* XRC; else NULL */
	struct ibv_cq *cq;
	uint32_t num;
	unsigned int unacked;
};

struct fake_qp {
	struct ibv_qp qp;
	struct ibv_qp_cap cap;
	struct list_head link, sq, rq;
	uint32_t peer;
	struct fake_xrcd *xrcd; /* of an XRC target; else NULL */
	struct ibv_rwq_ind_table *table; /* or NULL */
	unsigned int unacked;
};

struct fake_wq {
	struct ibv_wq wq;
	struct list_head link;
	unsigned int users, unacked; /* users: entries of tables */
};

extern pthread_mutex_t fake_lock;
extern const struct ibv_context_ops fake_queue_ops;
extern struct list_head fake_contexts;
extern uint32_t fake_numbers; /* the last QP, SRQ or key */

int fake_result(enum fake_call call);
/* Returns zeroed memory for an object, or NULL with errno set. */
void *fake_new(enum fake_call call, size_t size);
void fake_free(void *object);
void fake_qps_begin(void);
struct fake_qp *fake_qp_new(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr);
struct fake_srq *fake_srq_new(struct ibv_pd *pd, void *srq_context, const struct ibv_srq_attr *attr);
struct ibv_qp *fake_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
void fake_dm_ops(struct verbs_context *verbs);
void fake_flow_ops(struct verbs_context *verbs);
void fake_wq_begin(void);
void fake_wq_ops(struct verbs_context *verbs);
/* A QP begins (1) or ends (-1) to use the table, which may be NULL. */
void fake_table_use(struct ibv_rwq_ind_table *table, int n);
/* Gives the region a key and lists it. */
void fake_mr_add(struct fake_mr *mr);
void fake_dm_leave(struct fake_dm *dm);
void fake_xrc_begin(void);
void fake_xrc_ops(struct verbs_context *verbs);
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
struct fake_srq *fake_srq_find(uint32_t srq_num);
struct fake_wq *fake_wq_find(uint32_t wq_num);
void fake_srq_leave_domain(struct fake_srq *srq);
void fake_qp_enter_domain(struct fake_qp *qp, struct ibv_xrcd *xrcd);
void fake_qp_leave_domain(struct fake_qp *qp);
/* Completes the first receive of the queue with a message of another QP. Returns 0, or -1: there is none. */
int fake_receive(struct list_head *rq, struct ibv_cq *cq, uint32_t qp_num, const void *data, uint32_t length);
bool fake_mr_has(uint32_t lkey, uint64_t addr, uint32_t length);
/* Returns the place of the bytes at this address. */
void *fake_mr_bytes(uint32_t lkey, uint64_t addr);
struct fake_qp *fake_qp_find(uint32_t qp_num);
/* Drops what is queued. */
void fake_qp_drop(struct fake_qp *qp);
void fake_qps_each(void (*fn)(struct fake_qp *qp));
/* Drops the completions of a QP. */
void fake_cq_clean(struct ibv_cq *cq, uint32_t qp_num);
void fake_queue_drop(struct list_head *queue);

#endif
