/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The calls of a device's plug-ins, for programs: the rows of its tree whose roles the device tells, in the schema's form. */
#include "more.h"
#include "in_process.h"
#include "objects/objects.h"
#include "util/util.h"
#include <errno.h>
#include <stdlib.h>

/* All of it stays until the process ends. */
static struct {
	struct uvd_tree_view view;
	struct uvd_object_row *rows;
	const struct uvd_object_row **objects;
	struct uvd_method_row *methods;
	struct uvd_write_row *writes;
	struct uvd_attr_row *row_attrs;
	struct uvd_command_fields *commands;
	struct uvd_attr_fields *attrs;
	size_t num_objects, num_methods, num_writes, num_row_attrs, num_commands, num_attrs;
} more;

static bool object_is_common(uint16_t id)
{
	for (const struct uvd_object_row *const *o = uvd_feature_common.objects; *o; o++)
		if ((*o)->id == id)
			return true;
	return false;
}

/* Does the device tell a role of this row's children, or of the row itself? */
static bool row_is_told(const struct uverbsd_tree_row *of)
{
	for (size_t i = 0; i < more.view.num; i++) {
		const struct uverbsd_tree_row *row = &more.view.entries[i].row;

		if (row->object != of->object || !uvd_view_is_told(row))
			continue;
		if (row == of || of->kind == UVERBSD_TREE_OBJECT)
			return true;
		if (of->kind == UVERBSD_TREE_METHOD && row->kind == UVERBSD_TREE_ATTR && row->method == of->id)
			return true;
	}
	return false;
}

/* An object of a plug-in has all its calls. What a plug-in adds to others has those that are told. */
static bool row_is_wanted(const struct uverbsd_tree_row *row, const struct uverbsd_tree_row *object)
{
	return row_is_told(object_is_common(object->id) ? row : object);
}

static void more_add_attr(const struct uverbsd_tree_row *row)
{
	more.row_attrs[more.num_row_attrs++] = (struct uvd_attr_row){
		.name = row->name,
		.id = row->id,
		.type = row->type,
		.flags = row->flags,
		.access = row->access,
		.object = row->target,
		.min_len = row->min_len,
		.len = row->len,
	};
	if (!uvd_view_is_told(row))
		return;
	more.attrs[more.num_attrs] = *uvd_view_value(row);
	more.attrs[more.num_attrs++].attr = row->name;
}

/* Adds the method with its attributes, which follow its row. */
static void more_add_method(size_t at)
{
	const struct uvd_tree_entry *e = &more.view.entries[at];
	struct uvd_method_row *method = &more.methods[more.num_methods++];

	*method = (struct uvd_method_row){ .name = e->row.name, .id = e->row.id };
	method->attrs = &more.row_attrs[more.num_row_attrs];
	while (++at < more.view.num && more.view.entries[at].row.kind >= UVERBSD_TREE_ATTR &&
	       more.view.entries[at].row.kind <= UVERBSD_TREE_ELEM) {
		if (more.view.entries[at].row.kind == UVERBSD_TREE_ELEM)
			continue;
		more_add_attr(&more.view.entries[at].row);
		method->num_attrs++;
	}
}

static void more_add_command(const struct uverbsd_tree_row *row)
{
	more.writes[more.num_writes++] = (struct uvd_write_row){
		.name = row->name,
		.number = row->id,
		.flags = row->flags,
		.req_size = row->min_len,
		.resp_size = row->len,
	};
	if (!uvd_view_is_told(row))
		return;
	more.commands[more.num_commands] = *uvd_view_command(row);
	more.commands[more.num_commands++].command = row->name;
}

/* Adds the object with those of its calls that are wanted, unless there is none. */
static void more_add_object(size_t at)
{
	const struct uverbsd_tree_row *object = &more.view.entries[at].row;
	struct uvd_object_row *o = &more.rows[more.num_objects];

	*o = (struct uvd_object_row){ .name = object->name, .id = object->id, .cls = object->type };
	o->methods = &more.methods[more.num_methods];
	o->writes = &more.writes[more.num_writes];
	while (++at < more.view.num && more.view.entries[at].row.kind != UVERBSD_TREE_OBJECT) {
		const struct uverbsd_tree_row *row = &more.view.entries[at].row;

		if (row->kind == UVERBSD_TREE_METHOD && row_is_wanted(row, object)) {
			more_add_method(at);
			o->num_methods++;
		} else if (row->kind == UVERBSD_TREE_COMMAND && row_is_wanted(row, object)) {
			more_add_command(row);
			o->num_writes++;
		}
	}
	if (o->num_methods || o->num_writes)
		more.objects[more.num_objects++] = o;
}

/* Adds the view's calls to those that programs know. Returns 0 or -ENOMEM. */
static int more_add(void)
{
	const size_t num = more.view.num + 1;

	more.rows = calloc(num, sizeof(*more.rows));
	more.objects = calloc(num, sizeof(*more.objects));
	more.methods = calloc(num, sizeof(*more.methods));
	more.writes = calloc(num, sizeof(*more.writes));
	more.row_attrs = calloc(num, sizeof(*more.row_attrs));
	more.commands = calloc(num, sizeof(*more.commands));
	more.attrs = calloc(num, sizeof(*more.attrs));
	if (!more.rows || !more.objects || !more.methods || !more.writes || !more.row_attrs || !more.commands ||
	    !more.attrs)
		return -ENOMEM;
	for (size_t i = 0; i < more.view.num; i++)
		if (more.view.entries[i].row.kind == UVERBSD_TREE_OBJECT)
			more_add_object(i);
	uvd_shape_add(&(struct uvd_shape_added){ more.objects, more.commands, more.attrs });
	return 0;
}

int uvd_program_more_of_node(const char *who, const char *node, int fd)
{
	int ret;

	more.view.who = who;
	uvd_view_guess(&more.view, node);
	ret = uvd_view_ask_file(&more.view, fd);
	/* The kernel's device, or one without ioctl: it has no plug-ins. */
	if (ret == -EPROTONOSUPPORT || ret == -ENOTTY)
		return 0;
	uvd_view_finish(&more.view);
	return ret || !more.view.learned ? ret : more_add();
}

static int more_take_row(void *arg, const struct uverbsd_tree_row *row)
{
	return uvd_view_add(arg, row, 0);
}

static int more_take_role(void *arg, const struct uverbsd_tree_role *row)
{
	return uvd_view_add_role(arg, row);
}

int uvd_program_more_of_tree(const struct uvd_tree *tree)
{
	int ret = uvd_tree_describe(tree, more_take_row, &more.view);

	if (!ret)
		ret = uvd_tree_describe_roles(tree, more_take_role, &more.view);
	uvd_view_finish(&more.view);
	return ret || !more.view.learned ? ret : more_add();
}
