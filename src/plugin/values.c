/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The options of a plug-in: what it declares, and what the user gave. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/internal.h"

static const struct uvd_plugin_option *option_find(const struct uvd_plugin_option *options, const char *name,
						   size_t len)
{
	for (; options && options->name; options++)
		if (strlen(options->name) == len && !memcmp(options->name, name, len))
			return options;
	return NULL;
}

enum { MAX_NAMES = 256, MOST_LISTED = 16 };

/* Writes the names of all options, or if they are many, those nearest to the wrong one. */
static void option_names(const struct uvd_plugin_option *options, const char *wrong, size_t len, char text[MAX_NAMES])
{
	struct uvd_nearest nearest = {};
	char word[64], names[UVD_NEAREST_TEXT];
	unsigned int num = 0;
	size_t at;

	snprintf(word, sizeof(word), "%.*s", (int)len, wrong);
	nearest.wrong = word;
	at = snprintf(text, MAX_NAMES, "its options: %s", options && options->name ? "" : "none");
	for (const struct uvd_plugin_option *o = options; o && o->name; o++, num++) {
		uvd_nearest_add(&nearest, o->name);
		if (at < MAX_NAMES)
			at += snprintf(text + at, MAX_NAMES - at, "%s%s", o == options ? "" : ", ", o->name);
	}
	if (num > MOST_LISTED)
		snprintf(text, MAX_NAMES, "the nearest are %s", uvd_nearest_text(&nearest, names));
}

int uvd_plugin_options_check(const char *what, const struct uvd_plugin_option *options, const char *others,
			     char error[UVD_PLUGIN_ERROR])
{
	for (const struct uvd_plugin_option *o = options; o && o->name; o++)
		if (!uvd_plugin_name_ok(o->name, others, 63))
			return uvd_plugin_error(error, -EINVAL, "%s: `%s` is not a valid name of an option", what,
						o->name);
	return 0;
}

int uvd_plugin_values_check(const char *what, const struct uvd_plugin_option *options, char *const *given,
			    char error[UVD_PLUGIN_ERROR])
{
	char names[MAX_NAMES];

	for (; given && *given; given++) {
		const size_t len = strcspn(*given, "=");

		if (!(*given)[len])
			return uvd_plugin_error(error, -EINVAL, "%s: `%s` is not KEY=VALUE", what, *given);
		if (option_find(options, *given, len))
			continue;
		option_names(options, *given, len, names);
		return uvd_plugin_error(error, -EINVAL, "%s: no option `%.*s`; %s", what, (int)len, *given, names);
	}
	return 0;
}

const char *uvd_plugin_value(const struct uvd_plugin_values *values, const char *name)
{
	const size_t len = strlen(name);
	const struct uvd_plugin_option *option = option_find(values->options, name, len);
	const char *value = option ? option->value : NULL;

	for (char *const *given = values->given; option && given && *given; given++)
		if (!strncmp(*given, name, len) && (*given)[len] == '=')
			value = *given + len + 1;
	return value;
}

static bool number_parse(const char *text, uint64_t *out)
{
	const bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	unsigned int shift = 0;
	char *end;

	if (hex ? !isxdigit((unsigned char)text[2]) : !isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*out = strtoull(text, &end, hex ? 16 : 10);
	if (errno)
		return false;
	if (*end == 'K' || *end == 'M' || *end == 'G')
		shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 30;
	if (end[!!shift] || *out << shift >> shift != *out)
		return false;
	*out <<= shift;
	return true;
}

int uvd_plugin_wrong(const struct uvd_plugin_values *values, const char *name, const char *why)
{
	const char *text = uvd_plugin_value(values, name);

	if (values->error)
		return uvd_plugin_error(values->error, -EINVAL, "%s %s: %s: `%s` %s", values->what, values->name, name,
					text ?: "", why);
	uvd_logf(values->log, UVD_ERR, "%s %s: %s: `%s` %s", values->what, values->name, name, text ?: "", why);
	return -EINVAL;
}

int uvd_plugin_number(const struct uvd_plugin_values *values, const char *name, uint64_t min, uint64_t max,
		      uint64_t *out)
{
	const char *text = uvd_plugin_value(values, name);
	uint64_t number;
	char why[64];

	if (!text)
		return 0;
	if (!number_parse(text, &number))
		return uvd_plugin_wrong(values, name, "is not a number");
	if (number < min || number > max) {
		snprintf(why, sizeof(why), "is not from %llu to %llu", (unsigned long long)min,
			 (unsigned long long)max);
		return uvd_plugin_wrong(values, name, why);
	}
	*out = number;
	return 0;
}
