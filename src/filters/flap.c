/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The filter `flap`: a thread of its own takes a port down and up by a schedule, as `uverbsctl port` does, or has the
 * transport remove the device and add it again.
 *
 * The device's removal ends its filters, so each instance removes the device once at most. The one of the device that
 * comes back goes on with the schedule: uvd_ibdev_replugs() says how far it is.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uverbsd/log.h>
#include <uverbsd/plugin.h>

#include "filters/filters.h"
#include "filters/rule.h"
#include "util/util.h"

#define FLAP_LOOK UINT64_C(10000000) /* ns: until the transport knows a device that was just made */
#define FLAP_GONE UINT64_C(10000000000) /* ns: the longest that a post waits for the removal which it has caused */

struct flap {
	struct uvd_ibdev *dev;
	bool device;
	uint64_t before; /* how often the device was removed by the filters before this one */
	uint64_t port, times; /* times 0: without end */
	uint64_t after, down, up; /* ns */
	uint64_t posts; /* not 0: goes down at this post, and not after a time */
	_Atomic uint64_t posted; /* since it is up */
	struct uvd_rule_count count; /* posts, and how often it went down; without `posts` both are how often */
	pthread_t thread;
	pthread_mutex_t lock; /* the fields below */
	pthread_cond_t wake;
	bool stop;
	bool due; /* the post has come, and waits until the thread has acted */
	bool over; /* the thread acts no more */
	bool ordered; /* the removal of the device */
};

static const struct uvd_plugin_option flap_options[] = {
	{ "device", "no", "yes|no", "the device is removed and comes back, not only a port" },
	{ "port", "1", "PORT", "the port" },
	{ "after", "1s", "TIME", "how long it is up at first" },
	{ "posts", "0", "N", "it goes down at its N-th post_send, not after a time" },
	{ "down", "100ms", "TIME", "how long it is down each time" },
	{ "up", "1s", "TIME", "how long it is up in between" },
	{ "times", "1", "N", "how often it goes down; 0: again and again" },
	{},
};

/* ---- the thread -------------------------------------------------------------------------------------------------- */

/* It went down, or (-1) it did not. */
static void flap_count(struct flap *f, int num)
{
	if (!f->posts)
		atomic_fetch_add_explicit(&f->count.seen, num, memory_order_relaxed);
	atomic_fetch_add_explicit(&f->count.done, num, memory_order_release);
}

/* Returns false if the filter ends. */
static bool flap_wait(struct flap *f, uint64_t ns)
{
	const uint64_t end = uvd_now_ns() + ns;
	bool stop;

	pthread_mutex_lock(&f->lock);
	while (!f->stop && uvd_cond_wait_until(&f->wake, &f->lock, end))
		;
	stop = f->stop;
	pthread_mutex_unlock(&f->lock);
	return !stop;
}

/* Waits until it is time to go down: for ns, or for the post. Returns false if the filter ends. */
static bool flap_wait_up(struct flap *f, uint64_t ns)
{
	bool due;

	if (!f->posts)
		return flap_wait(f, ns);
	pthread_mutex_lock(&f->lock);
	while (!f->stop && !f->due)
		pthread_cond_wait(&f->wake, &f->lock);
	due = f->due;
	pthread_mutex_unlock(&f->lock);
	return due;
}

/* The thread has acted: the post goes on. over: it acts no more. ordered: it has ordered the removal of the device. */
static void flap_acted(struct flap *f, bool over, bool ordered)
{
	pthread_mutex_lock(&f->lock);
	f->due = false;
	f->over = over;
	f->ordered = ordered;
	pthread_cond_broadcast(&f->wake);
	pthread_mutex_unlock(&f->lock);
}

/* Orders the removal of the device. Counts it first: the device can be gone, and the count told, when this returns. */
static int flap_remove(struct flap *f)
{
	int err;

	flap_count(f, 1);
	err = uvd_ibdev_replug(f->dev, f->down);
	if (err)
		flap_count(f, -1);
	return err;
}

static void flap_set(struct flap *f, bool up)
{
	const int err = uvd_ibdev_set_port(f->dev, f->port, up);

	uvd_log_limited(f->dev->log, err < 0 ? UVD_ERR : UVD_WARN, "%s: filter flap: port %llu %s%s%s",
			f->dev->config.ibdev, (unsigned long long)f->port, up ? "up" : "down", err < 0 ? ": " : "",
			err < 0 ? uvd_errno_name(err) : "");
	if (!up && !err)
		flap_count(f, 1);
}

static void *flap_port_thread(void *arg)
{
	struct flap *f = arg;
	bool goes_on = flap_wait_up(f, f->after);

	for (uint64_t i = 0; goes_on && (!f->times || i < f->times); i++) {
		flap_set(f, false);
		flap_acted(f, false, false);
		goes_on = flap_wait(f, f->down);
		atomic_store(&f->posted, 0);
		/* Also at the end: the filter leaves the port as it was. */
		flap_set(f, true);
		goes_on = goes_on && i + 1 != f->times && flap_wait_up(f, f->up);
	}
	flap_acted(f, true, false);
	return NULL;
}

static void *flap_device_thread(void *arg)
{
	struct flap *f = arg;
	bool goes_on = (!f->times || f->before < f->times) && flap_wait_up(f, f->before ? f->up : f->after);
	int err = 0;

	if (goes_on) {
		uvd_logf(f->dev->log, UVD_WARN, "%s: filter flap: removal %llu of the device, for %llu us",
			 f->dev->config.ibdev, (unsigned long long)f->before + 1, (unsigned long long)(f->down / 1000));
		/*
		 * If the device is that new, the transport does not know it yet. If others remove it, the post that waits
		 * here must not: they wait for it before they end this filter.
		 */
		while ((err = flap_remove(f)) == -ENODEV && uvd_ibdev_sleep(f->dev, 0) && flap_wait(f, FLAP_LOOK))
			;
	}
	if (err && err != -ENODEV)
		uvd_logf(f->dev->log, UVD_ERR, "%s: filter flap: the device stays: %s", f->dev->config.ibdev,
			 uvd_errno_name(err));
	flap_acted(f, true, goes_on && !err);
	return NULL;
}

/* ---- begin and end ----------------------------------------------------------------------------------------------- */

static int flap_time(const struct uvd_plugin_values *values, const char *name, uint64_t *ns)
{
	return uvd_rule_time(uvd_plugin_value(values, name), ns)
		       ? 0
		       : uvd_plugin_wrong(values, name, "is not a time such as 5us, 10ms or 2s, of 60s at most");
}

static int flap_parse_device(struct flap *f, const struct uvd_plugin_values *values)
{
	const char *text = uvd_plugin_value(values, "device");

	f->device = !strcmp(text, "yes");
	if (!f->device)
		return strcmp(text, "no") ? uvd_plugin_wrong(values, "device", "is not yes or no") : 0;
	f->before = uvd_ibdev_replugs(f->dev);
	if (f->before != UINT64_MAX)
		return 0;
	uvd_logf(f->dev->log, UVD_ERR, "%s: filter flap: only uverbsd and `uverbsctl run` remove devices for a filter",
		 f->dev->config.ibdev);
	return -EOPNOTSUPP;
}

static int flap_parse(struct flap *f, const struct uvd_plugin_values *values)
{
	f->port = f->times = 1;
	return flap_parse_device(f, values) ?:
	       uvd_plugin_number(values, "port", 1, f->dev->config.num_ports, &f->port) ?:
	       uvd_plugin_number(values, "times", 0, UINT64_MAX, &f->times) ?:
	       uvd_plugin_number(values, "posts", 0, UINT64_MAX, &f->posts) ?:
	       flap_time(values, "after", &f->after) ?:
	       flap_time(values, "down", &f->down) ?:
	       flap_time(values, "up", &f->up);
}

static void flap_tell_rules(void *data, uvd_filter_tell_fn tell, void *arg)
{
	uvd_rule_count_tell(&((const struct flap *)data)->count, tell, arg);
}

/* Names the rule by the option that says when, or what. */
static void flap_name_rule(struct flap *f, const struct uvd_plugin_values *values)
{
	const char *name = f->posts ? "posts" : f->device ? "device" : "port";

	uvd_rule_count_name(&f->count, name, uvd_plugin_value(values, name));
	uvd_filter_has_rules(values, flap_tell_rules);
}

static int flap_init(struct uvd_ibdev *dev, const struct uvd_plugin_values *values, void **data)
{
	struct flap *f = uvd_zalloc(sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->dev = dev;
	err = flap_parse(f, values);
	if (err) {
		free(f);
		return err;
	}
	flap_name_rule(f, values);
	pthread_mutex_init(&f->lock, NULL);
	uvd_cond_init(&f->wake);
	err = uvd_thread_start(&f->thread, 0, f->device ? flap_device_thread : flap_port_thread, f);
	if (err) {
		pthread_mutex_destroy(&f->lock);
		pthread_cond_destroy(&f->wake);
		free(f);
		return err;
	}
	*data = f;
	return 0;
}

static void flap_exit(struct uvd_ibdev *dev, void *data)
{
	struct flap *f = data;

	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_cond_broadcast(&f->wake);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->wake);
	free(f);
}

/* ---- posts ------------------------------------------------------------------------------------------------------- */

/*
 * Counts a post. The one that the schedule names goes on when the port is down. If the device is to go, it waits for
 * that and fails, so that the same post always meets the same device. Returns 0 or -EIO.
 */
static int flap_post(struct flap *f)
{
	bool ordered;

	if (!f->posts)
		return 0;
	uvd_rule_count_seen(&f->count);
	if (atomic_fetch_add(&f->posted, 1) + 1 != f->posts)
		return 0;
	pthread_mutex_lock(&f->lock);
	f->due = !f->over;
	pthread_cond_broadcast(&f->wake);
	/* exit() waits for this call, so the thread lives. */
	while (f->due && !f->over)
		pthread_cond_wait(&f->wake, &f->lock);
	ordered = f->ordered;
	pthread_mutex_unlock(&f->lock);
	return ordered && !uvd_ibdev_sleep(f->dev, FLAP_GONE) ? -EIO : 0;
}

static int flap_post_send(void *data, const struct uvd_next *next, struct uvd_qp *qp, const struct uvd_send_wr *wr,
			  const struct uvd_send_wr **bad, struct uvd_work *work)
{
	*bad = wr;
	return flap_post(data) ?: uvd_next_post_send(next, qp, wr, bad, work);
}

/* The stock provider of a persona with mapped queues posts by a doorbell. */
static int flap_ring_doorbell(void *data, const struct uvd_next *next, struct uvd_qp *qp, struct uvd_work *work)
{
	return flap_post(data) ?: uvd_next_ring_doorbell(next, qp, work);
}

const struct uvd_filter uvd_filter_flap = {
	.name = "flap",
	.description = "a port, or the device, goes and comes back by a schedule",
	.options = flap_options,
	.init = flap_init,
	.exit = flap_exit,
	.post_send = flap_post_send,
	.ring_doorbell = flap_ring_doorbell,
};
