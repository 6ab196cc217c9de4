/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Checks what a plug-in states of the fields of its rows (include/uverbsd/roles.h), so that those who name, make or repeat
 * calls need not: a mistake is a message at the load.
 */
#include <errno.h>
#include <string.h>

#include "call/call.h"
#include "plugin/internal.h"

struct roles_check {
	struct uvd_plugins *plugins; /* NULL: do not look for the objects of others */
	const struct uvd_plugin *plugin;
	const char *what;
	char *error;
};

static int roles_bad(const struct roles_check *c, const char *name, const char *why)
{
	return uvd_plugin_error(c->error, -EINVAL, "%s: roles of %s: %s", c->what, name, why);
}

/* ---- the plug-in's rows ------------------------------------------------------------------------------------------ */

/* Returns the i-th feature of a plug-in or of one of its personas, or NULL. */
static const struct uvd_feature *roles_feature(const struct uvd_plugin *plugin, unsigned int i)
{
	for (const struct uvd_feature *const *f = plugin->features; f && *f; f++)
		if (!i--)
			return *f;
	for (const struct uvd_persona *const *p = plugin->personas; p && *p; p++)
		if ((*p)->feature && !i--)
			return (*p)->feature;
	return NULL;
}

/* Returns the i-th object row of a plug-in, or NULL. */
static const struct uvd_object_row *roles_object(const struct uvd_plugin *plugin, unsigned int i)
{
	const struct uvd_feature *f;

	for (unsigned int n = 0; (f = roles_feature(plugin, n)); n++)
		for (const struct uvd_object_row *const *o = f->objects; o && *o; o++)
			if (!i--)
				return *o;
	return NULL;
}

bool uvd_plugin_has_object(const struct uvd_plugin *plugin, uint16_t id)
{
	const struct uvd_object_row *o;

	for (unsigned int n = 0; (o = roles_object(plugin, n)); n++)
		if (o->id == id)
			return true;
	return false;
}

/* A wrapper's row is that of another feature's command. */
static const struct uvd_write_row *roles_write_row(const struct uvd_plugin *plugin, const char *name)
{
	const struct uvd_object_row *o;

	for (unsigned int n = 0; (o = roles_object(plugin, n)); n++)
		for (unsigned int i = 0; i < o->num_writes; i++)
			if (o->writes[i].when == UVD_STEPS_OWN && !strcmp(o->writes[i].name, name))
				return &o->writes[i];
	return NULL;
}

static const struct uvd_attr_row *roles_attr_in(const struct uvd_attr_row *attrs, unsigned int num, const char *name)
{
	for (unsigned int i = 0; i < num; i++) {
		const struct uvd_attr_row *elem;

		if (!strcmp(attrs[i].name, name))
			return &attrs[i];
		elem = attrs[i].type == UVD_ATTR_ENUM_IN ? roles_attr_in(attrs[i].elems, attrs[i].num_elems, name)
							 : NULL;
		if (elem)
			return elem;
	}
	return NULL;
}

static const struct uvd_attr_row *roles_attr_row(const struct uvd_plugin *plugin, const char *name)
{
	const struct uvd_object_row *o;

	for (unsigned int n = 0; (o = roles_object(plugin, n)); n++)
		for (unsigned int i = 0; i < o->num_methods; i++) {
			const struct uvd_method_row *m = &o->methods[i];
			const struct uvd_attr_row *row = roles_attr_in(m->attrs, m->num_attrs, name);

			if (row)
				return row;
		}
	return NULL;
}

/* ---- structs ----------------------------------------------------------------------------------------------------- */

static bool roles_object_known(void *arg, uint16_t object)
{
	const struct roles_check *c = arg;

	return uvd_plugin_has_object(c->plugin, object) || !c->plugins || uvd_plugins_have_object(c->plugins, object);
}

static int roles_check_struct(struct roles_check *c, const char *name, const struct uvd_struct *of,
			      enum uvd_call_part part, size_t most)
{
	char why[UVD_CALL_WHY];
	const char *field;
	uint16_t object;

	if (!of)
		return 0;
	if (!uvd_struct_check(of, part, most, why))
		return roles_bad(c, name, why);
	field = uvd_struct_unknown_object(of, roles_object_known, c, &object);
	if (!field)
		return 0;
	return uvd_plugin_error(c->error, -EINVAL, "%s: roles of %s: field %s: there is no object %#x", c->what, name,
				field, object);
}

static int roles_check_command(struct roles_check *c, const struct uvd_command_fields *f)
{
	const struct uvd_write_row *row = roles_write_row(c->plugin, f->command);

	if (!row)
		return roles_bad(c, f->command, "the plug-in has no command of this name");
	if (uvd_commands_find(c->plugin->commands, f->command) != f)
		return roles_bad(c, f->command, "they are stated twice");
	return roles_check_struct(c, f->command, f->request, UVD_CALL_REQUEST, row->req_size)
		       ?: roles_check_struct(c, f->command, f->response, UVD_CALL_RESPONSE, row->resp_size);
}

static bool attr_has_value(const struct uvd_attr_row *row)
{
	return row->type == UVD_ATTR_PTR_IN || row->type == UVD_ATTR_PTR_OUT || row->type == UVD_ATTR_CONST ||
	       row->type == UVD_ATTR_FLAGS || row->type == UVD_ATTR_RAW_FD;
}

static int roles_check_attr(struct roles_check *c, const struct uvd_attr_fields *a)
{
	const struct uvd_attr_row *row = roles_attr_row(c->plugin, a->attr);
	char why[UVD_CALL_WHY];

	if (!row)
		return roles_bad(c, a->attr, "the plug-in has no attribute of this name");
	if (uvd_attrs_find(c->plugin->attrs, a->attr) != a)
		return roles_bad(c, a->attr, "they are stated twice");
	if (!attr_has_value(row))
		return roles_bad(c, a->attr, "its row says what it is: an object, or one of its elements");
	if (!uvd_value_check(a, row->len, why))
		return roles_bad(c, a->attr, why);
	if (a->beside && !roles_attr_row(c->plugin, a->beside))
		return roles_bad(c, a->attr, "the plug-in has no attribute of the name that is to have its length");
	return a->of ? roles_check_struct(c, a->attr, a->of, UVD_CALL_VALUE, row->len) : 0;
}

int uvd_plugin_roles_check(struct uvd_plugins *plugins, const char *what, const struct uvd_plugin *plugin,
			   char error[UVD_PLUGIN_ERROR])
{
	struct roles_check c = { plugins, plugin, what, error };
	int err = 0;

	for (const struct uvd_command_fields *f = plugin->commands; f && f->command && !err; f++)
		err = roles_check_command(&c, f);
	for (const struct uvd_attr_fields *a = plugin->attrs; a && a->attr && !err; a++)
		err = roles_check_attr(&c, a);
	return err;
}
