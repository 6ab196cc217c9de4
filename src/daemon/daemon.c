/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "broker/broker.h"
#include "control/control.h"
#include "cpu/cpu.h"
#include "cuse/cuse.h"
#include "daemon/daemon.h"
#include "daemon/internal.h"
#include "dispatch/dispatch.h"
#include "objects/objects.h"
#include "persona/persona.h"
#include "sysfs/sysfs.h"
#include "util/util.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { DRAIN_MS = 2000 };

/* ---- events ------------------------------------------------------------------------------------------------------ */

static void daemon_on_end(struct ev_loop *loop, struct ev_signal *w, int events)
{
	ev_break(loop, EVBREAK_ALL);
}

/* The log has the answer. */
static void on_hup(struct ev_loop *loop, struct ev_signal *w, int events)
{
	struct uvd_daemon *d = w->data;

	json_decref(uvd_fleet_reload(&d->fleet, false));
}

static void on_tick(struct ev_loop *loop, struct ev_timer *w, int events)
{
	struct uvd_daemon *d = w->data;

	for (unsigned int i = 0; i < UVD_COUNT(d->nodes); i++)
		if (d->nodes[i].cuse)
			uvd_cuse_tick(d->nodes[i].cuse);
	if (d->queues)
		uvd_cuse_tick(d->queues);
	uvd_daemon_cm_tick(d);
	uvd_daemon_reap(d);
	d->machine->tick(d);
	uvd_fleet_show_counters(&d->fleet, NULL, 0);
}

static void on_lost(struct ev_loop *loop, struct ev_async *w, int events)
{
	struct uvd_daemon *d = w->data;

	if (!uvd_daemon_lost(d))
		return;
	uvd_logf(d->log, UVD_ERR, "a node was aborted from outside; stopping");
	d->status = 1;
	ev_break(loop, EVBREAK_ALL);
}

static void on_removed(struct ev_loop *loop, struct ev_async *w, int events)
{
	uvd_daemon_removed(w->data);
}

static void start_signal(struct uvd_daemon *d, struct ev_signal *w, int sig,
			 void (*fn)(struct ev_loop *, struct ev_signal *, int))
{
	ev_signal_init(w, fn, sig);
	w->data = d;
	ev_signal_start(d->loop, w);
}

/*
 * Does not use libev's default loop: that loop waits for all children, and would take the stops of the threads that
 * grants borrow. Does not use epoll: it goes on reporting a descriptor that we have closed while a child still has a
 * copy. Installs the signal handlers before the nodes are made, because libfuse installs its own where there are none.
 */
static bool start_loop(struct uvd_daemon *d)
{
	d->loop = ev_loop_new(EVBACKEND_POLL);
	if (!d->loop)
		return false;
	signal(SIGPIPE, SIG_IGN);
	start_signal(d, &d->on_term, SIGTERM, daemon_on_end);
	start_signal(d, &d->on_int, SIGINT, daemon_on_end);
	start_signal(d, &d->on_hup, SIGHUP, on_hup);
	ev_timer_init(&d->tick, on_tick, UVD_TICK_MS / 1000.0, UVD_TICK_MS / 1000.0);
	d->tick.data = d;
	ev_timer_start(d->loop, &d->tick);
	ev_async_init(&d->on_lost, on_lost);
	d->on_lost.data = d;
	ev_async_start(d->loop, &d->on_lost);
	ev_async_init(&d->on_removed, on_removed);
	d->on_removed.data = d;
	ev_async_start(d->loop, &d->on_removed);
	uvd_daemon_status_init(d);
	return true;
}

/* ---- the start --------------------------------------------------------------------------------------------------- */

/* Raises RLIMIT_NOFILE: grants and registered memory use descriptors. */
void uvd_daemon_raise_nofile(void)
{
	struct rlimit most = { 1 << 20, 1 << 20 }, now;

	if (!setrlimit(RLIMIT_NOFILE, &most) || getrlimit(RLIMIT_NOFILE, &now))
		return;
	now.rlim_cur = now.rlim_max;
	setrlimit(RLIMIT_NOFILE, &now);
}

static void say_ready(struct uvd_daemon *d)
{
	char line[UVD_MAX_DEVICES * 48] = "";
	size_t len = 0;

	for (unsigned int i = 0; i < d->options->num_devices; i++)
		len += snprintf(line + len, sizeof(line) - len, " %s", uvd_cuse_path(d->nodes[i].cuse));
	/* Not through the log: programs that wait for this line must see it at any log level. */
	dprintf(STDERR_FILENO, "uverbsd: ready:%s\n", line);
}

/* Root follows this path and trusts what it finds there, so no other user may be able to replace it. */
static bool daemon_path_is_ours(struct uvd_log *log, const char *option, const char *path)
{
	char culprit[PATH_MAX];
	bool ours = uvd_dir_is_ours(path, culprit);

	if (!ours)
		uvd_logf(
			log, UVD_ERR,
			"--%s %s: refused because another user can change %s; choose a directory that only root can change",
			option, path, culprit);
	return ours;
}

bool uvd_daemon_paths_are_ours(const struct uvd_options *options, struct uvd_log *log)
{
	return daemon_path_is_ours(log, "control", options->control) &&
	       daemon_path_is_ours(log, "sysfs", options->sysfs) &&
	       (!options->pid_file[0] || daemon_path_is_ours(log, "pid-file", options->pid_file)) &&
	       (!options->netlink_alias[0] || daemon_path_is_ours(log, "netlink-alias", options->netlink_alias));
}

/* Gives the engine the plug-ins of the options. An engine process has loaded them already. */
static bool daemon_plugins(struct uvd_daemon *d)
{
	struct uvd_plugins *plugins = d->plugins;

	d->plugins = NULL;
	return plugins ? !uvd_engine_set_plugins(&d->engine, plugins)
		       : uvd_options_load_plugins(d->options, d->engine.plugins, d->log);
}

/* uvd_control_owners_fn. */
static int daemon_owners(void *arg, pid_t pid, uid_t uid, uid_t *uids, unsigned int max)
{
	struct uvd_daemon *d = arg;

	return d->privilege->ops->peer_owners(d->privilege, pid, uid, uids, max);
}

/* Sets everything up. Returns false if that fails, and the log says why; the caller calls daemon_stop() in any case. */
static bool daemon_start(struct uvd_daemon *d, const struct uvd_options *options)
{
	const char *wrong;

	d->options = options;
	d->status = 1;
	d->log = uvd_log_new(STDERR_FILENO, "uverbsd", options->log_level);
	if (uvd_cpu_lacks(uvd_cpu, UVD_CPU_COMPAT))
		uvd_logf(d->log, UVD_WARN, "%s", uvd_cpu_lacks(uvd_cpu, UVD_CPU_COMPAT));
	uvd_crash_start("uverbsd", uvd_dispatch_site);
	uvd_announce_init(&d->announce, options);
	uvd_fleet_init(&d->fleet, &d->engine, d->log, &uvd_daemon_fleet_ops, d);
	d->fleet.addresses = d->addresses;
	d->fleet.wire = d->wire;
	d->fleet.machine = options->machine;
	d->fleet.reload.known = (struct uvd_options *)options;
	if (!start_loop(d) || !d->machine->begin(d))
		return false;
	d->grants = uvd_grants_new(options->grant_fds, d->privilege, d->log);
	d->have_engine = d->grants && !uvd_engine_init(&d->engine, uvd_object_plugins, &options->limits, d->log);
	d->engine.explain = options->explain;
	d->engine.lends = options->grant_fds;
	if (!d->have_engine || !daemon_plugins(d) || uvd_options_give_texts(options, &d->engine) ||
	    uvd_fleet_wire_give(&d->fleet.wire, d->engine.plugins, d->log))
		return false;
	uvd_control_charge(d->control, d->engine.accounts, daemon_owners, d);
	uvd_fleet_begin(&d->fleet, d->loop, d->control);
	uvd_daemon_hook(d);
	for (unsigned int i = 0; i < options->num_devices; i++)
		if (!uvd_fleet_add(&d->fleet, &options->devices[i], &wrong))
			return false;
	uvd_daemon_cm_start(d);
	if (d->machine->ready(d))
		return false;
	d->status = 0;
	say_ready(d);
	return true;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* Removes sysfs directory and nodes, and frees everything. If a thread does not come back, exits the process. */
static void daemon_stop(struct uvd_daemon *d)
{
	uvd_daemon_status_fini(d);
	uvd_fleet_end(&d->fleet);
	uvd_announce_end(&d->announce);
	/* First no new client finds the devices, then every call fails, and only then the nodes go. */
	d->machine->leave(d);
	for (unsigned int i = 0; i < UVD_COUNT(d->nodes); i++)
		if (d->nodes[i].place.dev)
			uvd_device_set_gone(d->nodes[i].place.dev);
	if ((d->grants && !uvd_grants_drain(d->grants, DRAIN_MS)) || !uvd_daemon_cm_stop(d) ||
	    !uvd_daemon_stop_nodes(d)) {
		/* The kernel ends the nodes and the clients' calls when the process exits. */
		uvd_logf(d->log, UVD_WARN, "a thread is held up by a client's memory; not waiting for it");
		uvd_control_free(d->control);
		_exit(1);
	}
	uvd_control_free(d->control);
	uvd_grants_free(d->grants);
	if (d->have_engine)
		uvd_engine_fini(&d->engine);
	uvd_plugins_free(d->plugins);
	uvd_fleet_fini(&d->fleet);
	if (d->loop)
		ev_loop_destroy(d->loop);
	d->machine->end(d);
	uvd_log_free(d->log);
}

static int daemon_run(struct uvd_daemon *d, const struct uvd_options *options)
{
	int status;

	if (daemon_start(d, options))
		ev_run(d->loop, 0);
	daemon_stop(d);
	status = d->status;
	free(d);
	return status;
}

int uvd_daemon_serve(const struct uvd_options *options, struct uvd_link *link, int control, struct uvd_plugins *plugins,
		     const struct uvd_fleet_addresses *addresses, const struct uvd_fleet_wire *wire)
{
	struct uvd_daemon *d = uvd_zalloc(sizeof(*d));

	if (!d)
		return 1;
	d->machine = &uvd_machine_broker;
	d->privilege = uvd_link_privilege(link);
	d->listening = control;
	d->plugins = plugins;
	d->addresses = *addresses;
	d->wire = *wire;
	return daemon_run(d, options);
}

static int daemon_serve_alone(const struct uvd_options *options)
{
	struct uvd_daemon *d = uvd_zalloc(sizeof(*d));

	if (!d)
		return 1;
	d->machine = &uvd_machine_local;
	return daemon_run(d, options);
}

int uvd_daemon_main(const struct uvd_options *options)
{
	return options->separate || options->engine ? uvd_daemon_separate(options) : daemon_serve_alone(options);
}

int uvd_daemon_facts(void)
{
	char what[128];

	printf("broker_version %d\n", UVD_WIRE_VERSION);
	if (uvd_netlink_has_adapter(what, sizeof(what)))
		printf("adapter %s\n", what);
	return fflush(stdout) || ferror(stdout);
}
