/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Devices that the filter `flap` removes, and that come back. The filter's thread only orders the removal; the main thread
 * removes the device, as for `uverbsctl device remove`, and starts the timer that adds it again.
 *
 * The timer does not wait for the end of the removal, which a client can hold up: other clients find the device in time.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/internal.h"
#include "util/util.h"

/* Returns the entry of this name, or an unused one. NULL: all are in use. */
static struct uvd_daemon_back *daemon_back_find(struct uvd_daemon *d, const char *ibdev)
{
	struct uvd_daemon_back *unused = NULL;

	for (struct uvd_daemon_back *b = d->backs; b < d->backs + UVD_COUNT(d->backs); b++) {
		if (!strcmp(b->ibdev, ibdev))
			return b;
		if (!b->ibdev[0])
			unused = b;
	}
	return unused;
}

static void daemon_back_on_timer(struct ev_loop *loop, struct ev_timer *w, int events)
{
	struct uvd_daemon *d = w->data;
	struct uvd_daemon_back *b = container_of(w, struct uvd_daemon_back, timer);
	json_t *answer;
	const char *wrong;

	uvd_daemon_reap(d); /* a node whose last file was closed gives up its number now */
	answer = uvd_daemon_plug_in(d, b->ibdev);
	wrong = json_string_value(json_object_get(answer, "error"));
	uvd_logf(d->log, UVD_WARN, "%s: filter flap: the device %s%s", b->ibdev,
		 wrong ? "does not come back: " : "is back", wrong ? wrong : "");
	json_decref(answer);
	b->ibdev[0] = 0;
}

static void daemon_back_start(struct uvd_daemon *d, const char *ibdev, uint64_t down_ns)
{
	struct uvd_daemon_back *b = daemon_back_find(d, ibdev);

	if (!b) {
		uvd_logf(d->log, UVD_ERR,
			 "%s: filter flap: the device does not come back: too many devices are to come back; use "
			 "`uverbsctl device add`",
			 ibdev);
		return;
	}
	snprintf(b->ibdev, sizeof(b->ibdev), "%s", ibdev);
	ev_timer_stop(d->loop, &b->timer);
	ev_now_update(d->loop);
	ev_timer_set(&b->timer, down_ns / 1e9, 0);
	ev_timer_start(d->loop, &b->timer);
}

static void daemon_replug_node(struct uvd_daemon *d, struct uvd_daemon_node *n, uint64_t down_ns)
{
	const char *wrong;

	/* Before the removal: the next device of the name reads it. */
	uvd_engine_count_replug(&d->engine, n->config.ibdev);
	wrong = uvd_daemon_remove(d, n);
	if (wrong)
		uvd_logf(d->log, UVD_ERR, "%s: filter flap: the device stays: %s", n->config.ibdev, wrong);
	else
		daemon_back_start(d, n->config.ibdev, down_ns);
}

static void daemon_on_replug(struct ev_loop *loop, struct ev_async *w, int events)
{
	struct uvd_daemon *d = w->data;

	for (struct uvd_daemon_node *n = d->nodes; n < d->nodes + d->num_nodes; n++) {
		const uint64_t down_ns = atomic_exchange(&n->replug_ns, 0);

		/* In another state it is being removed already, or was never published. */
		if (down_ns && n->state == NODE_SERVES)
			daemon_replug_node(d, n, down_ns);
	}
}

/* On the thread of a filter. That thread ends before the node is freed or used for another device. */
static int daemon_replug_order(struct uvd_device *dev, uint64_t down_ns)
{
	struct uvd_daemon *d = container_of(dev->engine, struct uvd_daemon, engine);
	struct uvd_daemon_node *n = __atomic_load_n(&dev->owner, __ATOMIC_ACQUIRE);

	/* The device is so new that it has no node yet. */
	if (!n)
		return -ENODEV;
	atomic_store(&n->replug_ns, down_ns);
	ev_async_send(d->loop, &d->on_replug);
	return 0;
}

void uvd_daemon_replug_stop(struct uvd_daemon *d, const char *ibdev)
{
	struct uvd_daemon_back *b = daemon_back_find(d, ibdev);

	if (b && b->ibdev[0]) {
		ev_timer_stop(d->loop, &b->timer);
		b->ibdev[0] = 0;
	}
}

void uvd_daemon_replug_init(struct uvd_daemon *d)
{
	for (struct uvd_daemon_back *b = d->backs; b < d->backs + UVD_COUNT(d->backs); b++) {
		ev_timer_init(&b->timer, daemon_back_on_timer, 0, 0);
		b->timer.data = d;
	}
	ev_async_init(&d->on_replug, daemon_on_replug);
	d->on_replug.data = d;
	ev_async_start(d->loop, &d->on_replug);
	d->engine.replug = daemon_replug_order;
}
