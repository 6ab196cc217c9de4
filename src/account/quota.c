/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Quotas of devices: their texts, and what each user may hold. */
#include "account/account.h"
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "util/util.h"

enum { QUOTA_WORD = 64 /* bytes of a word, with the final 0 */ };

/* One user may hold this much. With `everybody`, each user may for whom no text has an N of its own. */
struct quota_share {
	struct quota_share *next;
	bool everybody;
	uid_t uid;
	bool given[UVD_NUM_RES];
	uint64_t max[UVD_NUM_RES]; /* where `given` */
};

struct uvd_quota {
	atomic_uint ref;
	char device[IBV_SYSFS_NAME_MAX];
	struct quota_share *shares;
	uint64_t device_shares[UVD_NUM_RES]; /* of each user, whatever the texts say; UINT64_MAX: any amount */
};

struct uvd_quota *uvd_quota_new(const char *device)
{
	struct uvd_quota *quota = uvd_zalloc(sizeof(*quota));

	if (!quota)
		return NULL;
	atomic_init(&quota->ref, 1);
	snprintf(quota->device, sizeof(quota->device), "%s", device);
	memset(quota->device_shares, 0xff, sizeof(quota->device_shares));
	return quota;
}

struct uvd_quota *uvd_quota_ref(struct uvd_quota *quota)
{
	if (quota)
		atomic_fetch_add_explicit(&quota->ref, 1, memory_order_relaxed);
	return quota;
}

void uvd_quota_put(struct uvd_quota *quota)
{
	struct quota_share *share;

	if (!quota || atomic_fetch_sub_explicit(&quota->ref, 1, memory_order_acq_rel) != 1)
		return;
	while ((share = quota->shares)) {
		quota->shares = share->next;
		free(share);
	}
	free(quota);
}

const char *uvd_quota_device(const struct uvd_quota *quota)
{
	return quota->device;
}

void uvd_quota_set_shares(struct uvd_quota *quota, const struct uvd_accounts *accounts,
			  const struct ibv_device_attr_ex *attr, const struct uvd_limits *device)
{
	for (int i = 0; i < UVD_NUM_RES; i++)
		quota->device_shares[i] = uvd_account_device_share(uvd_accounts_limits(accounts), i, attr, device);
}

uint64_t uvd_quota_share(const struct uvd_quota *quota, enum uvd_resource res)
{
	return quota->device_shares[res];
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

/* A text while it is read. */
struct quota_text {
	const char *next;
	bool everybody;
	uid_t uid; /* unless everybody */
	char wrong[192];
};

static bool quota_text_wrong(struct quota_text *t, const char *before, const char *word, const char *after)
{
	snprintf(t->wrong, sizeof(t->wrong), "%s `%.40s`%s", before, word, after);
	return false;
}

/* Copies the next word, up to a character of `ends` or the end of the text, which it skips. */
static bool quota_text_word(struct quota_text *t, const char *ends, char word[QUOTA_WORD])
{
	const size_t len = strcspn(t->next += strspn(t->next, " \t"), ends);

	if (!len || len >= QUOTA_WORD)
		return quota_text_wrong(t, len ? "has a word that is too long:" : "lacks a word before", t->next, "");
	memcpy(word, t->next, len);
	word[len] = 0;
	t->next += len + (t->next[len] != 0);
	return true;
}

/* Reads user:NAME:, if the text begins with it. */
static bool quota_text_user(struct quota_text *t)
{
	char word[QUOTA_WORD];
	const char *wrong;

	t->everybody = strncmp(t->next, "user:", 5);
	if (!strncmp(t->next, "ucap:", 5))
		return quota_text_wrong(t, "names", "ucap", ", but a quota is a user's, or everybody's");
	if (t->everybody)
		return true;
	t->next += 5;
	if (!quota_text_word(t, ":", word))
		return false;
	wrong = uvd_user_parse(word, &t->uid);
	if (wrong)
		snprintf(t->wrong, sizeof(t->wrong), "names `%.40s`, which %s", word, wrong);
	return !wrong;
}

/* Has this resource a quota? Others are charged for all devices together, or to the caller. */
static bool quota_counts(enum uvd_resource res)
{
	return res >= UVD_RES_REGISTERED;
}

static bool quota_text_resource(struct quota_text *t, enum uvd_resource *res)
{
	char word[QUOTA_WORD];

	if (!strchr(t->next, ':'))
		return quota_text_wrong(t, "has", t->next, " where RESOURCE:N belongs");
	if (!quota_text_word(t, ":", word))
		return false;
	for (int i = 0; i < UVD_NUM_RES; i++) {
		*res = i;
		if (!uvd_limit_rows[i].name || strcmp(uvd_limit_rows[i].name, word) != 0)
			continue;
		return quota_counts(i) ||
		       quota_text_wrong(t, "contains", word,
					", of which a device has no quota: limit it for all devices, in [limits]");
	}
	return quota_text_wrong(t, "contains", word, ", which is no resource such as qps, objects or registered");
}

static bool quota_text_number(struct quota_text *t, uint64_t *n)
{
	char word[QUOTA_WORD], *end;

	if (!quota_text_word(t, ", \t", word))
		return false;
	*n = UINT64_MAX;
	if (!strcmp(word, "unlimited"))
		return true;
	errno = 0;
	*n = strtoull(word, &end, 0);
	return (!*end && !errno && *word >= '0' && *word <= '9' && *n <= INT64_MAX) ||
	       quota_text_wrong(t, "contains", word, ", which is neither a number nor `unlimited`");
}

/* Finds what the text's user may hold, or makes it. NULL: no memory. */
static struct quota_share *quota_share_get(struct uvd_quota *quota, const struct quota_text *t)
{
	struct quota_share *share;

	for (share = quota->shares; share; share = share->next)
		if (share->everybody == t->everybody && (t->everybody || share->uid == t->uid))
			return share;
	share = uvd_zalloc(sizeof(*share));
	if (!share)
		return NULL;
	share->everybody = t->everybody;
	share->uid = t->uid;
	share->next = quota->shares;
	quota->shares = share;
	return share;
}

static bool quota_text_read(struct quota_text *t, struct uvd_quota *quota)
{
	struct quota_share *share;
	enum uvd_resource res;
	uint64_t n;

	if (!quota_text_user(t))
		return false;
	share = quota_share_get(quota, t);
	if (!share)
		return quota_text_wrong(t, "does not fit into memory:", t->next, "");
	do {
		if (!quota_text_resource(t, &res) || !quota_text_number(t, &n))
			return false;
		share->given[res] = true;
		share->max[res] = n;
	} while (*t->next);
	return true;
}

const char *uvd_quota_add(struct uvd_quota *quota, const char *text)
{
	static __thread struct quota_text t;

	t = (struct quota_text){ .next = text };
	return quota_text_read(&t, quota) ? NULL : t.wrong;
}

const char *uvd_quota_check(const char *text)
{
	struct uvd_quota *quota = uvd_quota_new("");
	const char *wrong = quota ? uvd_quota_add(quota, text) : "does not fit into memory";

	uvd_quota_put(quota);
	return wrong;
}

char *uvd_quota_without_names(const char *text)
{
	struct quota_text t = { .next = text };
	char *copy;

	if (!quota_text_user(&t) || t.everybody)
		return strdup(text);
	return asprintf(&copy, "user:%u:%s", t.uid, t.next) < 0 ? NULL : copy;
}

/* ---- look-ups ---------------------------------------------------------------------------------------------------- */

/* Returns the share that decides for the user; NULL: the resource is not restricted. */
static const struct quota_share *quota_find(const struct uvd_quota *quota, uid_t uid, enum uvd_resource res)
{
	const struct quota_share *found = NULL;

	for (const struct quota_share *share = quota->shares; share; share = share->next) {
		if (!share->given[res])
			continue;
		if (!share->everybody && share->uid == uid)
			return share;
		if (share->everybody)
			found = share;
	}
	return found;
}

uint64_t uvd_quota_limit(const struct uvd_quota *quota, uid_t uid, enum uvd_resource res)
{
	const struct quota_share *share = quota_find(quota, uid, res);

	return share ? share->max[res] : UINT64_MAX;
}

void uvd_quota_text(const struct uvd_quota *quota, uid_t uid, enum uvd_resource res, char *text, size_t size)
{
	const struct quota_share *share = quota_find(quota, uid, res);
	char user[32] = "";

	if (share && !share->everybody)
		snprintf(user, sizeof(user), "user:%u:", share->uid);
	snprintf(text, size, "%s%s:%" PRIu64, user, uvd_limit_rows[res].name, share ? share->max[res] : UINT64_MAX);
}
