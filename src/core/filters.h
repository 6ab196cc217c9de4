/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The filters of devices. A filter is named by a text, NAME or NAME:KEY=VALUE[,KEY=VALUE...].
 *
 * Call these functions on a thread that may block, without locks: a change waits for a short while for the calls in
 * progress. On an error `error` has a message for the user, without the program's name.
 */
#ifndef UVD_CORE_FILTERS_H
#define UVD_CORE_FILTERS_H

#include "plugin/plugin.h"

struct uvd_device;

/*
 * Changes the filters of a device. Calls in progress go on with those that they began with.
 * add: the new filter is the outermost. set: replaces the outermost filter of that name; it keeps its place, and begins
 * anew. remove: removes the outermost filter of that name. Returns 0, or a negative errno: -ENODEV: the device was
 * removed; -ENOENT: it has no such filter; -ENOSPC: it has UVD_MAX_FILTERS; -ENOMEM; an error of
 * uvd_plugins_filter_begin(). Then nothing has changed.
 */
int uvd_device_filter_add(struct uvd_device *dev, const char *text, char error[UVD_PLUGIN_ERROR]);
int uvd_device_filter_set(struct uvd_device *dev, const char *text, char error[UVD_PLUGIN_ERROR]);
int uvd_device_filter_remove(struct uvd_device *dev, const char *name, char error[UVD_PLUGIN_ERROR]);
/*
 * Calls fn with the text of each filter, outermost first, and then `rule` for each rule of this filter. rule may be
 * NULL. Under a lock: they must not block.
 */
void uvd_device_filter_list(struct uvd_device *dev, void (*fn)(void *arg, const char *text), uvd_filter_tell_fn rule,
			    void *arg);
/*
 * Returns how many open files post to mapped queues without a filter seeing it, although the device has one that looks at posts: nobody
 * answers their doorbells, and the filter was added after they were opened.
 */
unsigned int uvd_device_unfiltered_files(struct uvd_device *dev);
/* Does the device have a filter of this plug-in? */
bool uvd_device_has_filter_of(struct uvd_device *dev, const char *plugin);

/*
 * For device.c and unplug.c. Begins the filters of a new device, whose backend is open. Returns 0 or a negative errno,
 * and the log says why.
 */
int uvd_device_filters_begin(struct uvd_device *dev);
/* Removes all filters, and accepts no other ones. Before the backend's close(), after the last call. */
void uvd_device_filters_close(struct uvd_device *dev);

#endif
