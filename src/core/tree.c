/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Merges features into a device's parse tree: rarely, so the code aims at clarity, not at speed. */
#include "core/tree.h"

#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <stdlib.h>
#include <string.h>
#include <uverbsd/log.h>

#include "util/util.h"

enum { NS_SHIFT = 12, NUMBER = (1 << NS_SHIFT) - 1, NAMESPACES = 2, ANY_OBJECT = 0xffff };

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

	if (ns >= NAMESPACES || n >= tree->num_objects[ns] || !tree->objects[ns][n].row)
		return NULL;
	return &tree->objects[ns][n];
}

static struct uvd_tree_method *method_of(const struct uvd_tree_object *to, uint16_t id)
{
	const unsigned int ns = ns_of(id), n = number_of(id);

	if (ns >= NAMESPACES || n >= to->num_methods[ns] || !to->methods[ns][n].row)
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

	if (ns >= NAMESPACES || n >= method->num_attrs[ns] || !method->attrs[ns][n].row)
		return NULL;
	return &method->attrs[ns][n];
}

/* ---- building ---------------------------------------------------------------------------------------------------- */

struct merge {
	struct uvd_tree *tree;
	const struct uvd_backend *ops;
	struct uvd_log *log;
	const char *owner, *ucap; /* of the feature that is being merged */
};

/*
 * Returns the entry of `id` in a table that namespace and number index, and enlarges the table if needed. NULL: *err is
 * -EINVAL or -ENOMEM.
 */
static void *tree_slot_of(void *tables[], uint16_t *counts, size_t size, uint16_t id, int *err)
{
	const unsigned int ns = ns_of(id), n = number_of(id);
	char *table;

	*err = -EINVAL;
	if (ns >= NAMESPACES)
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
	uvd_logf(m->log, UVD_ERR, "%s %s is both '%s' and '%s': one of them cannot be loaded", what, name, owner,
		 m->owner);
	return -EEXIST;
}

static int tree_contradiction(const struct merge *m, const char *name, const char *why)
{
	uvd_logf(m->log, UVD_ERR, "%s of '%s': %s", name, m->owner ? m->owner : "several features", why);
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

/*
 * A row without steps adds its attributes to the method; only one row of a method may have steps. Extending a method
 * requires its exact name: one id under two names is a conflict, as when two drivers use the same number.
 */
static int merge_method(const struct merge *m, struct uvd_tree_object *to, const struct uvd_method_row *row)
{
	struct uvd_tree_method *tm;
	int err;

	tm = tree_slot_of((void **)to->methods, to->num_methods, sizeof(*tm), row->id, &err);
	if (!tm)
		return bad_id(m, row->name, err);
	if (tm->row && (strcmp(tm->row->name, row->name) || (tm->row->steps && row->steps)))
		return tree_conflict(m, "method", row->name, tm->owner);
	if (!tm->row || row->steps) {
		tm->row = row;
		tm->owner = m->owner;
		tm->ucap = m->ucap;
	}
	for (unsigned int i = 0; i < row->num_attrs && !err; i++)
		err = merge_attr(m, tm, &row->attrs[i]);
	return err;
}

static int merge_write(const struct merge *m, const struct uvd_object_row *object, const struct uvd_write_row *row)
{
	const unsigned int ex = !!(row->flags & UVD_WRITE_EX);
	struct uvd_tree *tree = m->tree;
	struct uvd_tree_write *tw;

	if (row->number > IB_USER_VERBS_CMD_COMMAND_MASK)
		return tree_contradiction(m, row->name, "its number has more than 8 bits");
	if (!row->steps)
		return tree_contradiction(m, row->name, "it has no steps");
	if (!ex && (row->flags & UVD_WRITE_RESP) && row->req_size < sizeof(uint64_t))
		return tree_contradiction(m, row->name, "its request has no room for the response's address");
	if (row->number >= tree->num_writes[ex]) {
		tw = realloc(tree->writes[ex], (row->number + 1) * sizeof(*tw));
		if (!tw)
			return -ENOMEM;
		for (unsigned int i = tree->num_writes[ex]; i <= row->number; i++)
			tw[i] = (struct uvd_tree_write){ 0 };
		tree->writes[ex] = tw;
		tree->num_writes[ex] = row->number + 1;
	}
	tw = &tree->writes[ex][row->number];
	if (tw->row)
		return tree_conflict(m, "command", row->name, tw->owner);
	*tw = (struct uvd_tree_write){ .row = row, .object = object, .owner = m->owner, .ucap = m->ucap };
	return 0;
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
	for (unsigned int ns = 0; ns < NAMESPACES; ns++) {
		free(tm->attrs[ns]);
		tm->attrs[ns] = NULL;
		tm->num_attrs[ns] = 0;
	}
	tm->row = NULL;
}

static void drop_missing_methods(const struct merge *m, struct uvd_tree_object *to)
{
	for (unsigned int ns = 0; ns < NAMESPACES; ns++) {
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
				*tw = (struct uvd_tree_write){ 0 };
		}
		while (tree->num_writes[ex] && !tree->writes[ex][tree->num_writes[ex] - 1].row)
			tree->num_writes[ex]--;
	}
}

static void drop_missing(const struct merge *m)
{
	for (unsigned int ns = 0; ns < NAMESPACES; ns++)
		for (unsigned int o = 0; o < m->tree->num_objects[ns]; o++)
			drop_missing_methods(m, &m->tree->objects[ns][o]);
	drop_missing_writes(m);
}

/* ---- finishing --------------------------------------------------------------------------------------------------- */

/* Does the device have all objects that mandatory attributes name? A method that lacks one is absent. */
static bool tree_method_callable(const struct uvd_tree *tree, const struct uvd_tree_method *tm)
{
	for (unsigned int ns = 0; ns < NAMESPACES; ns++) {
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

static int finish_method(const struct merge *m, struct uvd_tree_method *tm)
{
	bool single = false;
	int err = 0;

	if (!tree_method_callable(m->tree, tm)) {
		remove_method(tm);
		return 0;
	}
	tm->destroy_slot = tm->uhw_in_slot = tm->uhw_out_slot = -1;
	for (unsigned int ns = 0; ns < NAMESPACES; ns++)
		for (unsigned int i = 0; i < tm->num_attrs[ns] && !err; i++)
			if (tm->attrs[ns][i].row)
				err = finish_attr(m, tm, &tm->attrs[ns][i], &single);
	if (!err && !tm->row->steps && tm->destroy_slot < 0)
		return tree_contradiction(m, tm->row->name, "it does nothing");
	return err;
}

static int tree_finish(const struct merge *m)
{
	int err = 0;

	for (unsigned int ns = 0; ns < NAMESPACES; ns++) {
		for (unsigned int o = 0; o < m->tree->num_objects[ns]; o++) {
			struct uvd_tree_object *to = &m->tree->objects[ns][o];

			for (unsigned int mns = 0; mns < NAMESPACES; mns++)
				for (unsigned int i = 0; i < to->num_methods[mns] && !err; i++)
					if (to->methods[mns][i].row)
						err = finish_method(m, &to->methods[mns][i]);
		}
	}
	return err;
}

struct uvd_tree *uvd_tree_new(const struct uvd_feature *const *features, const struct uvd_backend *ops,
			      uint16_t driver_id, struct uvd_log *log, int *err)
{
	struct merge m = { .tree = uvd_zalloc(sizeof(*m.tree)), .ops = ops, .log = log };

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

void uvd_tree_free(struct uvd_tree *tree)
{
	if (!tree)
		return;
	for (unsigned int ns = 0; ns < NAMESPACES; ns++) {
		for (unsigned int o = 0; o < tree->num_objects[ns]; o++) {
			struct uvd_tree_object *to = &tree->objects[ns][o];

			for (unsigned int mns = 0; mns < NAMESPACES; mns++) {
				for (unsigned int i = 0; i < to->num_methods[mns]; i++)
					remove_method(&to->methods[mns][i]);
				free(to->methods[mns]);
			}
		}
		free(tree->objects[ns]);
		free(tree->writes[ns]);
	}
	free(tree);
}
