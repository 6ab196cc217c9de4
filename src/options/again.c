/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The configuration file that is read again while the program runs, and what differs then. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "options/internal.h"

void uvd_option_say(struct parser *p)
{
	struct uvd_options *o = p->o;

	o->said = calloc(p->num_settings + 1, sizeof(*o->said));
	for (unsigned int i = 0; o->said && i < p->num_settings; i++) {
		const struct setting *s = &p->settings[i];

		if (s->row->scope != UVD_SCOPE_PROGRAM && s->row->scope != UVD_SCOPE_LIMIT)
			continue;
		o->said[o->num_said] = (struct uvd_option_said){ s->row->name, strdup(s->text) };
		if (o->said[o->num_said].text)
			o->num_said++;
		else
			uvd_opt_fail(p, 0, "no memory");
	}
	if (!o->said)
		uvd_opt_fail(p, 0, "no memory");
}

void uvd_options_free_said(struct uvd_options *o)
{
	for (unsigned int i = 0; i < o->num_said; i++)
		free(o->said[i].text);
	free(o->said);
	o->said = NULL;
	o->num_said = 0;
}

/* Returns the next setting of this option at or behind *at, or NULL. */
static const char *said_next(const struct uvd_options *o, const char *name, unsigned int *at)
{
	for (; *at < o->num_said; (*at)++)
		if (!strcmp(o->said[*at].name, name))
			return o->said[(*at)++].text;
	return NULL;
}

/* Have both the same settings of this option, in the same order? */
static bool said_is_same(const struct uvd_options *a, const struct uvd_options *b, const char *name)
{
	unsigned int at_a = 0, at_b = 0;
	const char *x, *y;

	do {
		x = said_next(a, name, &at_a);
		y = said_next(b, name, &at_b);
		if (!x != !y || (x && strcmp(x, y) != 0))
			return false;
	} while (x);
	return true;
}

void uvd_options_differ(const struct uvd_options *a, const struct uvd_options *b, char names[UVD_RELOAD_NAMES])
{
	const struct uvd_option_row *row;
	size_t len = 0;

	*names = 0;
	for (unsigned int i = 0; (row = uvd_option_at(i)); i++)
		if ((row->scope == UVD_SCOPE_PROGRAM || row->scope == UVD_SCOPE_LIMIT) && !row->is_reloaded &&
		    !said_is_same(a, b, row->name) && len < UVD_RELOAD_NAMES)
			len += snprintf(names + len, UVD_RELOAD_NAMES - len, "%s%s", len ? " " : "", row->name);
}

/* Returns the next text of device i at or behind *at, or NULL. */
static const struct uvd_option_text *text_next(const struct uvd_options *o, unsigned int i, unsigned int *at)
{
	for (; *at < o->num_texts; (*at)++)
		if (o->texts[*at].device == i)
			return &o->texts[(*at)++];
	return NULL;
}

bool uvd_options_same_device(const struct uvd_options *a, unsigned int i, const struct uvd_options *b, unsigned int j)
{
	const struct uvd_option_text *x, *y;
	unsigned int at_a = 0, at_b = 0;

	/* Both were made by the same code in memory that was all zeros, so their padding is alike. */
	if (memcmp(&a->devices[i], &b->devices[j], sizeof(*a->devices)) != 0)
		return false;
	do {
		x = text_next(a, i, &at_a);
		y = text_next(b, j, &at_b);
		if (!x != !y || (x && (x->kind != y->kind || strcmp(x->text, y->text) != 0)))
			return false;
	} while (x);
	return true;
}

int uvd_options_parse_again(const struct uvd_options *was, int config, struct uvd_options *o,
			    char error[UVD_RELOAD_ERROR])
{
	struct parser p = {
		.o = o,
		.program = UVD_PROGRAM_DAEMON,
		.machine = &was->machine,
		.name = was->argv[0],
		.last_device = -1,
		.plugins = was->names,
		.wire = &was->wire,
		.checks_names = true,
		.again = was,
		.fd = config,
		.error = error,
	};

	strcpy(error, "no memory");
	if (lseek(config, 0, SEEK_SET) || uvd_options_run_parser(&p, NULL, was->argc, was->argv) >= 0)
		return -1;
	if (said_is_same(was, o, "plugin"))
		return 0;
	strcpy(error,
	       "other plug-ins are named than at the start: `uverbsctl plugin load` loads one; or restart the service");
	uvd_options_free(o);
	return -1;
}
