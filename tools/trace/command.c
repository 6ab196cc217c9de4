/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl trace: prints the trace in a file, or what a daemon or a run serves from now on. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../commands.h"
#include "run/run.h"
#include "reader.h"

static const char trace_usage[] =
	"Usage: uverbsctl trace [OPTION...]\n"
	"\n"
	"  uverbsctl trace -p 4711                         what a process calls on uverbsd's devices, from now on\n"
	"  uverbsctl trace --run default --summary         the same in a `uverbsctl run --join`, as counts at the end\n"
	"  uverbsctl run --trace /tmp/t -- ibv_devinfo     record what a program calls\n"
	"  uverbsctl trace -i /tmp/t                       print it, one call a line\n"
	"  uverbsctl trace -i /tmp/t -e 'QP,failed'        calls of QPs, and those that failed\n"
	"  uverbsctl trace -i /tmp/t --summary             counts and times by verb\n"
	"\n"
	"Prints calls on devices by name, as strace does, until it is interrupted or the daemon or run ends. Within\n"
	"`uverbsctl run` they are those on the run's own devices. Root and the owner of a run see all calls; other users\n"
	"see those on files that they opened. docs/trace.md describes the output.\n"
	"\n"
	"  -i, --input FILE   print a trace that was recorded; `-` for the standard input\n"
	"  -o, --output FILE  do not print the trace, but record it in FILE\n"
	"  -p, --pid PID      only calls of this process or thread\n"
	"  -e, --filter TERMS only calls that one of TERMS, separated by commas, matches: an object (QP), a verb (CREATE),\n"
	"                     both (CQ.CREATE), a full name, an errno or a status (ENOMEM, RETRY_EXC_ERR), `failed`, or `probe`,\n"
	"                     which are refused calls by which the library learns what the device has. * and ? match any\n"
	"                     text. With ! before it, a term excludes: -e '!CQ.*'\n"
	"      --json         print JSON, one object a line\n"
	"      --why          print explanations instead of calls, each with the calls of both QPs that led to it\n"
	"  -c, --summary      print counts and times by verb instead of calls\n"
	"      --run NAME     trace the runs that were started with `--join NAME`\n"
	"      --control PATH the socket to ask (default: $UVERBSD_CONTROL, else /run/uverbsd/control)\n";

struct trace_options {
	const char *input, *output, *filter, *control;
	uint32_t pid;
	bool json, summary, why;
	struct uvd_trace_history *history; /* with `why` */
};

/* Returns false after a message. */
static bool trace_option_pid(struct trace_options *o, const char *text)
{
	char *end;

	o->pid = strtoul(text, &end, 10);
	if (o->pid && !*end)
		return true;
	fprintf(stderr, "uverbsctl trace: -p %s is not a process id\n", text);
	return false;
}

/* Returns -1 to go on, or the exit status. */
static int trace_options_parse(struct trace_options *o, int argc, char **argv)
{
	static const struct option longs[] = { { "input", required_argument, NULL, 'i' },
					       { "output", required_argument, NULL, 'o' },
					       { "control", required_argument, NULL, 'C' },
					       { "run", required_argument, NULL, 'r' },
					       { "pid", required_argument, NULL, 'p' },
					       { "filter", required_argument, NULL, 'e' },
					       { "json", no_argument, NULL, 'j' },
					       { "summary", no_argument, NULL, 'c' },
					       { "why", no_argument, NULL, 'w' },
					       { "help", no_argument, NULL, 'h' },
					       { NULL } };
	static char run[PATH_MAX];
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, "i:o:p:e:ch", longs, NULL)) >= 0) {
		switch (c) {
		case 'i':
			o->input = optarg;
			break;
		case 'o':
			o->output = optarg;
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
			if (trace_option_pid(o, optarg))
				break;
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
		case 'w':
			o->why = true;
			break;
		case 'h':
			fputs(trace_usage, stdout);
			return 0;
		default:
			fputs(trace_usage, stderr);
			return 2;
		}
	}
	/* A trace that is recorded is whole: -e chooses when it is printed. */
	if (optind == argc && !(o->input && (o->output || o->control)) &&
	    !(o->output && (o->filter || o->json || o->summary || o->why)) && !(o->why && (o->summary || o->filter)))
		return -1;
	fputs(trace_usage, stderr);
	return 2;
}

static bool trace_wants(const struct trace_options *o, const struct uvd_trace_decoded *d)
{
	if (o->pid && o->pid != d->call->pid && o->pid != d->call->tid)
		return false;
	return uvd_trace_passes(o->filter, d);
}

/* The summary counts calls only. */
static void trace_show(const struct trace_options *o, const struct uvd_trace_decoded *d, json_t *summary)
{
	if (o->why)
		uvd_trace_history_add(o->history, d);
	if (o->why || o->output || (o->summary && d->entry) || !trace_wants(o, d))
		return;
	if (o->summary)
		uvd_trace_summary_add(summary, d);
	else if (o->json)
		uvd_trace_print_json(stdout, d);
	else
		uvd_trace_print(stdout, d);
}

/* Returns false if the record is malformed. */
static bool trace_call(const struct trace_options *o, struct uvd_trace_reader *r, const struct uvd_trace_call *call,
		       json_t *summary)
{
	struct uvd_trace_decoded d;
	bool ok = uvd_trace_decode(r, call, &d);

	if (ok)
		trace_show(o, &d, summary);
	else
		fprintf(stderr, "uverbsctl trace: %s: a record is malformed\n", r->what);
	uvd_trace_decoded_free(&d);
	return ok;
}

static void trace_entry(const struct trace_options *o, struct uvd_trace_reader *r, const struct uvd_trace_entry *entry)
{
	struct uvd_trace_decoded d;

	uvd_trace_decode_entry(r, entry, &d);
	trace_show(o, &d, NULL);
	uvd_trace_decoded_free(&d);
}

static void trace_why(const struct trace_options *o, struct uvd_trace_reader *r, const struct uvd_trace_why *why)
{
	if (o->summary || o->output || (o->pid && o->pid != why->pid))
		return;
	if (o->why)
		uvd_trace_history_print(o->history, stdout, r, why);
	else if (uvd_trace_passes_why(o->filter))
		uvd_trace_print_why(stdout, r, why, o->json);
}

/* Returns false after a message. */
static bool trace_all(const struct trace_options *o, struct uvd_trace_reader *r)
{
	json_t *summary = json_object();
	const struct uvd_trace_record *record;
	bool bad = !uvd_trace_open_reader(r);

	while (!bad && !ferror(stdout) && (record = uvd_trace_next(r, &bad))) {
		if (record->kind == UVD_TRACE_CALL)
			bad = !trace_call(o, r, (const void *)record, summary);
		else if (record->kind == UVD_TRACE_ENTRY)
			trace_entry(o, r, (const void *)record);
		else if (record->kind == UVD_TRACE_WHY)
			trace_why(o, r, (const void *)record);
		else if (!o->summary && !o->output &&
			 (record->kind == UVD_TRACE_LOST || (!o->filter && !o->pid && !o->why)))
			uvd_trace_print_other(stdout, r, record, o->json);
	}
	if (o->summary)
		uvd_trace_summary_print(stdout, summary, o->json);
	json_decref(summary);
	return !bad;
}

/* ---- the command -------------------------------------------------------------------------------------------------- */

static bool trace_source(const struct trace_options *o, struct uvd_trace_reader *r)
{
	return o->input ? uvd_trace_from_file(r, "trace", o->input)
			: uvd_trace_from_daemon(r, "trace", o->control, o->pid);
}

int uvd_cmd_trace(int argc, char **argv)
{
	struct trace_options o = {};
	struct uvd_trace_reader r = { .explanations = true };
	int status = trace_options_parse(&o, argc, argv);
	bool ok = true;

	if (status >= 0)
		return status;
	if (o.why) {
		o.history = uvd_trace_history_new(o.json);
		ok = o.history;
	}
	umask(077); /* a trace has what programs pass to the device */
	if (o.output) {
		r.copy = fopen(o.output, "we");
		ok = ok && r.copy;
		if (!r.copy)
			fprintf(stderr, "uverbsctl trace: %s: %s\n", o.output, uvd_errno_name(errno));
	}
	if (!o.input)
		setvbuf(stdout, NULL, _IOLBF, 0);
	ok = ok && trace_source(&o, &r) && trace_all(&o, &r);
	uvd_trace_history_free(o.history);
	uvd_trace_close_reader(&r);
	if (r.from)
		fclose(r.from);
	if (r.copy && (ferror(r.copy) | fclose(r.copy))) {
		fprintf(stderr, "uverbsctl trace: %s: %s\n", o.output, uvd_errno_name(errno));
		ok = false;
	}
	return ok && !fflush(stdout) ? 0 : 1;
}
