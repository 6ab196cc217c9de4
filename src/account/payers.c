/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The users that hold one thing together, each of whom pays for a whole one. */
#include "account/account.h"
#include <errno.h>
#include <stdlib.h>
#include <uverbsd/backend.h>
#include "util/util.h"

struct uvd_payer {
	struct uvd_payer *next;
	struct uvd_account *account; /* a reference: it was charged */
	unsigned int holds;
};

/* Returns the link that points to the payer of the account's person, or the NULL link at the end. */
static struct uvd_payer **payer_find(struct uvd_payers *payers, const struct uvd_account *account)
{
	struct uvd_payer **p = &payers->first;

	while (*p && uvd_account_person((*p)->account) != uvd_account_person(account))
		p = &(*p)->next;
	return p;
}

int uvd_payers_add(struct uvd_payers *payers, struct uvd_account *account, enum uvd_resource res,
		   struct uvd_refusal *why)
{
	struct uvd_payer **p, *payer;
	int ret;

	if (!account)
		return 0;
	p = payer_find(payers, account);
	if (*p) {
		(*p)->holds++;
		return 0;
	}
	payer = uvd_zalloc(sizeof(*payer));
	if (!payer)
		return -ENOMEM;
	ret = uvd_account_charge_why(account, res, 1, why);
	if (ret) {
		free(payer);
		return ret;
	}
	payer->account = uvd_account_ref(account);
	payer->holds = 1;
	*p = payer;
	return 0;
}

void uvd_payers_drop(struct uvd_payers *payers, const struct uvd_account *account, enum uvd_resource res)
{
	struct uvd_payer **p, *payer;

	if (!account)
		return;
	p = payer_find(payers, account);
	payer = *p;
	if (--payer->holds)
		return;
	*p = payer->next;
	uvd_account_uncharge(payer->account, res, 1);
	uvd_account_put(payer->account);
	free(payer);
}
