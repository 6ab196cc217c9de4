/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "format.h"

const char *const uvd_prog_front_names[UVD_PROG_FRONTS] = {
	"write", "invoke", "method", "event", "recv", "close", "cm"
};

static bool word_take(const char **text, char *to, size_t size)
{
	size_t len;

	*text += strspn(*text, " \t");
	len = strcspn(*text, " \t\n");
	if (!len || len >= size)
		return false;
	memcpy(to, *text, len);
	to[len] = 0;
	*text += len;
	return true;
}

static const char *call_parse(struct uvd_prog_call *call, const char *line)
{
	char word[UVD_PROG_MAX_ITEM];
	unsigned int f;
	size_t len;

	memset(call, 0, sizeof(*call));
	call->beside = *line == '&';
	line += call->beside;
	if (!word_take(&line, word, sizeof(word)))
		return "no call";
	len = strlen(word);
	if (word[len - 1] == ':') {
		word[len - 1] = 0;
		if (len > UVD_PROG_MAX_LABEL)
			return "label too long";
		strcpy(call->label, word);
		if (!word_take(&line, word, sizeof(word)))
			return "no call behind the label";
	}
	for (f = 0; f < UVD_PROG_FRONTS && strcmp(uvd_prog_front_names[f], word); f++)
		;
	if (f == UVD_PROG_FRONTS)
		return "no such kind of call";
	call->front = f;
	if (!word_take(&line, call->target, sizeof(call->target)))
		return "nothing to call";
	while (call->num_items < UVD_PROG_MAX_ITEMS &&
	       word_take(&line, call->items[call->num_items], UVD_PROG_MAX_ITEM))
		call->num_items++;
	line += strspn(line, " \t\n");
	return *line ? "too many items, or one too long" : NULL;
}

static const char *expect_parse(struct uvd_prog *p, const char *line)
{
	struct uvd_prog_call *call;
	size_t len;

	if (!p->num_calls)
		return "a result without a call";
	call = &p->calls[p->num_calls - 1];
	line += 1 + strspn(line + 1, " \t");
	len = strcspn(line, "\n");
	if (!len || len >= sizeof(call->expect))
		return "no result, or one too long";
	memcpy(call->expect, line, len);
	call->expect[len] = 0;
	return NULL;
}

static bool line_is_comment(const char *line)
{
	return line[strspn(line, " \t\n")] == 0 || line[0] == '#';
}

static const char *checks_parse(struct uvd_prog *p, const char *check)
{
	if (!strcmp(check, "model"))
		p->check_model = true;
	else if (!strcmp(check, "leaks"))
		p->check_leaks = true;
	else if (!strcmp(check, "log"))
		p->check_log = true;
	else
		return "no such check";
	return NULL;
}

static const char *line_parse(struct uvd_prog *p, const char *line)
{
	const char *why;
	char check[16];

	/* The program is printed on terminals. */
	for (const char *c = line; *c; c++)
		if (!isprint((unsigned char)*c) && !isspace((unsigned char)*c))
			return "a byte that cannot be printed";
	if (*line == '=')
		return expect_parse(p, line);
	if (sscanf(line, "device %15s", p->device) == 1)
		return strcmp(p->device, "kernel") && strcmp(p->device, "uverbsd") ? "no such kind of device" : NULL;
	if (sscanf(line, "check %15s", check) == 1)
		return checks_parse(p, check);
	if (p->num_calls == UVD_PROG_MAX_CALLS)
		return "too many calls";
	why = call_parse(&p->calls[p->num_calls], line);
	p->num_calls += !why;
	return why;
}

unsigned int uvd_prog_parse(struct uvd_prog *p, FILE *in, const char **why)
{
	unsigned int number = 0;
	char line[8192];

	p->num_calls = 0;
	p->device[0] = 0;
	p->check_model = p->check_leaks = p->check_log = false;
	while (fgets(line, sizeof(line), in)) {
		number++;
		if (line_is_comment(line))
			continue;
		*why = line_parse(p, line);
		if (*why)
			return number;
	}
	return 0;
}

void uvd_prog_call_print(const struct uvd_prog_call *call, FILE *out)
{
	if (call->beside)
		fputs("& ", out);
	if (call->label[0])
		fprintf(out, "%s: ", call->label);
	fprintf(out, "%s %s", uvd_prog_front_names[call->front], call->target);
	for (unsigned int i = 0; i < call->num_items; i++)
		fprintf(out, " %s", call->items[i]);
	fputc('\n', out);
	if (call->expect[0])
		fprintf(out, "= %s\n", call->expect);
}

void uvd_prog_print(const struct uvd_prog *p, FILE *out)
{
	if (p->device[0])
		fprintf(out, "device %s\n", p->device);
	if (p->check_model)
		fputs("check model\n", out);
	if (p->check_leaks)
		fputs("check leaks\n", out);
	if (p->check_log)
		fputs("check log\n", out);
	for (unsigned int i = 0; i < p->num_calls; i++)
		uvd_prog_call_print(&p->calls[i], out);
}

void uvd_prog_print_like(const struct uvd_prog *p, FILE *in, FILE *out)
{
	unsigned int calls = 0;
	bool begun = false;
	char line[8192], word[16];

	while (fgets(line, sizeof(line), in)) {
		if (line_is_comment(line)) {
			fputs(line, out);
			continue;
		}
		if (!begun && p->device[0])
			fprintf(out, "device %s\n", p->device);
		begun = true;
		if (*line == '=' || sscanf(line, "device %15s", word) == 1)
			continue;
		fprintf(out, "%s%s", line, strchr(line, '\n') ? "" : "\n");
		if (sscanf(line, "check %15s", word) == 1)
			continue;
		if (calls < p->num_calls && p->calls[calls].expect[0])
			fprintf(out, "= %s\n", p->calls[calls].expect);
		calls++;
	}
}

bool uvd_prog_races(const struct uvd_prog *p)
{
	for (unsigned int i = 0; i < p->num_calls; i++)
		if (p->calls[i].beside)
			return true;
	return false;
}

void uvd_prog_drop_item(struct uvd_prog_call *call, unsigned int i)
{
	call->num_items--;
	memmove(call->items[i], call->items[i + 1], (call->num_items - i) * sizeof(call->items[0]));
}

void uvd_prog_drop_call(struct uvd_prog *p, unsigned int i)
{
	p->num_calls--;
	memmove(&p->calls[i], &p->calls[i + 1], (p->num_calls - i) * sizeof(p->calls[0]));
}

void uvd_prog_add_item(struct uvd_prog_call *call, const char *format, ...)
{
	va_list ap;

	if (call->num_items == UVD_PROG_MAX_ITEMS)
		return;
	va_start(ap, format);
	vsnprintf(call->items[call->num_items++], UVD_PROG_MAX_ITEM, format, ap);
	va_end(ap);
}

void uvd_prog_bytes_of(uint8_t *to, size_t size, const char *text)
{
	unsigned int byte;

	for (; size && isxdigit((unsigned char)text[0]) && isxdigit((unsigned char)text[1]); size--, text += 2) {
		sscanf(text, "%2x", &byte);
		*to++ = byte;
	}
}

const char *uvd_prog_item(const struct uvd_prog_call *call, const char *name)
{
	size_t len = strlen(name);

	for (unsigned int i = 0; i < call->num_items; i++)
		if (!strncmp(call->items[i], name, len) && (call->items[i][len] == '=' || !call->items[i][len]))
			return call->items[i] + len + (call->items[i][len] == '=');
	return NULL;
}
