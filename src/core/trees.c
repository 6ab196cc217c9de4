/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The generations of a device's parse trees, and which features a context sees. A feature that requires a User
 * Capability is not in the plain tree. A context that has the capability uses another tree, merged from all features
 * that it may see, so no look-up during a call has to check rights.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"
#include "persona/persona.h"
#include "util/util.h"

struct uvd_tree_variant {
	struct uvd_tree_variant *next;
	uint32_t features; /* bits: indices in the generation's list of features */
	struct uvd_tree *tree;
};

/* ---- trees of a generation --------------------------------------------------------------------------------------- */

/* Returns the bits of the features that a context with these capabilities sees. *plain: those that need none. */
static uint32_t trees_features_visible(const struct uvd_file *file, uint64_t mask, uint32_t *plain)
{
	struct uvd_ucaps *ucaps = &file->dev->engine->ucaps;
	const struct uvd_feature *const *features = file->trees->features;
	uint32_t bits = 0;

	*plain = 0;
	uvd_lock(&ucaps->lock);
	for (unsigned int i = 0; features[i]; i++) {
		if (!features[i]->ucap)
			*plain |= 1u << i;
		/* Ignore a capability that other devices have created, but not this one. */
		for (unsigned int bit = 0; features[i]->ucap && bit < ucaps->num; bit++)
			if (mask >> bit & 1 && file->dev->ucap_refs[bit] &&
			    !strcmp(ucaps->list[bit].name, features[i]->ucap))
				bits |= 1u << i;
	}
	uvd_unlock(&ucaps->lock);
	return bits | *plain;
}

static struct uvd_tree *trees_merge_some(const struct uvd_trees *trees, const struct uvd_device *dev, uint32_t bits,
					 char error[UVD_PLUGIN_ERROR], int *err)
{
	const struct uvd_feature *features[UVD_MAX_FEATURES + 1];
	struct uvd_tree *tree;
	unsigned int n = 0;

	for (unsigned int i = 0; trees->features[i]; i++)
		if (bits >> i & 1)
			features[n++] = trees->features[i];
	features[n] = NULL;
	tree = uvd_tree_merge(features, dev->ib.ops, dev->persona->driver_id, dev->engine->log, error, err);
	for (unsigned int i = 0; tree && i < trees->num_plugins; i++)
		uvd_tree_take_roles(tree, &trees->modules[i]->plugin);
	return tree;
}

/* Finds or makes the tree of this set of features. Caller holds trees->lock. Returns 0 or a negative errno. */
static int trees_variant_get(struct uvd_trees *trees, const struct uvd_device *dev, uint32_t bits,
			     struct uvd_tree **tree)
{
	struct uvd_tree_variant *v;
	int err = -ENOMEM;

	for (v = trees->variants; v; v = v->next) {
		if (v->features != bits)
			continue;
		*tree = v->tree;
		return 0;
	}
	v = uvd_zalloc(sizeof(*v));
	if (v)
		v->tree = trees_merge_some(trees, dev, bits, NULL, &err);
	if (!v || !v->tree) {
		free(v);
		return err;
	}
	v->features = bits;
	v->next = trees->variants;
	trees->variants = v;
	*tree = v->tree;
	return 0;
}

int uvd_file_tree_for(struct uvd_file *file, uint64_t ucaps, struct uvd_tree **tree)
{
	uint32_t plain, bits;
	int err;

	*tree = NULL;
	bits = ucaps ? trees_features_visible(file, ucaps, &plain) : 0;
	if (!ucaps || bits == plain)
		return 0;
	uvd_lock(&file->trees->lock);
	err = trees_variant_get(file->trees, file->dev, bits, tree);
	uvd_unlock(&file->trees->lock);
	return err;
}

/* ---- merging ----------------------------------------------------------------------------------------------------- */

static int trees_feature_add(struct uvd_trees *trees, const struct uvd_feature *feature, char error[UVD_PLUGIN_ERROR])
{
	unsigned int n = 0;

	while (trees->features[n])
		n++;
	if (n == UVD_MAX_FEATURES) {
		snprintf(error, UVD_PLUGIN_ERROR, "feature '%s': a device has at most %d features", feature->name,
			 UVD_MAX_FEATURES);
		return -ENOSPC;
	}
	trees->features[n] = feature;
	return 0;
}

static int trees_modules_add(struct uvd_trees *trees, bool built_in, char error[UVD_PLUGIN_ERROR])
{
	int err = 0;

	for (unsigned int i = 0; i < trees->num_plugins && !err; i++) {
		const struct uvd_feature *const *f = trees->modules[i]->plugin.features;

		for (; f && *f && !err && !trees->modules[i]->path == built_in; f++)
			err = trees_feature_add(trees, *f, error);
	}
	return err;
}

static int trees_merge(struct uvd_trees *trees, struct uvd_device *dev, char error[UVD_PLUGIN_ERROR])
{
	uint32_t plain = 0, all = 0;
	struct uvd_tree *whole;
	int err;

	err = trees_modules_add(trees, true, error);
	if (!err && dev->persona->feature)
		err = trees_feature_add(trees, dev->persona->feature, error);
	err = err ?: trees_modules_add(trees, false, error);
	if (err)
		return err;
	for (unsigned int i = 0; trees->features[i]; i++) {
		all |= 1u << i;
		plain |= trees->features[i]->ucap ? 0 : 1u << i;
	}
	/* Refuse features that conflict now, and not when the first client has the capabilities that they require. */
	if (all != plain) {
		whole = trees_merge_some(trees, dev, all, error, &err);
		uvd_tree_free(whole);
	}
	trees->plain = err ? NULL : trees_merge_some(trees, dev, plain, error, &err);
	return err;
}

/* A plug-in that only has a backend or a persona does not take part in calls. The device itself refers to it. */
static bool module_takes_part(const struct uvd_module *m)
{
	const struct uvd_plugin *p = &m->plugin;

	return p->features || p->commands || p->attrs || p->init || p->device_init || p->device_exit ||
	       p->context_init || p->context_exit;
}

/*
 * A device keeps the version of the plug-in that its persona is of, also beyond a reload: the steps of the persona's feature
 * ask for the data of their own version.
 */
static struct uvd_module *trees_module_of(const struct uvd_device *dev, struct uvd_module *m)
{
	struct uvd_module *kept = dev->persona_module;

	return kept && dev->persona->feature && !strcmp(kept->plugin.name, m->plugin.name) ? kept : m;
}

struct uvd_trees *uvd_trees_new(struct uvd_device *dev, struct uvd_module *const *modules, unsigned int num,
				char error[UVD_PLUGIN_ERROR], int *err)
{
	struct uvd_trees *trees = uvd_zalloc(sizeof(*trees));

	snprintf(error, UVD_PLUGIN_ERROR, "no memory");
	*err = -ENOMEM;
	if (!trees)
		return NULL;
	atomic_init(&trees->ref, 1);
	pthread_mutex_init(&trees->lock, NULL);
	for (unsigned int i = 0; i < num; i++) {
		struct uvd_module *m = trees_module_of(dev, modules[i]);

		if (!module_takes_part(m))
			continue;
		trees->modules[trees->num_plugins++] = uvd_module_get(m);
		trees->has_contexts |= m->plugin.context_init || m->plugin.context_exit;
	}
	*err = trees_merge(trees, dev, error);
	if (!*err)
		return trees;
	uvd_trees_put(trees);
	return NULL;
}

struct uvd_tree *uvd_device_tree(const struct uvd_feature *const *features, const struct uvd_backend *ops,
				 const struct uvd_persona *persona, struct uvd_log *log, int *err)
{
	const struct uvd_feature *list[UVD_MAX_FEATURES + 1];
	struct uvd_backend has;
	unsigned int n = 0;

	*err = uvd_persona_ops(persona, ops, &has);
	if (*err)
		return NULL;
	while (*features && n < UVD_MAX_FEATURES - 1)
		list[n++] = *features++;
	if (persona->feature)
		list[n++] = persona->feature;
	list[n] = NULL;
	return uvd_tree_new(list, &has, persona->driver_id, log, err);
}

/* ---- plug-ins on the device -------------------------------------------------------------------------------------- */

static void plugin_device_put(struct uvd_plugin_device *p)
{
	if (!p || atomic_fetch_sub(&p->ref, 1) != 1)
		return;
	if (p->module->plugin.device_exit)
		p->module->plugin.device_exit(&p->dev->ib, p->data);
	uvd_module_put(p->module);
	free(p);
}

static struct uvd_plugin_device *plugin_device_find(const struct uvd_trees *trees, const struct uvd_module *module)
{
	for (unsigned int i = 0; trees && i < trees->num_plugins; i++)
		if (trees->modules[i] == module)
			return trees->plugins[i];
	return NULL;
}

static struct uvd_plugin_device *plugin_device_new(struct uvd_device *dev, struct uvd_module *module, int *err)
{
	struct uvd_plugin_device *p = uvd_zalloc(sizeof(*p));

	*err = -ENOMEM;
	if (!p)
		return NULL;
	*err = module->plugin.device_init ? module->plugin.device_init(&dev->ib, module->data, &p->data) : 0;
	*err = *err > 0 ? -EINVAL : *err;
	if (*err) {
		free(p);
		return NULL;
	}
	atomic_init(&p->ref, 1);
	p->dev = dev;
	p->module = uvd_module_get(module);
	return p;
}

int uvd_trees_begin(struct uvd_trees *trees, struct uvd_device *dev, const struct uvd_trees *old,
		    char error[UVD_PLUGIN_ERROR])
{
	struct uvd_plugin_device *p;
	int err;

	for (unsigned int i = 0; i < trees->num_plugins; i++) {
		p = plugin_device_find(old, trees->modules[i]);
		if (p) {
			atomic_fetch_add(&p->ref, 1);
		} else {
			p = plugin_device_new(dev, trees->modules[i], &err);
			if (!p) {
				snprintf(error, UVD_PLUGIN_ERROR, "plug-in '%s': device_init() of %s: %s",
					 trees->modules[i]->plugin.name, dev->config.ibdev, uvd_errno_name(err));
				return err;
			}
		}
		trees->plugins[i] = p;
	}
	return 0;
}

struct uvd_trees *uvd_trees_get(struct uvd_trees *trees)
{
	atomic_fetch_add(&trees->ref, 1);
	return trees;
}

void uvd_trees_put(struct uvd_trees *trees)
{
	struct uvd_tree_variant *v, *next;

	if (!trees || atomic_fetch_sub(&trees->ref, 1) != 1)
		return;
	for (v = trees->variants; v; v = next) {
		next = v->next;
		uvd_tree_free(v->tree);
		free(v);
	}
	uvd_tree_free(trees->plain);
	for (unsigned int i = trees->num_plugins; i-- > 0;) {
		plugin_device_put(trees->plugins[i]);
		uvd_module_put(trees->modules[i]);
	}
	pthread_mutex_destroy(&trees->lock);
	free(trees);
}

/* ---- plug-ins on a context --------------------------------------------------------------------------------------- */

/* Ends the first `num` plug-ins. */
static void context_exit_some(const struct uvd_trees *trees, unsigned int num, struct uvd_context *context, void **data)
{
	while (num-- > 0)
		if (trees->modules[num]->plugin.context_exit)
			trees->modules[num]->plugin.context_exit(context, data[num]);
	free(data);
}

int uvd_trees_context_init(const struct uvd_trees *trees, struct uvd_context *context, void ***data)
{
	void **d;
	int err;

	*data = NULL;
	if (!trees->has_contexts)
		return 0;
	d = calloc(trees->num_plugins, sizeof(*d));
	if (!d)
		return -ENOMEM;
	for (unsigned int i = 0; i < trees->num_plugins; i++) {
		const struct uvd_plugin *p = &trees->modules[i]->plugin;

		err = p->context_init ? p->context_init(context, trees->plugins[i]->data, &d[i]) : 0;
		if (err) {
			context_exit_some(trees, i, context, d);
			return err < 0 ? err : -EINVAL;
		}
	}
	*data = d;
	return 0;
}

void uvd_trees_context_exit(const struct uvd_trees *trees, struct uvd_context *context, void **data)
{
	if (data)
		context_exit_some(trees, trees->num_plugins, context, data);
}

int uvd_trees_find(const struct uvd_trees *trees, const struct uvd_plugin *symbol)
{
	for (unsigned int i = 0; i < trees->num_plugins; i++)
		if (trees->modules[i]->symbol == symbol)
			return i;
	return -1;
}
