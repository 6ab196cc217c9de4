/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What loans leave: senders, or processes of the broker's, that wait for a file of the client's. Each stays charged to the
 * loan's account until it has been reaped.
 */
#ifndef UVD_GRANT_LEFT_H
#define UVD_GRANT_LEFT_H

#include <stdbool.h>
#include "grant/grant.h"
#include "util/util.h"

struct uvd_grant_left {
	struct list_head of_grants;
	struct uvd_account *account; /* a reference; charged UVD_RES_LOANS */
	struct uvd_loan_place place;
};

/*
 * A loan is over: frees `left` and uncharges the account if nothing of the loan stays, and returns true. Else the caller adds
 * it to a list.
 */
bool uvd_left_begin(struct uvd_grant_left *left, struct uvd_account *account, struct uvd_loan_place place,
		    struct uvd_privilege *p);
/* Takes those from the list that are gone. Returns true if there were any. */
bool uvd_left_look(struct list_head *list, struct uvd_privilege *p);
/* Empties the list, and waits for nothing. */
void uvd_left_drop(struct list_head *list, struct uvd_privilege *p);

#endif
