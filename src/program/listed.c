/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "listed.h"

static bool value_of(const struct uvd_prog_asked *asked, const char *name, uint64_t *value)
{
	if (asked->value(asked->of, name, value))
		return true;
	*value = asked->output_value;
	return asked->output && !strcmp(name, asked->output);
}

/* FIELD=N,N... FIELD!=N FIELD&N FIELD<N FIELD>N. len: of the field's name. */
static bool value_holds(const struct uvd_prog_asked *asked, const char *name, const char *text, size_t len)
{
	uint64_t value, limit;

	if (!text[len] || !value_of(asked, name, &value))
		return false;
	limit = strtoull(text + len + 1 + (text[len] == '!'), NULL, 0);
	switch (text[len]) {
	case '!':
		return value != limit;
	case '=':
		return uvd_prog_list_number(text + len + 1, value);
	case '&':
		return value & limit;
	case '<':
		return value < limit;
	default:
		return value > limit;
	}
}

static bool condition_holds(const struct uvd_prog_asked *asked, const char *text)
{
	const size_t len = strcspn(text, "!=&<>");
	char name[64];

	if (*text == '!')
		return asked->has_knob && asked->has_knob(asked->of, text);
	snprintf(name, sizeof(name), "%.*s", (int)len, text);
	/* uvd_prog_list_keep_kernel() has removed the rows of other kernels. */
	if (!strcmp(name, "kernel"))
		return true;
	if (!strcmp(name, "with"))
		return asked->has_attr(asked->of, text + len + 1);
	if (!strcmp(name, "qp_now"))
		return uvd_prog_list_number(text + len + 1, asked->qp_now(asked->of));
	if (!strcmp(name, "after"))
		return asked->qp_after(asked->of, text + len + 1);
	if (!strcmp(name, "failed"))
		return asked->failed;
	if (!strcmp(name, "front"))
		return !strcmp(asked->front, text + len + 1);
	return value_holds(asked, name, text, len);
}

static bool conditions_hold(const struct uvd_prog_asked *asked, const char *when)
{
	char text[128];
	int n;

	for (; sscanf(when, "%127s%n", text, &n) == 1; when += n)
		if (!condition_holds(asked, text))
			return false;
	return true;
}

struct uvd_prog_listed *uvd_prog_listed(struct uvd_prog_list *list, const struct uvd_prog_asked *asked,
					const char *item, const char *kernel, const char *ours)
{
	for (unsigned int i = 0; i < list->num; i++) {
		struct uvd_prog_listed *row = &list->rows[i];

		if (!uvd_prog_list_match(row->call, asked->call) || !uvd_prog_list_match(row->item, item) ||
		    !uvd_prog_list_match(row->kernel, kernel) || !uvd_prog_list_match(row->ours, ours) ||
		    !conditions_hold(asked, row->when))
			continue;
		row->hits++;
		return row;
	}
	return NULL;
}

const char *uvd_prog_number_text(uint64_t number, char text[24])
{
	snprintf(text, 24, "%#llx", (unsigned long long)number);
	return text;
}
