/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The devices of a run: published and found by number, unplugged and plugged in again. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "run/internal.h"
#include "sysfs/sysfs.h"
#include "util/util.h"

void uvd_run_devices_init(struct uvd_run_engine *e)
{
	pthread_mutex_init(&e->devices_lock, NULL);
	pthread_mutex_init(&e->counters_lock, NULL);
}

void uvd_run_devices_fini(struct uvd_run_engine *e)
{
	for (unsigned int i = 0; i < e->num_devices; i++)
		if (e->devices[i].dev)
			uvd_device_put(e->devices[i].dev);
	pthread_mutex_destroy(&e->devices_lock);
	pthread_mutex_destroy(&e->counters_lock);
}

static void sysfs_root(const struct uvd_run_engine *e, char sys[PATH_MAX + 8])
{
	snprintf(sys, PATH_MAX + 8, "%s/sys", e->root);
}

static void node_path(const struct uvd_device_config *config, char node[64])
{
	snprintf(node, 64, "dev/infiniband/uverbs%d", config->number);
}

static int run_device_publish(struct uvd_run_engine *e, const struct uvd_device *dev)
{
	const struct uvd_device_config *config = &dev->config;
	char sys[PATH_MAX + 8], node[64];

	sysfs_root(e, sys);
	node_path(config, node);
	/* An empty file, so that listings of /dev/infiniband show the name. Calls on the node do not use it. */
	return uvd_dir_put(e->rootfd, node, "%s", "")
		       ?: uvd_sysfs_add(sys, config, dev->persona,
					makedev(UVD_RUN_MAJOR, UVD_RUN_MINOR + config->number), e->log);
}

static void run_device_unpublish(struct uvd_run_engine *e, const struct uvd_device_config *config)
{
	char sys[PATH_MAX + 8], node[64];

	sysfs_root(e, sys);
	node_path(config, node);
	uvd_sysfs_remove(sys, config);
	uvd_dir_remove(e->rootfd, node);
}

/*
 * Returns the entry that the device's number had before, else a new one, or the entry of another unplugged device if
 * the table is full. NULL: every entry has a device.
 */
static struct uvd_run_device *run_device_place(struct uvd_run_engine *e, const struct uvd_device_config *config)
{
	struct uvd_run_device *d, *unplugged = NULL;

	for (d = e->devices; d < e->devices + e->num_devices; d++) {
		if (d->dev)
			continue;
		if (d->config.number == config->number)
			return d;
		unplugged = d;
	}
	return e->num_devices < UVD_MAX_DEVICES ? &e->devices[e->num_devices] : unplugged;
}

int uvd_run_device_add(struct uvd_run_engine *e, const struct uvd_device_config *config)
{
	struct uvd_run_device *d = run_device_place(e, config);
	struct uvd_device *dev;
	int err = -ENOSPC;

	dev = d ? uvd_device_new(&e->core, config, &err) : NULL;
	if (!dev)
		return err;
	uvd_lock(&e->counters_lock);
	/* Enter the device into the table before the name is published: a client that sees the name can open it. */
	uvd_lock(&e->devices_lock);
	*d = (struct uvd_run_device){ .config = *config, .dev = dev };
	if (d == &e->devices[e->num_devices])
		e->num_devices++;
	uvd_unlock(&e->devices_lock);
	/* A client may take a port down meanwhile, which changes the same files. */
	uvd_lock(&dev->port_lock);
	err = run_device_publish(e, dev);
	uvd_unlock(&dev->port_lock);
	uvd_unlock(&e->counters_lock);
	if (err)
		uvd_run_device_remove(e, d);
	return err;
}

void uvd_run_device_remove(struct uvd_run_engine *e, struct uvd_run_device *d)
{
	struct uvd_device *dev = d->dev;

	uvd_lock(&e->counters_lock);
	/* A thread of the backend may be writing there. */
	uvd_lock(&dev->port_lock);
	run_device_unpublish(e, &d->config);
	uvd_unlock(&dev->port_lock);
	uvd_lock(&e->devices_lock);
	d->dev = NULL;
	uvd_unlock(&e->devices_lock);
	uvd_unlock(&e->counters_lock);
	uvd_device_remove(dev);
	uvd_run_files_zap(&e->files, dev);
	uvd_device_put(dev);
}

struct uvd_device *uvd_run_device_find(struct uvd_run_engine *e, unsigned int number, bool *ours)
{
	struct uvd_device *dev = NULL;

	*ours = false;
	uvd_lock(&e->devices_lock);
	for (unsigned int i = 0; i < e->num_devices && !dev; i++) {
		if (e->devices[i].config.number != (int)number)
			continue;
		*ours = true;
		dev = e->devices[i].dev ? uvd_device_get(e->devices[i].dev) : NULL;
	}
	uvd_unlock(&e->devices_lock);
	return dev;
}
