/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The registry of an engine's plug-ins: those in the daemon itself ("built-in"), and shared objects.
 * include/uverbsd/plugin.h is what a plug-in sees. core/engine_plugins.h applies a change to running devices.
 *
 * A *module* is one loaded version of a plug-in, with references (the kernel's struct module). Whoever can call into
 * its code, or reads its rows, holds one: the registry, a generation of a device's parse trees, a device whose backend or
 * persona it is. The last one ends it: exit(), then dlclose().
 */
#ifndef UVD_PLUGIN_H
#define UVD_PLUGIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>
#include <uverbsd/plugin.h>

enum { UVD_PLUGIN_ERROR = 512 /* bytes of a message */ };

struct uvd_module;
struct uvd_plugins;

/* One --plugin, or one line of `plugin load`. */
struct uvd_plugin_request {
	const char *path; /* absolute, or relative to the working directory */
	const char *const *values; /* "KEY=VALUE", ends with NULL; may be NULL */
};

/*
 * Where the code of plug-ins comes from, if not from the file itself. open() returns a descriptor of a copy of the file, or
 * a negative errno and the message. map() is dlopen() of this descriptor, under this name; NULL: text (UVD_PLUGIN_ERROR
 * bytes) says why. close() comes after the copy was unmapped, or if it was never mapped; never if it cannot be unmapped.
 */
struct uvd_plugin_source {
	int (*open)(void *arg, const char *path, char error[UVD_PLUGIN_ERROR]);
	void *(*map)(void *arg, int fd, const char *name, char *text);
	void (*close)(void *arg, int fd);
};

/* ---- the registry ------------------------------------------------------------------------------------------------ */

/*
 * Creates a registry, with the backends null and soft and the personas hfi1 and rxe. The log must outlive it. NULL: no
 * memory.
 */
struct uvd_plugins *uvd_plugins_new(struct uvd_log *log);
/* Puts the registry's references, newest plug-in first. NULL is allowed. */
void uvd_plugins_free(struct uvd_plugins *plugins);
/* Sets where code comes from. Call it before anything is loaded. source and arg outlive all modules. */
void uvd_plugins_set_source(struct uvd_plugins *plugins, const struct uvd_plugin_source *source, void *arg);
/*
 * Registers a plug-in of the daemon itself, which stays valid. Returns 0, -EINVAL, -EEXIST or -ENOMEM; the log says
 * why. Call it before the engine has devices.
 */
int uvd_plugins_add_builtin(struct uvd_plugins *plugins, const struct uvd_plugin *plugin);
/*
 * Loads a shared object and registers it: --plugin. Only before the engine has devices: later
 * uvd_engine_plugin_load() does it. owner: the user whose files are trusted beside root's: who started `run`, or root
 * for the daemon. Refused are a file of another user, one that group or others may write to, one that is not a regular
 * file, and (if owner is root) one below a folder that users other than root may change. Returns 0, or a negative errno
 * with a message in `error` (without the program's name, as `FILE: REASON`).
 */
int uvd_plugins_load(struct uvd_plugins *plugins, const struct uvd_plugin_request *request, uid_t owner,
		     char error[UVD_PLUGIN_ERROR]);
/*
 * Registers what a shared object declares: its names and options, and of its backends and personas what sysfs files and
 * defaults are made from; none of their functions. Loads no code into this process: a child without rights does that
 * (look.c). For a registry without an engine. Call it while the process has one thread.
 */
int uvd_plugins_look(struct uvd_plugins *plugins, const struct uvd_plugin_request *request, uid_t owner,
		     char error[UVD_PLUGIN_ERROR]);
/*
 * As uvd_plugins_look(), of a copy of the file, which stays the caller's. What it declares takes the place of what
 * another plug-in of one of these names had declared. limit_ms: the time that the code's constructors have.
 */
int uvd_plugins_look_again(struct uvd_plugins *plugins, const char *path, int copy, unsigned int limit_ms,
			   char error[UVD_PLUGIN_ERROR]);
/*
 * file.c: return a descriptor of a private copy of a plug-in's file, or a negative errno and the message. The first
 * checks the file as uvd_plugins_load() says. The second takes a file of a folder by its name there, which can be
 * anybody's: it must be a name without '/', of a regular file that only root can change. folder is absolute; only root
 * may be able to change it and all that leads to it.
 */
int uvd_plugin_file_copy(const char *path, uid_t owner, char error[UVD_PLUGIN_ERROR]);
int uvd_plugin_file_copy_in(const char *folder, const char *name, char error[UVD_PLUGIN_ERROR]);
/*
 * elf.c: checks that the file can be mapped where no code may be writable, at no time. path: for messages. Returns 0 or
 * -ELIBBAD and the message.
 */
int uvd_plugin_elf_check(const char *path, int fd, char error[UVD_PLUGIN_ERROR]);
/*
 * Return the backend or the persona of that name, or that with the number i (from 0), or NULL. Any thread. What a
 * shared object has brought is valid until it is unloaded; a device that uses it prevents that.
 */
const struct uvd_backend *uvd_plugins_backend(struct uvd_plugins *plugins, const char *name);
const struct uvd_backend *uvd_plugins_backend_at(struct uvd_plugins *plugins, unsigned int i);
const struct uvd_persona *uvd_plugins_persona(struct uvd_plugins *plugins, const char *name);
const struct uvd_persona *uvd_plugins_persona_at(struct uvd_plugins *plugins, unsigned int i);

/* ---- filters ----------------------------------------------------------------------------------------------------- */

struct uvd_filter_instance;

/*
 * A filter is named by a text: NAME, or NAME:OPTIONS with OPTIONS as KEY=VALUE[,KEY=VALUE...]. Checks a text: is there
 * such a filter, and does it have such options? Returns 0, or -EINVAL with a message in `error`.
 */
int uvd_plugins_filter_check(struct uvd_plugins *plugins, const char *text, char error[UVD_PLUGIN_ERROR]);
/*
 * Begins a filter for a device: init(). The caller ends it by uvd_filter_instance_end(), or gives it to
 * uvd_filters_change(). It keeps a reference to the code. NULL: *err and a message in `error`.
 */
struct uvd_filter_instance *uvd_plugins_filter_begin(struct uvd_plugins *plugins, const char *text,
						     struct uvd_ibdev *dev, char error[UVD_PLUGIN_ERROR], int *err);
/* Does the filter's code belong to this plug-in? */
bool uvd_filter_instance_is_of(const struct uvd_filter_instance *instance, const char *plugin);
/* Calls fn for each filter that there is, under a lock of the registry. */
void uvd_plugins_filters_each(struct uvd_plugins *plugins, void (*fn)(void *arg, const struct uvd_filter *filter),
			      void *arg);

/* ---- modules: for the core --------------------------------------------------------------------------------------- */

enum { UVD_MAX_PLUGINS = 64 /* of an engine, with those in the daemon itself */ };

/* Constant once it is registered, but for ref. */
struct uvd_module {
	atomic_uint ref;
	struct uvd_plugin plugin; /* complete: what an older plug-in does not have is zero */
	const struct uvd_plugin *symbol; /* the plug-in's own, by which it asks for its data */
	void *data; /* of init() */
	unsigned int generation; /* 1, and one more for each reload */
	struct uvd_log *log;
	/* A shared object's; NULL and -1 for one that is built in. */
	char *path;
	char **values; /* "KEY=VALUE" of the load, ends with NULL */
	void **structs; /* extended copies of an older plug-in's backends and personas, and their lists; ends with NULL */
	void *handle; /* of dlopen() */
	const struct uvd_plugin_source *source; /* of fd; NULL: the file itself */
	void *source_arg;
	int fd; /* the private copy of the file, for debuggers: the name of the mapped object is /proc/PID/fd/FD */
	struct uvd_plugin_facts *facts; /* of uvd_plugins_look(), or NULL */
	bool begun; /* init() has succeeded, or there is none */
};

struct uvd_module *uvd_module_get(struct uvd_module *module);
/* Puts a reference. The last one ends the plug-in; no lock may be held that its exit() needs. NULL is allowed. */
void uvd_module_put(struct uvd_module *module);
/* Does an object with this row belong to the plug-in? */
bool uvd_module_has_object(const struct uvd_module *module, const struct uvd_object_row *row);

/*
 * Loads and checks a shared object and calls its init(), without registering it. old: the version that it is to
 * replace, whose name it must have; NULL: its names must be free. Returns NULL with *err and a message in `error`.
 */
struct uvd_module *uvd_module_load(struct uvd_plugins *plugins, const struct uvd_plugin_request *request, uid_t owner,
				   const struct uvd_module *old, char error[UVD_PLUGIN_ERROR], int *err);
/*
 * Registers a module, in the place of `old` unless that is NULL. Takes over the caller's reference, and puts the
 * registry's to `old`. Returns 0 or -ENOSPC, and then the reference is still the caller's.
 */
int uvd_plugins_add(struct uvd_plugins *plugins, struct uvd_module *module, struct uvd_module *old,
		    char error[UVD_PLUGIN_ERROR]);
/* Takes a module out of the registry and puts the registry's reference. */
void uvd_plugins_remove(struct uvd_plugins *plugins, struct uvd_module *module);
/* Returns the plug-in of that name, with a reference, or NULL. */
struct uvd_module *uvd_plugins_get(struct uvd_plugins *plugins, const char *name);
/* Stores all modules in the order of their loads, with a reference each. Returns how many. */
unsigned int uvd_plugins_list(struct uvd_plugins *plugins, struct uvd_module *list[UVD_MAX_PLUGINS]);
/* As uvd_plugins_backend() and uvd_plugins_persona(), and for filters, with a reference to the module in *module. */
const struct uvd_backend *uvd_plugins_backend_get(struct uvd_plugins *plugins, const char *name,
						  struct uvd_module **module);
const struct uvd_persona *uvd_plugins_persona_get(struct uvd_plugins *plugins, const char *name,
						  struct uvd_module **module);
const struct uvd_filter *uvd_plugins_filter_get(struct uvd_plugins *plugins, const char *name,
						struct uvd_module **module);

#endif
