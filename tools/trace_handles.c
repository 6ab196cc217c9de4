/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The objects of an open file by handle or descriptor: their types by the parse tree, and details from their creation. */
#include <stdio.h>
#include <string.h>

#include "trace.h"

enum { ANY_OBJECT = 0xffff };

static json_t *handle_known(const struct uvd_trace_decoded *d, uint32_t handle)
{
	char key[16];

	snprintf(key, sizeof(key), "%u", handle);
	return d->open ? json_object_get(d->open->handles, key) : NULL;
}

const char *uvd_trace_type_of(const struct uvd_trace_decoded *d, uint32_t handle)
{
	return json_string_value(json_object_get(handle_known(d, handle), "type"));
}

void uvd_trace_handle(struct uvd_trace_decoded *d, const char *name, uint16_t object, uint32_t handle)
{
	json_t *known = handle_known(d, handle);
	const char *note = json_string_value(json_object_get(known, "note")), *full;
	char text[2 * UVD_SHORT_NAME + 32], word[UVD_SHORT_NAME];
	const json_int_t is = json_integer_value(json_object_get(known, "object"));

	if (known && object == ANY_OBJECT)
		object = is;
	/* A command need not use the field: without an SRQ, srq_handle is 0, and that is another object's. */
	if (known && object != is)
		return;
	full = d->script ? uvd_view_object(&d->script->view, object) : NULL;
	if (!full)
		return;
	uvd_short_object(full, word);
	snprintf(text, sizeof(text), "%s#%u%s%s%s", word, handle, note ? "(" : "", note ? note : "", note ? ")" : "");
	if (json_is_true(json_object_get(known, "gone")))
		snprintf(text, sizeof(text), "%s#%u(destroyed)", word, handle);
	json_object_set_new(d->handles, name, json_string(text));
}

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

static json_t *fd_known(const struct uvd_trace_decoded *d, int32_t fd)
{
	char key[16];

	snprintf(key, sizeof(key), "fd %d", fd);
	return d->open ? json_object_get(d->open->handles, key) : NULL;
}

void uvd_trace_fd(struct uvd_trace_decoded *d, const char *name, uint16_t object, int32_t fd)
{
	const json_t *known = fd_known(d, fd);
	char text[UVD_SHORT_NAME + 48], word[UVD_SHORT_NAME], number[16] = "";
	const char *full;

	if (fd < 0)
		return;
	if (known) {
		object = json_integer_value(json_object_get(known, "object"));
		snprintf(number, sizeof(number), "#%u",
			 (unsigned int)json_integer_value(json_object_get(known, "number")));
	}
	full = d->script ? uvd_view_object(&d->script->view, object) : NULL;
	if (!full)
		return;
	uvd_short_object(full, word);
	snprintf(text, sizeof(text), "%s%s(fd %d)", word, number, fd);
	json_object_set_new(d->handles, name, json_string(text));
}

/* The trace does not tell when a client closes a descriptor of events: a new object with its number replaces the old one. */
void uvd_trace_fd_created(struct uvd_trace_decoded *d, const char *name, uint16_t object, int32_t fd)
{
	char key[16], made[16];
	json_int_t number;

	if (!d->open || fd < 0 || d->call->result < 0)
		return;
	snprintf(made, sizeof(made), "made %u", object);
	number = json_integer_value(json_object_get(d->open->handles, made));
	json_object_set_new(d->open->handles, made, json_integer(number + 1));
	snprintf(key, sizeof(key), "fd %d", fd);
	json_object_set_new(d->open->handles, key, json_pack("{s:i,s:I}", "object", (int)object, "number", number));
	uvd_trace_fd(d, name, object, fd);
}

/* Returns the object of a descriptor by its field: "comp_channel", "async_fd"; "fd" of a command that creates one. */
static uint16_t object_of_fd(const struct uvd_trace_decoded *d, const char *field)
{
	const struct uvd_script *s = d->script;
	char name[UVD_SHORT_NAME];

	if (!strcmp(field, "async_fd"))
		field = "async_event";
	for (size_t i = 0; i < s->view.num; i++) {
		const struct uverbsd_tree_row *row = &s->view.entries[i].row;

		if (row->kind != UVERBSD_TREE_OBJECT || row->type != UVERBSD_TREE_CLASS_FD)
			continue;
		uvd_short_object(row->name, name);
		if (uvd_names_equal(field, name) || (!strcmp(field, "fd") && row->id == d->row->object))
			return row->id;
	}
	return ANY_OBJECT;
}

static void find_fd(struct uvd_trace_decoded *d, const char *name, int32_t fd, bool is_output)
{
	const uint16_t object = object_of_fd(d, name);

	if (object == ANY_OBJECT)
		return;
	if (is_output)
		uvd_trace_fd_created(d, name, object, fd);
	else
		uvd_trace_fd(d, name, object, fd);
}

/* ---- fields of commands ------------------------------------------------------------------------------------------ */

/* Does the name of an object, "QP", end the word "send_qp"? */
static bool is_end_of(const char *word, size_t len, const char *object)
{
	const size_t n = strlen(object);
	char end[UVD_SHORT_NAME];

	if (n > len || n >= sizeof(end) || (n < len && word[len - n - 1] != '_'))
		return false;
	snprintf(end, sizeof(end), "%.*s", (int)n, word + len - n);
	return uvd_names_equal(end, object);
}

/* Returns the object that a field's name says: "pd_handle", "wr.0.ud.ah". ANY_OBJECT: it says none. */
static uint16_t object_of_field(const struct uvd_script *s, const char *field)
{
	static const char handle[] = "_handle";
	const char *dot = strrchr(field, '.'), *word = dot ? dot + 1 : field;
	const size_t len = strlen(word), n = sizeof(handle) - 1;
	const bool ends = len > n && !strcmp(word + len - n, handle);
	char name[UVD_SHORT_NAME];

	for (size_t i = 0; i < s->view.num && (ends || dot); i++) {
		const struct uverbsd_tree_row *row = &s->view.entries[i].row;

		if (row->kind != UVERBSD_TREE_OBJECT || row->type != UVERBSD_TREE_CLASS_IDR)
			continue;
		uvd_short_object(row->name, name);
		if (ends ? is_end_of(word, len - n, name) : uvd_names_equal(word, name))
			return row->id;
	}
	return ANY_OBJECT;
}

void uvd_trace_find_handles(struct uvd_trace_decoded *d, const json_t *values)
{
	const char *name;
	json_t *value;
	uint16_t object;

	json_object_foreach((json_t *)values, name, value)
	{
		object = json_is_integer(value) ? object_of_field(d->script, name) : ANY_OBJECT;
		if (object != ANY_OBJECT)
			uvd_trace_handle(d, name, object, json_integer_value(value));
		else if (json_is_integer(value) && !strchr(name, '.'))
			find_fd(d, name, json_integer_value(value), values == d->out);
	}
}

/* ---- what is remembered ------------------------------------------------------------------------------------------ */

static bool ends_with(const char *name, const char *end)
{
	const size_t len = strlen(name), n = strlen(end);

	return len >= n && !strcmp(name + len - n, end);
}

bool uvd_trace_is_qp_number(const char *name)
{
	static const char *const ends[] = { "qpn", "qp_num", "srqn", "srq_num", "src_qp" };

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (ends_with(name, ends[i]))
			return true;
	return false;
}

/* Notes what people look for: the number that peers and completions know the object by, and its type. */
static void remember_details(const struct uvd_trace_decoded *d, json_t *known)
{
	const char *name;
	json_t *value;
	char note[64];

	json_object_foreach(d->out, name, value)
	{
		const bool srqn = ends_with(name, "srqn") || ends_with(name, "srq_num");

		if (!uvd_trace_is_qp_number(name) || !json_is_integer(value))
			continue;
		snprintf(note, sizeof(note), "%s %lld", srqn ? "srqn" : "qpn", (long long)json_integer_value(value));
		json_object_set_new(known, "note", json_string(note));
	}
	json_object_foreach(d->in, name, value) if (ends_with(name, "type") && json_is_string(value))
		json_object_set(known, "type", value);
}

void uvd_trace_remember(struct uvd_trace_decoded *d)
{
	json_t *known = handle_known(d, d->destroyed);
	char key[16];

	if (!d->open || d->call->result < 0)
		return;
	if (d->destroys && known)
		json_object_set_new(known, "gone", json_true());
	if (!d->creates)
		return;
	snprintf(key, sizeof(key), "%u", d->created);
	known = json_pack("{s:i}", "object", (int)d->row->object);
	remember_details(d, known);
	json_object_set_new(d->open->handles, key, known);
}
