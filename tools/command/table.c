/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The table of commands, and what their rows share. */
#include <stdio.h>
#include <string.h>

#include "../commands.h"

#define TABLE_GROUP(title) { .group = title },
#define TABLE_COMMAND(x) { .command = &uvd_command_##x },

static const struct uvd_command_row table[] = { UVD_COMMANDS(TABLE_GROUP, TABLE_COMMAND) };

/* They go to struct uvd_args. */
static const struct {
	unsigned int takes;
	struct uvd_command_option option;
} shared[] = {
	{ UVD_TAKES_DEVICE,
	  { "device", .arg = "DEVICE", .help = "the device: rxe0, uverbs0, or the path of its node",
	    .values = UVD_VALUES_DEVICE, UVD_STORE(struct uvd_args, device, TEXT) } },
	{ UVD_TAKES_RUN,
	  { "run", .arg = "NAME", .help = "ask the runs that were started with `--join NAME`", .values = UVD_VALUES_RUN,
	    UVD_STORE(struct uvd_args, run, TEXT) } },
	{ UVD_TAKES_CONTROL,
	  { "control", .arg = "PATH",
	    .help = "the socket to ask (default: $UVERBSD_CONTROL, as in a run, else /run/uverbsd/control)",
	    .values = UVD_VALUES_FILE, UVD_STORE(struct uvd_args, control, TEXT) } },
};

const struct uvd_command_exit uvd_command_usual_exits[] = {
	{ "0", "success" },
	{ "1", "the request failed" },
	{ "2", "the command line is wrong" },
	{},
};

const struct uvd_command_row *uvd_command_at(unsigned int i)
{
	return i < UVD_COUNT(table) ? &table[i] : NULL;
}

const struct uvd_command *uvd_command_find(const char *name)
{
	for (unsigned int i = 0; i < UVD_COUNT(table); i++)
		if (table[i].command && !strcmp(table[i].command->name, name))
			return table[i].command;
	return NULL;
}

const struct uvd_command_verb *uvd_command_verb_find(const struct uvd_command *c, const char *name)
{
	for (const struct uvd_command_verb *v = c->verbs; v && v->name; v++)
		if (!strcmp(v->name, name))
			return v;
	return NULL;
}

static unsigned int command_takes(const struct uvd_command *c, const struct uvd_command_verb *verb)
{
	unsigned int takes = c->takes;

	for (const struct uvd_command_verb *v = c->verbs; v && v->name; v++)
		if ((!verb || v == verb) && v->takes_device)
			takes |= UVD_TAKES_DEVICE;
	return takes;
}

const struct uvd_command_option *uvd_command_option_at(const struct uvd_command *c, const struct uvd_command_verb *v,
						       unsigned int i)
{
	const unsigned int takes = command_takes(c, v);
	const struct uvd_command_option *o;

	for (o = c->options; o && o->name; o++)
		if (!i--)
			return o;
	for (o = v ? v->options : NULL; o && o->name; o++)
		if (!i--)
			return o;
	for (unsigned int s = 0; s < UVD_COUNT(shared); s++)
		if (takes & shared[s].takes && !i--)
			return &shared[s].option;
	return NULL;
}

bool uvd_command_is_shared(const struct uvd_command_option *option)
{
	for (unsigned int s = 0; s < UVD_COUNT(shared); s++)
		if (option == &shared[s].option)
			return true;
	return false;
}

bool uvd_command_synopsis(const struct uvd_command *c, unsigned int i, char *text, size_t size)
{
	const struct uvd_command_verb *v = c->verbs;
	unsigned int n = 0;

	if (c->synopses) {
		while (n < i && c->synopses[n])
			n++;
		snprintf(text, size, "%s", c->synopses[n] ? c->synopses[n] : "");
		return c->synopses[n];
	}
	if (!v) {
		snprintf(text, size, "uverbsctl %s%s%s%s", c->name,
			 uvd_command_option_at(c, NULL, 0) ? " [OPTION...]" : "", c->words ? " " : "",
			 c->words ? c->words : "");
		return !i;
	}
	while (n++ < i && v->name)
		v++;
	if (v->name)
		snprintf(text, size, "uverbsctl %s %s%s%s%s", c->name, v->name, v->words ? " " : "",
			 v->words ? v->words : "", v->options ? " [OPTION...]" : "");
	return v->name;
}
