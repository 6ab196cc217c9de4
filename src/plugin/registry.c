/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The registry: all modules of an engine in the order of their loads, and what they bring, by name. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backends.h"
#include "backends/soft/fabric.h"
#include "filters/filters.h"
#include "persona/persona.h"
#include "plugin/internal.h"

enum { LOOK_MS = 30000 /* that the constructors of a plug-in may take */ };

struct uvd_plugins {
	struct uvd_log *log;
	const struct uvd_plugin_source *source; /* or NULL; constant as soon as something is loaded */
	void *source_arg;
	pthread_mutex_t lock; /* the rest */
	struct uvd_module *list[UVD_MAX_PLUGINS];
	unsigned int num;
};

static const struct uvd_backend *const null_backends[] = { &uvd_backend_null, NULL };
static const struct uvd_backend *const hca_backends[] = { &uvd_backend_verbs, NULL };
static const struct uvd_persona *const hfi1_personas[] = { &uvd_persona_hfi1, NULL };
static const struct uvd_persona *const rxe_personas[] = { &uvd_persona_rxe, NULL };

#define FILTER_ADDRESS(name) &uvd_filter_##name,
static const struct uvd_filter *const filters[] = { UVD_FILTERS(FILTER_ADDRESS) NULL };

#define BUILTIN .api_version = UVD_API_VERSION, .struct_size = sizeof(struct uvd_plugin)
static const struct uvd_plugin null_plugin = {
	BUILTIN,
	.name = "null",
	.description = "backend that accepts everything",
	.backends = null_backends,
};
static const struct uvd_plugin hca_plugin = {
	BUILTIN,
	.name = "hca",
	.description = "backend that forwards to an adapter",
	.backends = hca_backends,
};
static const struct uvd_plugin hfi1_plugin = {
	BUILTIN,
	.name = "hfi1",
	.description = "persona of Intel Omni-Path",
	.personas = hfi1_personas,
};
static const struct uvd_plugin rxe_plugin = {
	BUILTIN,
	.name = "rxe",
	.description = "persona of Soft RoCE",
	.personas = rxe_personas,
};
static const struct uvd_plugin filters_plugin = {
	BUILTIN,
	.name = "filters",
	.description = "filters that make devices fail",
	.filters = filters,
	.filter_size = sizeof(struct uvd_filter),
};
static const struct uvd_plugin *const builtin_plugins[] = { &filters_plugin,  &hca_plugin,  &null_plugin,
							    &uvd_plugin_soft, &hfi1_plugin, &rxe_plugin };

int uvd_plugin_error(char error[UVD_PLUGIN_ERROR], int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error, UVD_PLUGIN_ERROR, fmt, ap);
	va_end(ap);
	return err;
}

bool uvd_plugin_name_ok(const char *name, const char *others, size_t most)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	size_t len = 0;

	while (len <= most && name[len] && (strchr(good, name[len]) || strchr(others, name[len])))
		len++;
	return len && len <= most && !name[len];
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static const struct uvd_backend *module_backend(const struct uvd_module *m, const char *name)
{
	for (const struct uvd_backend *const *b = m->plugin.backends; b && *b; b++)
		if (!strcmp((*b)->name, name))
			return *b;
	return NULL;
}

static const struct uvd_persona *module_persona(const struct uvd_module *m, const char *name)
{
	for (const struct uvd_persona *const *p = m->plugin.personas; p && *p; p++)
		if (!strcmp((*p)->name, name))
			return *p;
	return NULL;
}

static const struct uvd_filter *module_filter(const struct uvd_module *m, const char *name)
{
	for (const struct uvd_filter *const *f = m->plugin.filters; f && *f; f++)
		if (!strcmp((*f)->name, name))
			return *f;
	return NULL;
}

static int names_check_against(const struct uvd_module *m, const char *what, const struct uvd_plugin *plugin,
			       char error[UVD_PLUGIN_ERROR])
{
	const char *owner = m->path ?: "uverbsd";

	if (!strcmp(m->plugin.name, plugin->name))
		return uvd_plugin_error(error, -EEXIST, "%s: a plug-in '%s' is loaded already, from %s", what,
					plugin->name, owner);
	for (const struct uvd_backend *const *b = plugin->backends; b && *b; b++)
		if (module_backend(m, (*b)->name))
			return uvd_plugin_error(error, -EEXIST, "%s: backend '%s' is both of '%s' and of '%s'", what,
						(*b)->name, m->plugin.name, plugin->name);
	for (const struct uvd_persona *const *p = plugin->personas; p && *p; p++)
		if (module_persona(m, (*p)->name))
			return uvd_plugin_error(error, -EEXIST, "%s: persona '%s' is both of '%s' and of '%s'", what,
						(*p)->name, m->plugin.name, plugin->name);
	for (const struct uvd_filter *const *f = plugin->filters; f && *f; f++)
		if (module_filter(m, (*f)->name))
			return uvd_plugin_error(error, -EEXIST, "%s: filter '%s' is both of '%s' and of '%s'", what,
						(*f)->name, m->plugin.name, plugin->name);
	return 0;
}

int uvd_plugins_check_names(struct uvd_plugins *plugins, const char *what, const struct uvd_plugin *plugin,
			    const struct uvd_module *old, char error[UVD_PLUGIN_ERROR])
{
	int err = 0;

	if (!plugins)
		return 0;
	uvd_lock(&plugins->lock);
	for (unsigned int i = 0; i < plugins->num && !err; i++)
		if (plugins->list[i] != old)
			err = names_check_against(plugins->list[i], what, plugin, error);
	uvd_unlock(&plugins->lock);
	return err;
}

bool uvd_plugins_have_object(struct uvd_plugins *plugins, uint16_t id)
{
	bool have = false;

	uvd_lock(&plugins->lock);
	for (unsigned int i = 0; i < plugins->num && !have; i++)
		have = uvd_plugin_has_object(&plugins->list[i]->plugin, id);
	uvd_unlock(&plugins->lock);
	return have;
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

struct uvd_plugins *uvd_plugins_new(struct uvd_log *log)
{
	struct uvd_plugins *plugins = uvd_zalloc(sizeof(*plugins));

	if (!plugins)
		return NULL;
	plugins->log = log;
	pthread_mutex_init(&plugins->lock, NULL);
	for (unsigned int i = 0; i < UVD_COUNT(builtin_plugins); i++) {
		if (uvd_plugins_add_builtin(plugins, builtin_plugins[i])) {
			uvd_plugins_free(plugins);
			return NULL;
		}
	}
	return plugins;
}

void uvd_plugins_set_source(struct uvd_plugins *plugins, const struct uvd_plugin_source *source, void *arg)
{
	plugins->source = source;
	plugins->source_arg = arg;
}

const struct uvd_plugin_source *uvd_plugins_source(struct uvd_plugins *plugins, void **arg)
{
	*arg = plugins->source_arg;
	return plugins->source;
}

struct uvd_log *uvd_plugins_log(struct uvd_plugins *plugins)
{
	return plugins->log;
}

void uvd_plugins_free(struct uvd_plugins *plugins)
{
	if (!plugins)
		return;
	while (plugins->num)
		uvd_module_put(plugins->list[--plugins->num]);
	pthread_mutex_destroy(&plugins->lock);
	free(plugins);
}

int uvd_plugins_add(struct uvd_plugins *plugins, struct uvd_module *module, struct uvd_module *old,
		    char error[UVD_PLUGIN_ERROR])
{
	unsigned int i = 0;

	uvd_lock(&plugins->lock);
	while (i < plugins->num && plugins->list[i] != old)
		i++;
	if (i == UVD_MAX_PLUGINS) {
		uvd_unlock(&plugins->lock);
		return uvd_plugin_error(error, -ENOSPC, "%s: there are %d plug-ins already", module->plugin.name,
					UVD_MAX_PLUGINS);
	}
	if (i == plugins->num)
		plugins->num++;
	plugins->list[i] = module;
	uvd_unlock(&plugins->lock);
	uvd_module_put(old);
	return 0;
}

void uvd_plugins_remove(struct uvd_plugins *plugins, struct uvd_module *module)
{
	unsigned int i = 0;

	uvd_lock(&plugins->lock);
	while (plugins->list[i] != module)
		i++;
	for (plugins->num--; i < plugins->num; i++)
		plugins->list[i] = plugins->list[i + 1];
	uvd_unlock(&plugins->lock);
	uvd_module_put(module);
}

struct uvd_module *uvd_plugins_get(struct uvd_plugins *plugins, const char *name)
{
	struct uvd_module *found = NULL;

	uvd_lock(&plugins->lock);
	for (unsigned int i = 0; i < plugins->num && !found; i++)
		if (!strcmp(plugins->list[i]->plugin.name, name))
			found = uvd_module_get(plugins->list[i]);
	uvd_unlock(&plugins->lock);
	return found;
}

unsigned int uvd_plugins_list(struct uvd_plugins *plugins, struct uvd_module *list[UVD_MAX_PLUGINS])
{
	unsigned int n;

	uvd_lock(&plugins->lock);
	for (n = 0; n < plugins->num; n++)
		list[n] = uvd_module_get(plugins->list[n]);
	uvd_unlock(&plugins->lock);
	return n;
}

/* ---- backends, personas and filters --------------------------------------------------------------------------------------- */

const struct uvd_backend *uvd_plugins_backend_get(struct uvd_plugins *plugins, const char *name,
						  struct uvd_module **module)
{
	const struct uvd_backend *backend = NULL;

	uvd_lock(&plugins->lock);
	for (unsigned int i = 0; i < plugins->num && !backend; i++) {
		backend = module_backend(plugins->list[i], name);
		if (backend && module)
			*module = uvd_module_get(plugins->list[i]);
	}
	uvd_unlock(&plugins->lock);
	return backend;
}

const struct uvd_persona *uvd_plugins_persona_get(struct uvd_plugins *plugins, const char *name,
						  struct uvd_module **module)
{
	const struct uvd_persona *persona = NULL;

	uvd_lock(&plugins->lock);
	for (unsigned int i = 0; i < plugins->num && !persona; i++) {
		persona = module_persona(plugins->list[i], name);
		if (persona && module)
			*module = uvd_module_get(plugins->list[i]);
	}
	uvd_unlock(&plugins->lock);
	return persona;
}

const struct uvd_filter *uvd_plugins_filter_get(struct uvd_plugins *plugins, const char *name,
						struct uvd_module **module)
{
	const struct uvd_filter *filter = NULL;

	uvd_lock(&plugins->lock);
	for (unsigned int i = 0; i < plugins->num && !filter; i++) {
		filter = module_filter(plugins->list[i], name);
		if (filter)
			*module = uvd_module_get(plugins->list[i]);
	}
	uvd_unlock(&plugins->lock);
	return filter;
}

void uvd_plugins_filters_each(struct uvd_plugins *plugins, void (*fn)(void *arg, const struct uvd_filter *filter),
			      void *arg)
{
	uvd_lock(&plugins->lock);
	for (unsigned int i = 0; i < plugins->num; i++)
		for (const struct uvd_filter *const *f = plugins->list[i]->plugin.filters; f && *f; f++)
			fn(arg, *f);
	uvd_unlock(&plugins->lock);
}

const struct uvd_backend *uvd_plugins_backend(struct uvd_plugins *plugins, const char *name)
{
	return uvd_plugins_backend_get(plugins, name, NULL);
}

const struct uvd_persona *uvd_plugins_persona(struct uvd_plugins *plugins, const char *name)
{
	return uvd_plugins_persona_get(plugins, name, NULL);
}

const struct uvd_backend *uvd_plugins_backend_at(struct uvd_plugins *plugins, unsigned int i)
{
	const struct uvd_backend *found = NULL;

	uvd_lock(&plugins->lock);
	for (unsigned int m = 0; m < plugins->num && !found; m++)
		for (const struct uvd_backend *const *b = plugins->list[m]->plugin.backends; b && *b && !found; b++)
			if (!i--)
				found = *b;
	uvd_unlock(&plugins->lock);
	return found;
}

const struct uvd_persona *uvd_plugins_persona_at(struct uvd_plugins *plugins, unsigned int i)
{
	const struct uvd_persona *found = NULL;

	uvd_lock(&plugins->lock);
	for (unsigned int m = 0; m < plugins->num && !found; m++)
		for (const struct uvd_persona *const *p = plugins->list[m]->plugin.personas; p && *p && !found; p++)
			if (!i--)
				found = *p;
	uvd_unlock(&plugins->lock);
	return found;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* Registers the module, whose reference it takes over. NULL: returns err. */
static int plugins_register(struct uvd_plugins *plugins, struct uvd_module *module, int err,
			    char error[UVD_PLUGIN_ERROR])
{
	if (!module)
		return err;
	err = uvd_plugins_add(plugins, module, NULL, error);
	if (err)
		uvd_module_put(module);
	return err;
}

int uvd_plugins_load(struct uvd_plugins *plugins, const struct uvd_plugin_request *request, uid_t owner,
		     char error[UVD_PLUGIN_ERROR])
{
	int err;
	struct uvd_module *module = uvd_module_load(plugins, request, owner, NULL, error, &err);

	return plugins_register(plugins, module, err, error);
}

int uvd_plugins_look(struct uvd_plugins *plugins, const struct uvd_plugin_request *request, uid_t owner,
		     char error[UVD_PLUGIN_ERROR])
{
	int err;
	struct uvd_module *module = uvd_module_new(plugins, request, NULL, error, &err);

	if (!module)
		return err;
	module->fd = err = uvd_plugin_file_copy(request->path, owner, error);
	if (err >= 0)
		err = uvd_module_look(module, LOOK_MS, error)
			      ?: uvd_plugins_check_names(plugins, module->path, &module->plugin, NULL, error);
	if (!err)
		return plugins_register(plugins, module, err, error);
	uvd_module_put(module);
	return err;
}

static bool module_shares_a_name(const struct uvd_module *m, const struct uvd_plugin *plugin)
{
	if (!strcmp(m->plugin.name, plugin->name))
		return true;
	for (const struct uvd_backend *const *b = plugin->backends; b && *b; b++)
		if (module_backend(m, (*b)->name))
			return true;
	for (const struct uvd_persona *const *p = plugin->personas; p && *p; p++)
		if (module_persona(m, (*p)->name))
			return true;
	for (const struct uvd_filter *const *f = plugin->filters; f && *f; f++)
		if (module_filter(m, (*f)->name))
			return true;
	return false;
}

/* Returns -EEXIST if a name is that of something built in, which stays. */
static int plugins_check_builtin_names(struct uvd_plugins *plugins, const char *what, const struct uvd_plugin *plugin,
				       char error[UVD_PLUGIN_ERROR])
{
	int err = 0;

	for (unsigned int i = 0; i < plugins->num && !err; i++)
		if (!plugins->list[i]->path)
			err = names_check_against(plugins->list[i], what, plugin, error);
	return err;
}

/* Removes those that a new one with these names replaces. */
static void plugins_drop_replaced(struct uvd_plugins *plugins, const struct uvd_plugin *plugin)
{
	for (unsigned int i = 0; i < plugins->num; i++)
		if (plugins->list[i]->path && module_shares_a_name(plugins->list[i], plugin))
			uvd_plugins_remove(plugins, plugins->list[i--]);
}

int uvd_plugins_look_again(struct uvd_plugins *plugins, const char *path, int copy, unsigned int limit_ms,
			   char error[UVD_PLUGIN_ERROR])
{
	int err;
	struct uvd_module *module =
		uvd_module_new(plugins, &(struct uvd_plugin_request){ .path = path }, NULL, error, &err);

	if (!module)
		return err;
	module->fd = copy;
	err = uvd_module_look(module, limit_ms, error);
	module->fd = -1;
	err = err ?: plugins_check_builtin_names(plugins, path, &module->plugin, error);
	if (!err)
		plugins_drop_replaced(plugins, &module->plugin);
	if (!err)
		return plugins_register(plugins, module, err, error);
	uvd_module_put(module);
	return err;
}

int uvd_plugins_add_builtin(struct uvd_plugins *plugins, const struct uvd_plugin *plugin)
{
	struct uvd_module *module = uvd_zalloc(sizeof(*module));
	char error[UVD_PLUGIN_ERROR] = "no memory";
	int err = -ENOMEM;

	if (module) {
		*module = (struct uvd_module){ .plugin = *plugin, .symbol = plugin, .generation = 1, .fd = -1 };
		module->log = plugins->log;
		atomic_init(&module->ref, 1);
		err = uvd_plugin_rows_check("uverbsd", plugin, true, error) ?:
		      uvd_plugin_roles_check(NULL, "uverbsd", plugin, error) ?:
		      uvd_plugins_check_names(plugins, "uverbsd", plugin, NULL, error) ?:
		      plugin->init ? plugin->init(&(struct uvd_plugin_values){ .options = plugin->options,
									       .name = plugin->name,
									       .what = "plug-in",
									       .log = plugins->log },
						  plugins->log, &module->data) :
				     0;
		module->begun = !err;
	}
	err = err ?: uvd_plugins_add(plugins, module, NULL, error);
	if (!err)
		return 0;
	uvd_logf(plugins->log, UVD_ERR, "%s", error);
	uvd_module_put(module);
	return err;
}
