/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The control commands that list, add, set and remove the filters of devices. They run on threads, as plug-ins' do. */
#include <stdio.h>
#include <string.h>

#include "control/plugin_jobs.h"
#include "core/core.h"
#include "util/util.h"

enum { MAX_DEVICE_NAMES = 256 };

static const char *filter_word(const json_t *words, size_t i)
{
	return json_string_value(json_array_get(words, i));
}

/* Calls fn for each device of the engine, under its plugins_lock: fn must not block. */
static void filter_each_device(struct uvd_engine *engine, void (*fn)(void *arg, struct uvd_device *dev), void *arg)
{
	struct uvd_device *dev;

	uvd_lock(&engine->plugins_lock);
	list_for_each_entry(dev, &engine->devices, of_engine)
		fn(arg, dev);
	uvd_unlock(&engine->plugins_lock);
}

/* ---- the device -------------------------------------------------------------------------------------------------- */

struct filter_search {
	const char *name; /* "": the only device */
	struct uvd_device *found; /* a reference */
	unsigned int num;
	char names[MAX_DEVICE_NAMES];
};

static void filter_look_at(void *arg, struct uvd_device *dev)
{
	struct filter_search *search = arg;
	const size_t len = strlen(search->names);

	snprintf(search->names + len, sizeof(search->names) - len, "%s%s", len ? ", " : "", dev->config.ibdev);
	search->num++;
	if (!search->found && (!*search->name || uvd_control_is_called(&dev->config, search->name)))
		search->found = uvd_device_get(dev);
}

/* Returns the device, with a reference; or NULL and an answer that says why. */
static struct uvd_device *filter_device(struct uvd_engine *engine, const char *name, json_t **answer)
{
	struct filter_search search = { .name = name };
	char why[MAX_DEVICE_NAMES + 64];

	filter_each_device(engine, filter_look_at, &search);
	if (search.found && (*name || search.num == 1))
		return search.found;
	if (search.found)
		uvd_device_put(search.found);
	if (!search.num)
		snprintf(why, sizeof(why), "there is no device");
	else
		snprintf(why, sizeof(why), "%s: %s",
			 *name ? "there is no such device; there are" : "name one of the devices", search.names);
	*answer = uvd_control_refuse(why);
	return NULL;
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

static void filter_tell_text(void *arg, const char *text)
{
	json_array_append_new(arg, json_pack("{s:s, s:[]}", "filter", text, "rules"));
}

/* To the filter that was told last. */
static void filter_tell_rule(void *arg, const char *rule, uint64_t seen, uint64_t done)
{
	const json_t *filter = json_array_get(arg, json_array_size(arg) - 1);

	json_array_append_new(json_object_get(filter, "rules"), json_pack("{s:s, s:I, s:I}", "rule", rule, "seen",
									  (json_int_t)seen, "done", (json_int_t)done));
}

static json_t *filter_tell(struct uvd_device *dev)
{
	const unsigned int unfiltered = uvd_device_unfiltered_files(dev);
	json_t *filters = json_array(), *told;

	uvd_device_filter_list(dev, filter_tell_text, filter_tell_rule, filters);
	told = json_pack("{s:s, s:o}", "device", dev->config.ibdev, "filters", filters);
	if (unfiltered)
		json_object_set_new(told, "unfiltered_files", json_integer(unfiltered));
	return told;
}

static void filter_tell_known(void *arg, const struct uvd_filter *filter)
{
	json_array_append_new(arg, json_pack("{s:s, s:s?}", "name", filter->name, "description", filter->description));
}

struct filter_devices {
	struct uvd_device *list[UVD_MAX_DEVICES]; /* references */
	unsigned int num;
};

static void filter_take_device(void *arg, struct uvd_device *dev)
{
	struct filter_devices *devices = arg;

	if (devices->num < UVD_MAX_DEVICES)
		devices->list[devices->num++] = uvd_device_get(dev);
}

static json_t *filter_run_list(struct plugin_job *job)
{
	struct uvd_engine *engine = uvd_plugin_job_config(job)->engine;
	json_t *list = json_array(), *known = json_array();
	struct filter_devices devices = {};

	filter_each_device(engine, filter_take_device, &devices);
	for (unsigned int i = 0; i < devices.num; i++) {
		json_array_append_new(list, filter_tell(devices.list[i]));
		uvd_device_put(devices.list[i]);
	}
	uvd_plugins_filters_each(engine->plugins, filter_tell_known, known);
	return json_pack("{s:o, s:o}", "devices", list, "known", known);
}

static json_t *filter_run_change(struct plugin_job *job,
				 int (*change)(struct uvd_device *dev, const char *text, char error[UVD_PLUGIN_ERROR]))
{
	struct uvd_engine *engine = uvd_plugin_job_config(job)->engine;
	char error[UVD_PLUGIN_ERROR] = "";
	json_t *answer = NULL;
	struct uvd_device *dev = filter_device(engine, filter_word(job->words, 1), &answer);

	if (!dev)
		return answer;
	answer = change(dev, filter_word(job->words, 2), error) ? uvd_control_refuse(error) : filter_tell(dev);
	uvd_device_put(dev);
	return answer;
}

static json_t *filter_run_add(struct plugin_job *job)
{
	return filter_run_change(job, uvd_device_filter_add);
}

static json_t *filter_run_set(struct plugin_job *job)
{
	return filter_run_change(job, uvd_device_filter_set);
}

static json_t *filter_run_remove(struct plugin_job *job)
{
	return filter_run_change(job, uvd_device_filter_remove);
}

static const struct filter_command {
	const char *name;
	json_t *(*run)(struct plugin_job *job);
	size_t num; /* words */
	bool changes;
} filter_commands[] = {
	{ "list", filter_run_list, 1, false },
	{ "add", filter_run_add, 3, true },
	{ "set", filter_run_set, 3, true },
	{ "remove", filter_run_remove, 3, true },
};

static const struct filter_command *filter_command_find(const json_t *words)
{
	const size_t num = json_array_size(words);

	for (size_t i = 0; i < num; i++)
		if (!filter_word(words, i))
			return NULL;
	for (size_t i = 0; num && i < UVD_COUNT(filter_commands); i++)
		if (!strcmp(filter_commands[i].name, filter_word(words, 0)))
			return num == filter_commands[i].num ? &filter_commands[i] : NULL;
	return NULL;
}

bool uvd_control_is_filter(const char *command)
{
	return !strncmp(command, "filter", 6) && (!command[6] || command[6] == ' ');
}

json_t *uvd_control_filter(struct uvd_control_plugins *plugins, const char *text, bool may_change)
{
	json_t *words = json_loads(text + strlen("filter"), 0, NULL);
	const struct filter_command *command = filter_command_find(words);
	const char *refusal = NULL;

	if (!command)
		refusal = "usage: filter [\"list\"], [\"add\" or \"set\", DEVICE or \"\", \"NAME:OPTIONS\"] or "
			  "[\"remove\", DEVICE or \"\", NAME]";
	else if (command->changes && !may_change)
		refusal = "only root and the user that serves the device may do that";
	else if (!plugins)
		refusal = "no memory";
	if (!refusal)
		return uvd_plugin_job_start(plugins, words, command->run, command->changes, false);
	json_decref(words);
	return uvd_control_refuse(refusal);
}
