/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The report as text. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/internal.h"

static json_int_t text_number(const json_t *json, const char *key)
{
	return json_integer_value(json_object_get(json, key));
}

static const char *text_string(const json_t *json, const char *key)
{
	return json_string_value(json_object_get(json, key)) ?: "?";
}

static void text_end(const json_t *process, FILE *out)
{
	const char *end = text_string(process, "end");

	if (!strcmp(end, "exited"))
		fprintf(out, " exited with %" JSON_INTEGER_FORMAT, text_number(process, "status"));
	else
		fprintf(out, " %s", !strcmp(end, "killed") ? "was killed" : "closed its devices");
}

static void text_issues(const json_t *process, const char *key, const char *word, FILE *out)
{
	json_t *issue;
	size_t i;

	json_array_foreach(json_object_get(process, key), i, issue)
		fprintf(out, "  %s: %s: %s\n", word, text_string(issue, "code"), text_string(issue, "text"));
}

static void text_stack(const json_t *object, FILE *out)
{
	json_t *frame;
	size_t i;

	json_array_foreach(json_object_get(object, "stack"), i, frame) {
		fprintf(out, "      #%zu %s", i, text_string(frame, "function"));
		if (json_object_get(frame, "file"))
			fprintf(out, " at %s:%" JSON_INTEGER_FORMAT, text_string(frame, "file"),
				text_number(frame, "line"));
		else
			fprintf(out, " in %s+0x%" PRIx64, text_string(frame, "module"),
				(uint64_t)text_number(frame, "offset"));
		fputc('\n', out);
	}
}

static void text_object(const json_t *object, FILE *out)
{
	const char *access = json_string_value(json_object_get(object, "access"));

	fprintf(out, "    %s %" JSON_INTEGER_FORMAT, text_string(object, "type"), text_number(object, "handle"));
	if (json_object_get(object, "length"))
		fprintf(out, ": %" JSON_INTEGER_FORMAT " bytes%s%s", text_number(object, "length"),
			access && *access ? ", " : "", access ?: "");
	else if (json_object_get(object, "qp_num"))
		fprintf(out, ": %s, number 0x%" PRIx64, text_string(object, "qp_type"),
			(uint64_t)text_number(object, "qp_num"));
	else if (json_object_get(object, "cqe"))
		fprintf(out, ": %" JSON_INTEGER_FORMAT " entries", text_number(object, "cqe"));
	fputc('\n', out);
	text_stack(object, out);
}

static void text_objects(const json_t *process, FILE *out)
{
	const json_int_t cut = text_number(process, "objects_left_cut");
	json_t *object;
	size_t i;

	json_array_foreach(json_object_get(process, "objects_left"), i, object)
		text_object(object, out);
	if (cut)
		fprintf(out, "    and %" JSON_INTEGER_FORMAT " more, which are not listed\n", cut);
}

/* "UVERBS_METHOD_REG_MR" and "IB_USER_VERBS_CMD_REG_MR" are "REG_MR". */
static const char *text_verb(const char *name)
{
	static const char *const prefixes[] = { "UVERBS_METHOD_", "IB_USER_VERBS_CMD_", "IB_USER_VERBS_EX_CMD_" };

	for (size_t i = 0; i < UVD_COUNT(prefixes); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return name + strlen(prefixes[i]);
	return name;
}

static void text_calls(const json_t *process, FILE *out)
{
	const json_int_t cut = text_number(process, "calls_cut");
	json_t *row;
	size_t i;

	json_array_foreach(json_object_get(process, "calls"), i, row) {
		const json_int_t failed = text_number(row, "failed");

		fprintf(out, "  call %-22s %8" JSON_INTEGER_FORMAT " times %12" JSON_INTEGER_FORMAT " bytes",
			text_verb(text_string(row, "verb")), text_number(row, "calls"), text_number(row, "bytes"));
		if (failed)
			fprintf(out, ", %" JSON_INTEGER_FORMAT " failed", failed);
		fputc('\n', out);
	}
	if (cut)
		fprintf(out, "  %" JSON_INTEGER_FORMAT " more calls, of no verb or of more verbs than are counted\n",
			cut);
	json_array_foreach(json_object_get(process, "messages"), i, row)
		fprintf(out, "  data %-22s %8" JSON_INTEGER_FORMAT " times %12" JSON_INTEGER_FORMAT " bytes\n",
			text_string(row, "operation"), text_number(row, "messages"), text_number(row, "bytes"));
}

static void text_process(const json_t *process, FILE *out)
{
	const json_int_t others = text_number(process, "stands_for");

	if (others) {
		fprintf(out, "%" JSON_INTEGER_FORMAT " more opens by processes that are not listed, together:\n",
			others);
	} else {
		fprintf(out, "process %" JSON_INTEGER_FORMAT " (%s)", text_number(process, "pid"),
			text_string(process, "program"));
		text_end(process, out);
		fputc('\n', out);
	}
	text_issues(process, "findings", "finding", out);
	text_objects(process, out);
	text_issues(process, "notices", "notice", out);
	if (text_number(process, "reasons_cut"))
		fprintf(out, "  %" JSON_INTEGER_FORMAT " more explanations, of more reasons than are counted\n",
			text_number(process, "reasons_cut"));
	text_calls(process, out);
}

void uvd_report_print_text(const json_t *document, FILE *out)
{
	const json_t *processes = json_object_get(document, "processes");
	json_t *process;
	size_t i;

	fprintf(out, "report: %zu process%s, %" JSON_INTEGER_FORMAT " finding%s, %" JSON_INTEGER_FORMAT " notice%s\n",
		json_array_size(processes), json_array_size(processes) == 1 ? "" : "es",
		text_number(document, "findings"), text_number(document, "findings") == 1 ? "" : "s",
		text_number(document, "notices"), text_number(document, "notices") == 1 ? "" : "s");
	if (text_number(document, "lost"))
		fprintf(out, "not complete: no memory, or too many objects, %" JSON_INTEGER_FORMAT " times\n",
			text_number(document, "lost"));
	if (text_number(document, "stacks_lost"))
		fprintf(out, "without the stacks of %" JSON_INTEGER_FORMAT " objects: they would have been too many\n",
			text_number(document, "stacks_lost"));
	json_array_foreach(processes, i, process)
		text_process(process, out);
}
