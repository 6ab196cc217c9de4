/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "program.h"

const char *const front_names[FRONTS] = { "write", "invoke", "method", "event", "recv", "close" };

static bool take(const char **text, char *to, size_t size)
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

static const char *parse_call(struct call *call, const char *line)
{
	char word[MAX_ITEM];
	unsigned int f;
	size_t len;

	memset(call, 0, sizeof(*call));
	if (!take(&line, word, sizeof(word)))
		return "no call";
	len = strlen(word);
	if (word[len - 1] == ':') {
		word[len - 1] = 0;
		if (len > MAX_LABEL)
			return "label too long";
		strcpy(call->label, word);
		if (!take(&line, word, sizeof(word)))
			return "no call behind the label";
	}
	for (f = 0; f < FRONTS && strcmp(front_names[f], word); f++)
		;
	if (f == FRONTS)
		return "no such kind of call";
	call->front = f;
	if (!take(&line, call->target, sizeof(call->target)))
		return "nothing to call";
	while (call->num_items < MAX_ITEMS && take(&line, call->items[call->num_items], MAX_ITEM))
		call->num_items++;
	line += strspn(line, " \t\n");
	return *line ? "too many items, or one too long" : NULL;
}

unsigned int program_parse(struct program *p, FILE *in, const char **why)
{
	unsigned int number = 0;
	char line[8192];

	p->num_calls = 0;
	while (fgets(line, sizeof(line), in)) {
		number++;
		if (line[strspn(line, " \t\n")] == 0 || line[0] == '#')
			continue;
		*why = p->num_calls == MAX_CALLS ? "too many calls" : parse_call(&p->calls[p->num_calls], line);
		if (*why)
			return number;
		p->num_calls++;
	}
	return 0;
}

void call_print(const struct call *call, FILE *out)
{
	if (call->label[0])
		fprintf(out, "%s: ", call->label);
	fprintf(out, "%s %s", front_names[call->front], call->target);
	for (unsigned int i = 0; i < call->num_items; i++)
		fprintf(out, " %s", call->items[i]);
	fputc('\n', out);
}

void program_print(const struct program *p, FILE *out)
{
	for (unsigned int i = 0; i < p->num_calls; i++)
		call_print(&p->calls[i], out);
}

void call_drop_item(struct call *call, unsigned int i)
{
	call->num_items--;
	memmove(call->items[i], call->items[i + 1], (call->num_items - i) * sizeof(call->items[0]));
}

void program_drop_call(struct program *p, unsigned int i)
{
	p->num_calls--;
	memmove(&p->calls[i], &p->calls[i + 1], (p->num_calls - i) * sizeof(p->calls[0]));
}

void call_add(struct call *call, const char *format, ...)
{
	va_list ap;

	if (call->num_items == MAX_ITEMS)
		return;
	va_start(ap, format);
	vsnprintf(call->items[call->num_items++], MAX_ITEM, format, ap);
	va_end(ap);
}

const char *call_item(const struct call *call, const char *name)
{
	size_t len = strlen(name);

	for (unsigned int i = 0; i < call->num_items; i++)
		if (!strncmp(call->items[i], name, len) && (call->items[i][len] == '=' || !call->items[i][len]))
			return call->items[i] + len + (call->items[i][len] == '=');
	return NULL;
}
