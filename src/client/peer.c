/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/client.h"
#include "client/internal.h"
#include "util/util.h"

enum { PEER_KEPT = 8 /* for a program's stack and heap, and a few mappings of its libraries */ };

struct uvd_peer {
	atomic_int refs;
	pid_t tgid;
	struct uvd_peer_fds fds;
	int pidfd;
	bool query; /* the kernel has PROCMAP_QUERY */
	pthread_mutex_t lock; /* without PROCMAP_QUERY: protects the members below, and the position in fds.maps */
	/*
	 * Cache of private mappings that were writable. Without it, reading the text of all mappings for each response
	 * would take ten times as long as the call. The cache is valid while the process has the same amount of private
	 * writable memory: mmap(), munmap() and mprotect() change that amount. A client can defeat this by a second
	 * change that makes up for the first, or in its stack. It gains nothing: a forced write changes only its own
	 * memory, because the kernel forces no write to a shared mapping.
	 */
	unsigned long data; /* that amount in pages, from statm; 0: unknown */
	struct uvd_mapping kept[PEER_KEPT];
	unsigned int num_kept, next_kept;
};

static void peer_fds_close(const struct uvd_peer_fds *fds)
{
	close(fds->mem);
	close(fds->maps);
	close(fds->pagemap);
	close(fds->statm);
}

struct uvd_peer *uvd_peer_new(pid_t tgid, const struct uvd_peer_fds *fds, bool query)
{
	struct uvd_peer *p = calloc(1, sizeof(*p));
	struct uvd_mapping m;
	struct uvd_maps maps;
	int pidfd = syscall(SYS_pidfd_open, tgid, 0);

	if (!p || pidfd < 0) {
		free(p);
		if (pidfd >= 0)
			close(pidfd);
		peer_fds_close(fds);
		return NULL;
	}
	*p = (struct uvd_peer){ .refs = 1,
				.tgid = tgid,
				.fds = { .mem = uvd_fd_raise(fds->mem),
					 .maps = uvd_fd_raise(fds->maps),
					 .pagemap = uvd_fd_raise(fds->pagemap),
					 .statm = uvd_fd_raise(fds->statm) },
				.pidfd = uvd_fd_raise(pidfd) };
	pthread_mutex_init(&p->lock, NULL);
	/* This look-up clears maps.query if the kernel lacks PROCMAP_QUERY. */
	uvd_maps_from_fd(&maps, p->fds.maps, query);
	(void)uvd_maps_find(&maps, 0, &m);
	p->query = maps.query;
	return p;
}

struct uvd_peer *uvd_peer_ref(struct uvd_peer *p)
{
	atomic_fetch_add(&p->refs, 1);
	return p;
}

void uvd_peer_put(struct uvd_peer *p)
{
	if (!p || atomic_fetch_sub(&p->refs, 1) != 1)
		return;
	peer_fds_close(&p->fds);
	close(p->pidfd);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static bool peer_gone(const struct uvd_peer *p)
{
	struct pollfd poll_ = { .fd = p->pidfd, .events = POLLIN };

	return poll(&poll_, 1, 0) != 0;
}

bool uvd_peer_has(const struct uvd_peer *p, pid_t tid)
{
	/*
	 * EPERM also means that the thread belongs to the process: the kernel checks that before the permission. While
	 * the process lives, p->tgid is its own.
	 */
	if (tid != p->tgid && syscall(SYS_tgkill, p->tgid, tid, 0) && errno != EPERM)
		return false;
	return !peer_gone(p) && uvd_mmfd_alive(p->fds.pagemap);
}

int uvd_peer_read(struct uvd_peer *p, void *dst, uint64_t src, size_t len)
{
	return uvd_memfd_read(p->fds.mem, dst, src, len);
}

ssize_t uvd_peer_read_ahead(struct uvd_peer *p, void *dst, uint64_t src, size_t least, size_t most)
{
	ssize_t n = pread(p->fds.mem, dst, most, (off_t)src);

	return n < (ssize_t)least ? -EFAULT : n;
}

/* ---- may memory be written? ---------------------------------------------------------------------------------------- */

static bool may_be_written(const struct uvd_mapping *m, uint64_t end, void *arg)
{
	return m->write;
}

static int look_at(struct uvd_maps *maps, struct uvd_mapping *last, uint64_t addr, uint64_t end)
{
	int err;

	if (end < addr)
		return -EFAULT;
	if (last->write && addr >= last->start && end <= last->end)
		return 0;
	/* The text can only be read forward: start again if addr is before the mapping that was read last. */
	if (!maps->query && maps->have_last && addr < maps->last.start) {
		if (lseek(maps->fd, 0, SEEK_SET))
			return -EFAULT;
		uvd_maps_from_fd(maps, maps->fd, false);
	}
	err = uvd_maps_find(maps, addr, last);
	if (err || last->start > addr || !last->write)
		return -EFAULT;
	return end <= last->end ? 0 : uvd_maps_all(maps, last->end, end, may_be_written, NULL);
}

/* Returns the pages of private writable memory; 0: unknown. */
static unsigned long read_data_size(const struct uvd_peer *p)
{
	unsigned long data = 0;
	char text[160];
	ssize_t n = pread(p->fds.statm, text, sizeof(text) - 1, 0);

	text[n < 0 ? 0 : n] = 0;
	return sscanf(text, "%*u %*u %*u %*u %*u %lu", &data) == 1 ? data : 0;
}

/* Caller holds p->lock, here and below. Drops the kept mappings if the process may have changed one of them. */
static void kept_check(struct uvd_peer *p)
{
	unsigned long data = read_data_size(p);

	if (!data || data != p->data)
		p->num_kept = 0;
	p->data = data;
}

static bool is_kept(const struct uvd_peer *p, uint64_t addr, uint64_t end)
{
	for (unsigned int i = 0; i < p->num_kept; i++)
		if (addr <= end && addr >= p->kept[i].start && end <= p->kept[i].end)
			return true;
	return false;
}

static void peer_keep(struct uvd_peer *p, const struct uvd_mapping *m)
{
	if (m->shared || !p->data || is_kept(p, m->start, m->end))
		return;
	if (p->num_kept < PEER_KEPT)
		p->num_kept++;
	p->kept[p->next_kept++ % PEER_KEPT] = *m;
}

static int look_at_text(struct uvd_peer *p, const struct uvd_write_vec *v, unsigned int n)
{
	struct uvd_mapping last = { 0 };
	struct uvd_maps maps;
	int err = lseek(p->fds.maps, 0, SEEK_SET) ? -EFAULT : 0;

	uvd_maps_from_fd(&maps, p->fds.maps, false);
	for (unsigned int i = 0; i < n && !err; i++) {
		if (!v[i].len || is_kept(p, v[i].addr, v[i].addr + v[i].len))
			continue;
		err = look_at(&maps, &last, v[i].addr, v[i].addr + v[i].len);
		if (!err)
			peer_keep(p, &last);
	}
	return err;
}

/* Needs no lock. */
static int peer_ask_kernel(struct uvd_peer *p, const struct uvd_write_vec *v, unsigned int n)
{
	struct uvd_mapping last = { 0 };
	struct uvd_maps maps;
	int err = 0;

	uvd_maps_from_fd(&maps, p->fds.maps, true);
	for (unsigned int i = 0; i < n && !err; i++)
		if (v[i].len)
			err = look_at(&maps, &last, v[i].addr, v[i].addr + v[i].len);
	return err;
}

/*
 * May all pieces be written? Returns 0 or -EFAULT. The pieces of a response are mostly in one or two mappings, so
 * consecutive pieces in the same mapping cost one look-up.
 */
static int look_at_all(struct uvd_peer *p, const struct uvd_write_vec *v, unsigned int n)
{
	bool all = true;
	int err;

	if (p->query)
		return peer_ask_kernel(p, v, n);
	pthread_mutex_lock(&p->lock);
	kept_check(p);
	for (unsigned int i = 0; i < n; i++)
		all = all && (!v[i].len || is_kept(p, v[i].addr, v[i].addr + v[i].len));
	err = all ? 0 : look_at_text(p, v, n);
	pthread_mutex_unlock(&p->lock);
	return err;
}

int uvd_peer_writev(struct uvd_peer *p, const struct uvd_write_vec *v, unsigned int n)
{
	int err = look_at_all(p, v, n);

	for (unsigned int i = 0; i < n && !err; i++)
		err = uvd_memfd_write(p->fds.mem, v[i].addr, v[i].src, v[i].len);
	return err;
}
