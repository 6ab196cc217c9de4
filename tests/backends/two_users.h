/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A bed whose two ends can be of two users. */
#ifndef TESTS_BACKENDS_TWO_USERS_H
#define TESTS_BACKENDS_TWO_USERS_H

#include "account/account.h"
#include "tests/backends/bed.h"

static struct bed bed;
static struct end *const a = &bed.end[0], *const b = &bed.end[1];
static struct uvd_accounts *accounts;
static struct uvd_account *users[2];

/* From now on, until teardown(), the ends are of these users. What they hold already is charged to nobody. */
static void ends_belong_to(uid_t of_a, uid_t of_b)
{
	const uid_t uids[] = { of_a, of_b };

	for (int i = 0; i < 2; i++) {
		users[i] = uvd_account_get(accounts, &uids[i], 1);
		bed.side[i].context->account = users[i];
		if (bed.end[i].qp)
			bed.end[i].qp->account = users[i];
	}
}

static void open_bed(void)
{
	struct uvd_account_limits limits;

	uvd_account_limits_init(&limits);
	accounts = uvd_accounts_new(&limits, NULL);
	ck_assert_ptr_nonnull(accounts);
	bed_open(&bed, &uvd_backend_soft, IBV_LINK_LAYER_INFINIBAND);
}

static void teardown(void)
{
	for (int i = 0; i < 2; i++) {
		bed.side[i].context->account = NULL;
		if (bed.end[i].qp)
			bed.end[i].qp->account = NULL;
	}
	bed_close(&bed);
	for (int i = 0; i < 2; i++)
		if (users[i])
			uvd_account_put(users[i]);
	users[0] = users[1] = NULL;
	uvd_accounts_free(accounts);
}

#endif
