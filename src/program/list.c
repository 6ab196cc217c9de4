/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "list.h"

/* Returns the row's next cell, without blanks and backquotes around it and its words; NULL at the end of the row. */
static char *row_cell(char **at)
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

static bool row_read(struct uvd_prog_list *list, const char *line, const char *path)
{
	struct uvd_prog_listed *row = &list->rows[list->num];
	char *at;

	row->line = strdup(line);
	if (!row->line)
		return false;
	at = row->line + 1;

	row->name = row_cell(&at);
	row->call = row_cell(&at);
	row->item = row_cell(&at);
	row->kernel = row_cell(&at);
	row->ours = row_cell(&at);
	row->when = row_cell(&at);
	row->why = row->when ? row_cell(&at) : NULL;
	if (!row->why || !*row->why || !*row->name || list->num == UVD_PROG_MAX_ROWS - 1) {
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

bool uvd_prog_list_read_file(struct uvd_prog_list *list, FILE *in, const char *name)
{
	bool within = false, ok = true;
	char line[2048];

	list->num = 0;
	while (ok && fgets(line, sizeof(line), in)) {
		if (!strncmp(line, "| name | call |", 15))
			within = true;
		else if (line[0] != '|')
			within = false;
		else if (within && strncmp(line, "| ---", 5))
			ok = row_read(list, line, name);
	}
	if (ok && !list->num) {
		fprintf(stderr, "%s: no table of differences\n", name);
		ok = false;
	}
	return ok;
}

bool uvd_prog_list_add(struct uvd_prog_list *list, const char *row)
{
	return row_read(list, row, "a row");
}

bool uvd_prog_list_read(struct uvd_prog_list *list, const char *path)
{
	FILE *in = fopen(path, "re");
	bool ok = false;

	list->num = 0;
	if (!in) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return false;
	}
	ok = uvd_prog_list_read_file(list, in, path);
	fclose(in);
	return ok;
}

/* Keeps the rows for which `keeps` returns true. */
static void list_keep(struct uvd_prog_list *list, bool (*keeps)(const struct uvd_prog_listed *row, const char *arg),
		      const char *arg)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < list->num; i++)
		if (keeps(&list->rows[i], arg))
			list->rows[kept++] = list->rows[i];
		else
			free(list->rows[i].line);
	list->num = kept;
}

static bool row_is_chosen(const struct uvd_prog_listed *row, const char *arg)
{
	return row->chosen;
}

void uvd_prog_list_keep_chosen(struct uvd_prog_list *list)
{
	list_keep(list, row_is_chosen, NULL);
}

/* Returns the release's version and patch level as one number that orders releases. */
static unsigned long release_number(const char *release)
{
	unsigned int version = 0, patchlevel = 0;

	sscanf(release, "%u.%u", &version, &patchlevel);
	return version * 1000ul + patchlevel;
}

static bool row_holds(const struct uvd_prog_listed *row, const char *release)
{
	const unsigned long now = release_number(release);
	char text[128];
	int n;

	for (const char *at = row->when; sscanf(at, "%127s%n", text, &n) == 1; at += n) {
		if (!strncmp(text, "kernel>=", 8) && now < release_number(text + 8))
			return false;
		if (!strncmp(text, "kernel<", 7) && now >= release_number(text + 7))
			return false;
	}
	return true;
}

void uvd_prog_list_keep_kernel(struct uvd_prog_list *list, const char *release)
{
	list_keep(list, row_holds, release);
}

void uvd_prog_list_free(struct uvd_prog_list *list)
{
	for (unsigned int i = 0; i < list->num; i++)
		free(list->rows[i].line);
	list->num = 0;
}

bool uvd_prog_list_match(const char *patterns, const char *text)
{
	char pattern[128];
	int n;

	for (; sscanf(patterns, "%127s%n", pattern, &n) == 1; patterns += n)
		if (!fnmatch(pattern, text, 0))
			return true;
	return false;
}

const char *uvd_prog_list_condition(const struct uvd_prog_listed *row, const char *key)
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

bool uvd_prog_list_number(const char *numbers, unsigned long long value)
{
	for (; *numbers; numbers += strspn(numbers, ",")) {
		if (strtoull(numbers, NULL, 0) == value)
			return true;
		numbers += strcspn(numbers, ",");
	}
	return false;
}
