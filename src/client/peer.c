/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/client.h"
#include "client/internal.h"

struct uvd_peer {
	atomic_int refs;
	pid_t tgid;
	int memfd, mapsfd, mmfd, pidfd;
	bool query; /* PROCMAP_QUERY; else the position in mapsfd is under the lock */
	pthread_mutex_t lock;
};

struct uvd_peer *uvd_peer_new(pid_t tgid, int memfd, int mapsfd, int mmfd)
{
	struct uvd_peer *p = calloc(1, sizeof(*p));
	struct uvd_mapping m;
	struct uvd_maps maps;
	int pidfd = syscall(SYS_pidfd_open, tgid, 0);

	if (!p || pidfd < 0) {
		free(p);
		if (pidfd >= 0)
			close(pidfd);
		close(memfd);
		close(mapsfd);
		close(mmfd);
		return NULL;
	}
	*p = (struct uvd_peer){ .refs = 1, .tgid = tgid, .memfd = memfd, .mapsfd = mapsfd, .mmfd = mmfd, .pidfd = pidfd };
	pthread_mutex_init(&p->lock, NULL);
	/* Does this kernel answer questions, or must the text be read? */
	uvd_maps_from_fd(&maps, mapsfd, true);
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
	close(p->memfd);
	close(p->mapsfd);
	close(p->mmfd);
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
	/* EPERM: the thread is one of that process, and we may not signal it. The number is that process's while it lives. */
	if (tid != p->tgid && syscall(SYS_tgkill, p->tgid, tid, 0) && errno != EPERM)
		return false;
	return !peer_gone(p) && uvd_mmfd_alive(p->mmfd);
}

int uvd_peer_read(struct uvd_peer *p, void *dst, uint64_t src, size_t len)
{
	return uvd_memfd_read(p->memfd, dst, src, len);
}

ssize_t uvd_peer_read_ahead(struct uvd_peer *p, void *dst, uint64_t src, size_t least, size_t most)
{
	ssize_t n = pread(p->memfd, dst, most, (off_t)src);

	return n < (ssize_t)least ? -EFAULT : n;
}

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
	/* The text is read from its beginning, unless what is asked for comes later than what was read last. */
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

/* The pieces of an answer mostly lie in one or two mappings: each is looked up once. */
static int look_at_all(struct uvd_peer *p, const struct uvd_write_vec *v, unsigned int n)
{
	struct uvd_mapping last = { 0 };
	struct uvd_maps maps;
	int err = 0;

	if (!p->query)
		pthread_mutex_lock(&p->lock);
	if (!p->query && lseek(p->mapsfd, 0, SEEK_SET))
		err = -EFAULT;
	uvd_maps_from_fd(&maps, p->mapsfd, p->query);
	for (unsigned int i = 0; i < n && !err; i++)
		if (v[i].len)
			err = look_at(&maps, &last, v[i].addr, v[i].addr + v[i].len);
	if (!p->query)
		pthread_mutex_unlock(&p->lock);
	return err;
}

int uvd_peer_writev(struct uvd_peer *p, const struct uvd_write_vec *v, unsigned int n)
{
	int err = look_at_all(p, v, n);

	for (unsigned int i = 0; i < n && !err; i++)
		err = uvd_memfd_write(p->memfd, v[i].addr, v[i].src, v[i].len);
	return err;
}
