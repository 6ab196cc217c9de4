/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The devices that identifiers are bound to, and the addresses of their ports. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uverbsd/log.h>
#include "cm/internal.h"
#include "cm/message.h"

static void cm_device_put(struct cm_device *device)
{
	if (--device->ref)
		return;
	list_del_init(&device->of_cm);
	free(device);
}

static void cm_device_added(struct uvd_device_watch *watch, struct uvd_device *dev)
{
	struct uvd_cm *cm = container_of(watch, struct uvd_cm, watch);
	struct cm_device *device = calloc(1, sizeof(*device));

	if (!device) {
		uvd_logf(cm->engine->log, UVD_ERR, "%s: no memory: it cannot be used by " UVD_CM_NODE,
			 dev->config.ibdev);
		return;
	}
	device->dev = dev;
	device->ref = 1;
	strcpy(device->name, dev->config.ibdev);
	device->num_ports = dev->config.num_ports;
	device->node_guid = dev->config.node_guid;
	device->ips = dev->config.ips;
	device->num_wires = dev->config.num_wires;
	memcpy(device->ports, dev->config.ports, sizeof(device->ports));
	device->forwards = dev->config.hca[0];
	if (device->forwards)
		uvd_logf(cm->engine->log, UVD_INFO,
			 "%s: " UVD_CM_NODE " connects clients of this process alone, and none of other hosts",
			 device->name);
	cm_lock(cm);
	device->index = cm->next_index++;
	list_add_tail(&device->of_cm, &cm->devices);
	cm_unlock(cm);
}

static void device_take_addresses(struct cm_device *device, const struct uvd_device *dev)
{
	device->ips.lost = dev->config.ips.lost;
	for (unsigned int i = 0; i < device->num_ports; i++)
		device->ports[i].lost_gids = dev->config.ports[i].lost_gids;
}

static void cm_device_addresses(struct uvd_device_watch *watch, const struct uvd_device *dev)
{
	struct uvd_cm *cm = container_of(watch, struct uvd_cm, watch);
	struct cm_device *device;
	struct cm_id *id;

	cm_lock(cm);
	list_for_each_entry(device, &cm->devices, of_cm)
		if (device->dev == dev)
			device_take_addresses(device, dev);
	for (size_t i = 0; i < cm->ids.size; i++) {
		id = cm->ids.entries[i];
		if (id && id->device && id->device->dev == dev && !cm_id_is_ib(id))
			id->lost = id->lost || cm_addr_is_lost(cm, &id->src);
	}
	cm_unlock(cm);
}

/* Takes the device from an identifier whose client is told so, and which can only be destroyed now (ucma_close_id()). */
static void cm_id_lose_device(struct cm_id *id)
{
	cm_event_tell(id, CM_EVENT_DEVICE_REMOVAL, 0);
	cm_conn_end(id, false);
	cm_port_put(id);
	id->state = CM_DEVICE_REMOVAL;
	cm_id_drop_device(id);
}

static void cm_device_removed(struct uvd_device_watch *watch, const struct uvd_device *dev)
{
	struct uvd_cm *cm = container_of(watch, struct uvd_cm, watch);
	struct cm_device *device, *next;
	struct cm_id *id;

	cm_lock(cm);
	list_for_each_entry_safe(device, next, &cm->devices, of_cm) {
		if (device->dev != dev)
			continue;
		list_del_init(&device->of_cm);
		for (size_t i = 0; i < cm->ids.size; i++) {
			id = cm->ids.entries[i];
			if (id && id->device == device)
				cm_id_lose_device(id);
		}
		cm_device_put(device);
	}
	cm_unlock(cm);
}

void cm_devices_init(struct uvd_cm *cm)
{
	struct uvd_device *dev;

	INIT_LIST_HEAD(&cm->devices);
	INIT_LIST_HEAD(&cm->groups);
	cm->watch.added = cm_device_added;
	cm->watch.removed = cm_device_removed;
	cm->watch.addresses = cm_device_addresses;
	uvd_lock(&cm->engine->plugins_lock);
	cm->engine->watch = &cm->watch;
	list_for_each_entry(dev, &cm->engine->devices, of_engine)
		cm_device_added(&cm->watch, dev);
	uvd_unlock(&cm->engine->plugins_lock);
}

void cm_devices_fini(struct uvd_cm *cm)
{
	uvd_lock(&cm->engine->plugins_lock);
	cm->engine->watch = NULL;
	uvd_unlock(&cm->engine->plugins_lock);
	while (!list_empty(&cm->devices))
		cm_device_put(list_first_entry(&cm->devices, struct cm_device, of_cm));
}

/* lost: bits of those that do not count */
static bool gids_have(const union ibv_gid *gids, unsigned int num, uint32_t lost, const uint8_t gid[16])
{
	for (unsigned int i = 0; i < num; i++)
		if (!(lost >> i & 1) && !memcmp(gids[i].raw, gid, 16))
			return true;
	return false;
}

/*
 * On Ethernet an address belongs to a port that has its GID. On InfiniBand it is an address of IPoIB: the device's, or a loopback
 * address.
 */
static bool port_has(const struct cm_device *device, const struct uvd_port_config *port, const union cm_addr *addr)
{
	const bool is_ib = port->link_layer == IBV_LINK_LAYER_INFINIBAND;
	uint8_t gid[16];

	cm_addr_gid(addr, gid);
	if (is_ib && addr->family != UVD_AF_IB)
		return cm_addr_is_loopback(addr) || gids_have(device->ips.gids, device->ips.num, device->ips.lost, gid);
	return is_ib == (addr->family == UVD_AF_IB) && gids_have(port->gids, port->num_gids, port->lost_gids, gid);
}

bool cm_device_find(struct uvd_cm *cm, const union cm_addr *addr, struct cm_device **device, uint8_t *port)
{
	struct cm_device *d;

	list_for_each_entry(d, &cm->devices, of_cm)
		for (unsigned int i = 0; i < d->num_ports; i++) {
			if (!port_has(d, &d->ports[i], addr))
				continue;
			*device = d;
			*port = i + 1;
			return true;
		}
	return false;
}

static bool port_has_lost(const struct uvd_port_config *port, const uint8_t gid[16])
{
	return port->link_layer == IBV_LINK_LAYER_ETHERNET && port->lost_gids &&
	       gids_have(port->gids, port->num_gids, ~port->lost_gids, gid);
}

bool cm_addr_is_lost(struct uvd_cm *cm, const union cm_addr *addr)
{
	struct cm_device *d;
	uint8_t gid[16];

	cm_addr_gid(addr, gid);
	list_for_each_entry(d, &cm->devices, of_cm)
		for (unsigned int i = 0; i < d->num_ports; i++)
			if (port_has_lost(&d->ports[i], gid))
				return true;
	return false;
}

void cm_id_set_device(struct cm_id *id, struct cm_device *device, uint8_t port)
{
	device->ref++;
	id->device = device;
	id->port = port;
}

void cm_id_drop_device(struct cm_id *id)
{
	if (id->device)
		cm_device_put(id->device);
	id->device = NULL;
	id->port = 0;
}

/* ---- AF_IB without a source ---------------------------------------------------------------------------------------- */

static bool port_has_pkey(const struct uvd_port_config *port, uint16_t pkey)
{
	for (unsigned int i = 0; i < port->num_pkeys; i++)
		if ((port->pkeys[i] & 0x7fff) == (pkey & 0x7fff))
			return true;
	return false;
}

/* The GID of the port that is the destination, or of its subnet. NULL: none */
static const union ibv_gid *port_reaches_gid(const struct uvd_port_config *port, const struct uvd_sockaddr_ib *dst)
{
	if (!port_has_pkey(port, be16toh(dst->pkey)))
		return NULL;
	for (unsigned int i = 0; i < port->num_gids; i++) {
		const union ibv_gid *gid = &port->gids[i];

		if (!uvd_config_has_gid(port, i))
			continue;
		if (!memcmp(gid->raw, dst->gid, 16) || (!memcmp(gid->raw, dst->gid, 8) && !uvd_config_port_down(port)))
			return gid;
	}
	return NULL;
}

static int choose_subnet(struct cm_id *id)
{
	struct cm_device *d;

	list_for_each_entry(d, &id->cm->devices, of_cm)
		for (unsigned int i = 0; i < d->num_ports; i++) {
			const union ibv_gid *gid = port_reaches_gid(&d->ports[i], &id->dst.ib);

			if (!gid)
				continue;
			memcpy(id->src.ib.gid, gid->raw, 16);
			cm_id_set_device(id, d, i + 1);
			return 0;
		}
	return -ENODEV;
}

/* This machine: the first port that is up, whatever its link layer. */
static int choose_loopback(struct cm_id *id)
{
	static const uint8_t loopback[16] = { [15] = 1 };
	struct cm_device *d;

	if (list_empty(&id->cm->devices))
		return -ENODEV;
	list_for_each_entry(d, &id->cm->devices, of_cm)
		for (unsigned int i = 0; i < d->num_ports && !id->device; i++)
			if (!uvd_config_port_down(&d->ports[i]))
				cm_id_set_device(id, d, i + 1);
	if (!id->device)
		cm_id_set_device(id, list_first_entry(&id->cm->devices, struct cm_device, of_cm), 1);
	memcpy(id->src.ib.gid, loopback, 16);
	return 0;
}

int cm_id_choose_ib(struct cm_id *id)
{
	if (id->device)
		return 0;
	return cm_addr_is_any(&id->dst) ? choose_loopback(id) : choose_subnet(id);
}
