/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Adds and removes the daemon's devices and their nodes. All of it runs on the main thread, but for the removal
 * itself: that waits for calls, which can wait for a client's memory, so it has a thread of its own.
 *
 * A node whose device was removed is served until its last file is closed. Its name leaves /dev at once, but CUSE
 * keeps it until the session ends: a device that is added meanwhile gets another number.
 */
#include "control/control.h"
#include "cuse/cuse.h"
#include "daemon/internal.h"
#include "persona/persona.h"
#include "sysfs/sysfs.h"
#include "util/util.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- plugging in ------------------------------------------------------------------------------------------------- */

static void daemon_node_lost(void *arg)
{
	struct uvd_daemon_node *n = arg;

	n->lost = true;
	ev_async_send(n->daemon->loop, &n->daemon->on_lost);
}

/*
 * Returns a place for the device: the one that it had, a free one that belongs to no removed device, or a new one; if
 * there is none of these, that of another removed device. NULL: all places are in use.
 */
static struct uvd_daemon_node *daemon_node_place(struct uvd_daemon *d, const struct uvd_device_config *config)
{
	struct uvd_daemon_node *unnamed = NULL, *others = NULL;

	for (struct uvd_daemon_node *n = d->nodes; n < d->nodes + d->num_nodes; n++) {
		if (n->state != NODE_GONE)
			continue;
		if (!strcmp(n->config.ibdev, config->ibdev))
			return n;
		if (n->config.ibdev[0])
			others = n;
		else
			unnamed = n;
	}
	if (unnamed)
		return unnamed;
	return d->num_nodes < UVD_MAX_DEVICES ? &d->nodes[d->num_nodes++] : others;
}

/* The name is now this node's: removed devices that had it are not added again. */
static void daemon_node_own_name(struct uvd_daemon *d, const struct uvd_daemon_node *owner)
{
	for (struct uvd_daemon_node *n = d->nodes; n < d->nodes + d->num_nodes; n++)
		if (n != owner && n->state != NODE_SERVES && !strcmp(n->config.ibdev, owner->config.ibdev))
			n->config.ibdev[0] = 0;
}

/*
 * Undoes what uvd_daemon_add() did before it failed. A client may have opened the node already: then the node is served
 * until the client closes it, as that of a removed device.
 */
static void daemon_node_undo(struct uvd_daemon *d, struct uvd_daemon_node *n)
{
	if (!n->cuse)
		return;
	uvd_cuse_unplug(n->cuse);
	n->state = NODE_DRAINS;
	uvd_daemon_reap(d);
}

/*
 * Returns the index by which the broker knows the device, or a negative errno. A configured device has its index in
 * the options. The broker is told of any other one, and chooses the index.
 */
static int index_at_broker(struct uvd_daemon *d, const struct uvd_device_config *config)
{
	unsigned int i = 0;

	while (i < d->options->num_devices && strcmp(d->options->devices[i].ibdev, config->ibdev))
		i++;
	return !d->link || i < d->options->num_devices ? (int)i : uvd_link_add(d->link, config);
}

/* The broker has the configuration that was asked for, but not what an adapter has. */
static int broker_publishes(struct uvd_link *link, const struct uvd_daemon_node *n)
{
	const struct uvd_device_config *config = &n->dev->config;
	int err = strcmp(config->backend, "verbs") ? 0 : uvd_link_tables(link, n->index, 0, config);

	return err ? err : uvd_link_tell(link, UVD_WIRE_PUBLISH, n->index);
}

static const char *broker_refuses(int err)
{
	switch (err) {
	case -EPERM:
		return "User Capabilities must be those of a configured device, unless uverbsd runs with --separate no";
	case -EACCES:
		return "the adapter must be that of a configured device, unless uverbsd runs with --separate no";
	default:
		return "the broker refuses the device";
	}
}

static const char *plug_in(struct uvd_daemon *d, struct uvd_daemon_node *n)
{
	const struct uvd_options *o = d->options;
	struct uvd_device_config config = n->config;
	struct uvd_cuse_config cuse = {
		.number = config.number,
		.mode = o->mode,
		.group = o->group,
		.workers = o->workers,
		.orphans = &d->orphans,
		.link = d->link,
		.grants = d->grants,
		.log = d->log,
		.lost = daemon_node_lost,
		.arg = n,
	};
	const struct uvd_persona *persona;
	int err, index;

	persona = uvd_plugins_persona(d->engine.plugins, config.persona);
	if (!persona || !uvd_plugins_backend(d->engine.plugins, config.backend))
		return "its persona or backend was unloaded with its plug-in";
	if (persona->queues)
		return "the persona maps queues, which CUSE cannot do";
	index = index_at_broker(d, &config);
	if (index < 0)
		return broker_refuses(index);
	if (d->link && !strcmp(config.backend, "verbs") && uvd_link_tell(d->link, UVD_WIRE_ADAPTER, index))
		return "the broker cannot give access to the adapter";
	cuse.index = n->index = index;
	n->cuse = uvd_cuse_new(&cuse, &err);
	if (!n->cuse)
		return err == -EEXIST ? "the number is taken" : "cannot make the node";
	config.number = uvd_cuse_number(n->cuse);
	n->dev = uvd_device_new(&d->engine, &config, &err);
	if (!n->dev) {
		uvd_logf(d->log, UVD_ERR, "%s: no device: %s", config.ibdev, uvd_errno_name(err));
		return "cannot make the device";
	}
	/* A filter of the device may look for the node already, on a thread of its own: uvd_daemon_replug_init(). */
	__atomic_store_n(&n->dev->owner, n, __ATOMIC_RELEASE);
	if (uvd_cuse_start(n->cuse, n->dev))
		return "cannot serve the node";
	/* The device is served already. A client may take a port down, or the adapter's change: the lock keeps that apart. */
	uvd_lock(&n->dev->port_lock);
	if (d->link)
		err = broker_publishes(d->link, n);
	else
		err = uvd_sysfs_add(o->sysfs, &n->dev->config, n->dev->persona, uvd_cuse_rdev(n->cuse), d->log);
	n->published = !err;
	uvd_unlock(&n->dev->port_lock);
	if (err)
		return "cannot publish the device";
	n->state = NODE_SERVES;
	return NULL;
}

const char *uvd_daemon_add(struct uvd_daemon *d, const struct uvd_device_config *config, struct uvd_daemon_node **out)
{
	const struct uvd_device_config copy = *config; /* config may point into the place, which is overwritten */
	struct uvd_daemon_node *n = daemon_node_place(d, &copy);
	struct uvd_device_config was;
	const char *wrong;

	if (!n)
		return "there are too many devices";
	was = n->config;
	*n = (struct uvd_daemon_node){ .daemon = d, .config = copy };
	wrong = plug_in(d, n);
	if (wrong) {
		daemon_node_undo(d, n);
		n->config = was; /* the removed device can be added again */
	} else {
		daemon_node_own_name(d, n);
	}
	*out = n;
	return wrong;
}

/* ---- counters ---------------------------------------------------------------------------------------------------- */

static void show_port_counters(struct uvd_daemon_node *n, unsigned int port)
{
	const struct uvd_daemon *d = n->daemon;
	uint64_t *shown = n->shown.ports[port - 1], values[UVD_PORT_COUNTERS];

	if (uvd_device_query_counters(n->dev, port, values) || !memcmp(values, shown, sizeof(values)))
		return;
	if (!d->link)
		uvd_sysfs_set_counters(d->options->sysfs, &n->dev->config, n->dev->persona, port, &n->shown, values);
	else if (!uvd_link_counters(d->link, n->index, port, values))
		memcpy(shown, values, sizeof(values));
}

void uvd_daemon_show_counters(struct uvd_daemon *d)
{
	for (struct uvd_daemon_node *n = d->nodes; n < d->nodes + d->num_nodes; n++)
		for (unsigned int p = 1; n->published && p <= n->dev->config.num_ports; p++)
			show_port_counters(n, p);
}

/* ---- unplugging -------------------------------------------------------------------------------------------------- */

static void *remove_thread(void *arg)
{
	struct uvd_daemon_node *n = arg;

	uvd_device_remove(n->dev);
	n->removed = true;
	ev_async_send(n->daemon->loop, &n->daemon->on_removed);
	return NULL;
}

/* Mounts the overlay anew: its lower folders have changed, which a mounted overlay does not support. */
static void refresh_overlay(struct uvd_daemon *d)
{
	if (d->options->overlay && !d->link)
		uvd_sysfs_overlay(d->options->sysfs, d->log);
}

const char *uvd_daemon_remove(struct uvd_daemon *d, struct uvd_daemon_node *n)
{
	int err;

	n->asker = 0;
	n->config.number = n->dev->config.number;
	/* In the order of ib_uverbs: first no new client finds the device, then open files are cut off from it. */
	uvd_lock(&n->dev->port_lock);
	if (!d->link)
		uvd_sysfs_remove(d->options->sysfs, &n->dev->config);
	n->published = false;
	uvd_unlock(&n->dev->port_lock);
	refresh_overlay(d);
	uvd_cuse_unplug(n->cuse); /* a broker also removes it from the sysfs directory */
	err = uvd_thread_start(&n->remover, 0, remove_thread, n);
	if (err) {
		uvd_logf(d->log, UVD_ERR,
			 "%s: cannot start the removal thread: %s; the node is unlinked, open files keep working",
			 uvd_cuse_path(n->cuse), uvd_errno_name(err));
		return "no thread to remove it";
	}
	n->state = NODE_GOING;
	return NULL;
}

static bool has_files(struct uvd_cuse *c)
{
	struct uvd_cuse_counters counters;

	uvd_cuse_count(c, &counters);
	return counters.files;
}

static void free_node(struct uvd_daemon_node *n)
{
	uvd_cuse_free(n->cuse);
	if (n->dev)
		uvd_device_put(n->dev);
	n->cuse = NULL;
	n->dev = NULL;
	n->state = NODE_GONE;
}

void uvd_daemon_reap(struct uvd_daemon *d)
{
	for (struct uvd_daemon_node *n = d->nodes; n < d->nodes + d->num_nodes; n++)
		if (n->state == NODE_DRAINS && (n->lost || !has_files(n->cuse)) && uvd_cuse_stop(n->cuse))
			free_node(n);
}

void uvd_daemon_removed(struct uvd_daemon *d)
{
	json_t *answer;

	for (struct uvd_daemon_node *n = d->nodes; n < d->nodes + d->num_nodes; n++) {
		if (n->state != NODE_GOING || !n->removed)
			continue;
		pthread_join(n->remover, NULL);
		refresh_overlay(d); /* its User Capabilities may be gone, too */
		answer = n->asker ? uvd_control_tell(&n->dev->config) : NULL;
		n->state = NODE_DRAINS;
		uvd_daemon_reap(d);
		if (n->asker)
			uvd_control_finish(d->control, n->asker, answer);
	}
}

void uvd_daemon_withdraw(struct uvd_daemon *d)
{
	for (struct uvd_daemon_node *n = d->nodes; n < d->nodes + d->num_nodes; n++) {
		if (n->state != NODE_SERVES || !atomic_exchange(&n->dev->adapter_gone, false))
			continue;
		if (!uvd_daemon_remove(d, n))
			uvd_logf(d->log, UVD_WARN,
				 "%s: the device is removed, because its adapter is gone; when the adapter is back, "
				 "`uverbsctl device add %s` adds the device again",
				 n->dev->config.ibdev, n->dev->config.ibdev);
	}
}

bool uvd_daemon_lost(struct uvd_daemon *d)
{
	for (struct uvd_daemon_node *n = d->nodes; n < d->nodes + d->num_nodes; n++)
		if (n->state == NODE_SERVES && n->lost)
			return true;
	uvd_daemon_reap(d);
	return false;
}

bool uvd_daemon_stop_nodes(struct uvd_daemon *d)
{
	for (struct uvd_daemon_node *n = d->nodes; n < d->nodes + d->num_nodes; n++) {
		if (!n->cuse)
			continue;
		/* After the stop no thread of the node is in a call, so a removal has no call to wait for. */
		if (!uvd_cuse_stop(n->cuse))
			return false;
		if (n->state == NODE_GOING)
			pthread_join(n->remover, NULL);
		free_node(n);
	}
	return true;
}

/* ---- the control's commands -------------------------------------------------------------------------------------- */

static struct uvd_daemon_node *daemon_node_find(struct uvd_daemon *d, const char *name)
{
	for (struct uvd_daemon_node *n = d->nodes; n < d->nodes + d->num_nodes; n++)
		if (n->state == NODE_SERVES && uvd_control_is_called(&n->dev->config, name))
			return n;
	return NULL;
}

/* Finds a removed device, by its name or by the number that it last had. */
static struct uvd_daemon_node *find_removed(struct uvd_daemon *d, const char *name)
{
	for (struct uvd_daemon_node *n = d->nodes; n < d->nodes + d->num_nodes; n++)
		if (n->state != NODE_SERVES && n->config.ibdev[0] && uvd_control_is_called(&n->config, name))
			return n;
	return NULL;
}

static json_t *daemon_remove_device(void *arg, const char *name)
{
	struct uvd_daemon *d = arg;
	struct uvd_daemon_node *n = daemon_node_find(d, name);
	const char *wrong;

	if (!n)
		return uvd_control_refuse("there is no such device");
	wrong = uvd_daemon_remove(d, n);
	if (wrong)
		return uvd_control_refuse(wrong);
	n->asker = uvd_control_later(d->control);
	return NULL;
}

void uvd_daemon_tell_absent(json_t *answer, const struct uvd_device *dev)
{
	const char *absent = strcmp(dev->config.backend, "verbs") ? NULL : uvd_verbs_absent(&dev->ib);

	if (absent)
		json_object_set_new(answer, "absent", json_string(absent));
}

static json_t *daemon_make_device(void *arg, const struct uvd_device_config *config)
{
	struct uvd_daemon *d = arg;
	struct uvd_daemon_node *n;
	const char *wrong = uvd_daemon_add(d, config, &n);
	json_t *answer;

	if (wrong)
		return uvd_control_refuse(wrong);
	refresh_overlay(d);
	answer = uvd_control_tell(&n->dev->config);
	uvd_daemon_tell_absent(answer, n->dev);
	return answer;
}

static bool daemon_device_taken(void *arg, const char *ibdev)
{
	return daemon_node_find(arg, ibdev);
}

static struct uvd_engine *daemon_device_engine(void *arg)
{
	struct uvd_daemon *d = arg;

	return &d->engine;
}

/* Does one of our nodes have the number, if only that of a removed device? */
static bool daemon_number_taken(struct uvd_daemon *d, int number)
{
	for (struct uvd_daemon_node *n = d->nodes; n < d->nodes + d->num_nodes; n++)
		if (n->cuse && uvd_cuse_number(n->cuse) == number)
			return true;
	return false;
}

json_t *uvd_daemon_plug_in(struct uvd_daemon *d, const char *name)
{
	struct uvd_device_config config;
	struct uvd_daemon_node *n;

	n = find_removed(d, name);
	if (!n || daemon_node_find(d, n->config.ibdev))
		return uvd_control_refuse(n || daemon_node_find(d, name) ? "the device is plugged in already"
									 : "no such device was removed");
	config = n->config;
	if (daemon_number_taken(d, config.number))
		config.number = -1;
	return daemon_make_device(d, &config);
}

static json_t *daemon_add_device(void *arg, const char *name)
{
	return uvd_daemon_plug_in(arg, name);
}

static const char *daemon_device_removed(void *arg, const char *name)
{
	const struct uvd_daemon_node *n = find_removed(arg, name);

	return n ? n->config.ibdev : NULL;
}

static void daemon_device_added(void *arg, const char *ibdev)
{
	uvd_daemon_replug_stop(arg, ibdev);
}

json_t *uvd_daemon_answer_device(struct uvd_daemon *d, const char *command, bool may_change)
{
	static const struct uvd_control_devices devices = { .remove = daemon_remove_device,
							    .add = daemon_add_device,
							    .removed = daemon_device_removed,
							    .make = daemon_make_device,
							    .added = daemon_device_added,
							    .taken = daemon_device_taken,
							    .engine = daemon_device_engine };

	/* A removed device whose last file was closed gives up its number now, not at the next tick. */
	uvd_daemon_reap(d);
	return uvd_control_device(command, may_change, &devices, d);
}
