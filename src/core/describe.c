/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "core/describe.h"

#include <stdio.h>

#include "call/call.h"
#include "core/tree.h"

/* The numbers in a tree row are those of the schema. */
#define SAME(ours, schema) _Static_assert((int)(ours) == (int)(schema), #ours)
SAME(UVERBSD_TREE_CLASS_NONE, UVD_CLASS_NONE);
SAME(UVERBSD_TREE_CLASS_IDR, UVD_CLASS_IDR);
SAME(UVERBSD_TREE_CLASS_FD, UVD_CLASS_FD);
SAME(UVERBSD_TREE_PTR_IN, UVD_ATTR_PTR_IN);
SAME(UVERBSD_TREE_PTR_OUT, UVD_ATTR_PTR_OUT);
SAME(UVERBSD_TREE_CONST, UVD_ATTR_CONST);
SAME(UVERBSD_TREE_FLAGS, UVD_ATTR_FLAGS);
SAME(UVERBSD_TREE_IDR, UVD_ATTR_IDR);
SAME(UVERBSD_TREE_FD, UVD_ATTR_FD);
SAME(UVERBSD_TREE_IDRS_ARRAY, UVD_ATTR_IDRS_ARRAY);
SAME(UVERBSD_TREE_ENUM_IN, UVD_ATTR_ENUM_IN);
SAME(UVERBSD_TREE_RAW_FD, UVD_ATTR_RAW_FD);
SAME(UVERBSD_TREE_READ, UVD_UOBJ_READ);
SAME(UVERBSD_TREE_WRITE, UVD_UOBJ_WRITE);
SAME(UVERBSD_TREE_NEW, UVD_UOBJ_NEW);
SAME(UVERBSD_TREE_DESTROY, UVD_UOBJ_DESTROY);
SAME(UVERBSD_TREE_MANDATORY, UVD_MANDATORY);
SAME(UVERBSD_TREE_ZERO_TRAILING, UVD_ZERO_TRAILING);
SAME(UVERBSD_TREE_ALLOC_AND_COPY, UVD_ALLOC_AND_COPY);
SAME(UVERBSD_TREE_UDATA, UVD_UDATA);
SAME(UVERBSD_TREE_COMMAND_EX, UVD_WRITE_EX);
SAME(UVERBSD_TREE_COMMAND_RESP, UVD_WRITE_RESP);
SAME(UVERBSD_TREE_COMMAND_UDATA, UVD_WRITE_UDATA);
SAME(UVERBSD_TREE_COMMAND_NO_CONTEXT, UVD_WRITE_NO_CONTEXT);
SAME(UVERBSD_TREE_COMMAND_CM, UVD_WRITE_CM);
SAME(UVERBSD_TREE_LEN_ANY, UVD_LEN_ANY);

struct walk {
	const struct uvd_tree *tree;
	uvd_describe_fn fn; /* or NULL: */
	uvd_role_fn role_fn;
	void *arg;
};

static int say_row(const struct walk *w, struct uverbsd_tree_row *row, const char *name, const char *owner,
		   const char *ucap)
{
	if (!w->fn)
		return 0;
	snprintf(row->name, sizeof(row->name), "%s", name);
	snprintf(row->owner, sizeof(row->owner), "%s", owner);
	snprintf(row->ucap, sizeof(row->ucap), "%s", ucap ? ucap : "");
	return w->fn(w->arg, row);
}

/* Tells the roles of an attribute's value, or of that of one of its elements, if they are told and there are any. */
static int say_value(const struct walk *w, const struct uvd_tree_attr *ta, const struct uverbsd_tree_row *row,
		     const char *name)
{
	const struct uvd_attr_fields *value = w->fn ? NULL : uvd_attrs_find(ta->roles, name);

	return value ? uvd_value_describe(row, value, w->role_fn, w->arg) : 0;
}

static int say_elem(const struct walk *w, const struct uvd_tree_attr *ta, const struct uverbsd_tree_row *attr,
		    unsigned int i)
{
	const struct uvd_attr_row *elem = &ta->row->elems[i];
	struct uverbsd_tree_row row = {
		.kind = UVERBSD_TREE_ELEM,
		.type = elem->type,
		.flags = elem->flags,
		.object = attr->object,
		.method = attr->method,
		.attr = attr->id,
		.id = i,
		.min_len = elem->min_len,
		.len = elem->len,
	};

	return say_row(w, &row, elem->name, ta->owner, ta->ucap) ?: say_value(w, ta, &row, elem->name);
}

static int say_attr(const struct walk *w, uint16_t object, uint16_t method, const struct uvd_tree_attr *ta)
{
	const struct uvd_attr_row *attr = ta->row;
	const bool is_object =
		attr->type == UVD_ATTR_IDR || attr->type == UVD_ATTR_FD || attr->type == UVD_ATTR_IDRS_ARRAY;
	struct uverbsd_tree_row row = {
		.kind = UVERBSD_TREE_ATTR,
		.type = attr->type,
		.access = is_object ? attr->access : 0,
		.flags = attr->flags,
		.object = object,
		.method = method,
		.id = attr->id,
		.target = is_object ? attr->object : 0,
		.min_len = attr->min_len,
		.len = attr->len,
	};
	int ret = say_row(w, &row, attr->name, ta->owner, ta->ucap) ?: say_value(w, ta, &row, attr->name);

	for (unsigned int i = 0; i < attr->num_elems && !ret; i++)
		ret = say_elem(w, ta, &row, i);
	return ret;
}

static int say_method(const struct walk *w, uint16_t object, const struct uvd_tree_method *tm)
{
	struct uverbsd_tree_row row = {
		.kind = UVERBSD_TREE_METHOD,
		.object = object,
		.method = tm->row->id,
		.id = tm->row->id,
	};
	int ret = say_row(w, &row, tm->row->name, tm->owner, tm->ucap);

	for (unsigned int ns = 0; ns < UVD_TREE_NAMESPACES; ns++)
		for (unsigned int i = 0; i < tm->num_attrs[ns] && !ret; i++)
			if (tm->attrs[ns][i].row)
				ret = say_attr(w, object, tm->row->id, &tm->attrs[ns][i]);
	return ret;
}

static int say_command(const struct walk *w, const struct uvd_tree_write *tw)
{
	struct uverbsd_tree_row row = {
		.kind = UVERBSD_TREE_COMMAND,
		.flags = tw->row->flags,
		.object = tw->object->id,
		.id = tw->row->number,
		.min_len = tw->row->req_size,
		.len = tw->row->resp_size,
	};

	if (w->fn)
		return say_row(w, &row, tw->row->name, tw->owner, tw->ucap);
	return tw->roles.command ? uvd_command_describe(&row, &tw->roles, w->role_fn, w->arg) : 0;
}

static int say_object(const struct walk *w, const struct uvd_tree_object *to)
{
	const uint16_t id = to->row->id;
	struct uverbsd_tree_row row = { .kind = UVERBSD_TREE_OBJECT, .type = to->row->cls, .object = id, .id = id };
	int ret = say_row(w, &row, to->row->name, to->owner, to->ucap);

	for (unsigned int ns = 0; ns < UVD_TREE_NAMESPACES; ns++)
		for (unsigned int i = 0; i < to->num_methods[ns] && !ret; i++)
			if (to->methods[ns][i].row)
				ret = say_method(w, id, &to->methods[ns][i]);
	for (unsigned int ex = 0; ex < 2; ex++) {
		for (unsigned int i = 0; i < w->tree->num_writes[ex] && !ret; i++) {
			const struct uvd_tree_write *tw = &w->tree->writes[ex][i];

			if (tw->row && tw->object->id == id)
				ret = say_command(w, tw);
		}
	}
	return ret;
}

static int say_tree(const struct walk *w)
{
	const struct uvd_tree *tree = w->tree;
	int ret = 0;

	for (unsigned int ns = 0; ns < UVD_TREE_NAMESPACES; ns++)
		for (unsigned int i = 0; i < tree->num_objects[ns] && !ret; i++)
			if (tree->objects[ns][i].row)
				ret = say_object(w, &tree->objects[ns][i]);
	return ret;
}

int uvd_tree_describe(const struct uvd_tree *tree, uvd_describe_fn fn, void *arg)
{
	return say_tree(&(struct walk){ .tree = tree, .fn = fn, .arg = arg });
}

int uvd_tree_describe_roles(const struct uvd_tree *tree, int (*fn)(void *arg, const struct uverbsd_tree_role *row),
			    void *arg)
{
	return say_tree(&(struct walk){ .tree = tree, .role_fn = fn, .arg = arg });
}

/* ---- names of types, accesses and classes ------------------------------------------------------------------------ */

#define WORD(words, i) ((i) < UVD_COUNT(words) ? (words)[i] : "?")

const char *uvd_tree_type_name(unsigned int type)
{
	static const char *const words[] = { "?",   "PTR_IN", "PTR_OUT",    "CONST",   "FLAGS",
					     "IDR", "FD",     "IDRS_ARRAY", "ENUM_IN", "RAW_FD" };

	return WORD(words, type);
}

const char *uvd_tree_access_name(unsigned int access)
{
	static const char *const words[] = { "READ", "WRITE", "NEW", "DESTROY" };

	return WORD(words, access);
}

const char *uvd_tree_class_name(unsigned int cls)
{
	static const char *const words[] = { "none", "IDR", "FD" };

	return WORD(words, cls);
}
