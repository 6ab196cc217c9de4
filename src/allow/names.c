/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The names of verbs, objects, access flags and QP types in allow-lists. */
#include <errno.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <stdio.h>
#include <string.h>

#include "allow/allow.h"
#include "util/util.h"

/* ---- verbs and objects ------------------------------------------------------------------------------------------- */

/* A method is named OBJECT_WHAT, and a command WHAT_OBJECT. */
static const char *const turned_words[] = { "CREATE", "DESTROY", "ALLOC", "FREE", "READ", "MODIFY", "REG" };

/* Methods, and the write() commands that do the same, if the method's name turned around is not the command's. */
static const char *const same_verbs[][2] = {
	{ "DESTROY_PD", "DEALLOC_PD" },	  { "DESTROY_MR", "DEREG_MR" },	   { "DESTROY_MW", "DEALLOC_MW" },
	{ "DESTROY_XRCD", "CLOSE_XRCD" }, { "CREATE_XSRQ", "CREATE_SRQ" }, /* by ioctl, CREATE_SRQ makes both */
};

/* Verbs that only end objects: refusing them protects nothing, and would leave objects behind. */
static const char *const ending_words[] = { "DESTROY_", "DEALLOC_", "DEREG_", "FREE_", "CLOSE_", "DETACH_" };

/* Every program needs these to open a device and look at it. */
static const char *const base_verbs[] = {
	"GET_CONTEXT",	"ALLOC_ASYNC_EVENT",	"QUERY_CONTEXT",   "QUERY_DEVICE",
	"QUERY_PORT",	"QUERY_PORT_SPEED",	"QUERY_GID_TABLE", "QUERY_GID_ENTRY",
	"INFO_HANDLES", "QUERY_COMP_CNTR_CAPS", "TREE_QUERY",	   "TREE_ROLES",
};

static const char *names_after(const char *text, const char *prefix)
{
	const size_t len = strlen(prefix);

	return strncmp(text, prefix, len) ? NULL : text + len;
}

/* Turns OBJECT_WHAT around. */
static void names_turn(const char *method, char name[UVD_ALLOW_WORD])
{
	const char *last = strrchr(method, '_');

	for (size_t i = 0; last && i < sizeof(turned_words) / sizeof(turned_words[0]); i++) {
		if (strcmp(last + 1, turned_words[i]) != 0)
			continue;
		snprintf(name, UVD_ALLOW_WORD, "%s_%.*s", turned_words[i], (int)(last - method), method);
		return;
	}
	snprintf(name, UVD_ALLOW_WORD, "%s", method);
}

void uvd_allow_verb_name(const char *row, char name[UVD_ALLOW_WORD])
{
	const char *command = names_after(row, "IB_USER_VERBS_CMD_") ?: names_after(row, "IB_USER_VERBS_EX_CMD_");
	const char *method = names_after(row, "UVERBS_METHOD_") ?: names_after(row, "UVERBSD_METHOD_");

	if (method)
		names_turn(method, name);
	else
		snprintf(name, UVD_ALLOW_WORD, "%s", command ?: row);
	for (size_t i = 0; i < sizeof(same_verbs) / sizeof(same_verbs[0]); i++)
		if (!strcmp(name, same_verbs[i][0]))
			snprintf(name, UVD_ALLOW_WORD, "%s", same_verbs[i][1]);
}

/* FNV-1a, of 64 bits: two names of a device are not expected to meet. */
uint64_t uvd_allow_hash(const char *name)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3;
	return hash ?: 1;
}

uint64_t uvd_allow_verb(const char *row)
{
	char name[UVD_ALLOW_WORD];

	uvd_allow_verb_name(row, name);
	if (!strcmp(name, "INVOKE_WRITE"))
		return 0;
	for (size_t i = 0; i < sizeof(ending_words) / sizeof(ending_words[0]); i++)
		if (names_after(name, ending_words[i]))
			return 0;
	return uvd_allow_hash(name);
}

const char *uvd_allow_object_name(const char *row)
{
	return names_after(row, "UVERBS_OBJECT_") ?: names_after(row, "UVERBSD_OBJECT_") ?: row;
}

/* Every context has an asynchronous event file, which gives a client no right. */
uint64_t uvd_allow_object(const char *row)
{
	const char *name = uvd_allow_object_name(row);

	return strcmp(name, "ASYNC_EVENT") ? uvd_allow_hash(name) : 0;
}

int uvd_allow_add_group(struct uvd_allow_list *list, const char *word)
{
	int err = 0;

	if (strcmp(word, "base") != 0)
		return 0;
	for (size_t i = 0; i < sizeof(base_verbs) / sizeof(base_verbs[0]) && !err; i++)
		err = uvd_allow_list_add(list, "base",
					 &(struct uvd_allow_value){ .number = uvd_allow_hash(base_verbs[i]) });
	return err ?: 1;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static bool names_find(const struct uvd_named *names, const char *word, uint64_t *value)
{
	const struct uvd_named *found = uvd_named_find(names, word);

	if (found)
		*value = found->value;
	return found;
}

bool uvd_allow_access_value(const char *word, uint64_t *value)
{
	return names_find(uvd_access_flag_names, word, value);
}

bool uvd_allow_qp_type_value(const char *word, uint64_t *value)
{
	return names_find(uvd_qp_type_names, word, value);
}

void uvd_allow_access_names(uint64_t access, char *text, size_t size)
{
	uvd_flag_names(uvd_access_flag_names, access, ",", text, size);
}

const char *uvd_allow_qp_type_name(uint64_t type)
{
	const char *name = uvd_name_of(uvd_qp_type_names, type);

	return *name == '?' ? NULL : name;
}
