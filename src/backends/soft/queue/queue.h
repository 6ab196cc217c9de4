/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Queues of work requests: own rings and mapped queues. No locking here: the owner of a queue protects it. */
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
	enum ibv_wc_status refusal; /* not IBV_WC_SUCCESS: an invalid request, which fails with it when it is tried */
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
	struct uvd_account *account; /* charged for the entries */
};

/* Returns 0 or -ENOMEM. */
int soft_ring_init(struct soft_ring *ring, struct uvd_account *account, unsigned int size, size_t entry_size);
void soft_ring_destroy(struct soft_ring *ring);
/* Returns the entry behind the n oldest, or NULL. */
void *soft_ring_peek(struct soft_ring *ring, unsigned int n);
void soft_ring_pop(struct soft_ring *ring);
/* Returns the next free entry, or NULL. soft_ring_push() then adds it to the ring. */
void *soft_ring_next(struct soft_ring *ring);
void soft_ring_push(struct soft_ring *ring);
void soft_ring_clear(struct soft_ring *ring);

void soft_sges_copy(struct ibv_sge *dst, const struct ibv_sge *src, int n);
uint64_t soft_sge_length(const struct ibv_sge *sge, int num_sge);
/* Returns how many requests of a mapped queue of this size can be copied ahead. */
unsigned int soft_queue_copies(unsigned int size);
/* Drops all requests that wait in a mapped queue. */
void soft_queue_skip(struct uvd_queue *q);
/* Checks a receive and adds it to the ring. Returns 0, -EINVAL, or -ENOMEM if the ring is full. */
int soft_queue_recv(struct soft_ring *ring, uint32_t max_sge, const struct uvd_recv_wr *wr);

/*
 * A receive queue of a QP or an SRQ. If it is mapped, the requests are in the mapped queue, and the ring has copies of
 * the oldest ones, as they were when they were read. The client may reuse an entry once it has been popped.
 */
struct soft_rq {
	struct soft_ring ring;
	struct uvd_queue *mapped; /* or NULL */
	uint32_t max_sge;
};

int soft_rq_init(struct soft_rq *rq, struct uvd_account *account, unsigned int size, uint32_t max_sge,
		 struct uvd_queue *mapped);
void soft_rq_destroy(struct soft_rq *rq);
size_t soft_recv_wqe_size(uint32_t max_sge);
unsigned int soft_rq_count(const struct soft_rq *rq);
unsigned int soft_rq_size(const struct soft_rq *rq);
/* Returns the receive behind the n oldest, or NULL. n must be below SOFT_BURST. */
struct soft_recv_wqe *soft_rq_peek(struct soft_rq *rq, unsigned int n);
void soft_rq_pop(struct soft_rq *rq);
void soft_rq_clear(struct soft_rq *rq);

#endif
