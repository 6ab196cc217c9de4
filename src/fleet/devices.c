/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The places of devices, and what happens to devices there. */
#include "fleet/internal.h"
#include <string.h>
#include <uverbsd/log.h>
#include "control/control.h"
#include "util/util.h"

#define ADAPTERS_SECONDS 0.5

void uvd_fleet_settle(struct uvd_fleet *f)
{
	if (f->ops->settle)
		f->ops->settle(f->arg);
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/*
 * Returns a place for the device: the one that it had, or one that belongs to no removed device; if there is none of
 * these, that of another removed device. NULL: all places are in use.
 */
static struct uvd_fleet_place *fleet_place_for(struct uvd_fleet *f, const struct uvd_device_config *config)
{
	struct uvd_fleet_place *unnamed = NULL, *others = NULL;

	for (unsigned int i = 0; i < UVD_MAX_DEVICES; i++) {
		struct uvd_fleet_place *p = f->ops->place(f->arg, i);

		if (p->state != UVD_PLACE_EMPTY)
			continue;
		if (!strcmp(p->config.ibdev, config->ibdev))
			return p;
		if (p->config.ibdev[0])
			others = p;
		else if (!unnamed)
			unnamed = p;
	}
	return unnamed ? unnamed : others;
}

/* The name is now this place's: removed devices that had it are not added again. */
static void fleet_own_name(struct uvd_fleet *f, const struct uvd_fleet_place *owner)
{
	uvd_lock(&f->lock);
	for (unsigned int i = 0; i < UVD_MAX_DEVICES; i++) {
		struct uvd_fleet_place *p = f->ops->place(f->arg, i);

		if (p != owner && p->state != UVD_PLACE_SERVES && !strcmp(p->config.ibdev, owner->config.ibdev))
			p->config.ibdev[0] = 0;
	}
	uvd_unlock(&f->lock);
}

void uvd_fleet_enter(struct uvd_fleet *f, struct uvd_fleet_place *place, const struct uvd_device_config *config,
		     struct uvd_device *dev)
{
	uvd_lock(&f->lock);
	place->fleet = f;
	place->config = *config;
	place->dev = dev;
	place->replug_ns = 0;
	f->had[dev->config.number] = true;
	memset(&place->shown, 0, sizeof(place->shown));
	uvd_unlock(&f->lock);
	/* A filter of the device may look for its place already, on a thread of its own: uvd_fleet_replug(). */
	__atomic_store_n(&dev->owner, place, __ATOMIC_RELEASE);
}

struct uvd_device *uvd_fleet_leave(struct uvd_fleet_place *place)
{
	struct uvd_device *dev;

	uvd_lock(&place->fleet->lock);
	dev = place->dev;
	place->dev = NULL;
	uvd_unlock(&place->fleet->lock);
	return dev;
}

struct uvd_fleet_place *uvd_fleet_find(struct uvd_fleet *f, const char *name)
{
	for (unsigned int i = 0; i < UVD_MAX_DEVICES; i++) {
		struct uvd_fleet_place *p = f->ops->place(f->arg, i);

		if (p->state == UVD_PLACE_SERVES && uvd_control_is_called(&p->dev->config, name))
			return p;
	}
	return NULL;
}

struct uvd_fleet_place *uvd_fleet_find_removed(struct uvd_fleet *f, const char *name)
{
	for (unsigned int i = 0; i < UVD_MAX_DEVICES; i++) {
		struct uvd_fleet_place *p = f->ops->place(f->arg, i);

		/* It has the number that the device last had. */
		if (p->state != UVD_PLACE_SERVES && p->config.ibdev[0] && uvd_control_is_called(&p->config, name))
			return p;
	}
	return NULL;
}

struct uvd_device *uvd_fleet_device(void *fleet, unsigned int i)
{
	struct uvd_fleet *f = fleet;

	for (unsigned int at = 0; at < UVD_MAX_DEVICES; at++) {
		struct uvd_fleet_place *p = f->ops->place(f->arg, at);

		if (p->state == UVD_PLACE_SERVES && !i--)
			return p->dev;
	}
	return NULL;
}

/* ---- adding ------------------------------------------------------------------------------------------------------ */

struct uvd_fleet_place *uvd_fleet_add(struct uvd_fleet *f, const struct uvd_device_config *config, const char **wrong)
{
	struct uvd_device_config copy = *config; /* config may point into the place, which is overwritten */
	struct uvd_fleet_place *p = fleet_place_for(f, &copy);
	struct uvd_device_config was;

	if (!p) {
		*wrong = "there are too many devices";
		return NULL;
	}
	was = p->config;
	uvd_fleet_wire_set_mtu(&f->wire, &copy, f->log);
	*wrong = f->ops->make(f->arg, p, &copy);
	if (!*wrong) {
		fleet_own_name(f, p);
		uvd_fleet_watch_adapters(f);
		uvd_fleet_watch_addresses(f);
		return p;
	}
	/* The removed device can be added again. */
	uvd_lock(&f->lock);
	p->config = was;
	uvd_unlock(&f->lock);
	return NULL;
}

json_t *uvd_fleet_make(struct uvd_fleet *f, const struct uvd_device_config *config)
{
	const char *wrong;
	struct uvd_fleet_place *p = uvd_fleet_add(f, config, &wrong);
	json_t *answer;

	if (!p)
		return uvd_control_refuse(wrong);
	answer = uvd_control_tell(&p->dev->config);
	if (f->ops->made)
		f->ops->made(f->arg, p, answer);
	return answer;
}

json_t *uvd_fleet_plug_in(struct uvd_fleet *f, const char *name)
{
	struct uvd_fleet_place *p = uvd_fleet_find_removed(f, name);
	struct uvd_device_config config;

	if (!p || uvd_fleet_find(f, p->config.ibdev))
		return uvd_control_refuse(p || uvd_fleet_find(f, name) ? "the device is plugged in already"
								       : "no such device was removed");
	config = p->config;
	if (f->ops->number_taken(f->arg, config.number))
		config.number = -1;
	return uvd_fleet_make(f, &config);
}

/* ---- removing ---------------------------------------------------------------------------------------------------- */

json_t *uvd_fleet_remove(struct uvd_fleet *f, const char *name)
{
	struct uvd_fleet_place *p = uvd_fleet_find(f, name);
	const char *wrong = p ? f->ops->remove(f->arg, p) : "there is no such device";

	return wrong ? uvd_control_refuse(wrong) : f->ops->removed(f->arg, p);
}

/* ---- adapters that go -------------------------------------------------------------------------------------------- */

static void fleet_on_adapters(struct ev_loop *loop, struct ev_timer *w, int events)
{
	struct uvd_fleet *f = w->data;

	for (unsigned int i = 0; i < UVD_MAX_DEVICES; i++) {
		struct uvd_fleet_place *p = f->ops->place(f->arg, i);

		if (p->state != UVD_PLACE_SERVES || !atomic_exchange(&p->dev->adapter_gone, false))
			continue;
		if (!f->ops->remove(f->arg, p))
			uvd_logf(f->log, UVD_WARN,
				 "%s: the device is removed, because its adapter is gone; when the adapter is back, "
				 "`uverbsctl device add %s` adds the device again",
				 p->config.ibdev, p->config.ibdev);
	}
}

void uvd_fleet_adapters_init(struct uvd_fleet *f)
{
	ev_timer_init(&f->adapters, fleet_on_adapters, ADAPTERS_SECONDS, ADAPTERS_SECONDS);
	f->adapters.data = f;
}

void uvd_fleet_watch_adapters(struct uvd_fleet *f)
{
	struct uvd_device *dev;

	for (unsigned int i = 0; f->loop && (dev = uvd_fleet_device(f, i)); i++)
		if (dev->config.hca[0])
			ev_timer_start(f->loop, &f->adapters);
}

/* ---- counters ---------------------------------------------------------------------------------------------------- */

static void fleet_show_port(struct uvd_fleet *f, struct uvd_fleet_place *p, unsigned int port)
{
	uint64_t values[UVD_PORT_COUNTERS];

	if (!uvd_device_query_counters(p->dev, port, values))
		f->ops->show_counters(f->arg, p, port, values);
}

void uvd_fleet_show_counters(struct uvd_fleet *f, const char *ibdev, unsigned int port)
{
	for (unsigned int i = 0; i < UVD_MAX_DEVICES; i++) {
		struct uvd_fleet_place *p = f->ops->place(f->arg, i);

		if (p->state != UVD_PLACE_SERVES || (ibdev && strcmp(p->config.ibdev, ibdev) != 0))
			continue;
		for (unsigned int at = 1; at <= p->dev->config.num_ports; at++)
			if (!ibdev || at == port)
				fleet_show_port(f, p, at);
	}
}
