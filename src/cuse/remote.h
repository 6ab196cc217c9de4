/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Clients of an engine process without privileges, which asks the broker about them (broker/link.h): uvd_cuse_clients_remote. */
#ifndef UVD_CUSE_REMOTE_H
#define UVD_CUSE_REMOTE_H

#include <pthread.h>
#include "client/client.h"

struct uvd_link;

struct uvd_remote {
	struct uvd_proc calls, opens; /* for threads that wait in a call, and in an open of the node */
	struct uvd_link *link;
};

void uvd_remote_init(struct uvd_remote *r, struct uvd_link *link);
/*
 * Returns a reference to the caller's process: *kept, if it is that one; otherwise asks the broker, and keeps the
 * answer in *kept. NULL: the broker does not give it, and *err says why. lock protects *kept; this function takes it.
 */
struct uvd_peer *uvd_remote_peer(struct uvd_remote *r, struct uvd_caller *c, pthread_mutex_t *lock,
				 struct uvd_peer **kept, int *err);
/* Does this errno of uvd_remote_peer() say that uverbsd is short of descriptors, memory or processes? */
bool uvd_remote_is_short(int err);
/* uvd_cuse_write_whole(), through the broker. */
int uvd_remote_write_whole(struct uvd_remote *r, pid_t tid, uint64_t *addr, size_t *len);

#endif
