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

static void option_names(const struct uvd_plugin_option *options, char *text, size_t size)
{
	size_t at = 0;

	snprintf(text, size, "none");
	for (const struct uvd_plugin_option *o = options; o && o->name && at < size; o++)
		at += snprintf(text + at, size - at, "%s%s", o == options ? "" : ", ", o->name);
}

int uvd_plugin_values_check(const char *what, const struct uvd_plugin_option *options, char *const *given,
			    char error[UVD_PLUGIN_ERROR])
{
	char names[256];

	for (const struct uvd_plugin_option *o = options; o && o->name; o++)
		if (!uvd_plugin_name_ok(o->name, "-", 63))
			return uvd_plugin_error(error, -EINVAL, "%s: `%s` is not a valid name of an option", what,
						o->name);
	for (; given && *given; given++) {
		const size_t len = strcspn(*given, "=");

		if (!(*given)[len])
			return uvd_plugin_error(error, -EINVAL, "%s: `%s` is not KEY=VALUE", what, *given);
		if (option_find(options, *given, len))
			continue;
		option_names(options, names, sizeof(names));
		return uvd_plugin_error(error, -EINVAL, "%s: no option `%.*s`; its options: %s", what, (int)len, *given,
					names);
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

int uvd_plugin_number(const struct uvd_plugin_values *values, const char *name, uint64_t min, uint64_t max,
		      uint64_t *out)
{
	const char *text = uvd_plugin_value(values, name);
	uint64_t number;

	if (!text)
		return 0;
	if (!number_parse(text, &number)) {
		uvd_logf(values->log, UVD_ERR, "plug-in %s: %s: `%s` is not a number", values->name, name, text);
		return -EINVAL;
	}
	if (number < min || number > max) {
		uvd_logf(values->log, UVD_ERR, "plug-in %s: %s: %s is not from %llu to %llu", values->name, name, text,
			 (unsigned long long)min, (unsigned long long)max);
		return -EINVAL;
	}
	*out = number;
	return 0;
}
