/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl filter: lists, adds, sets and removes the filters of a running uverbsd or `uverbsctl run`. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "../commands.h"
#include "filters/filters.h"
#include "util/util.h"

static const char filter_too_long[] = "the options are";

struct filter_options {
	bool counts, json;
};

static void filter_print(const json_t *device)
{
	const json_t *filters = json_object_get(device, "filters"), *filter;
	const long long unseen = json_integer_value(json_object_get(device, "unfiltered_files"));
	size_t i;

	printf("%s:", json_string_value(json_object_get(device, "device")));
	json_array_foreach(filters, i, filter)
		printf(" %s", json_string_value(json_object_get(filter, "filter")));
	printf("%s\n", json_array_size(filters) ? "" : " no filters");
	if (unseen)
		printf("  %lld files that are open already post unseen: open the device anew, or start with --doorbells calls\n",
		       unseen);
}

/* As the log says it when the filter ends. */
static void filter_print_counts(const json_t *filter)
{
	const char *text = json_string_value(json_object_get(filter, "filter"));
	const int len = text ? strcspn(text, ":") : 0;
	const json_t *rule;
	size_t i;

	json_array_foreach(json_object_get(filter, "rules"), i, rule)
		printf("  %.*s: %s: %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT "\n", len, text,
		       json_string_value(json_object_get(rule, "rule")),
		       json_integer_value(json_object_get(rule, "done")),
		       json_integer_value(json_object_get(rule, "seen")));
}

static void filter_print_known(const json_t *known)
{
	const char *description = json_string_value(json_object_get(known, "description"));

	printf("  %-16s %s\n", json_string_value(json_object_get(known, "name")), description ? description : "");
}

static void filter_print_device(const json_t *device, bool counts)
{
	const json_t *filter;
	size_t i;

	filter_print(device);
	if (counts)
		json_array_foreach(json_object_get(device, "filters"), i, filter)
			filter_print_counts(filter);
}

static int filter_list(const struct uvd_args *args)
{
	const struct filter_options *o = args->options;
	json_t *answer, *entry;
	size_t i;

	if (o->json && o->counts)
		return uvd_args_wrong(args, "--json has the counts already: leave out --counts");
	answer = uvd_ask_words("filter", args->control, json_pack("[s]", "list"), filter_too_long);
	if (!answer)
		return 1;
	if (o->json) {
		json_dumpf(answer, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
		putchar('\n');
	} else {
		json_array_foreach(json_object_get(answer, "devices"), i, entry)
			filter_print_device(entry, o->counts);
		puts("known filters:");
		json_array_foreach(json_object_get(answer, "known"), i, entry)
			filter_print_known(entry);
	}
	json_decref(answer);
	return 0;
}

static int filter_change(const struct uvd_args *args)
{
	const char *device = args->device ? args->device : args->num_words == 2 ? args->words[0] : "";
	json_t *answer = uvd_ask_words(
		"filter", args->control,
		json_pack("[s, s, s]", args->verb->name, device, args->words[args->num_words - 1]), filter_too_long);

	if (!answer)
		return 1;
	filter_print(answer);
	json_decref(answer);
	return 0;
}

/* ---- the help of a filter ------------------------------------------------------------------------------------------ */

enum { FILTER_COLUMN = 29 };

static const struct uvd_filter *const filter_all[] = {
#define FILTER_ROW(name) &uvd_filter_##name,
	UVD_FILTERS(FILTER_ROW)
#undef FILTER_ROW
};

static bool filter_options_alike(const struct uvd_plugin_option *a, const struct uvd_plugin_option *b)
{
	return b->name && a->metavar && b->metavar && !a->value && !b->value && !strcmp(a->metavar, b->metavar) &&
	       !strcmp(a->help, b->help);
}

/* Prints an option, or those that follow each other and differ in their names only. Returns the next one. */
static const struct uvd_plugin_option *filter_help_option(FILE *to, const struct uvd_plugin_option *o)
{
	const bool is_many = filter_options_alike(o, o + 1);
	char left[96], *right = NULL;
	size_t len;
	FILE *text = open_memstream(&right, &len);

	if (!text)
		return o + 1;
	snprintf(left, sizeof(left), "%s=%s", is_many ? "NAME" : o->name, o->metavar ? o->metavar : "VALUE");
	fprintf(text, o->value ? "%s (default: %s)" : "%s", o->help ? o->help : "", o->value);
	fprintf(text, "%s%s", is_many ? "; NAME is " : "", is_many ? o->name : "");
	for (; filter_options_alike(o, o + 1); o++)
		fprintf(text, ", %s", o[1].name);
	if (!fclose(text))
		uvd_help_row(to, left, right, FILTER_COLUMN);
	free(right);
	return o + 1;
}

static bool filter_help(FILE *to, const char *name)
{
	struct uvd_nearest nearest = { .wrong = name };
	char names[UVD_NEAREST_TEXT];

	for (size_t i = 0; i < UVD_COUNT(filter_all); i++) {
		const struct uvd_filter *f = filter_all[i];

		uvd_nearest_add(&nearest, f->name);
		if (strcmp(f->name, name))
			continue;
		fprintf(to, "%s: ", f->name);
		uvd_help_wrap(to, f->description, strlen(f->name) + 2, 0);
		fputc('\n', to);
		for (const struct uvd_plugin_option *o = f->options; o && o->name;)
			o = filter_help_option(to, o);
		return true;
	}
	fprintf(stderr, "uverbsctl filter: --help: unknown filter `%s`; the nearest are %s\n", name,
		uvd_nearest_text(&nearest, names));
	return false;
}

/* ---- the command --------------------------------------------------------------------------------------------------- */

static const struct uvd_command_option filter_list_options[] = {
	{ "counts", .help = "list: also on how many of how many calls each rule has acted",
	  UVD_STORE(struct filter_options, counts, FLAG) },
	{ "json", .help = "list: print JSON", UVD_STORE(struct filter_options, json, FLAG) },
	{},
};

const struct uvd_command uvd_command_filter = {
	.name = "filter",
	.purpose = "make a device fail: list, add, set or remove its filters",
	.examples =
		(const struct uvd_help_example[]){
			{ "uverbsctl filter list", "the filters of each device, outermost first, and all names" },
			{ "uverbsctl filter list --counts", "and on how many of how many calls each rule has acted" },
			{ "uverbsctl filter add error:create_qp=ENOMEM@3",
			  "the device's third CREATE_QP from now on fails" },
			{ "uverbsctl filter set error:create_qp=ENOMEM%10", "begin anew, with other options" },
			{ "uverbsctl filter remove hfi1_0 error",
			  "the device (or its node) is named if there are several" },
			{},
		},
	.text =
		(const char *const[]){
			"Filters stand between clients and the backend of a device. Calls in progress go on as they began. Within "
			"`uverbsctl run` it is the run's own device, else that of uverbsd. `uverbsctl filter --help error` lists the names that rules of this filter take. "
			"docs/testing-your-program.md has recipes.",
			NULL },
	.verbs =
		(const struct uvd_command_verb[]){
			{ "list", .purpose = "print the filters of each device, and the names of all",
			  .options = filter_list_options, .run = filter_list },
			{ "add", "[DEVICE] FILTER[:OPTIONS]", "put a filter before the others of the device",
			  .takes_device = true },
			{ "set", "[DEVICE] FILTER[:OPTIONS]", "give a filter other options", .takes_device = true },
			{ "remove", "[DEVICE] FILTER", "remove a filter", .takes_device = true },
			{},
		},
	.takes = UVD_TAKES_CONTROL | UVD_TAKES_RUN,
	.help_word = filter_help,
	.size = sizeof(struct filter_options),
	.run = filter_change,
};
