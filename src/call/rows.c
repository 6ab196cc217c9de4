/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Tells the roles of a row of the tree as rows of the tree query (include/uverbsd/abi.h). learn.c is the reverse. */
#include "call/call.h"

#include <stdio.h>
#include <string.h>
#include <uverbsd/abi.h>

const struct uvd_command_fields *uvd_commands_find(const struct uvd_command_fields *list, const char *command)
{
	for (; list && list->command; list++)
		if (!strcmp(list->command, command))
			return list;
	return NULL;
}

const struct uvd_attr_fields *uvd_attrs_find(const struct uvd_attr_fields *list, const char *attr)
{
	for (; list && list->attr; list++)
		if (!strcmp(list->attr, attr))
			return list;
	return NULL;
}

struct telling {
	const struct uverbsd_tree_row *of;
	uvd_role_fn fn;
	void *arg;
};

static int tell_row(const struct telling *t, struct uverbsd_tree_role *row, const char *name, const char *text)
{
	row->row_kind = t->of->kind;
	row->object = t->of->object;
	row->method = t->of->method;
	row->id = t->of->id;
	row->attr = t->of->attr;
	row->row_flags = t->of->kind == UVERBSD_TREE_COMMAND ? t->of->flags & UVERBSD_TREE_COMMAND_EX : 0;
	snprintf(row->name, sizeof(row->name), "%s", name ? name : "");
	snprintf(row->text, sizeof(row->text), "%s", text ? text : "");
	return t->fn(t->arg, row);
}

static int tell_words(const struct telling *t, const struct uvd_words *words)
{
	struct uverbsd_tree_role row = { .kind = UVERBSD_TREE_ROLE_WORDS };
	int ret;

	if (!words)
		return 0;
	row.size = words->flags;
	ret = tell_row(t, &row, words->name, words->prefix);
	for (const struct uvd_word *w = words->words; w->name && !ret; w++) {
		row = (struct uverbsd_tree_role){ .kind = UVERBSD_TREE_ROLE_WORD, .select_values = w->value };
		ret = tell_row(t, &row, w->name, NULL);
	}
	return ret;
}

static int tell_field(const struct telling *t, const struct uvd_field *f)
{
	struct uverbsd_tree_role row = {
		.kind = UVERBSD_TREE_ROLE_FIELD,
		.role = f->role,
		.flags = (f->big ? UVERBSD_TREE_ROLE_BIG : 0) | (f->makes ? UVERBSD_TREE_ROLE_MAKES : 0) |
			 (f->ends ? UVERBSD_TREE_ROLE_ENDS : 0) | (f->optional ? UVERBSD_TREE_ROLE_OPTIONAL : 0) |
			 (f->renews ? UVERBSD_TREE_ROLE_RENEWS : 0),
		.at = f->at,
		.size = f->size,
		.count = f->count,
		.target = f->object,
		.or_target = f->or_object,
		.beside = f->beside,
		.selector = f->selector,
		.select_flags = f->select_flags,
		.select_values = f->select_values,
	};
	const int ret = tell_row(t, &row, f->name, f->array);

	return ret ? ret : tell_words(t, f->words);
}

static int tell_struct(const struct telling *t, enum uverbsd_tree_role_kind kind, const struct uvd_struct *of)
{
	struct uverbsd_tree_role row = { .kind = kind };
	int ret;

	if (!of || !of->size)
		return 0;
	row.size = of->size;
	row.role = of->tail_role;
	row.target = of->tail_object;
	ret = tell_row(t, &row, of->name, of->tail);
	for (const struct uvd_field *f = of->fields; f->name && !ret; f++)
		ret = tell_field(t, f);
	for (const struct uvd_field *f = of->reserved; f && f->name && !ret; f++)
		ret = tell_field(t, f);
	return ret;
}

int uvd_command_describe(const struct uverbsd_tree_row *of, const struct uvd_command_fields *c, uvd_role_fn fn,
			 void *arg)
{
	const struct telling t = { of, fn, arg };
	const int ret = tell_struct(&t, UVERBSD_TREE_ROLE_REQUEST, c->request);

	return ret ? ret : tell_struct(&t, UVERBSD_TREE_ROLE_RESPONSE, c->response);
}

int uvd_value_describe(const struct uverbsd_tree_row *of, const struct uvd_attr_fields *a, uvd_role_fn fn, void *arg)
{
	const struct telling t = { of, fn, arg };
	struct uverbsd_tree_role row = {
		.kind = UVERBSD_TREE_ROLE_VALUE, .role = a->role, .target = a->object, .or_target = a->or_object
	};
	int ret = tell_row(&t, &row, a->attr, a->beside);

	if (!ret)
		ret = tell_words(&t, a->words);
	return ret ? ret : tell_struct(&t, UVERBSD_TREE_ROLE_STRUCT, a->of);
}
