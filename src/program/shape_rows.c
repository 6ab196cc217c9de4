/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The schema's rows by name. */
#include <ctype.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <stdio.h>
#include <string.h>
#include "objects/objects.h"
#include "shape.h"

static const struct uvd_object_row *object_at(unsigned int i)
{
	return uvd_feature_common.objects[i];
}

static const char *without(const char *name, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(name, prefix, len) ? name : name + len;
}

enum { MAX_OBJECTS = 64, MAX_NAME = 32 };
static char object_names[MAX_OBJECTS][MAX_NAME];

static void object_names_make(void)
{
	for (unsigned int i = 0; object_at(i); i++) {
		const char *from = without(object_at(i)->name, "UVERBS_OBJECT_");

		for (unsigned int n = 0; object_at(i)->id < MAX_OBJECTS && from[n] && n < MAX_NAME - 1; n++)
			object_names[object_at(i)->id][n] = tolower(from[n]);
	}
	strcpy(object_names[UVERBS_OBJECT_COMP_CHANNEL], "channel");
	strcpy(object_names[UVERBS_OBJECT_ASYNC_EVENT], "async");
}

const char *uvd_shape_object_name(uint16_t object)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, object_names_make);
	return object < MAX_OBJECTS && *object_names[object] ? object_names[object] : "unknown";
}

bool uvd_shape_method_at(unsigned int n, struct uvd_shape_method *ref)
{
	for (unsigned int i = 0; object_at(i); i++) {
		if (n < object_at(i)->num_methods) {
			ref->object = object_at(i)->id;
			ref->row = &object_at(i)->methods[n];
			ref->method = ref->row->id;
			return true;
		}
		n -= object_at(i)->num_methods;
	}
	return false;
}

const char *uvd_shape_method_name(const struct uvd_method_row *row)
{
	return without(row->name, "UVERBS_METHOD_");
}

bool uvd_shape_method(const char *name, struct uvd_shape_method *ref)
{
	unsigned int object, method;

	if (sscanf(name, "#%i/%i", &object, &method) == 2) {
		*ref = (struct uvd_shape_method){ object, method, NULL };
		return true;
	}
	for (unsigned int i = 0; uvd_shape_method_at(i, ref); i++)
		if (!strcmp(uvd_shape_method_name(ref->row), name))
			return true;
	return false;
}

const struct uvd_write_row *uvd_shape_write(unsigned int number, bool ex)
{
	for (unsigned int i = 0; object_at(i); i++)
		for (unsigned int n = 0; n < object_at(i)->num_writes; n++) {
			const struct uvd_write_row *row = &object_at(i)->writes[n];

			if (row->number == number && !!(row->flags & UVD_WRITE_EX) == ex)
				return row;
		}
	return NULL;
}

const char *uvd_shape_attr_name(const struct uvd_attr_row *row)
{
	static char name[64];
	const char *from = without(row->name, "UVERBS_ATTR_");
	unsigned int n;

	for (n = 0; from[n] && n < sizeof(name) - 1; n++)
		name[n] = tolower(from[n]);
	name[n] = 0;
	return name;
}

const struct uvd_attr_row *uvd_shape_attr_row(const struct uvd_method_row *row, const char *name)
{
	for (unsigned int i = 0; row && i < row->num_attrs; i++)
		if (!strcmp(uvd_shape_attr_name(&row->attrs[i]), name))
			return &row->attrs[i];
	return NULL;
}

const struct uvd_attr_row *uvd_shape_method_end(const struct uvd_method_row *row)
{
	for (unsigned int i = 0; i < row->num_attrs; i++)
		if (row->attrs[i].type == UVD_ATTR_IDR && row->attrs[i].access == UVD_UOBJ_DESTROY)
			return &row->attrs[i];
	return NULL;
}

const char *uvd_shape_method_makes(const struct uvd_method_row *row)
{
	for (unsigned int i = 0; i < row->num_attrs; i++)
		if ((row->attrs[i].type == UVD_ATTR_IDR || row->attrs[i].type == UVD_ATTR_FD) &&
		    row->attrs[i].access == UVD_UOBJ_NEW)
			return uvd_shape_object_name(row->attrs[i].object);
	return NULL;
}
