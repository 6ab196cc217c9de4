/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Writes that CUSE splits: a request has at most 32 pages, so a long command arrives in pieces. A piece must never be
 * parsed as if it were the whole command. While the client waits, /proc/TID/syscall shows the buffer and length of its
 * write(). So at the first piece we read the whole command from the client's memory and carry it out; the other pieces
 * are only acknowledged.
 */
#ifndef UVD_CUSE_WRITE_H
#define UVD_CUSE_WRITE_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "cpu/cpu.h"

/* A request that is not longer than this is whole, whatever the size of a page: 31 pages, as the first page may be used in part. */
enum { UVD_CUSE_WHOLE = 31 * UVD_CPU_PAGE_MIN };
/* A longer write is refused: no command has so many bytes, 65535 words of 8 bytes twice. */
enum { UVD_CUSE_MAX_WRITE = 2 << 20 };

/* The split writes of one open file that are in progress. All zero: none. */
struct uvd_cuse_writes {
	pthread_mutex_t lock;
	unsigned int oldest;
	struct {
		pid_t tid; /* 0: free */
		size_t next, total;
	} slots[8];
};

/* Finds the buffer and length of the write() that the thread waits in. -EINVAL: it waits in another call. */
int uvd_cuse_write_whole(pid_t tid, uint64_t *addr, size_t *len);
/* The command was carried out at its first piece, `size` of `total` bytes: further pieces will arrive. */
void uvd_cuse_write_begun(struct uvd_cuse_writes *w, pid_t tid, size_t size, size_t total);
/* A further piece has arrived. Returns 0, or -EINVAL: it continues no write. */
int uvd_cuse_write_rest(struct uvd_cuse_writes *w, pid_t tid, off_t off, size_t size);

#endif
