/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The control commands that load, reload, unload and list plug-ins. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/plugin_jobs.h"
#include "core/core.h"
#include "options/options.h"
#include "util/util.h"

enum { MOST_USERS = 1024 /* that an answer lists */, MOST_NAMED = 8 /* that its error names */, MAX_VALUES = 64 };

static const char *plugin_word(const json_t *words, size_t i)
{
	return json_string_value(json_array_get(words, i));
}

/* ---- the nearest names ------------------------------------------------------------------------------------------- */

static void plugin_add_name(void *arg, const struct uvd_plugin_info *info)
{
	if (info->path)
		uvd_nearest_add(arg, info->name);
}

/* Returns the error of a change, with the nearest names of loaded plug-ins if there is none of this name. */
static json_t *plugin_refuse_name(struct uvd_engine *engine, const char *name, int err, const char *error)
{
	struct uvd_nearest nearest = { .wrong = name };
	char names[UVD_NEAREST_TEXT];

	if (err == -ENOENT)
		uvd_engine_plugin_list(engine, plugin_add_name, &nearest);
	if (err != -ENOENT || !*uvd_nearest_text(&nearest, names))
		return uvd_control_refuse(error);
	return json_pack("{s:s++}", "error", error, "; the nearest names are ", names);
}

/* Does the same for a file that does not exist: the nearest names in its folder. */
static json_t *plugin_refuse_file(const char *path, const char *error)
{
	const char *name = strrchr(path, '/');
	struct uvd_nearest nearest = { .wrong = name ? name + 1 : path };
	char names[UVD_NEAREST_TEXT], folder[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	if (!name || !access(path, F_OK))
		return uvd_control_refuse(error);
	snprintf(folder, sizeof(folder), "%.*s", name == path ? 1 : (int)(name - path), path);
	dir = opendir(folder);
	while (dir && (entry = readdir(dir))) {
		const char *end = strrchr(entry->d_name, '.');

		if (end && !strcmp(end, ".so"))
			uvd_nearest_add(&nearest, entry->d_name);
	}
	if (dir)
		closedir(dir);
	if (!*uvd_nearest_text(&nearest, names))
		return uvd_control_refuse(error);
	return json_pack("{s:s++}", "error", error, "; the nearest names there are ", names);
}

/* ---- list -------------------------------------------------------------------------------------------------------- */

static void plugin_tell(void *arg, const struct uvd_plugin_info *info)
{
	json_array_append_new(arg, json_pack("{s:s, s:s?, s:s?, s:s?, s:i, s:i, s:i}", "name", info->name, "version",
					     info->version, "description", info->description, "file", info->path,
					     "generation", info->generation, "contexts", info->contexts, "objects",
					     info->objects));
}

static json_t *control_plugin_list(struct uvd_engine *engine)
{
	json_t *list = json_array();

	uvd_engine_plugin_list(engine, plugin_tell, list);
	return list;
}

static json_t *plugin_run_list(struct plugin_job *job)
{
	return json_pack("{s:o}", "plugins", control_plugin_list(uvd_plugin_job_config(job)->engine));
}

/* Returns the entry whose `key` is `value`, the latest of several; or an empty answer. */
static json_t *plugin_entry_of(struct uvd_engine *engine, const char *key, const char *value)
{
	json_t *list = control_plugin_list(engine), *found = NULL, *entry;
	size_t i;

	json_array_foreach(list, i, entry) {
		const char *text = json_string_value(json_object_get(entry, key));

		if (text && !strcmp(text, value))
			found = entry;
	}
	found = found ? json_incref(found) : json_object();
	json_decref(list);
	return found;
}

/* ---- load, reload ------------------------------------------------------------------------------------------------ */

/* Stores the words from `first` on in `values`, which ends with NULL. */
static void plugin_values(const json_t *words, size_t first, const char *values[MAX_VALUES + 1])
{
	size_t num = 0;

	while (num < MAX_VALUES && (values[num] = plugin_word(words, first + num)))
		num++;
	values[num] = NULL;
}

static json_t *plugin_run_load(struct plugin_job *job)
{
	struct uvd_engine *engine = uvd_plugin_job_config(job)->engine;
	const char *values[MAX_VALUES + 1], *path = plugin_word(job->words, 1);
	const struct uvd_plugin_request request = { .path = path, .values = values };
	char error[UVD_PLUGIN_ERROR] = "", *file;
	json_t *answer;

	plugin_values(job->words, 2, values);
	if (uvd_engine_plugin_load(engine, &request, geteuid(), error))
		return plugin_refuse_file(path, error);
	file = realpath(path, NULL);
	answer = plugin_entry_of(engine, "file", file ? file : path);
	free(file);
	return answer;
}

static json_t *plugin_run_reload(struct plugin_job *job)
{
	struct uvd_engine *engine = uvd_plugin_job_config(job)->engine;
	const char *values[MAX_VALUES + 1], *name = plugin_word(job->words, 1), *path = plugin_word(job->words, 2);
	struct uvd_plugin_request request = { .path = path && *path ? path : NULL };
	char error[UVD_PLUGIN_ERROR] = "";
	int err;

	plugin_values(job->words, 3, values);
	request.values = values[0] ? values : NULL;
	err = uvd_engine_plugin_reload(engine, name, &request, geteuid(), error);
	return err ? plugin_refuse_name(engine, name, err, error) : plugin_entry_of(engine, "name", name);
}

/* ---- unload ------------------------------------------------------------------------------------------------------ */

struct plugin_users {
	struct plugin_job *job;
	unsigned int num;
	struct {
		pid_t pid;
		unsigned int objects;
	} list[MOST_USERS];
};

static void plugin_add_user(void *arg, struct uvd_file *file, unsigned int objects)
{
	struct plugin_users *users = arg;

	if (users->num < MOST_USERS) {
		users->list[users->num].pid = file->watched.opened_by;
		users->list[users->num++].objects = objects;
	}
}

static bool plugin_job_stops(void *arg)
{
	struct plugin_users *users = arg;

	return atomic_load(&users->job->stop);
}

/* Adds to the answer who has live objects, in its error for people, and as a list. */
static void plugin_tell_users(const struct uvd_control_plugin_config *config, const struct plugin_users *users,
			      const char *error, json_t *answer)
{
	char text[UVD_PLUGIN_ERROR + MOST_NAMED * 80], name[32];
	json_t *list = json_array();
	size_t len = snprintf(text, sizeof(text), "%s", error);

	for (unsigned int i = 0; i < users->num; i++) {
		const pid_t pid = users->list[i].pid;

		config->program(config->arg, pid, name, sizeof(name));
		json_array_append_new(list, json_pack("{s:i, s:s%, s:i}", "pid", pid, "program", name, strlen(name),
						      "objects", users->list[i].objects));
		if (i < MOST_NAMED && len < sizeof(text))
			len += snprintf(text + len, sizeof(text) - len, "%s process %d%s%s%s has %u", i ? "," : ":",
					pid, *name ? " (" : "", name, *name ? ")" : "", users->list[i].objects);
	}
	if (users->num > MOST_NAMED && len < sizeof(text))
		snprintf(text + len, sizeof(text) - len, ", and %u more open files", users->num - MOST_NAMED);
	json_object_set_new(answer, "error", json_stringn(text, strlen(text)) ?: json_string(error));
	json_object_set_new(answer, "users", list);
}

static json_t *plugin_run_unload(struct plugin_job *job)
{
	const struct uvd_control_plugin_config *config = uvd_plugin_job_config(job);
	const bool wait = json_array_size(job->words) > 2;
	const char *name = plugin_word(job->words, 1);
	struct plugin_users *users = calloc(1, sizeof(*users));
	char error[UVD_PLUGIN_ERROR] = "";
	json_t *answer;
	int err;

	if (!users)
		return NULL;
	users->job = job;
	err = uvd_engine_plugin_unload(config->engine, name, wait, plugin_job_stops, plugin_add_user, users, error);
	answer = err ? plugin_refuse_name(config->engine, name, err, error) : json_pack("{s:s}", "name", name);
	if (err && err != -ENOENT && users->num && answer)
		plugin_tell_users(config, users, error, answer);
	free(users);
	return answer;
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

static const struct plugin_command {
	const char *name;
	json_t *(*run)(struct plugin_job *job);
	size_t min, max; /* words */
	bool changes;
} plugin_commands[] = {
	{ "load", plugin_run_load, 2, MAX_VALUES + 2, true },
	{ "reload", plugin_run_reload, 2, MAX_VALUES + 3, true },
	{ "unload", plugin_run_unload, 2, 3, true },
	{ "list", plugin_run_list, 1, 1, false },
};

static const struct plugin_command *plugin_command_find(const json_t *words)
{
	const size_t num = json_array_size(words);
	const char *name = plugin_word(words, 0);
	size_t i;

	for (i = 0; i < num; i++)
		if (!plugin_word(words, i))
			return NULL;
	for (i = 0; name && i < UVD_COUNT(plugin_commands); i++)
		if (!strcmp(plugin_commands[i].name, name))
			break;
	return name && i < UVD_COUNT(plugin_commands) && num >= plugin_commands[i].min && num <= plugin_commands[i].max
		       ? &plugin_commands[i]
		       : NULL;
}

/* Returns why the words are refused, or NULL. */
static const char *plugin_refusal(const struct plugin_command *command, const json_t *words, bool may_change)
{
	const char *path = NULL;

	if (!command)
		return "usage: plugin [\"load\", FILE, VALUE...], [\"reload\", NAME, FILE, VALUE...], [\"unload\", NAME, \"wait\"] or "
		       "[\"list\"]";
	if (command->changes && !may_change)
		return "only root and the user that serves the device may do that";
	if (command->run == plugin_run_load)
		path = plugin_word(words, 1);
	else if (command->run == plugin_run_reload)
		path = plugin_word(words, 2);
	if (path && *path != '/' && (*path || command->run == plugin_run_load))
		return "the path of the file is not absolute";
	if (command->run == plugin_run_unload && plugin_word(words, 2) && strcmp(plugin_word(words, 2), "wait"))
		return "the third word can only be \"wait\"";
	return NULL;
}

bool uvd_control_is_plugin(const char *command)
{
	return !strncmp(command, "plugin", 6) && (!command[6] || command[6] == ' ');
}

json_t *uvd_control_plugin(struct uvd_control_plugins *plugins, const char *text, bool may_change)
{
	json_t *words = json_loads(text + strlen("plugin"), 0, NULL);
	const struct plugin_command *command = plugin_command_find(words);
	const char *refusal = plugins ? plugin_refusal(command, words, may_change) : "no memory";

	if (!refusal)
		return uvd_plugin_job_start(plugins, words, command->run, command->changes,
					    command->run == plugin_run_unload && json_array_size(words) > 2);
	json_decref(words);
	return uvd_control_refuse(refusal);
}
