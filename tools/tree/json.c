/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Prints the rows of a parse tree as JSON. docs/tree.md describes the format; fields may be added. */
#include <jansson.h>
#include <stdio.h>

#include "../call/script.h"
#include "core/core.h"
#include "view.h"

static json_t *text_or_null(const char *text)
{
	return text && *text ? json_string(text) : json_null();
}

/* Makes an object with the fields that all kinds of rows have. */
static json_t *tree_json_row(const struct uvd_tree_view *view, const struct uvd_tree_entry *e)
{
	json_t *o = json_pack("{s:s, s:i}", "name", e->row.name, "id", e->row.id);
	json_t *backends;

	if (e->row.kind != UVERBSD_TREE_COMMAND && e->row.kind != UVERBSD_TREE_ELEM)
		json_object_set_new(o, "namespace", json_string(e->row.id & 0xf000 ? "driver" : "common"));
	json_object_set_new(o, "owner", json_string(e->row.owner));
	json_object_set_new(o, "ucap", text_or_null(e->row.ucap));
	if (!view->num_sources)
		return o;
	backends = json_array();
	for (unsigned int i = 0; i < view->num_sources; i++)
		if (e->served & 1u << i)
			json_array_append_new(backends, json_string(view->sources[i]));
	json_object_set_new(o, "backends", backends);
	return o;
}

static void add_sizes(json_t *o, const struct uverbsd_tree_row *row)
{
	json_object_set_new(o, "min_len", json_integer(row->min_len));
	json_object_set_new(o, "len", row->len == UVERBSD_TREE_LEN_ANY ? json_null() : json_integer(row->len));
	json_object_set_new(o, "zero_trailing", json_boolean(row->flags & UVERBSD_TREE_ZERO_TRAILING));
}

static json_t *tree_json_attr(const struct uvd_tree_view *view, const struct uvd_tree_entry *e)
{
	const struct uverbsd_tree_row *row = &e->row;
	json_t *o = tree_json_row(view, e);

	json_object_set_new(o, "type", json_string(uvd_tree_type_name(row->type)));
	json_object_set_new(o, "mandatory", json_boolean(row->flags & UVERBSD_TREE_MANDATORY));
	switch (row->type) {
	case UVERBSD_TREE_IDR:
	case UVERBSD_TREE_FD:
	case UVERBSD_TREE_IDRS_ARRAY:
		json_object_set_new(o, "access", json_string(uvd_tree_access_name(row->access)));
		json_object_set_new(o, "object_id", json_integer(row->target));
		json_object_set_new(o, "object", text_or_null(uvd_view_object(view, row->target)));
		if (row->type == UVERBSD_TREE_IDRS_ARRAY)
			add_sizes(o, row);
		break;
	case UVERBSD_TREE_ENUM_IN:
		json_object_set_new(o, "elements", json_array());
		break;
	case UVERBSD_TREE_RAW_FD:
		break;
	default:
		add_sizes(o, row);
	}
	json_object_set_new(o, "alloc_and_copy", json_boolean(row->flags & UVERBSD_TREE_ALLOC_AND_COPY));
	json_object_set_new(o, "udata", json_boolean(row->flags & UVERBSD_TREE_UDATA));
	if (uvd_view_is_told(row)) {
		json_object_set_new(o, "role", json_string(uvd_role_name(uvd_view_value(row)->role)));
		json_object_set_new(o, "value", uvd_value_json(uvd_view_value(row)));
	}
	return o;
}

static json_t *tree_json_command(const struct uvd_tree_view *view, const struct uvd_tree_entry *e)
{
	const struct uverbsd_tree_row *row = &e->row;
	json_t *o = tree_json_row(view, e);

	json_object_set_new(o, "extended", json_boolean(row->flags & UVERBSD_TREE_COMMAND_EX));
	json_object_set_new(o, "request_size", json_integer(row->min_len));
	json_object_set_new(o, "response_size", json_integer(row->len));
	json_object_set_new(o, "response_address_first", json_boolean(row->flags & UVERBSD_TREE_COMMAND_RESP));
	json_object_set_new(o, "driver_data", json_boolean(row->flags & UVERBSD_TREE_COMMAND_UDATA));
	json_object_set_new(o, "needs_context", json_boolean(!(row->flags & UVERBSD_TREE_COMMAND_NO_CONTEXT)));
	if (uvd_view_is_told(row)) {
		json_object_set_new(o, "request", uvd_struct_json(uvd_view_command(row)->request));
		json_object_set_new(o, "response", uvd_struct_json(uvd_view_command(row)->response));
	}
	return o;
}

/* Rows come in order, so a row's parent is the last row of the parent's kind. */
static json_t *tree_json_objects(const struct uvd_tree_view *view)
{
	json_t *all = json_array(), *object = NULL, *method = NULL, *attr = NULL;

	for (size_t i = 0; i < view->num; i++) {
		const struct uvd_tree_entry *e = &view->entries[i];

		switch (e->row.kind) {
		case UVERBSD_TREE_OBJECT:
			object = tree_json_row(view, e);
			json_object_set_new(object, "class", json_string(uvd_tree_class_name(e->row.type)));
			json_object_set_new(object, "methods", json_array());
			json_object_set_new(object, "commands", json_array());
			json_array_append_new(all, object);
			break;
		case UVERBSD_TREE_METHOD:
			method = tree_json_row(view, e);
			json_object_set_new(method, "attributes", json_array());
			json_array_append_new(json_object_get(object, "methods"), method);
			break;
		case UVERBSD_TREE_ATTR:
			attr = tree_json_attr(view, e);
			json_array_append_new(json_object_get(method, "attributes"), attr);
			break;
		case UVERBSD_TREE_ELEM:
			json_array_append_new(json_object_get(attr, "elements"), tree_json_attr(view, e));
			break;
		case UVERBSD_TREE_COMMAND:
			json_array_append_new(json_object_get(object, "commands"), tree_json_command(view, e));
			break;
		}
	}
	return all;
}

bool uvd_view_print_json(const struct uvd_tree_view *view)
{
	json_t *all = json_object(), *backends;
	int ret;

	if (view->device) {
		json_object_set_new(all, "device", json_string(view->device));
	} else {
		backends = json_array();
		for (unsigned int i = 0; i < view->num_sources; i++)
			json_array_append_new(backends, json_string(view->sources[i]));
		json_object_set_new(all, "backends", backends);
		json_object_set_new(all, "persona", json_string(view->persona));
	}
	json_object_set_new(all, "driver_id", json_integer(view->driver_id));
	json_object_set_new(all, "objects", tree_json_objects(view));
	ret = json_dumpf(all, stdout, JSON_INDENT(1));
	putchar('\n');
	json_decref(all);
	return !ret && !fflush(stdout);
}
