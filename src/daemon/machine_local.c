/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A daemon of one process changes the machine itself. */
#include <errno.h>
#include <unistd.h>
#include "control/control.h"
#include "cuse/cuse.h"
#include "daemon/internal.h"
#include "sysfs/sysfs.h"

static void daemon_abort_orphan(void *daemon, const char *name, dev_t rdev)
{
	struct uvd_daemon *d = daemon;

	uvd_node_abort(&d->orphans, name, rdev, d->log);
}

static bool here_begin(struct uvd_daemon *d)
{
	int err;

	d->local_nodes = (struct uvd_local_nodes){ d->options->mode, d->options->group, &d->orphans };
	d->privilege = uvd_local_new(&d->local_nodes, d->log);
	if (!d->privilege || !uvd_daemon_paths_are_ours(d->options, d->log) ||
	    uvd_fleet_wire_start(&d->fleet.wire, &d->options->wire, d->log))
		return false;
	d->control = uvd_control_new(d->loop, d->options->control, uvd_daemon_answer, d, d->log, &err);
	if (!d->control)
		return false;
	uvd_daemon_raise_nofile();
	uvd_sysfs_overlay_undo(d->options->sysfs);
	uvd_sysfs_each_orphan(d->options->sysfs, daemon_abort_orphan, d);
	d->have_tree = !uvd_sysfs_create(d->options->sysfs, d->log);
	return d->have_tree && !uvd_netlink_begin(&d->netlink, d->options, d->log);
}

static int here_ready(struct uvd_daemon *d)
{
	int err = d->options->overlay ? uvd_sysfs_overlay(d->options->sysfs, d->log) : 0;

	return err ? err : uvd_announce_ready(&d->announce, d->log);
}

static void here_leave(struct uvd_daemon *d)
{
	uvd_netlink_end(&d->netlink);
	if (!d->have_tree)
		return;
	if (d->options->overlay)
		uvd_sysfs_overlay_undo(d->options->sysfs);
	for (unsigned int i = 0; i < UVD_COUNT(d->nodes); i++)
		if (d->nodes[i].published)
			uvd_sysfs_remove(d->options->sysfs, &d->nodes[i].place.dev->config);
	uvd_sysfs_destroy(d->options->sysfs);
}

static void here_end(struct uvd_daemon *d)
{
	uvd_local_free(d->privilege);
}

/* Nobody needs the index. */
static int here_add(struct uvd_daemon *d, const struct uvd_device_config *config)
{
	return 0;
}

static int here_open_adapter(struct uvd_daemon *d, unsigned int index)
{
	return 0;
}

static int here_publish(struct uvd_daemon *d, const struct uvd_daemon_node *n)
{
	return uvd_sysfs_add(d->options->sysfs, &n->place.dev->config, n->place.dev->persona, uvd_cuse_rdev(n->cuse),
			     d->log);
}

static void here_unpublish(struct uvd_daemon *d, const struct uvd_daemon_node *n)
{
	uvd_sysfs_remove(d->options->sysfs, &n->place.dev->config);
}

/* A mounted overlay does not support changes of its lower folders. */
static void here_refresh(struct uvd_daemon *d)
{
	if (d->options->overlay)
		uvd_sysfs_overlay(d->options->sysfs, d->log);
}

static void here_tick(struct uvd_daemon *d)
{
	uvd_announce_alive(&d->announce);
	if (uvd_netlink_check(&d->netlink, d->log))
		here_refresh(d);
}

static int here_set_port(struct uvd_daemon *d, unsigned int index, const struct uvd_device_config *config,
			 unsigned int port, bool up)
{
	return uvd_sysfs_set_port(d->options->sysfs, config, port, up);
}

static int here_set_tables(struct uvd_daemon *d, unsigned int index, const struct uvd_device_config *config,
			   unsigned int port)
{
	return uvd_sysfs_set_tables(d->options->sysfs, config, port);
}

static void here_set_counters(struct uvd_daemon *d, struct uvd_daemon_node *n, unsigned int port,
			      const uint64_t *values)
{
	uvd_sysfs_set_counters(d->options->sysfs, &n->place.dev->config, n->place.dev->persona, port, &n->place.shown,
			       values);
}

static int here_add_ucap(struct uvd_daemon *d, const char *name, dev_t rdev)
{
	const struct uvd_ucap_grant grant = uvd_options_ucap_grant(&d->options->ucap_grants, name);
	struct uvd_node node;
	int err;

	uvd_node_name_ucap(&node, name);
	node.rdev = rdev;
	err = uvd_ucap_permit(&node, &grant, d->log);
	return err ? err : uvd_sysfs_add_ucap(d->options->sysfs, name, rdev, d->log);
}

static void here_remove_ucap(struct uvd_daemon *d, const char *name)
{
	uvd_sysfs_remove_ucap(d->options->sysfs, name);
}

static int here_add_cm(struct uvd_daemon *d, dev_t rdev)
{
	return uvd_sysfs_add_cm(d->options->sysfs, rdev, d->log);
}

static void here_remove_cm(struct uvd_daemon *d)
{
	uvd_sysfs_remove_cm(d->options->sysfs);
}

static int here_read_again(struct uvd_daemon *d, struct uvd_options *next, char ignored[UVD_RELOAD_NAMES],
			   char error[UVD_RELOAD_ERROR])
{
	int fd = uvd_reload_read(d->options, next, ignored, error);

	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

static int here_restart(struct uvd_daemon *d)
{
	return -EOPNOTSUPP;
}

/* There is no other process. */
static int here_log_level(struct uvd_daemon *d, enum uvd_log_level level)
{
	return 0;
}

const struct uvd_machine_ops uvd_machine_local = {
	.clients = &uvd_cuse_clients_local,
	.begin = here_begin,
	.ready = here_ready,
	.tick = here_tick,
	.leave = here_leave,
	.end = here_end,
	.add = here_add,
	.open_adapter = here_open_adapter,
	.publish = here_publish,
	.unpublish = here_unpublish,
	.refresh = here_refresh,
	.set_port = here_set_port,
	.set_tables = here_set_tables,
	.set_counters = here_set_counters,
	.add_ucap = here_add_ucap,
	.remove_ucap = here_remove_ucap,
	.add_cm = here_add_cm,
	.remove_cm = here_remove_cm,
	.read_again = here_read_again,
	.restart = here_restart,
	.log_level = here_log_level,
	.pid = getpid,
};
