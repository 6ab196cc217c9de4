/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl explain: prints explanations as they are made, or those of a trace, or the table of reasons. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../commands.h"
#include "explain/explain.h"
#include "reader.h"

struct explain_options {
	const char *input;
	uint32_t pid;
	bool json, list;
};

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
static bool explain_all(const struct explain_options *o, const char *device, struct uvd_trace_reader *r)
{
	const struct uvd_trace_record *record;
	bool bad = !uvd_trace_open_reader(r);

	while (!bad && !ferror(stdout) && (record = uvd_trace_next(r, &bad))) {
		const struct uvd_trace_why *why = (const void *)record;

		if (record->kind == UVD_TRACE_LOST)
			uvd_trace_print_other(stdout, r, record, o->json);
		else if (record->kind == UVD_TRACE_WHY && (!o->pid || o->pid == why->pid) &&
			 uvd_trace_is_of(uvd_trace_find(r, why->file), device))
			uvd_trace_print_why(stdout, r, why, o->json);
	}
	return !bad;
}

static int explain_command(const struct uvd_args *args)
{
	const struct explain_options *o = args->options;
	struct uvd_trace_reader r = { .explanations = true };
	bool ok;

	if (o->input && args->names_control)
		return uvd_args_wrong(args, "--input and a socket to ask exclude each other");
	if (o->list && (o->input || args->names_control || o->pid || args->device))
		return uvd_args_wrong(args, "--list prints the table of reasons: it takes only --json");
	if (o->list) {
		explain_list(o->json);
		return 0;
	}
	if (!o->input)
		setvbuf(stdout, NULL, _IOLBF, 0);
	ok = o->input ? uvd_trace_from_file(&r, "explain", o->input)
		      : uvd_trace_from_daemon(&r, "explain", args->control, o->pid);
	ok = ok && explain_all(o, args->device, &r);
	uvd_trace_close_reader(&r);
	if (r.from)
		fclose(r.from);
	return ok && !fflush(stdout) ? 0 : 1;
}

const struct uvd_command uvd_command_explain = {
	.name = "explain",
	.purpose = "explain why completions and calls failed",
	.examples =
		(const struct uvd_help_example[]){
			{ "uverbsctl explain", "what fails on uverbsd's devices, from now on, and why" },
			{ "uverbsctl explain -i /tmp/t", "the explanations in a trace that was recorded" },
			{ "uverbsctl explain --list", "all reasons, with their remedies" },
			{},
		},
	.text =
		(const char *const[]){
			"Explains completions with errors, refused calls and error events: what was asked, what was found, what to do. Root "
			"and the owner of a run see those of all; other users see those on files that they opened. docs/reasons.md lists the "
			"reasons.",
			NULL },
	.takes = UVD_TAKES_CONTROL | UVD_TAKES_RUN | UVD_TAKES_DEVICE,
	.options =
		(const struct uvd_command_option[]){
			{ "input", 'i', "FILE", "print the explanations in a trace; `-` for the standard input",
			  UVD_VALUES_FILE, UVD_STORE(struct explain_options, input, TEXT) },
			{ "pid", 'p', "PID", "only those of this process",
			  UVD_STORE(struct explain_options, pid, NUMBER), .min = 1, .max = INT32_MAX },
			{ "json", .help = "print JSON, one object a line",
			  UVD_STORE(struct explain_options, json, FLAG) },
			{ "list", 'l', .help = "print the table of reasons: code, text, remedy, and who requires it",
			  UVD_STORE(struct explain_options, list, FLAG) },
			{},
		},
	.size = sizeof(struct explain_options),
	.run = explain_command,
};
