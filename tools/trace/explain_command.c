/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl explain: prints explanations as they are made, or those of a trace, or the table of reasons. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../commands.h"
#include "explain/explain.h"
#include "run/run.h"
#include "reader.h"

static const char explain_usage[] =
	"Usage: uverbsctl explain [OPTION...]\n"
	"\n"
	"  uverbsctl explain                               what fails on uverbsd's devices, from now on, and why\n"
	"  uverbsctl explain -i /tmp/t                     the explanations in a trace that was recorded\n"
	"  uverbsctl explain --list                        all reasons, with their remedies\n"
	"\n"
	"Explains completions with errors, refused calls and error events: what was asked, what was found, what to do.\n"
	"Root and the owner of a run see those of all; other users see those on files that they opened. docs/reasons.md\n"
	"lists the reasons.\n"
	"\n"
	"  -i, --input FILE   print the explanations in a trace; `-` for the standard input\n"
	"  -p, --pid PID      only those of this process\n"
	"      --json         print JSON, one object a line\n"
	"  -l, --list         print the table of reasons: code, text, remedy, and who requires it\n"
	"      --run NAME     ask the runs that were started with `--join NAME`\n"
	"      --control PATH the socket to ask (default: $UVERBSD_CONTROL, else /run/uverbsd/control)\n";

struct explain_options {
	const char *input, *control;
	uint32_t pid;
	bool json, list;
};

static int explain_usage_error(void)
{
	fputs(explain_usage, stderr);
	return 2;
}

/* Returns -1 to go on, or the exit status. */
static int explain_options_parse(struct explain_options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "input", required_argument, NULL, 'i' }, { "control", required_argument, NULL, 'C' },
		{ "run", required_argument, NULL, 'r' },   { "pid", required_argument, NULL, 'p' },
		{ "json", no_argument, NULL, 'j' },	   { "list", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },	   { NULL },
	};
	static char run[PATH_MAX];
	char *end;
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, "i:p:lh", longs, NULL)) >= 0) {
		switch (c) {
		case 'i':
			o->input = optarg;
			break;
		case 'C':
			o->control = optarg;
			break;
		case 'r':
			if (!uvd_run_find(optarg, run))
				return 1;
			o->control = run;
			break;
		case 'p':
			o->pid = strtoul(optarg, &end, 10);
			if (o->pid && !*end)
				break;
			fprintf(stderr, "uverbsctl explain: -p %s is not a process id\n", optarg);
			return 2;
		case 'j':
			o->json = true;
			break;
		case 'l':
			o->list = true;
			break;
		case 'h':
			fputs(explain_usage, stdout);
			return 0;
		default:
			return explain_usage_error();
		}
	}
	return optind < argc || (o->input && o->control) || (o->list && (o->input || o->control || o->pid))
		       ? explain_usage_error()
		       : -1;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static void explain_list(bool as_json)
{
	for (unsigned int i = 0; i < UVD_NUM_REASONS; i++) {
		const struct uvd_reason *r = &uvd_reasons[i];

		if (as_json)
			uvd_trace_print_line(stdout, json_pack("{s:s, s:s, s:s?, s:s}", "code", r->code, "text",
							       r->text, "remedy", r->remedy, "source", r->source));
		else
			printf("%s%s\n\t%s\n%s%s%s\t(%s)\n", i ? "\n" : "", r->code, r->text, r->remedy ? "\t" : "",
			       r->remedy ?: "", r->remedy ? "\n" : "", r->source);
	}
}

/* ---- explanations ------------------------------------------------------------------------------------------------ */

/* Returns false after a message. */
static bool explain_all(const struct explain_options *o, struct uvd_trace_reader *r)
{
	const struct uvd_trace_record *record;
	bool bad = !uvd_trace_open_reader(r);

	while (!bad && !ferror(stdout) && (record = uvd_trace_next(r, &bad))) {
		const struct uvd_trace_why *why = (const void *)record;

		if (record->kind == UVD_TRACE_LOST)
			uvd_trace_print_other(stdout, r, record, o->json);
		else if (record->kind == UVD_TRACE_WHY && (!o->pid || o->pid == why->pid))
			uvd_trace_print_why(stdout, r, why, o->json);
	}
	return !bad;
}

int uvd_cmd_explain(int argc, char **argv)
{
	struct explain_options o = {};
	struct uvd_trace_reader r = { .explanations = true };
	int status = explain_options_parse(&o, argc, argv);
	bool ok;

	if (status >= 0)
		return status;
	if (o.list) {
		explain_list(o.json);
		return 0;
	}
	if (!o.input)
		setvbuf(stdout, NULL, _IOLBF, 0);
	ok = o.input ? uvd_trace_from_file(&r, "explain", o.input)
		     : uvd_trace_from_daemon(&r, "explain", o.control, o.pid);
	ok = ok && explain_all(&o, &r);
	uvd_trace_close_reader(&r);
	if (r.from)
		fclose(r.from);
	return ok && !fflush(stdout) ? 0 : 1;
}
