/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A client process whose memory is accessed through descriptors only: an engine process without privileges has no other
 * way. It is reference counted, and kept for many calls of the process.
 */
#ifndef UVD_CLIENT_PEER_H
#define UVD_CLIENT_PEER_H

#include "client/caller.h"

struct uvd_peer;

/* Descriptors of files below /proc/TID. */
struct uvd_peer_fds {
	int mem, maps, pagemap, statm;
};

/*
 * Takes ownership of the descriptors, and closes them on failure. query: as for uvd_maps_open(). Returns NULL, and sets
 * errno, if there is no memory or no descriptor left, or the process is gone.
 */
struct uvd_peer *uvd_peer_new(pid_t tgid, const struct uvd_peer_fds *fds, bool query);
struct uvd_peer *uvd_peer_ref(struct uvd_peer *p);
void uvd_peer_put(struct uvd_peer *p);

/* Is tid, a thread that waits in a call, of this process, is the process alive, and has the address space users? */
bool uvd_peer_has(const struct uvd_peer *p, pid_t tid);

/* As in struct uvd_mem_ops. uvd_peer_writev() checks that the mappings are writable; reads ignore page protection. */
int uvd_peer_read(struct uvd_peer *p, void *dst, uint64_t src, size_t len);
ssize_t uvd_peer_read_ahead(struct uvd_peer *p, void *dst, uint64_t src, size_t least, size_t most);
int uvd_peer_writev(struct uvd_peer *p, const struct uvd_write_vec *v, unsigned int n);

#endif
