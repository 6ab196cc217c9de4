/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The steps of a plug-in find its data by the plug-in's place in the file's generation, a short list. */
#include <uverbsd/plugin.h>

#include "dispatch/internal.h"

void *uvd_plugin_engine_data(const struct uvd_req *req, const struct uvd_plugin *plugin)
{
	const struct uvd_trees *trees = req->file->trees;
	const int i = uvd_trees_find(trees, plugin);

	return i < 0 ? NULL : trees->modules[i]->data;
}

void *uvd_plugin_device_data(const struct uvd_req *req, const struct uvd_plugin *plugin)
{
	const struct uvd_trees *trees = req->file->trees;
	const int i = uvd_trees_find(trees, plugin);

	return i < 0 ? NULL : trees->plugins[i]->data;
}

void *uvd_plugin_context_data(const struct uvd_req *req, const struct uvd_plugin *plugin)
{
	const int i = uvd_trees_find(req->file->trees, plugin);
	void **data = req->new_plugin_data;

	/*
	 * A removal waits for calls that have not seen `gone`, and then ends the contexts. Another call can publish a
	 * context at any time: plugin_data is set before it.
	 */
	if (!data && !atomic_load(&req->dev->gone) && atomic_load(&req->file->context))
		data = req->file->plugin_data;
	return i < 0 || !data ? NULL : data[i];
}
