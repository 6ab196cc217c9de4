/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The table of users, for the files of this room. */
#ifndef UVD_ACCOUNT_USERS_H
#define UVD_ACCOUNT_USERS_H

#include <pthread.h>
#include <stdatomic.h>

#include "account/account.h"
#include "util/util.h"

/*
 * A user is in the bucket of its id. So a range of mapped ids, which has 65,536 of them by default (subuid(5)), adds one
 * user to each bucket: a client that uses all of its range makes no look-up of another user's longer.
 */
enum { USER_BUCKETS = 65536 };

/* A walk through all users leaves out groups of buckets that have none. */
enum { GROUP_BUCKETS = 256, USER_GROUPS = USER_BUCKETS / GROUP_BUCKETS };

struct user {
	struct user *next; /* in its bucket */
	struct list_head of_spenders; /* if `spends` */
	bool spends; /* it is in the list of spenders; the table's lock protects changes */
	atomic_bool listed; /* a copy of `spends` for threads without the lock */
	uid_t uid;
	struct uvd_quota *quota; /* a reference: `used` is what the user holds of this device; NULL: of the daemon */
	unsigned int ref; /* accounts that name it; under the table's lock */
	_Atomic uint64_t used[UVD_NUM_RES];
	_Atomic uint64_t spent; /* ns */
	uint64_t compared; /* copy of `spent` for one comparison: threads add to it meanwhile; table's lock */
	atomic_bool ahead; /* more was spent for it than the mean */
};

struct uvd_accounts {
	struct uvd_account_limits limits;
	uint64_t max[UVD_NUM_RES]; /* what they say of all devices together */
	struct uvd_log *log;
	pthread_mutex_t lock; /* protects the users */
	struct user **buckets; /* USER_BUCKETS */
	unsigned int num[USER_GROUPS]; /* users in each group of them */
	struct list_head spenders; /* users with time on record: only they are compared */
	_Atomic uint64_t spent; /* ns since the last comparison */
};

struct uvd_account {
	struct uvd_accounts *accounts;
	atomic_uint ref;
	unsigned int num;
	struct user *spender; /* the last of users[] that is not root; NULL: all are root */
	struct user *users[]; /* with a quota the last is the person's share of its device */
};

/* Returns how much the user may hold, of the daemon or of the device of its quota. UINT64_MAX: any amount. */
uint64_t uvd_user_limit(const struct uvd_accounts *accounts, const struct user *user, enum uvd_resource res);

#endif
