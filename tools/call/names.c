/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Finds the rows of a tree by the kernel's names and by short forms of them. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "script.h"

/* Returns what follows `prefix` in the name, or the whole name if it does not begin so. */
static const char *name_after(const char *name, const char *prefix)
{
	const size_t len = strlen(prefix);

	return !strncmp(name, prefix, len) && name[len] ? name + len : name;
}

/* ---- short forms ------------------------------------------------------------------------------------------------- */

void uvd_short_object(const char *object, char name[UVD_SHORT_NAME])
{
	const char *rest = name_after(object, "UVERBS_OBJECT_");

	snprintf(name, UVD_SHORT_NAME, "%s", rest == object ? name_after(object, "UVERBSD_OBJECT_") : rest);
}

/* Removes the object's name from the beginning or the end of "CQ_CREATE", "CREATE_CQ". Keeps a name that is nothing more. */
static void strip_object(char *name, const char *object)
{
	const size_t len = strlen(name), n = strlen(object);

	if (len <= n + 1)
		return;
	if (!strncmp(name, object, n) && name[n] == '_')
		memmove(name, name + n + 1, len - n);
	else if (!strcmp(name + len - n, object) && name[len - n - 1] == '_')
		name[len - n - 1] = '\0';
}

/* Makes "CQ_CREATE" or "EX_CREATE_CQ": the name without its first words. */
static void plain_method(const struct uverbsd_tree_row *row, char name[UVD_SHORT_NAME])
{
	const char *rest = name_after(row->name, "UVERBS_METHOD_");

	if (rest == row->name)
		rest = name_after(row->name, "UVERBSD_METHOD_");
	if (rest == row->name)
		rest = name_after(row->name, "IB_USER_VERBS_CMD_");
	if (rest == row->name)
		rest = name_after(row->name, "RDMA_USER_CM_CMD_");
	if (rest == row->name && row->kind == UVERBSD_TREE_COMMAND && row->flags & UVERBSD_TREE_COMMAND_EX)
		snprintf(name, UVD_SHORT_NAME, "EX_%.60s", name_after(row->name, "IB_USER_VERBS_EX_CMD_"));
	else
		snprintf(name, UVD_SHORT_NAME, "%s", rest);
}

void uvd_short_method(const struct uvd_script *s, const struct uverbsd_tree_row *row, char name[UVD_SHORT_NAME])
{
	const char *object = uvd_view_object(&s->view, row->object);
	char of[UVD_SHORT_NAME];

	plain_method(row, name);
	uvd_short_object(object ? object : "", of);
	strip_object(name, of);
}

void uvd_short_verb(const char *object, const char *verb, char name[UVD_SHORT_NAME])
{
	struct uverbsd_tree_row row = { .kind = UVERBSD_TREE_METHOD };
	char of[UVD_SHORT_NAME];

	if (name_after(verb, "IB_USER_VERBS_EX_CMD_") != verb) {
		row.kind = UVERBSD_TREE_COMMAND;
		row.flags = UVERBSD_TREE_COMMAND_EX;
	}
	snprintf(row.name, sizeof(row.name), "%s", verb);
	plain_method(&row, name);
	uvd_short_object(object, of);
	strip_object(name, of);
}

static bool method_is_called(const struct uvd_script *s, const struct uverbsd_tree_row *row, const char *word)
{
	char name[UVD_SHORT_NAME];

	if (uvd_names_equal(row->name, word) || uvd_names_equal(name_after(row->name, "IB_USER_VERBS_"), word))
		return true;
	plain_method(row, name);
	if (uvd_names_equal(name, word))
		return true;
	uvd_short_method(s, row, name);
	return uvd_names_equal(name, word);
}

static const char *plain_attr(const struct uverbsd_tree_row *attr)
{
	const char *rest = name_after(attr->name, "UVERBS_ATTR_");

	return rest == attr->name ? name_after(attr->name, "UVERBSD_ATTR_") : rest;
}

/* Removes the first occurrence of a word of `len` bytes from words joined by '_'. Returns false if it is not there. */
static bool take_word(char *words, const char *word, size_t len)
{
	for (char *p = words; *p; p += strcspn(p, "_"), p += *p == '_') {
		if (strcspn(p, "_") != len || strncmp(p, word, len))
			continue;
		memset(p, ' ', len);
		return true;
	}
	return false;
}

/*
 * Returns the end of an attribute's name that its method does not say already: of CREATE_CQ_CQE in the method
 * CQ_CREATE this is CQE. Each word of the method counts once, and the last word always remains.
 */
static const char *attr_end(const struct uverbsd_tree_row *method, const struct uverbsd_tree_row *attr)
{
	const char *end = plain_attr(attr), *next;
	char words[UVD_SHORT_NAME];

	plain_method(method, words);
	while ((next = strchr(end, '_')) && next[1] && take_word(words, end, next - end))
		end = next + 1;
	return end;
}

void uvd_short_attr(const struct uverbsd_tree_row *method, const struct uverbsd_tree_row *attr,
		    char name[UVD_SHORT_NAME])
{
	const char *end = attr_end(method, attr);
	size_t i = 0;

	for (; end[i] && i < UVD_SHORT_NAME - 1; i++)
		name[i] = tolower((unsigned char)end[i]);
	name[i] = '\0';
}

bool uvd_attr_is_called(const struct uverbsd_tree_row *method, const struct uverbsd_tree_row *attr, const char *word)
{
	return uvd_names_equal(attr->name, word) || uvd_names_equal(plain_attr(attr), word) ||
	       uvd_names_equal(attr_end(method, attr), word);
}

/* ---- nearest names ----------------------------------------------------------------------------------------------- */

void uvd_nearest_complain(const struct uvd_nearest *n, const struct uvd_script *s, const char *owner, const char *what)
{
	char names[UVD_NEAREST_TEXT];

	if (!*uvd_nearest_text(n, names))
		uvd_script_complain(s, "%s has no %s `%s`, nor any other", owner, what, n->wrong);
	else
		uvd_script_complain(s, "%s has no %s `%s`; the nearest names are %s", owner, what, n->wrong, names);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

const struct uverbsd_tree_row *uvd_find_object(const struct uvd_script *s, const char *word)
{
	struct uvd_nearest nearest = { .wrong = word };
	char name[UVD_SHORT_NAME];

	for (size_t i = 0; i < s->view.num; i++) {
		const struct uverbsd_tree_row *row = &s->view.entries[i].row;

		if (row->kind != UVERBSD_TREE_OBJECT)
			continue;
		uvd_short_object(row->name, name);
		if (uvd_names_equal(row->name, word) || uvd_names_equal(name, word))
			return row;
		uvd_nearest_add(&nearest, name);
	}
	uvd_nearest_complain(&nearest, s, "the device", "object");
	return NULL;
}

/* Methods precede commands in the tree. */
bool uvd_is_callable(const struct uvd_script *s, const struct uverbsd_tree_row *row, uint16_t object)
{
	return row->object == object &&
	       (row->kind == UVERBSD_TREE_COMMAND || (row->kind == UVERBSD_TREE_METHOD && s->has_ioctl));
}

const struct uvd_tree_entry *uvd_find_call(const struct uvd_script *s, char **words)
{
	const struct uverbsd_tree_row *object = uvd_find_object(s, words[0]);
	struct uvd_nearest nearest = { .wrong = words[1] };
	char name[UVD_SHORT_NAME];

	if (!object)
		return NULL;
	for (size_t i = 0; i < s->view.num; i++) {
		const struct uverbsd_tree_row *row = &s->view.entries[i].row;

		if (!uvd_is_callable(s, row, object->id))
			continue;
		if (method_is_called(s, row, words[1]))
			return &s->view.entries[i];
		uvd_short_method(s, row, name);
		uvd_nearest_add(&nearest, name);
	}
	uvd_nearest_complain(&nearest, s, object->name, "method");
	return NULL;
}

void uvd_unique_method(const struct uvd_script *s, const struct uverbsd_tree_row *row, char name[UVD_SHORT_NAME])
{
	char *words[] = { (char *)uvd_view_object(&s->view, row->object), name };
	const struct uvd_tree_entry *found;

	uvd_short_method(s, row, name);
	found = uvd_find_call(s, words);
	if (!found || &found->row != row)
		snprintf(name, UVD_SHORT_NAME, "%s", name_after(row->name, "IB_USER_VERBS_"));
}
