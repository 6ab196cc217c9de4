/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * write()s that CUSE splits: it passes at most 32 pages a request, so a long command arrives in pieces. A command must never
 * be parsed before it is whole, nor taken for whole when it is only the first piece of something longer. While the client
 * waits, the kernel says what it has really asked for (/proc/TID/syscall): so the first piece is the time to read all of
 * it from the client and carry it out; the other pieces are only acknowledged.
 */
#ifndef UVD_CUSE_WRITE_H
#define UVD_CUSE_WRITE_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A request that is not longer than this is whole: 31 pages, as the first page may be used in part. */
enum { UVD_CUSE_WHOLE = 31 * 4096 };

/* The split writes of one open file that are under way. A zeroed one is empty. */
struct uvd_cuse_writes {
	pthread_mutex_t lock;
	unsigned int oldest;
	struct {
		pid_t tid; /* 0: free */
		size_t next, total;
	} slots[8];
};

/* The buffer and length of the write() that the thread waits in. -EINVAL: it is another call, or cannot be told. */
int uvd_cuse_write_whole(pid_t tid, uint64_t *addr, size_t *len);
/* The first piece, `size` of `total` bytes, has been answered for all. */
void uvd_cuse_write_begun(struct uvd_cuse_writes *w, pid_t tid, size_t size, size_t total);
/* A further piece. 0; -EINVAL: it belongs to nothing. */
int uvd_cuse_write_rest(struct uvd_cuse_writes *w, pid_t tid, off_t off, size_t size);

#endif
