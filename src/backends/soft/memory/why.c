/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Explains why a key did not serve a request: looks at the key again, and at those that have ended. */
#include <stdlib.h>
#include "backends/soft/memory/mr.h"
#include "explain/explain.h"

/* ---- keys that have ended ---------------------------------------------------------------------------------------- */

enum { ENDED_KEYS = 64, ENDED_USERS = 64 };

struct ended_key {
	uint32_t key;
	bool is_window;
	uint64_t size; /* bytes of the region */
	uint64_t ns; /* when it ended; CLOCK_MONOTONIC */
};

/* The latest keys of a user's that have ended. */
struct soft_ended {
	uid_t user;
	unsigned int num; /* ever: the next one is put at num % ENDED_KEYS */
	struct ended_key keys[ENDED_KEYS];
};

/* Returns the place of the user's list, or the one that it gets: of several, that whose last key ended first. */
static struct soft_ended **ended_place(struct soft_mr_table *table, uid_t user)
{
	struct soft_ended **oldest = NULL;
	uint64_t least = UINT64_MAX;

	for (unsigned int i = 0; i < ENDED_USERS; i++) {
		struct soft_ended *ended = table->ended[i];
		uint64_t ns;

		if (!ended)
			return &table->ended[i];
		if (ended->user == user)
			return &table->ended[i];
		ns = ended->keys[(ended->num - 1) % ENDED_KEYS].ns;
		if (ns < least) {
			least = ns;
			oldest = &table->ended[i];
		}
	}
	return oldest;
}

void soft_key_ended(struct soft_mr_table *table, const struct uvd_account *account, uint32_t key, bool is_window,
		    uint64_t size)
{
	const uid_t user = uvd_account_person(account);
	struct soft_ended **place, *ended;

	if (!table->ended)
		table->ended = calloc(ENDED_USERS, sizeof(struct soft_ended *));
	if (!table->ended)
		return;
	place = ended_place(table, user);
	if (!*place)
		*place = calloc(1, sizeof(**place));
	ended = *place;
	if (!ended)
		return;
	if (ended->user != user || !ended->num) {
		ended->user = user;
		ended->num = 0;
	}
	ended->keys[ended->num++ % ENDED_KEYS] = (struct ended_key){ key, is_window, size, uvd_now_ns() };
}

void soft_ended_free(struct soft_mr_table *table)
{
	for (unsigned int i = 0; table->ended && i < ENDED_USERS; i++)
		free(table->ended[i]);
	free(table->ended);
}

/* Returns the user's key that has ended last under this number, or NULL. Caller holds the table's lock. */
static const struct ended_key *ended_find(const struct soft_mr_table *table, uid_t user, uint32_t key)
{
	const struct soft_ended *ended = NULL;

	for (unsigned int i = 0; table->ended && i < ENDED_USERS && table->ended[i]; i++)
		if (table->ended[i]->user == user)
			ended = table->ended[i];
	for (unsigned int n = 0; ended && n < ENDED_KEYS && n < ended->num; n++) {
		const struct ended_key *k = &ended->keys[(ended->num - 1 - n) % ENDED_KEYS];

		if (k->key == key)
			return k;
	}
	return NULL;
}

/* ---- a key's fault ----------------------------------------------------------------------------------------------- */

static bool is_of_user(const struct uvd_pd *pd, uid_t user)
{
	return uvd_account_person(pd->context->account) == user;
}

static struct uvd_why why_range(const struct soft_key_use *use, uint64_t size, uint64_t start)
{
	return uvd_why(KEY_RANGE, { .word = use->which }, { use->key }, { use->length }, { use->addr }, { size },
		       { start });
}

static struct uvd_why why_mr(const struct soft_key_use *use, const struct uvd_mr *mr)
{
	if (mr->pd != use->pd)
		return uvd_why(KEY_OTHER_PD, { .word = use->which }, { use->key });
	if (use->access & ~mr->access)
		return uvd_why(KEY_ACCESS, { .word = use->which }, { use->key }, { use->access & ~mr->access });
	if (!soft_mr_covers(mr, use->addr, use->length))
		return why_range(use, mr->length, mr->iova);
	return (struct uvd_why){ NULL };
}

static struct uvd_why why_window(const struct soft_key_use *use, const struct soft_mw *mw)
{
	if (mw->mw.pd != use->pd)
		return uvd_why(KEY_OTHER_PD, { .word = use->which }, { use->key });
	if (mw->mw.type == IBV_MW_TYPE_2 && mw->qpn != use->qpn)
		return uvd_why(KEY_WINDOW_QP, { .word = use->which }, { use->key }, { mw->qpn });
	if (use->access & ~mw->access)
		return uvd_why(KEY_ACCESS, { .word = use->which }, { use->key }, { use->access & ~mw->access });
	return why_range(use, mw->length, mw->start);
}

static struct uvd_why why_gone(const struct soft_mr_table *table, const struct soft_key_use *use, uid_t user)
{
	const struct ended_key *k = ended_find(table, user, use->key);

	if (!k)
		return uvd_why(KEY_UNKNOWN, { use->key }, { .word = use->which });
	if (k->is_window)
		return uvd_why(KEY_INVALIDATED, { .word = use->which }, { use->key }, { uvd_now_ns() - k->ns });
	return uvd_why(KEY_ENDED, { .word = use->which }, { use->key }, { k->size }, { uvd_now_ns() - k->ns });
}

struct uvd_why soft_why_key(const struct soft_key_use *use)
{
	struct soft_mr_table *table = &soft_device(use->pd->context->dev)->mrs;
	const uid_t user = uvd_account_person(use->pd->context->account);
	const uint32_t index = use->key >> SOFT_TAG_BITS;
	struct uvd_why why;
	struct soft_mr *mr;
	struct soft_mw *mw;

	pthread_rwlock_rdlock(&table->lock);
	mr = soft_find_mr(table, use->key);
	mw = use->is_remote && index < table->room ? table->slots[index].mw : NULL;
	/* That another user has a key is not this user's to know. */
	if (mr && is_of_user(mr->mr.pd, user))
		why = why_mr(use, &mr->mr);
	else if (mw && mw->mr && mw->mw.rkey == use->key && is_of_user(mw->mw.pd, user))
		why = why_window(use, mw);
	else
		why = why_gone(table, use, user);
	pthread_rwlock_unlock(&table->lock);
	return why;
}

struct uvd_why soft_why_list(const struct soft_list *list)
{
	struct soft_key_use use = { .pd = list->pd, .which = "l_key", .access = list->access };

	for (int i = 0; i < list->num_sge; i++) {
		struct uvd_why why;

		if (!list->sge[i].length)
			continue;
		use.key = list->sge[i].lkey;
		use.addr = list->sge[i].addr;
		use.length = list->sge[i].length;
		why = soft_why_key(&use);
		if (why.reason)
			return why;
	}
	return uvd_why(MEMORY_GONE, { .word = "l_key" }, { list->num_sge ? list->sge[0].lkey : 0 });
}
