/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <uverbsd/backend.h>
#include <uverbsd/log.h>
#include "account/users.h"
#include "util/util.h"

/*
 * The users are compared each time SPENT_NS of processor time have been spent for all of them together. Each comparison
 * halves the time on record. A user at or below LEAST_SPENT_NS counts as idle.
 */
enum { SPENT_NS = 50 * 1000 * 1000, LEAST_SPENT_NS = SPENT_NS / 256 };

bool uvd_account_is_same(const struct uvd_account *a, const struct uvd_account *b)
{
	return a && b && a->num && b->num && a->users[0]->uid == b->users[0]->uid;
}

struct uvd_accounts *uvd_accounts_new(const struct uvd_account_limits *limits, struct uvd_log *log)
{
	struct uvd_accounts *accounts = uvd_zalloc(sizeof(*accounts));

	if (!accounts)
		return NULL;
	/* calloc() gets a block of this size from the kernel, which gives memory only to the pages that are used. */
	accounts->buckets = calloc(USER_BUCKETS, sizeof(accounts->buckets[0]));
	if (!accounts->buckets) {
		free(accounts);
		return NULL;
	}
	accounts->limits = *limits;
	for (int i = 0; i < UVD_NUM_RES; i++)
		accounts->max[i] = uvd_account_limit(limits, i);
	accounts->log = log;
	pthread_mutex_init(&accounts->lock, NULL);
	INIT_LIST_HEAD(&accounts->spenders);
	return accounts;
}

const struct uvd_account_limits *uvd_accounts_limits(const struct uvd_accounts *accounts)
{
	return &accounts->limits;
}

static struct user **user_bucket(const struct uvd_accounts *accounts, uid_t uid)
{
	return &accounts->buckets[uid % USER_BUCKETS];
}

/* Nothing holds anything for the user any more, so a charge that is left was forgotten. The tests look for this line. */
static void user_tell_left(const struct uvd_accounts *accounts, const struct user *user)
{
	for (int res = 0; accounts->log && res < UVD_NUM_RES; res++) {
		const uint64_t left = atomic_load_explicit(&user->used[res], memory_order_relaxed);

		if (left)
			uvd_logf(accounts->log, UVD_ERR,
				 "a fault of uverbsd: user %u is still charged for %" PRIu64 " %s, and has nothing",
				 user->uid, left, uvd_limit_rows[res].what ?: "objects of an unknown type");
	}
}

static unsigned int *user_group_num(struct uvd_accounts *accounts, uid_t uid)
{
	return &accounts->num[uid % USER_BUCKETS / GROUP_BUCKETS];
}

static void account_user_free(struct uvd_accounts *accounts, struct user *user)
{
	struct user **p = user_bucket(accounts, user->uid);

	user_tell_left(accounts, user);
	while (*p != user)
		p = &(*p)->next;
	*p = user->next;
	--*user_group_num(accounts, user->uid);
	if (user->spends)
		list_del_init(&user->of_spenders);
	uvd_quota_put(user->quota);
	free(user);
}

void uvd_accounts_free(struct uvd_accounts *accounts)
{
	if (!accounts)
		return;
	/* Only where there are users: most of the table has never been used, and has no memory (uvd_accounts_new()). */
	for (unsigned int i = 0; i < USER_BUCKETS; i++)
		while (accounts->num[i / GROUP_BUCKETS] && accounts->buckets[i])
			account_user_free(accounts, accounts->buckets[i]);
	pthread_mutex_destroy(&accounts->lock);
	free(accounts->buckets);
	free(accounts);
}

/* ---- users and accounts ------------------------------------------------------------------------------------------ */

/* Caller holds the table's lock. Takes a reference, or returns NULL. */
static struct user *user_get(struct uvd_accounts *accounts, uid_t uid, struct uvd_quota *quota)
{
	struct user **bucket = user_bucket(accounts, uid), *user;

	for (user = *bucket; user; user = user->next) {
		if (user->uid == uid && user->quota == quota) {
			user->ref++;
			return user;
		}
	}
	user = uvd_zalloc(sizeof(*user));
	if (!user)
		return NULL;
	user->uid = uid;
	user->quota = uvd_quota_ref(quota);
	user->ref = 1;
	user->next = *bucket;
	*bucket = user;
	++*user_group_num(accounts, uid);
	return user;
}

/* Caller holds the table's lock. */
static void user_list_spender(struct uvd_accounts *accounts, struct user *user)
{
	if (user->spends)
		return;
	user->spends = true;
	atomic_store_explicit(&user->listed, true, memory_order_relaxed);
	list_add(&user->of_spenders, &accounts->spenders);
}

/* Caller holds the table's lock. */
static void user_unlist_spender(struct user *user)
{
	user->spends = false;
	atomic_store_explicit(&user->listed, false, memory_order_relaxed);
	list_del_init(&user->of_spenders);
}

/*
 * Caller holds the table's lock. A user with time on record is kept until that has decayed: otherwise closing the last
 * file would clear it. The comparison frees such a user, so it has to be in the list of spenders.
 */
static void user_put(struct uvd_accounts *accounts, struct user *user)
{
	if (--user->ref)
		return;
	if (atomic_load_explicit(&user->spent, memory_order_relaxed) <= LEAST_SPENT_NS)
		account_user_free(accounts, user);
	else
		user_list_spender(accounts, user);
}

bool uvd_account_names(const struct uvd_account *account, uid_t uid)
{
	for (unsigned int i = 0; i < account->num; i++)
		if (account->users[i]->uid == uid)
			return true;
	return false;
}

/* Caller holds the table's lock. */
static void account_free(struct uvd_account *account)
{
	while (account->num)
		user_put(account->accounts, account->users[--account->num]);
	free(account);
}

struct uvd_account *uvd_account_get(struct uvd_accounts *accounts, const uid_t *uids, unsigned int num)
{
	struct uvd_account *account = uvd_zalloc(sizeof(*account) + num * sizeof(account->users[0]));

	if (!account)
		return NULL;
	account->accounts = accounts;
	atomic_init(&account->ref, 1);
	uvd_lock(&accounts->lock);
	for (unsigned int i = 0; account && i < num; i++) {
		if (uvd_account_names(account, uids[i]))
			continue;
		account->users[account->num] = user_get(accounts, uids[i], NULL);
		if (account->users[account->num]) {
			account->num++;
			if (uids[i])
				account->spender = account->users[account->num - 1];
		} else {
			account_free(account);
			account = NULL;
		}
	}
	uvd_unlock(&accounts->lock);
	return account;
}

struct uvd_account *uvd_account_on_device(struct uvd_account *account, struct uvd_quota *quota)
{
	struct uvd_account *mine = uvd_zalloc(sizeof(*mine) + (account->num + 1) * sizeof(mine->users[0]));

	if (!mine)
		return NULL;
	mine->accounts = account->accounts;
	mine->spender = account->spender;
	atomic_init(&mine->ref, 1);
	uvd_lock(&mine->accounts->lock);
	for (; mine->num < account->num; mine->num++) {
		mine->users[mine->num] = account->users[mine->num];
		mine->users[mine->num]->ref++;
	}
	mine->users[mine->num] = user_get(mine->accounts, uvd_account_person(account), quota);
	if (mine->users[mine->num]) {
		mine->num++;
	} else {
		account_free(mine);
		mine = NULL;
	}
	uvd_unlock(&account->accounts->lock);
	return mine;
}

struct uvd_account *uvd_account_ref(struct uvd_account *account)
{
	if (account)
		atomic_fetch_add_explicit(&account->ref, 1, memory_order_relaxed);
	return account;
}

void uvd_account_put(struct uvd_account *account)
{
	struct uvd_accounts *accounts;

	if (!account || atomic_fetch_sub_explicit(&account->ref, 1, memory_order_acq_rel) != 1)
		return;
	accounts = account->accounts;
	uvd_lock(&accounts->lock);
	account_free(account);
	uvd_unlock(&accounts->lock);
}

uid_t uvd_account_uid(const struct uvd_account *account)
{
	return account->users[0]->uid;
}

unsigned int uvd_account_uids(const struct uvd_account *account, uid_t *uids, unsigned int max)
{
	unsigned int num = 0;

	for (unsigned int i = 0; account && i < account->num && num < max; i++)
		if (!account->users[i]->quota)
			uids[num++] = account->users[i]->uid;
	return num;
}

uid_t uvd_account_person(const struct uvd_account *account)
{
	if (!account)
		return UVD_LOG_NO_USER;
	return account->spender ? account->spender->uid : 0;
}

/* ---- charges ----------------------------------------------------------------------------------------------------- */

static bool user_is_exempt(const struct uvd_accounts *accounts, const struct user *user)
{
	return !user->uid && !accounts->limits.limit_root;
}

/* Returns the limit. *quota: that is what the administrator has written for the device; else it is of --limit-NAME. */
static uint64_t user_limit_why(const struct uvd_accounts *accounts, const struct user *user, enum uvd_resource res,
			       const struct uvd_quota **quota)
{
	uint64_t max = UINT64_MAX, of_quota;

	*quota = NULL;
	if (!user_is_exempt(accounts, user))
		max = user->quota ? uvd_quota_share(user->quota, res) : accounts->max[res];
	of_quota = user->quota ? uvd_quota_limit(user->quota, user->uid, res) : UINT64_MAX;
	if (of_quota > max)
		return max;
	*quota = user->quota;
	return of_quota;
}

uint64_t uvd_user_limit(const struct uvd_accounts *accounts, const struct user *user, enum uvd_resource res)
{
	const struct uvd_quota *quota;

	return user_limit_why(accounts, user, res, &quota);
}

uint64_t uvd_account_most(const struct uvd_account *account, enum uvd_resource res)
{
	uint64_t most = UINT64_MAX, max;

	for (unsigned int i = 0; account && i < account->num; i++) {
		max = uvd_user_limit(account->accounts, account->users[i], res);
		most = max < most ? max : most;
	}
	return most;
}

void uvd_account_room(const struct uvd_account *account, enum uvd_resource res, uint64_t *used, uint64_t *max)
{
	uint64_t least = UINT64_MAX;

	*used = 0;
	*max = UINT64_MAX;
	for (unsigned int i = 0; account && i < account->num; i++) {
		const struct user *user = account->users[i];
		const uint64_t has = atomic_load_explicit(&user->used[res], memory_order_relaxed);
		const uint64_t may = uvd_user_limit(account->accounts, user, res), left = may > has ? may - has : 0;

		if (may == UINT64_MAX || (left >= least && *max != UINT64_MAX))
			continue;
		least = left;
		*used = has;
		*max = may;
	}
}

/* May the user hold n more than `used`? If not, *why says so. */
static bool user_may_hold(const struct uvd_accounts *accounts, const struct user *user, enum uvd_resource res,
			  uint64_t used, uint64_t n, struct uvd_refusal *why)
{
	const struct uvd_quota *quota;
	const uint64_t max = user_limit_why(accounts, user, res, &quota);

	if (n <= max && used <= max - n)
		return true;
	*why = (struct uvd_refusal){
		quota, user->quota && !quota ? uvd_quota_device(user->quota) : NULL, user->uid, res, used, n, max
	};
	return false;
}

/* Returns false and charges nothing if the user would exceed the limit; *why then says so. */
static bool user_charge(struct uvd_accounts *accounts, struct user *user, enum uvd_resource res, uint64_t n,
			struct uvd_refusal *why)
{
	uint64_t old = atomic_load_explicit(&user->used[res], memory_order_relaxed);

	do {
		if (!user_may_hold(accounts, user, res, old, n, why))
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&user->used[res], &old, old + n, memory_order_relaxed,
							memory_order_relaxed));
	return true;
}

/* Charges all users of the account and returns true; or charges none, and *why says which would exceed what. */
static bool account_charge(struct uvd_account *account, enum uvd_resource res, uint64_t n, struct uvd_refusal *why)
{
	for (unsigned int i = 0; i < account->num; i++) {
		if (user_charge(account->accounts, account->users[i], res, n, why))
			continue;
		for (unsigned int k = 0; k < i; k++)
			atomic_fetch_sub_explicit(&account->users[k]->used[res], n, memory_order_relaxed);
		return false;
	}
	return true;
}

bool uvd_account_try_why(struct uvd_account *account, enum uvd_resource res, uint64_t n, struct uvd_refusal *why)
{
	return !account || account_charge(account, res, n, why);
}

bool uvd_account_try(struct uvd_account *account, enum uvd_resource res, uint64_t n)
{
	struct uvd_refusal why;

	return uvd_account_try_why(account, res, n, &why);
}

void uvd_account_charge_anyway(struct uvd_account *account, enum uvd_resource res, uint64_t n)
{
	for (unsigned int i = 0; account && i < account->num; i++)
		atomic_fetch_add_explicit(&account->users[i]->used[res], n, memory_order_relaxed);
}

int uvd_refusal_errno(const struct uvd_refusal *why)
{
	return uvd_limit_rows[why->res].err ?: -EAGAIN;
}

void uvd_account_log_refusal(const struct uvd_account *account, const struct uvd_refusal *why)
{
	const struct uvd_limit_row *row = &uvd_limit_rows[why->res];

	if (account->accounts->log && !why->quota)
		uvd_log_of_user(account->accounts->log, uvd_account_person(account), UVD_WARN,
				"user %u has %" PRIu64 " %s%s%s, and %" PRIu64 " more would exceed the %s of %" PRIu64
				": raise it with --limit-%s, or `%s` of [limits]",
				why->uid, why->used, row->what, why->device ? " on " : "",
				why->device ? why->device : "", why->more, why->device ? "user's share" : "limit",
				why->max, row->name, row->name);
}

int uvd_account_charge_why(struct uvd_account *account, enum uvd_resource res, uint64_t n, struct uvd_refusal *why)
{
	return !account || account_charge(account, res, n, why) ? 0 : uvd_refusal_errno(why);
}

int uvd_account_check_why(const struct uvd_account *account, enum uvd_resource res, uint64_t used, uint64_t n,
			  struct uvd_refusal *why)
{
	for (unsigned int i = 0; account && i < account->num; i++)
		if (!user_may_hold(account->accounts, account->users[i], res, used, n, why))
			return uvd_refusal_errno(why);
	return 0;
}

int uvd_account_charge(struct uvd_account *account, enum uvd_resource res, uint64_t n)
{
	struct uvd_refusal why;
	const int err = uvd_account_charge_why(account, res, n, &why);

	if (err)
		uvd_account_log_refusal(account, &why);
	return err;
}

bool uvd_account_may_hold(const struct uvd_account *account, enum uvd_resource res, uint64_t n)
{
	for (unsigned int i = 0; account && i < account->num; i++)
		if (n > uvd_user_limit(account->accounts, account->users[i], res))
			return false;
	return true;
}

void uvd_account_uncharge(struct uvd_account *account, enum uvd_resource res, uint64_t n)
{
	if (!account)
		return;
	for (unsigned int i = 0; i < account->num; i++)
		atomic_fetch_sub_explicit(&account->users[i]->used[res], n, memory_order_relaxed);
}

/* ---- processor time ---------------------------------------------------------------------------------------------- */

/*
 * Decides for each user with time on record whether it is ahead, halves its time, and frees idle users that no account
 * names. A user whose time has decayed leaves the list until more is spent for it. What is spent for it at that moment
 * may be left out of one comparison.
 */
static void accounts_compare(struct uvd_accounts *accounts)
{
	uint64_t sum = 0, num = 0;
	struct user *user, *next;
	bool ahead;

	uvd_lock(&accounts->lock);
	list_for_each_entry(user, &accounts->spenders, of_spenders) {
		user->compared = atomic_load_explicit(&user->spent, memory_order_relaxed);
		sum += user->compared;
		num += user->compared > LEAST_SPENT_NS;
	}
	list_for_each_entry_safe(user, next, &accounts->spenders, of_spenders) {
		ahead = num && user->compared > sum / num;
		atomic_store_explicit(&user->ahead, ahead, memory_order_relaxed);
		atomic_fetch_sub_explicit(&user->spent, user->compared - user->compared / 2, memory_order_relaxed);
		if (user->compared / 2 > LEAST_SPENT_NS)
			continue;
		if (!user->ref)
			account_user_free(accounts, user);
		else if (!ahead)
			user_unlist_spender(user);
	}
	uvd_unlock(&accounts->lock);
}

/* The account has a reference to the user, so the user is not freed meanwhile. */
static void account_list_spender(struct uvd_account *account)
{
	uvd_lock(&account->accounts->lock);
	user_list_spender(account->accounts, account->spender);
	uvd_unlock(&account->accounts->lock);
}

void uvd_account_spend(struct uvd_account *account, uint64_t ns)
{
	uint64_t before;

	if (!account || !account->spender)
		return;
	atomic_fetch_add_explicit(&account->spender->spent, ns, memory_order_relaxed);
	if (!atomic_load_explicit(&account->spender->listed, memory_order_relaxed))
		account_list_spender(account);
	before = atomic_fetch_add_explicit(&account->accounts->spent, ns, memory_order_relaxed);
	/* Exactly one thread sees the sum reach SPENT_NS. */
	if (before < SPENT_NS && before + ns >= SPENT_NS) {
		accounts_compare(account->accounts);
		atomic_store_explicit(&account->accounts->spent, 0, memory_order_relaxed);
	}
}

bool uvd_account_is_ahead(const struct uvd_account *account)
{
	return account && account->spender && atomic_load_explicit(&account->spender->ahead, memory_order_relaxed);
}

int uvd_account_nice(const struct uvd_account *account, unsigned int more)
{
	/*
	 * Each nice step lowers the weight by a fifth (sched(7)). Allow a sixteenth more than the weight of two
	 * threads.
	 */
	enum { NICE_0_WEIGHT = 1024, MOST_WEIGHT = 2 * NICE_0_WEIGHT + NICE_0_WEIGHT / 8, LAST_NICE = 19 };
	uint64_t weight = NICE_0_WEIGHT, threads;
	int nice = 0;

	if (!uvd_account_is_ahead(account))
		return 0;
	threads = more + atomic_load_explicit(&account->spender->used[UVD_RES_CALLS], memory_order_relaxed) +
		  atomic_load_explicit(&account->spender->used[UVD_RES_LOANS], memory_order_relaxed);
	for (; nice < LAST_NICE && weight * threads > MOST_WEIGHT; nice++)
		weight = weight * 4 / 5;
	return nice;
}

int uvd_charge_bytes(struct uvd_account *account, uint64_t bytes)
{
	return uvd_account_charge(account, UVD_RES_BYTES, bytes);
}

void uvd_uncharge_bytes(struct uvd_account *account, uint64_t bytes)
{
	uvd_account_uncharge(account, UVD_RES_BYTES, bytes);
}

uint64_t uvd_account_used(const struct uvd_account *account, enum uvd_resource res)
{
	return atomic_load_explicit(&account->users[0]->used[res], memory_order_relaxed);
}
