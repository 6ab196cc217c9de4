/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The help of uverbsctl, and of each command, from their rows. */
#include <string.h>

#include "../commands.h"

enum { HELP_COLUMN = 25, HELP_MAX_SYNOPSES = 8, HELP_SYNOPSIS = 160 };

/* ---- of all commands ------------------------------------------------------------------------------------------------ */

static const char *const all_synopses[] = { "uverbsctl COMMAND [OPTION...]", NULL };
static const struct uvd_help_example all_examples[] = {
	{ "uverbsctl run -- ibv_devinfo", "a program with a device of its own" },
	{ "uverbsctl status", "what the daemon serves" },
	{ "uverbsctl device remove uverbs0", "unplug a device" },
	{},
};

void uvd_command_help_all(FILE *to)
{
	const struct uvd_command_row *row;

	uvd_help_head_print(to, &(const struct uvd_help_head){ all_synopses, all_examples });
	for (unsigned int i = 0; (row = uvd_command_at(i)); i++)
		if (!row->command && row->group)
			fprintf(to, "\n%s:\n", row->group);
		else if (row->command && !row->command->is_hidden)
			uvd_help_row(to, row->command->name, row->command->purpose, 14);
	fputc('\n', to);
	uvd_help_wrap(to, "`uverbsctl help COMMAND` tells more, `uverbsctl --version` the version.", 0, 0);
}

/* ---- of a command --------------------------------------------------------------------------------------------------- */

static void help_option(FILE *to, const struct uvd_command_option *o)
{
	char left[64], letter[8] = "";

	if (o->letter)
		snprintf(letter, sizeof(letter), "-%c, ", o->letter);
	snprintf(left, sizeof(left), "%s--%s%s%s", letter, o->name, o->arg ? " " : "", o->arg ? o->arg : "");
	uvd_help_row(to, left, o->help, HELP_COLUMN);
}

static void help_options(FILE *to, const struct uvd_command *c)
{
	const struct uvd_command_option *o;

	if (c->verbs)
		fputc('\n', to);
	for (const struct uvd_command_verb *v = c->verbs; v && v->name; v++)
		uvd_help_row(to, v->name, v->purpose, HELP_COLUMN);
	fputc('\n', to);
	for (const struct uvd_command_verb *v = c->verbs; v && v->name; v++)
		for (o = v->options; o && o->name; o++)
			help_option(to, o);
	for (unsigned int i = 0; (o = uvd_command_option_at(c, NULL, i)); i++)
		if (o->help)
			help_option(to, o);
	uvd_help_row(to, "-h, --help", "this text", HELP_COLUMN);
}

/* "Exit status: 0 WHEN, 1 WHEN, 2 WHEN." */
static void help_exits(FILE *to, const struct uvd_command *c)
{
	const struct uvd_command_exit *e = c->exits ? c->exits : uvd_command_usual_exits;
	char text[1024] = "Exit status:";
	size_t len = strlen(text);

	for (; e->status && len < sizeof(text); e++)
		len += snprintf(text + len, sizeof(text) - len, " %s: %s%s", e->status, e->when,
				e[1].status ? ";" : ".");
	fputc('\n', to);
	uvd_help_wrap(to, text, 0, 0);
}

void uvd_command_help(FILE *to, const struct uvd_command *c)
{
	char texts[HELP_MAX_SYNOPSES][HELP_SYNOPSIS];
	const char *synopses[HELP_MAX_SYNOPSES + 1];
	unsigned int n = 0;

	while (n < HELP_MAX_SYNOPSES && uvd_command_synopsis(c, n, texts[n], sizeof(texts[n]))) {
		synopses[n] = texts[n];
		n++;
	}
	synopses[n] = NULL;
	uvd_help_head_print(to, &(const struct uvd_help_head){ synopses, c->examples });
	for (const char *const *text = c->text; text && *text; text++) {
		fputc('\n', to);
		uvd_help_wrap(to, *text, 0, 0);
	}
	help_options(to, c);
	help_exits(to, c);
}
