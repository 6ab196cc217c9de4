/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Decodes a call by ioctl: finds each attribute's row, and its value where the call read or wrote it. */
#include <errno.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader.h"

/* MAX_ATTRS: of a call, whose length is limited to 4096 bytes. VALUE: bytes of a value that are looked at. */
enum { MAX_ATTRS = 256, VALUE = 65536 };

/* One attribute of the call. */
struct trace_attr {
	struct uvd_trace_decoded *d;
	const struct uverbsd_tree_row *row;
	struct ib_uverbs_attr ua;
	uint64_t addr; /* of ua in the client */
	char name[UVD_SHORT_NAME];
	uint8_t *value; /* VALUE bytes */
	size_t len; /* of value, as far as it is known */
};

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static const struct uverbsd_tree_row *method_row(const struct uvd_script *s, uint16_t object, uint16_t method)
{
	for (size_t i = 0; s && i < s->view.num; i++) {
		const struct uverbsd_tree_row *row = &s->view.entries[i].row;

		if (row->kind == UVERBSD_TREE_METHOD && row->object == object && row->id == method)
			return row;
	}
	return NULL;
}

static const struct uverbsd_tree_row *attr_row(const struct uvd_trace_decoded *d, uint16_t id)
{
	for (size_t i = 0; d->row && i < d->script->view.num; i++) {
		const struct uverbsd_tree_row *row = &d->script->view.entries[i].row;

		if (row->kind == UVERBSD_TREE_ATTR && row->object == d->row->object && row->method == d->row->id &&
		    row->id == id)
			return row;
	}
	return NULL;
}

static const char *elem_name(const struct trace_attr *a)
{
	for (size_t i = 0; i < a->d->script->view.num; i++) {
		const struct uverbsd_tree_row *row = &a->d->script->view.entries[i].row;

		if (row->kind == UVERBSD_TREE_ELEM && row->object == a->row->object && row->method == a->row->method &&
		    row->attr == a->row->id && row->id == a->ua.attr_data.enum_data.elem_id)
			return row->name;
	}
	return NULL;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Finds an input: in the attribute itself, or where the call has read it. */
static void attr_fetch(struct trace_attr *a)
{
	const size_t len = a->ua.len;

	if (len <= sizeof(a->ua.data)) {
		memcpy(a->value, &a->ua.data, len);
		a->len = len;
	} else {
		a->len = uvd_image_get(&a->d->image, UVD_PIECE_READ, a->ua.data, a->value, len);
	}
}

static void attr_input(struct trace_attr *a)
{
	attr_fetch(a);
	if (a->len)
		uvd_trace_value(a->d, a->d->in, a->name, uvd_view_value(a->row), a->value, a->len);
	else if (a->ua.len)
		json_object_set_new(a->d->in, a->name, json_string("?"));
}

static void attr_number(struct trace_attr *a)
{
	const size_t len = a->row->type == UVERBSD_TREE_FLAGS && a->ua.len == 4 ? 4 : 8;

	memcpy(a->value, &a->ua.data, len);
	uvd_trace_value(a->d, a->d->in, a->name, uvd_view_value(a->row), a->value, len);
}

static void attr_output(struct trace_attr *a)
{
	const struct uvd_attr_fields *fields = uvd_view_value(a->row);
	size_t len = uvd_image_get(&a->d->image, UVD_PIECE_WRITTEN, a->ua.data, a->value, a->ua.len);

	if (!fields->of && a->row->len == UVERBSD_TREE_LEN_ANY)
		len = uvd_used_len(a->value, len & ~(size_t)3, 0);
	if (len)
		uvd_trace_value(a->d, a->d->out, a->name, fields, a->value, len);
}

/* A new object's handle is written to the attribute. */
static void attr_new(struct trace_attr *a)
{
	uint64_t data;

	if (a->d->call->result < 0 ||
	    uvd_image_get(&a->d->image, UVD_PIECE_WRITTEN, a->addr + offsetof(struct ib_uverbs_attr, data), &data,
			  sizeof(data)) != sizeof(data))
		return;
	json_object_set_new(a->d->out, a->name,
			    json_integer(a->row->type == UVERBSD_TREE_FD ? (int32_t)data : (int64_t)data));
	if (a->row->type == UVERBSD_TREE_FD) {
		uvd_trace_fd_created(a->d, a->name, a->row->target, data);
		return;
	}
	a->d->created = data;
	a->d->created_object = a->row->target;
	a->d->creates = true;
	strcpy(a->d->created_name, a->name);
}

static void trace_attr_object(struct trace_attr *a)
{
	if (a->row->access == UVERBSD_TREE_NEW) {
		attr_new(a);
		return;
	}
	json_object_set_new(a->d->in, a->name, json_integer((int64_t)a->ua.data));
	if (a->row->type == UVERBSD_TREE_FD) {
		uvd_trace_fd(a->d, a->name, a->row->target, a->ua.data);
		return;
	}
	uvd_trace_handle(a->d, a->name, a->row->target, a->ua.data);
	if (a->row->access == UVERBSD_TREE_DESTROY) {
		a->d->destroyed = a->ua.data;
		a->d->destroyed_object = a->row->target;
		a->d->destroys = true;
	}
}

static void attr_array(struct trace_attr *a)
{
	char name[2 * UVD_SHORT_NAME];
	uint32_t handle;

	attr_fetch(a);
	for (size_t i = 0; i < a->len / sizeof(handle); i++) {
		memcpy(&handle, a->value + i * sizeof(handle), sizeof(handle));
		snprintf(name, sizeof(name), "%s.%zu", a->name, i);
		json_object_set_new(a->d->in, name, json_integer(handle));
		uvd_trace_handle(a->d, name, a->row->target, handle);
	}
}

static void attr_enum(struct trace_attr *a)
{
	const char *elem = elem_name(a);
	char name[2 * UVD_SHORT_NAME + 16];

	if (elem)
		snprintf(name, sizeof(name), "%s.%s", a->name, elem);
	else
		snprintf(name, sizeof(name), "%s.%u", a->name, a->ua.attr_data.enum_data.elem_id);
	attr_fetch(a);
	if (a->len)
		uvd_result_set_hex(a->d->in, name, a->value, a->len);
	else
		json_object_set_new(a->d->in, name, json_string(""));
}

static void trace_attr_decode(struct trace_attr *a)
{
	if (!a->row) {
		snprintf(a->name, sizeof(a->name), "attr_0x%x", a->ua.attr_id);
		uvd_result_set(a->d->in, a->name, &a->ua.data, sizeof(a->ua.data));
		return;
	}
	uvd_short_attr(a->d->row, a->row, a->name);
	switch (a->row->type) {
	case UVERBSD_TREE_PTR_OUT:
		attr_output(a);
		break;
	case UVERBSD_TREE_IDR:
	case UVERBSD_TREE_FD:
		trace_attr_object(a);
		break;
	case UVERBSD_TREE_IDRS_ARRAY:
		attr_array(a);
		break;
	case UVERBSD_TREE_ENUM_IN:
		attr_enum(a);
		break;
	case UVERBSD_TREE_CONST:
	case UVERBSD_TREE_FLAGS:
		attr_number(a);
		break;
	case UVERBSD_TREE_RAW_FD:
		json_object_set_new(a->d->in, a->name, json_integer((int64_t)a->ua.data));
		break;
	default:
		attr_input(a);
	}
}

/* ---- INVOKE_WRITE ------------------------------------------------------------------------------------------------ */

static bool attr_is(const struct trace_attr *a, const char *name)
{
	return a->row && !strcmp(a->row->name, name);
}

/* Finds the attribute of this name among the call's. */
static const struct trace_attr *attr_named(const struct trace_attr *attrs, unsigned int num, const char *name)
{
	for (unsigned int i = 0; i < num; i++)
		if (attr_is(&attrs[i], name))
			return &attrs[i];
	return NULL;
}

/* Decodes the command in an INVOKE_WRITE. Returns false if it is not known: then it stays a method. */
static bool decode_invoke(struct uvd_trace_decoded *d, struct trace_attr *attrs, unsigned int num)
{
	const struct trace_attr *cmd = attr_named(attrs, num, "UVERBS_ATTR_WRITE_CMD"),
				*in = attr_named(attrs, num, "UVERBS_ATTR_CORE_IN"),
				*out = attr_named(attrs, num, "UVERBS_ATTR_CORE_OUT");
	const struct uverbsd_tree_row *row = cmd ? uvd_trace_command_row(d->script, cmd->ua.data) : NULL;
	struct uvd_trace_command c = {};

	if (!row)
		return false;
	if (in) {
		attr_fetch((struct trace_attr *)in);
		c.request = in->value;
		c.request_len = in->len;
	}
	if (out) {
		c.response = out->ua.data;
		c.response_len = out->ua.len;
	}
	for (unsigned int i = 0; i < num; i++) /* the driver's part, by the names of this method */
		if (&attrs[i] != cmd && &attrs[i] != in && &attrs[i] != out) {
			attrs[i].value = in ? calloc(1, VALUE) : attrs[i].value;
			if (attrs[i].value)
				trace_attr_decode(&attrs[i]);
			if (in)
				free(attrs[i].value);
		}
	d->row = row;
	d->front = "invoke_write";
	d->bare = !in;
	uvd_trace_command_fields(d, &c);
	return true;
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

static void name_unknown(struct uvd_trace_decoded *d, const struct ib_uverbs_ioctl_hdr *hdr)
{
	const char *object = d->script ? uvd_view_object(&d->script->view, hdr->object_id) : NULL;

	if (object)
		uvd_short_object(object, d->object);
	else
		snprintf(d->object, sizeof(d->object), "object_0x%x", hdr->object_id);
	snprintf(d->verb, sizeof(d->verb), "method_0x%x", hdr->method_id);
}

static unsigned int trace_read_attrs(struct uvd_trace_decoded *d, uint64_t arg, const struct ib_uverbs_ioctl_hdr *hdr,
				     struct trace_attr *attrs, uint8_t *value)
{
	unsigned int num = 0;

	while (num < hdr->num_attrs && num < MAX_ATTRS) {
		struct trace_attr *a = &attrs[num];

		*a = (struct trace_attr){ .d = d, .value = value };
		a->addr = arg + sizeof(*hdr) + num * sizeof(a->ua);
		if (uvd_image_get(&d->image, UVD_PIECE_READ, a->addr, &a->ua, sizeof(a->ua)) != sizeof(a->ua))
			break;
		a->row = attr_row(d, a->ua.attr_id);
		num++;
	}
	return num;
}

static void decode_attrs(struct uvd_trace_decoded *d, uint64_t arg, const struct ib_uverbs_ioctl_hdr *hdr)
{
	struct trace_attr *attrs = calloc(MAX_ATTRS, sizeof(*attrs));
	uint8_t *value = calloc(1, VALUE + 16);
	unsigned int num = attrs && value ? trace_read_attrs(d, arg, hdr, attrs, value) : 0;

	if (!d->row || strcmp(d->row->name, "UVERBS_METHOD_INVOKE_WRITE") || !decode_invoke(d, attrs, num))
		for (unsigned int i = 0; i < num; i++)
			trace_attr_decode(&attrs[i]);
	free(value);
	free(attrs);
}

static void decode_ioctl(struct uvd_trace_decoded *d)
{
	const struct uvd_piece *first = uvd_image_first(&d->image);
	struct ib_uverbs_ioctl_hdr hdr;

	d->front = "ioctl";
	snprintf(d->object, sizeof(d->object), "?");
	snprintf(d->verb, sizeof(d->verb), "ioctl");
	if (!first || uvd_image_get(&d->image, UVD_PIECE_READ, first->addr, &hdr, sizeof(hdr)) != sizeof(hdr))
		return;
	d->row = method_row(d->script, hdr.object_id, hdr.method_id);
	name_unknown(d, &hdr);
	if (d->script)
		decode_attrs(d, first->addr, &hdr);
}

static void name_call(struct uvd_trace_decoded *d)
{
	const char *object = uvd_view_object(&d->script->view, d->row->object);

	if (!object)
		return;
	uvd_short_object(object, d->object);
	uvd_unique_method(d->script, d->row, d->verb);
}

void uvd_trace_decoded_start(struct uvd_trace_decoded *d)
{
	d->in = json_object();
	d->out = json_object();
	d->handles = json_object();
	d->uses = json_object();
	d->words = json_object();
	d->roles = json_object();
	d->statuses = json_object();
}

bool uvd_trace_decode(struct uvd_trace_reader *r, const struct uvd_trace_call *call, struct uvd_trace_decoded *d)
{
	*d = (struct uvd_trace_decoded){ .call = call };
	d->image = (struct uvd_trace_image){ .pieces = (const uint8_t *)(call + 1), .len = call->pieces };
	uvd_trace_decoded_start(d);
	if (!uvd_image_ok(&d->image) || !uvd_image_index(&d->image))
		return false;
	d->open = uvd_trace_find(r, call->file);
	d->script = d->open && d->open->names ? &d->open->names->script : NULL;
	if (call->flags & UVD_TRACE_CALL_IOCTL)
		decode_ioctl(d);
	else
		uvd_trace_write(d);
	if (!d->row)
		return true;
	name_call(d);
	uvd_trace_remember(d);
	/* After it is remembered, the new handle has its details. */
	if (d->creates)
		uvd_trace_handle(d, d->created_name, d->created_object, d->created);
	return true;
}

void uvd_trace_decoded_free(struct uvd_trace_decoded *d)
{
	uvd_image_index_free(&d->image);
	json_decref(d->in);
	json_decref(d->out);
	json_decref(d->handles);
	json_decref(d->uses);
	json_decref(d->words);
	json_decref(d->roles);
	json_decref(d->statuses);
}
