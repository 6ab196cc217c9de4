/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The schema's rows by name. */
#include <ctype.h>
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

const char *uvd_shape_object_name(uint16_t object)
{
	static char name[32];

	if (object == UVERBS_OBJECT_COMP_CHANNEL)
		return "channel";
	if (object == UVERBS_OBJECT_ASYNC_EVENT)
		return "async";
	for (unsigned int i = 0; object_at(i); i++) {
		const char *from = without(object_at(i)->name, "UVERBS_OBJECT_");
		unsigned int n = 0;

		if (object_at(i)->id != object)
			continue;
		for (; from[n] && n < sizeof(name) - 1; n++)
			name[n] = tolower(from[n]);
		name[n] = 0;
		return name;
	}
	return "unknown";
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
