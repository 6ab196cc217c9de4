/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The devices that identifiers are bound to, and the addresses of their ports. */
#include <arpa/inet.h>
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

static void cm_device_added(struct uvd_device_watch *watch, const struct uvd_device *dev)
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
	memcpy(device->ports, dev->config.ports, sizeof(device->ports));
	if (dev->config.hca[0])
		uvd_logf(cm->engine->log, UVD_INFO,
			 "%s: " UVD_CM_NODE " connects clients of this process alone, and none of other hosts",
			 device->name);
	cm_lock(cm);
	device->index = cm->next_index++;
	list_add_tail(&device->of_cm, &cm->devices);
	cm_unlock(cm);
}

/* As with a GID of the kernel, identifiers that are bound to the address keep it. */
static void cm_device_addresses(struct uvd_device_watch *watch, const struct uvd_device *dev)
{
	struct uvd_cm *cm = container_of(watch, struct uvd_cm, watch);
	struct cm_device *device;

	cm_lock(cm);
	list_for_each_entry(device, &cm->devices, of_cm) {
		if (device->dev != dev)
			continue;
		device->ips.lost = dev->config.ips.lost;
		for (unsigned int i = 0; i < device->num_ports; i++)
			device->ports[i].lost_gids = dev->config.ports[i].lost_gids;
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

/* An address of IPoIB has the first GID of its port. */
static void end_gid(const struct cm_id *id, const union cm_addr *addr, uint8_t gid[16])
{
	if (id->device && cm_id_is_ib(id) && addr->family != UVD_AF_IB)
		memcpy(gid, cm_id_port(id)->gids[0].raw, 16);
	else
		cm_addr_gid(addr, gid);
}

void cm_id_gids(const struct cm_id *id, uint8_t sgid[16], uint8_t dgid[16])
{
	union cm_addr target;

	cm_addr_target(&id->dst, &id->src, &target);
	end_gid(id, &id->src, sgid);
	end_gid(id, &target, dgid);
}

/* A number that both ends' packets are spread by: 20 bits of a hash of the ports (rdma_calc_flow_label()). */
uint32_t cm_id_flow_label(const struct cm_id *id)
{
	const uint32_t ports = cm_addr_port(&id->src) * 31u + cm_addr_port(&id->dst);

	return cm_id_is_ib(id) ? 0 : ((ports * 2654435761u) >> 12) | 0xc000;
}

void cm_id_ah(const struct cm_id *id, struct ib_uverbs_ah_attr *ah)
{
	const struct uvd_port_config *port = cm_id_port(id);
	uint8_t sgid[16];

	*ah = (struct ib_uverbs_ah_attr){ .port_num = id->port };
	if (cm_id_is_ib(id)) {
		ah->dlid = port->lid;
		return;
	}
	ah->is_global = 1;
	cm_id_gids(id, sgid, ah->grh.dgid);
	for (unsigned int i = 0; i < port->num_gids; i++)
		if (!memcmp(port->gids[i].raw, sgid, sizeof(sgid)))
			ah->grh.sgid_index = i;
	ah->grh.flow_label = cm_id_flow_label(id);
	ah->grh.hop_limit = 64;
	ah->grh.traffic_class = id->tos;
}
