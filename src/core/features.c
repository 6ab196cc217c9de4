/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The features of a device, and which of them a context sees. A feature that requires a User Capability is not in the
 * plain tree. A context that has the capability uses another tree, merged from all features that it may see, so no
 * look-up during a call has to check rights.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"
#include "persona/persona.h"
#include "util/util.h"

struct uvd_tree_variant {
	struct uvd_tree_variant *next;
	uint32_t features; /* bits: indices in the device's list of features */
	struct uvd_tree *tree;
};

/* Returns the bits of the features that a context with these capabilities sees. *plain: those that need none. */
static uint32_t device_features_visible(struct uvd_device *dev, uint64_t mask, uint32_t *plain)
{
	struct uvd_ucaps *ucaps = &dev->engine->ucaps;
	const struct uvd_feature *const *features = dev->trees.features;
	uint32_t bits = 0;

	*plain = 0;
	uvd_lock(&ucaps->lock);
	for (unsigned int i = 0; features[i]; i++) {
		if (!features[i]->ucap)
			*plain |= 1u << i;
		/* Ignore a capability that other devices have created, but not this one. */
		for (unsigned int bit = 0; features[i]->ucap && bit < ucaps->num; bit++)
			if (mask >> bit & 1 && dev->ucap_refs[bit] && !strcmp(ucaps->list[bit].name, features[i]->ucap))
				bits |= 1u << i;
	}
	uvd_unlock(&ucaps->lock);
	return bits | *plain;
}

static struct uvd_tree *device_tree_make(struct uvd_device *dev, uint32_t bits, int *err)
{
	const struct uvd_feature *features[UVD_MAX_FEATURES + 1];
	unsigned int n = 0;

	for (unsigned int i = 0; dev->trees.features[i]; i++)
		if (bits >> i & 1)
			features[n++] = dev->trees.features[i];
	features[n] = NULL;
	return uvd_tree_new(features, dev->ib.ops, dev->persona->driver_id, dev->engine->log, err);
}

/* Finds or makes the tree of this set of features. Caller holds trees.lock. Returns 0 or a negative errno. */
static int device_tree_variant_get(struct uvd_device *dev, uint32_t bits, struct uvd_tree **tree)
{
	struct uvd_tree_variant *v;
	int err = -ENOMEM;

	for (v = dev->trees.variants; v; v = v->next) {
		if (v->features != bits)
			continue;
		*tree = v->tree;
		return 0;
	}
	v = uvd_zalloc(sizeof(*v));
	if (v)
		v->tree = device_tree_make(dev, bits, &err);
	if (!v || !v->tree) {
		free(v);
		return err;
	}
	v->features = bits;
	v->next = dev->trees.variants;
	dev->trees.variants = v;
	*tree = v->tree;
	return 0;
}

int uvd_device_tree_for(struct uvd_device *dev, uint64_t ucaps, struct uvd_tree **tree)
{
	uint32_t plain, bits;
	int err;

	*tree = NULL;
	bits = ucaps ? device_features_visible(dev, ucaps, &plain) : 0;
	if (!ucaps || bits == plain)
		return 0;
	uvd_lock(&dev->trees.lock);
	err = device_tree_variant_get(dev, bits, tree);
	uvd_unlock(&dev->trees.lock);
	return err;
}

void uvd_device_features_init(struct uvd_device *dev)
{
	pthread_mutex_init(&dev->trees.lock, NULL);
}

int uvd_device_features_add(struct uvd_device *dev, const struct uvd_feature *feature)
{
	unsigned int n = 0;

	while (dev->trees.features[n])
		n++;
	if (n == UVD_MAX_FEATURES)
		return -ENOSPC;
	dev->trees.features[n] = feature;
	return 0;
}

int uvd_device_features_merge(struct uvd_device *dev)
{
	uint32_t plain = 0, all = 0;
	struct uvd_tree *whole;
	int err = 0;

	for (unsigned int i = 0; dev->trees.features[i]; i++) {
		all |= 1u << i;
		plain |= dev->trees.features[i]->ucap ? 0 : 1u << i;
	}
	/* Refuse features that conflict now, and not when the first client has the capabilities that they require. */
	if (all != plain) {
		whole = device_tree_make(dev, all, &err);
		uvd_tree_free(whole);
	}
	dev->tree = err ? NULL : device_tree_make(dev, plain, &err);
	return err;
}

void uvd_device_features_fini(struct uvd_device *dev)
{
	struct uvd_tree_variant *v, *next;

	for (v = dev->trees.variants; v; v = next) {
		next = v->next;
		uvd_tree_free(v->tree);
		free(v);
	}
	uvd_tree_free(dev->tree);
	pthread_mutex_destroy(&dev->trees.lock);
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
