/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Loads, reloads and unloads plug-ins while devices run. A change applies to all devices of the engine or to none. It
 * changes what files see that are opened afterwards: an open file keeps the parse tree, and the code, of its open.
 *
 * Call these functions on a thread that may block, and not from a plug-in. They serialize themselves, and wait for a
 * device that is being created. On an error `error` has a message for the user, without the program's name.
 */
#ifndef UVD_ENGINE_PLUGINS_H
#define UVD_ENGINE_PLUGINS_H

#include <stdbool.h>
#include <sys/types.h>
#include "plugin/plugin.h"

struct uvd_engine;
struct uvd_file;

/*
 * Loads a plug-in into an engine with or without devices. Returns 0, or a negative errno, and then nothing has changed.
 * owner: see uvd_plugins_load().
 */
int uvd_engine_plugin_load(struct uvd_engine *engine, const struct uvd_plugin_request *request, uid_t owner,
			   char error[UVD_PLUGIN_ERROR]);
/*
 * Loads the plug-in's file again, or request->path if that is not NULL: it must have the same plug-in name. request may
 * be NULL. Without values the options are those of the last load. The new version's init() and device_init() come before
 * exit() and device_exit() of the old one. Devices whose backend or persona the plug-in is keep the old code for that,
 * and with its persona also its features; new devices get the new code. Returns 0; -ENOENT: no such plug-in; or a
 * negative errno, and then nothing has changed.
 */
int uvd_engine_plugin_reload(struct uvd_engine *engine, const char *name, const struct uvd_plugin_request *request,
			     uid_t owner, char error[UVD_PLUGIN_ERROR]);
/*
 * Unloads a plug-in: files that are opened from now on do not have it. Contexts that have it keep it, so its code stays
 * mapped until their files are closed. If the plug-in has live objects: without `wait` the result is -EBUSY, and nothing
 * has changed; with `wait` this returns when the last one is gone, or -EINTR after stop() has returned true (NULL: it
 * never does): then the plug-in is unloaded all the same. `users` (may be NULL) is called once for each open file with
 * live objects; it must not block, and must not call into the core. -EBUSY also if a device uses a backend or a persona
 * of the plug-in; -ENOENT: no such plug-in; -EPERM: it is built in.
 */
int uvd_engine_plugin_unload(struct uvd_engine *engine, const char *name, bool wait, bool (*stop)(void *arg),
			     void (*users)(void *arg, struct uvd_file *file, unsigned int objects), void *arg,
			     char error[UVD_PLUGIN_ERROR]);

struct uvd_plugin_info {
	const char *name, *version, *description; /* version and description may be NULL */
	const char *path; /* of the file; NULL: built in */
	unsigned int generation; /* 1, and one more for each reload */
	unsigned int contexts; /* that have the plug-in now, in whatever version */
	unsigned int objects; /* the same; 0 if it is built in: a device's status counts those */
};

/*
 * Calls fn for each plug-in, in the order in which they were loaded. *info is valid during the call only. No plug-in
 * changes and no device is created meanwhile, so fn must not block.
 */
void uvd_engine_plugin_list(struct uvd_engine *engine, void (*fn)(void *arg, const struct uvd_plugin_info *info),
			    void *arg);

#endif
