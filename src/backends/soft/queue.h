/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Queues of work requests: our own rings, and mapped queues. Part of soft.h, which says what is locked when. */
#ifndef UVD_SOFT_QUEUE_H
#define UVD_SOFT_QUEUE_H

#include <uverbsd/backend.h>
#include <uverbsd/queue.h>

struct soft_qp;

/* What is looked up when the bind is carried out: objects may be gone by then. */
struct soft_bind {
	uint64_t mw_serial; /* 0: the window is the one with this key when the bind is carried out */
	uint32_t mw_key;
	uint64_t addr, length;
	uint32_t mw_index, mr_key;
	unsigned int access;
};

struct soft_send_wqe {
	uint64_t wr_id, remote_addr, compare_add, swap;
	uint32_t length, rkey, remote_qpn, remote_qkey, remote_srqn;
	union {
		__be32 imm_data;
		uint32_t invalidate_rkey;
	};
	enum ibv_wr_opcode opcode;
	unsigned int send_flags;
	int num_sge;
	bool is_inline;
	bool is_refused; /* from a mapped queue: no post would have taken it */
	union {
		struct ibv_ah_attr ah;
		struct soft_bind bind;
	};
	union {
		struct ibv_sge sge[0];
		uint8_t data[0];
	};
};

struct soft_recv_wqe {
	uint64_t wr_id;
	int num_sge;
	struct ibv_sge sge[];
};

/* Entries of equal size, allocated when the queue is made. */
struct soft_ring {
	uint8_t *entries;
	size_t entry_size;
	unsigned int size, head, count; /* head: the oldest */
	struct uvd_account *account; /* who pays for it */
};

/* 0 or -ENOMEM. */
int soft_ring_init(struct soft_ring *ring, struct uvd_account *account, unsigned int size, size_t entry_size);
void soft_ring_destroy(struct soft_ring *ring);
/* The oldest entry, or NULL. */
void *soft_ring_peek(struct soft_ring *ring);
void soft_ring_pop(struct soft_ring *ring);
/* The next free entry, or NULL; soft_ring_push() then makes it part of the ring. */
void *soft_ring_next(struct soft_ring *ring);
void soft_ring_push(struct soft_ring *ring);
void soft_ring_clear(struct soft_ring *ring);

/*
 * A send queue, with the QP's lock held. That of a client with a mapped queue is there; qp->sq then has the oldest request
 * only, as it was when it was read.
 */
int soft_sq_init(struct soft_qp *qp);
unsigned int soft_sq_count(const struct soft_qp *qp);
/* The oldest request, or NULL. */
struct soft_send_wqe *soft_sq_peek(struct soft_qp *qp);
void soft_sq_pop(struct soft_qp *qp);
void soft_sq_clear(struct soft_qp *qp);

/* A receive queue, of a QP or shared; the same. */
struct soft_rq {
	struct soft_ring ring;
	struct uvd_queue *mapped;
	uint32_t max_sge;
};

int soft_rq_init(struct soft_rq *rq, struct uvd_account *account, unsigned int size, uint32_t max_sge, struct uvd_queue *mapped);
void soft_rq_destroy(struct soft_rq *rq);
size_t soft_recv_wqe_size(uint32_t max_sge);
unsigned int soft_rq_count(const struct soft_rq *rq);
unsigned int soft_rq_size(const struct soft_rq *rq);
struct soft_recv_wqe *soft_rq_peek(struct soft_rq *rq);
void soft_rq_pop(struct soft_rq *rq);
void soft_rq_clear(struct soft_rq *rq);

#endif
