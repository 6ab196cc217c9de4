/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The functions that the core calls: they make and remove User Capabilities' nodes, and publish the state of ports. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cuse/cuse.h"
#include "daemon/internal.h"
#include "objects/objects.h"
#include "util/util.h"

/* A User Capability's node. */
struct node {
	struct uvd_daemon *daemon;
	struct uvd_cuse *cuse;
	char name[UVD_UCAP_NAME];
};

static struct uvd_daemon *daemon_of(struct uvd_engine *engine)
{
	return container_of(engine, struct uvd_daemon, engine);
}

/* Returns NULL for a device that is so new that it has no node yet. */
static const struct uvd_daemon_node *node_of(struct uvd_device *dev)
{
	struct uvd_fleet_place *place = __atomic_load_n(&dev->owner, __ATOMIC_ACQUIRE);

	return place ? uvd_daemon_node_of(place) : NULL;
}

static void ucap_node_lost(void *arg)
{
	struct node *node = arg;

	uvd_logf(node->daemon->log, UVD_WARN, "%s was aborted from outside", uvd_cuse_path(node->cuse));
}

static void ucap_node_free(struct node *node)
{
	if (node->cuse) {
		if (!uvd_cuse_stop(node->cuse))
			return; /* its worker is stuck although it waits for nobody, and has the node */
		uvd_cuse_free(node->cuse);
	}
	free(node);
}

static int ucap_node_serve(struct node *node)
{
	struct uvd_daemon *d = node->daemon;
	const struct uvd_cuse_config config = {
		.kind = &uvd_cuse_ucap_nodes,
		.ucap = node->name,
		.workers = 1,
		.privilege = d->privilege,
		.clients = d->machine->clients,
		.log = d->log,
		.lost = ucap_node_lost,
		.arg = node,
	};
	int err;

	node->cuse = uvd_cuse_new(&config, &err);
	if (!node->cuse)
		return err;
	err = uvd_cuse_start(node->cuse, &d->engine, NULL);
	return err ? err : d->machine->add_ucap(d, node->name, uvd_cuse_rdev(node->cuse));
}

static int hook_ucap_create(struct uvd_engine *engine, const char *name, unsigned int bit, struct uvd_ucap_node *out)
{
	struct uvd_daemon *d = daemon_of(engine);
	struct node *node = calloc(1, sizeof(*node));
	int err;

	if (!node)
		return -ENOMEM;
	node->daemon = d;
	strcpy(node->name, name);
	err = ucap_node_serve(node);
	if (err) {
		ucap_node_free(node);
		return err;
	}
	*out = (struct uvd_ucap_node){ .priv = node, .rdev = uvd_cuse_rdev(node->cuse) };
	return 0;
}

static void hook_ucap_remove(struct uvd_engine *engine, const struct uvd_ucap_node *ucap)
{
	struct uvd_daemon *d = daemon_of(engine);
	struct node *node = ucap->priv;

	d->machine->remove_ucap(d, node->name);
	ucap_node_free(node);
}

static const struct uvd_ucap_ops ucap_ops = { .create = hook_ucap_create, .remove = hook_ucap_remove };

/* May run on a node's worker, so it must not look at other nodes: the main thread changes them. */
static int hook_publish_port(struct uvd_device *dev, unsigned int port, bool up)
{
	struct uvd_daemon *d = daemon_of(dev->engine);
	const struct uvd_daemon_node *n = node_of(dev);

	/* A plug-in's device_init() is called before the device has its node. */
	if (!n)
		return -EAGAIN;
	return d->machine->set_port(d, n->index, &dev->config, port, up);
}

/* Runs on a thread of the backend. */
static int hook_publish_tables(struct uvd_device *dev, unsigned int port)
{
	struct uvd_daemon *d = daemon_of(dev->engine);
	const struct uvd_daemon_node *n = node_of(dev);

	if (!n || !n->published)
		return 0;
	return d->machine->set_tables(d, n->index, &dev->config, port);
}

static int hook_sockets_in_use(struct uvd_engine *engine, const uint64_t *inos, unsigned int num, bool *used,
			       uint64_t *cpu_ns)
{
	struct uvd_privilege *p = daemon_of(engine)->privilege;

	return p->ops->sockets_in_use(p, inos, num, used, cpu_ns);
}

void uvd_daemon_hook(struct uvd_daemon *d)
{
	d->engine.sockets_in_use = hook_sockets_in_use;
	d->engine.ucaps.ops = &ucap_ops;
	d->engine.publish_port = hook_publish_port;
	d->engine.publish_tables = hook_publish_tables;
	d->engine.replug = uvd_fleet_replug;
	d->engine.take_facts = uvd_object_take_facts;
}
