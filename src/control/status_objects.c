/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The objects of an open file as a tree, for the answer to `status`. */
#include <rdma/ib_user_ioctl_cmds.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "allow/allow.h"
#include "control/control.h"
#include "core/core.h"

enum { OBJECTS_OF_FILE = 256 /* at most */ };

/* A copy, and what becomes of it. */
struct objects_entry {
	const struct uvd_object_copy *copy;
	json_t *json; /* a reference */
};

/* By type and pointer: a pointer that a client's free and malloc give out again names one object of each type at most. */
static int objects_compare(const void *a, const void *b)
{
	const struct uvd_object_copy *x = ((const struct objects_entry *)a)->copy;
	const struct uvd_object_copy *y = ((const struct objects_entry *)b)->copy;

	if (x->type != y->type)
		return x->type < y->type ? -1 : 1;
	if (x->facts.self != y->facts.self)
		return (uintptr_t)x->facts.self < (uintptr_t)y->facts.self ? -1 : 1;
	return 0;
}

static void objects_add_values(json_t *json, const struct uvd_object_copy *c)
{
	const uint64_t *values = c->facts.values;
	char access[256];
	const char *word;

	switch (c->type) {
	case UVERBS_OBJECT_MR:
		json_object_set_new(json, "length", json_integer(values[0] > INT64_MAX ? INT64_MAX : values[0]));
		uvd_allow_access_names(values[1], access, sizeof(access));
		json_object_set_new(json, "access", json_string(access));
		break;
	case UVERBS_OBJECT_QP:
		word = uvd_allow_qp_type_name(values[0]);
		json_object_set_new(json, "qp_type",
				    word ? json_string(word) : json_sprintf("%llu", (unsigned long long)values[0]));
		json_object_set_new(json, "qp_num", json_integer(values[1]));
		break;
	case UVERBS_OBJECT_CQ:
		json_object_set_new(json, "cqe", json_integer(values[0]));
		break;
	}
}

static json_t *objects_json(const struct uvd_device *dev, const struct uvd_object_copy *c)
{
	const struct uvd_object_count *named = &dev->object_counts[c->count];
	const bool has_name = atomic_load_explicit(&named->state, memory_order_acquire) == UVD_COUNT_NAMED;
	json_t *json = json_object();

	json_object_set_new(json, "type", json_string(has_name ? named->name : "?"));
	if (c->has_handle)
		json_object_set_new(json, "handle", json_integer(c->handle));
	objects_add_values(json, c);
	return json;
}

/*
 * Returns the list that an object belongs to: of its parent, or of the file. Parents are of other types than their
 * children, and no type is below itself, so that nothing can become its own ancestor.
 */
static json_t *objects_list_of(const struct uvd_object_copy *c, const struct objects_entry *sorted, unsigned int num,
			       json_t *list)
{
	const struct uvd_object_copy wanted = { .type = c->facts.parent_type, .facts.self = c->facts.parent };
	const struct objects_entry key = { .copy = &wanted }, *parent;
	json_t *children;

	parent = c->facts.parent ? bsearch(&key, sorted, num, sizeof(*sorted), objects_compare) : NULL;
	if (!parent)
		return list;
	children = json_object_get(parent->json, "children");
	if (!children) {
		children = json_array();
		if (json_object_set_new(parent->json, "children", children))
			return list;
	}
	return children;
}

unsigned int uvd_control_copy(struct uvd_file *file, struct uvd_object_copy *copies, unsigned int *num)
{
	const unsigned int room = UVD_CONTROL_OBJECTS - *num;
	const unsigned int copied =
		uvd_file_copy_objects(file, copies + *num, room < OBJECTS_OF_FILE ? room : OBJECTS_OF_FILE);

	*num += copied;
	return copied;
}

json_t *uvd_control_tree(const struct uvd_device *dev, const struct uvd_object_copy *copies, unsigned int num)
{
	struct objects_entry *entries = calloc(2 * num + 1, sizeof(*entries)), *sorted;
	json_t *list = entries ? json_array() : NULL;

	if (!list) {
		free(entries);
		return NULL;
	}
	sorted = entries + num;
	for (unsigned int i = 0; i < num; i++)
		sorted[i] = entries[i] = (struct objects_entry){ &copies[i], objects_json(dev, &copies[i]) };
	qsort(sorted, num, sizeof(*sorted), objects_compare);
	for (unsigned int i = 0; i < num; i++)
		json_array_append(objects_list_of(&copies[i], sorted, num, list), entries[i].json);
	/* Only now: without memory an object may be in no list, and its children still look for it. */
	for (unsigned int i = 0; i < num; i++)
		json_decref(entries[i].json);
	free(entries);
	return list;
}
