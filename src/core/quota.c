/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <uverbsd/log.h>

#include "account/account.h"
#include "backends/backends.h"
#include "client/client.h"
#include "core/internal.h"
#include "explain/explain.h"
#include "util/util.h"

bool uvd_device_has_rules(const struct uvd_device *dev)
{
	return uvd_device_text_after(dev, UVD_TEXT_ALLOW, NULL) || uvd_device_text_after(dev, UVD_TEXT_QUOTA, NULL);
}

static const char *device_quota_add(struct uvd_device *dev, const char *text)
{
	if (!dev->quota)
		dev->quota = uvd_quota_new(dev->config.ibdev);
	return dev->quota ? uvd_quota_add(dev->quota, text) : "does not fit into memory";
}

int uvd_device_quota_begin(struct uvd_device *dev)
{
	const struct uvd_device_text *t = NULL;
	const char *wrong;

	while ((t = uvd_device_text_after(dev, UVD_TEXT_QUOTA, t))) {
		wrong = device_quota_add(dev, t->text);
		if (!wrong)
			continue;
		uvd_logf(dev->engine->log, UVD_ERR, "%s: quota: `%s` %s", dev->config.ibdev, t->text, wrong);
		return -EINVAL;
	}
	return 0;
}

uint64_t uvd_device_refused(const struct uvd_device *dev)
{
	return atomic_load_explicit(&dev->over_quota, memory_order_relaxed) + uvd_device_disallowed(dev);
}

int uvd_device_shares_begin(struct uvd_device *dev)
{
	struct uvd_accounts *accounts = dev->engine->accounts;
	struct ibv_device_attr_ex attr = {};

	if (!accounts || (uvd_accounts_limits(accounts)->one_user && !dev->quota))
		return 0;
	if (!dev->quota)
		dev->quota = uvd_quota_new(dev->config.ibdev);
	if (!dev->quota)
		return -ENOMEM;
	if (!dev->ops.query_device || dev->ops.query_device(&dev->ib, &attr, NULL))
		uvd_config_query_device(&dev->ib, &attr, NULL);
	uvd_quota_set_shares(dev->quota, accounts, &attr, &dev->config.limits);
	return 0;
}

int uvd_device_charge_file(const struct uvd_device *dev, struct uvd_account *account, struct uvd_account **payer)
{
	int err;

	if (account && dev->quota)
		*payer = uvd_account_on_device(account, dev->quota);
	else
		*payer = uvd_account_ref(account);
	if (account && !*payer)
		return -ENOMEM;
	err = uvd_account_charge(*payer, UVD_RES_FILES, 1);
	if (err) {
		uvd_account_put(*payer);
		*payer = NULL;
	}
	return err;
}

void uvd_file_over_quota(struct uvd_file *file, const struct uvd_asker *asker, const struct uvd_refusal *why)
{
	const struct uvd_limit_row *row = &uvd_limit_rows[why->res];
	char text[160];

	/* The charge of bytes has a line of its own where it was refused. */
	if (!why->more)
		return;
	if (why->quota)
		atomic_fetch_add_explicit(&file->dev->over_quota, 1, memory_order_relaxed);
	if (!asker->caller) {
		uvd_account_log_refusal(file->account, why);
		return;
	}
	if (why->quota) {
		uvd_quota_text(why->quota, why->uid, why->res, text, sizeof(text));
		uvd_file_explain_rule(file, asker->caller, asker->verb, uvd_refusal_errno(why),
				      &uvd_why(QUOTA, { why->uid }, { .word = text }, { why->used },
					       { .word = row->what }, { why->more }));
		return;
	}
	snprintf(text, sizeof(text), "%s%s%s", row->what, why->device ? " on " : "", why->device ?: "");
	uvd_file_explain_rule(file, asker->caller, asker->verb, uvd_refusal_errno(why),
			      &uvd_why(LIMIT, { why->uid }, { why->used }, { .word = text }, { why->more },
				       { why->max }, { .word = row->name }));
}

int uvd_file_charge(struct uvd_file *file, const struct uvd_asker *asker, enum uvd_resource res, uint64_t n)
{
	struct uvd_refusal why = {};
	int err = uvd_account_charge_why(file->account, res, n, &why);

	if (err && file->dev->engine->settle) {
		file->dev->engine->settle(file->dev->engine);
		err = uvd_account_charge_why(file->account, res, n, &why);
	}
	if (err)
		uvd_file_over_quota(file, asker, &why);
	return err;
}

int uvd_uobject_charge_registered(struct uvd_uobject *uobj, const struct uvd_asker *asker, uint64_t bytes)
{
	int err = uvd_file_charge(uobj->file, asker, UVD_RES_REGISTERED, bytes);

	if (!err)
		uobj->registered += bytes;
	return err;
}

int uvd_uobject_hold(struct uvd_uobject *uobj, const struct uvd_asker *asker, enum uvd_resource res, uint64_t n)
{
	int err = uvd_file_charge(uobj->file, asker, res, n);

	if (err)
		return err;
	uobj->held_res = res;
	uobj->held += n;
	return 0;
}

void uvd_uobject_release_held(struct uvd_uobject *uobj, uint64_t n)
{
	if (!n)
		return;
	uobj->held -= n;
	uvd_account_uncharge(uobj->file->account, uobj->held_res, n);
}
