/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl filter: lists, adds, sets and removes the filters of a running uverbsd or `uverbsctl run`. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "../commands.h"
#include "util/util.h"

static const char filter_too_long[] = "the options are";

static const char filter_usage[] =
	"Usage: uverbsctl filter [--control PATH | --run NAME] list [--counts | --json]\n"
	"       uverbsctl filter [--control PATH | --run NAME] add [DEVICE] NAME[:OPTIONS]\n"
	"       uverbsctl filter [--control PATH | --run NAME] set [DEVICE] NAME[:OPTIONS]\n"
	"       uverbsctl filter [--control PATH | --run NAME] remove [DEVICE] NAME\n"
	"\n"
	"  uverbsctl filter list                              the filters of each device, outermost first, and all names\n"
	"  uverbsctl filter list --counts                     and on how many of how many calls each rule has acted\n"
	"  uverbsctl filter add error:create_qp=ENOMEM@3      the device's third CREATE_QP from now on fails\n"
	"  uverbsctl filter set error:create_qp=ENOMEM%10     begin anew, with other options\n"
	"  uverbsctl filter remove hfi1_0 error               the device (or its node) is named if there are several\n"
	"\n"
	"Filters stand between clients and the backend of a device. Calls in progress go on as they began. Within\n"
	"`uverbsctl run` it is the run's own device, else that of uverbsd. docs/testing-your-program.md has recipes.\n"
	"\n"
	"  --control PATH    the socket to ask (default: $UVERBSD_CONTROL, else /run/uverbsd/control)\n"
	"  --run NAME        ask the runs that were started with `--join NAME`\n";

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

static int filter_list(const char *control, bool json, bool counts)
{
	json_t *answer = uvd_ask_words("filter", control, json_pack("[s]", "list"), filter_too_long), *entry;
	size_t i;

	if (!answer)
		return 1;
	if (json) {
		json_dumpf(answer, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
		putchar('\n');
	} else {
		json_array_foreach(json_object_get(answer, "devices"), i, entry)
			filter_print_device(entry, counts);
		puts("known filters:");
		json_array_foreach(json_object_get(answer, "known"), i, entry)
			filter_print_known(entry);
	}
	json_decref(answer);
	return 0;
}

static int filter_make_change(const char *control, const char *what, const char *device, const char *text)
{
	json_t *answer = uvd_ask_words("filter", control, json_pack("[s, s, s]", what, device, text), filter_too_long);

	if (!answer)
		return 1;
	filter_print(answer);
	json_decref(answer);
	return 0;
}

static bool filter_is_change(const char *word)
{
	return !strcmp(word, "add") || !strcmp(word, "set") || !strcmp(word, "remove");
}

static int filter_unknown(const char *word)
{
	struct uvd_nearest nearest = { .wrong = word };

	uvd_nearest_add(&nearest, "list");
	uvd_nearest_add(&nearest, "add");
	uvd_nearest_add(&nearest, "set");
	uvd_nearest_add(&nearest, "remove");
	fprintf(stderr, "uverbsctl filter: unknown command `%s`; the nearest is %s\n", word, nearest.best[0].name);
	return 2;
}

int uvd_cmd_filter(int argc, char **argv)
{
	const char *control;
	int status, first = uvd_ask_options(argc, argv, filter_usage, &control, &status);

	if (first < 0)
		return status;
	argc -= first;
	argv += first;
	if (argc && (!strcmp(argv[argc - 1], "--help") || !strcmp(argv[argc - 1], "-h"))) {
		fputs(filter_usage, stdout);
		return 0;
	}
	if (argc && !filter_is_change(argv[0]) && strcmp(argv[0], "list") != 0)
		return filter_unknown(argv[0]);
	if (argc == 1 && !strcmp(argv[0], "list"))
		return filter_list(control, false, false);
	if (argc == 2 && !strcmp(argv[0], "list") && !strcmp(argv[1], "--counts"))
		return filter_list(control, false, true);
	if (argc == 2 && !strcmp(argv[0], "list") && !strcmp(argv[1], "--json"))
		return filter_list(control, true, false);
	if ((argc == 2 || argc == 3) && filter_is_change(argv[0]))
		return filter_make_change(control, argv[0], argc == 3 ? argv[1] : "", argv[argc - 1]);
	fputs(filter_usage, stderr);
	return 2;
}
