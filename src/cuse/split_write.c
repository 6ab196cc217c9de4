/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "cuse/split_write.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "cpu/cpu.h"

int uvd_cuse_write_whole(pid_t tid, uint64_t *addr, size_t *len)
{
	unsigned long nr, fd, buf, count;
	char path[48], line[160];
	int n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/syscall", tid);
	/* The file says "running" until the thread sleeps, and the thread may have to wait for a CPU before that. */
	for (long us = 50; us < 2000000; us *= 2) {
		f = fopen(path, "re");
		if (!f)
			return -EINVAL;
		n = fgets(line, sizeof(line), f) ? sscanf(line, "%lu %lx %lx %lx", &nr, &fd, &buf, &count) : -1;
		fclose(f);
		if (n == 4)
			break;
		nanosleep(&(struct timespec){ .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 }, NULL);
	}
	if (n != 4 || uvd_cpu_call_of(nr) != UVD_CPU_CALL_WRITE || count > UVD_CUSE_MAX_WRITE)
		return -EINVAL;
	*addr = buf;
	*len = count;
	return 0;
}

void uvd_cuse_write_begun(struct uvd_cuse_writes *w, pid_t tid, size_t size, size_t total)
{
	unsigned int i, n = sizeof(w->slots) / sizeof(w->slots[0]), slot = n;

	pthread_mutex_lock(&w->lock);
	for (i = 0; i < n; i++)
		if (w->slots[i].tid == tid || (slot == n && !w->slots[i].tid))
			slot = i;
	/* No slot is free: clients that were killed between two pieces have left theirs behind. */
	if (slot == n)
		slot = w->oldest++ % n;
	w->slots[slot].tid = tid;
	w->slots[slot].next = size;
	w->slots[slot].total = total;
	pthread_mutex_unlock(&w->lock);
}

int uvd_cuse_write_rest(struct uvd_cuse_writes *w, pid_t tid, off_t off, size_t size)
{
	unsigned int i, n = sizeof(w->slots) / sizeof(w->slots[0]);
	int err = -EINVAL;

	pthread_mutex_lock(&w->lock);
	for (i = 0; i < n; i++) {
		if (w->slots[i].tid != tid || !tid || (size_t)off != w->slots[i].next || size > w->slots[i].total - off)
			continue;
		w->slots[i].next += size;
		if (w->slots[i].next == w->slots[i].total)
			w->slots[i].tid = 0;
		err = 0;
	}
	pthread_mutex_unlock(&w->lock);
	return err;
}
