/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl plugin: loads, reloads, unloads and lists the plug-ins of a running uverbsd or `uverbsctl run`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "../commands.h"
#include "options/options.h"
#include "util/util.h"

static const char plugin_too_long[] = "path and options are";

static const char plugin_usage[] =
	"Usage: uverbsctl plugin [--control PATH | --run NAME] load FILE [KEY=VALUE...]\n"
	"       uverbsctl plugin [--control PATH | --run NAME] reload NAME [FILE] [KEY=VALUE...]\n"
	"       uverbsctl plugin [--control PATH | --run NAME] unload NAME [--wait]\n"
	"       uverbsctl plugin [--control PATH | --run NAME] list [--json]\n"
	"\n"
	"  uverbsctl plugin load ./counter.so initial=100   load a file of this folder, with an option\n"
	"  uverbsctl plugin load kv.so                      load a file of " UVD_PLUGIN_DIR "\n"
	"  uverbsctl plugin reload kv                       load its file again: files opened from now on have it\n"
	"  uverbsctl plugin unload kv --wait                no file opened from now on has it; wait for its objects to go\n"
	"\n"
	"Plug-ins add verbs, backends and personas. `list` prints name, version, generation (how often it was loaded),\n"
	"contexts and objects that use it, and file. Without --wait, `unload` fails while it has objects, and names the\n"
	"processes that have them. Within `uverbsctl run` it is the run's own device, else that of uverbsd.\n"
	"\n"
	"  --control PATH    the socket to ask (default: $UVERBSD_CONTROL, else /run/uverbsd/control)\n"
	"  --run NAME        ask the runs that were started with `--join NAME`\n";

static const char *plugin_text(const json_t *entry, const char *key, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(entry, key));

	return text ? text : otherwise;
}

static long long plugin_number(const json_t *entry, const char *key)
{
	return json_integer_value(json_object_get(entry, key));
}

static void plugin_print_list(const json_t *list)
{
	size_t i;
	json_t *entry;

	printf("%-16s %-10s %10s %8s %8s  %s\n", "name", "version", "generation", "contexts", "objects", "file");
	json_array_foreach(list, i, entry)
		printf("%-16s %-10s %10lld %8lld %8lld  %s\n", plugin_text(entry, "name", "?"),
		       plugin_text(entry, "version", "-"), plugin_number(entry, "generation"),
		       plugin_number(entry, "contexts"), plugin_number(entry, "objects"),
		       plugin_text(entry, "file", "(built in)"));
}

static int plugin_list(const char *control, int argc, char **argv)
{
	const bool json = argc == 2 && !strcmp(argv[1], "--json");
	json_t *answer;

	if (argc != 1 && !json)
		return 2;
	answer = uvd_ask_words("plugin", control, json_pack("[s]", "list"), plugin_too_long);
	if (!answer)
		return 1;
	if (json) {
		json_dumpf(answer, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
		putchar('\n');
	} else {
		plugin_print_list(json_object_get(answer, "plugins"));
	}
	json_decref(answer);
	return 0;
}

/* Appends a file's absolute path. Returns false after a message. */
static bool plugin_append_file(json_t *words, const char *file)
{
	char path[PATH_MAX];
	const char *wrong = uvd_options_plugin_path(file, path);

	if (wrong)
		fprintf(stderr, "uverbsctl plugin: `%s` %s\n", file, wrong);
	return !wrong && !json_array_append_new(words, json_string(path));
}

/* Appends KEY=VALUE words. Returns false if one is something else. */
static bool plugin_append_values(json_t *words, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		if (!strchr(argv[i], '=') || argv[i][0] == '-') {
			fprintf(stderr, "uverbsctl plugin: `%s` is not KEY=VALUE\n", argv[i]);
			return false;
		}
		if (json_array_append_new(words, json_string(argv[i])))
			return false;
	}
	return true;
}

/* Makes the command's words of the arguments. Returns false if they are wrong, after a message. */
static bool plugin_make_words(json_t *words, int argc, char **argv)
{
	bool has_file;

	json_array_append_new(words, json_string(argv[0]));
	if (!strcmp(argv[0], "load"))
		return plugin_append_file(words, argv[1]) && plugin_append_values(words, argc - 2, argv + 2);
	json_array_append_new(words, json_string(argv[1]));
	if (!strcmp(argv[0], "reload")) {
		has_file = argc > 2 && !strchr(argv[2], '=');
		if (has_file ? !plugin_append_file(words, argv[2]) : json_array_append_new(words, json_string("")))
			return false;
		return plugin_append_values(words, argc - 2 - has_file, argv + 2 + has_file);
	}
	if (argc == 2)
		return true;
	if (argc > 3 || strcmp(argv[2], "--wait")) {
		fprintf(stderr, "uverbsctl plugin: `%s` is not --wait\n", argv[2]);
		return false;
	}
	return !json_array_append_new(words, json_string("wait"));
}

static int plugin_change(const char *control, int argc, char **argv)
{
	json_t *words = json_array(), *answer;
	bool made = plugin_make_words(words, argc, argv);

	answer = made ? uvd_ask_words("plugin", control, json_incref(words), plugin_too_long) : NULL;
	if (answer && strcmp(argv[0], "unload") != 0)
		printf("%s %s generation %lld\n", plugin_text(answer, "name", "?"), plugin_text(answer, "version", "-"),
		       plugin_number(answer, "generation"));
	json_decref(answer);
	json_decref(words);
	return !made ? 2 : !answer;
}

static int plugin_unknown(const char *word)
{
	static const char *const names[] = { "load", "reload", "unload", "list" };
	struct uvd_nearest nearest = { .wrong = word };

	for (size_t i = 0; i < UVD_COUNT(names); i++)
		uvd_nearest_add(&nearest, names[i]);
	fprintf(stderr, "uverbsctl plugin: unknown command `%s`; the nearest is %s\n", word, nearest.best[0].name);
	return 2;
}

static bool plugin_is_change(const char *word)
{
	return !strcmp(word, "load") || !strcmp(word, "reload") || !strcmp(word, "unload");
}

int uvd_cmd_plugin(int argc, char **argv)
{
	const char *control;
	int status, first = uvd_ask_options(argc, argv, plugin_usage, &control, &status);

	if (first < 0)
		return status;
	argc -= first;
	argv += first;
	if (argc && (!strcmp(argv[argc - 1], "--help") || !strcmp(argv[argc - 1], "-h"))) {
		fputs(plugin_usage, stdout);
		return 0;
	}
	if (argc && !plugin_is_change(argv[0]) && strcmp(argv[0], "list") != 0)
		return plugin_unknown(argv[0]);
	status = !argc || (plugin_is_change(argv[0]) && argc < 2) ? 2
		 : plugin_is_change(argv[0])			  ? plugin_change(control, argc, argv)
								  : plugin_list(control, argc, argv);
	if (status == 2 && (argc < 2 || !plugin_is_change(argv[0])))
		fputs(plugin_usage, stderr);
	return status;
}
