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
void uvd_run_show_port(void *arg, struct uvd_fleet_place *place, unsigned int port, const uint64_t *values)
{
	struct uvd_run_engine *e = arg;
	char sys[PATH_MAX + 8];

	snprintf(sys, sizeof(sys), "%s/sys", e->root);
	uvd_sysfs_set_counters(sys, &place->dev->config, place->dev->persona, port, &place->shown, values);
}

void uvd_run_show_counters(struct uvd_run_engine *e)
{
	uvd_lock(&e->counters_lock);
	uvd_fleet_show_counters(&e->fleet, NULL, 0);
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
	uvd_fleet_show_counters(&e->fleet, ibdev, port);
	uvd_unlock(&e->counters_lock);
}
