/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The filter `event`: the device tells all its clients of a change of a port which has not happened, as a subnet manager
 * causes it. Clients that go on must not mind. `flap` has the events of a port that really goes down.
 */
#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <uverbsd/log.h>
#include <uverbsd/plugin.h>

#include "filters/filters.h"
#include "filters/rule.h"
#include "util/util.h"

struct event {
	struct uvd_ibdev *dev;
	struct uvd_rule when;
	enum ibv_event_type type;
	const char *name;
	uint64_t port;
};

static const struct {
	const char *name; /* without IBV_EVENT_ */
	enum ibv_event_type type;
} event_types[] = {
	{ "SM_CHANGE", IBV_EVENT_SM_CHANGE },	{ "CLIENT_REREGISTER", IBV_EVENT_CLIENT_REREGISTER },
	{ "LID_CHANGE", IBV_EVENT_LID_CHANGE }, { "PKEY_CHANGE", IBV_EVENT_PKEY_CHANGE },
	{ "GID_CHANGE", IBV_EVENT_GID_CHANGE },
};

static const struct uvd_plugin_option event_options[] = {
	{ "type", "SM_CHANGE", "TYPE", "SM_CHANGE, CLIENT_REREGISTER, LID_CHANGE, PKEY_CHANGE or GID_CHANGE" },
	{ "port", "1", "PORT", "the port" },
	{ "when", NULL, "@N|@N+|%P", "before which calls of post_send (default: before each)" },
	{ "seed", "1", "N", "which calls a percentage chooses" },
	{},
};

static int event_parse_type(struct event *f, const struct uvd_plugin_values *values)
{
	const char *text = uvd_plugin_value(values, "type");

	for (unsigned int i = 0; i < sizeof(event_types) / sizeof(event_types[0]); i++) {
		if (strcasecmp(text, event_types[i].name))
			continue;
		f->type = event_types[i].type;
		f->name = event_types[i].name;
		return 0;
	}
	return uvd_plugin_wrong(values, "type", "is no change of a port that can be told");
}

static int event_parse(struct event *f, const struct uvd_plugin_values *values)
{
	uint64_t seed = 1;

	f->port = 1;
	uvd_rule_all(&f->when, "when");
	return event_parse_type(f, values) ?:
	       uvd_plugin_number(values, "port", 1, f->dev->config.num_ports, &f->port) ?:
	       uvd_plugin_number(values, "seed", 0, UINT64_MAX, &seed) ?:
	       uvd_rule_option(&f->when, values, "when", seed);
}

static void event_tell_rules(void *data, uvd_filter_tell_fn tell, void *arg)
{
	uvd_rule_count_tell(&((const struct event *)data)->when.count, tell, arg);
}

static int event_init(struct uvd_ibdev *dev, const struct uvd_plugin_values *values, void **data)
{
	struct event *f = uvd_zalloc(sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->dev = dev;
	err = event_parse(f, values);
	if (err) {
		free(f);
		return err;
	}
	uvd_filter_has_rules(values, event_tell_rules);
	*data = f;
	return 0;
}

static void event_exit(struct uvd_ibdev *dev, void *data)
{
	free(data);
}

/* The clients have the event when the post goes on, so each run of a test meets it at the same place. */
static void event_tell(struct event *f)
{
	const uint64_t number = uvd_rule_applies(&f->when);

	if (!number)
		return;
	uvd_rule_count_done(&f->when.count);
	uvd_log_limited(f->dev->log, UVD_WARN, "%s: filter event: post %llu: %s of port %llu", f->dev->config.ibdev,
			(unsigned long long)number, f->name, (unsigned long long)f->port);
	f->dev->event_handler(f->dev, f->type, f->port);
}

static int event_post_send(void *data, const struct uvd_next *next, struct uvd_qp *qp, const struct uvd_send_wr *wr,
			   const struct uvd_send_wr **bad, struct uvd_work *work)
{
	event_tell(data);
	return uvd_next_post_send(next, qp, wr, bad, work);
}

/* The stock provider of a persona with mapped queues posts by a doorbell. */
static int event_ring_doorbell(void *data, const struct uvd_next *next, struct uvd_qp *qp, struct uvd_work *work)
{
	event_tell(data);
	return uvd_next_ring_doorbell(next, qp, work);
}

const struct uvd_filter uvd_filter_event = {
	.name = "event",
	.description = "clients are told of changes of a port that have not happened",
	.options = event_options,
	.init = event_init,
	.exit = event_exit,
	.post_send = event_post_send,
	.ring_doorbell = event_ring_doorbell,
};
