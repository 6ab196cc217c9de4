/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The report as JUnit XML: a test case for each process, whose failures are its findings. */
#include <stdio.h>

#include "report/internal.h"

/* The texts are printable ASCII (uvd_report_copy_text()): XML can have no other control characters than line ends. */
static void junit_escape(const char *text, FILE *out)
{
	for (; text && *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", out);
			break;
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		case '\'':
			fputs("&apos;", out);
			break;
		default:
			fputc(*text < ' ' || *text > '~' ? '?' : *text, out);
		}
	}
}

static void junit_attribute(const char *name, const json_t *json, const char *key, FILE *out)
{
	fprintf(out, " %s=\"", name);
	junit_escape(json_string_value(json_object_get(json, key)), out);
	fputc('"', out);
}

static void junit_lines(const json_t *list, const char *indent, FILE *out)
{
	json_t *issue;
	size_t i;

	json_array_foreach(list, i, issue) {
		fputs(indent, out);
		junit_escape(json_string_value(json_object_get(issue, "code")), out);
		fputs(": ", out);
		junit_escape(json_string_value(json_object_get(issue, "text")), out);
		fputc('\n', out);
	}
}

static void junit_process(const json_t *process, FILE *out)
{
	const json_t *findings = json_object_get(process, "findings"), *notices = json_object_get(process, "notices");
	const json_int_t others = json_integer_value(json_object_get(process, "stands_for"));
	json_t *finding;
	size_t i;

	fputs("  <testcase classname=\"uverbs\" name=\"", out);
	if (others)
		fprintf(out, "%" JSON_INTEGER_FORMAT " more opens", others);
	else
		junit_escape(json_string_value(json_object_get(process, "program")), out);
	if (!others)
		fprintf(out, " (%" JSON_INTEGER_FORMAT ")", json_integer_value(json_object_get(process, "pid")));
	fputs("\">\n", out);
	json_array_foreach(findings, i, finding) {
		fputs("    <failure", out);
		junit_attribute("type", finding, "code", out);
		junit_attribute("message", finding, "text", out);
		fputs("/>\n", out);
	}
	if (json_array_size(notices)) {
		fputs("    <system-out>\n", out);
		junit_lines(notices, "", out);
		fputs("    </system-out>\n", out);
	}
	fputs("  </testcase>\n", out);
}

static size_t junit_count(const json_t *processes)
{
	size_t i, failed = 0;
	json_t *process;

	json_array_foreach(processes, i, process)
		failed += json_array_size(json_object_get(process, "findings")) != 0;
	return failed;
}

void uvd_report_print_junit(const json_t *document, FILE *out)
{
	const json_t *processes = json_object_get(document, "processes");
	json_t *process;
	size_t i;

	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"uverbsctl run\" tests=\"%zu\" failures=\"%zu\">\n",
		json_array_size(processes), junit_count(processes));
	json_array_foreach(processes, i, process)
		junit_process(process, out);
	fputs("</testsuite>\n", out);
}
