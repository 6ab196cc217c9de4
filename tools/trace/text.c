/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Prints a call: one line of text as strace does, or one line of JSON. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "reader.h"

/* FEW: a struct with more fields than that is printed without those that are 0. HEX: digits of bytes that are printed. */
enum { FEW = 4, HEX = 64, BIG = 0x10000, DEPTH = 8 };

/* ---- values by name, nested -------------------------------------------------------------------------------------- */

/* Finds, or adds, the object of this name in another. NULL: the name is a value already. */
static json_t *nest_within(json_t *in, const char *name, size_t len)
{
	char key[2 * UVD_SHORT_NAME];
	json_t *o;

	snprintf(key, sizeof(key), "%.*s", (int)len, name);
	o = json_object_get(in, key);
	if (!o) {
		o = json_object();
		json_object_set_new(in, key, o);
	}
	return json_is_object(o) ? o : NULL;
}

/* Makes {"a": {"b": 1}} of {"a.b": 1}. Takes the words that d has for values in their place if d is not NULL. */
static json_t *nest(const json_t *flat, const struct uvd_trace_decoded *d)
{
	json_t *nested = json_object(), *value, *word, *in;
	const char *name, *part;
	size_t len;

	json_object_foreach((json_t *)flat, name, value) {
		word = d ? json_object_get(d->handles, name) : NULL;
		if (d && !word)
			word = json_object_get(d->words, name);
		in = nested;
		for (part = name; in && part[len = strcspn(part, ".")]; part += len + 1)
			in = nest_within(in, part, len);
		json_object_set(in ? in : nested, in ? part : name, word ? word : value);
	}
	return nested;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static bool is_nothing(const json_t *value)
{
	const char *text = json_string_value(value), *name;
	json_t *field;

	if (json_is_object(value))
		json_object_foreach((json_t *)value, name, field)
			if (!is_nothing(field))
				return false;
	if (json_is_integer(value))
		return !json_integer_value(value);
	return json_is_object(value) || (text && *text && text[strspn(text, "0")] == '\0');
}

static bool is_list(const json_t *object)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)object, name, value)
		if (!isdigit((unsigned char)*name))
			return false;
	return json_object_size(object);
}

static void print_values(FILE *to, const json_t *object, int depth);

static void print_hex(FILE *to, const char *text)
{
	const size_t len = strlen(text);

	if (len > 2 * 8 && !text[strspn(text, "0123456789abcdef")])
		fprintf(to, "\"%.*s\"%s", HEX, text, len > HEX ? "..." : "");
	else
		fputs(text, to);
}

static void print_value(FILE *to, const json_t *value, int depth)
{
	const long long number = json_integer_value(value);

	if (json_is_object(value) && depth < DEPTH) {
		fputc(is_list(value) ? '[' : '{', to);
		print_values(to, value, depth);
		fputc(is_list(value) ? ']' : '}', to);
	} else if (json_is_string(value)) {
		print_hex(to, json_string_value(value));
	} else if (number >= BIG) {
		fprintf(to, "0x%llx", number);
	} else {
		fprintf(to, "%lld", number);
	}
}

static void print_values(FILE *to, const json_t *object, int depth)
{
	const bool list = is_list(object), few = list || json_object_size(object) <= FEW;
	const char *name, *comma = "";
	json_t *value;

	json_object_foreach((json_t *)object, name, value) {
		if (!few && is_nothing(value))
			continue;
		fprintf(to, "%s%s%s", comma, list ? "" : name, list ? "" : "=");
		print_value(to, value, depth + 1);
		comma = ", ";
	}
}

static void print_time(FILE *to, uint64_t ns)
{
	const time_t seconds = ns / 1000000000;
	char text[16] = "";
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%H:%M:%S", &tm);
	fprintf(to, "%s.%06u ", text, (unsigned int)(ns % 1000000000 / 1000));
}

/* A program's name may contain anything. */
static void print_clean_bytes(FILE *to, const char *text, size_t len)
{
	for (; len; text++, len--)
		fputc(isprint((unsigned char)*text) ? *text : '?', to);
}

static void print_clean(FILE *to, const char *text)
{
	print_clean_bytes(to, text, strlen(text));
}

static void print_who(FILE *to, const struct uvd_trace_open *open, uint32_t pid, uint32_t tid)
{
	if (open && *open->file.program)
		print_clean(to, open->file.program);
	fprintf(to, "[%u", pid ? pid : tid);
	if (pid && tid && pid != tid)
		fprintf(to, "/%u", tid);
	fputs("] ", to);
	if (open && *open->file.ibdev)
		print_clean(to, open->file.ibdev);
	if (open)
		fprintf(to, ":%" PRIu64 " ", open->file.file);
}

static void print_result(FILE *to, const struct uvd_trace_call *call, const json_t *out)
{
	if (call->result < 0) {
		const int err = call->result > -4096 ? -call->result : 0;

		fprintf(to, "-%s (%s)", uvd_errno_name(err), strerror(err));
		if (json_object_size(out))
			fputc(' ', to);
	} else if (!json_object_size(out)) {
		fputc('0', to);
	}
}

void uvd_trace_print(FILE *to, const struct uvd_trace_decoded *d)
{
	const struct uvd_trace_call *call = d->call;
	json_t *in = nest(d->in, d), *out = nest(d->out, d);

	print_time(to, call->begin);
	print_who(to, d->open, call->pid, call->tid);
	print_clean(to, d->object);
	fputc('.', to);
	print_clean(to, d->verb);
	fputc('(', to);
	print_values(to, in, 0);
	fputs(call->flags & UVD_TRACE_CALL_CUT ? ", ...)" : ")", to);
	if (!d->entry || json_object_size(out))
		fputs(" = ", to);
	if (!d->entry)
		print_result(to, call, out);
	if (json_object_size(out)) {
		fputc('{', to);
		print_values(to, out, 0);
		fputc('}', to);
	}
	if (uvd_trace_is_probe(d))
		fputs(" probe", to);
	if (!d->entry)
		fprintf(to, " <%" PRIu64 ".%06u>", call->duration / 1000000000,
			(unsigned int)(call->duration % 1000000000 / 1000));
	fputc('\n', to);
	json_decref(in);
	json_decref(out);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

void uvd_trace_print_line(FILE *to, json_t *o)
{
	json_dumpf(o, to, JSON_COMPACT | JSON_ENSURE_ASCII);
	fputc('\n', to);
	json_decref(o);
}

static json_t *open_json(const struct uvd_trace_open *open)
{
	json_t *o = json_object();

	if (!open)
		return o;
	json_object_set_new(o, "file", json_integer(open->file.file));
	/* A name need not be UTF-8: then json_string() returns NULL, and it is left out. */
	json_object_set_new(o, "device", json_string(open->file.ibdev));
	json_object_set_new(o, "program", json_string(open->file.program));
	json_object_set_new(o, "node", json_integer(open->file.number));
	return o;
}

/* Adds a value that only calls have: for an entry, drops the value instead. */
static void call_add(json_t *o, const struct uvd_trace_decoded *d, const char *name, json_t *value)
{
	if (d->entry)
		json_decref(value);
	else
		json_object_set_new(o, name, value);
}

json_t *uvd_trace_json(const struct uvd_trace_decoded *d)
{
	const struct uvd_trace_call *call = d->call;
	json_t *o = open_json(d->open);

	json_object_set_new(o, "kind", json_string(d->entry ? "entry" : "call"));
	json_object_set_new(o, "time_ns", json_integer(call->begin));
	call_add(o, d, "duration_ns", json_integer(call->duration));
	json_object_set_new(o, "pid", json_integer(call->pid));
	call_add(o, d, "tid", json_integer(call->tid));
	call_add(o, d, "front", d->entry ? NULL : json_string(d->front));
	json_object_set_new(o, "object", json_string(d->object));
	json_object_set_new(o, "verb", json_string(d->verb));
	if (d->row)
		json_object_set_new(o, "name", json_string(d->row->name));
	json_object_set_new(o, "in", nest(d->in, NULL));
	json_object_set_new(o, "out", nest(d->out, NULL));
	json_object_set(o, "handles", d->handles);
	call_add(o, d, "result", json_integer(call->result));
	if (call->result < 0)
		json_object_set_new(o, "errno", json_string(uvd_errno_name(call->result > -4096 ? -call->result : 0)));
	if (call->flags & UVD_TRACE_CALL_CUT)
		json_object_set_new(o, "cut", json_true());
	if (uvd_trace_is_probe(d))
		json_object_set_new(o, "probe", json_true());
	return o;
}

void uvd_trace_print_json(FILE *to, const struct uvd_trace_decoded *d)
{
	uvd_trace_print_line(to, uvd_trace_json(d));
}

/* ---- explanations ------------------------------------------------------------------------------------------------ */

json_t *uvd_trace_why_json(struct uvd_trace_reader *r, const struct uvd_trace_why *why)
{
	const char *texts = (const char *)(why + 1);
	json_t *o = json_loadb(texts + why->text, why->json, 0, NULL), *open;

	if (!json_is_object(o)) {
		json_decref(o);
		o = json_object();
		json_object_set_new(o, "text", json_stringn(texts, why->text));
	}
	/* Whatever that JSON says, these are the record's. */
	open = open_json(uvd_trace_find(r, why->file));
	json_object_update(o, open);
	json_decref(open);
	json_object_set_new(o, "kind", json_string("why"));
	json_object_set_new(o, "time_ns", json_integer(why->time));
	json_object_set_new(o, "pid", json_integer(why->pid));
	return o;
}

void uvd_trace_print_why(FILE *to, struct uvd_trace_reader *r, const struct uvd_trace_why *why, bool as_json)
{
	const char *text = (const char *)(why + 1);

	if (as_json) {
		uvd_trace_print_line(to, uvd_trace_why_json(r, why));
		return;
	}
	print_time(to, why->time);
	print_who(to, uvd_trace_find(r, why->file), why->pid, 0);
	fputs("why: ", to);
	print_clean_bytes(to, text, why->text);
	fputc('\n', to);
}

/* ---- what is not a call ------------------------------------------------------------------------------------------ */

static void print_lost(FILE *to, const struct uvd_trace_lost *lost, bool as_json)
{
	if (as_json)
		uvd_trace_print_line(to, json_pack("{s:s, s:I}", "kind", "lost", "records", (json_int_t)lost->num));
	else
		fprintf(to, "+++ %" PRIu64 " records lost +++\n", lost->num);
}

static void print_node(FILE *to, const struct uvd_trace_open *open, const char *what)
{
	if (open->file.number == UVD_NO_NUMBER)
		fprintf(to, "%s of /dev/infiniband/%s +++\n", what, open->file.ibdev);
	else
		fprintf(to, "%s of /dev/infiniband/uverbs%u +++\n", what, open->file.number);
}

static void print_file(FILE *to, const struct uvd_trace_open *open, const char *what, uint64_t time, bool as_json)
{
	json_t *o = as_json ? open_json(open) : NULL;

	if (as_json && o) {
		json_object_set_new(o, "kind", json_string(what));
		json_object_set_new(o, "pid", json_integer(open->file.pid));
		if (time)
			json_object_set_new(o, "time_ns", json_integer(time));
		uvd_trace_print_line(to, o);
		return;
	}
	if (time)
		print_time(to, time);
	else
		fputs("+++ ", to);
	print_who(to, open, open->file.pid, 0);
	if (time)
		fprintf(to, "%s() = 0\n", what);
	else
		print_node(to, open, what);
}

void uvd_trace_print_other(FILE *to, struct uvd_trace_reader *r, const struct uvd_trace_record *record, bool as_json)
{
	const struct uvd_trace_close *close = (const void *)record;
	const struct uvd_trace_file *file = (const void *)record;
	const struct uvd_trace_open *open;

	if (record->kind == UVD_TRACE_LOST) {
		print_lost(to, (const void *)record, as_json);
		return;
	}
	open = uvd_trace_find(r, record->kind == UVD_TRACE_CLOSE ? close->file : file->file);
	if (open)
		print_file(to, open, record->kind == UVD_TRACE_CLOSE ? "close" : "open file",
			   record->kind == UVD_TRACE_CLOSE ? close->time : 0, as_json);
}
