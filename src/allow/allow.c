/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Allow-lists: their texts, and what they have. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allow/allow.h"
#include "util/util.h"

static const char *const kind_words[UVD_ALLOW_KINDS] = {
	[UVD_ALLOW_VERBS] = "verbs",	   [UVD_ALLOW_OBJECTS] = "objects", [UVD_ALLOW_ACCESS] = "access",
	[UVD_ALLOW_QP_TYPES] = "qp-types", [UVD_ALLOW_PKEYS] = "pkeys",	    [UVD_ALLOW_GIDS] = "gids",
};

/* ---- texts ------------------------------------------------------------------------------------------------------- */

/* A text while it is read. */
struct allow_text {
	const char *next;
	struct uvd_allow_list like; /* kind, subject, uid and name of its list */
	char wrong[192];
};

static bool allow_text_wrong(struct allow_text *t, const char *fmt, const char *word)
{
	snprintf(t->wrong, sizeof(t->wrong), fmt, word);
	return false;
}

/* Copies the next word, up to a character of `ends` or the end of the text, which it skips. */
static bool allow_text_word(struct allow_text *t, const char *ends, char word[UVD_ALLOW_WORD])
{
	const size_t len = strcspn(t->next += strspn(t->next, " \t"), ends);

	if (!len || len >= UVD_ALLOW_WORD)
		return allow_text_wrong(t, len ? "has a word that is too long: `%.40s`" : "lacks a word before `%.40s`",
					t->next);
	memcpy(word, t->next, len);
	word[len] = 0;
	t->next += len + (t->next[len] != 0);
	return true;
}

static bool allow_text_user(struct allow_text *t, const char *word)
{
	const char *wrong = uvd_user_parse(word, &t->like.uid);

	if (wrong)
		snprintf(t->wrong, sizeof(t->wrong), "names `%.40s`, which %s", word, wrong);
	return !wrong;
}

/* Reads user:NAME: or ucap:NAME:, if the text begins with it. */
static bool allow_text_subject(struct allow_text *t)
{
	const bool user = !strncmp(t->next, "user:", 5), ucap = !strncmp(t->next, "ucap:", 5);

	if (!user && !ucap)
		return true;
	t->next += 5;
	t->like.subject = user ? UVD_ALLOW_USER : UVD_ALLOW_UCAP;
	if (!allow_text_word(t, ":", t->like.name))
		return false;
	return ucap || allow_text_user(t, t->like.name);
}

/* Reads KIND: and stores it. */
static bool allow_text_kind(struct allow_text *t)
{
	char word[UVD_ALLOW_WORD];

	if (!strchr(t->next, ':'))
		return allow_text_wrong(t, "has `%.40s` where `none` or KIND:WORD,... belongs", t->next);
	if (!allow_text_word(t, ":", word))
		return false;
	for (unsigned int i = 0; i < UVD_ALLOW_KINDS; i++) {
		t->like.kind = i;
		if (!strcmp(word, kind_words[i]))
			return true;
	}
	return allow_text_wrong(
		t, "has `%.40s`, which is none of user, ucap, verbs, objects, access, qp-types, pkeys, gids", word);
}

static bool allow_text_pkey(const char *word, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoul(word, &end, 0);
	return !*end && !errno && *word >= '0' && *word <= '9' && *value && *value <= 0xffff;
}

static bool allow_text_value(struct allow_text *t, const char *word, struct uvd_allow_value *value)
{
	char name[UVD_ALLOW_WORD];

	switch (t->like.kind) {
	case UVD_ALLOW_VERBS:
		uvd_allow_verb_name(word, name);
		value->number = uvd_allow_hash(name);
		return true;
	case UVD_ALLOW_OBJECTS:
		value->number = uvd_allow_hash(uvd_allow_object_name(word));
		return true;
	case UVD_ALLOW_ACCESS:
		return uvd_allow_access_value(word, &value->number) ||
		       allow_text_wrong(t, "contains `%.40s`, which is no access flag such as LOCAL_WRITE", word);
	case UVD_ALLOW_QP_TYPES:
		return uvd_allow_qp_type_value(word, &value->number) ||
		       allow_text_wrong(t, "contains `%.40s`, which is no type of QPs such as RC", word);
	case UVD_ALLOW_PKEYS:
		return allow_text_pkey(word, &value->number) ||
		       allow_text_wrong(t, "contains `%.40s`, which is no P_Key such as 0xffff", word);
	default:
		return inet_pton(AF_INET6, word, &value->gid) == 1 ||
		       allow_text_wrong(t, "contains `%.40s`, which is no GID such as fe80::2:c903:ab:cdef", word);
	}
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static bool allow_same_subject(const struct uvd_allow_list *a, const struct uvd_allow_list *b)
{
	if (a->subject != b->subject)
		return false;
	if (a->subject == UVD_ALLOW_USER)
		return a->uid == b->uid;
	return a->subject == UVD_ALLOW_EVERYBODY || !strcmp(a->name, b->name);
}

/* Finds the list of this kind and subject, or makes one. NULL: no memory. */
static struct uvd_allow_list *allow_list_get(struct uvd_allow *allow, const struct uvd_allow_list *like,
					     enum uvd_allow_kind kind)
{
	struct uvd_allow_list *list;

	for (list = allow->lists; list; list = list->next)
		if (list->kind == kind && allow_same_subject(list, like))
			return list;
	list = uvd_zalloc(sizeof(*list));
	if (!list)
		return NULL;
	list->kind = kind;
	list->subject = like->subject;
	list->uid = like->uid;
	memcpy(list->name, like->name, sizeof(list->name));
	list->next = allow->lists;
	allow->lists = list;
	return list;
}

int uvd_allow_list_add(struct uvd_allow_list *list, const char *word, const struct uvd_allow_value *value)
{
	struct uvd_allow_entry *entries = realloc(list->entries, (list->num + 1) * sizeof(*entries));

	if (!entries)
		return -ENOMEM;
	list->entries = entries;
	entries += list->num++;
	entries->value = *value;
	snprintf(entries->word, sizeof(entries->word), "%s", word);
	return 0;
}

/* Adds one word to a list. */
static bool allow_list_word(struct allow_text *t, struct uvd_allow_list *list, const char *word)
{
	struct uvd_allow_value value = {};
	int ret = 1;

	if (!strcmp(word, "all"))
		list->all = true;
	else if (strcmp(word, "none") != 0)
		ret = list->kind == UVD_ALLOW_VERBS ? uvd_allow_add_group(list, word) : 0;
	if (!ret) {
		if (!allow_text_value(t, word, &value))
			return false;
		ret = uvd_allow_list_add(list, word, &value);
	}
	return ret >= 0 || allow_text_wrong(t, "does not fit into memory%s", "");
}

static bool allow_add_none(struct allow_text *t, struct uvd_allow *allow)
{
	for (unsigned int i = 0; i < UVD_ALLOW_KINDS; i++)
		if (!allow_list_get(allow, &t->like, i))
			return allow_text_wrong(t, "does not fit into memory%s", "");
	return true;
}

static bool allow_add_words(struct allow_text *t, struct uvd_allow *allow)
{
	struct uvd_allow_list *list;
	char word[UVD_ALLOW_WORD];

	if (!allow_text_kind(t))
		return false;
	list = allow_list_get(allow, &t->like, t->like.kind);
	if (!list)
		return allow_text_wrong(t, "does not fit into memory%s", "");
	do {
		if (!allow_text_word(t, ", \t", word) || !allow_list_word(t, list, word))
			return false;
	} while (*t->next);
	return true;
}

const char *uvd_allow_add(struct uvd_allow *allow, const char *text)
{
	static __thread struct allow_text t;

	t = (struct allow_text){ .next = text };
	if (!allow_text_subject(&t))
		return t.wrong;
	return (strcmp(t.next, "none") ? allow_add_words(&t, allow) : allow_add_none(&t, allow)) ? NULL : t.wrong;
}

const char *uvd_allow_check(const char *text)
{
	struct uvd_allow *allow = uvd_allow_new();
	const char *wrong = allow ? uvd_allow_add(allow, text) : "does not fit into memory";

	uvd_allow_free(allow);
	return wrong;
}

char *uvd_allow_without_names(const char *text)
{
	struct allow_text t = { .next = text };
	char *copy;

	if (!allow_text_subject(&t) || t.like.subject != UVD_ALLOW_USER)
		return strdup(text);
	return asprintf(&copy, "user:%u:%s", t.like.uid, t.next) < 0 ? NULL : copy;
}

struct uvd_allow *uvd_allow_new(void)
{
	return uvd_zalloc(sizeof(struct uvd_allow));
}

void uvd_allow_free(struct uvd_allow *allow)
{
	struct uvd_allow_list *list;

	if (!allow)
		return;
	while ((list = allow->lists)) {
		allow->lists = list->next;
		free(list->entries);
		free(list);
	}
	free(allow);
}

/* ---- look-ups ---------------------------------------------------------------------------------------------------- */

static bool allow_list_applies(const struct uvd_allow_list *list, uid_t uid,
			       bool (*has_ucap)(void *arg, const char *name), void *arg)
{
	switch (list->subject) {
	case UVD_ALLOW_EVERYBODY:
		return true;
	case UVD_ALLOW_USER:
		return list->uid == uid;
	default:
		return has_ucap && has_ucap(arg, list->name);
	}
}

bool uvd_allow_find(const struct uvd_allow *allow, uid_t uid, bool (*has_ucap)(void *arg, const char *name), void *arg,
		    struct uvd_allowed *allowed)
{
	bool found = false;

	*allowed = (struct uvd_allowed){};
	for (struct uvd_allow_list *list = allow ? allow->lists : NULL; list; list = list->next) {
		struct uvd_allow_list **best = &allowed->lists[list->kind];

		if (!allow_list_applies(list, uid, has_ucap, arg))
			continue;
		found = true;
		/* The newest list is the first: of two capabilities that of the first text counts. */
		if (!*best || list->subject >= (*best)->subject)
			*best = list;
	}
	return found;
}

bool uvd_allow_has(const struct uvd_allow_list *list, uint64_t number)
{
	if (list->all)
		return true;
	for (unsigned int i = 0; i < list->num; i++)
		if (list->entries[i].value.number == number)
			return true;
	return false;
}

bool uvd_allow_has_gid(const struct uvd_allow_list *list, const union ibv_gid *gid)
{
	if (list->all)
		return true;
	for (unsigned int i = 0; i < list->num; i++)
		if (!memcmp(&list->entries[i].value.gid, gid, sizeof(*gid)))
			return true;
	return false;
}

uint64_t uvd_allow_missing(const struct uvd_allow_list *list, uint64_t access)
{
	if (list->all)
		return 0;
	for (unsigned int i = 0; i < list->num; i++)
		access &= ~list->entries[i].value.number;
	return access;
}

const char *uvd_allow_kind_name(enum uvd_allow_kind kind)
{
	return kind_words[kind];
}

void uvd_allow_prefix(const struct uvd_allow_list *list, char *text, size_t size)
{
	static const char *const subjects[] = { "", "user:", "ucap:" };

	snprintf(text, size, "%s%s%s%s:", subjects[list->subject], list->name,
		 list->subject == UVD_ALLOW_EVERYBODY ? "" : ":", kind_words[list->kind]);
}
