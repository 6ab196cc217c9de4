/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reports of what each user holds. */
#include "account/users.h"

/* A report copies this many users, from this many groups of buckets, with one locking. */
enum { WALK_USERS = 32, WALK_GROUPS = 16 };

/*
 * A walk through all users. It copies some users at a time, and reports them without the lock: others need the lock for
 * each open, and a client may have as many users as it has mapped ids.
 */
struct account_walk {
	unsigned int bucket, skip; /* where it goes on: so many users of the bucket were copied */
	unsigned int num;
	struct user_copy {
		uid_t uid;
		struct uvd_quota *quota; /* a reference, or NULL */
		uint64_t used[UVD_NUM_RES], max[UVD_NUM_RES];
	} copies[WALK_USERS];
};

static void walk_copy_user(struct uvd_accounts *accounts, struct account_walk *walk, const struct user *user)
{
	struct user_copy *copy = &walk->copies[walk->num++];

	copy->uid = user->uid;
	copy->quota = uvd_quota_ref(user->quota);
	for (int res = 0; res < UVD_NUM_RES; res++) {
		copy->used[res] = atomic_load_explicit(&user->used[res], memory_order_relaxed);
		copy->max[res] = uvd_user_limit(accounts, user, res);
	}
}

/* Drops the last copies, and makes others. Returns false after the last users. Leaves out users that come meanwhile. */
static bool accounts_walk(struct uvd_accounts *accounts, struct account_walk *walk)
{
	const unsigned int end = walk->bucket + WALK_GROUPS * GROUP_BUCKETS;
	const struct user *user;
	unsigned int i;

	while (walk->num)
		uvd_quota_put(walk->copies[--walk->num].quota);
	if (walk->bucket == USER_BUCKETS)
		return false;
	uvd_lock(&accounts->lock);
	while (walk->bucket < USER_BUCKETS && walk->bucket < end && walk->num < WALK_USERS) {
		if (!accounts->num[walk->bucket / GROUP_BUCKETS]) {
			walk->bucket = (walk->bucket / GROUP_BUCKETS + 1) * GROUP_BUCKETS;
			walk->skip = 0;
			continue;
		}
		user = accounts->buckets[walk->bucket];
		for (i = 0; user && i < walk->skip; i++)
			user = user->next;
		for (; user && walk->num < WALK_USERS; user = user->next, walk->skip++)
			walk_copy_user(accounts, walk, user);
		if (!user) {
			walk->bucket++;
			walk->skip = 0;
		}
	}
	uvd_unlock(&accounts->lock);
	return true;
}

void uvd_accounts_each(struct uvd_accounts *accounts,
		       void (*fn)(void *arg, uid_t uid, enum uvd_resource res, uint64_t used, uint64_t max), void *arg)
{
	struct account_walk walk = {};

	while (accounts_walk(accounts, &walk))
		for (const struct user_copy *user = walk.copies; user < walk.copies + walk.num; user++)
			for (int res = 0; res < UVD_NUM_RES && !user->quota; res++)
				if (user->used[res])
					fn(arg, user->uid, res, user->used[res], user->max[res]);
}

void uvd_accounts_each_quota(struct uvd_accounts *accounts,
			     void (*fn)(void *arg, const char *device, uid_t uid, enum uvd_resource res, uint64_t used,
					uint64_t max),
			     void *arg)
{
	struct account_walk walk = {};

	while (accounts_walk(accounts, &walk))
		for (const struct user_copy *user = walk.copies; user < walk.copies + walk.num; user++)
			for (int res = 0; res < UVD_NUM_RES && user->quota; res++)
				if (user->used[res] && user->max[res] != UINT64_MAX)
					fn(arg, uvd_quota_device(user->quota), user->uid, res, user->used[res],
					   user->max[res]);
}
