/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Devices that the filter `flap` removes, and that come back. The filter's thread only orders the removal; the loop's thread
 * removes the device, as for `uverbsctl device remove`, and starts the timer that adds it again.
 *
 * The timer does not wait for the end of the removal, which a client can hold up: other clients find the device in time.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <uverbsd/log.h>
#include "fleet/internal.h"
#include "util/util.h"

/* Returns the entry of this name, or an unused one. NULL: all are in use. */
static struct uvd_fleet_back *back_find(struct uvd_fleet *f, const char *ibdev)
{
	struct uvd_fleet_back *unused = NULL;

	for (struct uvd_fleet_back *b = f->backs; b < f->backs + UVD_COUNT(f->backs); b++) {
		if (!strcmp(b->ibdev, ibdev))
			return b;
		if (!b->ibdev[0])
			unused = b;
	}
	return unused;
}

static void back_on_timer(struct ev_loop *loop, struct ev_timer *w, int events)
{
	struct uvd_fleet_back *b = container_of(w, struct uvd_fleet_back, timer);
	struct uvd_fleet *f = w->data;
	json_t *answer;
	const char *wrong;

	uvd_fleet_settle(f); /* a node whose last file was closed gives up its number now */
	answer = uvd_fleet_plug_in(f, b->ibdev);
	wrong = json_string_value(json_object_get(answer, "error"));
	uvd_logf(f->log, UVD_WARN, "%s: filter flap: the device %s%s", b->ibdev,
		 wrong ? "does not come back: " : "is back", wrong ? wrong : "");
	json_decref(answer);
	b->ibdev[0] = 0;
}

static void back_start(struct uvd_fleet *f, const char *ibdev, uint64_t down_ns)
{
	struct uvd_fleet_back *b = back_find(f, ibdev);

	if (!b) {
		uvd_logf(f->log, UVD_ERR,
			 "%s: filter flap: the device does not come back: too many devices are to come back; use "
			 "`uverbsctl device add`",
			 ibdev);
		return;
	}
	snprintf(b->ibdev, sizeof(b->ibdev), "%s", ibdev);
	ev_timer_stop(f->loop, &b->timer);
	ev_now_update(f->loop);
	ev_timer_set(&b->timer, down_ns / 1e9, 0);
	ev_timer_start(f->loop, &b->timer);
}

static void fleet_replug_place(struct uvd_fleet *f, struct uvd_fleet_place *p, uint64_t down_ns)
{
	const char *wrong;

	/* Before the removal: the next device of the name reads it. */
	uvd_engine_count_replug(f->engine, p->config.ibdev);
	wrong = f->ops->remove(f->arg, p);
	if (wrong)
		uvd_logf(f->log, UVD_ERR, "%s: filter flap: the device stays: %s", p->config.ibdev, wrong);
	else
		back_start(f, p->config.ibdev, down_ns);
}

static void fleet_on_replug(struct ev_loop *loop, struct ev_async *w, int events)
{
	struct uvd_fleet *f = w->data;
	bool ordered;

	uvd_lock(&f->lock);
	ordered = f->ordered;
	f->ordered = false;
	uvd_unlock(&f->lock);
	for (unsigned int i = 0; ordered && i < UVD_MAX_DEVICES; i++) {
		struct uvd_fleet_place *p = f->ops->place(f->arg, i);
		uint64_t down_ns;

		uvd_lock(&f->lock);
		down_ns = p->replug_ns;
		p->replug_ns = 0;
		uvd_unlock(&f->lock);
		/* In another state it is being removed already, or was never published. */
		if (down_ns && p->state == UVD_PLACE_SERVES)
			fleet_replug_place(f, p, down_ns);
	}
}

/* The filter's thread ends before the place is used for another device. */
int uvd_fleet_replug(struct uvd_device *dev, uint64_t down_ns)
{
	struct uvd_fleet_place *p = __atomic_load_n(&dev->owner, __ATOMIC_ACQUIRE);
	struct uvd_fleet *f;
	int err = 0;

	/* The device is so new that it has no place yet. */
	if (!p)
		return -ENODEV;
	f = p->fleet;
	uvd_lock(&f->lock);
	if (f->ended)
		err = -ESHUTDOWN;
	else if (p->dev != dev)
		err = -ENODEV;
	else
		p->replug_ns = down_ns;
	f->ordered |= !err;
	/* If the fleet has not begun yet, it looks when it does. */
	if (!err && f->loop)
		ev_async_send(f->loop, &f->on_replug);
	uvd_unlock(&f->lock);
	return err;
}

void uvd_fleet_replug_stop(struct uvd_fleet *f, const char *ibdev)
{
	struct uvd_fleet_back *b = back_find(f, ibdev);

	if (b && b->ibdev[0]) {
		ev_timer_stop(f->loop, &b->timer);
		b->ibdev[0] = 0;
	}
}

void uvd_fleet_replug_init(struct uvd_fleet *f)
{
	for (struct uvd_fleet_back *b = f->backs; b < f->backs + UVD_COUNT(f->backs); b++) {
		ev_timer_init(&b->timer, back_on_timer, 0, 0);
		b->timer.data = f;
	}
	ev_async_init(&f->on_replug, fleet_on_replug);
	f->on_replug.data = f;
}

void uvd_fleet_replug_begin(struct uvd_fleet *f, struct ev_loop *loop)
{
	ev_async_start(loop, &f->on_replug);
	uvd_lock(&f->lock);
	f->loop = loop;
	ev_async_send(loop, &f->on_replug);
	uvd_unlock(&f->lock);
}
