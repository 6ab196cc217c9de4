/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The engine and its devices: what exists before any client comes. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <uverbsd/log.h>

#include "client/client.h"
#include "util/util.h"
#include "dispatch/tree.h"
#include "objects/device_features.h"
#include "objects/file.h"
#include "objects/objects.h"
#include "persona/persona.h"

/*
 * glibc keeps small chunks in lists of their own ("fastbins") until one is freed beside much free memory, and goes through
 * all lists then. Who destroys objects in some orders pays for that at each of them, as much as for the destruction.
 */
static void free_small_chunks_at_once(void)
{
	mallopt(M_MXFAST, 0);
}

int uvd_engine_init(struct uvd_engine *engine, struct uvd_log *log)
{
	free_small_chunks_at_once();
	memset(engine, 0, sizeof(*engine));
	engine->log = log;
	engine->mms = uvd_mm_table_new();
	if (!engine->mms)
		return -ENOMEM;
	engine->fabric = uvd_fabric_new(log);
	if (!engine->fabric) {
		uvd_mm_table_free(engine->mms);
		return -ENOMEM;
	}
	uvd_ucaps_init(&engine->ucaps);
	return 0;
}

void uvd_engine_fini(struct uvd_engine *engine)
{
	uvd_ucaps_fini(&engine->ucaps);
	uvd_fabric_free(engine->fabric);
	uvd_mm_table_free(engine->mms);
}

/* Of every device, whatever it poses as. */
static const struct uvd_feature *const features[] = { &uvd_feature_common, &uvd_feature_own,
							&uvd_feature_port_state };

struct uvd_tree *uvd_device_tree(const struct uvd_backend *ops, const struct uvd_persona *persona, struct uvd_log *log,
				 int *err)
{
	const struct uvd_feature *list[UVD_COUNT(features) + 2] = { NULL };

	memcpy(list, features, sizeof(features));
	list[UVD_COUNT(features)] = persona->feature;
	return uvd_tree_new(list, ops, persona->driver_id, log, err);
}

static int add_features(struct uvd_device *dev)
{
	const struct uvd_feature *const *more = dev->engine->features;
	int err = 0;

	for (unsigned int i = 0; i < UVD_COUNT(features) && !err; i++)
		err = uvd_device_features_add(dev, features[i]);
	if (dev->persona->feature)
		err = err ?: uvd_device_features_add(dev, dev->persona->feature);
	for (; more && *more && !err; more++)
		err = uvd_device_features_add(dev, *more);
	return err;
}

static int create_ucap(struct uvd_ibdev *ib, const char *name)
{
	return uvd_device_create_ucap(ib->owner, name);
}

static void remove_ucap(struct uvd_ibdev *ib, const char *name)
{
	uvd_device_remove_ucap(ib->owner, name);
}

/* Those that the configuration names; a backend may create others. */
static int create_ucaps(struct uvd_device *dev)
{
	int ret = 0;

	for (unsigned int i = 0; i < dev->config.ucaps.num && ret >= 0; i++) {
		ret = uvd_device_create_ucap(dev, dev->config.ucaps.names[i]);
		if (ret < 0)
			uvd_logf(dev->engine->log, UVD_ERR, "%s: no User Capability '%s': %s", dev->config.ibdev,
				 dev->config.ucaps.names[i], strerror(-ret));
	}
	return ret < 0 ? ret : 0;
}

struct uvd_device *uvd_device_new(struct uvd_engine *engine, const struct uvd_device_config *config, int *err)
{
	struct uvd_device *dev = uvd_zalloc(sizeof(*dev));

	if (!dev) {
		*err = -ENOMEM;
		return NULL;
	}
	dev->engine = engine;
	dev->config = *config;
	dev->ib.config = *config;
	dev->ib.fabric = engine->fabric;
	dev->ib.log = engine->log;
	dev->ib.event_handler = uvd_device_event;
	dev->ib.create_ucap = create_ucap;
	dev->ib.remove_ucap = remove_ucap;
	dev->ib.owner = dev;
	dev->backend_closed = true;
	atomic_init(&dev->ref, 1);
	pthread_mutex_init(&dev->lock, NULL);
	pthread_mutex_init(&dev->port_lock, NULL);
	pthread_mutex_init(&dev->xrcd_lock, NULL);
	uvd_device_features_init(dev);

	*err = -EINVAL;
	dev->ib.ops = uvd_backend_find(config->backend);
	if (!dev->ib.ops) {
		uvd_logf(engine->log, UVD_ERR, "%s: there is no backend '%s'", config->ibdev, config->backend);
		goto put;
	}
	dev->persona = uvd_persona_find(config->persona);
	if (!dev->persona) {
		uvd_logf(engine->log, UVD_ERR, "%s: there is no persona '%s'", config->ibdev, config->persona);
		goto put;
	}
	*err = add_features(dev) ?: uvd_device_features_merge(dev) ?: create_ucaps(dev);
	if (*err)
		goto put;
	*err = dev->ib.ops->open ? dev->ib.ops->open(&dev->ib) : 0;
	if (*err) {
		uvd_logf(engine->log, UVD_ERR, "%s: backend '%s' does not open: %s", config->ibdev, config->backend,
			 strerror(-*err));
		goto put;
	}
	dev->backend_closed = false;
	return dev;
put:
	uvd_device_put(dev);
	return NULL;
}

int uvd_device_set_port(struct uvd_device *dev, unsigned int port, bool up)
{
	struct uvd_ibdev *ib = &dev->ib;
	int ret = 1;

	if (port < 1 || port > dev->config.num_ports)
		return -EINVAL;
	pthread_mutex_lock(&dev->port_lock);
	if (!atomic_load(&dev->gone) && uvd_config_port_down(&ib->config.ports[port - 1]) == up) {
		/* Whoever sees the event may read the published tree at once. */
		if (dev->engine->publish_port)
			ret = dev->engine->publish_port(dev->engine, &dev->config, port, up);
		if (ret < 0)
			goto unlock;
		__atomic_store_n(&dev->config.ports[port - 1].down, !up, __ATOMIC_RELAXED);
		__atomic_store_n(&ib->config.ports[port - 1].down, !up, __ATOMIC_RELAXED);
		if (ib->ops->port_changed)
			ib->ops->port_changed(ib, port, up);
		uvd_device_event(ib, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, port);
		ret = 0;
	}
unlock:
	pthread_mutex_unlock(&dev->port_lock);
	return ret;
}
