/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* --help of uverbsd and `uverbsctl run`: the options that are used most on one screen, and the others by section. */
#include <stdio.h>
#include <string.h>

#include "options/internal.h"
#include "plugin/plugin.h"
#include "util/util.h"

/* In the order of enum uvd_option_scope. */
static const struct {
	const char *section, *name, *title;
} scopes[] = { { "options", "program", "Options:" },
	       { "devices", "device", "Devices (in the file: [uverbsd] or [device N]):" },
	       { "ports", "port", "Ports (in the file: [uverbsd], [device N] or [port N.M]):" },
	       { "limits", "limit", "What each user may hold (in the file: [limits], without `limit-`):" } };

static void help_print_row(const struct uvd_option_row *row)
{
	char left[64], right[512];

	snprintf(left, sizeof(left), row->is_glued ? "--%s[=%s]" : row->arg ? "--%s %s" : "--%s", row->name, row->arg);
	snprintf(right, sizeof(right), row->preset ? "%s (default: %s)" : "%s", row->help, row->preset);
	uvd_help_row(stdout, left, right, HELP_COLUMN);
}

static void help_print_own(void)
{
	uvd_help_row(stdout, "--help[=SECTION]",
		     "this text, or the options of a section: options, devices, ports, limits, filters, all",
		     HELP_COLUMN);
	uvd_help_row(stdout, "--version", "the version", HELP_COLUMN);
}

static void help_print_scope(enum uvd_program program, unsigned int scope)
{
	const struct uvd_option_row *row;

	fputc('\n', stdout);
	uvd_help_wrap(stdout, scopes[scope].title, 0, 0);
	for (unsigned int i = 0; (row = uvd_option_at(i)); i++)
		if (row->scope == scope && row->programs & program && row->help)
			help_print_row(row);
	if (scope == UVD_SCOPE_PROGRAM)
		help_print_own();
}

static void help_print_common(enum uvd_program program)
{
	const struct uvd_option_row *row;

	printf("\nOptions that are used most:\n");
	for (unsigned int i = 0; (row = uvd_option_at(i)); i++)
		if (row->programs & program && row->is_common)
			help_print_row(row);
	help_print_own();
	fputc('\n', stdout);
	uvd_help_wrap(stdout, "A file has lines `option = value`; the command line wins over it.", 0, 0);
}

static void help_print_filter(void *arg, const struct uvd_filter *filter)
{
	(void)arg;
	uvd_help_row(stdout, filter->name, filter->description ? filter->description : "", HELP_COLUMN);
}

/* Those of the plug-ins on the command line are there, too. */
static void help_print_filters(struct parser *p)
{
	printf("\nFilters (--filter NAME[:OPTIONS]):\n");
	uvd_plugins_filters_each(p->o->names, help_print_filter, NULL);
	fputc('\n', stdout);
	uvd_help_wrap(stdout, "`uverbsctl filter --help NAME` lists the options of a filter.", 0, 0);
}

static int help_wrong_section(const struct parser *p)
{
	struct uvd_nearest nearest = { .wrong = p->help_section };
	char names[UVD_NEAREST_TEXT];

	for (unsigned int scope = 0; scope < UVD_COUNT(scopes); scope++)
		uvd_nearest_add(&nearest, scopes[scope].section);
	uvd_nearest_add(&nearest, "filters");
	uvd_nearest_add(&nearest, "all");
	fprintf(stderr, "%s: --help: unknown section `%s`; the nearest are %s\n", p->name, p->help_section,
		uvd_nearest_text(&nearest, names));
	return 2;
}

static bool help_has(const struct parser *p, const char *section)
{
	return p->help_section && (!strcmp(p->help_section, section) || !strcmp(p->help_section, "all"));
}

int uvd_options_give_help(struct parser *p, const struct uvd_help_head *head)
{
	bool is_known = !p->help_section || help_has(p, "filters");
	char error[UVD_PLUGIN_ERROR];

	for (unsigned int scope = 0; scope < UVD_COUNT(scopes); scope++)
		is_known |= help_has(p, scopes[scope].section);
	if (!is_known)
		return help_wrong_section(p);
	uvd_help_head_print(stdout, head);
	if (!p->help_section)
		help_print_common(p->program);
	for (unsigned int scope = 0; scope < UVD_COUNT(scopes); scope++)
		if (help_has(p, scopes[scope].section))
			help_print_scope(p->program, scope);
	for (unsigned int i = 0; i < p->num_settings; i++)
		if (p->settings[i].row->is_plugin)
			uvd_setting_apply(p, &p->settings[i], p->o, 0);
	if (!p->failed && !uvd_options_open_plugins(p->o, error))
		uvd_opt_fail(p, 0, "--plugin %s", error);
	if (!p->failed && help_has(p, "filters"))
		help_print_filters(p);
	if (!p->failed)
		uvd_options_help_plugins(p->o);
	return p->failed ? 2 : 0;
}

bool uvd_options_describe(unsigned int i, struct uvd_option_info *info)
{
	const struct uvd_option_row *row;

	for (unsigned int at = 0; (row = uvd_option_at(at)); at++)
		if (row->help && !i--)
			break;
	if (!row)
		return false;
	*info = (struct uvd_option_info){
		.name = row->name,
		.arg = row->arg,
		.scope = scopes[row->scope].name,
		.preset = row->preset,
		.help = row->help,
		.programs = row->programs,
		.is_of_file = !row->is_file,
		.is_glued = row->is_glued,
		.may_be_omitted = row->omitted,
	};
	for (unsigned int c = 0; row->choices && row->choices[c].name && c < UVD_OPTION_CHOICES; c++)
		info->choices[c] = row->choices[c].name;
	return true;
}
