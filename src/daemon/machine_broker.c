/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* An engine process has the broker change the machine. The broker knows devices by their index. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "control/control.h"
#include "cuse/cuse.h"
#include "daemon/internal.h"
#include "util/util.h"

static struct uvd_link *machine_link(const struct uvd_daemon *d)
{
	return uvd_link_of(d->privilege);
}

/* The broker has prepared the rest, and keeps it. */
static bool by_broker_begin(struct uvd_daemon *d)
{
	enum uvd_log_level level;

	if (!uvd_link_life(machine_link(d), &d->restarts, &level))
		uvd_log_set_most(d->log, level);
	d->control = uvd_control_adopt(d->loop, d->listening, 0, uvd_daemon_answer, d);
	return d->control;
}

static int by_broker_ready(struct uvd_daemon *d)
{
	return uvd_link_tell(machine_link(d), UVD_WIRE_READY, 0);
}

/* The broker tells systemd. It looks at netlink itself. */
static void by_broker_tick(struct uvd_daemon *d)
{
	uvd_link_tell(machine_link(d), UVD_WIRE_ALIVE, 0);
}

/* The broker does so when this process has ended. */
static void by_broker_leave(struct uvd_daemon *d)
{
}

static void by_broker_end(struct uvd_daemon *d)
{
}

/*
 * A configured device has its index in the options, until a reload has changed it. The broker is told of any other one, and chooses the
 * index.
 */
static int by_broker_add(struct uvd_daemon *d, const struct uvd_device_config *config)
{
	int ret;

	for (unsigned int i = 0; i < d->options->num_devices; i++)
		if (!d->stale[i] && !strcmp(d->options->devices[i].ibdev, config->ibdev))
			return (int)i;
	ret = uvd_link_add(machine_link(d), config);
	if (ret >= 0 && ret < (int)d->options->num_devices)
		d->stale[ret] = true;
	return ret;
}

static int by_broker_open_adapter(struct uvd_daemon *d, unsigned int index)
{
	return uvd_link_tell(machine_link(d), UVD_WIRE_ADAPTER, index);
}

/* The broker has the configuration that was asked for, but not what an adapter has. */
static int by_broker_publish(struct uvd_daemon *d, const struct uvd_daemon_node *n)
{
	const struct uvd_device_config *config = &n->place.dev->config;
	int err = strcmp(config->backend, "verbs") ? 0 : uvd_link_tables(machine_link(d), n->index, 0, config);

	return err ? err : uvd_link_tell(machine_link(d), UVD_WIRE_PUBLISH, n->index);
}

/* The broker does so when the node is withdrawn. */
static void by_broker_unpublish(struct uvd_daemon *d, const struct uvd_daemon_node *n)
{
}

static void by_broker_refresh(struct uvd_daemon *d)
{
}

static int by_broker_set_port(struct uvd_daemon *d, unsigned int index, const struct uvd_device_config *config,
			      unsigned int port, bool up)
{
	return uvd_link_port(machine_link(d), index, port, up);
}

static int by_broker_set_tables(struct uvd_daemon *d, unsigned int index, const struct uvd_device_config *config,
				unsigned int port)
{
	return uvd_link_tables(machine_link(d), index, port, config);
}

static void by_broker_set_counters(struct uvd_daemon *d, struct uvd_daemon_node *n, unsigned int port,
				   const uint64_t *values)
{
	if (!uvd_link_counters(machine_link(d), n->index, port, values))
		memcpy(n->place.shown.ports[port - 1], values, UVD_PORT_COUNTERS * sizeof(*values));
}

/* The broker has done so when it made the node. */
static int by_broker_add_ucap(struct uvd_daemon *d, const char *name, dev_t rdev)
{
	return 0;
}

static void by_broker_remove_ucap(struct uvd_daemon *d, const char *name)
{
	uvd_link_ucap_gone(machine_link(d), name);
}

/* As for a User Capability. */
static int by_broker_add_cm(struct uvd_daemon *d, dev_t rdev)
{
	return 0;
}

static void by_broker_remove_cm(struct uvd_daemon *d)
{
	uvd_link_tell(machine_link(d), UVD_WIRE_CM_GONE, 0);
}

static int by_broker_read_again(struct uvd_daemon *d, struct uvd_options *next, char ignored[UVD_RELOAD_NAMES],
				char error[UVD_RELOAD_ERROR])
{
	int fd = -1, err = uvd_link_reload(machine_link(d), &fd);

	if (err == -EAGAIN) {
		usleep((UVD_RELOAD_MS + 1) * 1000);
		err = uvd_link_reload(machine_link(d), &fd);
	}
	if (!err && fd >= 0)
		return uvd_reload_unpack(fd, next, ignored, error);
	snprintf(error, UVD_RELOAD_ERROR, "the daemon is starting, or ending: %s", uvd_errno_name(err));
	return -1;
}

/* The broker ends this process by a signal. */
static int by_broker_restart(struct uvd_daemon *d)
{
	return uvd_link_tell(machine_link(d), UVD_WIRE_RESTART, 0);
}

static int by_broker_log_level(struct uvd_daemon *d, enum uvd_log_level level)
{
	return uvd_link_tell(machine_link(d), UVD_WIRE_LOG_LEVEL, level);
}

const struct uvd_machine_ops uvd_machine_broker = {
	.clients = &uvd_cuse_clients_remote,
	.begin = by_broker_begin,
	.ready = by_broker_ready,
	.tick = by_broker_tick,
	.leave = by_broker_leave,
	.end = by_broker_end,
	.add = by_broker_add,
	.open_adapter = by_broker_open_adapter,
	.publish = by_broker_publish,
	.unpublish = by_broker_unpublish,
	.refresh = by_broker_refresh,
	.set_port = by_broker_set_port,
	.set_tables = by_broker_set_tables,
	.set_counters = by_broker_set_counters,
	.add_ucap = by_broker_add_ucap,
	.remove_ucap = by_broker_remove_ucap,
	.add_cm = by_broker_add_cm,
	.remove_cm = by_broker_remove_cm,
	.read_again = by_broker_read_again,
	.restart = by_broker_restart,
	.log_level = by_broker_log_level,
	.pid = getppid,
};
