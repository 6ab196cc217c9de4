/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A generation of a device's parse trees: the features, the trees merged from them, and the plug-ins that brought them.
 * Loading, reloading or unloading a plug-in gives the device a new generation. A file keeps the one that was current at
 * its open until it is closed, so rows and code that its objects and calls use stay valid.
 */
#ifndef UVD_TREES_H
#define UVD_TREES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include "plugin/plugin.h"

struct uvd_device;
struct uvd_tree;

enum { UVD_MAX_FEATURES = 32 };

/* A plug-in on a device, from device_init() to device_exit(). The generations that have it hold references. */
struct uvd_plugin_device {
	atomic_uint ref;
	struct uvd_module *module; /* a reference */
	struct uvd_device *dev;
	void *data; /* of device_init() */
};

/* Constant once it is the device's, but for ref and variants. */
struct uvd_trees {
	atomic_uint ref; /* the device's, while it is the current one; one for each open file */
	const struct uvd_feature *features[UVD_MAX_FEATURES + 1]; /* all of the device; ends with NULL */
	struct uvd_tree *plain; /* for contexts without User Capabilities, and before there is a context */
	unsigned int num_plugins;
	struct uvd_module *modules[UVD_MAX_PLUGINS]; /* references; in the order of their loads */
	struct uvd_plugin_device *plugins[UVD_MAX_PLUGINS]; /* of each module; NULL before uvd_trees_begin() */
	bool has_contexts; /* a plug-in has context_init() or context_exit() */
	pthread_mutex_t lock; /* variants */
	struct uvd_tree_variant *variants; /* one for each set of features that a context has enabled */
};

/*
 * Merges the trees of a device from what these plug-ins and its persona bring. dev->ib.ops and dev->persona must be set.
 * Takes references to the modules. NULL: *err is -ENOSPC (too many features), or an error of uvd_tree_new(): all
 * features must fit together, even those that only some contexts see. `error` has a message.
 */
struct uvd_trees *uvd_trees_new(struct uvd_device *dev, struct uvd_module *const *modules, unsigned int num,
				char error[UVD_PLUGIN_ERROR], int *err);
/*
 * Begins the plug-ins on the device. Those that the generation `old` has too (NULL: none) go on with their data. Returns
 * 0, or the errno of a device_init() with a message in `error`.
 */
int uvd_trees_begin(struct uvd_trees *trees, struct uvd_device *dev, const struct uvd_trees *old,
		    char error[UVD_PLUGIN_ERROR]);
struct uvd_trees *uvd_trees_get(struct uvd_trees *trees);
/* Puts a reference. The last one calls device_exit() of plug-ins that no other generation of the device has. */
void uvd_trees_put(struct uvd_trees *trees);

/*
 * Begins all plug-ins for a new context. *data is their data, in the order of trees->plugins; NULL if no plug-in has any.
 * Returns 0, -ENOMEM, or the errno of a context_init(), and then those that had begun have ended.
 */
int uvd_trees_context_init(const struct uvd_trees *trees, struct uvd_context *context, void ***data);
/* Ends them, in the reverse order, and frees `data`. */
void uvd_trees_context_exit(const struct uvd_trees *trees, struct uvd_context *context, void **data);
/* Returns the index of the plug-in with this symbol, or -1. */
int uvd_trees_find(const struct uvd_trees *trees, const struct uvd_plugin *symbol);

#endif
