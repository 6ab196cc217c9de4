/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef UVD_FLEET_INTERNAL_H
#define UVD_FLEET_INTERNAL_H

#include "fleet/fleet.h"

/* Calls ops->settle. */
void uvd_fleet_settle(struct uvd_fleet *f);
/* The device of this name, or of this node, that serves; or that was removed and can be added again. NULL: none. */
struct uvd_fleet_place *uvd_fleet_find(struct uvd_fleet *f, const char *name);
struct uvd_fleet_place *uvd_fleet_find_removed(struct uvd_fleet *f, const char *name);
/* Return the answer for who asks, with `error` if they cannot. */
json_t *uvd_fleet_make(struct uvd_fleet *f, const struct uvd_device_config *config);
json_t *uvd_fleet_plug_in(struct uvd_fleet *f, const char *name); /* adds a removed device again */
json_t *uvd_fleet_remove(struct uvd_fleet *f, const char *name); /* NULL: the answer comes later */

/* Prepares the timer that looks for adapters that are gone; starts it if a device has an adapter: others wake nobody up. */
void uvd_fleet_adapters_init(struct uvd_fleet *f);
void uvd_fleet_watch_adapters(struct uvd_fleet *f);

/* addresses.c: starts to watch the machine's addresses if a device has some of them, and looks which there are. */
void uvd_fleet_watch_addresses(struct uvd_fleet *f);
void uvd_fleet_addresses_close(struct uvd_fleet *f);

/* commands.c: the command `device`. NULL: it is another one, or the answer comes later. */
json_t *uvd_fleet_device_command(struct uvd_fleet *f, const char *command, bool may_change);

/* Makes the device of the options with its texts, as `device add`. */
json_t *uvd_fleet_try(struct uvd_fleet *f, const struct uvd_options *o);

/* reload.c: ends a reload that is under way. */
void uvd_fleet_reload_end(struct uvd_fleet *f);

/* ---- replug.c ---- */

void uvd_fleet_replug_init(struct uvd_fleet *f);
/* Sets f->loop: orders of filters that have waited are done when it runs. */
void uvd_fleet_replug_begin(struct uvd_fleet *f, struct ev_loop *loop);
/* A user has added a device: one of its name that a filter has removed does not come back. */
void uvd_fleet_replug_stop(struct uvd_fleet *f, const char *ibdev);

#endif
