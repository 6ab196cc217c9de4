/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The files of this room share these declarations. */
#ifndef UVD_PLUGIN_INTERNAL_H
#define UVD_PLUGIN_INTERNAL_H

#include <uverbsd/log.h>
#include "plugin/plugin.h"
#include "util/util.h"

/* The values of a plug-in's options, for its init(). */
struct uvd_plugin_values {
	const struct uvd_plugin_option *options;
	char *const *given; /* "KEY=VALUE", ends with NULL; the last one of a key counts */
	const char *name; /* of the plug-in or the filter, for messages */
	const char *what; /* "plug-in" or "filter" */
	struct uvd_log *log;
	char *error; /* UVD_PLUGIN_ERROR bytes, for what is wrong with a value; NULL: the log */
	struct uvd_filter_instance *instance; /* of a filter's init(); else NULL */
};

/* Writes the message and returns err. */
int uvd_plugin_error(char error[UVD_PLUGIN_ERROR], int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Is it a name of letters, digits and these other characters, of 1 to `most` bytes? */
bool uvd_plugin_name_ok(const char *name, const char *others, size_t most);

/*
 * module.c: makes a module without code, of the file and the values of the request; what is missing there is that of
 * `old`. Returns NULL with *err and a message in `error`.
 */
struct uvd_module *uvd_module_new(struct uvd_plugins *plugins, const struct uvd_plugin_request *request,
				  const struct uvd_module *old, char error[UVD_PLUGIN_ERROR], int *err);
/* Maps and checks the copy of the file that module->fd is. plugins: NULL: its names are not compared with others'. Returns 0 or a negative errno and a message. */
int uvd_module_map(struct uvd_plugins *plugins, struct uvd_module *module, const struct uvd_module *old,
		   char error[UVD_PLUGIN_ERROR]);
/*
 * look.c: a child without rights maps the copy and tells its facts, whatever other plug-ins are called. Sets module->plugin and module->facts. limit_ms: the
 * time that the child has. Returns 0 or a negative errno and a message.
 */
int uvd_module_look(struct uvd_module *module, unsigned int limit_ms, char error[UVD_PLUGIN_ERROR]);
/*
 * facts.c: what a plug-in declares, as JSON between two processes. write() returns the text, which the caller frees, or
 * NULL. read() sets *plugin and *facts, which has all that *plugin points to; the text can be anybody's. what: the file,
 * for messages. Returns 0 or a negative errno and a message: a wrong text, or the error that it tells.
 */
char *uvd_facts_write(const struct uvd_plugin *plugin);
char *uvd_facts_write_error(int err, const char *error);
int uvd_facts_read(const char *what, const char *text, size_t len, struct uvd_plugin *plugin,
		   struct uvd_plugin_facts **facts, char error[UVD_PLUGIN_ERROR]);
void uvd_facts_free(struct uvd_plugin_facts *facts);
/* values.c: checks the names of the declared options: letters, digits and these other characters. what: for messages. */
int uvd_plugin_options_check(const char *what, const struct uvd_plugin_option *options, const char *others,
			     char error[UVD_PLUGIN_ERROR]);
/* values.c: checks that each given value is for one of the options. */
int uvd_plugin_values_check(const char *what, const struct uvd_plugin_option *options, char *const *given,
			    char error[UVD_PLUGIN_ERROR]);
/* filter.c: checks a filter that a plug-in brings. */
int uvd_plugin_filter_check(const char *what, const struct uvd_filter *filter, char error[UVD_PLUGIN_ERROR]);
/* rows.c: checks all that the plug-in brings, as far as that needs no other plug-in. */
int uvd_plugin_rows_check(const char *what, const struct uvd_plugin *plugin, bool built_in,
			  char error[UVD_PLUGIN_ERROR]);
/*
 * roles.c: checks what the plug-in states of its rows, which have been checked. A handle can be of an object of these
 * plug-ins, too; NULL: of any. The second function: has the plug-in an object of this id?
 */
int uvd_plugin_roles_check(struct uvd_plugins *plugins, const char *what, const struct uvd_plugin *plugin,
			   char error[UVD_PLUGIN_ERROR]);
bool uvd_plugin_has_object(const struct uvd_plugin *plugin, uint16_t id);
/* registry.c: does any plug-in have an object of this id? */
bool uvd_plugins_have_object(struct uvd_plugins *plugins, uint16_t id);
/* operations.c: checks that a backend and a persona are complete. */
int uvd_plugin_backend_check(const char *what, const struct uvd_backend *backend, char error[UVD_PLUGIN_ERROR]);
int uvd_plugin_persona_check(const char *what, const struct uvd_persona *persona, char error[UVD_PLUGIN_ERROR]);
/*
 * structs.c: replaces backends, personas and filters of another size, in module->plugin, by copies of ours, which the other function
 * frees.
 */
int uvd_module_structs_extend(struct uvd_module *module, char error[UVD_PLUGIN_ERROR]);
void uvd_module_structs_free(struct uvd_module *module);
struct uvd_log *uvd_plugins_log(struct uvd_plugins *plugins);
const struct uvd_plugin_source *uvd_plugins_source(struct uvd_plugins *plugins, void **arg);
/* registry.c: -EEXIST if plugins is not NULL and the name of the plug-in, of a backend or of a persona is taken by another one than `old`. */
int uvd_plugins_check_names(struct uvd_plugins *plugins, const char *what, const struct uvd_plugin *plugin,
			    const struct uvd_module *old, char error[UVD_PLUGIN_ERROR]);

#endif
