/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Files of queues (broker/queues.h): in the call that makes its context a client's descriptor of the node is replaced by one of such a file,
 * which it can map. Both are the same open of the device: one struct cuse_file.
 */
#ifndef UVD_CUSE_QUEUES_H
#define UVD_CUSE_QUEUES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "util/util.h"

struct cuse_file;
struct uvd_caller;
struct uvd_cuse;
struct uvd_doorbell_log;
struct uvd_loan;
struct uvd_privilege;

/* The memory of one open of a device, which its client maps. */
struct uvd_cuse_memory {
	pthread_mutex_t lock; /* of what has no comment of its own about that. An inner lock */
	atomic_bool is_made; /* a call makes it: a second one that makes a context at the same moment must not */
	int memfd; /* -1: none, before the context is made. Then it stays */
	int number; /* of the memfd, as the kernel and the broker know it */
	uint64_t next; /* the offset of the next queue: none is used twice */
	struct uvd_cuse_queue {
		uint64_t offset, length;
	} * queues; /* that there are, in the order of their offsets */
	unsigned int num_queues, max_queues;
	struct uvd_account *account; /* charged for the memfd; a reference */
	struct uvd_doorbell_log *_Atomic log; /* of its doorbells; NULL: they are calls */
};

/* The offers of a channel: files that processes of loans are about to open. Under the lock of its struct uvd_cuse. */
struct uvd_cuse_offers {
	struct list_head list;
	uint64_t last; /* name, and inode number */
};

void uvd_cuse_offers_init(struct uvd_cuse_offers *offers);
/* The device's queues can be mapped once the descriptor is replaced. Call it when the node is opened. */
void uvd_cuse_memory_init(struct cuse_file *f);
/* Before a call on the file: hands over the doorbells that were rung before it. */
void uvd_cuse_memory_drain(struct cuse_file *f);
/* Before the device's file is closed, without calls in progress; and after it. */
void uvd_cuse_memory_end_log(struct cuse_file *f);
/* Has the client written where it has no queue? Gives these pages back: a client must not fill the machine's memory by ours. Twice a second. */
void uvd_cuse_memory_look(struct cuse_file *f);
void uvd_cuse_memory_fini(struct cuse_file *f);
/*
 * May the descriptor of this call's thread be replaced? Call it while the thread waits. Returns 0; or -EFBIG: its RLIMIT_FSIZE is finite, and
 * the kernel would end it by SIGXFSZ at a later doorbell.
 */
int uvd_cuse_may_replace(struct uvd_caller *caller);
/* One line that says why a client gets no queues that it can map, and what to do. */
void uvd_cuse_log_not_replaced(struct cuse_file *f, const struct uvd_caller *caller, int err);
/*
 * Replaces the descriptor on which the loan's thread, the caller, has made its call. Returns 0; -EINVAL: another call does
 * so; or another negative errno.
 */
int uvd_cuse_replace(struct cuse_file *f, struct uvd_caller *caller, struct uvd_privilege *p, struct uvd_loan *l);

#endif
