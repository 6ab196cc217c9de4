/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Mapped queues lie in memory that a client shares with the engine. The client puts work requests there, and takes
 * completions, without a call. The persona defines the layout of the entries and the transport shares the memory; a
 * backend only uses this interface.
 *
 * The client can write anything to that memory at any time. So the geometry and the engine's own index are in private
 * memory, the client's index is masked, and an entry is copied once before it is parsed.
 *
 * A send queue has requests for the engine once a doorbell was accepted. Those whose doorbell was refused are dropped.
 *
 * Locking: none. The backend calls the functions of one queue under a lock of its own. They never wait for a client.
 * Ownership: the core creates a queue before the backend's object and frees it after that object was destroyed.
 */
#ifndef UVERBSD_QUEUE_H
#define UVERBSD_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uverbsd/backend.h>

struct uvd_queue_ops;

/* The size of a queue, rounded up to a size that its layout supports. */
struct uvd_queue_shape {
	uint32_t entries; /* a power of two; one entry stays unused */
	uint32_t entry_size; /* bytes, a power of two */
	uint32_t max_sge; /* scatter/gather entries of a work request */
};

enum uvd_queue_kind { UVD_QUEUE_SEND, UVD_QUEUE_RECV, UVD_QUEUE_CQ };

struct uvd_queue {
	const struct uvd_queue_ops *ops;
	enum uvd_queue_kind kind;
	struct uvd_queue_shape shape;
	const struct uvd_device_config *config;
	struct uvd_pd *pd; /* the PD of work requests; NULL for a CQ */
	bool is_ud; /* work requests name an address */
	uint8_t *memory; /* shared with the client */
	size_t length; /* bytes, whole pages */
	uint64_t offset; /* bytes: where the client maps it in the device's file */
	uint32_t index; /* of the next entry that the engine reads (work requests) or writes (completions) */
	/*
	 * Send queues: the entries from `index` up to `accepted` were handed over by doorbells. Of these, num_dropped
	 * belong to doorbells that were refused; `dropped` has a bit for each entry of the queue.
	 */
	uint32_t accepted, num_dropped;
	uint64_t *dropped;
	/* A copy of the entry that was peeked last, and the address that was decoded from it. */
	struct uvd_ah ah;
	uint8_t *entry; /* shape.entry_size bytes */
	/*
	 * While *watched is not 0, the persona calls tell() for each work request that it decodes (struct uvd_send_wr or
	 * uvd_recv_wr) and each completion that it writes (struct ibv_wc), under the backend's lock of the queue. If
	 * both are NULL, init() lets `watched` point to a 0.
	 */
	const unsigned int *watched;
	void (*tell)(struct uvd_queue *q, const void *what);
	/*
	 * Send queues: nobody answers doorbells, so the client does not learn that one was refused. looks_full: the client finds the
	 * queue full, so that its provider refuses posts.
	 */
	bool unanswered, looks_full;
};

static inline bool uvd_queue_is_watched(const struct uvd_queue *q)
{
	return __builtin_expect(__atomic_load_n(q->watched, __ATOMIC_RELAXED) != 0, 0);
}

/* Returns the bytes of struct uvd_queue.dropped: 0 but for a send queue. */
static inline size_t uvd_queue_dropped_size(enum uvd_queue_kind kind, const struct uvd_queue_shape *shape)
{
	return kind == UVD_QUEUE_SEND ? (shape->entries + 63) / 64 * sizeof(uint64_t) : 0;
}

struct uvd_queue_ops {
	/*
	 * Returns how many entries wait for the engine: at most shape.entries - 1. Of a send queue: those that were
	 * accepted.
	 */
	uint32_t (*count)(const struct uvd_queue *q);
	/*
	 * Decode the n-th oldest work request, from 0, into *wr. Return false if there is none. What wr points to stays
	 * valid until the next call. A malformed request gets num_sge -1, which every backend refuses. A trace shows
	 * each request that is decoded, so a backend decodes each once.
	 */
	bool (*peek_send)(struct uvd_queue *q, uint32_t n, struct uvd_send_wr *wr);
	bool (*peek_recv)(struct uvd_queue *q, uint32_t n, struct uvd_recv_wr *wr);
	/* Removes the oldest work request: the client may reuse its entry. */
	void (*pop)(struct uvd_queue *q);
	/* Send queues: accepts the requests that the client has added by now. Reads the client's index once. */
	void (*accept)(struct uvd_queue *q);
	/*
	 * Send queues: drops the requests that the client has added since the last accept() or drop(). The client may
	 * reuse their entries once the requests before them were removed.
	 */
	void (*drop)(struct uvd_queue *q);
	/*
	 * Writes a completion. Returns false, with nothing written, if the queue is full because the client has not
	 * taken enough.
	 */
	bool (*push_wc)(struct uvd_queue *q, const struct ibv_wc *wc);
	/*
	 * Copies the entries that wait in `from` for its consumer (completions for the client, receives for the engine)
	 * to `to`, which is empty and has entries of the same size. Returns false, with nothing changed, if they do not
	 * fit.
	 */
	bool (*move)(struct uvd_queue *from, struct uvd_queue *to);
	/* Writes the header of a new queue into its memory. */
	void (*init)(struct uvd_queue *q);
	/*
	 * Send queues: the QP takes posts from now on, or does not. If doorbells are not answered (`unanswered`) the queue
	 * looks full to the client meanwhile.
	 */
	void (*take_posts)(struct uvd_queue *q, bool takes);
};

#endif
