/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl trace: prints the trace in a file, or what a daemon or a run serves from now on. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../commands.h"
#include "reader.h"

struct trace_options {
	const char *input, *output, *filter, *device;
	uint32_t pid;
	bool json, summary, why;
	struct uvd_trace_history *history; /* with `why` */
};

static bool trace_wants(const struct trace_options *o, const struct uvd_trace_decoded *d)
{
	if (o->pid && o->pid != d->call->pid && o->pid != d->call->tid)
		return false;
	return uvd_trace_is_of(d->open, o->device) && uvd_trace_passes(o->filter, d);
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
	if (o->summary || o->output || (o->pid && o->pid != why->pid) ||
	    !uvd_trace_is_of(uvd_trace_find(r, why->file), o->device))
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
			 (record->kind == UVD_TRACE_LOST || (!o->filter && !o->pid && !o->why && !o->device)))
			uvd_trace_print_other(stdout, r, record, o->json);
	}
	if (o->summary)
		uvd_trace_summary_print(stdout, summary, o->json);
	json_decref(summary);
	return !bad;
}

/* ---- the command -------------------------------------------------------------------------------------------------- */

static bool trace_source(const struct trace_options *o, const char *control, struct uvd_trace_reader *r)
{
	return o->input ? uvd_trace_from_file(r, "trace", o->input)
			: uvd_trace_from_daemon(r, "trace", control, o->pid);
}

/* Returns -1 to go on, or the exit status. */
static int trace_check_options(const struct uvd_args *args)
{
	const struct trace_options *o = args->options;

	if (o->input && (o->output || args->names_control))
		return uvd_args_wrong(args, "--input and %s exclude each other",
				      o->output ? "--output" : "a socket to ask");
	if (o->output && (o->filter || o->device || o->json || o->summary || o->why))
		return uvd_args_wrong(args, "--output records whole traces: choose when it is printed");
	if (o->why && (o->summary || o->filter))
		return uvd_args_wrong(args, "--why and %s exclude each other", o->summary ? "--summary" : "--filter");
	return -1;
}

static int trace_command(const struct uvd_args *args)
{
	struct trace_options *o = args->options;
	struct uvd_trace_reader r = { .explanations = true };
	int status;
	bool ok = true;

	o->device = args->device;
	status = trace_check_options(args);
	if (status >= 0)
		return status;
	if (o->why) {
		o->history = uvd_trace_history_new(o->json);
		ok = o->history;
	}
	umask(077); /* a trace has what programs pass to the device */
	if (o->output) {
		r.copy = fopen(o->output, "we");
		ok = ok && r.copy;
		if (!r.copy)
			fprintf(stderr, "uverbsctl trace: %s: %s\n", o->output, uvd_errno_name(errno));
	}
	if (!o->input)
		setvbuf(stdout, NULL, _IOLBF, 0);
	ok = ok && trace_source(o, args->control, &r) && trace_all(o, &r);
	uvd_trace_history_free(o->history);
	uvd_trace_close_reader(&r);
	if (r.from)
		fclose(r.from);
	if (r.copy && (ferror(r.copy) | fclose(r.copy))) {
		fprintf(stderr, "uverbsctl trace: %s: %s\n", o->output, uvd_errno_name(errno));
		ok = false;
	}
	return ok && !fflush(stdout) ? 0 : 1;
}

const struct uvd_command uvd_command_trace = {
	.name = "trace",
	.purpose = "print what programs call, as strace does",
	.examples =
		(const struct uvd_help_example[]){
			{ "uverbsctl trace -p 4711", "what a process calls on uverbsd's devices, from now on" },
			{ "uverbsctl trace --run default --summary",
			  "the same in a `uverbsctl run --join`, as counts at the end" },
			{ "uverbsctl run --trace /tmp/t -- ibv_devinfo", "record what a program calls" },
			{ "uverbsctl trace -i /tmp/t", "print it, one call a line" },
			{ "uverbsctl trace -i /tmp/t -e 'QP,failed'", "calls of QPs, and those that failed" },
			{ "uverbsctl trace -i /tmp/t --summary", "counts and times by verb" },
			{},
		},
	.text =
		(const char *const[]){
			"Prints calls on devices by name, as strace does, until it is interrupted or the daemon or run ends. Within "
			"`uverbsctl run` they are those on the run's own devices. Root and the owner of a run see all calls; other users see "
			"those on files that they opened. docs/trace.md describes the output.",
			"TERMS are separated by commas; a call is printed if one of them matches: an object (QP), a verb (CREATE), both "
			"(CQ.CREATE), a full name, an errno or a status (ENOMEM, RETRY_EXC_ERR), `failed`, or `probe`, which are refused calls "
			"by which the library learns what the device has. * and ? match any text. With ! before it, a term excludes: -e "
			"'!CQ.*'",
			NULL },
	.takes = UVD_TAKES_CONTROL | UVD_TAKES_RUN | UVD_TAKES_DEVICE,
	.options =
		(const struct uvd_command_option[]){
			{ "input", 'i', "FILE", "print a trace that was recorded; `-` for the standard input",
			  UVD_VALUES_FILE, UVD_STORE(struct trace_options, input, TEXT) },
			{ "output", 'o', "FILE", "do not print the trace, but record it in FILE", UVD_VALUES_FILE,
			  UVD_STORE(struct trace_options, output, TEXT) },
			{ "pid", 'p', "PID", "only calls of this process or thread",
			  UVD_STORE(struct trace_options, pid, NUMBER), .min = 1, .max = INT32_MAX },
			{ "filter", 'e', "TERMS", "only calls that one of TERMS matches",
			  UVD_STORE(struct trace_options, filter, TEXT) },
			{ "json", .help = "print JSON, one object a line",
			  UVD_STORE(struct trace_options, json, FLAG) },
			{ "why",
			  .help = "print explanations instead of calls, each with the calls of both QPs that led to it",
			  UVD_STORE(struct trace_options, why, FLAG) },
			{ "summary", 'c', .help = "print counts and times by verb instead of calls",
			  UVD_STORE(struct trace_options, summary, FLAG) },
			{},
		},
	.size = sizeof(struct trace_options),
	.run = trace_command,
};
