/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl status --watch: the screen. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view.h"

enum { BAR = 10 /* columns */, TYPES_TEXT = 400 };

const char *uvd_status_text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value ? value : "?";
}

long long uvd_status_value(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

const char *uvd_status_escape(char to[UVD_STATUS_TEXT], const char *text)
{
	size_t at = 0;

	/* C1 controls are U+0080 to U+009F: in UTF-8 the bytes 0xc2 0x80 to 0xc2 0x9f. So nothing but ASCII is copied. */
	for (; *text && at + 5 < UVD_STATUS_TEXT; text++) {
		const unsigned char c = *text;

		if (c < 0x80 && isprint(c) && c != '\\')
			to[at++] = c;
		else
			at += snprintf(to + at, UVD_STATUS_TEXT - at, "\\x%02x", c);
	}
	to[at] = '\0';
	return to;
}

static void screen_put(struct uvd_status_screen *screen, const char *line)
{
	printf("%s%s%.*s", screen->num ? "\n" : "", screen->start_of_line, (int)screen->columns, line);
}

/* The last line of the screen waits for screen_end(). */
void uvd_status_line(struct uvd_status_screen *screen, const char *format, ...)
{
	char line[sizeof(screen->last)];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (screen->num + 1 < screen->rows)
		screen_put(screen, line);
	else if (screen->num + 1 == screen->rows)
		strcpy(screen->last, line);
	screen->num++;
}

static void screen_end(struct uvd_status_screen *screen)
{
	if (screen->num == screen->rows)
		screen_put(screen, screen->last);
	else if (screen->num > screen->rows)
		screen_put(screen, "... and more than fits: `uverbsctl status` has it all");
}

/* ---- devices, and below each its processes and objects ----------------------------------------------------------- */

/* The device of the same name in another status, or NULL. */
static const json_t *same_device(const json_t *status, const json_t *device)
{
	const json_t *other;
	size_t i;

	json_array_foreach(json_object_get(status, "devices"), i, other)
		if (!strcmp(uvd_status_text(other, "device"), uvd_status_text(device, "device")))
			return other;
	return NULL;
}

static void types_add(json_t *sum, const json_t *types)
{
	const json_t *count;
	const char *name;

	json_object_foreach((json_t *)types, name, count)
		json_object_set_new(sum, name, json_integer(uvd_status_value(sum, name) + json_integer_value(count)));
}

/* Merges the open files of a process: {"pid": {...}}. The caller frees it. */
static json_t *screen_processes_of(const json_t *device)
{
	json_t *all = json_object(), *file, *process;
	char key[32];
	size_t i;

	json_array_foreach(json_object_get(device, "files"), i, file) {
		snprintf(key, sizeof(key), "%lld", uvd_status_value(file, "pid"));
		process = json_object_get(all, key);
		if (!process) {
			process = json_copy(file);
			json_object_set_new(process, "files", json_integer(0));
			json_object_set_new(process, "objects", json_integer(0));
			json_object_set_new(process, "types", json_object());
			json_object_set_new(all, key, process);
		}
		json_object_set_new(process, "files", json_integer(uvd_status_value(process, "files") + 1));
		json_object_set_new(
			process, "objects",
			json_integer(uvd_status_value(process, "objects") + uvd_status_value(file, "objects")));
		types_add(json_object_get(process, "types"), json_object_get(file, "types"));
	}
	return all;
}

/* "1 PD, 2 QP" of {"UVERBS_OBJECT_PD": 1, "UVERBS_OBJECT_QP": 2} */
static void screen_types(char line[TYPES_TEXT], const json_t *types)
{
	const json_t *count;
	const char *name;

	*line = '\0';
	json_object_foreach((json_t *)types, name, count) {
		const char *type = strstr(name, "_OBJECT_");
		const size_t len = strlen(line);

		snprintf(line + len, TYPES_TEXT - len, "%s%lld %s", len ? ", " : "",
			 (long long)json_integer_value(count), type ? type + strlen("_OBJECT_") : name);
	}
}

static void screen_objects(struct uvd_status_screen *screen, const json_t *device)
{
	char line[TYPES_TEXT];

	screen_types(line, json_object_get(device, "objects"));
	if (*line)
		uvd_status_line(screen, "  `- objects: %s", line);
}

static void screen_process(struct uvd_status_screen *screen, const json_t *process, bool types)
{
	char escaped[UVD_STATUS_TEXT], line[TYPES_TEXT];

	uvd_status_line(screen, "  |- %-15s pid %-7lld uid %-5lld %3lld files %6lld objects",
			uvd_status_escape(escaped, uvd_status_text(process, "program")),
			uvd_status_value(process, "pid"), uvd_status_value(process, "uid"),
			uvd_status_value(process, "files"), uvd_status_value(process, "objects"));
	screen_types(line, json_object_get(process, "types"));
	if (types && *line)
		uvd_status_line(screen, "  |    %s", line);
}

/* A single process has all objects of the device, which follow. */
static void screen_processes(struct uvd_status_screen *screen, const json_t *device, size_t most)
{
	json_t *processes = screen_processes_of(device), *process;
	const size_t all = json_object_size(processes);
	size_t num = 0;
	const char *pid;

	json_object_foreach(processes, pid, process) {
		if (num++ < most)
			screen_process(screen, process, all > 1);
	}
	if (num > most)
		uvd_status_line(screen, "  |- and %zu more processes", num - most);
	json_decref(processes);
}

/* most: of its processes */
static void screen_device(struct uvd_status_screen *screen, const json_t *device, const json_t *before, double seconds,
			  size_t most)
{
	const json_t *other = same_device(before, device);
	const char *node = strrchr(uvd_status_text(device, "node"), '/');
	char rate[32] = "";

	if (other && json_object_get(device, "requests") && seconds > 0)
		snprintf(rate, sizeof(rate), ", %.0f requests/s",
			 (uvd_status_value(device, "requests") - uvd_status_value(other, "requests")) / seconds);
	uvd_status_line(screen, "%s (%s)%s: %s as %s, %s ABI, %lld open files%s", uvd_status_text(device, "device"),
			node ? node + 1 : "?", json_is_true(json_object_get(device, "removed")) ? " removed" : "",
			uvd_status_text(device, "backend"), uvd_status_text(device, "persona"),
			uvd_status_text(device, "abi"), uvd_status_value(device, "open"), rate);
	screen_processes(screen, device, most);
	screen_objects(screen, device);
}

/* ---- registered memory ------------------------------------------------------------------------------------------- */

static double part_of_limit(const json_t *entry)
{
	const json_t *limit = json_object_get(entry, "limit");
	const double pages = uvd_status_value(entry, "pages");

	if (!json_is_integer(limit))
		return 0;
	return json_integer_value(limit) ? pages / json_integer_value(limit) : 1;
}

static int by_part_of_limit(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	const double px = part_of_limit(x), py = part_of_limit(y);
	const long long nx = uvd_status_value(x, "pages"), ny = uvd_status_value(y, "pages");

	if (px != py)
		return px < py ? 1 : -1;
	return nx < ny ? 1 : nx > ny ? -1 : 0;
}

static void screen_memory(struct uvd_status_screen *screen, const json_t *entry)
{
	const double part = part_of_limit(entry);
	const int full = part >= 1 ? BAR : (int)(part * BAR);
	char escaped[UVD_STATUS_TEXT], limit[32] = "no limit";

	if (json_is_integer(json_object_get(entry, "limit")))
		snprintf(limit, sizeof(limit), "%lld", uvd_status_value(entry, "limit"));
	uvd_status_line(screen, "%-15s pid %-7lld %9lld pages of %-9s [%.*s%.*s] %3.0f%%%s",
			uvd_status_escape(escaped, uvd_status_text(entry, "program")), uvd_status_value(entry, "pid"),
			uvd_status_value(entry, "pages"), limit, full, "##########", BAR - full, "          ",
			part * 100, json_is_true(json_object_get(entry, "near")) ? "!" : "");
}

/* The processes that are nearest to their limit come first. */
static void screen_memlock(struct uvd_status_screen *screen, const json_t *status)
{
	const json_t *list = json_object_get(status, "memlock");
	const size_t num = json_array_size(list);
	const json_t **sorted = calloc(num + 1, sizeof(*sorted));

	if (!sorted || !num) {
		free(sorted);
		return;
	}
	for (size_t i = 0; i < num; i++)
		sorted[i] = json_array_get(list, i);
	qsort(sorted, num, sizeof(*sorted), by_part_of_limit);
	uvd_status_line(screen, "%s", "");
	uvd_status_line(screen, "registered memory");
	for (size_t i = 0; i < num; i++)
		screen_memory(screen, sorted[i]);
	free(sorted);
}

/* ---- the objects of each open file: last, as there may be many ---------------------------------------------------- */

static void screen_line(void *screen, const char *text)
{
	uvd_status_line(screen, "  %s", text);
}

static void screen_trees(struct uvd_status_screen *screen, const json_t *device)
{
	char escaped[UVD_STATUS_TEXT];
	const json_t *file;
	size_t i;

	json_array_foreach(json_object_get(device, "files"), i, file) {
		if (!json_array_size(json_object_get(file, "tree")))
			continue;
		uvd_status_line(screen, "%s", "");
		uvd_status_line(screen, "%s of %s, pid %lld", uvd_status_text(device, "device"),
				uvd_status_escape(escaped, uvd_status_text(file, "program")),
				uvd_status_value(file, "pid"));
		uvd_status_objects(file, screen_line, screen);
	}
}

void uvd_status_screen_print(struct uvd_status_screen *screen, const json_t *status, const json_t *before,
			     double seconds)
{
	const json_t *devices = json_object_get(status, "devices"), *device;
	const size_t num = json_array_size(devices), most = screen->rows / 2 / (num ? num : 1);
	size_t i;

	uvd_status_line(screen, "uverbsd (%s) pid %lld: %zu devices, registered memory of %zu processes",
			uvd_status_text(status, "transport"), uvd_status_value(status, "pid"), num,
			json_array_size(json_object_get(status, "memlock")));
	json_array_foreach(devices, i, device)
		screen_device(screen, device, before, seconds, most > 3 ? most : 3);
	uvd_status_screen_verbs(screen, status);
	screen_memlock(screen, status);
	json_array_foreach(devices, i, device)
		screen_trees(screen, device);
	screen_end(screen);
}
