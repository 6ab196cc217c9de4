/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The tree finds the roles of its calls: of the kernel's in src/call, of a plug-in's in the lists of that plug-in. */
#include <uverbsd/plugin.h>

#include "call/call.h"
#include "core/tree.h"

/* The loader has checked that each entry names a row of the plug-in itself. */
static void method_take_roles(struct uvd_tree_method *tm, const char *owner, const struct uvd_plugin *plugin)
{
	for (unsigned int ns = 0; ns < UVD_TREE_NAMESPACES; ns++)
		for (unsigned int i = 0; i < tm->num_attrs[ns]; i++)
			if (tm->attrs[ns][i].owner == owner)
				tm->attrs[ns][i].roles = plugin->attrs;
}

static void object_take_roles(struct uvd_tree_object *to, const char *owner, const struct uvd_plugin *plugin)
{
	for (unsigned int ns = 0; ns < UVD_TREE_NAMESPACES; ns++)
		for (unsigned int i = 0; i < to->num_methods[ns]; i++)
			method_take_roles(&to->methods[ns][i], owner, plugin);
}

static void write_take_roles(struct uvd_tree_write *tw, const char *owner, const struct uvd_plugin *plugin)
{
	const struct uvd_command_fields *c = NULL;

	if (tw->row && tw->owner == owner)
		c = uvd_commands_find(plugin->commands, tw->row->name);
	if (!c)
		return;
	tw->roles =
		(struct uvd_command_fields){ c->command, c->request ?: &uvd_no_struct, c->response ?: &uvd_no_struct };
}

static void feature_take_roles(struct uvd_tree *tree, const struct uvd_feature *f, const struct uvd_plugin *plugin)
{
	for (unsigned int ns = 0; ns < UVD_TREE_NAMESPACES; ns++)
		for (unsigned int i = 0; i < tree->num_objects[ns]; i++)
			object_take_roles(&tree->objects[ns][i], f->name, plugin);
	for (unsigned int ex = 0; ex < 2; ex++)
		for (unsigned int i = 0; i < tree->num_writes[ex]; i++)
			write_take_roles(&tree->writes[ex][i], f->name, plugin);
}

void uvd_tree_take_roles(struct uvd_tree *tree, const struct uvd_plugin *plugin)
{
	if (!plugin->commands && !plugin->attrs)
		return;
	for (const struct uvd_feature *const *f = plugin->features; f && *f; f++)
		feature_take_roles(tree, *f, plugin);
	for (const struct uvd_persona *const *p = plugin->personas; p && *p; p++)
		if ((*p)->feature)
			feature_take_roles(tree, (*p)->feature, plugin);
}

const struct uvd_command_fields *uvd_tree_command_fields(const struct uvd_tree_write *tw)
{
	return tw->roles.command ? &tw->roles : uvd_command_fields(tw->row->name);
}

const struct uvd_attr_fields *uvd_tree_attr_fields(const struct uvd_tree_attr *ta, const struct uvd_attr_row *elem)
{
	const char *name = elem ? elem->name : ta->row->name;

	return uvd_attrs_find(ta->roles, name) ?: uvd_attr_fields(name);
}
