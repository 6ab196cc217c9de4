/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Checks the rows that a plug-in brings, so that a mistake is a message at the load, and not a crash at a call. What
 * depends on other features (two rows for one id) is found when a device's tree is merged.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/internal.h"

enum { MAX_NAME = 63, NAMESPACES = 2, NS_SHIFT = 12, ANY_OBJECT = 0xffff, MAX_ATTRS = 254 /* of an ioctl */ };

struct check {
	const char *what, *feature;
	bool built_in;
	char *error;
};

static int row_bad(const struct check *c, const char *name, const char *why)
{
	return uvd_plugin_error(c->error, -EINVAL, "%s: %s of '%s': %s", c->what, name, c->feature, why);
}

static int row_name_check(const struct check *c, const char *kind, const char *name)
{
	if (name && *name && strnlen(name, MAX_NAME + 1) <= MAX_NAME)
		return 0;
	return uvd_plugin_error(c->error, -EINVAL, "%s: a row of '%s' (%s) has no name of 1 to %d bytes", c->what,
				c->feature, kind, MAX_NAME);
}

static bool needs_ok(const uint16_t needs[UVD_NEEDS])
{
	for (unsigned int i = 0; i < UVD_NEEDS && needs[i]; i++)
		if (needs[i] % sizeof(void *) || needs[i] < offsetof(struct uvd_backend, open) ||
		    needs[i] > sizeof(struct uvd_backend) - sizeof(void *))
			return false;
	return true;
}

static int attr_row_check(const struct check *c, const struct uvd_attr_row *row)
{
	int err = row_name_check(c, "attribute", row->name);

	if (err)
		return err;
	if (row->id >> NS_SHIFT >= NAMESPACES)
		return row_bad(c, row->name, "its id is in no namespace");
	if (row->type < UVD_ATTR_PTR_IN || row->type > UVD_ATTR_RAW_FD)
		return row_bad(c, row->name, "it has no type");
	if (row->min_len > row->len)
		return row_bad(c, row->name, "its least size exceeds its size");
	if (row->type == UVD_ATTR_CONST && row->len != 8)
		return row_bad(c, row->name, "a CONST has 8 bytes");
	if (row->type == UVD_ATTR_FLAGS && row->len != 8)
		return row_bad(c, row->name, "FLAGS have up to 8 bytes");
	if (row->type == UVD_ATTR_ENUM_IN && (!row->elems || !row->num_elems))
		return row_bad(c, row->name, "it has no elements");
	if (row->access > UVD_UOBJ_DESTROY)
		return row_bad(c, row->name, "its access is none of enum uvd_uobj_access");
	if (row->type == UVD_ATTR_FD && row->access != UVD_UOBJ_READ && row->access != UVD_UOBJ_NEW)
		return row_bad(c, row->name, "the access to an FD can only be READ or NEW");
	if (row->type == UVD_ATTR_IDRS_ARRAY && row->access != UVD_UOBJ_READ && row->access != UVD_UOBJ_WRITE)
		return row_bad(c, row->name, "the access to an array can only be READ or WRITE");
	return 0;
}

static int method_row_check(const struct check *c, const struct uvd_method_row *row)
{
	bool destroys = false;
	int err = row_name_check(c, "method", row->name);

	if (err)
		return err;
	if (row->id >> NS_SHIFT >= NAMESPACES)
		return row_bad(c, row->name, "its id is in no namespace");
	if (row->num_attrs > MAX_ATTRS || (row->num_attrs && !row->attrs))
		return row_bad(c, row->name, "its number of attributes is wrong");
	if (!needs_ok(row->needs))
		return row_bad(c, row->name, "`needs` is not an operation of a backend");
	if (row->when > UVD_STEPS_INSTEAD)
		return row_bad(c, row->name, "`when` is none of enum uvd_when");
	if (row->when != UVD_STEPS_OWN && !(row->steps && row->steps[0]))
		return row_bad(c, row->name, "it adds no steps");
	for (unsigned int i = 0; i < row->num_attrs && !err; i++) {
		err = attr_row_check(c, &row->attrs[i]);
		destroys |= row->attrs[i].type == UVD_ATTR_IDR && row->attrs[i].access == UVD_UOBJ_DESTROY;
	}
	/* Without steps it may extend another feature's method; then it must bring attributes. */
	if (!err && !row->steps && !destroys && !row->num_attrs)
		return row_bad(c, row->name, "it does nothing: it has neither steps nor attributes");
	return err;
}

static int write_row_check(const struct check *c, const struct uvd_write_row *row)
{
	int err = row_name_check(c, "command", row->name);

	if (err)
		return err;
	if (!row->steps || !row->steps[0])
		return row_bad(c, row->name, "it has no steps");
	if (!needs_ok(row->needs))
		return row_bad(c, row->name, "`needs` is not an operation of a backend");
	if (row->when > UVD_STEPS_INSTEAD)
		return row_bad(c, row->name, "`when` is none of enum uvd_when");
	return 0;
}

static int object_row_check(const struct check *c, const struct uvd_object_row *row)
{
	int err = row_name_check(c, "object", row->name);

	if (err)
		return err;
	if (row->id == ANY_OBJECT || row->id >> NS_SHIFT >= NAMESPACES)
		return row_bad(c, row->name, "its id is in no namespace");
	if (row->cls > UVD_CLASS_FD)
		return row_bad(c, row->name, "its class is none of enum uvd_object_class");
	if (row->cls == UVD_CLASS_FD && !c->built_in)
		return row_bad(c, row->name, "only uverbsd itself has objects of class FD");
	if (row->cls == UVD_CLASS_IDR && !row->destroy)
		return row_bad(c, row->name, "it has a class, but no destroy function");
	if (row->cls == UVD_CLASS_NONE && row->destroy)
		return row_bad(c, row->name, "it has a destroy function, but no class");
	/* size is where struct uvd_backend has the size. */
	if (row->size &&
	    (row->size < UVD_SIZE(context) || row->size > UVD_SIZE(comp_cntr) || row->size % sizeof(size_t)))
		return row_bad(c, row->name, "its size is not UVD_SIZE() of an object");
	if ((row->num_methods && !row->methods) || (row->num_writes && !row->writes))
		return row_bad(c, row->name, "its number of methods or commands is wrong");
	if (!needs_ok(row->needs))
		return row_bad(c, row->name, "`needs` is not an operation of a backend");
	for (unsigned int i = 0; i < row->num_methods && !err; i++)
		err = method_row_check(c, &row->methods[i]);
	for (unsigned int i = 0; i < row->num_writes && !err; i++)
		err = write_row_check(c, &row->writes[i]);
	return err;
}

static int feature_check(struct check *c, const struct uvd_feature *feature)
{
	int err = 0;

	c->feature = feature->name;
	if (!c->feature)
		return uvd_plugin_error(c->error, -EINVAL, "%s: a feature has no name", c->what);
	if (feature->ucap && !uvd_ucap_name_ok(feature->ucap))
		return uvd_plugin_error(c->error, -EINVAL,
					"%s: feature '%s': `%s` is not a valid name of a User Capability", c->what,
					c->feature, feature->ucap);
	for (const struct uvd_object_row *const *o = feature->objects; o && *o && !err; o++)
		err = object_row_check(c, *o);
	return err;
}

int uvd_plugin_rows_check(const char *what, const struct uvd_plugin *plugin, bool built_in,
			  char error[UVD_PLUGIN_ERROR])
{
	struct check c = { .what = what, .built_in = built_in, .error = error };
	int err = 0;

	for (const struct uvd_feature *const *f = plugin->features; f && *f && !err; f++)
		err = feature_check(&c, *f);
	for (const struct uvd_backend *const *b = plugin->backends; b && *b && !err; b++)
		err = uvd_plugin_backend_check(what, *b, error);
	for (const struct uvd_persona *const *p = plugin->personas; p && *p && !err; p++) {
		err = uvd_plugin_persona_check(what, *p, error);
		if (!err && (*p)->feature)
			err = feature_check(&c, (*p)->feature);
	}
	for (const struct uvd_filter *const *f = plugin->filters; f && *f && !err; f++)
		err = uvd_plugin_filter_check(what, *f, error);
	return err;
}
