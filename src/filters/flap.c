/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The filter `flap`: a thread of its own takes ports down and up by a schedule, as `uverbsctl port` does. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <uverbsd/log.h>
#include <uverbsd/plugin.h>

#include "filters/filters.h"
#include "filters/rule.h"
#include "util/util.h"

struct flap {
	struct uvd_ibdev *dev;
	uint64_t port, times; /* times 0: without end */
	uint64_t after, down, up; /* ns */
	pthread_t thread;
	pthread_mutex_t lock; /* stop */
	pthread_cond_t wake;
	bool stop;
};

static const struct uvd_plugin_option flap_options[] = {
	{ "port", "1", "PORT", "the port" },
	{ "after", "1s", "TIME", "how long the port is up at first" },
	{ "down", "100ms", "TIME", "how long it is down each time" },
	{ "up", "1s", "TIME", "how long it is up in between" },
	{ "times", "1", "N", "how often it goes down; 0: again and again" },
	{},
};

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

static void flap_set(struct flap *f, bool up)
{
	const int err = uvd_ibdev_set_port(f->dev, f->port, up);

	uvd_log_limited(f->dev->log, err < 0 ? UVD_ERR : UVD_WARN, "%s: filter flap: port %llu %s%s%s",
			f->dev->config.ibdev, (unsigned long long)f->port, up ? "up" : "down", err < 0 ? ": " : "",
			err < 0 ? uvd_errno_name(err) : "");
}

static void *flap_thread(void *arg)
{
	struct flap *f = arg;
	bool goes_on = flap_wait(f, f->after);

	for (uint64_t i = 0; goes_on && (!f->times || i < f->times); i++) {
		flap_set(f, false);
		goes_on = flap_wait(f, f->down);
		/* Also at the end: the filter leaves the port as it was. */
		flap_set(f, true);
		goes_on = goes_on && flap_wait(f, f->up);
	}
	return NULL;
}

static int flap_time(const struct uvd_plugin_values *values, const char *name, uint64_t *ns)
{
	return uvd_rule_time(uvd_plugin_value(values, name), ns)
		       ? 0
		       : uvd_plugin_wrong(values, name, "is not a time such as 5us, 10ms or 2s, of 60s at most");
}

static int flap_init(struct uvd_ibdev *dev, const struct uvd_plugin_values *values, void **data)
{
	struct flap *f = uvd_zalloc(sizeof(*f));
	int err = f ? 0 : -ENOMEM;

	if (!err) {
		f->dev = dev;
		f->port = f->times = 1;
		err = uvd_plugin_number(values, "port", 1, dev->config.num_ports, &f->port) ?:
		      uvd_plugin_number(values, "times", 0, UINT64_MAX, &f->times) ?:
		      flap_time(values, "after", &f->after) ?:
		      flap_time(values, "down", &f->down) ?:
		      flap_time(values, "up", &f->up);
	}
	if (err) {
		free(f);
		return err;
	}
	pthread_mutex_init(&f->lock, NULL);
	uvd_cond_init(&f->wake);
	err = uvd_thread_start(&f->thread, 0, flap_thread, f);
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
	pthread_cond_signal(&f->wake);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->wake);
	free(f);
}

const struct uvd_filter uvd_filter_flap = {
	.name = "flap",
	.description = "a port goes down and up by a schedule",
	.options = flap_options,
	.init = flap_init,
	.exit = flap_exit,
};
