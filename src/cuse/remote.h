/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Clients of an engine process that has no privileges: whatever is about them comes from the broker (broker/link.h). */
#ifndef UVD_CUSE_REMOTE_H
#define UVD_CUSE_REMOTE_H

#include <pthread.h>
#include "client/client.h"

struct uvd_link;

struct uvd_remote {
	struct uvd_proc calls, opens; /* of threads that wait in calls, and in an open of the node */
	struct uvd_link *link;
};

void uvd_remote_init(struct uvd_remote *r, struct uvd_link *link);
/*
 * The process of the thread that waits in the call: *kept, where it is that one, else asked for and kept there instead. With a
 * reference. NULL: the broker does not give it. lock: of *kept.
 */
struct uvd_peer *uvd_remote_peer(struct uvd_remote *r, struct uvd_caller *c, pthread_mutex_t *lock, struct uvd_peer **kept);
/* As uvd_cuse_write_whole(). */
int uvd_remote_write_whole(struct uvd_remote *r, pid_t tid, uint64_t *addr, size_t *len);

#endif
