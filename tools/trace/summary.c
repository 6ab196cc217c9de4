/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Counts and times by verb, as strace -c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader.h"

static void summary_count_add(json_t *verb, const char *what, json_int_t n)
{
	json_object_set_new(verb, what, json_integer(json_integer_value(json_object_get(verb, what)) + n));
}

void uvd_trace_summary_add(json_t *summary, const struct uvd_trace_decoded *d)
{
	char name[2 * UVD_SHORT_NAME];
	json_t *verb;

	snprintf(name, sizeof(name), "%s.%s", d->object, d->verb);
	verb = json_object_get(summary, name);
	if (!verb) {
		verb = json_object();
		if (json_object_set_new(summary, name, verb))
			return;
	}
	summary_count_add(verb, "calls", 1);
	summary_count_add(verb, "errors", d->call->result < 0);
	summary_count_add(verb, "ns", d->call->duration);
}

struct line {
	const char *name;
	json_int_t calls, errors, ns;
};

static int by_time(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return strcmp(x->name, y->name);
}

static void print_table(FILE *to, const struct line *lines, size_t num)
{
	struct line all = { .name = "total" };

	for (size_t i = 0; i < num; i++) {
		all.calls += lines[i].calls;
		all.errors += lines[i].errors;
		all.ns += lines[i].ns;
	}
	fprintf(to, "%% time     seconds  usecs/call     calls    errors verb\n");
	for (size_t i = 0; i <= num; i++) {
		const struct line *l = i < num ? &lines[i] : &all;

		if (i == 0 || i == num)
			fprintf(to, "------ ----------- ----------- --------- --------- ------------------------\n");
		fprintf(to, "%6.2f %11.6f %11.1f %9lld ", all.ns ? 100.0 * l->ns / all.ns : 0, l->ns / 1e9,
			l->calls ? l->ns / 1e3 / l->calls : 0, (long long)l->calls);
		if (l->errors)
			fprintf(to, "%9lld %s\n", (long long)l->errors, l->name);
		else
			fprintf(to, "%9s %s\n", "", l->name);
	}
}

void uvd_trace_summary_print(FILE *to, json_t *summary, bool as_json)
{
	struct line *lines = calloc(json_object_size(summary) + 1, sizeof(*lines));
	const char *name;
	json_t *verb;
	size_t num = 0;

	if (as_json) {
		json_dumpf(summary, to, JSON_COMPACT | JSON_SORT_KEYS);
		fputc('\n', to);
	} else if (lines) {
		json_object_foreach(summary, name, verb)
			lines[num++] = (struct line){
				.name = name,
				.calls = json_integer_value(json_object_get(verb, "calls")),
				.errors = json_integer_value(json_object_get(verb, "errors")),
				.ns = json_integer_value(json_object_get(verb, "ns")),
			};
		qsort(lines, num, sizeof(*lines), by_time);
		print_table(to, lines, num);
	}
	free(lines);
}
