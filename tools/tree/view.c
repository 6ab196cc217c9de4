/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Merges the rows of parse trees and prints them for people. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "util/util.h"
#include "view.h"

/*
 * Computes the sort key of a row, in the order of <uverbsd/abi.h>: object; its methods, their attributes, their
 * elements; its commands.
 */
static uint64_t key_of(const struct uverbsd_tree_row *row)
{
	const uint64_t object = (uint64_t)row->object << 48, method = object | 1ull << 46 | (uint64_t)row->method << 30;

	switch (row->kind) {
	case UVERBSD_TREE_OBJECT:
		return object;
	case UVERBSD_TREE_METHOD:
		return method;
	case UVERBSD_TREE_ATTR:
		return method | 1u << 29 | (uint64_t)row->id << 9;
	case UVERBSD_TREE_ELEM:
		return method | 1u << 29 | (uint64_t)row->attr << 9 | 1u << 8 | (row->id & 0xff);
	default:
		return object | 2ull << 46 | (row->flags & UVERBSD_TREE_COMMAND_EX ? 1ull << 16 : 0) | row->id;
	}
}

int uvd_view_add(struct uvd_tree_view *view, const struct uverbsd_tree_row *row, unsigned int source)
{
	struct uvd_tree_entry *more;

	if (view->num == view->room) {
		more = realloc(view->entries, (view->room + 256) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		view->entries = more;
		view->room += 256;
	}
	view->entries[view->num++] = (struct uvd_tree_entry){ .key = key_of(row), .row = *row, .served = 1u << source };
	return 0;
}

int uvd_view_add_role(struct uvd_tree_view *view, const struct uverbsd_tree_role *role)
{
	if (!view->learned)
		view->learned = uvd_learned_new();
	return view->learned ? uvd_learned_add(view->learned, role) : -ENOMEM;
}

static const struct uvd_tree_entry *view_entry(const struct uverbsd_tree_row *row)
{
	return container_of(row, struct uvd_tree_entry, row);
}

const struct uvd_command_fields *uvd_view_command(const struct uverbsd_tree_row *row)
{
	const struct uvd_command_fields *told = view_entry(row)->command;

	return told ? told : uvd_command_fields(row->name);
}

const struct uvd_attr_fields *uvd_view_value(const struct uverbsd_tree_row *row)
{
	const struct uvd_attr_fields *told = view_entry(row)->value;

	return told ? told : uvd_attr_fields(row->name);
}

bool uvd_view_is_told(const struct uverbsd_tree_row *row)
{
	return view_entry(row)->command || view_entry(row)->value;
}

static int by_key(const void *a, const void *b)
{
	const struct uvd_tree_entry *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

void uvd_view_finish(struct uvd_tree_view *view)
{
	size_t kept = 0;

	if (view->num)
		qsort(view->entries, view->num, sizeof(*view->entries), by_key);
	for (size_t i = 0; i < view->num; i++) {
		if (kept && view->entries[kept - 1].key == view->entries[i].key)
			view->entries[kept - 1].served |= view->entries[i].served;
		else
			view->entries[kept++] = view->entries[i];
	}
	view->num = kept;
	if (view->learned)
		uvd_learned_finish(view->learned); /* -ENOMEM: fewer fields have names */
	for (size_t i = 0; i < kept; i++) {
		view->entries[i].command = uvd_learned_command(view->learned, &view->entries[i].row);
		view->entries[i].value = uvd_learned_attr(view->learned, &view->entries[i].row);
	}
}

void uvd_view_free(struct uvd_tree_view *view)
{
	free(view->entries);
	uvd_learned_free(view->learned);
	view->learned = NULL;
	view->entries = NULL;
	view->num = view->room = 0;
}

const char *uvd_view_object(const struct uvd_tree_view *view, uint16_t id)
{
	for (size_t i = 0; i < view->num; i++)
		if (view->entries[i].row.kind == UVERBSD_TREE_OBJECT && view->entries[i].row.id == id)
			return view->entries[i].row.name;
	return NULL;
}

bool uvd_view_is_cm(const struct uvd_tree_view *view)
{
	for (size_t i = 0; i < view->num; i++)
		if (view->entries[i].row.kind == UVERBSD_TREE_COMMAND)
			return view->entries[i].row.flags & UVERBSD_TREE_COMMAND_CM;
	return false;
}

/* ---- for people -------------------------------------------------------------------------------------------------- */

static const char *object_text(const struct uvd_tree_view *view, uint16_t id)
{
	const char *name = uvd_view_object(view, id);

	return name ? name : id == 0xffff ? "any object" : "an object that is not here";
}

/* Formats ids of drivers in hexadecimal, where their namespace is visible. */
static const char *id_text(uint16_t id, char buf[8])
{
	snprintf(buf, 8, id & 0xf000 ? "0x%04x" : "%u", id);
	return buf;
}

static void print_size(const struct uverbsd_tree_row *row)
{
	const char *what = row->type == UVERBSD_TREE_IDRS_ARRAY ? "handles" : "bytes";

	if (row->type == UVERBSD_TREE_FLAGS)
		printf(" 4 or 8 bytes");
	else if (row->len == UVERBSD_TREE_LEN_ANY && !row->min_len)
		printf(" any size");
	else if (row->len == UVERBSD_TREE_LEN_ANY)
		printf(" %u %s or more", row->min_len, what);
	else if (row->min_len != row->len)
		printf(" %u to %u %s", row->min_len, row->len, what);
	else
		printf(" %u %s", row->len, what);
	if (row->flags & UVERBSD_TREE_ZERO_TRAILING)
		printf(row->type == UVERBSD_TREE_PTR_OUT ? ", more is zeroed" : ", or more that is zero");
}

static void print_attr(const struct uvd_tree_view *view, const struct uverbsd_tree_row *row)
{
	printf(" %s", uvd_tree_type_name(row->type));
	switch (row->type) {
	case UVERBSD_TREE_IDR:
	case UVERBSD_TREE_FD:
	case UVERBSD_TREE_IDRS_ARRAY:
		printf(" %s %s", uvd_tree_access_name(row->access), object_text(view, row->target));
		if (row->type == UVERBSD_TREE_IDRS_ARRAY)
			print_size(row);
		break;
	case UVERBSD_TREE_ENUM_IN:
	case UVERBSD_TREE_RAW_FD:
		break;
	default:
		print_size(row);
	}
	if (row->flags & UVERBSD_TREE_MANDATORY)
		printf(", mandatory");
	if (row->flags & UVERBSD_TREE_ALLOC_AND_COPY)
		printf(", read while parsing");
	if (row->flags & UVERBSD_TREE_UDATA)
		printf(", the provider's");
}

static void print_command(const struct uverbsd_tree_row *row)
{
	printf("%s request %u, response %u bytes", row->flags & UVERBSD_TREE_COMMAND_EX ? " extended:" : ":",
	       row->min_len, row->len);
	if (row->flags & UVERBSD_TREE_COMMAND_UDATA)
		printf(", driver data");
	if (row->flags & UVERBSD_TREE_COMMAND_NO_CONTEXT)
		printf(", needs no context");
}

/*
 * Prints the owner and the User Capability of a row if they differ from its parent's, and its sources if not all have
 * it.
 */
static void print_whose(const struct uvd_tree_view *view, const struct uvd_tree_entry *e,
			const struct uverbsd_tree_row *parent)
{
	const unsigned int all = (1u << view->num_sources) - 1;

	if (!parent || strcmp(parent->owner, e->row.owner))
		printf("  [%s]", e->row.owner);
	if (e->row.ucap[0] && (!parent || strcmp(parent->ucap, e->row.ucap)))
		printf("  wants UCAP %s", e->row.ucap);
	if (view->num_sources < 2 || e->served == all)
		return;
	printf("  only on");
	for (unsigned int i = 0; i < view->num_sources; i++)
		if (e->served & 1u << i)
			printf(" %s", view->sources[i]);
}

void uvd_view_print(const struct uvd_tree_view *view)
{
	const struct uverbsd_tree_row *object = NULL, *method = NULL, *parent;
	char id[8];

	printf("%s\n", view->title);
	for (size_t i = 0; i < view->num; i++) {
		const struct uvd_tree_entry *e = &view->entries[i];
		const struct uverbsd_tree_row *row = &e->row;

		switch (row->kind) {
		case UVERBSD_TREE_OBJECT:
			printf("\n%s %s%s%s", row->name, id_text(row->id, id), row->type ? " " : "",
			       row->type ? uvd_tree_class_name(row->type) : "");
			object = row;
			parent = NULL;
			break;
		case UVERBSD_TREE_METHOD:
			printf("  %s %s", row->name, id_text(row->id, id));
			method = row;
			parent = object;
			break;
		case UVERBSD_TREE_ATTR:
			printf("    %s %s:", row->name, id_text(row->id, id));
			print_attr(view, row);
			parent = method;
			break;
		case UVERBSD_TREE_ELEM:
			printf("      %s %s:", row->name, id_text(row->id, id));
			print_attr(view, row);
			parent = method;
			break;
		case UVERBSD_TREE_COMMAND:
			printf("  %s %u", row->name, row->id);
			print_command(row);
			parent = object;
			break;
		default: /* a kind of row that is newer than this program */
			continue;
		}
		print_whose(view, e, parent);
		putchar('\n');
	}
}
