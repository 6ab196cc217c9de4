/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl trace: prints the trace in a file. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "trace.h"

static const char usage[] =
	"Usage: uverbsctl trace [OPTION...] -i FILE\n"
	"\n"
	"  uverbsctl run --trace /tmp/t -- ibv_devinfo     record what a program calls\n"
	"  uverbsctl trace -i /tmp/t                       print it, one call a line\n"
	"  uverbsctl trace -i /tmp/t -e 'QP,failed'        calls of QPs, and those that failed\n"
	"  uverbsctl trace -i /tmp/t --summary             counts and times by verb\n"
	"\n"
	"Prints calls on devices by name, as strace does. docs/trace.md describes the output.\n"
	"\n"
	"  -i, --input FILE   the trace; `-` for the standard input\n"
	"  -p, --pid PID      only calls of this process or thread\n"
	"  -e, --filter TERMS only calls that one of TERMS, separated by commas, matches: an object (QP), a verb (CREATE),\n"
	"                     both (CQ.CREATE), a full name, an errno (ENOMEM), or `failed`. * and ? match any text. With !\n"
	"                     before it, a term excludes: -e '!CQ.*'\n"
	"      --json         print JSON, one object a line\n"
	"  -c, --summary      print counts and times by verb instead of calls\n";

struct trace_options {
	const char *input, *filter;
	uint32_t pid;
	bool json, summary;
};

/* Returns -1 to go on, or the exit status. */
static int trace_options_parse(struct trace_options *o, int argc, char **argv)
{
	static const struct option longs[] = { { "input", required_argument, NULL, 'i' },
					       { "pid", required_argument, NULL, 'p' },
					       { "filter", required_argument, NULL, 'e' },
					       { "json", no_argument, NULL, 'j' },
					       { "summary", no_argument, NULL, 'c' },
					       { "help", no_argument, NULL, 'h' },
					       { NULL } };
	char *end;
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, "i:p:e:ch", longs, NULL)) >= 0) {
		switch (c) {
		case 'i':
			o->input = optarg;
			break;
		case 'p':
			o->pid = strtoul(optarg, &end, 10);
			if (o->pid && !*end)
				break;
			fprintf(stderr, "uverbsctl trace: -p %s is not a process id\n", optarg);
			return 2;
		case 'e':
			o->filter = optarg;
			break;
		case 'j':
			o->json = true;
			break;
		case 'c':
			o->summary = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (optind == argc && o->input)
		return -1;
	fputs(usage, stderr);
	return 2;
}

static bool trace_wants(const struct trace_options *o, const struct uvd_trace_decoded *d)
{
	if (o->pid && o->pid != d->call->pid && o->pid != d->call->tid)
		return false;
	return uvd_trace_passes(o->filter, d);
}

/* Returns false if the record is malformed. */
static bool trace_call(const struct trace_options *o, struct uvd_trace_reader *r, const struct uvd_trace_call *call,
		       json_t *summary)
{
	struct uvd_trace_decoded d;
	bool ok = uvd_trace_decode(r, call, &d);

	if (!ok)
		fprintf(stderr, "uverbsctl trace: %s: a record is malformed\n", r->what);
	else if (!trace_wants(o, &d))
		;
	else if (o->summary)
		uvd_trace_summary_add(summary, &d);
	else if (o->json)
		uvd_trace_print_json(stdout, &d);
	else
		uvd_trace_print(stdout, &d);
	uvd_trace_decoded_free(&d);
	return ok;
}

/* Returns false after a message. */
static bool trace_all(const struct trace_options *o, struct uvd_trace_reader *r)
{
	json_t *summary = json_object();
	const struct uvd_trace_record *record;
	bool bad = !uvd_trace_open_reader(r);

	while (!bad && (record = uvd_trace_next(r, &bad))) {
		if (record->kind == UVD_TRACE_CALL)
			bad = !trace_call(o, r, (const void *)record, summary);
		else if (!o->summary && (record->kind == UVD_TRACE_LOST || (!o->filter && !o->pid)))
			uvd_trace_print_other(stdout, r, record, o->json);
	}
	if (o->summary)
		uvd_trace_summary_print(stdout, summary, o->json);
	json_decref(summary);
	return !bad;
}

int uvd_cmd_trace(int argc, char **argv)
{
	struct trace_options o = {};
	struct uvd_trace_reader r = {};
	int status = trace_options_parse(&o, argc, argv);
	bool ok;

	if (status >= 0)
		return status;
	r.what = strcmp(o.input, "-") ? o.input : "standard input";
	r.from = strcmp(o.input, "-") ? fopen(o.input, "re") : stdin;
	if (!r.from) {
		fprintf(stderr, "uverbsctl trace: %s: %s\n", o.input, uvd_errno_name(errno));
		return 1;
	}
	ok = trace_all(&o, &r);
	uvd_trace_close_reader(&r);
	fclose(r.from);
	return ok && !fflush(stdout) ? 0 : 1;
}
