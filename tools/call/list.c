/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* uverbsctl call --list: prints the names that can come next on the command line, for the completion of shells. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "script.h"

static void list_device(void *arg, const char *name)
{
	(void)arg;
	puts(name);
}

static void list_objects(const struct uvd_script *s)
{
	char name[UVD_SHORT_NAME];

	for (size_t i = 0; i < s->view.num; i++) {
		if (s->view.entries[i].row.kind != UVERBSD_TREE_OBJECT)
			continue;
		uvd_short_object(s->view.entries[i].row.name, name);
		puts(name);
	}
}

static void list_methods(const struct uvd_script *s, const char *word)
{
	const struct uverbsd_tree_row *object = uvd_find_object(s, word);
	char name[UVD_SHORT_NAME];

	for (size_t i = 0; i < s->view.num && object; i++) {
		const struct uverbsd_tree_row *row = &s->view.entries[i].row;

		if (!uvd_is_callable(s, row, object->id))
			continue;
		uvd_unique_method(s, row, name);
		puts(name);
	}
}

static void list_fields(const struct uverbsd_tree_row *row)
{
	const struct uvd_struct *of = uvd_view_command(row)->request;

	for (const struct uvd_field *f = of->fields; f->name; f++)
		printf("--%s\n", f->name);
	if (of->tail)
		printf("--%s\n", of->tail);
	if (of->tail_of && uvd_struct_find(of->tail_of, "num_sge"))
		puts("--sge");
	puts("--in");
	if (row->flags & UVERBSD_TREE_COMMAND_UDATA)
		puts("--uhw_in\n--uhw_out");
}

/* The attributes of a method follow it. Handles that it creates need no value. */
static const struct uverbsd_tree_row *next_attr(const struct uvd_script *s, const struct uvd_tree_entry **e)
{
	const struct uvd_tree_entry *end = s->view.entries + s->view.num;

	while (++*e < end && (*e)->row.kind >= UVERBSD_TREE_ATTR && (*e)->row.kind != UVERBSD_TREE_COMMAND)
		if ((*e)->row.kind == UVERBSD_TREE_ATTR)
			return &(*e)->row;
	return NULL;
}

static void list_attrs(const struct uvd_script *s, const struct uvd_tree_entry *method)
{
	const struct uvd_tree_entry *e = method;
	const struct uverbsd_tree_row *row;
	char name[UVD_SHORT_NAME];

	while ((row = next_attr(s, &e))) {
		if (row->access == UVERBSD_TREE_NEW)
			continue;
		uvd_short_attr(&method->row, row, name);
		printf("--%s\n", name);
	}
}

static const struct uvd_words *words_of_arg(const struct uvd_script *s, const struct uvd_tree_entry *call,
					    const char *name)
{
	const struct uvd_tree_entry *e = call;
	const struct uverbsd_tree_row *row;
	const struct uvd_field *field;

	if (call->row.kind == UVERBSD_TREE_COMMAND) {
		field = uvd_struct_find(uvd_view_command(&call->row)->request, name);
		return field ? field->words : NULL;
	}
	while ((row = next_attr(s, &e)))
		if (uvd_attr_is_called(&call->row, row, name))
			return uvd_view_value(row)->words;
	return NULL;
}

static void list_args(const struct uvd_script *s, char **words, const char *attr)
{
	const struct uvd_tree_entry *call = uvd_find_call(s, words);
	const struct uvd_words *values;

	if (!call)
		return;
	if (attr) {
		values = words_of_arg(s, call, attr + 2 * !strncmp(attr, "--", 2));
		for (const struct uvd_word *w = values ? values->words : NULL; w && w->name; w++)
			puts(w->name);
	} else if (call->row.kind == UVERBSD_TREE_COMMAND) {
		list_fields(&call->row);
	} else {
		list_attrs(s, call);
	}
}

void uvd_call_list(struct uvd_script *s, const char *control, int num, char **words)
{
	char node[PATH_MAX] = "";

	if (!freopen("/dev/null", "w", stderr))
		return;
	if (!num)
		uvd_nodes_each(control, list_device, NULL);
	if (num && strchr(words[0], '/'))
		snprintf(node, sizeof(node), "%s", words[0]);
	if (num && !*node)
		uvd_node_find(s->view.who, control, words[0], node);
	if (*node) {
		words++;
		num--;
	} else if (uvd_node_find(s->view.who, control, NULL, node)) {
		return;
	}
	if (!uvd_script_open(s, node))
		return;
	if (!num)
		list_objects(s);
	else if (num == 1)
		list_methods(s, words[0]);
	else
		list_args(s, words, num > 2 ? words[2] : NULL);
}
