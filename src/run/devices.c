/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The devices of a run: published and found by number, unplugged and plugged in again. */
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "control/control.h"
#include "run/internal.h"
#include "sysfs/sysfs.h"
#include "util/util.h"

void uvd_run_devices_init(struct uvd_run_engine *e)
{
	uvd_fleet_init(&e->fleet, &e->core, e->log, &uvd_run_fleet_ops, e);
	pthread_mutex_init(&e->counters_lock, NULL);
}

void uvd_run_devices_fini(struct uvd_run_engine *e)
{
	for (unsigned int i = 0; i < UVD_MAX_DEVICES; i++)
		if (e->devices[i].dev)
			uvd_device_put(e->devices[i].dev);
	uvd_fleet_fini(&e->fleet);
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

static struct uvd_fleet_place *run_place(void *arg, unsigned int i)
{
	struct uvd_run_engine *e = arg;

	return &e->devices[i];
}

static bool run_number_taken(void *arg, int number)
{
	struct uvd_run_engine *e = arg;

	for (unsigned int i = 0; i < UVD_MAX_DEVICES; i++)
		if (e->devices[i].dev && e->devices[i].config.number == number)
			return true;
	return false;
}

/* Waits for calls in progress. Afterwards the node, the sysfs files and the clients' objects are gone. */
static const char *run_device_remove(void *arg, struct uvd_fleet_place *place)
{
	struct uvd_run_engine *e = arg;
	struct uvd_device *dev = place->dev;

	uvd_lock(&e->counters_lock);
	/* A thread of the backend may be writing there. */
	uvd_lock(&dev->port_lock);
	run_device_unpublish(e, &place->config);
	uvd_unlock(&dev->port_lock);
	place->state = UVD_PLACE_EMPTY;
	uvd_fleet_leave(place);
	uvd_unlock(&e->counters_lock);
	uvd_device_remove(dev);
	uvd_run_files_zap(&e->files, dev);
	uvd_device_put(dev);
	return NULL;
}

static json_t *run_device_removed(void *arg, struct uvd_fleet_place *place)
{
	return uvd_control_tell(&place->config);
}

/* Enters the device into its place before the name is published: a client that sees the name can open it. */
static int run_device_begin(struct uvd_run_engine *e, struct uvd_fleet_place *place, struct uvd_device *dev)
{
	int err;

	uvd_lock(&e->counters_lock);
	uvd_fleet_enter(&e->fleet, place, &dev->config, dev);
	/* A client may take a port down meanwhile, which changes the same files. */
	uvd_lock(&dev->port_lock);
	err = run_device_publish(e, dev);
	uvd_unlock(&dev->port_lock);
	place->state = UVD_PLACE_SERVES;
	uvd_unlock(&e->counters_lock);
	if (err)
		run_device_remove(e, place);
	return err;
}

static const char *run_device_make(void *arg, struct uvd_fleet_place *place, const struct uvd_device_config *wanted)
{
	struct uvd_device_config config = *wanted;
	struct uvd_run_engine *e = arg;
	struct uvd_device *dev;
	int err;

	if (config.number < 0)
		for (config.number = 0; run_number_taken(e, config.number); config.number++)
			;
	if (run_number_taken(e, config.number))
		return "a device with that number exists already";
	dev = uvd_device_new(&e->core, &config, &err);
	if (dev)
		err = run_device_begin(e, place, dev);
	if (!dev || err) {
		snprintf(e->wrong, sizeof(e->wrong), "cannot make the device: %s", uvd_errno_name(err));
		return e->wrong;
	}
	return NULL;
}

const struct uvd_fleet_ops uvd_run_fleet_ops = {
	.place = run_place,
	.make = run_device_make,
	.remove = run_device_remove,
	.removed = run_device_removed,
	.number_taken = run_number_taken,
	.show_counters = uvd_run_show_port,
	.status = uvd_run_status,
	.program = uvd_run_program_name,
};

struct uvd_device *uvd_run_device_find(struct uvd_run_engine *e, unsigned int number, bool *ours)
{
	struct uvd_device *dev = NULL;

	uvd_lock(&e->fleet.lock);
	*ours = number < UVD_NODE_NUMBERS && e->fleet.had[number];
	for (unsigned int i = 0; i < UVD_MAX_DEVICES && !dev; i++)
		if (e->devices[i].dev && e->devices[i].config.number == (int)number)
			dev = uvd_device_get(e->devices[i].dev);
	uvd_unlock(&e->fleet.lock);
	return dev;
}

int uvd_run_devices_add(struct uvd_run_engine *e, const struct uvd_run_options *o)
{
	const char *wrong = NULL;

	e->fleet.machine = o->parsed->machine;
	for (unsigned int i = 0; i < o->num_devices && !wrong; i++) {
		struct uvd_device_config config = o->devices[i];

		if (config.number < 0)
			config.number = i;
		if (!uvd_fleet_add(&e->fleet, &config, &wrong))
			uvd_logf(e->log, UVD_ERR, "%s: %s", config.ibdev, wrong);
	}
	return wrong ? -EINVAL : 0;
}
