/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The allow-lists of devices: which texts a device can have, and refusals. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uverbsd/log.h>

#include "account/account.h"
#include "client/client.h"
#include "core/internal.h"
#include "explain/explain.h"
#include "persona/persona.h"
#include "util/util.h"

/* ---- can the device have the lists? ------------------------------------------------------------------------------ */

static bool allow_has_verb(const struct uvd_allow_list *list, const char *name)
{
	return uvd_allow_has(list, uvd_allow_hash(name));
}

/* Calls match for the name of each verb, or object, of the device's features, also those that its backend lacks. */
static bool device_has_name(const struct uvd_device *dev, enum uvd_allow_kind kind, uint64_t number)
{
	const struct uvd_object_row *const *object;
	char name[UVD_ALLOW_WORD];

	for (const struct uvd_feature *const *f = dev->trees->features; *f; f++) {
		for (object = (*f)->objects; *object; object++) {
			if (kind == UVD_ALLOW_OBJECTS &&
			    uvd_allow_hash(uvd_allow_object_name((*object)->name)) == number)
				return true;
			for (unsigned int i = 0; kind == UVD_ALLOW_VERBS && i < (*object)->num_methods; i++) {
				uvd_allow_verb_name((*object)->methods[i].name, name);
				if (uvd_allow_hash(name) == number)
					return true;
			}
			for (unsigned int i = 0; kind == UVD_ALLOW_VERBS && i < (*object)->num_writes; i++) {
				uvd_allow_verb_name((*object)->writes[i].name, name);
				if (uvd_allow_hash(name) == number)
					return true;
			}
		}
	}
	return false;
}

/* A misspelt name would refuse what it was to allow. */
static int allow_check_names(struct uvd_device *dev, const struct uvd_allow_list *list)
{
	if (list->kind != UVD_ALLOW_VERBS && list->kind != UVD_ALLOW_OBJECTS)
		return 0;
	for (unsigned int i = 0; i < list->num; i++) {
		if (!strcmp(list->entries[i].word, "base") ||
		    device_has_name(dev, list->kind, list->entries[i].value.number))
			continue;
		uvd_logf(dev->engine->log, UVD_ERR,
			 "%s: allow: `%s` is no name of %s of this device: docs/abi.md and `uverbsctl tree` have them",
			 dev->config.ibdev, list->entries[i].word, uvd_allow_kind_name(list->kind));
		return -EINVAL;
	}
	return 0;
}

static int allow_check_ucap(struct uvd_device *dev, const struct uvd_allow_list *list)
{
	struct uvd_ucaps *ucaps = &dev->engine->ucaps;
	bool found = list->subject != UVD_ALLOW_UCAP;

	uvd_lock(&ucaps->lock);
	for (unsigned int i = 0; i < ucaps->num && !found; i++)
		found = dev->ucap_refs[i] && !strcmp(ucaps->list[i].name, list->name);
	uvd_unlock(&ucaps->lock);
	if (!found)
		uvd_logf(dev->engine->log, UVD_ERR,
			 "%s: allow: the device has no User Capability `%s`: add it with --ucaps", dev->config.ibdev,
			 list->name);
	return found ? 0 : -EINVAL;
}

/*
 * The rights of a memory window are in the work request that binds it, which no list can see: a window could give peers
 * rights that the list refuses to regions.
 */
static int allow_check_windows(struct uvd_device *dev, const struct uvd_allow_list *list)
{
	const uint64_t remote = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	char missing[128];

	if (list->kind != UVD_ALLOW_ACCESS || uvd_allow_missing(list, IBV_ACCESS_MW_BIND) ||
	    !uvd_allow_missing(list, remote))
		return 0;
	uvd_allow_access_names(uvd_allow_missing(list, remote), missing, sizeof(missing));
	uvd_logf(dev->engine->log, UVD_ERR,
		 "%s: allow: a list with MW_BIND must have %s, too: the rights of memory windows cannot be restricted",
		 dev->config.ibdev, missing);
	return -EINVAL;
}

/* Clients post and poll on mapped queues without a call, so these verbs come with the queue. */
static int allow_check_queue_verbs(struct uvd_device *dev, const struct uvd_allow_list *list)
{
	static const char *const queue_verbs[][2] = {
		{ "CREATE_QP", "POST_SEND" },
		{ "CREATE_QP", "POST_RECV" },
		{ "CREATE_SRQ", "POST_SRQ_RECV" },
		{ "CREATE_CQ", "POLL_CQ" },
	};

	if (!dev->persona->queues || list->kind != UVD_ALLOW_VERBS)
		return 0;
	for (size_t i = 0; i < UVD_COUNT(queue_verbs); i++) {
		if (!allow_has_verb(list, queue_verbs[i][0]) || allow_has_verb(list, queue_verbs[i][1]))
			continue;
		uvd_logf(
			dev->engine->log, UVD_ERR,
			"%s: allow: a list with %s must have %s, too, as persona %s maps its queues: or use --persona hfi1",
			dev->config.ibdev, queue_verbs[i][0], queue_verbs[i][1], dev->config.persona);
		return -EINVAL;
	}
	return 0;
}

static int allow_check_list(struct uvd_device *dev, const struct uvd_allow_list *list)
{
	return allow_check_names(dev, list) ?: allow_check_ucap(dev, list) ?: allow_check_windows(dev, list) ?:
	       allow_check_queue_verbs(dev, list);
}

/* Adds a text of this device. */
static const char *device_allow_add(struct uvd_device *dev, const char *text)
{
	if (!dev->allow)
		dev->allow = uvd_allow_new();
	return dev->allow ? uvd_allow_add(dev->allow, text) : "does not fit into memory";
}

int uvd_device_allow_begin(struct uvd_device *dev)
{
	const struct uvd_device_text *t = NULL;
	const char *wrong = NULL;
	int err = 0;

	while (!wrong && (t = uvd_device_text_after(dev, UVD_TEXT_ALLOW, t))) {
		wrong = device_allow_add(dev, t->text);
		if (wrong)
			uvd_logf(dev->engine->log, UVD_ERR, "%s: allow: `%s` %s", dev->config.ibdev, t->text, wrong);
	}
	if (wrong)
		return -EINVAL;
	for (const struct uvd_allow_list *l = dev->allow ? dev->allow->lists : NULL; l && !err; l = l->next)
		err = allow_check_list(dev, l);
	return err;
}

uint64_t uvd_device_disallowed(const struct uvd_device *dev)
{
	uint64_t sum = 0;

	for (struct uvd_allow_list *list = dev->allow ? dev->allow->lists : NULL; list; list = list->next)
		sum += atomic_load_explicit(&list->refused, memory_order_relaxed);
	return sum;
}

/* ---- open files -------------------------------------------------------------------------------------------------- */

void uvd_file_allow_begin(struct uvd_file *file)
{
	struct uvd_allowed *allowed = &file->allowed_at_open;
	const bool found = uvd_allow_find(file->dev->allow, uvd_account_person(file->account), NULL, NULL, allowed);

	atomic_store_explicit(&file->allowed, found ? allowed : NULL, memory_order_release);
}

/* The names of a context's capabilities. */
struct held_ucaps {
	struct uvd_ucaps *all;
	uint64_t held;
};

/* Caller holds the lock of the capabilities. */
static bool ucap_is_held(void *arg, const char *name)
{
	const struct held_ucaps *h = arg;

	for (unsigned int i = 0; i < h->all->num; i++)
		if (h->held >> i & 1 && !strcmp(h->all->list[i].name, name))
			return true;
	return false;
}

void uvd_file_allow_context(struct uvd_file *file, uint64_t ucaps)
{
	struct held_ucaps held = { &file->dev->engine->ucaps, ucaps };
	struct uvd_allowed *allowed = &file->allowed_in_context;
	bool found;

	/* Without capabilities nothing changes. */
	if (!file->dev->allow || !ucaps)
		return;
	uvd_lock(&held.all->lock);
	found = uvd_allow_find(file->dev->allow, uvd_account_person(file->account), ucap_is_held, &held, allowed);
	uvd_unlock(&held.all->lock);
	atomic_store_explicit(&file->allowed, found ? allowed : NULL, memory_order_release);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

int uvd_file_refuse(struct uvd_file *file, struct uvd_caller *caller, const char *verb, struct uvd_allow_list *list,
		    const char *what, const char *word)
{
	char prefix[2 * UVD_ALLOW_WORD];

	atomic_fetch_add_explicit(&list->refused, 1, memory_order_relaxed);
	uvd_allow_prefix(list, prefix, sizeof(prefix));
	uvd_file_explain_rule(file, caller, verb, -EPERM,
			      &uvd_why(ALLOW_LIST, { uvd_account_person(file->account) }, { .word = prefix },
				       { .word = what }, { .word = word }));
	return -EPERM;
}

int uvd_file_check_verb(struct uvd_file *file, struct uvd_caller *caller, const char *row, uint64_t verb)
{
	const struct uvd_allowed *allowed = uvd_file_allowed(file);
	struct uvd_allow_list *list = allowed ? allowed->lists[UVD_ALLOW_VERBS] : NULL;
	char name[UVD_ALLOW_WORD], what[UVD_ALLOW_WORD + 8];

	if (!list || !verb || uvd_allow_has(list, verb))
		return 0;
	uvd_allow_verb_name(row, name);
	snprintf(what, sizeof(what), "verb %s", name);
	return uvd_file_refuse(file, caller, row, list, what, name);
}

int uvd_file_check_object(struct uvd_file *file, struct uvd_caller *caller, const char *verb, const char *row)
{
	const struct uvd_allowed *allowed = uvd_file_allowed(file);
	struct uvd_allow_list *list = allowed ? allowed->lists[UVD_ALLOW_OBJECTS] : NULL;
	char what[UVD_ALLOW_WORD + 8];
	uint64_t number;

	if (!list)
		return 0;
	number = uvd_allow_object(row);
	if (!number || uvd_allow_has(list, number))
		return 0;
	snprintf(what, sizeof(what), "object %s", uvd_allow_object_name(row));
	return uvd_file_refuse(file, caller, verb, list, what, uvd_allow_object_name(row));
}
