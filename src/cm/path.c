/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Paths, and what follows from them. On RoCE the kernel makes the record itself (cma_resolve_iboe_route()). On InfiniBand a subnet
 * manager answers; here this file does, as opensm would (osm_sa_path_record.c).
 */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include "cm/message.h"

enum {
	LIFETIME = 18 /* opensm's default, and RoCE's */,
	ROCE_HOPS = 64,
	CA_ACK_DELAY = 15 /* uvd_config_query_device() */
};

/* ---- the other end ------------------------------------------------------------------------------------------------- */

uint8_t cm_port_rate(const struct uvd_port_config *port)
{
	/* By bit of enum ib_port_width, and by bit of enum ib_port_speed. SDR is 2.5 Gb/s, and FDR-10 counts as QDR. */
	static const uint8_t lanes[] = { 1, 4, 8, 12, 2 },
			     speeds[] = { 5, 10, 20, 20, 28, 50, 100, 200 }; /* of 0.5 Gb/s */
	static const struct {
		unsigned int halves;
		uint8_t rate;
	} rates[] = {
		{ 5, IBV_RATE_2_5_GBPS },   { 10, IBV_RATE_5_GBPS },	{ 20, IBV_RATE_10_GBPS },
		{ 40, IBV_RATE_20_GBPS },   { 60, IBV_RATE_30_GBPS },	{ 80, IBV_RATE_40_GBPS },
		{ 120, IBV_RATE_60_GBPS },  { 160, IBV_RATE_80_GBPS },	{ 240, IBV_RATE_120_GBPS },
		{ 28, IBV_RATE_14_GBPS },   { 56, IBV_RATE_28_GBPS },	{ 112, IBV_RATE_56_GBPS },
		{ 224, IBV_RATE_112_GBPS }, { 336, IBV_RATE_168_GBPS }, { 50, IBV_RATE_25_GBPS },
		{ 100, IBV_RATE_50_GBPS },  { 200, IBV_RATE_100_GBPS }, { 400, IBV_RATE_200_GBPS },
		{ 600, IBV_RATE_300_GBPS }, { 800, IBV_RATE_400_GBPS }, { 1200, IBV_RATE_600_GBPS },
	};
	const unsigned int width = __builtin_ffs(port->active_width), speed = __builtin_ffs(port->active_speed);

	if (!width || width > sizeof(lanes) || !speed || speed > sizeof(speeds))
		return IBV_RATE_MAX;
	for (unsigned int i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		if (rates[i].halves == (unsigned int)lanes[width - 1] * speeds[speed - 1])
			return rates[i].rate;
	return IBV_RATE_MAX;
}

/* An address of IPoIB has the first GID of its port, and so has the loopback address of AF_IB. */
static void port_gid(const struct uvd_port_config *port, const union cm_addr *addr, uint8_t gid[16])
{
	if (port->link_layer == IBV_LINK_LAYER_INFINIBAND && (addr->family != UVD_AF_IB || cm_addr_is_any(addr)))
		memcpy(gid, port->gids[0].raw, 16);
	else
		cm_addr_gid(addr, gid);
}

/* Slower: rates are not in order as numbers, but the port with fewer or slower lanes has the lesser product. */
static bool port_is_slower(const struct uvd_port_config *a, const struct uvd_port_config *b)
{
	return a->active_width * a->active_speed < b->active_width * b->active_speed;
}

void cm_id_find_peer(struct cm_id *id)
{
	const struct uvd_port_config *own = cm_id_port(id), *port = own;
	struct cm_peer *peer = &id->peer;
	struct cm_device *device = id->device;
	uint8_t n = id->port;

	*peer = (struct cm_peer){};
	cm_addr_gid(&id->dst, peer->gid);
	if (!cm_addr_is_any(&id->dst)) {
		if (!cm_device_find(id->cm, &id->dst, &device, &n) ||
		    device->ports[n - 1].link_layer != IBV_LINK_LAYER_INFINIBAND)
			return;
		port = &device->ports[n - 1];
	}
	peer->found = true;
	peer->same_port = port == own;
	port_gid(port, &id->dst, peer->gid);
	peer->lid = port->lid;
	peer->mtu = port->active_mtu < own->active_mtu ? port->active_mtu : own->active_mtu;
	peer->rate = cm_port_rate(port_is_slower(port, own) ? port : own);
}

/* ---- the path ------------------------------------------------------------------------------------------------------ */

void cm_id_gids(const struct cm_id *id, uint8_t sgid[16], uint8_t dgid[16])
{
	port_gid(cm_id_port(id), &id->src, sgid);
	if (cm_id_is_ib(id))
		memcpy(dgid, id->peer.gid, 16);
	else
		cm_addr_gid(&id->dst, dgid);
}

/* The number by which both ends' packets are spread (cma_get_roce_udp_flow_label()). The passive end has the active end's. */
uint32_t cm_id_flow_label(const struct cm_id *id)
{
	enum { FLOW_LABEL_MASK = 0xfffff };
	const union cm_addr *from = id->passive ? &id->dst : &id->src, *to = id->passive ? &id->src : &id->dst;
	const uint32_t own = from->family == AF_INET6 ? ntohl(from->in6.sin6_flowinfo) & FLOW_LABEL_MASK : 0;

	if (cm_id_is_ib(id))
		return 0;
	return own ?: (cm_addr_port(from) * 31u + cm_addr_port(to)) & FLOW_LABEL_MASK;
}

uint16_t cm_id_pkey(const struct cm_id *id)
{
	if (!cm_id_is_ib(id) || id->src.family != UVD_AF_IB || cm_addr_is_any(&id->src))
		return CM_PKEY;
	return be16toh(id->src.ib.pkey);
}

/* A subnet manager says 0 for a path from a port to itself (InfiniBand 15.2.5.16). */
static uint8_t path_lifetime(const struct cm_id *id)
{
	return cm_id_is_ib(id) && id->peer.same_port ? 0 : LIFETIME;
}

static uint8_t ack_timeout(uint8_t lifetime)
{
	const uint8_t timeout = lifetime + 1;

	if (timeout >= CA_ACK_DELAY)
		return timeout + (CA_ACK_DELAY >= timeout - 1);
	return CA_ACK_DELAY + (timeout >= CA_ACK_DELAY - 1);
}

uint8_t cm_id_timeout(const struct cm_id *id)
{
	return id->timeout_set ? id->timeout : ack_timeout(path_lifetime(id));
}

void cm_path_of(const struct cm_id *id, struct cm_path *path)
{
	const struct uvd_port_config *port = cm_id_port(id);

	*path = (struct cm_path){
		.pkey = cm_id_pkey(id),
		.flow_label = cm_id_flow_label(id),
		.mtu = port->active_mtu,
		.hops = ROCE_HOPS,
		.traffic_class = id->path_tos,
		.lifetime = path_lifetime(id),
	};
	cm_id_gids(id, path->sgid, path->dgid);
	if (!cm_id_is_ib(id))
		return;
	path->slid = port->lid;
	path->dlid = id->peer.lid;
	path->mtu = id->peer.mtu;
	path->rate = id->peer.rate;
	path->hops = path->traffic_class = 0;
}

void cm_id_ah(const struct cm_id *id, struct ib_uverbs_ah_attr *ah)
{
	const struct uvd_port_config *port = cm_id_port(id);
	uint8_t sgid[16], dgid[16];
	union cm_addr target;

	*ah = (struct ib_uverbs_ah_attr){ .port_num = id->port };
	if (cm_id_is_ib(id)) {
		ah->dlid = id->peer.lid;
		ah->static_rate = id->peer.rate;
		return;
	}
	ah->is_global = 1;
	cm_id_gids(id, sgid, dgid);
	cm_addr_target(&id->dst, &id->src, &target);
	cm_addr_gid(&target, ah->grh.dgid);
	for (unsigned int i = 0; i < port->num_gids; i++)
		if (!memcmp(port->gids[i].raw, sgid, sizeof(sgid)))
			ah->grh.sgid_index = i;
	ah->grh.flow_label = cm_id_flow_label(id);
	ah->grh.hop_limit = ROCE_HOPS;
	ah->grh.traffic_class = id->path_tos;
}

/* ---- Q_Keys -------------------------------------------------------------------------------------------------------- */

void cm_id_default_qkey(struct cm_id *id)
{
	if (id->ps == RDMA_PS_IPOIB)
		id->qkey = CM_IPOIB_QKEY;
	else if (id->ps != RDMA_PS_TCP)
		id->qkey = CM_UDP_QKEY;
}

int cm_id_set_qkey(struct cm_id *id, uint32_t qkey)
{
	if (!qkey || (id->qkey && id->qkey != qkey))
		return -EINVAL;
	id->qkey = qkey;
	return 0;
}
