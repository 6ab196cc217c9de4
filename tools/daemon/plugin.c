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

struct plugin_options {
	bool json, waits;
};

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

static int plugin_list(const struct uvd_args *args)
{
	const struct plugin_options *o = args->options;
	json_t *answer = uvd_ask_words("plugin", args->control, json_pack("[s]", "list"), plugin_too_long);

	if (!answer)
		return 1;
	if (o->json) {
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

/*
 * Sends the words, of which the last ones are KEY=VALUE and the one before may be a file. loads: prints what is loaded then. Returns the exit
 * status.
 */
static int plugin_change(const struct uvd_args *args, json_t *words, bool loads, const char *file, int num_values,
			 char **values)
{
	json_t *answer;
	int status;

	if ((file && !plugin_append_file(words, file)) || !plugin_append_values(words, num_values, values)) {
		json_decref(words);
		return 2;
	}
	answer = uvd_ask_words("plugin", args->control, words, plugin_too_long);
	if (answer && loads)
		printf("%s %s generation %lld\n", plugin_text(answer, "name", "?"), plugin_text(answer, "version", "-"),
		       plugin_number(answer, "generation"));
	status = answer ? 0 : 1;
	json_decref(answer);
	return status;
}

static int plugin_load(const struct uvd_args *args)
{
	return plugin_change(args, json_pack("[s]", "load"), true, args->words[0], args->num_words - 1,
			     args->words + 1);
}

static int plugin_reload(const struct uvd_args *args)
{
	const bool has_file = args->num_words > 1 && !strchr(args->words[1], '=');
	json_t *words = has_file ? json_pack("[s, s]", "reload", args->words[0])
				 : json_pack("[s, s, s]", "reload", args->words[0], "");

	return plugin_change(args, words, true, has_file ? args->words[1] : NULL, args->num_words - 1 - has_file,
			     args->words + 1 + has_file);
}

static int plugin_unload(const struct uvd_args *args)
{
	const struct plugin_options *o = args->options;
	json_t *words = json_pack("[s, s]", "unload", args->words[0]);

	if (o->waits)
		json_array_append_new(words, json_string("wait"));
	return plugin_change(args, words, false, NULL, 0, NULL);
}

static const struct uvd_command_option plugin_list_options[] = {
	{ "json", .help = "list: print JSON", UVD_STORE(struct plugin_options, json, FLAG) },
	{},
};
static const struct uvd_command_option plugin_unload_options[] = {
	{ "wait", .help = "unload: wait for its objects to go", UVD_STORE(struct plugin_options, waits, FLAG) },
	{},
};

const struct uvd_command uvd_command_plugin = {
	.name = "plugin",
	.purpose = "load, reload, unload or list plug-ins",
	.examples =
		(const struct uvd_help_example[]){
			{ "uverbsctl plugin load ./counter.so initial=100",
			  "load a file of this folder, with an option" },
			{ "uverbsctl plugin load kv.so", "load a file of " UVD_PLUGIN_DIR },
			{ "uverbsctl plugin reload kv", "load its file again: files opened from now on have it" },
			{ "uverbsctl plugin unload kv --wait",
			  "no file opened from now on has it; wait for its objects to go" },
			{},
		},
	.text =
		(const char *const[]){
			"Plug-ins add verbs, backends and personas. `list` prints name, version, generation (how often it was loaded), "
			"contexts and objects that use it, and file. Without --wait, `unload` fails while it has objects, and names the "
			"processes that have them. Within `uverbsctl run` it is the run's own device, else that of uverbsd.",
			NULL },
	.verbs =
		(const struct uvd_command_verb[]){
			{ "load", "FILE [KEY=VALUE...]", "load a plug-in", .run = plugin_load },
			{ "reload", "PLUGIN [FILE] [KEY=VALUE...]", "load its file, or another, in its place",
			  .run = plugin_reload },
			{ "unload", "PLUGIN", "unload a plug-in", .options = plugin_unload_options,
			  .run = plugin_unload },
			{ "list", .purpose = "print the plug-ins, and how much they are used",
			  .options = plugin_list_options, .run = plugin_list },
			{},
		},
	.takes = UVD_TAKES_CONTROL | UVD_TAKES_RUN,
	.size = sizeof(struct plugin_options),
};
