/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <stdio.h>

#include "core/internal.h"

int uvd_engine_plugin_load(struct uvd_engine *engine, const struct uvd_plugin_request *request, uid_t owner,
			   char error[UVD_PLUGIN_ERROR])
{
	return uvd_plugins_load(engine->plugins, request, owner, error);
}

int uvd_engine_plugin_reload(struct uvd_engine *engine, const char *name, const struct uvd_plugin_request *request,
			     uid_t owner, char error[UVD_PLUGIN_ERROR])
{
	snprintf(error, UVD_PLUGIN_ERROR, "%s: plug-ins are not supported", name);
	return -EOPNOTSUPP;
}

int uvd_engine_plugin_unload(struct uvd_engine *engine, const char *name, bool wait, bool (*stop)(void *arg),
			     void (*users)(void *arg, struct uvd_file *file, unsigned int objects), void *arg,
			     char error[UVD_PLUGIN_ERROR])
{
	snprintf(error, UVD_PLUGIN_ERROR, "%s: plug-ins are not supported", name);
	return -EOPNOTSUPP;
}

void uvd_engine_plugin_list(struct uvd_engine *engine, void (*fn)(void *arg, const struct uvd_plugin_info *info),
			    void *arg)
{
}
