/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Filters by their text: NAME or NAME:KEY=VALUE[,KEY=VALUE...]. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filters/filters.h"
#include "plugin/internal.h"

enum { MAX_FILTER_NAME = 31, MAX_FILTER_VALUES = 64, MAX_FILTER_TEXT = 1024 };

/* A text in its parts, which point into `copy`. */
struct filter_text {
	char copy[MAX_FILTER_TEXT];
	const char *name;
	char *values[MAX_FILTER_VALUES + 1]; /* ends with NULL */
	char what[MAX_FILTER_NAME + 16]; /* "filter NAME", for messages */
};

int uvd_plugin_filter_check(const char *what, const struct uvd_filter *filter, char error[UVD_PLUGIN_ERROR])
{
	if (!filter->name || !uvd_plugin_name_ok(filter->name, "-_", MAX_FILTER_NAME))
		return uvd_plugin_error(error, -EINVAL, "%s: a filter has no valid name", what);
	return uvd_plugin_options_check(what, filter->options, "-_.", error);
}

static int filter_text_parse(struct filter_text *t, const char *text, char error[UVD_PLUGIN_ERROR])
{
	char *options, *save, *value;
	unsigned int num = 0;

	if (strnlen(text, sizeof(t->copy)) == sizeof(t->copy))
		return uvd_plugin_error(error, -EINVAL, "a filter with its options has more than %d bytes",
					MAX_FILTER_TEXT - 1);
	strcpy(t->copy, text);
	t->name = t->copy;
	options = strchr(t->copy, ':');
	if (options)
		*options++ = 0;
	if (!uvd_plugin_name_ok(t->name, "-_", MAX_FILTER_NAME))
		return uvd_plugin_error(error, -EINVAL, "`%s` is not a valid name of a filter", t->name);
	snprintf(t->what, sizeof(t->what), "filter %.*s", MAX_FILTER_NAME, t->name);
	value = options ? strtok_r(options, ",", &save) : NULL;
	for (; value && num < MAX_FILTER_VALUES; value = strtok_r(NULL, ",", &save))
		t->values[num++] = value;
	t->values[num] = NULL;
	return value ? uvd_plugin_error(error, -EINVAL, "%s: more than %d options", t->what, MAX_FILTER_VALUES) : 0;
}

static void filter_add_name(void *arg, const struct uvd_filter *filter)
{
	uvd_nearest_add(arg, filter->name);
}

/* Returns the filter of the text, with a reference to its code. NULL: *err. */
static const struct uvd_filter *filter_of_text(struct uvd_plugins *plugins, struct filter_text *t, const char *text,
					       struct uvd_module **module, char error[UVD_PLUGIN_ERROR], int *err)
{
	struct uvd_nearest nearest = { .wrong = t->copy };
	const struct uvd_filter *filter;
	char names[UVD_NEAREST_TEXT];

	*err = filter_text_parse(t, text, error);
	if (*err)
		return NULL;
	filter = uvd_plugins_filter_get(plugins, t->name, module);
	if (!filter) {
		uvd_plugins_filters_each(plugins, filter_add_name, &nearest);
		*err = uvd_plugin_error(error, -EINVAL, "there is no filter '%s'; the nearest names are %s", t->name,
					uvd_nearest_text(&nearest, names));
		return NULL;
	}
	*err = uvd_plugin_values_check(t->what, filter->options, t->values, error);
	if (!*err)
		return filter;
	uvd_module_put(*module);
	return NULL;
}

int uvd_plugins_filter_check(struct uvd_plugins *plugins, const char *text, char error[UVD_PLUGIN_ERROR])
{
	struct uvd_module *module;
	struct filter_text t;
	int err;

	if (filter_of_text(plugins, &t, text, &module, error, &err))
		uvd_module_put(module);
	return err;
}

static void filter_put_module(void *module)
{
	uvd_module_put(module);
}

static int filter_init(struct uvd_filter_instance *instance, const struct filter_text *t, char error[UVD_PLUGIN_ERROR])
{
	const struct uvd_plugin_values values = {
		.options = instance->filter->options,
		.given = t->values,
		.name = t->name,
		.what = "filter",
		.log = instance->dev->log,
		.error = error,
		.instance = instance,
	};
	int err;

	*error = 0;
	err = instance->filter->init ? instance->filter->init(instance->dev, &values, &instance->data) : 0;
	if (err && !*error)
		uvd_plugin_error(error, err, "%s does not begin: %s", t->what, uvd_errno_name(err));
	return err > 0 ? -EINVAL : err;
}

void uvd_filter_has_rules(const struct uvd_plugin_values *values,
			  void (*rules)(void *data, uvd_filter_tell_fn tell, void *arg))
{
	if (values->instance)
		values->instance->rules = rules;
}

struct uvd_filter_instance *uvd_plugins_filter_begin(struct uvd_plugins *plugins, const char *text,
						     struct uvd_ibdev *dev, char error[UVD_PLUGIN_ERROR], int *err)
{
	struct uvd_filter_instance *instance;
	struct uvd_module *module;
	struct filter_text t;
	const struct uvd_filter *filter = filter_of_text(plugins, &t, text, &module, error, err);

	if (!filter)
		return NULL;
	instance = uvd_zalloc(sizeof(*instance));
	*err = uvd_plugin_error(error, -ENOMEM, "%s: ENOMEM", t.what);
	if (instance) {
		*instance = (struct uvd_filter_instance){
			.filter = filter,
			.dev = dev,
			.text = strdup(text),
			.put_owner = filter_put_module,
			.owner = module,
		};
		if (instance->text)
			*err = filter_init(instance, &t, error);
		if (!*err)
			return instance;
		free(instance->text);
		free(instance);
	}
	uvd_module_put(module);
	return NULL;
}

bool uvd_filter_instance_is_of(const struct uvd_filter_instance *instance, const char *plugin)
{
	const struct uvd_module *module = instance->owner;

	return !strcmp(module->plugin.name, plugin);
}
