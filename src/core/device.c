/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A device: creation, references, ports. unplug.c removes a device that has open files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uverbsd/log.h>

#include "account/account.h"
#include "backends/backends.h"
#include "core/internal.h"
#include "persona/persona.h"
#include "util/util.h"

/* Makes the first generation of parse trees: the backend is open. */
static int device_merge_trees(struct uvd_device *dev)
{
	struct uvd_module *modules[UVD_MAX_PLUGINS];
	char error[UVD_PLUGIN_ERROR];
	unsigned int num = uvd_plugins_list(dev->engine->plugins, modules);
	int err;

	dev->trees = uvd_trees_new(dev, modules, num, error, &err);
	if (err)
		uvd_logf(dev->engine->log, UVD_ERR, "%s: %s", dev->config.ibdev, error);
	while (num)
		uvd_module_put(modules[--num]);
	return err;
}

static int device_begin_plugins(struct uvd_device *dev)
{
	char error[UVD_PLUGIN_ERROR];
	int err = uvd_trees_begin(dev->trees, dev, NULL, error);

	if (err)
		uvd_logf(dev->engine->log, UVD_ERR, "%s", error);
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

/* Creates the User Capabilities that the configuration names. A backend may create others. */
static int create_ucaps(struct uvd_device *dev)
{
	int ret = 0;

	for (unsigned int i = 0; i < dev->config.ucaps.num && ret >= 0; i++) {
		ret = uvd_device_create_ucap(dev, dev->config.ucaps.names[i]);
		if (ret < 0)
			uvd_logf(dev->engine->log, UVD_ERR, "%s: no User Capability '%s': %s", dev->config.ibdev,
				 dev->config.ucaps.names[i], uvd_errno_name(ret));
	}
	return ret < 0 ? ret : 0;
}

/* Allow-lists and quotas do not hold for a client that keeps the adapter's own device file: see device_choose_memory(). */
static int device_check_memory(const struct uvd_device *dev)
{
	if (!uvd_device_has_rules(dev) || !dev->config.hca[0] || dev->config.memory != UVD_MEMORY_BORROW)
		return 0;
	uvd_logf(dev->engine->log, UVD_ERR,
		 "%s: %s: a client can get around it with --memory=borrow: use --memory=bounce", dev->config.ibdev,
		 dev->allow ? "allow" : "quota");
	return -EINVAL;
}

/*
 * Chooses for UVD_MEMORY_AUTO how an adapter reaches the memory of clients. A client whose thread is borrowed can keep the
 * adapter's own device file, where no list and no quota holds.
 */
static void device_choose_memory(struct uvd_device *dev)
{
	const struct uvd_backend *backend = &dev->ops;
	const char *obstacle = NULL;

	if (dev->config.memory != UVD_MEMORY_AUTO)
		return;
	if (uvd_device_has_rules(dev))
		obstacle = "it has an allow-list or a quota, which a client could get around";
	else if (!dev->engine->lends)
		obstacle = "no thread of a client can be borrowed here";
	else if (backend->borrow_obstacle)
		obstacle = backend->borrow_obstacle(&dev->ib);
	dev->config.memory = obstacle || !backend->borrow_obstacle ? UVD_MEMORY_BOUNCE : UVD_MEMORY_BORROW;
	dev->ib.config.memory = dev->config.memory;
	if (obstacle && backend->borrow_obstacle)
		uvd_logf(dev->engine->log, UVD_INFO,
			 "%s: --memory=bounce: data is copied, and peers cannot access clients' memory: %s",
			 dev->config.ibdev, obstacle);
}

static int find_ops(struct uvd_device *dev)
{
	const struct uvd_device_config *config = &dev->config;
	struct uvd_plugins *plugins = dev->engine->plugins;
	const struct uvd_backend *backend = uvd_plugins_backend_get(plugins, config->backend, &dev->backend_module);

	if (!backend) {
		uvd_logf(dev->engine->log, UVD_ERR, "%s: there is no backend '%s'", config->ibdev, config->backend);
		return -EINVAL;
	}
	dev->ib.engine_data = dev->backend_module->data;
	dev->persona = uvd_plugins_persona_get(plugins, config->persona, &dev->persona_module);
	if (!dev->persona) {
		uvd_logf(dev->engine->log, UVD_ERR, "%s: there is no persona '%s'", config->ibdev, config->persona);
		return -EINVAL;
	}
	if (uvd_persona_ops(dev->persona, backend, &dev->ops)) {
		uvd_logf(dev->engine->log, UVD_ERR, "%s: backend '%s' has no mapped queues, which persona '%s' needs",
			 config->ibdev, config->backend, config->persona);
		return -EINVAL;
	}
	dev->ib.ops = &dev->ops;
	return 0;
}

/* From here on dev->ops has what the device has: the parse trees and the filters follow it. */
static int device_open_backend(struct uvd_device *dev)
{
	int err = dev->ib.ops->open ? dev->ib.ops->open(&dev->ib) : 0;

	if (err)
		uvd_logf(dev->engine->log, UVD_ERR, "%s: backend '%s' does not open: %s", dev->config.ibdev,
			 dev->config.backend, uvd_errno_name(err));
	dev->backend_closed = err;
	if (err)
		return err;
	/* A backend with an adapter takes over what the adapter has: names, ports and their tables. They may change already. */
	uvd_lock(&dev->port_lock);
	dev->config = dev->ib.config;
	uvd_unlock(&dev->port_lock);
	device_choose_memory(dev);
	if (dev->ops.narrow)
		dev->ops.narrow(&dev->ib, &dev->ops);
	uvd_filters_begin(&dev->filters, &dev->ib);
	return 0;
}

/*
 * Stores what an adapter's port is now. Its link layer and the sizes of its tables stay. Threads of clients read the state
 * and the P_Keys without the lock. Caller holds port_lock.
 */
static void port_config_follow(struct uvd_port_config *port, const struct uvd_port_config *now)
{
	port->lid = now->lid;
	port->sm_lid = now->sm_lid;
	port->lmc = now->lmc;
	port->sm_sl = now->sm_sl;
	port->active_mtu = now->active_mtu;
	port->active_width = now->active_width;
	port->active_speed = now->active_speed;
	port->num_gids = now->num_gids < port->gid_tbl_len ? now->num_gids : port->gid_tbl_len;
	memcpy(port->gids, now->gids, sizeof(port->gids));
	__atomic_store_n(&port->down, now->down, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < now->num_pkeys; i++)
		__atomic_store_n(&port->pkeys[i], now->pkeys[i], __ATOMIC_RELAXED);
	__atomic_store_n(&port->num_pkeys, now->num_pkeys, __ATOMIC_RELEASE);
}

/* Caller holds port_lock. */
static void device_publish_tables(struct uvd_device *dev, unsigned int port)
{
	const int ret = dev->engine->publish_tables ? dev->engine->publish_tables(dev, port) : 0;

	if (ret)
		uvd_log_limited(
			dev->engine->log, UVD_WARN,
			"%s: cannot publish what has changed of port %u: %s; the sysfs directory shows its former state",
			dev->config.ibdev, port, uvd_errno_name(ret));
}

static void device_follow_port(struct uvd_device *dev, unsigned int port)
{
	struct uvd_gid_attr gid_attrs[UVD_MAX_GIDS] = {};
	const struct uvd_backend *ops = dev->ib.ops;
	struct uvd_port_config now = {};

	/* Not under port_lock, which the transport's main thread takes: an adapter may be slow. */
	if (!ops->take_port || port < 1 || port > dev->ib.config.num_ports ||
	    ops->take_port(&dev->ib, port, &now, gid_attrs))
		return;
	uvd_lock(&dev->port_lock);
	/* When the device is gone, its links are cut, and the sysfs directory may have another device of its name. */
	if (atomic_load(&dev->gone))
		goto unlock;
	port_config_follow(&dev->config.ports[port - 1], &now);
	port_config_follow(&dev->ib.config.ports[port - 1], &now);
	memcpy(dev->config.gid_attrs[port - 1], gid_attrs, sizeof(gid_attrs));
	memcpy(dev->ib.config.gid_attrs[port - 1], gid_attrs, sizeof(gid_attrs));
	device_publish_tables(dev, port);
unlock:
	uvd_unlock(&dev->port_lock);
}

static bool is_port_event(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_GID_CHANGE:
		return true;
	default:
		return false;
	}
}

/* The backend's event_handler. */
static void device_backend_event(struct uvd_ibdev *ib, enum ibv_event_type type, uint8_t port)
{
	struct uvd_device *dev = ib->owner;

	/* Publish first: a client that receives the event may read the sysfs directory at once. */
	if (is_port_event(type))
		device_follow_port(dev, port);
	uvd_device_event(ib, type, port);
	if (type == IBV_EVENT_DEVICE_FATAL)
		atomic_store(&dev->adapter_gone, true);
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
	dev->ib.log = engine->log;
	dev->ib.event_handler = device_backend_event;
	dev->ib.create_ucap = create_ucap;
	dev->ib.remove_ucap = remove_ucap;
	dev->ib.explain = uvd_device_explain;
	dev->ib.owner = dev;
	dev->backend_closed = true;
	atomic_init(&dev->ref, 1);
	pthread_mutex_init(&dev->lock, NULL);
	INIT_LIST_HEAD(&dev->files);
	pthread_mutex_init(&dev->port_lock, NULL);
	pthread_mutex_init(&dev->xrcd_lock, NULL);
	pthread_mutex_init(&dev->mcast_lock, NULL);
	dev->mcast_seed = (uint64_t)uvd_random(UINT32_MAX) << 32 | uvd_random(UINT32_MAX);
	pthread_mutex_init(&dev->filters_lock, NULL);

	/* A plug-in that is loaded meanwhile must not miss the device. */
	uvd_lock(&engine->plugins_lock);
	dev->replugs = uvd_engine_replugs(engine, config->ibdev);
	*err = find_ops(dev) ?: create_ucaps(dev) ?: device_open_backend(dev) ?: device_merge_trees(dev) ?:
	       uvd_device_allow_begin(dev) ?: uvd_device_quota_begin(dev) ?: device_check_memory(dev) ?:
	       uvd_device_shares_begin(dev) ?: uvd_device_filters_begin(dev) ?: device_begin_plugins(dev);
	if (!*err) {
		list_add_tail(&dev->of_engine, &engine->devices);
		dev->listed = true;
		if (engine->watch)
			engine->watch->added(engine->watch, dev);
	}
	uvd_unlock(&engine->plugins_lock);
	if (!*err)
		return dev;
	uvd_device_put(dev);
	return NULL;
}

struct uvd_device *uvd_device_get(struct uvd_device *dev)
{
	atomic_fetch_add(&dev->ref, 1);
	return dev;
}

void uvd_object_count_name(struct uvd_object_count *count, const char *name)
{
	unsigned int state = UVD_COUNT_UNUSED;

	if (!atomic_compare_exchange_strong(&count->state, &state, UVD_COUNT_BEGUN))
		return;
	snprintf(count->name, sizeof(count->name), "%s", name);
	atomic_store_explicit(&count->state, UVD_COUNT_NAMED, memory_order_release);
}

void uvd_device_unlist(struct uvd_device *dev)
{
	struct uvd_engine *engine = dev->engine;

	/* Only its creator and its owner touch `listed`, one after the other. */
	if (!dev->listed)
		return;
	uvd_lock(&engine->plugins_lock);
	list_del_init(&dev->of_engine);
	if (engine->watch)
		engine->watch->removed(engine->watch, dev);
	uvd_unlock(&engine->plugins_lock);
	dev->listed = false;
}

void uvd_device_put(struct uvd_device *dev)
{
	if (atomic_fetch_sub(&dev->ref, 1) != 1)
		return;
	uvd_device_unlist(dev);
	uvd_trees_put(dev->trees);
	if (dev->ib.filters)
		uvd_device_filters_close(dev);
	if (!dev->backend_closed && dev->ib.ops->close)
		dev->ib.ops->close(&dev->ib);
	if (dev->ib.filters)
		uvd_filters_end(&dev->filters);
	uvd_device_remove_ucaps(dev);
	uvd_module_put(dev->persona_module);
	uvd_module_put(dev->backend_module);
	uvd_allow_free(dev->allow);
	uvd_quota_put(dev->quota);
	pthread_mutex_destroy(&dev->lock);
	pthread_mutex_destroy(&dev->port_lock);
	pthread_mutex_destroy(&dev->xrcd_lock);
	pthread_mutex_destroy(&dev->mcast_lock);
	pthread_mutex_destroy(&dev->filters_lock);
	free(dev);
}

int uvd_device_set_port(struct uvd_device *dev, unsigned int port, bool up)
{
	struct uvd_ibdev *ib = &dev->ib;
	int ret = 1;

	if (port < 1 || port > dev->config.num_ports)
		return -EINVAL;
	uvd_lock(&dev->port_lock);
	if (!atomic_load(&dev->gone) && uvd_config_port_down(&ib->config.ports[port - 1]) == up) {
		/* Publish first: a client that receives the event may read the sysfs directory at once. */
		if (dev->engine->publish_port)
			ret = dev->engine->publish_port(dev, port, up);
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
	uvd_unlock(&dev->port_lock);
	return ret;
}

/* ---- addresses that the machine loses ------------------------------------------------------------------------------ */

/* Sets the bits of the GIDs that are this address. Returns whether one has changed. */
static bool lost_set(uint32_t *lost, const union ibv_gid *gids, unsigned int num, const union ibv_gid *ip, bool has)
{
	uint32_t bits = 0, was;

	for (unsigned int i = 0; i < num; i++)
		if (!memcmp(&gids[i], ip, sizeof(*ip)))
			bits |= 1u << i;
	was = has ? __atomic_fetch_and(lost, ~bits, __ATOMIC_RELAXED) : __atomic_fetch_or(lost, bits, __ATOMIC_RELAXED);
	return (was & bits) != (has ? 0 : bits);
}

static bool port_set_ip(struct uvd_port_config *port, const union ibv_gid *ip, bool has)
{
	return lost_set(&port->lost_gids, port->gids, port->num_gids, ip, has);
}

/* Publishes the change of a port. Returns whether there was one. */
static bool device_port_set_ip(struct uvd_device *dev, unsigned int port, const union ibv_gid *ip, bool has)
{
	bool changed;

	uvd_lock(&dev->port_lock);
	/* The sysfs directory may have another device of its name. */
	changed = !atomic_load(&dev->gone) && port_set_ip(&dev->config.ports[port - 1], ip, has);
	if (changed)
		device_publish_tables(dev, port);
	uvd_unlock(&dev->port_lock);
	return changed;
}

static void device_tell_watch(struct uvd_device *dev)
{
	struct uvd_engine *engine = dev->engine;

	uvd_lock(&engine->plugins_lock);
	if (engine->watch)
		engine->watch->addresses(engine->watch, dev);
	uvd_unlock(&engine->plugins_lock);
}

bool uvd_device_set_ip(struct uvd_device *dev, const union ibv_gid *ip, bool has)
{
	bool changed[UVD_MAX_PORTS] = {};

	if (!lost_set(&dev->config.ips.lost, dev->config.ips.gids, dev->config.ips.num, ip, has))
		return false;
	for (unsigned int i = 0; i < dev->config.num_ports; i++)
		changed[i] = device_port_set_ip(dev, i + 1, ip, has);
	device_tell_watch(dev);
	for (unsigned int i = 0; i < dev->config.num_ports; i++) {
		if (!changed[i])
			continue;
		port_set_ip(&dev->ib.config.ports[i], ip, has);
		uvd_device_event(&dev->ib, IBV_EVENT_GID_CHANGE, i + 1);
	}
	return true;
}

int uvd_ibdev_set_port(struct uvd_ibdev *dev, unsigned int port, bool up)
{
	return uvd_device_set_port(dev->owner, port, up);
}

int uvd_device_query_counters(struct uvd_device *dev, unsigned int port, uint64_t values[UVD_PORT_COUNTERS])
{
	int ret = -ENODEV;

	if (!dev->ib.ops->query_port_counters)
		return -EOPNOTSUPP;
	uvd_lock(&dev->port_lock);
	if (!dev->backend_closed)
		ret = dev->ib.ops->query_port_counters(&dev->ib, port, values);
	uvd_unlock(&dev->port_lock);
	return ret;
}
