/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * uverbsctl internal-tables: the tables of commands and options as one JSON object, of which man pages, pages in docs/ and tests
 * are made. Keys whose value is null or empty are there, too.
 *
 *	version		of the project
 *	groups		of commands, in the order of the help: title, commands (names)
 *	commands	in that order, then the hidden ones:
 *	  name, purpose, group (title; null: hidden), hidden
 *	  synopses	texts
 *	  examples	command, what
 *	  text		paragraphs; `...` is literal
 *	  verbs		of a noun: name, purpose, words (as in a synopsis), options
 *	  options	long, short (one letter, or null), arg (null: a flag), help, values; of all verbs together where they
 *			share them. values: what the value names, as "file" or "device"; or the list of words that it can be;
 *			or null
 *	  exit		status, when
 *	  takes		null, or "run": the options below whose `programs` have "run" are its options
 *	old		spellings that go with the next release: old, now
 *	options		of uverbsd and `uverbsctl run`, and of the configuration file, in the order of the help:
 *	  name, arg (null: a flag), help
 *	  scope		"program", "device" (sections [uverbsd] and [device N]), "port" (likewise, and [port N.M]) or "limit"
 *			(section [limits], without `limit-`)
 *	  programs	list of "uverbsd" and "run"
 *	  preset	the default in words, or null
 *	  choices	the words that the value can be
 *	  file		can it be in the configuration file?
 *	  glued		is the value behind a `=`?
 *	  omittable	can the value be left out?
 *	filters		that uverbsd has itself: name, description, options (name, arg, help, preset)
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "../commands.h"
#include "filters/filters.h"

static const char *const values_names[UVD_NUM_VALUES] = {
	[UVD_VALUES_FILE] = "file",	  [UVD_VALUES_FOLDER] = "folder",   [UVD_VALUES_DEVICE] = "device",
	[UVD_VALUES_RUN] = "run",	  [UVD_VALUES_BACKEND] = "backend", [UVD_VALUES_PERSONA] = "persona",
	[UVD_VALUES_FILTER] = "filter",	  [UVD_VALUES_PLUGIN] = "plugin",   [UVD_VALUES_PROGRAM] = "program",
	[UVD_VALUES_COMMAND] = "command",
};

static json_t *tables_texts(const char *const *texts)
{
	json_t *list = json_array();

	for (; texts && *texts; texts++)
		json_array_append_new(list, json_string(*texts));
	return list;
}

static json_t *tables_values(const struct uvd_command_option *o)
{
	if (o->choices)
		return tables_texts(o->choices);
	return values_names[o->values] ? json_string(values_names[o->values]) : json_null();
}

static void tables_add_option(json_t *list, const struct uvd_command_option *o)
{
	const char letter[2] = { o->letter };

	if (o->help)
		json_array_append_new(list, json_pack("{s:s, s:s?, s:s?, s:s, s:o}", "long", o->name, "short",
						      o->letter ? letter : NULL, "arg", o->arg, "help", o->help,
						      "values", tables_values(o)));
}

static json_t *tables_verbs(const struct uvd_command *c)
{
	json_t *list = json_array(), *options;

	for (const struct uvd_command_verb *v = c->verbs; v && v->name; v++) {
		options = json_array();
		for (const struct uvd_command_option *o = v->options; o && o->name; o++)
			tables_add_option(options, o);
		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o}", "name", v->name, "purpose", v->purpose,
						      "words", v->words ? v->words : "", "options", options));
	}
	return list;
}

static json_t *tables_synopses(const struct uvd_command *c)
{
	json_t *list = json_array();
	char text[160];

	for (unsigned int i = 0; uvd_command_synopsis(c, i, text, sizeof(text)); i++)
		json_array_append_new(list, json_string(text));
	return list;
}

static json_t *tables_command(const struct uvd_command *c, const char *group)
{
	const struct uvd_command_exit *exit = c->exits ? c->exits : uvd_command_usual_exits;
	json_t *examples = json_array(), *options = json_array(), *exits = json_array();
	const struct uvd_command_option *o;

	for (const struct uvd_help_example *e = c->examples; e && e->command; e++)
		json_array_append_new(examples, json_pack("{s:s, s:s}", "command", e->command, "what", e->what));
	for (unsigned int i = 0; (o = uvd_command_option_at(c, NULL, i)); i++)
		tables_add_option(options, o);
	for (; exit->status; exit++)
		json_array_append_new(exits, json_pack("{s:s, s:s}", "status", exit->status, "when", exit->when));
	return json_pack("{s:s, s:s?, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:s?}", "name", c->name, "group", group,
			 "purpose", c->purpose, "synopses", tables_synopses(c), "examples", examples, "text",
			 tables_texts(c->text), "verbs", tables_verbs(c), "options", options, "exit", exits, "hidden",
			 c->is_hidden, "takes", c->run_raw ? "run" : NULL);
}

static json_t *tables_option(const struct uvd_option_info *info)
{
	json_t *programs = json_array();

	if (info->programs & UVD_PROGRAM_DAEMON)
		json_array_append_new(programs, json_string("uverbsd"));
	if (info->programs & UVD_PROGRAM_RUN)
		json_array_append_new(programs, json_string("run"));
	return json_pack("{s:s, s:s?, s:s, s:o, s:s?, s:s, s:o, s:b, s:b, s:b}", "name", info->name, "arg", info->arg,
			 "scope", info->scope, "programs", programs, "preset", info->preset, "help", info->help,
			 "choices", tables_texts(info->choices), "file", info->is_of_file, "glued", info->is_glued,
			 "omittable", info->may_be_omitted);
}

static json_t *tables_old(void)
{
	const struct uvd_old_spelling *s;
	json_t *list = json_array();

	for (unsigned int i = 0; (s = uvd_old_spelling_at(i)); i++)
		json_array_append_new(list, json_pack("{s:s, s:s}", "old", s->old, "now", s->now));
	return list;
}

static json_t *tables_filter(const struct uvd_filter *f)
{
	json_t *options = json_array();

	for (const struct uvd_plugin_option *o = f->options; o && o->name; o++)
		json_array_append_new(options, json_pack("{s:s, s:s?, s:s?, s:s?}", "name", o->name, "arg", o->metavar,
							 "help", o->help, "preset", o->value));
	return json_pack("{s:s, s:s, s:o}", "name", f->name, "description", f->description, "options", options);
}

static json_t *tables_filters(void)
{
	json_t *list = json_array();

#define TABLES_FILTER(name) json_array_append_new(list, tables_filter(&uvd_filter_##name));
	UVD_FILTERS(TABLES_FILTER)
#undef TABLES_FILTER
	return list;
}

static int tables_print(const struct uvd_args *args)
{
	json_t *groups = json_array(), *commands = json_array(), *options = json_array(), *names = NULL, *all;
	const struct uvd_command_row *row;
	const char *group = NULL;
	struct uvd_option_info info;
	int ret;

	(void)args;
	for (unsigned int i = 0; (row = uvd_command_at(i)); i++) {
		if (row->command) {
			json_array_append_new(commands, tables_command(row->command, group));
			if (group)
				json_array_append_new(names, json_string(row->command->name));
			continue;
		}
		group = row->group;
		if (!group)
			continue;
		names = json_array(); /* which the group then owns */
		json_array_append_new(groups, json_pack("{s:s, s:o}", "title", group, "commands", names));
	}
	for (unsigned int i = 0; uvd_options_describe(i, &info); i++)
		json_array_append_new(options, tables_option(&info));
	all = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "version", UVD_VERSION, "groups", groups, "commands",
			commands, "old", tables_old(), "options", options, "filters", tables_filters());
	ret = json_dumpf(all, stdout, JSON_INDENT(1));
	putchar('\n');
	json_decref(all);
	return ret ? 1 : 0;
}

const struct uvd_command uvd_command_internal_tables = {
	.name = "internal-tables",
	.purpose = "print the tables of commands and options as JSON",
	.is_hidden = true,
	.run = tables_print,
};
