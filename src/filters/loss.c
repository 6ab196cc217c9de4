/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The filter `loss`: the network loses messages. UC, UD and raw messages do not arrive, and their senders are not told. An
 * RC message costs its sender a time-out and one of retry_cnt, and is sent again, so the filter is asked again.
 */
#include <errno.h>
#include <stdlib.h>
#include <uverbsd/log.h>
#include <uverbsd/plugin.h>

#include "filters/filters.h"
#include "filters/rule.h"
#include "util/util.h"

/* The rules count messages by these kinds. */
enum loss_kind { LOSS_ANY, LOSS_RC, LOSS_UC, LOSS_UD, LOSS_RAW, LOSS_KINDS };
static const char *const loss_names[] = { "when", "rc", "uc", "ud", "raw" };

struct loss {
	struct uvd_ibdev *dev;
	struct uvd_rule rules[LOSS_KINDS];
};

static const struct uvd_plugin_option loss_options[] = {
	{ "when", NULL, "@N|@N+|%P", "which messages are lost (default without any rule: all)" },
	{ "rc", NULL, "@N|@N+|%P", "which messages of RC and XRC QPs, retries included" },
	{ "uc", NULL, "@N|@N+|%P", "which messages of UC QPs" },
	{ "ud", NULL, "@N|@N+|%P", "which messages of UD QPs" },
	{ "raw", NULL, "@N|@N+|%P", "which frames of RAW_PACKET QPs" },
	{ "seed", "1", "N", "which messages a percentage chooses" },
	{},
};

static int loss_parse(struct loss *f, const struct uvd_plugin_values *values)
{
	uint64_t seed = 1;
	bool given = false;
	int err = uvd_plugin_number(values, "seed", 0, UINT64_MAX, &seed);

	for (unsigned int i = 0; i < LOSS_KINDS && !err; i++) {
		err = uvd_rule_option(&f->rules[i], values, loss_names[i], seed + i);
		given |= f->rules[i].set;
	}
	if (!err && !given)
		uvd_rule_all(&f->rules[LOSS_ANY], loss_names[LOSS_ANY]);
	return err;
}

static void loss_tell_rules(void *data, uvd_filter_tell_fn tell, void *arg)
{
	const struct loss *f = data;

	for (unsigned int i = 0; i < LOSS_KINDS; i++)
		uvd_rule_count_tell(&f->rules[i].count, tell, arg);
}

static int loss_init(struct uvd_ibdev *dev, const struct uvd_plugin_values *values, void **data)
{
	struct loss *f = uvd_zalloc(sizeof(*f));
	int err = !f ? -ENOMEM : uvd_filter_needs_network(dev, "loss") ?: loss_parse(f, values);

	if (err) {
		free(f);
		return err;
	}
	f->dev = dev;
	uvd_filter_has_rules(values, loss_tell_rules);
	*data = f;
	return 0;
}

static void loss_exit(struct uvd_ibdev *dev, void *data)
{
	free(data);
}

static enum loss_kind loss_kind(const struct uvd_qp *qp)
{
	switch (qp->qp_type) {
	case IBV_QPT_UC:
		return LOSS_UC;
	case IBV_QPT_UD:
		return LOSS_UD;
	case IBV_QPT_RAW_PACKET:
		return LOSS_RAW;
	default:
		return LOSS_RC;
	}
}

static void loss_carry_message(void *data, const struct uvd_next *next, struct uvd_message *message)
{
	struct loss *f = data;
	const enum loss_kind kind = loss_kind(message->qp);
	const uint64_t of_any = uvd_rule_applies(&f->rules[LOSS_ANY]);
	const uint64_t of_kind = uvd_rule_applies(&f->rules[kind]);

	if (!of_any && !of_kind) {
		uvd_next_carry_message(next, message);
		return;
	}
	message->fate = UVD_FATE_LOSE;
	uvd_rule_count_done(&f->rules[of_kind ? kind : LOSS_ANY].count);
	uvd_log_limited(f->dev->log, UVD_WARN, "%s: filter loss: QP 0x%x, %s message %llu of %u bytes: lost",
			f->dev->config.ibdev, message->qp->qp_num, of_kind ? loss_names[kind] : "any",
			(unsigned long long)(of_kind ?: of_any), message->length);
}

const struct uvd_filter uvd_filter_loss = {
	.name = "loss",
	.description = "the network loses messages",
	.options = loss_options,
	.init = loss_init,
	.exit = loss_exit,
	.carry_message = loss_carry_message,
};
