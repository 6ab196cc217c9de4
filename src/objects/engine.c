/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The engine and its devices: what exists before any client comes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uverbsd/log.h>

#include "client/client.h"
#include "dispatch/alloc.h"
#include "dispatch/tree.h"
#include "objects/file.h"
#include "objects/objects.h"
#include "persona/persona.h"

int uvd_engine_init(struct uvd_engine *engine, struct uvd_log *log)
{
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
	return 0;
}

void uvd_engine_fini(struct uvd_engine *engine)
{
	uvd_fabric_free(engine->fabric);
	uvd_mm_table_free(engine->mms);
}

struct uvd_tree *uvd_device_tree(const struct uvd_backend *ops, const struct uvd_persona *persona, struct uvd_log *log,
				 int *err)
{
	const struct uvd_feature *features[] = { &uvd_feature_common, &uvd_feature_own, persona->feature, NULL };

	return uvd_tree_new(features, ops, persona->driver_id, log, err);
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
	dev->ib.owner = dev;
	atomic_init(&dev->ref, 1);
	pthread_mutex_init(&dev->lock, NULL);
	pthread_mutex_init(&dev->port_lock, NULL);

	*err = -EINVAL;
	dev->ib.ops = uvd_backend_find(config->backend);
	if (!dev->ib.ops) {
		uvd_logf(engine->log, UVD_ERR, "%s: there is no backend '%s'", config->ibdev, config->backend);
		goto free_dev;
	}
	dev->persona = uvd_persona_find(config->persona);
	if (!dev->persona) {
		uvd_logf(engine->log, UVD_ERR, "%s: there is no persona '%s'", config->ibdev, config->persona);
		goto free_dev;
	}
	dev->tree = uvd_device_tree(dev->ib.ops, dev->persona, engine->log, err);
	if (!dev->tree)
		goto free_dev;
	*err = dev->ib.ops->open ? dev->ib.ops->open(&dev->ib) : 0;
	if (*err) {
		uvd_logf(engine->log, UVD_ERR, "%s: backend '%s' does not open: %s", config->ibdev, config->backend,
			 strerror(-*err));
		goto free_tree;
	}
	return dev;
free_tree:
	uvd_tree_free(dev->tree);
free_dev:
	pthread_mutex_destroy(&dev->lock);
	pthread_mutex_destroy(&dev->port_lock);
	free(dev);
	return NULL;
}

int uvd_device_set_port(struct uvd_device *dev, unsigned int port, bool up)
{
	struct uvd_ibdev *ib = &dev->ib;
	int ret = 1;

	if (port < 1 || port > dev->config.num_ports)
		return -EINVAL;
	pthread_mutex_lock(&dev->port_lock);
	if (!dev->backend_closed && uvd_config_port_down(&ib->config.ports[port - 1]) == up) {
		__atomic_store_n(&dev->config.ports[port - 1].down, !up, __ATOMIC_RELAXED);
		__atomic_store_n(&ib->config.ports[port - 1].down, !up, __ATOMIC_RELAXED);
		if (ib->ops->port_changed)
			ib->ops->port_changed(ib, port, up);
		uvd_device_event(ib, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, port);
		ret = 0;
	}
	pthread_mutex_unlock(&dev->port_lock);
	return ret;
}
