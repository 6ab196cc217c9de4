/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The plug-ins of --plugin and of the file's sections [plugin FILE]. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/core.h"
#include "options/internal.h"
#include "options/options.h"
#include "util/util.h"

const char *uvd_options_plugin_path(const char *file, char path[PATH_MAX])
{
	char cwd[PATH_MAX] = "";
	int len;

	if (!*file)
		return "is empty";
	if (*file == '/')
		len = snprintf(path, PATH_MAX, "%s", file);
	else if (!strchr(file, '/'))
		len = snprintf(path, PATH_MAX, "%s/%s", UVD_PLUGIN_DIR, file);
	else if (getcwd(cwd, sizeof(cwd)))
		len = snprintf(path, PATH_MAX, "%s/%s", cwd, file);
	else
		return "is relative to a directory that no longer exists";
	return len < PATH_MAX ? NULL : "is too long";
}

/* Returns the plug-in of that path, which is added if it is new. NULL: no memory. */
static struct uvd_option_plugin *plugin_entry(struct uvd_options *o, const char *path)
{
	struct uvd_option_plugin *plugins;

	for (unsigned int i = 0; i < o->num_plugins; i++)
		if (!strcmp(o->plugins[i].path, path))
			return &o->plugins[i];
	plugins = realloc(o->plugins, (o->num_plugins + 1) * sizeof(*plugins));
	if (!plugins)
		return NULL;
	o->plugins = plugins;
	plugins += o->num_plugins;
	*plugins = (struct uvd_option_plugin){ .path = strdup(path) };
	if (!plugins->path)
		return NULL;
	o->num_plugins++;
	return plugins;
}

static bool plugin_add_value(struct uvd_option_plugin *plugin, const char *value, size_t len)
{
	char **values = realloc(plugin->values, (plugin->num_values + 2) * sizeof(*values));

	if (!values)
		return false;
	plugin->values = values;
	values[plugin->num_values] = strndup(value, len);
	if (!values[plugin->num_values])
		return false;
	values[++plugin->num_values] = NULL;
	return true;
}

const char *uvd_option_set_plugin(const struct uvd_option_row *row, void *base, const char *text, unsigned int nth)
{
	struct uvd_option_plugin *plugin;
	char file[PATH_MAX], path[PATH_MAX];
	const char *wrong;
	size_t len = strcspn(text, "\n");

	if (len >= sizeof(file))
		return "is too long";
	memcpy(file, text, len);
	file[len] = 0;
	wrong = uvd_options_plugin_path(file, path);
	if (wrong)
		return wrong;
	plugin = plugin_entry(base, path);
	for (text += len; plugin && *text; text += len) {
		len = strcspn(++text, "\n");
		if (!plugin_add_value(plugin, text, len))
			plugin = NULL;
	}
	return plugin ? NULL : "does not fit into memory";
}

void uvd_options_free_plugins(struct uvd_options *o)
{
	for (unsigned int n = 0; n < o->num_plugins; n++) {
		struct uvd_option_plugin *p = &o->plugins[n];

		for (unsigned int i = 0; i < p->num_values; i++)
			free(p->values[i]);
		free(p->values);
		free(p->path);
	}
	free(o->plugins);
	o->plugins = NULL;
	o->num_plugins = 0;
	uvd_plugins_free(o->names);
	o->names = NULL;
}

/* Calls fn, which loads a plug-in or looks into it, for each. Returns false if one fails, and `error` says why. */
static bool plugins_each(const struct uvd_options *o, struct uvd_plugins *plugins,
			 int (*fn)(struct uvd_plugins *, const struct uvd_plugin_request *, uid_t, char *), char *error)
{
	for (unsigned int i = 0; i < o->num_plugins; i++) {
		const struct uvd_plugin_request request = { o->plugins[i].path,
							    (const char *const *)o->plugins[i].values };

		if (fn(plugins, &request, geteuid(), error))
			return false;
	}
	return true;
}

bool uvd_options_open_plugins(struct uvd_options *o, char error[UVD_PLUGIN_ERROR])
{
	snprintf(error, UVD_PLUGIN_ERROR, "no memory");
	o->names = uvd_plugins_new(NULL);
	return o->names && plugins_each(o, o->names, uvd_plugins_look, error);
}

bool uvd_options_load_plugins(const struct uvd_options *o, struct uvd_plugins *plugins, struct uvd_log *log)
{
	char error[UVD_PLUGIN_ERROR];
	const bool loaded = plugins_each(o, plugins, uvd_plugins_load, error);

	if (!loaded)
		uvd_logf(log, UVD_ERR, "--plugin %s", error);
	return loaded;
}

static void plugin_print_option(const struct uvd_plugin_option *option)
{
	char left[64], right[512];

	snprintf(left, sizeof(left), "%s=%s", option->name, option->metavar ? option->metavar : "VALUE");
	snprintf(right, sizeof(right), option->value ? "%s (default: %s)" : "%s", option->help ? option->help : "",
		 option->value);
	uvd_help_row(stdout, left, right, HELP_COLUMN);
}

static void plugin_print_help(const struct uvd_module *module)
{
	const struct uvd_plugin *plugin = &module->plugin;
	const struct uvd_plugin_option *option = plugin->options;

	printf("\nPlug-in %s%s%s%s%s (in the file: [plugin %s]):\n", plugin->name, plugin->version ? " " : "",
	       plugin->version ? plugin->version : "", plugin->description ? ", " : "",
	       plugin->description ? plugin->description : "", module->path);
	if (!option || !option->name)
		printf("  no options\n");
	for (; option && option->name; option++)
		plugin_print_option(option);
}

void uvd_options_help_plugins(const struct uvd_options *o)
{
	struct uvd_module *list[UVD_MAX_PLUGINS];
	const unsigned int num = uvd_plugins_list(o->names, list);

	for (unsigned int i = 0; i < num; i++) {
		if (list[i]->path)
			plugin_print_help(list[i]);
		uvd_module_put(list[i]);
	}
}
