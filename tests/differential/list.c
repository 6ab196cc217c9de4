/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "list.h"

/* Returns the row's next cell, without blanks and backquotes around it and its words; NULL at the end of the row. */
static char *cell(char **at)
{
	char *begin = *at, *end = strchr(begin, '|'), *to = begin;

	if (!end)
		return NULL;
	*at = end + 1;
	for (char *from = begin; from < end; from++)
		if (*from != '`' && !(*from == ' ' && to == begin))
			*to++ = *from;
	while (to > begin && to[-1] == ' ')
		to--;
	*to = 0;
	return begin;
}

static bool read_row(struct list *list, char *line, const char *path)
{
	struct listed *row = &list->rows[list->num];
	char *at = strdup(line) + 1;

	row->name = cell(&at);
	row->call = cell(&at);
	row->item = cell(&at);
	row->kernel = cell(&at);
	row->ours = cell(&at);
	row->when = cell(&at);
	row->why = row->when ? cell(&at) : NULL;
	if (!row->why || !*row->why || !*row->name || list->num == MAX_ROWS - 1) {
		fprintf(stderr, "%s: a row of the list with too few cells, without a reason, or one too many: %s", path,
			line);
		return false;
	}
	row->absent = !strncmp(row->why, "absent", 6);
	row->sometimes = !strncmp(row->why, "sometimes", 9);
	row->chosen = !strncmp(row->why, "chosen", 6);
	for (unsigned int i = 0; i < list->num; i++)
		if (!strcmp(list->rows[i].name, row->name)) {
			fprintf(stderr, "%s: %s is there twice\n", path, row->name);
			return false;
		}
	list->num++;
	return true;
}

bool list_read(struct list *list, const char *path)
{
	FILE *in = fopen(path, "r");
	bool within = false, ok = true;
	char line[2048];

	list->num = 0;
	while (in && ok && fgets(line, sizeof(line), in)) {
		if (!strncmp(line, "| name | call |", 15))
			within = true;
		else if (line[0] != '|')
			within = false;
		else if (within && strncmp(line, "| ---", 5))
			ok = read_row(list, line, path);
	}
	if (in)
		fclose(in);
	if (ok && !list->num) {
		fprintf(stderr, "%s: no table of differences\n", path);
		ok = false;
	}
	return ok;
}

bool list_match(const char *patterns, const char *text)
{
	char pattern[128];
	int n;

	for (; sscanf(patterns, "%127s%n", pattern, &n) == 1; patterns += n)
		if (!fnmatch(pattern, text, 0))
			return true;
	return false;
}

const char *list_condition(const struct listed *row, const char *key)
{
	static char text[128];
	size_t len = strlen(key);
	const char *at = row->when;
	int n;

	for (; sscanf(at, "%127s%n", text, &n) == 1; at += n)
		if (!strncmp(text, key, len) && text[len] == '=')
			return text + len + 1;
	return NULL;
}

bool list_number(const char *numbers, unsigned long long value)
{
	for (; *numbers; numbers += strspn(numbers, ",")) {
		if (strtoull(numbers, NULL, 0) == value)
			return true;
		numbers += strcspn(numbers, ",");
	}
	return false;
}
