/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Files of queues (broker/queues.h): in the call that makes its context a client's descriptor of the node is replaced by one of such a file,
 * which it can map. Both are the same open of the device: one struct cuse_file.
 */
#ifndef UVD_CUSE_QUEUES_H
#define UVD_CUSE_QUEUES_H

#include <stdatomic.h>
#include <stdint.h>
#include "util/util.h"

struct cuse_file;
struct uvd_cuse;
struct uvd_loan;
struct uvd_privilege;

/* The memory of one open of a device, which its client maps. */
struct uvd_cuse_memory {
	int memfd; /* -1: none, before the context is made */
	int number; /* of the memfd, as the kernel and the broker know it */
	_Atomic uint64_t next; /* the offset of the next queue: none is used twice */
	struct uvd_account *account; /* charged for the memfd; a reference */
};

/* The offers of a channel: files that processes of loans are about to open. Under the lock of its struct uvd_cuse. */
struct uvd_cuse_offers {
	struct list_head list;
	uint64_t last; /* name, and inode number */
};

void uvd_cuse_offers_init(struct uvd_cuse_offers *offers);
/* The device's queues can be mapped once the descriptor is replaced. Call it when the node is opened. */
void uvd_cuse_memory_init(struct cuse_file *f);
void uvd_cuse_memory_fini(struct cuse_file *f);
/* Replaces the descriptor on which the loan's thread has made its call. Returns 0 or a negative errno. */
int uvd_cuse_replace(struct cuse_file *f, struct uvd_privilege *p, struct uvd_loan *l);

#endif
