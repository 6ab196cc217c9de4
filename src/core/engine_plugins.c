/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Changes of the plug-ins of a running engine: first a new generation for every device, then all of them at once. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uverbsd/log.h>

#include "core/internal.h"
#include "util/util.h"

/* A change: the plug-ins after it, and a generation of each device that is made from them. */
struct plugin_change {
	struct uvd_module *modules[UVD_MAX_PLUGINS]; /* references */
	unsigned int num_modules;
	struct uvd_trees **trees; /* one for each device, in the order of engine->devices */
	unsigned int num_devices;
};

static int change_error(char error[UVD_PLUGIN_ERROR], int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int change_error(char error[UVD_PLUGIN_ERROR], int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error, UVD_PLUGIN_ERROR, fmt, ap);
	va_end(ap);
	return err;
}

/* Drops what was not applied. */
static void change_end(struct plugin_change *c)
{
	for (unsigned int i = 0; i < c->num_devices; i++)
		uvd_trees_put(c->trees[i]);
	free(c->trees);
	while (c->num_modules)
		uvd_module_put(c->modules[--c->num_modules]);
}

/* Takes the registry's list, with `fresh` in the place of `old`, or without `old`, or with `fresh` at the end. */
static int change_begin(struct plugin_change *c, struct uvd_engine *engine, struct uvd_module *old,
			struct uvd_module *fresh, char error[UVD_PLUGIN_ERROR])
{
	unsigned int n = 0;

	c->num_modules = uvd_plugins_list(engine->plugins, c->modules);
	for (unsigned int i = 0; i < c->num_modules; i++) {
		if (c->modules[i] != old) {
			c->modules[n++] = c->modules[i];
			continue;
		}
		if (fresh)
			c->modules[n++] = uvd_module_get(fresh);
		uvd_module_put(old);
	}
	c->num_modules = n;
	if (old || !fresh)
		return 0;
	if (n == UVD_MAX_PLUGINS)
		return change_error(error, -ENOSPC, "there are %d plug-ins already", UVD_MAX_PLUGINS);
	c->modules[c->num_modules++] = uvd_module_get(fresh);
	return 0;
}

/*
 * Finds conflicts that no existing device shows: there may be no device, or the devices' backends lack operations that
 * the rows need.
 */
static int change_try_merge(struct plugin_change *c, struct uvd_engine *engine, char error[UVD_PLUGIN_ERROR])
{
	const struct uvd_feature *features[UVD_MAX_FEATURES + 1];
	struct uvd_tree *tree;
	unsigned int n = 0;
	int err;

	for (unsigned int i = 0; i < c->num_modules; i++) {
		const struct uvd_feature *const *f = c->modules[i]->plugin.features;

		for (; f && *f; f++) {
			if (n == UVD_MAX_FEATURES)
				return change_error(error, -ENOSPC, "feature '%s': a device has at most %d features",
						    (*f)->name, UVD_MAX_FEATURES);
			features[n++] = *f;
		}
	}
	features[n] = NULL;
	tree = uvd_tree_merge(features, NULL, 0, engine->log, error, &err);
	uvd_tree_free(tree);
	return err;
}

/* Makes the new generations, and begins their plug-ins. Caller holds plugins_lock. */
static int change_prepare(struct plugin_change *c, struct uvd_engine *engine, char error[UVD_PLUGIN_ERROR])
{
	struct uvd_device *dev;
	unsigned int num = 0;
	int err;

	snprintf(error, UVD_PLUGIN_ERROR, "no memory");
	err = change_try_merge(c, engine, error);
	if (err)
		return err;
	list_for_each_entry(dev, &engine->devices, of_engine)
		num++;
	c->trees = calloc(num + 1, sizeof(*c->trees));
	if (!c->trees)
		return -ENOMEM;
	list_for_each_entry(dev, &engine->devices, of_engine) {
		struct uvd_trees *trees = uvd_trees_new(dev, c->modules, c->num_modules, error, &err);

		if (!trees)
			return err;
		c->trees[c->num_devices++] = trees;
		/* Nobody else changes dev->trees while we hold plugins_lock. */
		err = uvd_trees_begin(trees, dev, dev->trees, error);
		if (err)
			return err;
	}
	return 0;
}

/* Gives each device its new generation. Cannot fail. Caller holds plugins_lock. */
static void change_apply(struct plugin_change *c, struct uvd_engine *engine)
{
	struct uvd_device *dev;
	struct uvd_trees *old;
	unsigned int i = 0;

	list_for_each_entry(dev, &engine->devices, of_engine) {
		uvd_lock(&dev->lock);
		old = dev->trees;
		dev->trees = c->trees[i];
		uvd_unlock(&dev->lock);
		c->trees[i++] = old;
	}
	/* change_end() puts the old generations. */
}

/* ---- load and reload --------------------------------------------------------------------------------------------- */

/* Adds `fresh`, in the place of `old` unless that is NULL. Caller holds plugins_lock. */
static int engine_plugin_put_in(struct uvd_engine *engine, struct uvd_module *fresh, struct uvd_module *old,
				char error[UVD_PLUGIN_ERROR])
{
	struct plugin_change c = {};
	int err = change_begin(&c, engine, old, fresh, error) ?: change_prepare(&c, engine, error);

	if (!err)
		err = uvd_plugins_add(engine->plugins, uvd_module_get(fresh), old, error);
	if (!err)
		change_apply(&c, engine);
	change_end(&c);
	return err;
}

static void plugin_say_loaded(struct uvd_engine *engine, const struct uvd_module *m, const char *what)
{
	uvd_logf(engine->log, UVD_INFO, "plug-in '%s'%s%s: %s from %s", m->plugin.name, m->plugin.version ? " " : "",
		 m->plugin.version ?: "", what, m->path);
}

int uvd_engine_plugin_load(struct uvd_engine *engine, const struct uvd_plugin_request *request, uid_t owner,
			   char error[UVD_PLUGIN_ERROR])
{
	struct uvd_module *fresh;
	int err;

	uvd_lock(&engine->plugins_lock);
	fresh = uvd_module_load(engine->plugins, request, owner, NULL, error, &err);
	if (fresh)
		err = engine_plugin_put_in(engine, fresh, NULL, error);
	if (!err)
		plugin_say_loaded(engine, fresh, "loaded");
	uvd_module_put(fresh);
	uvd_unlock(&engine->plugins_lock);
	return err;
}

/* Returns the plug-in, if it can be changed, with a reference. */
static struct uvd_module *engine_plugin_get(struct uvd_engine *engine, const char *name, char error[UVD_PLUGIN_ERROR],
					    int *err)
{
	struct uvd_module *m = uvd_plugins_get(engine->plugins, name);

	*err = 0;
	if (!m) {
		*err = change_error(error, -ENOENT, "no plug-in '%s' is loaded", name);
	} else if (!m->path) {
		*err = change_error(error, -EPERM, "plug-in '%s' is built in", name);
		uvd_module_put(m);
		m = NULL;
	}
	return m;
}

int uvd_engine_plugin_reload(struct uvd_engine *engine, const char *name, const struct uvd_plugin_request *request,
			     uid_t owner, char error[UVD_PLUGIN_ERROR])
{
	struct uvd_module *old, *fresh = NULL;
	int err;

	uvd_lock(&engine->plugins_lock);
	old = engine_plugin_get(engine, name, error, &err);
	if (old)
		fresh = uvd_module_load(engine->plugins, request, owner, old, error, &err);
	if (fresh)
		err = engine_plugin_put_in(engine, fresh, old, error);
	if (!err)
		plugin_say_loaded(engine, fresh, "reloaded");
	uvd_module_put(old);
	uvd_module_put(fresh);
	uvd_unlock(&engine->plugins_lock);
	return err;
}

/* ---- live objects ------------------------------------------------------------------------------------------------ */

struct plugin_count {
	const char *name; /* of the plug-in */
	unsigned int contexts, objects;
	void (*users)(void *arg, struct uvd_file *file, unsigned int objects); /* or NULL */
	void *arg;
};

static const struct uvd_module *file_plugin(const struct uvd_file *file, const char *name)
{
	for (unsigned int i = 0; i < file->trees->num_plugins; i++)
		if (!strcmp(file->trees->modules[i]->plugin.name, name))
			return file->trees->modules[i];
	return NULL;
}

static void plugin_count_file(struct plugin_count *count, struct uvd_file *file)
{
	const struct uvd_module *m = file_plugin(file, count->name);
	struct uvd_uobject *uobj;
	unsigned int objects = 0;

	if (!m)
		return;
	count->contexts += !!atomic_load(&file->context);
	/* Everybody may ask for the list: do not walk the objects of files that cannot have one of the plug-in's. */
	if (!m->path || !atomic_load(&file->num_objects))
		return;
	uvd_lock(&file->lock);
	list_for_each_entry(uobj, &file->objects, of_file)
		objects += uvd_module_has_object(m, uobj->row);
	uvd_unlock(&file->lock);
	count->objects += objects;
	if (objects && count->users)
		count->users(count->arg, file, objects);
}

/* Caller holds plugins_lock. */
static void plugin_count_all(struct plugin_count *count, struct uvd_engine *engine)
{
	struct uvd_device *dev;
	struct uvd_file *file;

	count->contexts = count->objects = 0;
	list_for_each_entry(dev, &engine->devices, of_engine) {
		uvd_lock(&dev->lock);
		list_for_each_entry(file, &dev->files, of_device)
			plugin_count_file(count, file);
		uvd_unlock(&dev->lock);
	}
}

/* ---- unload ------------------------------------------------------------------------------------------------------ */

static bool module_is_named(const struct uvd_module *m, const char *name)
{
	return m && !strcmp(m->plugin.name, name);
}

/* Caller holds plugins_lock. */
static int plugin_check_devices(struct uvd_engine *engine, const char *name, char error[UVD_PLUGIN_ERROR])
{
	struct uvd_device *dev;

	list_for_each_entry(dev, &engine->devices, of_engine) {
		if (module_is_named(dev->backend_module, name))
			return change_error(error, -EBUSY, "device %s uses backend '%s' of plug-in '%s'",
					    dev->config.ibdev, dev->config.backend, name);
		if (module_is_named(dev->persona_module, name))
			return change_error(error, -EBUSY, "device %s uses persona '%s' of plug-in '%s'",
					    dev->config.ibdev, dev->config.persona, name);
		if (uvd_device_has_filter_of(dev, name))
			return change_error(error, -EBUSY, "device %s uses a filter of plug-in '%s'", dev->config.ibdev,
					    name);
	}
	return 0;
}

/* Caller holds plugins_lock. */
static int engine_plugin_take_out(struct uvd_engine *engine, const char *name, bool wait, struct plugin_count *count,
				  char error[UVD_PLUGIN_ERROR])
{
	struct plugin_change c = {};
	struct uvd_module *m;
	int err;

	m = engine_plugin_get(engine, name, error, &err);
	if (!m)
		return err;
	err = plugin_check_devices(engine, name, error);
	if (!err)
		plugin_count_all(count, engine);
	if (!err && count->objects && !wait)
		err = change_error(error, -EBUSY, "plug-in '%s' has %u live objects", name, count->objects);
	err = err ?: change_begin(&c, engine, m, NULL, error) ?: change_prepare(&c, engine, error);
	if (!err) {
		uvd_plugins_remove(engine->plugins, m);
		change_apply(&c, engine);
		uvd_logf(engine->log, UVD_INFO, "plug-in '%s': unloaded", name);
	}
	change_end(&c);
	uvd_module_put(m);
	return err;
}

int uvd_engine_plugin_unload(struct uvd_engine *engine, const char *name, bool wait, bool (*stop)(void *arg),
			     void (*users)(void *arg, struct uvd_file *file, unsigned int objects), void *arg,
			     char error[UVD_PLUGIN_ERROR])
{
	struct plugin_count count = { .name = name, .users = users, .arg = arg };
	int err;

	uvd_lock(&engine->plugins_lock);
	err = engine_plugin_take_out(engine, name, wait, &count, error);
	uvd_unlock(&engine->plugins_lock);
	count.users = NULL;
	/* Poll, so that the destruction of an object does not pay for waking us. */
	while (!err && wait && count.objects) {
		if (stop && stop(arg))
			return change_error(error, -EINTR, "plug-in '%s' is unloaded, but has %u live objects", name,
					    count.objects);
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
		uvd_lock(&engine->plugins_lock);
		plugin_count_all(&count, engine);
		uvd_unlock(&engine->plugins_lock);
	}
	return err;
}

void uvd_engine_plugin_list(struct uvd_engine *engine, void (*fn)(void *arg, const struct uvd_plugin_info *info),
			    void *arg)
{
	struct uvd_module *modules[UVD_MAX_PLUGINS];
	unsigned int num;

	uvd_lock(&engine->plugins_lock);
	num = uvd_plugins_list(engine->plugins, modules);
	for (unsigned int i = 0; i < num; i++) {
		struct plugin_count count = { .name = modules[i]->plugin.name };
		const struct uvd_plugin *p = &modules[i]->plugin;

		plugin_count_all(&count, engine);
		fn(arg, &(struct uvd_plugin_info){ .name = p->name,
						   .version = p->version,
						   .description = p->description,
						   .path = modules[i]->path,
						   .generation = modules[i]->generation,
						   .contexts = count.contexts,
						   .objects = count.objects });
		uvd_module_put(modules[i]);
	}
	uvd_unlock(&engine->plugins_lock);
}
