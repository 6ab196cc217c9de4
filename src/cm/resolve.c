/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* BIND, RESOLVE_ADDR and their older forms for IP alone, RESOLVE_ROUTE (rdma_bind_addr(), rdma_resolve_*() of cma.c). */
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include "cm/command.h"
#include "cm/message.h"

/* A copy of an address of the client's, with zeros behind it. */
static void addr_copy(union cm_addr *to, const void *from, size_t size)
{
	memset(to, 0, sizeof(*to));
	memcpy(to, from, size);
}

/* Only who binds to a low port is asked for the capability: that reads files of /proc. */
static void check_may_bind(struct cm_cmd *c, const union cm_addr *addr)
{
	const uint16_t port = cm_addr_port(addr);

	c->may_bind = port && port < 1024 && uvd_caller_capable(c->caller, CAP_NET_BIND_SERVICE);
}

/* ---- BIND ---------------------------------------------------------------------------------------------------------- */

/* An IPv6 address of a link needs its interface (cma_check_linklocal()). */
static int check_link_local(struct cm_id *id, const union cm_addr *addr)
{
	if (addr->family != AF_INET6 || !IN6_IS_ADDR_LINKLOCAL(&addr->in6.sin6_addr))
		return 0;
	if (!addr->in6.sin6_scope_id)
		return -EINVAL;
	id->has_interface = true;
	return 0;
}

/* The port space IPOIB is for InfiniBand alone (cma_acquire_dev_by_src_ip()). */
static int set_device(struct cm_id *id, struct cm_device *device, uint8_t port)
{
	if (id->ps == RDMA_PS_IPOIB && device->ports[port - 1].link_layer != IBV_LINK_LAYER_INFINIBAND)
		return -EINVAL;
	cm_id_set_device(id, device, port);
	return 0;
}

/* A specific address must be one of a device's. The kernel tells apart whether another interface has it. */
static int bind_device(struct cm_id *id)
{
	struct cm_device *device;
	uint8_t port;

	if (cm_addr_is_any(&id->src))
		return 0;
	if (!cm_device_find(id->cm, &id->src, &device, &port))
		return id->src.family == UVD_AF_IB || id->has_interface ? -ENODEV : -EADDRNOTAVAIL;
	id->has_interface = id->src.family != UVD_AF_IB;
	return set_device(id, device, port);
}

int cm_id_bind(struct cm_id *id, const union cm_addr *addr, const union cm_addr *dst, bool may)
{
	int err;

	if (!cm_addr_size(addr->family))
		return -EAFNOSUPPORT;
	if (id->state != CM_IDLE)
		return -EINVAL;
	err = check_link_local(id, addr);
	if (err)
		return err;
	id->src = *addr;
	err = bind_device(id);
	if (err)
		return err;
	if (!id->afonly_set)
		id->afonly = addr->family == AF_INET;
	if (dst) /* stays if there is no port, and of another family it is as much as there is room for (rdma_bind_addr_dst()) */
		memcpy(&id->dst, dst, cm_addr_size(addr->family));
	id->dst.family = addr->family;
	err = cm_port_get(id, may);
	if (err) {
		cm_id_drop_device(id);
		return err;
	}
	id->state = CM_ADDR_BOUND;
	return 0;
}

int cm_bind_ip_check(struct cm_cmd *c)
{
	const struct rdma_ucm_bind_ip *in = (const void *)c->in;

	if (in->addr.sin6_family != AF_INET && in->addr.sin6_family != AF_INET6)
		return cm_wrong(c, "addr.sin6_family", in->addr.sin6_family, -EINVAL);
	check_may_bind(c, (const union cm_addr *)&in->addr);
	return 0;
}

static int bind_to(struct cm_cmd *c, uint32_t number, const void *from, size_t size)
{
	union cm_addr addr;
	struct cm_id *id;
	int err = cm_cmd_id(c, number, &id);

	if (err)
		return err;
	addr_copy(&addr, from, size);
	if (id->state != CM_IDLE)
		return cm_wrong_state(c, id);
	err = cm_id_bind(id, &addr, NULL, c->may_bind);
	return err ? cm_wrong(c, "addr, with port", cm_addr_port(&addr), err) : 0;
}

int cm_bind_ip(struct cm_cmd *c)
{
	const struct rdma_ucm_bind_ip *in = (const void *)c->in;

	return bind_to(c, in->id, &in->addr, cm_addr_size(in->addr.sin6_family));
}

int cm_bind_check(struct cm_cmd *c)
{
	const struct rdma_ucm_bind *in = (const void *)c->in;

	if (in->reserved)
		return cm_wrong(c, "reserved", in->reserved, -EINVAL);
	if (!in->addr_size || in->addr_size != cm_addr_size(in->addr.ss_family))
		return cm_wrong(c, "addr_size", in->addr_size, -EINVAL);
	check_may_bind(c, (const union cm_addr *)&in->addr);
	return 0;
}

int cm_bind(struct cm_cmd *c)
{
	const struct rdma_ucm_bind *in = (const void *)c->in;

	return bind_to(c, in->id, &in->addr, in->addr_size);
}

/* ---- RESOLVE_ADDR -------------------------------------------------------------------------------------------------- */

/* Binds to the source, or to the wildcard address of the destination's family (cma_bind_addr()). */
static int bind_source(struct cm_id *id, const union cm_addr *src, const union cm_addr *dst, bool may)
{
	union cm_addr any;

	if (src->family)
		return cm_id_bind(id, src, dst, may);
	memset(&any, 0, sizeof(any));
	any.family = dst->family;
	if (dst->family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&dst->in6.sin6_addr))
		any.in6.sin6_scope_id = dst->in6.sin6_scope_id;
	if (dst->family == UVD_AF_IB)
		any.ib.pkey = dst->ib.pkey;
	return cm_id_bind(id, &any, dst, may);
}

static void set_loopback(union cm_addr *addr)
{
	if (addr->family == AF_INET)
		addr->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else if (addr->family == AF_INET6)
		addr->in6.sin6_addr = in6addr_loopback;
}

/* Is this GID an address of the family that other hosts can have a route to? */
static bool gid_is_global(const union ibv_gid *gid, bool is_ip4)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	const struct in6_addr *addr = (const struct in6_addr *)gid->raw;

	if (!memcmp(gid->raw, mapped, sizeof(mapped)))
		return is_ip4 && gid->raw[12] != IN_LOOPBACKNET;
	return !is_ip4 && !IN6_IS_ADDR_LINKLOCAL(addr) && !IN6_IS_ADDR_LOOPBACK(addr);
}

/* Sets the first address of the family that a device has for other hosts, if there is one: there Linux's route to a group begins. */
static void set_first_address(const struct cm_id *id, union cm_addr *addr)
{
	const bool is_ip4 = addr->family == AF_INET;
	const struct uvd_port_config *port;
	const struct cm_device *device;

	list_for_each_entry(device, &id->cm->devices, of_cm) {
		port = &device->ports[0];
		for (unsigned int i = 0; i < port->num_gids; i++) {
			if (!gid_is_global(&port->gids[i], is_ip4))
				continue;
			if (is_ip4)
				memcpy(&addr->in.sin_addr, &port->gids[i].raw[12], sizeof(addr->in.sin_addr));
			else
				memcpy(&addr->in6.sin6_addr, port->gids[i].raw, sizeof(addr->in6.sin6_addr));
			return;
		}
	}
}

/*
 * Sets the address of ours that reaches the destination: its own, as with Linux's routes to a local address, as the carrier reaches no
 * other so far. Returns 0, or the status of the event ADDR_ERROR.
 */
static int choose_source(struct cm_id *id)
{
	/* "Any" is this machine (cma_resolve_loopback()). A group is reached from any port: from the first one. */
	const bool is_here = cm_addr_is_any(&id->dst), is_group = cm_addr_is_multicast(&id->dst);
	union cm_addr src = id->dst;
	struct cm_device *device;
	uint8_t n;
	int err;

	if (!is_here && !is_group && !id->cm->carrier->reaches(id->cm, &id->dst))
		return -ENETUNREACH;
	if (id->device)
		return 0;
	if (is_here || is_group)
		set_loopback(&src);
	if (is_group && src.family != UVD_AF_IB)
		set_first_address(id, &src);
	cm_addr_set_port(&src, cm_addr_port(&id->src));
	if (!cm_device_find(id->cm, &src, &device, &n))
		return -ENODEV;
	err = set_device(id, device, n);
	if (!err)
		id->src = src;
	return err;
}

static int resolve_to(struct cm_cmd *c, uint32_t number, const union cm_addr *src, const union cm_addr *dst)
{
	struct cm_id *id;
	int err = cm_cmd_id(c, number, &id);

	if (err)
		return err;
	if (id->state != CM_ADDR_BOUND) {
		if (id->state != CM_IDLE)
			return cm_wrong_state(c, id);
		err = bind_source(id, src, dst, c->may_bind);
		if (err)
			return cm_wrong(c, "src_addr, with port", cm_addr_port(src), err);
	} else {
		id->dst = *dst;
	}
	if (id->src.family != dst->family)
		return cm_wrong(c, "dst_addr.ss_family", dst->family, -EINVAL);
	if (c->filtered.outcome == UVD_CM_ADDR_ERROR) {
		cm_event_tell(id, CM_EVENT_ADDR_ERROR, c->filtered.status);
		return 0;
	}
	if (dst->family == UVD_AF_IB) {
		err = cm_id_choose_ib(id);
		if (err)
			return cm_wrong(c, "dst_addr, with port", cm_addr_port(dst), err);
	} else {
		err = choose_source(id);
		if (err) {
			cm_log_addr_error(c, dst, err);
			cm_event_tell(id, CM_EVENT_ADDR_ERROR, err);
			return 0;
		}
	}
	if (cm_id_is_ib(id))
		cm_id_find_peer(id);
	id->state = CM_ADDR_RESOLVED;
	cm_event_tell(id, CM_EVENT_ADDR_RESOLVED, 0);
	return 0;
}

int cm_resolve_ip_check(struct cm_cmd *c)
{
	const struct rdma_ucm_resolve_ip *in = (const void *)c->in;
	const uint16_t src = in->src_addr.sin6_family, dst = in->dst_addr.sin6_family;

	if (src && src != AF_INET && src != AF_INET6)
		return cm_wrong(c, "src_addr.sin6_family", src, -EINVAL);
	if (dst != AF_INET && dst != AF_INET6)
		return cm_wrong(c, "dst_addr.sin6_family", dst, -EINVAL);
	check_may_bind(c, (const union cm_addr *)&in->src_addr);
	return 0;
}

int cm_resolve_ip(struct cm_cmd *c)
{
	const struct rdma_ucm_resolve_ip *in = (const void *)c->in;
	union cm_addr src, dst;

	addr_copy(&src, &in->src_addr, cm_addr_size(in->src_addr.sin6_family));
	addr_copy(&dst, &in->dst_addr, cm_addr_size(in->dst_addr.sin6_family));
	return resolve_to(c, in->id, &src, &dst);
}

int cm_resolve_addr_check(struct cm_cmd *c)
{
	const struct rdma_ucm_resolve_addr *in = (const void *)c->in;

	if (in->reserved)
		return cm_wrong(c, "reserved", in->reserved, -EINVAL);
	if (in->src_size && in->src_size != cm_addr_size(in->src_addr.ss_family))
		return cm_wrong(c, "src_size", in->src_size, -EINVAL);
	if (!in->dst_size || in->dst_size != cm_addr_size(in->dst_addr.ss_family))
		return cm_wrong(c, "dst_size", in->dst_size, -EINVAL);
	if (in->src_size)
		check_may_bind(c, (const union cm_addr *)&in->src_addr);
	return 0;
}

int cm_resolve_addr(struct cm_cmd *c)
{
	const struct rdma_ucm_resolve_addr *in = (const void *)c->in;
	union cm_addr src, dst;

	addr_copy(&src, &in->src_addr, in->src_size);
	addr_copy(&dst, &in->dst_addr, in->dst_size);
	return resolve_to(c, in->id, &src, &dst);
}

/* ---- RESOLVE_ROUTE ------------------------------------------------------------------------------------------------- */

static int route_find(struct cm_cmd *c, struct cm_id *id)
{
	if (cm_id_is_ib(id)) {
		cm_id_find_peer(id);
		if (!id->peer.found) { /* the subnet manager has no record: cma_query_handler() */
			cm_event_tell(id, CM_EVENT_ROUTE_ERROR, -EINVAL);
			return 0;
		}
	} else if (id->src.family == UVD_AF_IB) { /* no interface: cma_resolve_iboe_route() */
		return cm_wrong(c, "the identifier's family", UVD_AF_IB, -ENODEV);
	}
	id->state = CM_ROUTE_RESOLVED;
	cm_event_tell(id, CM_EVENT_ROUTE_RESOLVED, 0);
	return 0;
}

int cm_resolve_route(struct cm_cmd *c)
{
	const struct rdma_ucm_resolve_route *in = (const void *)c->in;
	struct cm_id *id;
	int err = cm_cmd_id_bound(c, in->id, &id);

	if (err)
		return err;
	if (!in->timeout_ms)
		return cm_wrong(c, "timeout_ms", 0, -EINVAL);
	if (id->state != CM_ADDR_RESOLVED)
		return cm_wrong_state(c, id);
	if (c->filtered.outcome == UVD_CM_ROUTE_ERROR) { /* the client may try again (cma_query_handler()) */
		cm_event_tell(id, CM_EVENT_ROUTE_ERROR, c->filtered.status);
		return 0;
	}
	id->path_tos = id->tos;
	return route_find(c, id);
}
