/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Merges features into a device's parse tree: rarely, so the code aims at clarity, not at speed. */
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uverbsd/log.h>

#include "core/internal.h"
#include "util/util.h"

enum { NS_SHIFT = 12, NUMBER = (1 << NS_SHIFT) - 1, ANY_OBJECT = 0xffff };

static unsigned int ns_of(uint16_t id)
{
	return id >> NS_SHIFT;
}

static unsigned int number_of(uint16_t id)
{
	return id & NUMBER;
}

/* ---- look-up ----------------------------------------------------------------------------------------------------- */

const struct uvd_tree_object *uvd_tree_object(const struct uvd_tree *tree, uint16_t id)
{
	const unsigned int ns = ns_of(id), n = number_of(id);

	if (ns >= UVD_TREE_NAMESPACES || n >= tree->num_objects[ns] || !tree->objects[ns][n].row)
		return NULL;
	return &tree->objects[ns][n];
}

static struct uvd_tree_method *method_of(const struct uvd_tree_object *to, uint16_t id)
{
	const unsigned int ns = ns_of(id), n = number_of(id);

	if (ns >= UVD_TREE_NAMESPACES || n >= to->num_methods[ns] || !to->methods[ns][n].row)
		return NULL;
	return &to->methods[ns][n];
}

const struct uvd_tree_method *uvd_tree_method(const struct uvd_tree *tree, uint16_t object, uint16_t id)
{
	const struct uvd_tree_object *to = uvd_tree_object(tree, object);

	return to ? method_of(to, id) : NULL;
}

const struct uvd_tree_attr *uvd_tree_attr(const struct uvd_tree_method *method, uint16_t id)
{
	const unsigned int ns = ns_of(id), n = number_of(id);

	if (ns >= UVD_TREE_NAMESPACES || n >= method->num_attrs[ns] || !method->attrs[ns][n].row)
		return NULL;
	return &method->attrs[ns][n];
}

/* ---- building ---------------------------------------------------------------------------------------------------- */

struct merge {
	struct uvd_tree *tree;
	const struct uvd_backend *ops;
	struct uvd_log *log;
	char *error; /* UVD_PLUGIN_ERROR bytes for the message; NULL: it goes to the log */
	const char *owner, *ucap; /* of the feature that is being merged */
};

static void tree_say(const struct merge *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void tree_say(const struct merge *m, const char *fmt, ...)
{
	char text[UVD_PLUGIN_ERROR];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (m->error)
		strcpy(m->error, text);
	else
		uvd_logf(m->log, UVD_ERR, "%s", text);
}

/*
 * Returns the entry of `id` in a table that namespace and number index, and enlarges the table if needed. NULL: *err is
 * -EINVAL or -ENOMEM.
 */
static void *tree_slot_of(void *tables[], uint16_t *counts, size_t size, uint16_t id, int *err)
{
	const unsigned int ns = ns_of(id), n = number_of(id);
	char *table;

	*err = -EINVAL;
	if (ns >= UVD_TREE_NAMESPACES)
		return NULL;
	if (n >= counts[ns]) {
		*err = -ENOMEM;
		table = realloc(tables[ns], (n + 1) * size);
		if (!table)
			return NULL;
		for (size_t i = counts[ns] * size; i < (n + 1) * size; i++)
			table[i] = 0;
		tables[ns] = table;
		counts[ns] = n + 1;
	}
	*err = 0;
	return (char *)tables[ns] + n * size;
}

static int tree_conflict(const struct merge *m, const char *what, const char *name, const char *owner)
{
	tree_say(m, "%s %s is both '%s' and '%s': one of them cannot be loaded", what, name, owner, m->owner);
	return -EEXIST;
}

static int tree_contradiction(const struct merge *m, const char *name, const char *why)
{
	tree_say(m, "%s of '%s': %s", name, m->owner ? m->owner : "several features", why);
	return -EINVAL;
}

static int bad_id(const struct merge *m, const char *name, int err)
{
	return err == -EINVAL ? tree_contradiction(m, name, "its id is in no namespace") : err;
}

static bool backend_has(const struct uvd_backend *ops, const uint16_t needs[UVD_NEEDS])
{
	for (unsigned int i = 0; ops && i < UVD_NEEDS && needs[i]; i++)
		if (!*(void *const *)((const char *)ops + needs[i]))
			return false;
	return true;
}

static int tree_attr_check(const struct merge *m, const struct uvd_attr_row *row)
{
	if (row->type < UVD_ATTR_PTR_IN || row->type > UVD_ATTR_RAW_FD)
		return tree_contradiction(m, row->name, "it has no type");
	if (row->min_len > row->len)
		return tree_contradiction(m, row->name, "its least size exceeds its size");
	if (row->type == UVD_ATTR_ENUM_IN && !row->elems)
		return tree_contradiction(m, row->name, "it has no elements");
	return 0;
}

static int merge_attr(const struct merge *m, struct uvd_tree_method *tm, const struct uvd_attr_row *row)
{
	struct uvd_tree_attr *ta;
	int err = tree_attr_check(m, row);

	if (err)
		return err;
	ta = tree_slot_of((void **)tm->attrs, tm->num_attrs, sizeof(*ta), row->id, &err);
	if (!ta)
		return bad_id(m, row->name, err);
	if (ta->row)
		return tree_conflict(m, "attribute", row->name, ta->owner);
	ta->row = row;
	ta->owner = m->owner;
	ta->ucap = m->ucap;
	return 0;
}

/* Adds a row that wraps another feature's steps. */
static int merge_wrap(const struct merge *m, struct uvd_tree_wrap **wraps, const char *what, const char *name,
		      enum uvd_when when, const uvd_step *steps)
{
	const char *other;
	int err;

	if (!steps || !*steps)
		return tree_contradiction(m, name, "it wraps, but has no steps");
	err = uvd_tree_wrap_add(wraps, when, steps, m->owner, &other);
	return err == -EEXIST ? tree_conflict(m, what, name, other) : err;
}

static bool method_defines(const struct uvd_method_row *row)
{
	return row->steps && row->when == UVD_STEPS_OWN;
}

/*
 * A row without steps adds its attributes to the method; only one row of a method may have steps. Extending a method
 * requires its exact name: one id under two names is a conflict, as when two drivers use the same number.
 */
static int merge_method(const struct merge *m, struct uvd_tree_object *to, const struct uvd_method_row *row)
{
	struct uvd_tree_method *tm;
	int err;

	if (row->when != UVD_STEPS_OWN && !backend_has(m->ops, row->needs))
		return 0;
	tm = tree_slot_of((void **)to->methods, to->num_methods, sizeof(*tm), row->id, &err);
	if (!tm)
		return bad_id(m, row->name, err);
	if (tm->row && (strcmp(tm->row->name, row->name) || (method_defines(tm->row) && method_defines(row))))
		return tree_conflict(m, "method", row->name, tm->owner);
	err = row->when == UVD_STEPS_OWN ? 0 : merge_wrap(m, &tm->wraps, "method", row->name, row->when, row->steps);
	/* A wrapper is never the method's row, unless it is the only one; finish_method() refuses that. */
	if (!tm->row || method_defines(row) || (tm->row->when != UVD_STEPS_OWN && row->when == UVD_STEPS_OWN)) {
		tm->row = row;
		tm->owner = m->owner;
		tm->ucap = m->ucap;
	}
	for (unsigned int i = 0; i < row->num_attrs && !err; i++)
		err = merge_attr(m, tm, &row->attrs[i]);
	return err;
}

/* Finds the entry of a command, and enlarges the table if needed. NULL: no memory. */
static struct uvd_tree_write *tree_write_slot(struct uvd_tree *tree, bool ex, uint16_t number)
{
	struct uvd_tree_write *tw;

	if (number >= tree->num_writes[ex]) {
		tw = realloc(tree->writes[ex], (number + 1) * sizeof(*tw));
		if (!tw)
			return NULL;
		for (unsigned int i = tree->num_writes[ex]; i <= number; i++)
			tw[i] = (struct uvd_tree_write){ 0 };
		tree->writes[ex] = tw;
		tree->num_writes[ex] = number + 1;
	}
	return &tree->writes[ex][number];
}

static int merge_write(const struct merge *m, const struct uvd_object_row *object, const struct uvd_write_row *row)
{
	const unsigned int ex = !!(row->flags & UVD_WRITE_EX);
	struct uvd_tree_write *tw;

	if (row->when != UVD_STEPS_OWN && !backend_has(m->ops, row->needs))
		return 0;
	if (row->number > IB_USER_VERBS_CMD_COMMAND_MASK)
		return tree_contradiction(m, row->name, "its number has more than 8 bits");
	if (!row->steps)
		return tree_contradiction(m, row->name, "it has no steps");
	if (row->when == UVD_STEPS_OWN && !ex && (row->flags & UVD_WRITE_RESP) && row->req_size < sizeof(uint64_t))
		return tree_contradiction(m, row->name, "its request has no room for the response's address");
	tw = tree_write_slot(m->tree, ex, row->number);
	if (!tw)
		return -ENOMEM;
	if (tw->row &&
	    (strcmp(tw->row->name, row->name) || (tw->row->when == UVD_STEPS_OWN && row->when == UVD_STEPS_OWN)))
		return tree_conflict(m, "command", row->name, tw->owner);
	if (!tw->row || row->when == UVD_STEPS_OWN) {
		tw->row = row;
		tw->object = object;
		tw->owner = m->owner;
		tw->ucap = m->ucap;
	}
	if (row->when == UVD_STEPS_OWN)
		return 0;
	return merge_wrap(m, &tw->wraps, "command", row->name, row->when, row->steps);
}

/* Only one row may define an object's class and destroy function. A row that only adds methods has neither. */
static int merge_object(const struct merge *m, const struct uvd_object_row *row)
{
	const bool defines = row->cls != UVD_CLASS_NONE || row->destroy;
	struct uvd_tree_object *to;
	int err;

	if (row->id == ANY_OBJECT)
		return tree_contradiction(m, row->name, "its id means any object");
	to = tree_slot_of((void **)m->tree->objects, m->tree->num_objects, sizeof(*to), row->id, &err);
	if (!to)
		return bad_id(m, row->name, err);
	if (to->row && (strcmp(to->row->name, row->name) || (defines && to->row->cls != UVD_CLASS_NONE)))
		return tree_conflict(m, "object", row->name, to->owner);
	if (!to->row || defines) {
		to->row = row;
		to->owner = m->owner;
		to->ucap = m->ucap;
	}
	if (!backend_has(m->ops, row->needs))
		to->missing = true;
	err = 0;
	for (unsigned int i = 0; i < row->num_methods && !err; i++)
		err = merge_method(m, to, &row->methods[i]);
	for (unsigned int i = 0; i < row->num_writes && !err; i++)
		err = merge_write(m, row, &row->writes[i]);
	return err;
}

/* ---- what the backend lacks -------------------------------------------------------------------------------------- */

static void remove_method(struct uvd_tree_method *tm)
{
	for (unsigned int ns = 0; ns < UVD_TREE_NAMESPACES; ns++) {
		free(tm->attrs[ns]);
		tm->attrs[ns] = NULL;
		tm->num_attrs[ns] = 0;
	}
	uvd_tree_wraps_free(&tm->wraps);
	free(tm->merged);
	free(tm->merged_before);
	tm->merged = tm->merged_before = NULL;
	tm->row = NULL;
}

static void remove_write(struct uvd_tree_write *tw)
{
	uvd_tree_wraps_free(&tw->wraps);
	free(tw->merged);
	*tw = (struct uvd_tree_write){ 0 };
}

static void drop_missing_methods(const struct merge *m, struct uvd_tree_object *to)
{
	for (unsigned int ns = 0; ns < UVD_TREE_NAMESPACES; ns++) {
		for (unsigned int i = 0; i < to->num_methods[ns]; i++) {
			struct uvd_tree_method *tm = &to->methods[ns][i];

			if (tm->row && (to->missing || !backend_has(m->ops, tm->row->needs)))
				remove_method(tm);
		}
	}
	if (to->missing)
		to->row = NULL;
}

/* num_writes, the highest number + 1, counts only the commands that remain (write-05). */
static void drop_missing_writes(const struct merge *m)
{
	struct uvd_tree *tree = m->tree;

	for (unsigned int ex = 0; ex < 2; ex++) {
		for (unsigned int i = 0; i < tree->num_writes[ex]; i++) {
			struct uvd_tree_write *tw = &tree->writes[ex][i];

			if (tw->row && (!uvd_tree_object(tree, tw->object->id) || !backend_has(m->ops, tw->row->needs)))
				remove_write(tw);
		}
		while (tree->num_writes[ex] && !tree->writes[ex][tree->num_writes[ex] - 1].row)
			tree->num_writes[ex]--;
	}
}

static void drop_missing(const struct merge *m)
{
	for (unsigned int ns = 0; ns < UVD_TREE_NAMESPACES; ns++)
		for (unsigned int o = 0; o < m->tree->num_objects[ns]; o++)
			drop_missing_methods(m, &m->tree->objects[ns][o]);
	drop_missing_writes(m);
}

/* ---- finishing --------------------------------------------------------------------------------------------------- */

/* Does the device have all objects that mandatory attributes name? A method that lacks one is absent. */
static bool tree_method_callable(const struct uvd_tree *tree, const struct uvd_tree_method *tm)
{
	for (unsigned int ns = 0; ns < UVD_TREE_NAMESPACES; ns++) {
		for (unsigned int i = 0; i < tm->num_attrs[ns]; i++) {
			const struct uvd_attr_row *row = tm->attrs[ns][i].row;

			if (!row || !(row->flags & UVD_MANDATORY) || row->object == ANY_OBJECT)
				continue;
			if ((row->type == UVD_ATTR_IDR || row->type == UVD_ATTR_FD ||
			     row->type == UVD_ATTR_IDRS_ARRAY) &&
			    !uvd_tree_object(tree, row->object))
				return false;
		}
	}
	return true;
}

/*
 * Gives the attribute its slot. As in the kernel, a method has at most one NEW or DESTROY, and that is mandatory: an
 * error could not undo more than one.
 */
static int finish_attr(const struct merge *m, struct uvd_tree_method *tm, struct uvd_tree_attr *ta, bool *single)
{
	const struct uvd_attr_row *row = ta->row;

	ta->slot = tm->num_slots++;
	if (row->flags & UVD_MANDATORY)
		tm->num_mandatory++;
	if (row->flags & UVD_UDATA)
		tm->has_udata = true;
	if (row->id == UVD_ATTR_UHW_IN && (row->flags & UVD_UDATA))
		tm->uhw_in_slot = ta->slot;
	if (row->id == UVD_ATTR_UHW_OUT && (row->flags & UVD_UDATA))
		tm->uhw_out_slot = ta->slot;
	if (row->type != UVD_ATTR_IDR && row->type != UVD_ATTR_FD)
		return 0;
	if (row->access != UVD_UOBJ_NEW && row->access != UVD_UOBJ_DESTROY)
		return 0;
	if (*single)
		return tree_contradiction(m, tm->row->name, "it makes or ends more than one object");
	if (!(row->flags & UVD_MANDATORY))
		return tree_contradiction(m, row->name, "it makes or ends an object, but is not mandatory");
	*single = true;
	if (row->access == UVD_UOBJ_DESTROY)
		tm->destroy_slot = ta->slot;
	return 0;
}

static int tree_wraps_nothing(const struct merge *m, const char *name, const char *owner)
{
	const struct merge of_owner = { .log = m->log, .error = m->error, .owner = owner };

	return tree_contradiction(&of_owner, name, "it wraps what no feature has");
}

/* Sets what dispatch runs. A plain method uses its row's own steps. */
static int finish_method_steps(const struct merge *m, struct uvd_tree_method *tm)
{
	const bool destroys = tm->destroy_slot >= 0;
	int err;

	if (tm->row->when != UVD_STEPS_OWN)
		return tree_wraps_nothing(m, tm->row->name, tm->owner);
	if (!tm->row->steps && !destroys)
		return tree_contradiction(m, tm->row->name, "it does nothing");
	tm->steps = tm->row->steps;
	if (!tm->wraps)
		return 0;
	err = uvd_tree_steps_merge(tm->wraps, tm->row->steps, !destroys, true, &tm->merged);
	if (!err && destroys)
		err = uvd_tree_steps_merge(tm->wraps, NULL, true, false, &tm->merged_before);
	tm->steps = tm->merged;
	tm->before = tm->merged_before;
	return err;
}

static int finish_method(const struct merge *m, struct uvd_tree_method *tm)
{
	bool single = false;
	int err = 0;

	if (!tree_method_callable(m->tree, tm)) {
		remove_method(tm);
		return 0;
	}
	tm->destroy_slot = tm->uhw_in_slot = tm->uhw_out_slot = -1;
	tm->verb = uvd_allow_verb(tm->row->name);
	for (unsigned int ns = 0; ns < UVD_TREE_NAMESPACES; ns++)
		for (unsigned int i = 0; i < tm->num_attrs[ns] && !err; i++)
			if (tm->attrs[ns][i].row)
				err = finish_attr(m, tm, &tm->attrs[ns][i], &single);
	return err ?: finish_method_steps(m, tm);
}

static int finish_write(const struct merge *m, struct uvd_tree_write *tw)
{
	int err = 0;

	if (!tw->row)
		return 0;
	if (tw->row->when != UVD_STEPS_OWN)
		return tree_wraps_nothing(m, tw->row->name, tw->owner);
	tw->steps = tw->row->steps;
	tw->verb = uvd_allow_verb(tw->row->name);
	if (tw->wraps) {
		err = uvd_tree_steps_merge(tw->wraps, tw->row->steps, true, true, &tw->merged);
		tw->steps = tw->merged;
	}
	return err;
}

static int tree_finish(const struct merge *m)
{
	int err = 0;

	for (unsigned int ns = 0; ns < UVD_TREE_NAMESPACES; ns++) {
		for (unsigned int o = 0; o < m->tree->num_objects[ns]; o++) {
			struct uvd_tree_object *to = &m->tree->objects[ns][o];

			for (unsigned int mns = 0; mns < UVD_TREE_NAMESPACES; mns++)
				for (unsigned int i = 0; i < to->num_methods[mns] && !err; i++)
					if (to->methods[mns][i].row)
						err = finish_method(m, &to->methods[mns][i]);
		}
	}
	for (unsigned int ex = 0; ex < 2; ex++)
		for (unsigned int i = 0; i < m->tree->num_writes[ex] && !err; i++)
			err = finish_write(m, &m->tree->writes[ex][i]);
	return err;
}

struct uvd_tree *uvd_tree_merge(const struct uvd_feature *const *features, const struct uvd_backend *ops,
				uint16_t driver_id, struct uvd_log *log, char error[UVD_PLUGIN_ERROR], int *err)
{
	struct merge m = { .tree = uvd_zalloc(sizeof(*m.tree)), .ops = ops, .log = log, .error = error };

	if (!m.tree) {
		*err = -ENOMEM;
		return NULL;
	}
	m.tree->driver_id = driver_id;
	*err = 0;
	for (; *features && !*err; features++) {
		m.owner = (*features)->name;
		m.ucap = (*features)->ucap;
		for (const struct uvd_object_row *const *o = (*features)->objects; o && *o && !*err; o++)
			*err = merge_object(&m, *o);
	}
	m.owner = NULL;
	if (!*err) {
		drop_missing(&m);
		*err = tree_finish(&m);
	}
	if (*err) {
		uvd_tree_free(m.tree);
		return NULL;
	}
	return m.tree;
}

struct uvd_tree *uvd_tree_new(const struct uvd_feature *const *features, const struct uvd_backend *ops,
			      uint16_t driver_id, struct uvd_log *log, int *err)
{
	return uvd_tree_merge(features, ops, driver_id, log, NULL, err);
}

void uvd_tree_free(struct uvd_tree *tree)
{
	if (!tree)
		return;
	for (unsigned int ns = 0; ns < UVD_TREE_NAMESPACES; ns++) {
		for (unsigned int o = 0; o < tree->num_objects[ns]; o++) {
			struct uvd_tree_object *to = &tree->objects[ns][o];

			for (unsigned int mns = 0; mns < UVD_TREE_NAMESPACES; mns++) {
				for (unsigned int i = 0; i < to->num_methods[mns]; i++)
					remove_method(&to->methods[mns][i]);
				free(to->methods[mns]);
			}
		}
		free(tree->objects[ns]);
		for (unsigned int i = 0; i < tree->num_writes[ns]; i++)
			remove_write(&tree->writes[ns][i]);
		free(tree->writes[ns]);
	}
	free(tree);
}
