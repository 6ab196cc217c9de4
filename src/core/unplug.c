/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Unplugs a device under its open files. */
#include <time.h>

#include "core/internal.h"
#include "util/util.h"

static void pause_us(long us)
{
	nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL);
}

/*
 * Waits until every call that may not have seen `gone` has ended. It polls, so that calls do not pay for waking it.
 */
static void wait_for_calls(struct uvd_device *dev)
{
	for (int i = 0; i < UVD_CALL_COUNTERS; i++)
		for (long us = 20; atomic_load(&dev->calls[i].num); us = us < 5000 ? 2 * us : us)
			pause_us(us);
}

/* Takes the oldest file out of the list, with a reference. NULL: the list is empty. */
static struct uvd_file *take_oldest(struct uvd_device *dev)
{
	struct uvd_file *file = NULL;

	uvd_lock(&dev->lock);
	if (!list_empty(&dev->files)) {
		file = list_last_entry(&dev->files, struct uvd_file, of_device);
		atomic_fetch_add(&file->ref, 1);
		uvd_file_unlist(file);
	}
	uvd_unlock(&dev->lock);
	return file;
}

/* Peers must not see the objects go one by one: a port without a link sends neither a response nor a NAK. */
static void cut_links(struct uvd_device *dev)
{
	uvd_lock(&dev->port_lock);
	for (unsigned int i = 0; i < dev->ib.config.num_ports; i++)
		__atomic_store_n(&dev->ib.config.ports[i].down, true, __ATOMIC_RELAXED);
	uvd_unlock(&dev->port_lock);
}

void uvd_device_set_gone(struct uvd_device *dev)
{
	uvd_lock(&dev->lock);
	atomic_store(&dev->gone, true);
	uvd_unlock(&dev->lock);
}

void uvd_device_remove(struct uvd_device *dev)
{
	struct uvd_file *file;

	uvd_device_set_gone(dev);
	uvd_device_unlist(dev);
	cut_links(dev);
	if (dev->ib.ops->ending)
		dev->ib.ops->ending(&dev->ib);
	wait_for_calls(dev);
	while ((file = take_oldest(dev))) {
		uvd_file_destroy_hw(file, UVD_REMOVE_DRIVER_REMOVE);
		uvd_file_put(file);
	}
	/* Not under port_lock, which a thread of a filter or of the backend can wait for. */
	uvd_device_filters_close(dev);
	uvd_lock(&dev->port_lock);
	dev->backend_closed = true;
	uvd_unlock(&dev->port_lock);
	if (dev->ib.ops->close)
		dev->ib.ops->close(&dev->ib);
	uvd_device_remove_ucaps(dev);
}
