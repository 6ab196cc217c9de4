/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "grant/left.h"
#include <stdlib.h>
#include "account/account.h"

enum { PLACE_MS = 100 /* the broker's process for a loan usually ends within that */ };

static void left_free(struct uvd_grant_left *left)
{
	uvd_account_uncharge(left->account, UVD_RES_LOANS, 1);
	uvd_account_put(left->account);
	free(left);
}

bool uvd_left_begin(struct uvd_grant_left *left, struct uvd_account *account, struct uvd_loan_place place,
		    struct uvd_privilege *p)
{
	bool gone;

	*left = (struct uvd_grant_left){ .account = uvd_account_ref(account), .place = place };
	gone = p->ops->place_put(p, &left->place);
	if (!gone) {
		p->ops->place_wait(p, &left->place, PLACE_MS);
		gone = p->ops->place_put(p, &left->place);
	}
	if (gone)
		left_free(left);
	return gone;
}

bool uvd_left_look(struct list_head *list, struct uvd_privilege *p)
{
	struct uvd_grant_left *left, *next;
	bool any = false;

	list_for_each_entry_safe(left, next, list, of_grants) {
		if (!p->ops->place_put(p, &left->place))
			continue;
		list_del_init(&left->of_grants);
		left_free(left);
		any = true;
	}
	return any;
}

void uvd_left_drop(struct list_head *list, struct uvd_privilege *p)
{
	struct uvd_grant_left *left;

	while (!list_empty(list)) {
		left = list_first_entry(list, struct uvd_grant_left, of_grants);
		list_del_init(&left->of_grants);
		p->ops->place_drop(p, &left->place);
		left_free(left);
	}
}
