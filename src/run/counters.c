/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The files of ports/N/counters and ports/N/hw_counters. A client's open() of one is trapped, so the engine writes the
 * values of that moment first. A path that is relative to such a folder, or a file that stays open, is not: for these
 * the main loop writes the files twice a second.
 */
#include <stdio.h>
#include <string.h>

#include "run/internal.h"

/* Caller holds counters_lock. */
static void show_port(const struct uvd_run_engine *e, struct uvd_fleet_place *d, unsigned int port)
{
	uint64_t values[UVD_PORT_COUNTERS];
	char sys[PATH_MAX + 8];

	if (uvd_device_query_counters(d->dev, port, values))
		return;
	snprintf(sys, sizeof(sys), "%s/sys", e->root);
	uvd_sysfs_set_counters(sys, &d->dev->config, d->dev->persona, port, &d->shown, values);
}

void uvd_run_show_counters(struct uvd_run_engine *e)
{
	uvd_lock(&e->counters_lock);
	for (struct uvd_fleet_place *d = e->devices; d < e->devices + UVD_MAX_DEVICES; d++)
		for (unsigned int p = 1; d->dev && p <= d->dev->config.num_ports; p++)
			show_port(e, d, p);
	uvd_unlock(&e->counters_lock);
}

void uvd_run_show_counters_at(struct uvd_run_engine *e, const char *path)
{
	char ibdev[IBV_SYSFS_NAME_MAX];
	unsigned int port;

	_Static_assert(IBV_SYSFS_NAME_MAX == 64, "the length below is one less");
	if (!strstr(path, "counters") || sscanf(path, "sys/class/infiniband/%63[^/]/ports/%u/", ibdev, &port) != 2)
		return;
	uvd_lock(&e->counters_lock);
	for (struct uvd_fleet_place *d = e->devices; d < e->devices + UVD_MAX_DEVICES; d++)
		if (d->dev && !strcmp(d->config.ibdev, ibdev) && port >= 1 && port <= d->dev->config.num_ports)
			show_port(e, d, port);
	uvd_unlock(&e->counters_lock);
}
