/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Makes tables of what rows of the tree query tell (rows.c). Nothing in the rows is trusted. */
#include "call/call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uverbsd/abi.h>

/* MOST: of rows. A hostile trace must not make its reader keep more. */
enum { MOST = 1 << 15 };

/* The roles that the rows tell of one row of the tree. `command` or `value` is set. */
struct learned_call {
	struct learned_call *next;
	struct uverbsd_tree_role key;
	struct uvd_command_fields command;
	struct uvd_attr_fields value;
};

struct learned_piece {
	struct learned_piece *next;
};

struct uvd_learned {
	struct uverbsd_tree_role *rows;
	size_t num, room, at; /* at: the row that is read next */
	struct learned_call *calls;
	struct learned_piece *pieces; /* all tables, for their free() */
	bool short_of_memory;
};

struct uvd_learned *uvd_learned_new(void)
{
	return calloc(1, sizeof(struct uvd_learned));
}

int uvd_learned_add(struct uvd_learned *l, const struct uverbsd_tree_role *row)
{
	struct uverbsd_tree_role *more;

	if (l->num == MOST)
		return 0;
	if (l->num == l->room) {
		more = realloc(l->rows, (l->room + 64) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		l->rows = more;
		l->room += 64;
	}
	l->rows[l->num] = *row;
	l->rows[l->num].name[sizeof(row->name) - 1] = '\0';
	l->rows[l->num++].text[sizeof(row->text) - 1] = '\0';
	return 0;
}

void uvd_learned_free(struct uvd_learned *l)
{
	struct learned_piece *p;

	while (l && (p = l->pieces)) {
		l->pieces = p->next;
		free(p);
	}
	if (l)
		free(l->rows);
	free(l);
}

/* Returns zeroed memory that uvd_learned_free() frees, or NULL. */
static void *learned_get(struct uvd_learned *l, size_t size)
{
	struct learned_piece *p = calloc(1, sizeof(*p) + size);

	if (!p) {
		l->short_of_memory = true;
		return NULL;
	}
	p->next = l->pieces;
	l->pieces = p;
	return p + 1;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Returns how many rows of this kind follow from `at` on, of which each can be followed by its words. */
static unsigned int learned_count(const struct uvd_learned *l, size_t at, unsigned int kind)
{
	unsigned int num = 0;

	for (; at < l->num; at++) {
		if (l->rows[at].kind == kind)
			num++;
		else if (kind != UVERBSD_TREE_ROLE_FIELD ||
			 (l->rows[at].kind != UVERBSD_TREE_ROLE_WORDS && l->rows[at].kind != UVERBSD_TREE_ROLE_WORD))
			break;
	}
	return num;
}

static bool learned_next_is(const struct uvd_learned *l, unsigned int kind)
{
	return l->at < l->num && l->rows[l->at].kind == kind;
}

static const char *text_or_none(const char *text)
{
	return *text ? text : NULL;
}

/* Reads the words at l->at. Returns NULL if there are none. */
static const struct uvd_words *learned_words(struct uvd_learned *l)
{
	const struct uverbsd_tree_role *row = &l->rows[l->at];
	struct uvd_words *words;
	struct uvd_word *word;
	unsigned int num;

	if (!learned_next_is(l, UVERBSD_TREE_ROLE_WORDS))
		return NULL;
	num = learned_count(l, ++l->at, UVERBSD_TREE_ROLE_WORD);
	words = learned_get(l, sizeof(*words) + (num + 1) * sizeof(*word));
	word = words ? (struct uvd_word *)(words + 1) : NULL;
	for (unsigned int i = 0; i < num; i++, l->at++)
		if (word)
			word[i] = (struct uvd_word){ l->rows[l->at].name, l->rows[l->at].select_values };
	if (words)
		*words = (struct uvd_words){ row->name, row->text, row->size, word };
	return words;
}

static struct uvd_field learned_field(struct uvd_learned *l)
{
	const struct uverbsd_tree_role *row = &l->rows[l->at++];
	struct uvd_field f = {
		.name = row->name,
		.at = row->at,
		.size = row->size,
		.count = row->count,
		.role = row->role,
		.object = row->target,
		.or_object = row->or_target,
		.beside = row->beside,
		.selector = row->selector,
		.big = row->flags & UVERBSD_TREE_ROLE_BIG,
		.makes = row->flags & UVERBSD_TREE_ROLE_MAKES,
		.ends = row->flags & UVERBSD_TREE_ROLE_ENDS,
		.optional = row->flags & UVERBSD_TREE_ROLE_OPTIONAL,
		.renews = row->flags & UVERBSD_TREE_ROLE_RENEWS,
		.select_flags = row->select_flags,
		.select_values = row->select_values,
		.array = text_or_none(row->text),
	};

	/* A later version may have roles that this one does not know. */
	if (f.role >= UVD_ROLES)
		f.role = UVD_ROLE_UNKNOWN;
	f.words = learned_words(l);
	return f;
}

/* Reads a struct and its fields. Returns NULL if they make no sense, or memory is short. */
static const struct uvd_struct *learned_struct(struct uvd_learned *l, enum uvd_call_part part)
{
	const struct uverbsd_tree_role *row = &l->rows[l->at++];
	const unsigned int num = learned_count(l, l->at, UVERBSD_TREE_ROLE_FIELD);
	struct uvd_struct *of = learned_get(l, sizeof(*of) + 2 * (num + 1) * sizeof(struct uvd_field));
	struct uvd_field *fields = of ? (struct uvd_field *)(of + 1) : NULL,
			 *reserved = fields ? fields + num + 1 : NULL;
	unsigned int n = 0, num_reserved = 0;
	char why[UVD_CALL_WHY];

	for (unsigned int i = 0; i < num; i++) {
		const struct uvd_field f = learned_field(l);

		if (of && f.role == UVD_ROLE_RESERVED)
			reserved[num_reserved++] = f;
		else if (of)
			fields[n++] = f;
	}
	if (!of)
		return NULL;
	*of = (struct uvd_struct){ .name = row->name, .size = row->size, .fields = fields, .reserved = reserved };
	of->tail = text_or_none(row->text);
	of->tail_role = row->role;
	of->tail_object = row->target;
	return uvd_struct_check(of, part, UINT16_MAX, why) ? of : NULL;
}

static void learned_value(struct uvd_learned *l, struct learned_call *call)
{
	const struct uverbsd_tree_role *row = &l->rows[l->at++];
	struct uvd_attr_fields value = {
		.attr = row->name,
		.role = row->role,
		.object = row->target,
		.or_object = row->or_target,
		.beside = text_or_none(row->text),
	};
	char why[UVD_CALL_WHY];

	value.words = learned_words(l);
	if (learned_next_is(l, UVERBSD_TREE_ROLE_STRUCT))
		value.of = learned_struct(l, UVD_CALL_VALUE);
	if (call && uvd_value_check(&value, UINT16_MAX, why))
		call->value = value;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static bool key_is(const struct uverbsd_tree_role *a, const struct uverbsd_tree_role *b)
{
	return a->row_kind == b->row_kind && a->object == b->object && a->method == b->method && a->id == b->id &&
	       a->attr == b->attr && a->row_flags == b->row_flags;
}

/* Finds, or adds, the call that a row is about. Returns NULL if memory is short. */
static struct learned_call *learned_call_of(struct uvd_learned *l, const struct uverbsd_tree_role *row)
{
	struct learned_call *call = l->calls;

	/* Rows of one call follow each other. */
	if (call && key_is(&call->key, row))
		return call;
	call = learned_get(l, sizeof(*call));
	if (!call)
		return NULL;
	call->key = *row;
	call->command = (struct uvd_command_fields){ "", &uvd_no_struct, &uvd_no_struct };
	call->next = l->calls;
	l->calls = call;
	return call;
}

int uvd_learned_finish(struct uvd_learned *l)
{
	l->at = 0;
	l->calls = NULL;
	while (l->at < l->num) {
		const struct uverbsd_tree_role *row = &l->rows[l->at];
		struct learned_call *call = learned_call_of(l, row);
		const struct uvd_struct *of;

		switch (row->kind) {
		case UVERBSD_TREE_ROLE_REQUEST:
			of = learned_struct(l, UVD_CALL_REQUEST);
			if (call && of)
				call->command.request = of;
			break;
		case UVERBSD_TREE_ROLE_RESPONSE:
			of = learned_struct(l, UVD_CALL_RESPONSE);
			if (call && of)
				call->command.response = of;
			break;
		case UVERBSD_TREE_ROLE_VALUE:
			learned_value(l, call);
			break;
		default: /* of a later version, or out of place */
			l->at++;
		}
	}
	return l->short_of_memory ? -ENOMEM : 0;
}

static const struct learned_call *learned_find(const struct uvd_learned *l, const struct uverbsd_tree_row *row)
{
	const struct uverbsd_tree_role key = {
		.row_kind = row->kind,
		.object = row->object,
		.method = row->method,
		.id = row->id,
		.attr = row->attr,
		.row_flags = row->kind == UVERBSD_TREE_COMMAND ? row->flags & UVERBSD_TREE_COMMAND_EX : 0,
	};
	const struct learned_call *call = l ? l->calls : NULL;

	while (call && !key_is(&call->key, &key))
		call = call->next;
	return call;
}

const struct uvd_command_fields *uvd_learned_command(const struct uvd_learned *l, const struct uverbsd_tree_row *row)
{
	const struct learned_call *call = learned_find(l, row);

	return call && row->kind == UVERBSD_TREE_COMMAND ? &call->command : NULL;
}

const struct uvd_attr_fields *uvd_learned_attr(const struct uvd_learned *l, const struct uverbsd_tree_row *row)
{
	const struct learned_call *call = learned_find(l, row);

	return call && call->value.attr ? &call->value : NULL;
}
