/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Queues of work requests: our own rings, and mapped queues. Whose lock protects them is their owner's matter. */
#ifndef UVD_SOFT_QUEUE_H
#define UVD_SOFT_QUEUE_H

#include <uverbsd/backend.h>
#include <uverbsd/queue.h>
#include "backends/soft/memory/memory.h"

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
/* The entry behind the n oldest, or NULL. */
void *soft_ring_peek(struct soft_ring *ring, unsigned int n);
void soft_ring_pop(struct soft_ring *ring);
/* The next free entry, or NULL; soft_ring_push() then makes it part of the ring. */
void *soft_ring_next(struct soft_ring *ring);
void soft_ring_push(struct soft_ring *ring);
void soft_ring_clear(struct soft_ring *ring);

void soft_sges_copy(struct ibv_sge *dst, const struct ibv_sge *src, int n);
uint64_t soft_sge_length(const struct ibv_sge *sge, int num_sge);
/* So many requests of a mapped queue of this size are copied ahead, at most. */
unsigned int soft_queue_copies(unsigned int size);
/* What waits in a mapped queue is gone. */
void soft_queue_skip(struct uvd_queue *q);
/* Checks a receive and puts it into the ring. */
int soft_queue_recv(struct soft_ring *ring, uint32_t max_sge, const struct uvd_recv_wr *wr);

/*
 * A receive queue, of a QP or shared. That of a client with a mapped queue is there; the ring then has copies of the oldest requests,
 * as they were when they were read. What the client may use again is what has been popped.
 */
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
/* The receive behind the n oldest, n below SOFT_BURST, or NULL. */
struct soft_recv_wqe *soft_rq_peek(struct soft_rq *rq, unsigned int n);
void soft_rq_pop(struct soft_rq *rq);
void soft_rq_clear(struct soft_rq *rq);

#endif
