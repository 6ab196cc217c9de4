/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The node and its session: from the name to the last release. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uverbsd/log.h>
#include "cuse/internal.h"
#include "util/util.h"

static int session_set_up(void *arg, struct uvd_node *node)
{
	struct uvd_cuse *c = arg;
	int err = uvd_cuse_channel_open(node, &uvd_cuse_operations, c, c->config.log, &c->se);

	if (err)
		return err;
	err = uvd_node_permit(node, c->config.mode, c->config.group, c->config.log);
	if (err)
		uvd_cuse_channel_close(node, &c->se);
	return err;
}

/* The broker makes the node, and keeps it. */
static int session_take_from_broker(struct uvd_cuse *c)
{
	int number = c->config.number, fd, err;
	dev_t rdev;

	uvd_remote_init(&c->remote, c->config.link);
	err = uvd_link_node(c->config.link, c->config.index, &number, &rdev, &fd);
	if (err)
		return err;
	uvd_node_name(&c->node, number);
	c->node.rdev = rdev;
	return uvd_cuse_channel_adopt(&c->node, &uvd_cuse_operations, c, c->config.log, fd, &c->se);
}

struct uvd_cuse *uvd_cuse_new(const struct uvd_cuse_config *config, int *err)
{
	struct uvd_cuse *c;
	int fd = config->link ? -1 : open("/dev/cuse", O_RDWR | O_CLOEXEC);

	if (fd < 0 && !config->link) {
		*err = -errno;
		uvd_logf(config->log, UVD_ERR,
			 "/dev/cuse: %s (it needs root, and `modprobe cuse`; `uverbsctl run` needs neither)",
			 uvd_errno_name(errno));
		return NULL;
	}
	if (fd >= 0)
		close(fd);
	c = calloc(1, sizeof(*c));
	if (!c) {
		*err = -ENOMEM;
		return NULL;
	}
	c->config = *config;
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutex_init(&c->starting, NULL);
	INIT_LIST_HEAD(&c->files);
	INIT_LIST_HEAD(&c->grants);
	uvd_turns_init(&c->turns);
	*err = config->link ? session_take_from_broker(c)
			    : uvd_node_make(&c->node, config->number, config->orphans, session_set_up, c, config->log);
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
	if (c->config.link)
		uvd_link_tell(c->config.link, UVD_WIRE_WITHDRAW, c->config.index);
	else
		uvd_node_hide(&c->node);
}

bool uvd_cuse_stop(struct uvd_cuse *c)
{
	if (!uvd_cuse_stop_workers(c))
		return false;
	uvd_cuse_channel_close(&c->node, &c->se);
	/* The channel is closed, so no FUSE_RELEASE comes any more. */
	while (!list_empty(&c->files))
		uvd_cuse_file_put(list_first_entry(&c->files, struct cuse_file, of_node));
	return true;
}

void uvd_cuse_free(struct uvd_cuse *c)
{
	if (c->se)
		uvd_cuse_channel_close(&c->node, &c->se);
	uvd_turns_fini(&c->turns);
	pthread_mutex_destroy(&c->starting);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void uvd_cuse_count(struct uvd_cuse *c, struct uvd_cuse_counters *counters)
{
	struct worker *w;

	*counters = (struct uvd_cuse_counters){ .requests = c->served_before };
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
		fn(arg, &f->opener, f->file);
	uvd_unlock(&c->lock);
}
