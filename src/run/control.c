/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The control socket of a run, in the run's folder. Programs of the process tree find it by the environment variable
 * UVERBSD_CONTROL. It has a thread and an event loop of its own, because the engine's main thread must not wait for
 * clients. A run works without it.
 */
#include <errno.h>
#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "broker/broker.h"
#include "control/control.h"
#include "options/options.h"
#include "run/internal.h"
#include "util/util.h"

/* A device that a filter has removed, and that comes back. */
struct run_replug {
	struct ev_timer timer;
	struct uvd_run_control *control;
	char ibdev[IBV_SYSFS_NAME_MAX]; /* empty: unused */
};

#define ADAPTERS_SECONDS 0.5

struct uvd_run_control {
	struct uvd_run_engine *engine;
	struct ev_loop *loop;
	struct ev_async end, on_replug;
	struct run_replug replugs[UVD_MAX_DEVICES]; /* only the control's thread */
	struct ev_timer adapters; /* looks for devices whose adapter is gone; runs if a device has an adapter */
	struct uvd_control *control;
	struct uvd_control_plugins *plugins;
	struct uvd_control_traces *traces;
	struct uvd_control_meters *meters;
	pthread_t thread;
};

static struct uvd_device *run_control_device(void *arg, unsigned int i)
{
	struct uvd_run_engine *e = arg;

	for (unsigned int at = 0; at < e->num_devices; at++)
		if (e->devices[at].dev && !i--)
			return e->devices[at].dev;
	return NULL;
}

/* ---- add and remove devices: on the control's thread, as a removal waits for calls in progress ------------------- */

static struct uvd_run_device *run_control_find(struct uvd_run_engine *e, const char *name, bool plugged)
{
	for (struct uvd_run_device *d = e->devices; d < e->devices + e->num_devices; d++)
		if (!d->dev == !plugged && uvd_control_is_called(&d->config, name))
			return d;
	return NULL;
}

static json_t *run_control_remove(void *arg, const char *name)
{
	struct uvd_run_control *c = arg;
	struct uvd_run_device *d = run_control_find(c->engine, name, true);

	if (!d)
		return uvd_control_refuse("there is no such device");
	uvd_run_device_remove(c->engine, d);
	return uvd_control_tell(&d->config);
}

static void run_control_on_adapters(struct ev_loop *loop, struct ev_timer *w, int events)
{
	struct uvd_run_control *c = w->data;
	struct uvd_run_engine *e = c->engine;

	for (struct uvd_run_device *d = e->devices; d < e->devices + e->num_devices; d++) {
		if (!d->dev || !atomic_exchange(&d->dev->adapter_gone, false))
			continue;
		uvd_run_device_remove(e, d);
		uvd_logf(e->log, UVD_WARN, "%s: the device is removed, because its adapter is gone", d->config.ibdev);
	}
}

/* Other devices lose no adapter: their engine does not wake up for nothing. */
static void run_control_watch_adapters(struct uvd_run_control *c)
{
	const struct uvd_run_engine *e = c->engine;

	for (const struct uvd_run_device *d = e->devices; d < e->devices + e->num_devices; d++)
		if (d->dev && d->dev->config.hca[0])
			ev_timer_start(c->loop, &c->adapters);
}

static bool run_control_number_taken(struct uvd_run_engine *e, int number)
{
	for (unsigned int i = 0; i < e->num_devices; i++)
		if (e->devices[i].dev && e->devices[i].config.number == number)
			return true;
	return false;
}

static json_t *run_control_make(void *arg, const struct uvd_device_config *wanted)
{
	struct uvd_run_control *c = arg;
	struct uvd_device_config config = *wanted;
	int err;

	if (config.number < 0)
		for (config.number = 0; run_control_number_taken(c->engine, config.number); config.number++)
			;
	if (run_control_number_taken(c->engine, config.number))
		return uvd_control_refuse("a device with that number exists already");
	err = uvd_run_device_add(c->engine, &config);
	run_control_watch_adapters(c);
	return err ? json_pack("{s:s++}", "error", "cannot make the device", ": ", uvd_errno_name(err))
		   : uvd_control_tell(&config);
}

static bool run_control_taken(void *arg, const char *ibdev)
{
	struct uvd_run_control *c = arg;

	return run_control_find(c->engine, ibdev, true);
}

static json_t *run_control_plug_in(void *arg, const char *name)
{
	struct uvd_run_control *c = arg;
	struct uvd_run_device *d = run_control_find(c->engine, name, false);
	struct uvd_device_config config;

	if (!d || run_control_taken(arg, d->config.ibdev))
		return uvd_control_refuse(d || run_control_find(c->engine, name, true)
						  ? "the device is plugged in already"
						  : "no such device was removed");
	config = d->config;
	if (run_control_number_taken(c->engine, config.number))
		config.number = -1;
	return run_control_make(arg, &config);
}

static const char *run_control_removed(void *arg, const char *name)
{
	struct uvd_run_control *c = arg;
	const struct uvd_run_device *d = run_control_find(c->engine, name, false);

	return d ? d->config.ibdev : NULL;
}

/* A user has added a device: one of its name that a filter has removed does not come back. */
static void run_control_added(void *arg, const char *ibdev)
{
	struct uvd_run_control *c = arg;

	for (struct run_replug *r = c->replugs; r < c->replugs + UVD_COUNT(c->replugs); r++) {
		if (!r->ibdev[0] || strcmp(r->ibdev, ibdev) != 0)
			continue;
		ev_timer_stop(c->loop, &r->timer);
		r->ibdev[0] = 0;
	}
}

static struct uvd_engine *run_control_engine(void *arg)
{
	struct uvd_run_control *c = arg;

	return &c->engine->core;
}

/* ---- devices that the filter `flap` removes, and that come back -------------------------------------------------- */

int uvd_run_control_replug(struct uvd_device *dev, uint64_t down_ns)
{
	struct uvd_run_engine *e = container_of(dev->engine, struct uvd_run_engine, core);
	int err = -ENODEV;

	uvd_lock(&e->devices_lock);
	for (struct uvd_run_device *d = e->devices; d < e->devices + e->num_devices; d++)
		if (d->dev == dev) {
			d->replug_ns = down_ns;
			err = 0;
		}
	/* If the control has not begun yet, it looks when it does. */
	if (!err && e->control)
		ev_async_send(e->control->loop, &e->control->on_replug);
	else if (!err && e->no_control)
		err = -ESHUTDOWN;
	uvd_unlock(&e->devices_lock);
	return err;
}

static void run_control_on_back(struct ev_loop *loop, struct ev_timer *w, int events)
{
	struct run_replug *r = w->data;
	struct uvd_run_control *c = r->control;
	json_t *answer = run_control_plug_in(c, r->ibdev);
	const char *wrong = json_string_value(json_object_get(answer, "error"));

	uvd_logf(c->engine->log, UVD_WARN, "%s: filter flap: the device %s%s", r->ibdev,
		 wrong ? "does not come back: " : "is back", wrong ? wrong : "");
	json_decref(answer);
	r->ibdev[0] = 0;
}

static void run_control_start_back(struct uvd_run_control *c, const char *ibdev, uint64_t down_ns)
{
	struct run_replug *r = c->replugs;

	/* There are as many entries as devices, and a device that is away has no second one. */
	while (r < c->replugs + UVD_COUNT(c->replugs) - 1 && r->ibdev[0] && strcmp(r->ibdev, ibdev) != 0)
		r++;
	ev_timer_stop(c->loop, &r->timer);
	snprintf(r->ibdev, sizeof(r->ibdev), "%s", ibdev);
	r->control = c;
	r->timer.data = r;
	ev_now_update(c->loop);
	ev_timer_set(&r->timer, down_ns / 1e9, 0);
	ev_timer_start(c->loop, &r->timer);
}

/* Returns a device that is to be replugged, with the time, or NULL. */
static struct uvd_run_device *run_control_next_replug(struct uvd_run_engine *e, uint64_t *down_ns)
{
	struct uvd_run_device *next = NULL;

	uvd_lock(&e->devices_lock);
	for (struct uvd_run_device *d = e->devices; d < e->devices + e->num_devices && !next; d++)
		if (d->dev && d->replug_ns) {
			*down_ns = d->replug_ns;
			d->replug_ns = 0;
			next = d;
		}
	uvd_unlock(&e->devices_lock);
	return next;
}

static void run_control_on_replug(struct ev_loop *loop, struct ev_async *w, int events)
{
	struct uvd_run_control *c = w->data;
	char ibdev[IBV_SYSFS_NAME_MAX];
	struct uvd_run_device *d;
	uint64_t down_ns;

	while ((d = run_control_next_replug(c->engine, &down_ns))) {
		memcpy(ibdev, d->config.ibdev, sizeof(ibdev));
		uvd_engine_count_replug(&c->engine->core, ibdev);
		uvd_run_device_remove(c->engine, d);
		run_control_start_back(c, ibdev, down_ns);
	}
}

static void run_control_init_replug(struct uvd_run_control *c)
{
	for (unsigned int i = 0; i < UVD_COUNT(c->replugs); i++)
		ev_timer_init(&c->replugs[i].timer, run_control_on_back, 0, 0);
	ev_async_init(&c->on_replug, run_control_on_replug);
	c->on_replug.data = c;
	ev_async_start(c->loop, &c->on_replug);
}

/* From now on the control does what filters order. NULL: it has ended or could not start, and orders are refused. */
static void run_control_enter(struct uvd_run_engine *e, struct uvd_run_control *c)
{
	uvd_lock(&e->devices_lock);
	e->control = c;
	e->no_control = !c;
	uvd_unlock(&e->devices_lock);
	if (c)
		ev_async_send(c->loop, &c->on_replug);
}

static const struct uvd_control_devices devices = {
	.remove = run_control_remove,
	.add = run_control_plug_in,
	.removed = run_control_removed,
	.make = run_control_make,
	.added = run_control_added,
	.taken = run_control_taken,
	.engine = run_control_engine,
	.maps_queues = true,
};

static json_t *run_control_answer(void *arg, const char *command, bool may_change)
{
	struct uvd_run_control *c = arg;

	json_t *answer;

	if (!strcmp(command, "status"))
		return uvd_run_status(c->engine);
	if (!strcmp(command, "accounts"))
		return uvd_control_accounts(c->control, c->engine->core.accounts);
	if (uvd_control_is_plugin(command))
		return uvd_control_plugin(c->plugins, command, may_change);
	if (uvd_control_is_filter(command))
		return uvd_control_filter(c->plugins, command, may_change);
	if (uvd_control_is_trace(command))
		return uvd_control_trace(c->traces, command, may_change);
	if (uvd_control_is_meter(command))
		return uvd_control_meter(c->meters, may_change);
	answer = uvd_control_port(command, may_change, run_control_device, c->engine);
	return answer ? answer : uvd_control_device(command, may_change, &devices, c);
}

static void run_control_on_end(struct ev_loop *loop, struct ev_async *w, int events)
{
	ev_break(loop, EVBREAK_ALL);
}

static void *run_control_thread(void *arg)
{
	struct uvd_run_control *c = arg;

	ev_run(c->loop, 0);
	return NULL;
}

static void run_control_release(struct uvd_run_control *c)
{
	uvd_control_traces_free(c->traces);
	uvd_control_meters_free(c->meters);
	uvd_control_plugins_free(c->plugins);
	uvd_control_free(c->control);
	if (c->loop)
		ev_loop_destroy(c->loop);
	free(c);
}

void uvd_run_program(pid_t pid, char *name, size_t size)
{
	char path[32];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	f = fopen(path, "re");
	if (!f || !fgets(name, size, f))
		*name = 0;
	name[strcspn(name, "\n")] = 0;
	if (f)
		fclose(f);
}

void uvd_run_program_name(void *arg, pid_t pid, char *name, size_t size)
{
	uvd_run_program(pid, name, size);
}

static void run_control_start_plugins(struct uvd_run_control *c)
{
	const struct uvd_control_plugin_config config = {
		.loop = c->loop,
		.control = c->control,
		.engine = &c->engine->core,
		.program = uvd_run_program_name,
	};

	c->plugins = uvd_control_plugins_new(&config);
	c->traces = uvd_control_traces_new(c->loop, c->control, &c->engine->core, uvd_run_program_name, NULL);
	c->meters = uvd_control_meters_new(c->loop, c->control, &c->engine->core);
}

/* The user who runs PROGRAM pays for it, whatever its user namespaces. */
static int run_control_owners(void *arg, pid_t pid, uid_t uid, uid_t *uids, unsigned int max)
{
	return uid == geteuid() ? 0 : uvd_peer_owners(pid, uid, uids, max);
}

static struct uvd_run_control *run_control_start(struct uvd_run_engine *e)
{
	struct uvd_run_control *c = calloc(1, sizeof(*c));
	char path[PATH_MAX + 16];
	int err;

	if (!c)
		return NULL;
	c->engine = e;
	snprintf(path, sizeof(path), "%s/" UVD_RUN_CONTROL, e->root);
	c->loop = strlen(path) < sizeof(((struct sockaddr_un *)0)->sun_path) ? ev_loop_new(EVFLAG_AUTO) : NULL;
	c->control = c->loop ? uvd_control_new(c->loop, path, run_control_answer, c, e->log, &err) : NULL;
	if (!c->control) {
		run_control_release(c);
		return NULL;
	}
	uvd_control_charge(c->control, e->core.accounts, run_control_owners, NULL);
	run_control_start_plugins(c);
	ev_async_init(&c->end, run_control_on_end);
	ev_async_start(c->loop, &c->end);
	run_control_init_replug(c);
	ev_timer_init(&c->adapters, run_control_on_adapters, ADAPTERS_SECONDS, ADAPTERS_SECONDS);
	c->adapters.data = c;
	run_control_watch_adapters(c);
	if (pthread_create(&c->thread, NULL, run_control_thread, c)) {
		run_control_release(c);
		return NULL;
	}
	return c;
}

struct uvd_run_control *uvd_run_control_new(struct uvd_run_engine *e)
{
	struct uvd_run_control *c = run_control_start(e);

	run_control_enter(e, c);
	return c;
}

void uvd_run_control_free(struct uvd_run_control *c)
{
	if (!c)
		return;
	run_control_enter(c->engine, NULL);
	ev_async_send(c->loop, &c->end);
	pthread_join(c->thread, NULL);
	run_control_release(c);
}
