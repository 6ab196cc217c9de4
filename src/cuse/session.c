/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The node and its session: from the name to the last release. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "cuse/internal.h"
#include "util/util.h"

/*
 * Where calls wait for events, idle workers wait for the channel and for c->wake, and read the channel only if it has a request. (A
 * signal as in uvd_cuse_tick() would be lost in a worker that is just about to read.)
 */
static int session_wakes(struct uvd_cuse *c)
{
	const int fd = fuse_session_fd(c->se);

	if (!c->config.kind->wait)
		return 0;
	c->wake = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
	return c->wake < 0 || fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) ? -errno : 0;
}

/* Makes the node and its session. */
static int session_begin(struct uvd_cuse *c)
{
	int fd, err = c->config.kind->make(c, &fd);

	err = err ? err : uvd_cuse_channel_adopt(c, fd);
	return err ? err : session_wakes(c);
}

struct uvd_cuse *uvd_cuse_new(const struct uvd_cuse_config *config, int *err)
{
	struct uvd_cuse *c = calloc(1, sizeof(*c));

	if (!c) {
		*err = -ENOMEM;
		return NULL;
	}
	c->config = *config;
	c->wake = -1;
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutex_init(&c->starting, NULL);
	c->config.clients->begin(c);
	INIT_LIST_HEAD(&c->files);
	INIT_LIST_HEAD(&c->grants);
	uvd_cuse_offers_init(&c->offers);
	uvd_turns_init(&c->turns);
	*err = session_begin(c);
	if (!*err)
		return c;
	uvd_cuse_free(c);
	return NULL;
}

int uvd_cuse_number(const struct uvd_cuse *c)
{
	return c->node.number;
}

dev_t uvd_cuse_rdev(const struct uvd_cuse *c)
{
	return c->node.rdev;
}

const char *uvd_cuse_path(const struct uvd_cuse *c)
{
	return c->node.path;
}

void uvd_cuse_unplug(struct uvd_cuse *c)
{
	c->config.privilege->ops->withdraw(c->config.privilege, c->config.index, &c->node);
}

bool uvd_cuse_stop(struct uvd_cuse *c)
{
	struct cuse_file *f;

	if (!uvd_cuse_stop_workers(c))
		return false;
	/* No worker can list or free a file any more. But events come until their file is closed, and must not reach the session. */
	list_for_each_entry(f, &c->files, of_node)
		uvd_cuse_poll_end(f);
	uvd_cuse_channel_close(c);
	/* The channel is closed, so no FUSE_RELEASE comes any more. */
	while (!list_empty(&c->files))
		uvd_cuse_file_put(list_first_entry(&c->files, struct cuse_file, of_node));
	return true;
}

void uvd_cuse_free(struct uvd_cuse *c)
{
	if (c->se)
		uvd_cuse_channel_close(c);
	if (c->wake >= 0)
		close(c->wake);
	uvd_turns_fini(&c->turns);
	pthread_mutex_destroy(&c->starting);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void uvd_cuse_count(struct uvd_cuse *c, struct uvd_cuse_counters *counters)
{
	struct worker *w;

	*counters =
		(struct uvd_cuse_counters){ .requests = c->served_before + c->served_mapped, .mapped = c->num_mapped };
	for (w = c->workers; w < c->workers + MAX_WORKERS; w++) {
		counters->workers += w->used && !w->exited;
		counters->requests += w->served;
	}
	uvd_lock(&c->lock);
	counters->files = c->num_files;
	uvd_unlock(&c->lock);
}

void uvd_cuse_each_file(struct uvd_cuse *c,
			void (*fn)(void *arg, const struct uvd_opener *opener, struct uvd_file *file), void *arg)
{
	struct cuse_file *f;

	uvd_lock(&c->lock);
	list_for_each_entry(f, &c->files, of_node)
		fn(arg, &f->opener, f->priv);
	uvd_unlock(&c->lock);
}
