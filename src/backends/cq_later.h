/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completions that a filter delays. A ring holds them in their order, and a thread of the device puts them into the
 * queue when their time has come. While a ring holds one, all later completions of the CQ wait behind it.
 */
#ifndef UVD_CQ_LATER_H
#define UVD_CQ_LATER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <uverbsd/backend.h>
#include "util/util.h"

struct uvd_cq_ring;

/* A device has one. */
struct uvd_cq_later {
	pthread_mutex_t lock; /* taken under a ring's lock; a leaf */
	pthread_cond_t changed;
	struct list_head rings; /* those that hold completions */
	struct uvd_cq_ring *current; /* the ring that the thread is at */
	pthread_t thread;
	bool running, stop;
};

struct uvd_cq_held {
	struct ibv_wc wc;
	uint64_t due_ns; /* CLOCK_MONOTONIC */
	bool solicited;
};

/* A ring holds these. Under the ring's lock; of_later, due_ns and listed also under the lock of uvd_cq_later. */
struct uvd_cq_wait {
	struct uvd_cq_later *later; /* NULL: the backend delays no completions. Constant */
	struct uvd_cq_held *held;
	unsigned int size, head, num; /* head: the oldest */
	struct list_head of_later;
	uint64_t due_ns; /* of the oldest */
	bool listed;
};

void uvd_cq_later_init(struct uvd_cq_later *later);
/* Ends the thread. All rings must have been destroyed. */
void uvd_cq_later_fini(struct uvd_cq_later *later);

/* uvd_backend.carry_completion of a backend that delays completions: delays none. */
void uvd_cq_carry_completion(struct uvd_completion *completion);
/*
 * Asks the filters, and holds the completion if they delay it, or if older ones are held. Returns false if it is due
 * now, and nothing is held: without room for it, older ones have been queued early, and *notify says whether
 * uvd_cq_ring_notify() is due. Caller holds ring->lock.
 */
bool uvd_cq_later_holds(struct uvd_cq_ring *ring, const struct ibv_wc *wc, bool solicited, bool *notify);
/*
 * Forgets what the ring holds, and waits until the thread has left the ring. Caller holds no lock; nobody adds to the
 * ring.
 */
void uvd_cq_later_forget(struct uvd_cq_ring *ring);

#endif
