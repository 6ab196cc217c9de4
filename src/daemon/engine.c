/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The engine process of a daemon with two processes: it enters its sandbox, and then serves. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "backends/backends.h"
#include "broker/broker.h"
#include "client/client.h"
#include "daemon/internal.h"

/*
 * Enters the sandbox, which allows what the backends of the configured devices need. A backend of a plug-in has no row
 * there: it gets only what every engine process may do.
 */
static int engine_sandbox(const struct uvd_options *o, struct uvd_log *log)
{
	const char **backends = calloc(o->num_devices + 3, sizeof(*backends));
	unsigned int num = 0;
	int ret;

	if (!backends)
		return -ENOMEM;
	for (unsigned int i = 0; i < o->num_devices; i++)
		if (uvd_backend_find(o->devices[i].backend))
			backends[num++] = o->devices[i].backend;
	if (o->wire.num)
		backends[num++] = "wire";
	backends[num] = uvd_sandbox_sanitizer;
	ret = uvd_engine_sandbox(o->engine_uid, o->engine_gid, backends, log);
	free(backends);
	return ret;
}

/* Maps the code of libibverbs' providers: in the sandbox no file can become code. */
static void engine_load_providers(const struct uvd_options *o)
{
	for (unsigned int i = 0; i < o->num_devices; i++)
		if (!strcmp(o->devices[i].backend, "verbs")) {
			uvd_verbs_load_providers();
			break;
		}
}

/* The sandbox has a network namespace of its own, without addresses. A device of the options that has some needs news of them. */
static void engine_open_addresses(const struct uvd_options *o, struct uvd_fleet_addresses *addresses,
				  struct uvd_log *log)
{
	int err = 0;

	for (unsigned int i = 0; i < o->num_devices && !err && !addresses->events; i++)
		if (o->devices[i].ips.num)
			err = uvd_fleet_addresses_open(addresses);
	if (err)
		uvd_logf(log, UVD_WARN, "cannot see when the machine loses an address: %s", uvd_errno_name(err));
}

/* Looks at the broker's sockets in the network namespace where they are: the sandbox has another one. */
static int engine_take_wire(const struct uvd_options *o, struct uvd_fleet_wire *wire, struct uvd_log *log)
{
	int fds[UVD_MAX_WIRES];

	for (unsigned int i = 0; i < o->wire.num; i++)
		fds[i] = UVD_ENGINE_WIRE + i;
	return uvd_fleet_wire_init(wire, &o->wire, fds, log);
}

int uvd_engine_main(const struct uvd_options *options, struct uvd_log *log)
{
	struct uvd_link *link = uvd_image_is_engine(log) ? uvd_link_new(UVD_ENGINE_SOCKET) : NULL;
	struct uvd_slots_used *slots = link ? uvd_slots_used_new(link, options) : NULL;
	struct uvd_plugins *plugins = uvd_plugins_new(log);
	struct uvd_fleet_addresses addresses = {};
	struct uvd_fleet_wire wire = {};
	int status;

	uvd_client_prepare();
	if (slots) {
		engine_load_providers(options);
		engine_open_addresses(options, &addresses, log);
	}
	/* No code of a plug-in runs before the sandbox is closed: the broker copies the files into slots. */
	if (!slots || !plugins || engine_take_wire(options, &wire, log) || engine_sandbox(options, log))
		return 1;
	uvd_plugins_set_source(plugins, &uvd_slots_source, slots);
	if (!uvd_options_load_plugins(options, plugins, log))
		return 1;
	status = uvd_daemon_serve(options, link, UVD_ENGINE_CONTROL, plugins, &addresses, &wire);
	uvd_slots_used_free(slots);
	uvd_link_free(link);
	return status;
}
