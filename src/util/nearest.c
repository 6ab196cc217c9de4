/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The known names that are nearest to a wrong one, for messages. */
#include <ctype.h>
#include <stdio.h>

#include "util/util.h"

/* Compares characters as names do. */
static int name_char(char c)
{
	return c == '-' ? '_' : toupper((unsigned char)c);
}

bool uvd_names_equal(const char *a, const char *b)
{
	while (*a && name_char(*a) == name_char(*b)) {
		a++;
		b++;
	}
	return !*a && !*b;
}

/* The Levenshtein distance of the two names. */
static unsigned int name_distance(const char *a, const char *b)
{
	unsigned int row[UVD_NEAREST_NAME + 1], diagonal, above;
	const size_t len = strnlen(b, UVD_NEAREST_NAME);

	for (size_t j = 0; j <= len; j++)
		row[j] = j;
	for (size_t i = 0; a[i]; i++) {
		diagonal = row[0];
		row[0] = i + 1;
		for (size_t j = 0; j < len; j++) {
			above = row[j + 1];
			row[j + 1] = diagonal + (name_char(a[i]) != name_char(b[j]));
			if (above + 1 < row[j + 1])
				row[j + 1] = above + 1;
			if (row[j] + 1 < row[j + 1])
				row[j + 1] = row[j] + 1;
			diagonal = above;
		}
	}
	return row[len];
}

void uvd_nearest_add(struct uvd_nearest *n, const char *name)
{
	enum { BEST = sizeof(n->best) / sizeof(n->best[0]) };
	const unsigned int distance = name_distance(n->wrong, name);
	size_t i = 0, j;

	while (i < BEST && n->best[i].name[0] && n->best[i].distance <= distance)
		if (uvd_names_equal(n->best[i++].name, name))
			return;
	if (i == BEST)
		return;
	for (j = BEST - 1; j > i; j--)
		n->best[j] = n->best[j - 1];
	snprintf(n->best[i].name, sizeof(n->best[i].name), "%s", name);
	n->best[i].distance = distance;
}

const char *uvd_nearest_text(const struct uvd_nearest *n, char text[UVD_NEAREST_TEXT])
{
	const char *a = n->best[0].name, *b = n->best[1].name, *c = n->best[2].name;

	snprintf(text, UVD_NEAREST_TEXT, "%s%s%s%s%s", a, *b ? ", " : "", b, *c ? ", " : "", c);
	return text;
}
