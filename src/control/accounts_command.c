/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The control command `accounts`: reports what each user holds of the daemon. */
#include "account/account.h"
#include "control/control.h"

enum { MOST_TOLD = 8192 }; /* entries of one answer: a user with mapped ids can appear as many users */

static void account_tell(void *arg, uid_t uid, enum uvd_resource res, uint64_t used, uint64_t max)
{
	const struct uvd_limit_row *row = &uvd_limit_rows[res];

	/* An object type without a limit of its own has no name. It is counted in the row of all objects. */
	if (!row->name || json_array_size(arg) == MOST_TOLD)
		return;
	json_array_append_new(arg,
			      json_pack("{s:I, s:s, s:I, s:o}", "uid", (json_int_t)uid, "resource", row->name, "used",
					(json_int_t)used, "limit", max <= INT64_MAX ? json_integer(max) : json_null()));
}

static void quota_tell(void *arg, const char *device, uid_t uid, enum uvd_resource res, uint64_t used, uint64_t max)
{
	if (json_array_size(arg) < MOST_TOLD)
		json_array_append_new(arg, json_pack("{s:s, s:I, s:s, s:I, s:I}", "device", device, "uid",
						     (json_int_t)uid, "resource", uvd_limit_rows[res].name, "used",
						     (json_int_t)used, "limit", (json_int_t)max));
}

json_t *uvd_control_accounts(struct uvd_control *control, struct uvd_accounts *accounts)
{
	struct uvd_account *asker = uvd_control_account(control);
	json_t *list = json_array(), *quotas = json_array();

	uvd_account_uncharge(asker, UVD_RES_CONNECTIONS, 1);
	uvd_accounts_each(accounts, account_tell, list);
	uvd_account_charge_anyway(asker, UVD_RES_CONNECTIONS, 1);
	uvd_accounts_each_quota(accounts, quota_tell, quotas);
	return json_pack("{s:o, s:o}", "accounts", list, "quotas", quotas);
}
