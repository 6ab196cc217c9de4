/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The daemon in two processes, unless --separate no is given. The broker does what needs privileges but no client: the control
 * socket's path, nodes, the sysfs directory, the overlay. The engine process says when, and names a device by its
 * index. The rest of what the broker needs comes from its own options, or from a device's configuration that it
 * checked when the device was added.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "broker/broker.h"
#include "control/control.h"
#include "daemon/daemon.h"
#include "daemon/internal.h"
#include "persona/persona.h"
#include "sysfs/sysfs.h"

enum { MAX_CHANNELS = 512 };

struct own_node {
	struct uvd_node node;
	struct uvd_device_config config; /* with the number of the node, if made */
	bool known; /* there is a device with this index: config is valid */
	bool made, published;
	struct uvd_sysfs_counters shown; /* if published */
};

struct separate {
	const struct uvd_options *options;
	struct uvd_reload_conf conf; /* its devices and grants hold now */
	unsigned int num_configured; /* devices that the engine process which runs has in its options */
	struct uvd_log *log;
	struct uvd_node_orphans orphans;
	int control;
	struct uvd_image image;
	struct uvd_slots slots; /* of the engine process that runs */
	struct uvd_announce announce;
	struct uvd_netlink netlink;
	struct uvd_adapters adapters; /* of the engine process that runs */
	struct own_node nodes[UVD_MAX_DEVICES]; /* by the device's index: first those of the options */
	struct uvd_ucap_nodes ucaps;
	struct own_node cm; /* rdma_cm */
	struct channel { /* all that may still be served: a removed device keeps its channel while files are open */
		char name[sizeof(((struct uvd_node *)0)->name)]; /* without infiniband/; empty: free */
		dev_t rdev;
	} channels[MAX_CHANNELS];
	bool overlaid; /* the overlay is mounted; a change of its lower folders needs it anew */
};

/* ---- nodes --------------------------------------------------------------------------------------------------------- */

static struct channel *free_channel(struct separate *s)
{
	for (struct channel *c = s->channels; c < s->channels + MAX_CHANNELS; c++)
		if (!c->name[0] || !uvd_node_exists(c->name, c->rdev))
			return c;
	uvd_logf(s->log, UVD_ERR, "too many devices were removed that clients still have open");
	return NULL;
}

/* Makes the node's channel and notes it. Returns its descriptor or a negative errno. */
static int make_channel(void *arg, struct uvd_node *node)
{
	struct separate *s = arg;
	struct channel *c = free_channel(s);
	int fd;

	if (!c)
		return -ENFILE;
	fd = uvd_channel_make(node, s->log);
	if (fd < 0)
		return fd;
	snprintf(c->name, sizeof(c->name), "%s", node->name + strlen("infiniband/"));
	c->rdev = node->rdev;
	return fd;
}

/* For uvd_node_make(). Returns the channel's descriptor or a negative errno. */
static int make_node(void *arg, struct uvd_node *node)
{
	struct separate *s = arg;
	int fd = make_channel(s, node), err;

	if (fd < 0)
		return fd;
	err = uvd_node_permit(node, s->options->mode, s->options->group, s->log);
	if (!err)
		return fd;
	uvd_node_remove(node);
	close(fd);
	return err;
}

/* Returns NULL if there is no such device. */
static struct own_node *node_at(struct separate *s, unsigned int index)
{
	return index < UVD_MAX_DEVICES && s->nodes[index].known ? &s->nodes[index] : NULL;
}

/* Resets the table to the devices of the options, which have no nodes yet. */
static void know_configured(struct separate *s)
{
	for (unsigned int i = 0; i < UVD_MAX_DEVICES; i++) {
		struct own_node *n = &s->nodes[i];

		*n = (struct own_node){ .known = i < s->conf.latest->num_devices };
		if (n->known)
			n->config = s->conf.latest->devices[i];
	}
	s->num_configured = s->conf.latest->num_devices;
}

static int op_node(void *arg, unsigned int index, int *number, dev_t *rdev, int *fd)
{
	struct separate *s = arg;
	struct own_node *n;
	int ret;

	n = node_at(s, index);
	if (!n || n->made)
		return n ? -EEXIST : -EINVAL;
	ret = uvd_node_make(&n->node, *number, &s->orphans, make_node, s, s->log);
	if (ret < 0)
		return ret;
	*fd = ret;
	n->made = true;
	n->config.number = *number = n->node.number;
	*rdev = n->node.rdev;
	return 0;
}

static int op_publish(void *arg, unsigned int index)
{
	struct separate *s = arg;
	struct own_node *n = node_at(s, index);
	const struct uvd_persona *persona = n ? uvd_plugins_persona(s->options->names, n->config.persona) : NULL;
	int err;

	if (!n || !n->made || n->published || !persona)
		return -EINVAL;
	n->shown = (struct uvd_sysfs_counters){};
	err = uvd_sysfs_add(s->options->sysfs, &n->config, persona, n->node.rdev, s->log);
	n->published = !err;
	if (!err && s->overlaid)
		uvd_sysfs_overlay(s->options->sysfs, s->log);
	return err;
}

static void own_node_withdraw(struct separate *s, struct own_node *n)
{
	if (n->published)
		uvd_sysfs_remove(s->options->sysfs, &n->config);
	n->published = false;
}

static int op_withdraw(void *arg, unsigned int index)
{
	struct separate *s = arg;
	struct own_node *n = node_at(s, index);

	if (!n || !n->made)
		return -EINVAL;
	own_node_withdraw(s, n);
	uvd_node_hide(&n->node);
	n->made = false;
	if (s->options->overlay)
		uvd_sysfs_overlay(s->options->sysfs, s->log);
	return 0;
}

static int op_port(void *arg, unsigned int index, unsigned int port, bool up)
{
	struct separate *s = arg;
	struct own_node *n = node_at(s, index);

	if (!n || !n->published || port > n->config.num_ports)
		return -EINVAL;
	return uvd_sysfs_set_port(s->options->sysfs, &n->config, port, up);
}

static int op_counters(void *arg, unsigned int index, unsigned int port, const uint64_t *values)
{
	struct separate *s = arg;
	struct own_node *n = node_at(s, index);

	const struct uvd_persona *persona = n ? uvd_plugins_persona(s->options->names, n->config.persona) : NULL;

	/* A plug-in that was reloaded may have lost the persona of a device. */
	if (!n || !n->published || !persona || port > n->config.num_ports)
		return -EINVAL;
	return uvd_sysfs_set_counters(s->options->sysfs, &n->config, persona, port, &n->shown, values);
}

/* ---- User Capabilities ------------------------------------------------------------------------------------------------ */

/* Do the options name this User Capability? No other one gets a node. */
static bool is_configured(const struct uvd_options *o, const char *name)
{
	for (unsigned int i = 0; i < o->num_devices; i++)
		if (uvd_ucap_named(&o->devices[i].ucaps, name))
			return true;
	return false;
}

static int op_ucap(void *arg, const char *name, dev_t *rdev, int *fd)
{
	struct separate *s = arg;
	int ret = uvd_ucap_name_ok(name) && is_configured(s->conf.latest, name)
			  ? uvd_ucap_make(&s->ucaps, name, s->options->sysfs, &s->conf.latest->ucap_grants, &s->orphans,
					  make_channel, s, s->log)
			  : -EINVAL;

	if (ret < 0)
		return ret;
	*fd = ret;
	*rdev = uvd_ucap_find(&s->ucaps, name)->node.rdev;
	return 0;
}

static int op_ucap_gone(void *arg, const char *name)
{
	struct separate *s = arg;
	struct uvd_ucap_own *u = uvd_ucap_find(&s->ucaps, name);

	if (!u)
		return -EINVAL;
	uvd_ucap_end(u, s->options);
	return 0;
}

/* ---- the connection manager ------------------------------------------------------------------------------------------- */

static int op_cm(void *arg, dev_t *rdev, bool *aside, int *fd)
{
	struct separate *s = arg;
	int ret = s->cm.made ? -EINVAL : uvd_node_make_cm(&s->cm.node, &s->orphans, make_node, s, s->log);

	if (ret < 0)
		return ret;
	*fd = ret;
	ret = uvd_sysfs_add_cm(s->options->sysfs, s->cm.node.rdev, s->log);
	if (ret) {
		close(*fd);
		*fd = -1;
		uvd_node_remove(&s->cm.node);
		return ret;
	}
	s->cm.made = true;
	*rdev = s->cm.node.rdev;
	*aside = s->cm.node.aside;
	return 0;
}

static int op_cm_gone(void *arg)
{
	struct separate *s = arg;

	if (!s->cm.made)
		return -EINVAL;
	uvd_sysfs_remove_cm(s->options->sysfs);
	uvd_node_hide(&s->cm.node);
	s->cm.made = false;
	return 0;
}

/* ---- adapters ------------------------------------------------------------------------------------------------------ */

static int op_adapter(void *arg, pid_t engine, unsigned int index, dev_t *rdev)
{
	struct separate *s = arg;
	const struct own_node *n = node_at(s, index);
	int err;

	if (!n || strcmp(n->config.backend, "verbs"))
		return -EINVAL;
	err = uvd_adapters_add(&s->adapters, engine, index, &n->config, s->options, s->log);
	*rdev = s->adapters.list[index].rdev;
	return err;
}

/*
 * Publishes which addresses of a port the machine has lost. The engine process, which says so, may only leave out GIDs that the
 * broker knows.
 */
static int set_lost(struct separate *s, const struct own_node *n, unsigned int port,
		    const struct uvd_device_config *now)
{
	struct uvd_device_config shown = n->config;

	if (!port || port > shown.num_ports)
		return -EINVAL;
	shown.ips.lost = now->ips.lost;
	shown.ports[port - 1].lost_gids = now->ports[port - 1].lost_gids;
	shown.ports[port - 1].down = now->ports[port - 1].down;
	return uvd_sysfs_set_tables(s->options->sysfs, &shown, port);
}

static int op_tables(void *arg, unsigned int index, unsigned int port, const struct uvd_device_config *device)
{
	struct separate *s = arg;
	struct own_node *n = node_at(s, index);
	int err;

	if (!n || n->published != !!port || !uvd_options_device_ok(s->options->names, device))
		return -EINVAL;
	if (strcmp(n->config.backend, "verbs"))
		return set_lost(s, n, port, device);
	err = uvd_adapter_take_tables(&n->config, port, device);
	return err || !port ? err : uvd_sysfs_set_tables(s->options->sysfs, &n->config, port);
}

static void op_check(void *arg, pid_t engine)
{
	struct separate *s = arg;

	uvd_adapters_check(&s->adapters, engine);
	if (uvd_netlink_check(&s->netlink, s->log) && s->options->overlay)
		uvd_sysfs_overlay(s->options->sysfs, s->log);
	uvd_ucaps_look(&s->ucaps);
}

/* Do the options name this adapter? The engine process gets no other one. */
static bool is_configured_adapter(const struct uvd_options *o, const char *hca)
{
	for (unsigned int i = 0; i < o->num_devices; i++)
		if (!strcmp(o->devices[i].backend, "verbs") && !strcmp(o->devices[i].hca, hca))
			return true;
	return false;
}

/* ---- devices that were not configured --------------------------------------------------------------------------------- */

/*
 * Returns the place that a device of this name had, or a free one; one of a configured device only if there is no other. NULL: no place
 * is free, or a device of this name has a node.
 */
static struct own_node *place_for(struct separate *s, const char *ibdev)
{
	struct own_node *place = NULL, *configured = NULL;

	for (unsigned int i = 0; i < UVD_MAX_DEVICES; i++) {
		struct own_node *n = &s->nodes[i];

		if (n->known && !strcmp(n->config.ibdev, ibdev))
			return n->made ? NULL : n;
		if (n->made)
			continue;
		if (i < s->num_configured)
			configured = n;
		else if (!place)
			place = n;
	}
	return place ? place : configured;
}

/*
 * The engine process says that an administrator asks for the device, which the broker cannot verify. So this function
 * checks the configuration, and allows only User Capabilities and adapters that the options name.
 */
static int op_add(void *arg, const struct uvd_device_config *device)
{
	struct separate *s = arg;
	struct own_node *n;

	if (!uvd_options_device_ok(s->options->names, device))
		return -EINVAL;
	if (!strcmp(device->backend, "verbs") && !is_configured_adapter(s->conf.latest, device->hca))
		return -EACCES;
	for (unsigned int i = 0; i < device->ucaps.num; i++)
		if (!is_configured(s->conf.latest, device->ucaps.names[i]))
			return -EPERM;
	n = place_for(s, device->ibdev);
	if (!n)
		return -ENOSPC;
	*n = (struct own_node){ .known = true, .config = *device };
	return n - s->nodes;
}

/* ---- start, restart and end -------------------------------------------------------------------------------------- */

static int op_ready(void *arg)
{
	struct separate *s = arg;
	int err = s->options->overlay ? uvd_sysfs_overlay(s->options->sysfs, s->log) : 0;

	s->overlaid = s->options->overlay && !err;
	return err ? err : uvd_announce_ready(&s->announce, s->log);
}

static void op_alive(void *arg)
{
	struct separate *s = arg;

	uvd_announce_alive(&s->announce);
}

static void op_leave(void *arg)
{
	struct separate *s = arg;

	if (s->options->overlay)
		uvd_sysfs_overlay_undo(s->options->sysfs);
	for (unsigned int i = 0; i < UVD_MAX_DEVICES; i++)
		own_node_withdraw(s, &s->nodes[i]);
	if (s->cm.made)
		uvd_sysfs_remove_cm(s->options->sysfs);
}

static void separate_abort_orphan(void *arg, const char *name, dev_t rdev)
{
	struct separate *s = arg;

	uvd_node_abort(&s->orphans, name, rdev, s->log);
}

static int engine_main(void *arg, int sock)
{
	struct separate *s = arg;

	return uvd_image_exec(&s->image, sock, s->control, &s->slots, s->log);
}

/*
 * The engine process has ended, or does not end when told to. Aborts its sessions, so that clients get errors, and
 * removes all nodes and the sysfs directory.
 */
static void clean_up(struct separate *s)
{
	op_leave(s);
	for (struct channel *c = s->channels; c < s->channels + MAX_CHANNELS; c++) {
		if (c->name[0])
			uvd_node_abort(&s->orphans, c->name, c->rdev, s->log);
		c->name[0] = 0;
	}
	for (unsigned int i = 0; i < UVD_MAX_DEVICES; i++)
		if (s->nodes[i].made)
			uvd_node_hide(&s->nodes[i].node);
	know_configured(s);
	s->adapters = (struct uvd_adapters){}; /* the nodes have ended with the process */
	uvd_ucaps_end(&s->ucaps, s->options);
	op_cm_gone(s);
	uvd_sysfs_destroy(s->options->sysfs);
}

static int op_renew(void *arg, bool asked)
{
	struct separate *s = arg;

	clean_up(s);
	if (asked)
		uvd_image_update(&s->image, s->log);
	return uvd_slots_renew(&s->slots, s->log) ?: uvd_sysfs_create(s->options->sysfs, s->log);
}

/* Returns a memfd with the text, or -1: an answer has no room for it. */
static int plugin_reason(const char *text)
{
	int fd = memfd_create("uverbsd-reason", MFD_CLOEXEC);
	const ssize_t len = strlen(text);

	if (fd < 0 || write(fd, text, len) == len)
		return fd;
	close(fd);
	return -1;
}

static int op_plugin(void *arg, unsigned int slot, int64_t nth, const char *name, int *why)
{
	struct separate *s = arg;
	char error[UVD_PLUGIN_ERROR] = "";
	int err = uvd_slots_fill(&s->slots, s->options, slot, nth, name, error);

	if (err)
		*why = plugin_reason(error);
	return err;
}

static int op_reload(void *arg, int *fd)
{
	struct separate *s = arg;
	const struct uvd_ucap_grants before = s->conf.latest->ucap_grants;
	int config = -1, ret = uvd_reload_serve(&s->conf, &config, fd);

	if (config < 0)
		return ret;
	uvd_ucaps_grant(&s->ucaps, &before, &s->conf.latest->ucap_grants, s->log);
	uvd_image_set_config(&s->image, config);
	return ret;
}

static const struct uvd_broker_ops broker_ops = {
	.node = op_node,
	.add = op_add,
	.adapter = op_adapter,
	.tables = op_tables,
	.check = op_check,
	.plugin = op_plugin,
	.publish = op_publish,
	.withdraw = op_withdraw,
	.port = op_port,
	.counters = op_counters,
	.ucap = op_ucap,
	.ucap_gone = op_ucap_gone,
	.cm = op_cm,
	.cm_gone = op_cm_gone,
	.ready = op_ready,
	.alive = op_alive,
	.reload = op_reload,
	.leave = op_leave,
	.renew = op_renew,
};

static int start_broker(struct separate *s, bool *is_engine)
{
	const struct uvd_broker_config config = {
		.ops = &broker_ops, .arg = s, .log = s->log, .root_clients = s->options->root_clients
	};
	int status = 1;

	know_configured(s);
	uvd_sysfs_overlay_undo(s->options->sysfs); /* by a process that was killed: numbers there would be taken */
	uvd_sysfs_each_orphan(s->options->sysfs, separate_abort_orphan, s);
	if (uvd_slots_renew(&s->slots, s->log) || uvd_sysfs_create(s->options->sysfs, s->log))
		return 1;
	*is_engine = uvd_broker_run(&config, engine_main, &status) < 0;
	if (!*is_engine) {
		uvd_announce_end(&s->announce);
		clean_up(s);
	}
	return status;
}

static void separate_warn_of_user(const struct separate *s)
{
	if (s->options->engine_is_nobody)
		uvd_logf(
			s->log, UVD_WARN,
			"there is no user " UVD_ENGINE_USER
			": the engine process runs as nobody, whose other processes can "
			"end it; create the user, as contrib/sysusers.d/uverbsd.conf does, or name one with --engine-user");
}

/* Runs the broker to its end. Also returns in a child that could not become the engine process. */
static int serve_as_broker(struct separate *s)
{
	bool is_engine = false;
	int status = 1;

	uvd_daemon_raise_nofile();
	/* While this process has all capabilities: CAP_NET_ADMIN makes receive buffers larger than net.core.rmem_max. */
	if (uvd_fleet_wire_open(&s->options->wire, s->image.wires, s->log))
		return 1;
	s->control = uvd_control_listen(s->options->control, s->log);
	if (s->control < 0)
		return 1;
	separate_warn_of_user(s);
	if (s->options->machine.unmapped)
		uvd_queue_files_say(s->options->machine.unmapped, s->log);
	if (!uvd_netlink_begin(&s->netlink, s->options, s->log))
		status = start_broker(s, &is_engine);
	close(s->control);
	if (is_engine)
		return status;
	unlink(s->options->control);
	uvd_netlink_end(&s->netlink);
	return status;
}

int uvd_daemon_can_map(void)
{
	return uvd_queue_files_look();
}

int uvd_daemon_separate(const struct uvd_options *options)
{
	struct uvd_log *log = uvd_log_new(STDERR_FILENO, "uverbsd", options->log_level);
	struct separate *s = calloc(1, sizeof(*s));
	int status = 1;

	if (s && options->engine) {
		status = uvd_engine_main(options, log);
	} else if (s) {
		*s = (struct separate){ .options = options,
					.conf = { options, options },
					.log = log,
					.image = { .exe = -1, .config = -1 } };
		uvd_announce_init(&s->announce, options);
		if (uvd_broker_may_run(log) && uvd_daemon_paths_are_ours(options, log) &&
		    uvd_image_init(&s->image, options, log))
			status = serve_as_broker(s);
		uvd_image_fini(&s->image);
		uvd_reload_fini(&s->conf);
	}
	free(s);
	uvd_log_free(log);
	return status;
}
