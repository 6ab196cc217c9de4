/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Calls a method by ioctl. Handles that it creates, outputs, and numbers that must be there have a default, so a call
 * needs only the attributes that matter to it.
 */
#include <errno.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "script.h"

/*
 * MAX_ATTRS: attributes of a method; the kernel's have about 20. ANY_OUT: the size of an output without a size
 * of its own, which is the driver's or another one.
 */
enum { MAX_ATTRS = 64, ANY_OUT = 4096 };

struct method_attr {
	const struct uverbsd_tree_row *row;
	char name[UVD_SHORT_NAME];
	const char *text; /* the value given, or NULL */
	struct uvd_bytes bytes; /* memory behind the attribute's pointer, or NULL */
	int index; /* in the message; -1: it is not sent */
};

struct method_call {
	struct uvd_script *script;
	const struct uverbsd_tree_row *method;
	unsigned int num;
	struct method_attr attrs[MAX_ATTRS];
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[MAX_ATTRS];
	} msg;
};

static void method_call_init(struct method_call *c, struct uvd_script *s, const struct uvd_tree_entry *method)
{
	const struct uvd_tree_entry *end = s->view.entries + s->view.num;

	memset(c, 0, sizeof(*c));
	c->script = s;
	c->method = &method->row;
	for (const struct uvd_tree_entry *e = method + 1; e < end && c->num < MAX_ATTRS; e++) {
		if (e->row.kind == UVERBSD_TREE_ELEM)
			continue;
		if (e->row.kind != UVERBSD_TREE_ATTR)
			break;
		c->attrs[c->num].row = &e->row;
		c->attrs[c->num].index = -1;
		uvd_short_attr(c->method, &e->row, c->attrs[c->num++].name);
	}
}

static void method_call_free(struct method_call *c)
{
	for (unsigned int i = 0; i < c->num; i++)
		free(c->attrs[i].bytes.data);
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

static bool is_new(const struct uverbsd_tree_row *row)
{
	return (row->type == UVERBSD_TREE_IDR || row->type == UVERBSD_TREE_FD) && row->access == UVERBSD_TREE_NEW;
}

static bool method_creates(const struct method_call *c)
{
	for (unsigned int i = 0; i < c->num; i++)
		if (is_new(c->attrs[i].row))
			return true;
	return false;
}

static struct method_attr *find_arg(struct method_call *c, const char *word)
{
	struct uvd_nearest nearest = { .wrong = word };

	for (unsigned int i = 0; i < c->num; i++)
		if (uvd_attr_is_called(c->method, c->attrs[i].row, word))
			return &c->attrs[i];
	for (unsigned int i = 0; i < c->num; i++)
		if (!is_new(c->attrs[i].row))
			uvd_nearest_add(&nearest, c->attrs[i].name);
	uvd_nearest_complain(&nearest, c->script, c->method->name, "attribute");
	return NULL;
}

static bool take_args(struct method_call *c, unsigned int num, char **args)
{
	for (unsigned int i = 0; i < num; i += 2) {
		struct method_attr *attr = find_arg(c, args[i]);

		if (!attr)
			return false;
		if (attr->text) {
			uvd_script_complain(c->script, "%s is given twice", attr->name);
			return false;
		}
		attr->text = args[i + 1];
	}
	return true;
}

/* ---- attributes of each type ------------------------------------------------------------------------------------- */

static struct ib_uverbs_attr *send_attr(struct method_call *c, struct method_attr *attr, size_t len, uint64_t data)
{
	struct ib_uverbs_attr *ua = &c->msg.attrs[c->msg.hdr.num_attrs];

	/* A device that does not know an optional attribute ignores it, unless the caller gave it. */
	*ua = (struct ib_uverbs_attr){ .attr_id = attr->row->id, .len = len, .data = data };
	if (attr->text || attr->row->flags & UVERBSD_TREE_MANDATORY)
		ua->flags = UVERBS_ATTR_F_MANDATORY;
	attr->index = c->msg.hdr.num_attrs++;
	return ua;
}

/* Up to 8 bytes are in the attribute itself. */
static void send_bytes(struct method_call *c, struct method_attr *attr)
{
	uint64_t data = (uintptr_t)attr->bytes.data;

	if (attr->bytes.len <= sizeof(data)) {
		data = 0;
		memcpy(&data, attr->bytes.data, attr->bytes.len);
	}
	send_attr(c, attr, attr->bytes.len, data);
}

static bool is_number(const struct uverbsd_tree_row *row)
{
	if (row->type == UVERBSD_TREE_CONST || row->type == UVERBSD_TREE_FLAGS)
		return true;
	return row->type == UVERBSD_TREE_PTR_IN && uvd_is_number_size(row->len);
}

static bool send_number(struct method_call *c, struct method_attr *attr)
{
	const size_t size = attr->row->type == UVERBSD_TREE_PTR_IN ? attr->row->len : sizeof(uint64_t);
	uint64_t data = 0;
	const struct uvd_words *words = uvd_view_value(attr->row)->words;
	const bool is_word = attr->text && words && uvd_words_parse(words, attr->text, &data);

	if (attr->text && !is_word && !uvd_value_sized(c->script, attr->name, attr->text, &data, size))
		return false;
	send_attr(c, attr, size, data);
	return true;
}

/* The value is FIELD=VALUE,FIELD=VALUE. */
static bool send_struct(struct method_call *c, struct method_attr *attr, const struct uvd_struct *of)
{
	attr->bytes = (struct uvd_bytes){ .data = calloc(1, of->size + 1ul), .len = of->size };
	if (!attr->bytes.data) {
		uvd_script_complain(c->script, "%s: ENOMEM", attr->name);
		return false;
	}
	if (!uvd_struct_parse(c->script, attr->name, of, attr->text, attr->bytes.data))
		return false;
	send_bytes(c, attr);
	return true;
}

static bool send_input(struct method_call *c, struct method_attr *attr)
{
	const struct uvd_struct *of = uvd_view_value(attr->row)->of;

	if (of && attr->text && strchr(attr->text, '='))
		return send_struct(c, attr, of);
	if (is_number(attr->row) && (!attr->text || !strchr(attr->text, ':')))
		return send_number(c, attr);
	if (!uvd_value_bytes(c->script, attr->name, attr->text, &attr->bytes))
		return false;
	send_bytes(c, attr);
	return true;
}

/* The value is the size of the buffer. */
static bool send_output(struct method_call *c, struct method_attr *attr)
{
	const struct uverbsd_tree_row *row = attr->row;
	size_t len = row->len;

	if (len == UVERBSD_TREE_LEN_ANY)
		len = row->flags & UVERBSD_TREE_UDATA ? UVD_DRIVER_OUT : ANY_OUT;
	if (attr->text && !uvd_value_size(c->script, attr->name, attr->text, &len))
		return false;
	attr->bytes = (struct uvd_bytes){ .data = calloc(1, len + 1), .len = len };
	if (!attr->bytes.data) {
		uvd_script_complain(c->script, "%s: ENOMEM", attr->name);
		return false;
	}
	send_attr(c, attr, len, (uintptr_t)attr->bytes.data);
	return true;
}

static bool send_object(struct method_call *c, struct method_attr *attr)
{
	uint64_t value = 0;

	if (attr->text && !uvd_value_number(c->script, attr->name, attr->text, &value))
		return false;
	send_attr(c, attr, 0, value);
	return true;
}

static bool send_array(struct method_call *c, struct method_attr *attr)
{
	char list[4096];

	snprintf(list, sizeof(list), "u32:%s", attr->text);
	if (!uvd_value_bytes(c->script, attr->name, list, &attr->bytes))
		return false;
	send_bytes(c, attr);
	return true;
}

/* Returns the elem_id, which has 8 bits, of a name or a number. */
static int find_elem(struct method_call *c, struct method_attr *attr, const char *name, size_t len)
{
	struct uvd_nearest nearest = {};
	char word[UVD_SHORT_NAME];

	snprintf(word, sizeof(word), "%.*s", (int)len, name);
	nearest.wrong = word;
	if (*word && word[strspn(word, "0123456789")] == '\0')
		return atoi(word) & 0xff;
	for (size_t i = 0; i < c->script->view.num; i++) {
		const struct uverbsd_tree_row *row = &c->script->view.entries[i].row;

		if (row->kind != UVERBSD_TREE_ELEM || row->object != c->method->object ||
		    row->method != c->method->id || row->attr != attr->row->id)
			continue;
		if (uvd_names_equal(row->name, word))
			return row->id;
		uvd_nearest_add(&nearest, row->name);
	}
	uvd_nearest_complain(&nearest, c->script, attr->name, "element");
	return -1;
}

/* The value is ELEMENT=BYTES. */
static bool send_enum(struct method_call *c, struct method_attr *attr)
{
	const char *equals = strchr(attr->text, '=');
	const size_t len = equals ? (size_t)(equals - attr->text) : strlen(attr->text);
	int elem = find_elem(c, attr, attr->text, len);

	if (elem < 0 || !uvd_value_bytes(c->script, attr->name, equals ? equals + 1 : "", &attr->bytes))
		return false;
	send_bytes(c, attr);
	c->msg.attrs[attr->index].attr_data.enum_data.elem_id = elem;
	return true;
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

/*
 * Is the attribute sent although no value is given? The driver has something to say where an object is created; some
 * of the kernel's drivers refuse room for it elsewhere.
 */
static bool has_default(const struct method_call *c, const struct uverbsd_tree_row *row)
{
	if (row->type == UVERBSD_TREE_PTR_OUT)
		return !(row->flags & UVERBSD_TREE_UDATA) || method_creates(c);
	return is_new(row) || (row->flags & UVERBSD_TREE_MANDATORY && is_number(row));
}

static bool send_any(struct method_call *c, struct method_attr *attr)
{
	if (attr->text && uvd_names_equal(attr->text, "none"))
		return true;
	if (!attr->text && !has_default(c, attr->row)) {
		if (!(attr->row->flags & UVERBSD_TREE_MANDATORY))
			return true;
		uvd_script_complain(c->script, "%s is missing: give --%s VALUE, or --%s none to call without it",
				    attr->name, attr->name, attr->name);
		return false;
	}
	switch (attr->row->type) {
	case UVERBSD_TREE_PTR_OUT:
		return send_output(c, attr);
	case UVERBSD_TREE_IDR:
	case UVERBSD_TREE_FD:
	case UVERBSD_TREE_RAW_FD:
		return send_object(c, attr);
	case UVERBSD_TREE_IDRS_ARRAY:
		return send_array(c, attr);
	case UVERBSD_TREE_ENUM_IN:
		return send_enum(c, attr);
	default:
		return send_input(c, attr);
	}
}

static bool send_all(struct method_call *c)
{
	for (unsigned int i = 0; i < c->num; i++)
		if (!send_any(c, &c->attrs[i]))
			return false;
	return true;
}

static size_t output_len(const struct method_attr *attr)
{
	if (attr->row->len != UVERBSD_TREE_LEN_ANY || attr->text)
		return attr->bytes.len;
	return uvd_used_len(attr->bytes.data, attr->bytes.len, attr->row->min_len);
}

static void take_output(const struct method_attr *attr, json_t *results)
{
	const struct uvd_attr_fields *fields = uvd_view_value(attr->row);

	if (fields->of)
		uvd_struct_results(results, attr->name, fields->of, attr->bytes.data, attr->bytes.len);
	else if (output_len(attr))
		uvd_words_result(results, attr->name, fields->words, attr->bytes.data, output_len(attr));
}

static void take_result(struct method_call *c, const struct method_attr *attr, struct uvd_outcome *out)
{
	const struct ib_uverbs_attr *ua = &c->msg.attrs[attr->index];

	if (is_new(attr->row)) {
		out->handle = attr->row->type == UVERBSD_TREE_FD ? (int32_t)ua->data : (int64_t)ua->data;
		json_object_set_new(out->results, attr->name, json_integer(out->handle));
	} else if (attr->row->type == UVERBSD_TREE_PTR_OUT && ua->flags & UVERBS_ATTR_F_VALID_OUTPUT) {
		take_output(attr, out->results);
	}
}

static void method_call_send(struct method_call *c, struct uvd_outcome *out)
{
	c->msg.hdr.length = sizeof(c->msg.hdr) + c->msg.hdr.num_attrs * sizeof(c->msg.attrs[0]);
	c->msg.hdr.object_id = c->method->object;
	c->msg.hdr.method_id = c->method->id;
	c->msg.hdr.driver_id = c->script->view.driver_id;
	out->err = ioctl(c->script->fd, RDMA_VERBS_IOCTL, &c->msg) ? -errno : 0;
	for (unsigned int i = 0; i < c->num && !out->err; i++)
		if (c->attrs[i].index >= 0)
			take_result(c, &c->attrs[i], out);
}

bool uvd_call_method(struct uvd_script *s, const struct uvd_tree_entry *method, unsigned int num, char **args,
		     bool must_create, struct uvd_outcome *out)
{
	struct method_call c;
	bool ok;

	method_call_init(&c, s, method);
	out->creates = method_creates(&c);
	ok = take_args(&c, num, args);
	if (ok && must_create && !out->creates) {
		uvd_script_complain(s, "%s creates no object whose handle it could save", method->row.name);
		ok = false;
	}
	ok = ok && send_all(&c);
	if (ok)
		method_call_send(&c, out);
	method_call_free(&c);
	return ok;
}
