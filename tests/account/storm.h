/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Threads that charge an account and give it back: how many charges are there at most at one time? */
#ifndef TESTS_ACCOUNT_STORM_H
#define TESTS_ACCOUNT_STORM_H

#include <sched.h>
#include <stdatomic.h>

#include "account/account.h"

struct storm {
	struct uvd_account *account;
	enum uvd_resource res;
};

static atomic_int storm_now, storm_most; /* of all threads */

/* A thread, with a struct storm. */
static inline void *storm_run(void *arg)
{
	const struct storm *s = arg;

	for (int i = 0; i < 20000; i++) {
		int n;

		if (!uvd_account_try(s->account, s->res, 1))
			continue;
		n = atomic_fetch_add(&storm_now, 1) + 1;
		if (n > atomic_load(&storm_most))
			atomic_store(&storm_most, n);
		/* While this thread holds its charge others try. */
		sched_yield();
		atomic_fetch_sub(&storm_now, 1);
		uvd_account_uncharge(s->account, s->res, 1);
	}
	return NULL;
}

#endif
