/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Ports: each port space has a table of its own (struct rdma_bind_list of cma.c). */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include "cm/internal.h"

enum { PRIVILEGED_PORTS = 1024 };

/* A port of a space, and the identifiers that have it. */
struct cm_bind {
	struct list_head of_cm;
	uint16_t ps, port;
	struct list_head ids;
};

static struct list_head *port_bucket(struct uvd_cm *cm, uint16_t ps, uint16_t port)
{
	return &cm->by_port[(port ^ ps << 4) % CM_BUCKETS];
}

static struct cm_bind *bind_find(struct uvd_cm *cm, uint16_t ps, uint16_t port)
{
	struct list_head *bucket = port_bucket(cm, ps, port);
	struct cm_bind *bind;

	list_for_each_entry(bind, bucket, of_cm)
		if (bind->ps == ps && bind->port == port)
			return bind;
	return NULL;
}

static void bind_add(struct cm_bind *bind, struct cm_id *id)
{
	cm_addr_set_port(&id->src, bind->port);
	id->bind = bind;
	list_add(&id->of_bind, &bind->ids);
}

/* cma_alloc_port() */
static int bind_new(struct cm_id *id, uint16_t ps, uint16_t port)
{
	struct cm_bind *bind = calloc(1, sizeof(*bind));

	if (!bind)
		return -ENOMEM;
	bind->ps = ps;
	bind->port = port;
	INIT_LIST_HEAD(&bind->ids);
	list_add(&bind->of_cm, port_bucket(id->cm, ps, port));
	bind_add(bind, id);
	return 0;
}

/* Can the identifier share a port with those that have it? (cma_check_port()) */
static int bind_check(const struct cm_bind *bind, const struct cm_id *id, bool reuse)
{
	const struct cm_id *other;

	list_for_each_entry(other, &bind->ids, of_bind) {
		if (other == id || (reuse && other->reuseaddr && other->state != CM_LISTEN))
			continue;
		if (id->afonly && other->afonly && id->src.family != other->src.family)
			continue;
		if (cm_addr_is_any(&id->src) || cm_addr_is_any(&other->src))
			return -EADDRNOTAVAIL;
		if (cm_addr_equal(&id->src, &other->src))
			return -EADDRINUSE;
	}
	return 0;
}

/* cma_use_port() */
static int port_use(struct cm_id *id, uint16_t ps, uint16_t port, bool may)
{
	struct cm_bind *bind;
	int err;

	if (port < PRIVILEGED_PORTS && !may)
		return -EACCES;
	bind = bind_find(id->cm, ps, port);
	if (!bind)
		return bind_new(id, ps, port);
	err = bind_check(bind, id, id->reuseaddr);
	if (!err)
		bind_add(bind, id);
	return err;
}

/* cma_alloc_any_port(): a free port, from a random one on. */
static int port_use_any(struct cm_id *id, uint16_t ps)
{
	const struct uvd_port_range *range = &id->cm->ephemeral;
	const unsigned int num = range->last - range->first + 1, from = uvd_random(num);
	uint16_t port;

	for (unsigned int i = 0; i < num; i++) {
		port = range->first + (from + i) % num;
		if (!bind_find(id->cm, ps, port))
			return bind_new(id, ps, port);
	}
	return -EADDRNOTAVAIL;
}

/*
 * An AF_IB address tells its port space by its service id: Annex A11 (cma_select_ib_ps()). Returns the space, 0: the service id
 * is of none that the identifier may use.
 */
static uint16_t port_space_ib(struct cm_id *id)
{
	static const uint16_t spaces[] = { RDMA_PS_IB, RDMA_PS_TCP, RDMA_PS_UDP };
	const uint64_t of_space = UINT64_C(0xffffffffffff0000);
	struct uvd_sockaddr_ib *ib = &id->src.ib;
	const uint64_t mask = be64toh(ib->sid_mask) & of_space, sid = be64toh(ib->sid) & mask;
	const uint16_t port = cm_addr_port(&id->src);

	for (unsigned int i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		const uint64_t prefix = (uint64_t)spaces[i] << 16;

		if ((id->ps != RDMA_PS_IB && id->ps != spaces[i]) || sid != (prefix & mask))
			continue;
		ib->sid = htobe64(prefix | port);
		ib->sid_mask = htobe64(of_space | be64toh(ib->sid_mask));
		return spaces[i];
	}
	return 0;
}

int cm_port_get(struct cm_id *id, bool may)
{
	const uint16_t ps = id->src.family == UVD_AF_IB ? port_space_ib(id) : id->ps, port = cm_addr_port(&id->src);

	if (!ps)
		return -EPROTONOSUPPORT;
	return port ? port_use(id, ps, port, may) : port_use_any(id, ps);
}

void cm_port_put(struct cm_id *id)
{
	struct cm_bind *bind = id->bind;

	if (!bind)
		return;
	id->bind = NULL;
	list_del_init(&id->of_bind);
	if (!list_empty(&bind->ids))
		return;
	list_del_init(&bind->of_cm);
	free(bind);
}

int cm_port_listen(const struct cm_id *id)
{
	return id->reuseaddr ? bind_check(id->bind, id, false) : 0;
}

static bool listens_on(const struct cm_id *id, const struct cm_device *device)
{
	return id->state == CM_LISTEN && (!id->device || id->device == device);
}

bool cm_port_is_service(struct uvd_cm *cm, uint16_t ps, const union cm_addr *dst, const struct cm_device *device)
{
	const struct cm_bind *bind = bind_find(cm, ps, cm_addr_port(dst));
	const struct cm_id *id;

	if (bind)
		list_for_each_entry(id, &bind->ids, of_bind)
			if (listens_on(id, device))
				return true;
	return false;
}

/*
 * Is the listener for requests to this address, by this device and port? A wildcard takes both families unless it has AFONLY. Of AF_IB no
 * GIDs are compared (cma_match_net_dev()).
 */
static bool listens_for(const struct cm_id *id, const union cm_addr *dst, const struct cm_device *device, uint8_t port)
{
	if (!listens_on(id, device))
		return false;
	if (dst->family == UVD_AF_IB)
		return id->src.family == UVD_AF_IB && (!id->device || id->port == port);
	if (cm_addr_is_any(&id->src))
		return id->src.family == dst->family || (!id->afonly && id->src.family != UVD_AF_IB);
	return cm_addr_equal(&id->src, dst);
}

struct cm_id *cm_port_listener(struct uvd_cm *cm, uint16_t ps, const union cm_addr *dst, const struct cm_device *device,
			       uint8_t port)
{
	struct cm_bind *bind = bind_find(cm, ps, cm_addr_port(dst));
	struct cm_id *id;

	if (!bind)
		return NULL;
	list_for_each_entry(id, &bind->ids, of_bind)
		if (listens_for(id, dst, device, port))
			return id;
	return NULL;
}
