/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* One loaded version of a plug-in: from the file to init(), and from the last reference to dlclose(). */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin/internal.h"

enum {
	/* The fields that every version has. */
	LEAST_SIZE = offsetof(struct uvd_plugin, version),
};

struct uvd_module *uvd_module_get(struct uvd_module *module)
{
	if (module)
		atomic_fetch_add(&module->ref, 1);
	return module;
}

static void module_values_free(char **values)
{
	for (char **v = values; v && *v; v++)
		free(*v);
	free(values);
}

static void module_close(struct uvd_module *module)
{
	if (module->source)
		module->source->close(module->source_arg, module->fd);
	else
		close(module->fd);
}

void uvd_module_put(struct uvd_module *module)
{
	Dl_info info;

	if (!module || atomic_fetch_sub(&module->ref, 1) != 1)
		return;
	if (module->begun && module->plugin.exit)
		module->plugin.exit(module->data);
	if (module->symbol && module->handle)
		uvd_crash_remove(module->symbol);
	if (module->handle) {
		dlclose(module->handle);
		/* It cannot be unmapped (NODELETE): keep the descriptor, or dlopen() takes the next file of that number for it. */
		if (module->symbol && dladdr(module->symbol, &info))
			module->fd = -1;
	}
	if (module->fd >= 0)
		module_close(module);
	uvd_module_structs_free(module);
	uvd_facts_free(module->facts);
	module_values_free(module->values);
	free(module->path);
	free(module);
}

bool uvd_module_has_object(const struct uvd_module *module, const struct uvd_object_row *row)
{
	for (const struct uvd_feature *const *f = module->plugin.features; f && *f; f++)
		for (const struct uvd_object_row *const *o = (*f)->objects; o && *o; o++)
			if (*o == row)
				return true;
	return false;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

static char **module_values_copy(const char *const *values)
{
	unsigned int n = 0;
	char **copy;

	while (values && values[n])
		n++;
	copy = uvd_zalloc((n + 1) * sizeof(*copy));
	for (unsigned int i = 0; copy && i < n; i++) {
		copy[i] = strdup(values[i]);
		if (!copy[i]) {
			module_values_free(copy);
			return NULL;
		}
	}
	return copy;
}

/* Without the name of the mapped copy, which says nothing to the user. */
static const char *dl_message(const char *name, const char *text)
{
	const size_t len = strlen(name);

	return !strncmp(text, name, len) && !strncmp(text + len, ": ", 2) ? text + len + 2 : text;
}

static int module_map(struct uvd_module *m, char error[UVD_PLUGIN_ERROR])
{
	char name[64], text[UVD_PLUGIN_ERROR];

	/* The descriptor stays open: dlopen() takes equal names for one object, and debuggers open it by this name. */
	snprintf(name, sizeof(name), "/proc/%d/fd/%d", getpid(), m->fd);
	if (m->source)
		m->handle = m->source->map(m->source_arg, m->fd, name, text);
	else
		m->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!m->handle && !m->source)
		snprintf(text, sizeof(text), "%s", dlerror() ?: "cannot be loaded");
	if (!m->handle)
		return uvd_plugin_error(error, -ELIBBAD, "%s: %s", m->path, dl_message(name, text));
	m->symbol = dlsym(m->handle, "uverbsd_plugin");
	if (!m->symbol)
		return uvd_plugin_error(error, -ELIBBAD, "%s: not a plug-in: it has no symbol uverbsd_plugin", m->path);
	return 0;
}

/* Returns how many bytes the symbol has in the file, or 0. */
static size_t module_symbol_size(const struct uvd_plugin *symbol)
{
	const ElfW(Sym) *sym = NULL;
	Dl_info info;

	return dladdr1(symbol, &info, (void **)&sym, RTLD_DL_SYMENT) && sym ? sym->st_size : 0;
}

/* Copies the struct, whatever its version's size. As copy_struct_from_user(): what we do not know must be zero. */
static int module_struct_copy(struct uvd_module *m, char error[UVD_PLUGIN_ERROR])
{
	const size_t have = module_symbol_size(m->symbol);
	uint32_t size;

	if (have < 2 * sizeof(uint32_t))
		return uvd_plugin_error(error, -ELIBBAD, "%s: uverbsd_plugin is not a struct uvd_plugin", m->path);
	if (m->symbol->api_version != UVD_API_VERSION)
		return uvd_plugin_error(error, -ENOEXEC,
					"%s: made for API version %u, but this uverbsd has API version %u: rebuild it",
					m->path, m->symbol->api_version, UVD_API_VERSION);
	size = m->symbol->struct_size;
	if (size < LEAST_SIZE || size > have)
		return uvd_plugin_error(error, -ELIBBAD, "%s: struct_size %u is wrong: uverbsd_plugin has %zu bytes",
					m->path, size, have);
	for (size_t i = sizeof(m->plugin); i < size; i++)
		if (((const char *)m->symbol)[i])
			return uvd_plugin_error(error, -ENOEXEC,
						"%s: it needs a newer uverbsd, whose struct uvd_plugin has %u bytes",
						m->path, size);
	memcpy(&m->plugin, m->symbol, size < sizeof(m->plugin) ? size : sizeof(m->plugin));
	return 0;
}

static int module_check(struct uvd_plugins *plugins, struct uvd_module *m, const struct uvd_module *old,
			char error[UVD_PLUGIN_ERROR])
{
	const char *name = m->plugin.name;
	int err;

	if (!name || !uvd_plugin_name_ok(name, "-_", 63))
		return uvd_plugin_error(error, -EINVAL, "%s: `%s` is not a valid name of a plug-in", m->path,
					name ?: "");
	if (old && strcmp(name, old->plugin.name))
		return uvd_plugin_error(error, -EINVAL, "%s: it is plug-in '%s', and not '%s'", m->path, name,
					old->plugin.name);
	err = uvd_plugin_options_check(m->path, m->plugin.options, "-", error)
		      ?: uvd_plugin_values_check(m->path, m->plugin.options, m->values, error);
	if (!err)
		err = uvd_plugin_rows_check(m->path, &m->plugin, false, error)
			      ?: uvd_plugin_roles_check(plugins, m->path, &m->plugin, error);
	return err ?: uvd_plugins_check_names(plugins, m->path, &m->plugin, old, error);
}

static int module_begin(struct uvd_module *m, char error[UVD_PLUGIN_ERROR])
{
	const struct uvd_plugin_values values = {
		.options = m->plugin.options,
		.given = m->values,
		.name = m->plugin.name,
		.what = "plug-in",
		.log = m->log,
	};
	int err = m->plugin.init ? m->plugin.init(&values, m->log, &m->data) : 0;

	if (err)
		return uvd_plugin_error(error, err < 0 ? err : -EINVAL, "%s: init() failed: %s", m->path,
					uvd_errno_name(err));
	m->begun = true;
	return 0;
}

struct uvd_module *uvd_module_new(struct uvd_plugins *plugins, const struct uvd_plugin_request *request,
				  const struct uvd_module *old, char error[UVD_PLUGIN_ERROR], int *err)
{
	const char *path = request && request->path ? request->path : old->path;
	const char *const *values = request ? request->values : NULL;
	struct uvd_module *m = uvd_zalloc(sizeof(*m));

	if (!values && old)
		values = (const char *const *)old->values;
	*err = uvd_plugin_error(error, -ENOMEM, "%s: ENOMEM", path);
	if (!m)
		return NULL;
	atomic_init(&m->ref, 1);
	m->fd = -1;
	m->log = uvd_plugins_log(plugins);
	m->generation = old ? old->generation + 1 : 1;
	/* Absolute, because the working directory can be another one at a reload. */
	m->path = realpath(path, NULL) ?: strdup(path);
	m->values = module_values_copy(values);
	if (m->path && m->values)
		return m;
	uvd_module_put(m);
	return NULL;
}

int uvd_module_map(struct uvd_plugins *plugins, struct uvd_module *m, const struct uvd_module *old,
		   char error[UVD_PLUGIN_ERROR])
{
	int err = module_map(m, error) ?: module_struct_copy(m, error) ?: uvd_module_structs_extend(m, error) ?:
		  module_check(plugins, m, old, error);

	if (!err)
		uvd_crash_add(m->plugin.name, m->symbol);
	return err;
}

struct uvd_module *uvd_module_load(struct uvd_plugins *plugins, const struct uvd_plugin_request *request, uid_t owner,
				   const struct uvd_module *old, char error[UVD_PLUGIN_ERROR], int *err)
{
	struct uvd_module *m = uvd_module_new(plugins, request, old, error, err);

	if (!m)
		return NULL;
	m->source = uvd_plugins_source(plugins, &m->source_arg);
	if (m->source)
		m->fd = *err = m->source->open(m->source_arg, m->path, error);
	else
		m->fd = *err = uvd_plugin_file_copy(request && request->path ? request->path : m->path, owner, error);
	if (*err >= 0)
		*err = uvd_module_map(plugins, m, old, error) ?: module_begin(m, error);
	if (!*err)
		return m;
	uvd_module_put(m);
	return NULL;
}
