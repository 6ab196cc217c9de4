/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The words that a command takes, as its row has them: "[DEVICE] FILE [-- COMMAND [ARG...]]". */
#include <string.h>

#include "command.h"

static const struct {
	const char *name;
	enum uvd_values values;
} word_names[] = {
	{ "DEVICE", UVD_VALUES_DEVICE },   { "FILE", UVD_VALUES_FILE },	    { "FOLDER", UVD_VALUES_FOLDER },
	{ "FILTER", UVD_VALUES_FILTER },   { "PLUGIN", UVD_VALUES_PLUGIN }, { "COMMAND", UVD_VALUES_COMMAND },
	{ "PROGRAM", UVD_VALUES_PROGRAM },
};

enum uvd_values uvd_command_word_values(const char *name)
{
	for (size_t i = 0; i < UVD_COUNT(word_names); i++)
		if (!strcmp(word_names[i].name, name))
			return word_names[i].values;
	return UVD_VALUES_ANY;
}

bool uvd_command_word_next(const char **text, struct uvd_command_word *word, bool *is_rest, unsigned int *depth)
{
	const char *p = *text + strspn(*text, " "), *end = p + strcspn(p, " ");
	size_t len;

	while (*p == '[') {
		++*depth;
		p++;
	}
	if (!strncmp(p, "-- ", 3)) {
		*is_rest = true;
		*text = end;
		return uvd_command_word_next(text, word, is_rest, depth);
	}
	/* FILTER[:OPTIONS] is one word, which is required. */
	len = strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_=");
	*word = (struct uvd_command_word){ .is_optional = *depth,
					   .repeats = memmem(p, end - p, "...", 3),
					   .is_rest = *is_rest };
	snprintf(word->name, sizeof(word->name), "%.*s", (int)len, p);
	for (p += len; p < end; p++)
		*depth += (*p == '[') - (*p == ']');
	*text = end;
	return len;
}
