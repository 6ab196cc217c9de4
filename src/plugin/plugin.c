/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "plugin/plugin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "persona/persona.h"
#include "util/util.h"

struct uvd_plugins {
	struct uvd_log *log;
};

struct uvd_plugins *uvd_plugins_new(struct uvd_log *log)
{
	struct uvd_plugins *plugins = uvd_zalloc(sizeof(*plugins));

	if (plugins)
		plugins->log = log;
	return plugins;
}

void uvd_plugins_free(struct uvd_plugins *plugins)
{
	free(plugins);
}

int uvd_plugins_add_builtin(struct uvd_plugins *plugins, const struct uvd_plugin *plugin)
{
	return 0;
}

int uvd_plugins_load(struct uvd_plugins *plugins, const struct uvd_plugin_request *request, uid_t owner,
		     char error[UVD_PLUGIN_ERROR])
{
	snprintf(error, UVD_PLUGIN_ERROR, "%s: plug-ins are not supported", request->path);
	return -EOPNOTSUPP;
}

const struct uvd_backend *uvd_plugins_backend(struct uvd_plugins *plugins, const char *name)
{
	return uvd_backend_find(name);
}

const struct uvd_backend *uvd_plugins_backend_at(struct uvd_plugins *plugins, unsigned int i)
{
	return uvd_backend_at(i);
}

const struct uvd_persona *uvd_plugins_persona(struct uvd_plugins *plugins, const char *name)
{
	return uvd_persona_find(name);
}

const struct uvd_persona *uvd_plugins_persona_at(struct uvd_plugins *plugins, unsigned int i)
{
	return uvd_persona_at(i);
}
