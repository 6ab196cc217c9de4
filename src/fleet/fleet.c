/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Begin and end of a fleet, and the commands of the control socket. */
#include <string.h>
#include "control/control.h"
#include "fleet/internal.h"
#include "util/util.h"

void uvd_fleet_init(struct uvd_fleet *f, struct uvd_engine *engine, struct uvd_log *log,
		    const struct uvd_fleet_ops *ops, void *arg)
{
	*f = (struct uvd_fleet){ .engine = engine, .log = log, .ops = ops, .arg = arg };
	pthread_mutex_init(&f->lock, NULL);
	uvd_fleet_replug_init(f);
	uvd_fleet_adapters_init(f);
}

void uvd_fleet_fini(struct uvd_fleet *f)
{
	pthread_mutex_destroy(&f->lock);
}

static void fleet_begin_jobs(struct uvd_fleet *f)
{
	const struct uvd_control_plugin_config config = {
		.loop = f->loop,
		.control = f->control,
		.engine = f->engine,
		.program = f->ops->program,
		.arg = f->arg,
	};

	f->plugins = uvd_control_plugins_new(&config);
	f->traces = uvd_control_traces_new(f->loop, f->control, f->engine, f->ops->program, f->arg);
	f->meters = uvd_control_meters_new(f->loop, f->control, f->engine);
}

void uvd_fleet_begin(struct uvd_fleet *f, struct ev_loop *loop, struct uvd_control *control)
{
	f->control = control;
	uvd_fleet_replug_begin(f, loop);
	fleet_begin_jobs(f);
	uvd_fleet_watch_adapters(f);
	uvd_fleet_watch_addresses(f);
}

void uvd_fleet_end(struct uvd_fleet *f)
{
	uvd_lock(&f->lock);
	f->ended = true;
	uvd_unlock(&f->lock);
	uvd_fleet_reload_end(f);
	uvd_fleet_addresses_close(f);
	uvd_fleet_wire_close(&f->wire);
	uvd_control_traces_free(f->traces);
	uvd_control_meters_free(f->meters);
	uvd_control_plugins_free(f->plugins);
	f->traces = NULL;
	f->meters = NULL;
	f->plugins = NULL;
}

static json_t *fleet_log_level(struct uvd_fleet *f, const char *name, bool may_change)
{
	enum uvd_log_level level;
	int err;

	if (!may_change)
		return uvd_control_refuse("only root and the user that serves the device may do that");
	if (!uvd_log_level_parse(name, &level))
		return uvd_control_refuse("no such level: error, warning, info or debug");
	err = f->ops->log_level ? f->ops->log_level(f->arg, level) : 0;
	if (err)
		return uvd_control_refuse(uvd_errno_name(err));
	uvd_log_set_most(f->log, level);
	return json_pack("{s:s}", "log_level", name);
}

json_t *uvd_fleet_answer(void *fleet, const char *command, bool may_change)
{
	struct uvd_fleet *f = fleet;
	json_t *answer;

	if (!strcmp(command, "status"))
		return f->ops->status(f->arg);
	if (!strncmp(command, "log-level ", 10))
		return fleet_log_level(f, command + 10, may_change);
	if (!strcmp(command, "reload"))
		return may_change ? uvd_fleet_reload(f, true)
				  : uvd_control_refuse("only root and the user that serves the device may do that");
	if (!strcmp(command, "accounts"))
		return uvd_control_accounts(f->control, f->engine->accounts);
	if (uvd_control_is_plugin(command))
		return uvd_control_plugin(f->plugins, command, may_change);
	if (uvd_control_is_filter(command))
		return uvd_control_filter(f->plugins, command, may_change);
	if (uvd_control_is_trace(command))
		return uvd_control_trace(f->traces, command, may_change);
	if (uvd_control_is_meter(command))
		return uvd_control_meter(f->meters, may_change);
	answer = uvd_control_port(command, may_change, uvd_fleet_device, f);
	return answer ? answer : uvd_fleet_device_command(f, command, may_change);
}
