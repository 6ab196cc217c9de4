/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The filter `reorder`: the network holds a message of a UC, UD or RAW_PACKET QP back until the QP has sent the next one, or
 * for a while. RC messages pass: an RC responder puts packets in order, so its program would see the same.
 */
#include <errno.h>
#include <stdlib.h>
#include <uverbsd/log.h>
#include <uverbsd/plugin.h>

#include "filters/filters.h"
#include "filters/rule.h"
#include "util/util.h"

struct reorder {
	struct uvd_ibdev *dev;
	struct uvd_rule when;
	uint64_t hold; /* ns */
};

static const struct uvd_plugin_option reorder_options[] = {
	{ "when", NULL, "@N|@N+|%P",
	  "which messages of unreliable QPs, or packets on the wire, are held back (default: all that can be)" },
	{ "hold", "10ms", "TIME", "for how long at most, if the QP sends no other message" },
	{ "seed", "1", "N", "which messages a percentage chooses" },
	{},
};

static int reorder_parse(struct reorder *f, const struct uvd_plugin_values *values)
{
	uint64_t seed = 1;
	int err = uvd_plugin_number(values, "seed", 0, UINT64_MAX, &seed);

	if (err)
		return err;
	uvd_rule_all(&f->when, "when");
	if (!uvd_rule_time(uvd_plugin_value(values, "hold"), &f->hold))
		return uvd_plugin_wrong(values, "hold", "is not a time such as 5us, 10ms or 2s, of 60s at most");
	return uvd_rule_option(&f->when, values, "when", seed);
}

static void reorder_tell_rules(void *data, uvd_filter_tell_fn tell, void *arg)
{
	uvd_rule_count_tell(&((const struct reorder *)data)->when.count, tell, arg);
}

static int reorder_init(struct uvd_ibdev *dev, const struct uvd_plugin_values *values, void **data)
{
	struct reorder *f = uvd_zalloc(sizeof(*f));
	int err = !f ? -ENOMEM : uvd_filter_needs_network(dev, "reorder") ?: reorder_parse(f, values);

	if (err) {
		free(f);
		return err;
	}
	f->dev = dev;
	uvd_filter_has_rules(values, reorder_tell_rules);
	*data = f;
	return 0;
}

static void reorder_exit(struct uvd_ibdev *dev, void *data)
{
	free(data);
}

static bool reorder_is_reliable(const struct uvd_qp *qp)
{
	return qp->qp_type != IBV_QPT_UC && qp->qp_type != IBV_QPT_UD && qp->qp_type != IBV_QPT_RAW_PACKET;
}

static void reorder_carry_message(void *data, const struct uvd_next *next, struct uvd_message *message)
{
	struct reorder *f = data;
	uint64_t number;

	uvd_next_carry_message(next, message);
	if (reorder_is_reliable(message->qp) && !message->is_packet)
		return;
	/* Each message counts, also one that cannot be held: else the numbers would depend on when held ones arrive. */
	number = uvd_rule_applies(&f->when);
	if (!number || !message->may_hold || message->fate != UVD_FATE_DELIVER)
		return;
	message->fate = UVD_FATE_HOLD;
	message->hold_ns = f->hold;
	uvd_rule_count_done(&f->when.count);
	uvd_log_limited(f->dev->log, UVD_WARN, "%s: filter reorder: QP 0x%x, message %llu of %u bytes: held back",
			f->dev->config.ibdev, message->qp->qp_num, (unsigned long long)number, message->length);
}

const struct uvd_filter uvd_filter_reorder = {
	.name = "reorder",
	.description = "the network delivers messages in another order",
	.options = reorder_options,
	.init = reorder_init,
	.exit = reorder_exit,
	.carry_message = reorder_carry_message,
};
