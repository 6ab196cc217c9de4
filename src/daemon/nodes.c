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
#include "doorbell/doorbell.h"
#include "persona/persona.h"
#include "util/util.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- plugging in ------------------------------------------------------------------------------------------------- */

static void daemon_node_lost(void *arg)
{
	struct uvd_daemon_node *n = arg;

	n->lost = true;
	ev_async_send(n->daemon->loop, &n->daemon->on_lost);
}

/* Somebody has ended the file system of queues: no client of any device can go on. */
static void daemon_queues_lost(void *arg)
{
	struct uvd_daemon *d = arg;

	d->queues_lost = true;
	ev_async_send(d->loop, &d->on_lost);
}

/*
 * Undoes what daemon_make() did before it failed. A client may have opened the node already: then the node is served
 * until the client closes it, as that of a removed device.
 */
static void daemon_node_undo(struct uvd_daemon *d, struct uvd_daemon_node *n)
{
	if (!n->cuse)
		return;
	uvd_cuse_unplug(n->cuse);
	n->place.state = UVD_PLACE_DRAINS;
	uvd_daemon_reap(d);
}

/* Says why a device has no index. */
static const char *machine_refuses(int err)
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

/* uvd_doorbell_ears.watch */
static int daemon_watch(void *arg, int number)
{
	struct uvd_daemon *d = arg;

	return d->privilege->ops->watch_backing(d->privilege, number);
}

/* Returns a reader of doorbells, which hears by the broker's watches; or NULL: doorbells are calls. */
static struct uvd_doorbells *daemon_doorbells(struct uvd_daemon *d)
{
	struct uvd_doorbell_ears ears = { .inotify = -1, .bell = -1, .watch = daemon_watch, .arg = d };
	struct uvd_doorbells *doorbells;

	if (d->doorbells || d->privilege->ops->make_ears(d->privilege, &ears.inotify, &ears.bell))
		return d->doorbells;
	doorbells = uvd_doorbells_new(d->log, &ears);
	if (!doorbells) {
		close(ears.inotify);
		close(ears.bell);
	}
	return doorbells;
}

/* Returns the file system whose files clients can map, which is made for the first device that needs it. NULL: it cannot be had. */
static struct uvd_cuse *daemon_queues(struct uvd_daemon *d)
{
	struct uvd_cuse_config config = {
		.kind = &uvd_cuse_queue_files,
		.workers = d->options->workers,
		.privilege = d->privilege,
		.clients = d->machine->clients,
		.grants = d->grants,
		.log = d->log,
		.lost = daemon_queues_lost,
		.arg = d,
	};
	int err;

	if (d->queues)
		return d->queues;
	if (d->options->doorbells == UVD_DOORBELLS_AUTO)
		config.doorbells = d->doorbells = daemon_doorbells(d);
	d->queues = uvd_cuse_new(&config, &err);
	if (d->queues && uvd_cuse_start(d->queues, &d->engine, NULL)) {
		uvd_cuse_stop(d->queues);
		uvd_cuse_free(d->queues);
		d->queues = NULL;
	}
	return d->queues;
}

static const char *plug_in(struct uvd_daemon *d, struct uvd_daemon_node *n, const struct uvd_device_config *wanted)
{
	struct uvd_device_config config = *wanted;
	struct uvd_cuse_config cuse = {
		.kind = &uvd_cuse_device_nodes,
		.number = config.number,
		.workers = d->options->workers,
		.privilege = d->privilege,
		.clients = d->machine->clients,
		.grants = d->grants,
		.log = d->log,
		.lost = daemon_node_lost,
		.arg = n,
	};
	const struct uvd_persona *persona;
	struct uvd_device *dev;
	int err, index;

	persona = uvd_plugins_persona(d->engine.plugins, config.persona);
	if (!persona || !uvd_plugins_backend(d->engine.plugins, config.backend))
		return "its persona or backend was unloaded with its plug-in";
	if (persona->queues) {
		cuse.queues = daemon_queues(d);
		if (!cuse.queues)
			return "the persona maps queues, which needs Linux 6.9 or later, and two processes";
	}
	index = d->machine->add(d, &config);
	if (index < 0)
		return machine_refuses(index);
	if (!strcmp(config.backend, "verbs") && d->machine->open_adapter(d, index))
		return "the broker cannot give access to the adapter";
	cuse.index = n->index = index;
	n->cuse = uvd_cuse_new(&cuse, &err);
	if (!n->cuse)
		return err == -EEXIST ? "the number is taken" : "cannot make the node";
	config.number = uvd_cuse_number(n->cuse);
	dev = uvd_device_new(&d->engine, &config, &err);
	if (!dev) {
		uvd_logf(d->log, UVD_ERR, "%s: no device: %s", config.ibdev, uvd_errno_name(err));
		return "cannot make the device";
	}
	uvd_fleet_enter(&d->fleet, &n->place, wanted, dev);
	if (uvd_cuse_start(n->cuse, &d->engine, dev))
		return "cannot serve the node";
	/* The device is served already. A client may take a port down, or the adapter's change: the lock keeps that apart. */
	uvd_lock(&n->place.dev->port_lock);
	err = d->machine->publish(d, n);
	n->published = !err;
	uvd_unlock(&n->place.dev->port_lock);
	if (err)
		return "cannot publish the device";
	n->place.state = UVD_PLACE_SERVES;
	return NULL;
}

static const char *daemon_make(void *arg, struct uvd_fleet_place *place, const struct uvd_device_config *config)
{
	struct uvd_daemon_node *n = uvd_daemon_node_of(place);
	const struct uvd_fleet_place kept = *place;
	struct uvd_daemon *d = arg;
	const char *wrong;

	*n = (struct uvd_daemon_node){ .daemon = d, .place = kept };
	wrong = plug_in(d, n, config);
	if (wrong)
		daemon_node_undo(d, n);
	return wrong;
}

/* ---- counters ---------------------------------------------------------------------------------------------------- */

static void daemon_show_counters(void *arg, struct uvd_fleet_place *place, unsigned int port, const uint64_t *values)
{
	struct uvd_daemon_node *n = uvd_daemon_node_of(place);
	const uint64_t *shown = place->shown.ports[port - 1];
	struct uvd_daemon *d = arg;

	if (!n->published || !memcmp(values, shown, UVD_PORT_COUNTERS * sizeof(*values)))
		return;
	d->machine->set_counters(d, n, port, values);
}

/* ---- unplugging -------------------------------------------------------------------------------------------------- */

static void *remove_thread(void *arg)
{
	struct uvd_daemon_node *n = arg;

	uvd_device_remove(n->place.dev);
	n->removed = true;
	ev_async_send(n->daemon->loop, &n->daemon->on_removed);
	return NULL;
}

/* Unplugs the device and starts the thread that removes it; on_removed follows, and answers n->asker. */
static const char *daemon_remove(void *arg, struct uvd_fleet_place *place)
{
	struct uvd_daemon_node *n = uvd_daemon_node_of(place);
	struct uvd_daemon *d = arg;
	int err;

	n->asker = 0;
	n->place.config.number = n->place.dev->config.number;
	/* In the order of ib_uverbs: first no new client finds the device, then open files are cut off from it. */
	uvd_lock(&n->place.dev->port_lock);
	d->machine->unpublish(d, n);
	n->published = false;
	uvd_unlock(&n->place.dev->port_lock);
	d->machine->refresh(d);
	uvd_cuse_unplug(n->cuse); /* a broker also removes it from the sysfs directory */
	err = uvd_thread_start(&n->remover, 0, remove_thread, n);
	if (err) {
		uvd_logf(d->log, UVD_ERR,
			 "%s: cannot start the removal thread: %s; the node is unlinked, open files keep working",
			 uvd_cuse_path(n->cuse), uvd_errno_name(err));
		return "no thread to remove it";
	}
	n->place.state = UVD_PLACE_GOING;
	return NULL;
}

/*
 * Has the node files that keep it? If its session was ended from outside no client can use those that came by it; but those of queues are used
 * until they are closed.
 */
static bool has_files(const struct uvd_daemon_node *n)
{
	struct uvd_cuse_counters counters;

	uvd_cuse_count(n->cuse, &counters);
	return counters.mapped || (counters.files && !n->lost);
}

static void free_node(struct uvd_daemon_node *n)
{
	uvd_cuse_free(n->cuse);
	if (n->place.dev)
		uvd_device_put(n->place.dev);
	n->cuse = NULL;
	n->place.dev = NULL;
	n->place.state = UVD_PLACE_EMPTY;
}

void uvd_daemon_reap(struct uvd_daemon *d)
{
	for (struct uvd_daemon_node *n = d->nodes; n < d->nodes + UVD_COUNT(d->nodes); n++)
		if (n->place.state == UVD_PLACE_DRAINS && !has_files(n) && uvd_cuse_stop(n->cuse))
			free_node(n);
}

void uvd_daemon_removed(struct uvd_daemon *d)
{
	json_t *answer;

	for (struct uvd_daemon_node *n = d->nodes; n < d->nodes + UVD_COUNT(d->nodes); n++) {
		if (n->place.state != UVD_PLACE_GOING || !n->removed)
			continue;
		pthread_join(n->remover, NULL);
		d->machine->refresh(d); /* its User Capabilities may be gone, too */
		answer = n->asker ? uvd_control_tell(&n->place.dev->config) : NULL;
		n->place.state = UVD_PLACE_DRAINS;
		uvd_daemon_reap(d);
		if (n->asker)
			uvd_control_finish(d->control, n->asker, answer);
	}
}

bool uvd_daemon_lost(struct uvd_daemon *d)
{
	if (d->queues_lost)
		return true;
	for (struct uvd_daemon_node *n = d->nodes; n < d->nodes + UVD_COUNT(d->nodes); n++)
		if (n->place.state == UVD_PLACE_SERVES && n->lost)
			return true;
	uvd_daemon_reap(d);
	return false;
}

bool uvd_daemon_stop_nodes(struct uvd_daemon *d)
{
	/* Before the nodes, which close the files. */
	if (d->queues && !uvd_cuse_stop(d->queues))
		return false;
	for (struct uvd_daemon_node *n = d->nodes; n < d->nodes + UVD_COUNT(d->nodes); n++) {
		if (!n->cuse)
			continue;
		/* After the stop no thread of the node is in a call, so a removal has no call to wait for. */
		if (!uvd_cuse_stop(n->cuse))
			return false;
		if (n->place.state == UVD_PLACE_GOING)
			pthread_join(n->remover, NULL);
		free_node(n);
	}
	if (d->queues)
		uvd_cuse_free(d->queues);
	d->queues = NULL;
	uvd_doorbells_stop(d->doorbells);
	d->doorbells = NULL;
	return true;
}

/* ---- the fleet -------------------------------------------------------------------------------------- */

void uvd_daemon_tell_absent(json_t *answer, const struct uvd_device *dev)
{
	const char *absent = strcmp(dev->config.backend, "verbs") ? NULL : uvd_verbs_absent(&dev->ib);

	if (absent)
		json_object_set_new(answer, "absent", json_string(absent));
}

static void daemon_made(void *arg, struct uvd_fleet_place *place, json_t *answer)
{
	struct uvd_daemon *d = arg;

	d->machine->refresh(d);
	uvd_daemon_tell_absent(answer, place->dev);
}

/* Does one of our nodes have the number, if only that of a removed device? */
static bool daemon_number_taken(void *arg, int number)
{
	struct uvd_daemon *d = arg;

	for (struct uvd_daemon_node *n = d->nodes; n < d->nodes + UVD_COUNT(d->nodes); n++)
		if (n->cuse && uvd_cuse_number(n->cuse) == number)
			return true;
	return false;
}

static struct uvd_fleet_place *daemon_place(void *arg, unsigned int i)
{
	struct uvd_daemon *d = arg;

	return &d->nodes[i].place;
}

/* uvd_daemon_removed() answers. */
static json_t *daemon_remove_asked(void *arg, struct uvd_fleet_place *place)
{
	struct uvd_daemon *d = arg;

	uvd_daemon_node_of(place)->asker = uvd_control_later(d->control);
	return NULL;
}

static int daemon_read_again(void *arg, struct uvd_options *next, char ignored[UVD_RELOAD_NAMES],
			     char error[UVD_RELOAD_ERROR])
{
	struct uvd_daemon *d = arg;

	return d->machine->read_again(d, next, ignored, error);
}

static void daemon_forget(void *arg, const char *ibdev)
{
	struct uvd_daemon *d = arg;

	for (unsigned int i = 0; i < d->options->num_devices; i++)
		if (!strcmp(d->options->devices[i].ibdev, ibdev))
			d->stale[i] = true;
}

static void daemon_settle(void *arg)
{
	uvd_daemon_reap(arg);
}

static int daemon_log_level(void *arg, enum uvd_log_level level)
{
	struct uvd_daemon *d = arg;

	return d->machine->log_level(d, level);
}

const struct uvd_fleet_ops uvd_daemon_fleet_ops = {
	.place = daemon_place,
	.make = daemon_make,
	.made = daemon_made,
	.remove = daemon_remove,
	.removed = daemon_remove_asked,
	.number_taken = daemon_number_taken,
	.read_again = daemon_read_again,
	.forget = daemon_forget,
	.settle = daemon_settle,
	.show_counters = daemon_show_counters,
	.status = uvd_daemon_status,
	.program = uvd_daemon_program,
	.log_level = daemon_log_level,
};
