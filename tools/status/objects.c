/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl status: the objects of an open file as lines of text. The daemon is not trusted: it may be anybody's. */
#include <stdio.h>
#include <string.h>

#include "view.h"

enum { DEEPEST = 8 /* levels; a daemon sends 3 */ };

struct objects_lines {
	void (*line)(void *arg, const char *text);
	void *arg;
	long long num;
};

static void objects_add(char line[UVD_STATUS_TEXT], const char *text)
{
	const size_t len = strlen(line);

	snprintf(line + len, UVD_STATUS_TEXT - len, "%s", text);
}

/* The type of a row, "UVERBS_OBJECT_MR", without its prefix, and the values that the daemon gives. */
static void objects_describe(char line[UVD_STATUS_TEXT], const json_t *object)
{
	const char *name = uvd_status_text(object, "type"), *type = strstr(name, "_OBJECT_");
	const json_t *handle = json_object_get(object, "handle");
	char value[96];

	objects_add(line, type ? type + strlen("_OBJECT_") : name);
	if (json_is_integer(handle)) {
		snprintf(value, sizeof(value), " %lld", (long long)json_integer_value(handle));
		objects_add(line, value);
	}
	if (json_object_get(object, "length")) {
		snprintf(value, sizeof(value), ": %lld bytes", uvd_status_value(object, "length"));
		objects_add(line, value);
		if (*uvd_status_text(object, "access"))
			objects_add(line, ", ");
		objects_add(line, uvd_status_text(object, "access"));
	}
	if (json_object_get(object, "qp_num")) {
		snprintf(value, sizeof(value), ": %s, number %#llx", uvd_status_text(object, "qp_type"),
			 (unsigned long long)uvd_status_value(object, "qp_num"));
		objects_add(line, value);
	}
	if (json_object_get(object, "cqe")) {
		snprintf(value, sizeof(value), ": %lld entries", uvd_status_value(object, "cqe"));
		objects_add(line, value);
	}
}

static void objects_print(struct objects_lines *to, const json_t *list, unsigned int depth)
{
	char line[UVD_STATUS_TEXT], escaped[UVD_STATUS_TEXT];
	const json_t *object;
	size_t i;

	json_array_foreach(list, i, object) {
		snprintf(line, sizeof(line), "%*s", 2 * (int)depth, "");
		objects_describe(line, object);
		to->line(to->arg, uvd_status_escape(escaped, line));
		to->num++;
		if (depth < DEEPEST)
			objects_print(to, json_object_get(object, "children"), depth + 1);
	}
}

void uvd_status_objects(const json_t *file, void (*line)(void *arg, const char *text), void *arg)
{
	struct objects_lines to = { .line = line, .arg = arg };
	const long long all = uvd_status_value(file, "objects");
	char more[48];

	objects_print(&to, json_object_get(file, "tree"), 0);
	if (all <= to.num)
		return;
	snprintf(more, sizeof(more), "and %lld more objects", all - to.num);
	line(arg, more);
}
