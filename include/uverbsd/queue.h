/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Mapped queues: queues of a client that lie in memory which the client shares with the device. It puts work requests
 * there, and takes completions, without a call. How the entries look is a persona's, how the memory is shared a
 * transport's; a backend sees this interface.
 *
 * The client can write anything there at any time. So the geometry and our own index are in private memory, the client's
 * index is masked, and an entry is copied once before it is looked at.
 *
 * Locking: none. The backend calls the functions of one queue under a lock of its own. None of them waits for a client.
 * The core makes a queue before it creates the backend's object, and frees it after that has been destroyed.
 */
#ifndef UVERBSD_QUEUE_H
#define UVERBSD_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uverbsd/backend.h>

struct uvd_queue_ops;

/* The size of a queue, rounded up to one that its layout has. */
struct uvd_queue_shape {
	uint32_t entries; /* a power of two; one less can be used */
	uint32_t entry_size; /* bytes, a power of two */
	uint32_t max_sge; /* of a work request */
};

enum uvd_queue_kind { UVD_QUEUE_SEND, UVD_QUEUE_RECV, UVD_QUEUE_CQ };

struct uvd_queue {
	const struct uvd_queue_ops *ops;
	enum uvd_queue_kind kind;
	struct uvd_queue_shape shape;
	const struct uvd_device_config *config;
	struct uvd_pd *pd; /* of work requests */
	bool is_ud; /* these name an address */
	uint8_t *memory; /* shared */
	size_t length; /* bytes, whole pages */
	uint64_t offset; /* where the client maps it */
	uint32_t index; /* of the next entry that is ours to read (work requests) or to write (completions) */
	/* The entry that was copied last, and what it was decoded to: */
	struct uvd_ah ah;
	uint8_t *entry; /* shape.entry_size bytes */
};

struct uvd_queue_ops {
	/* How many entries wait for us: at most shape.entries - 1. */
	uint32_t (*count)(const struct uvd_queue *q);
	/*
	 * The work request behind the n oldest: false, there is none. What wr points to stays valid until the next call. What is
	 * not to be understood has num_sge -1, which no backend takes.
	 */
	bool (*peek_send)(struct uvd_queue *q, uint32_t n, struct uvd_send_wr *wr);
	bool (*peek_recv)(struct uvd_queue *q, uint32_t n, struct uvd_recv_wr *wr);
	/* The oldest work request makes way: the client may use its entry again. */
	void (*pop)(struct uvd_queue *q);
	/* False: the client has taken too few, and the completion was not written. */
	bool (*push_wc)(struct uvd_queue *q, const struct ibv_wc *wc);
	/*
	 * What waits in `from` for its consumer (completions for the client, receives for us) goes to `to`, which is empty and
	 * has entries of that size. False: it is too small, and nothing has changed.
	 */
	bool (*move)(struct uvd_queue *from, struct uvd_queue *to);
	/* Writes the header of a new queue. */
	void (*init)(struct uvd_queue *q);
};

#endif
