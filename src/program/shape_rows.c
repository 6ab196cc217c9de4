/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The schema's rows by name. */
#include <ctype.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <stdio.h>
#include <string.h>
#include <uverbsd/abi.h>
#include "objects/objects.h"
#include "shape.h"

static struct uvd_shape_added added;

void uvd_shape_add(const struct uvd_shape_added *more)
{
	added = *more;
}

const struct uvd_command_fields *uvd_shape_command_fields(const char *name)
{
	const struct uvd_command_fields *c = uvd_commands_find(added.commands, name);

	return c ? c : uvd_command_fields(name);
}

const struct uvd_attr_fields *uvd_shape_attr_fields(const char *name)
{
	const struct uvd_attr_fields *a = uvd_attrs_find(added.attrs, name);

	return a ? a : uvd_attr_fields(name);
}

const struct uvd_attr_fields *uvd_shape_added_attr(unsigned int i)
{
	const struct uvd_attr_fields *a = added.attrs;

	while (a && a->attr && i--)
		a++;
	return a && a->attr ? a : NULL;
}

bool uvd_shape_is_added(const struct uvd_struct *of)
{
	for (const struct uvd_command_fields *c = added.commands; c && c->command; c++)
		if (c->request == of || c->response == of)
			return true;
	for (const struct uvd_attr_fields *a = added.attrs; a && a->attr; a++)
		if (a->of == of)
			return true;
	return false;
}

/* The common objects, then those that were added. */
const struct uvd_object_row *uvd_shape_object_at(unsigned int i)
{
	const struct uvd_object_row *const *common = uvd_feature_common.objects;
	unsigned int n = 0;

	while (n < i && common[n])
		n++;
	if (common[n])
		return common[n];
	for (i -= n, n = 0; added.objects && added.objects[n]; n++)
		if (n == i)
			return added.objects[n];
	return NULL;
}

static const struct uvd_object_row *object_at(unsigned int i)
{
	return uvd_shape_object_at(i);
}

const char *uvd_shape_without(const char *name, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(name, prefix, len) ? name : name + len;
}

enum { MAX_OBJECTS = 256, MAX_NAME = 32 };
static struct {
	uint16_t id;
	char name[MAX_NAME];
} object_names[MAX_OBJECTS];

static const char *object_name_of(const struct uvd_object_row *row)
{
	if (row->id == UVERBS_OBJECT_COMP_CHANNEL)
		return "channel";
	if (row->id == UVERBS_OBJECT_ASYNC_EVENT)
		return "async";
	return uvd_shape_without(row->name, "UVERBS_OBJECT_");
}

static void object_names_make(void)
{
	for (unsigned int i = 0; object_at(i) && i < MAX_OBJECTS; i++) {
		const char *from = object_name_of(object_at(i));

		object_names[i].id = object_at(i)->id;
		for (unsigned int n = 0; from[n] && n < MAX_NAME - 1; n++)
			object_names[i].name[n] = tolower((unsigned char)from[n]);
	}
}

const char *uvd_shape_object_name(uint16_t object)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (object == UVERBSD_OBJECT_CM_ID || object == UVERBSD_OBJECT_CM_MCAST)
		return object == UVERBSD_OBJECT_CM_ID ? "cm_id" : "cm_mcast";
	pthread_once(&once, object_names_make);
	for (unsigned int i = 0; i < MAX_OBJECTS && *object_names[i].name; i++)
		if (object_names[i].id == object)
			return object_names[i].name;
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
	return uvd_shape_without(row->name, "UVERBS_METHOD_");
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
	const char *from = uvd_shape_without(row->name, "UVERBS_ATTR_");
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
