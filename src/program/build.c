/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Builds the bytes of a call from its items:
 *
 *	FIELD=WORD		a field of the command's struct; without it the field is its first good word, or 0
 *	ATTR[=WORD][:MOD=N...]	method: an attribute, in this order; a struct: ATTR={FIELD=WORD,FIELD=WORD}
 *	in=N out=N		sizes in bytes of the core's structs; uhw_in=N uhw_out=N: of the driver's
 *	!KNOB=N			corrupts a header field; +N and -N are relative
 *	!ATTR:MOD=N		invoke: corrupts one of its attributes
 *	@OFFSET=N		overwrites one byte of the message
 *
 * Knobs of write(): command, in_words, out_words, provider_in_words, provider_out_words, cmd_hdr_reserved, response, len,
 * edge (only that many bytes are readable). Of ioctls: length, object, method, num_attrs, reserved1, reserved2, driver,
 * arg (an address), cmd. Mods: len, flags, elem, rsv, id, ptr (an address), tail (the last byte), drop.
 * Words: numbers, xHEX bytes, addresses (mem ro none edge scratch, also with +N), LABEL, LABEL.OUTPUT.
 */
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdlib.h>
#include <string.h>
#include "build.h"
#include "record.h"

/* Copies to the arena: fixed addresses, where the compiler knows of no object. */
static void arena_copy(volatile uint8_t *to, const void *from, size_t len)
{
	for (size_t n = 0; n < len; n++)
		to[n] = ((const uint8_t *)from)[n];
}

void uvd_build_place(struct uvd_prog_run *run, unsigned int i, struct uvd_prog_built *b, const uint8_t *msg,
		     size_t readable)
{
	if (readable > UVD_PROG_MSG_SIZE)
		readable = UVD_PROG_MSG_SIZE;
	b->msg = (uint8_t *)UVD_PROG_MSG(run) + UVD_PROG_MSG_SIZE - readable;
	arena_copy(b->msg, msg, readable);
	run->records[i].msg_len = readable < UVD_PROG_MAX_MSG ? readable : UVD_PROG_MAX_MSG;
}

static void bytes_put(uint8_t *to, size_t size, uint64_t value)
{
	memcpy(to, &value, size < 8 ? size : 8);
}

static void word_put(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i, uint8_t *to, size_t size,
		     const char *word)
{
	if (*word == 'x')
		uvd_prog_bytes_of(to, size, word + 1);
	else
		bytes_put(to, size, uvd_prog_value_of(run, p, i, word));
}

const char *uvd_build_preset(const struct uvd_shape_field *f, char word[UVD_PROG_MAX_ITEM])
{
	if (!f->good || *f->good == '<')
		return "0";
	sscanf(f->good, "%159s", word);
	return word;
}

uint64_t uvd_build_knob(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i, const char *name,
			uint64_t value)
{
	const char *word = uvd_prog_item(&p->calls[i], name);

	if (!word)
		return value;
	if (*word == '+' || *word == '-')
		return value + strtoll(word, NULL, 0);
	return uvd_prog_value_of(run, p, i, word);
}

size_t uvd_build_size(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i, const char *name, size_t size)
{
	/* Two parts and the headers must fit into a message. */
	const size_t value = uvd_build_knob(run, p, i, name, size), most = UVD_PROG_MSG_SIZE / 2 - 0x100;

	return value < most ? value : most;
}

void uvd_build_spoil(const struct uvd_prog_call *call, uint8_t *msg, size_t len)
{
	for (unsigned int n = 0; n < call->num_items; n++) {
		const char *item = call->items[n], *is = strchr(item, '=');
		size_t at;

		if (*item != '@' || !is)
			continue;
		at = strtoull(item + 1, NULL, 0);
		if (at < len)
			msg[at] = strtoull(is + 1, NULL, 0);
	}
}

const char *uvd_build_items_check(const struct uvd_prog_call *call, const struct uvd_shape_command *shape)
{
	static const char *const others[] = { "in", "out", "uhw_in", "uhw_out", NULL };
	char name[UVD_PROG_MAX_ITEM];
	unsigned int f;

	for (unsigned int n = 0; n < call->num_items; n++) {
		if (strchr("!@", call->items[n][0]))
			continue;
		snprintf(name, sizeof(name), "%s", call->items[n]);
		name[strcspn(name, "=")] = 0;
		for (f = 0; others[f] && strcmp(others[f], name); f++)
			;
		if (others[f] || (call->front == UVD_PROG_CM && !strcmp(name, "wait")))
			continue;
		for (f = 0; shape && f < shape->in.n && !uvd_shape_field_is(&shape->in.f[f], name); f++)
			;
		if (!shape || f == shape->in.n)
			return "no such field";
	}
	return NULL;
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

enum { MOST_NAMED = 2048 }; /* bytes of a response that get names; a header may claim more */

/* The parts of a command, for both fronts. */
struct command {
	const struct uvd_shape_command *shape; /* NULL: given by number */
	uint32_t number; /* with the flag of extended commands */
	bool ex, response;
	size_t in, out, uhw_in, uhw_out;
	uint8_t core[0x8000 + 64], uhw[0x8000 + 64];
};

const char *uvd_build_given(const struct uvd_prog_call *call, const struct uvd_shape_field *f)
{
	const char *word = uvd_prog_item(call, f->name);

	return word || !f->field || f->field->name == f->name ? word : uvd_prog_item(call, f->field->name);
}

/* A socket address is text, or what other fields are. */
static void field_put(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i,
		      const struct uvd_shape_field *f, const char *word, uint8_t *core)
{
	if (uvd_shape_field_role(f) != UVD_ROLE_SOCKADDR || !uvd_sockaddr_parse(word, core + f->at, f->size))
		word_put(run, p, i, core + f->at, f->size, word);
}

/* Members of a union are in the same bytes: what the program gives comes after the defaults of other fields. */
void uvd_build_fill(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i,
		    const struct uvd_shape_command *shape, uint8_t *core)
{
	const struct uvd_shape_fields *in = &shape->in;
	const struct uvd_prog_call *call = &p->calls[i];
	char preset[UVD_PROG_MAX_ITEM];

	for (unsigned int f = 0; f < in->n; f++)
		if (in->f[f].good && !uvd_build_given(call, &in->f[f]))
			field_put(run, p, i, &in->f[f], uvd_build_preset(&in->f[f], preset), core);
	for (unsigned int f = 0; f < in->n; f++)
		if (uvd_build_given(call, &in->f[f]))
			field_put(run, p, i, &in->f[f], uvd_build_given(call, &in->f[f]), core);
	for (unsigned int f = 0; f < in->n; f++)
		uvd_prog_note(&run->records[i], in->f[f].name, core + in->f[f].at, in->f[f].size);
}

static const char *command_of(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i, struct command *c)
{
	const struct uvd_prog_call *call = &p->calls[i];
	const char *wrong;

	memset(c, 0, sizeof(*c));
	c->shape = uvd_shape_command(call->target);
	if (!c->shape && call->target[0] != '#')
		return "no such command";
	wrong = uvd_build_items_check(call, c->shape);
	if (wrong)
		return wrong;
	if (c->shape) {
		c->ex = c->shape->ex;
		c->number = c->shape->number | (c->ex ? IB_USER_VERBS_CMD_FLAG_EXTENDED : 0);
		c->response = c->shape->response;
	} else {
		c->number = strtoull(call->target + 1, NULL, 0);
		c->ex = c->number & IB_USER_VERBS_CMD_FLAG_EXTENDED;
	}
	c->in = uvd_build_size(run, p, i, "in", c->shape ? c->shape->in_size : 0);
	c->out = uvd_build_size(run, p, i, "out", c->shape ? c->shape->out_size : 0);
	c->uhw_in = uvd_build_size(run, p, i, "uhw_in", c->shape ? c->shape->uhw_in : 0);
	c->uhw_out = uvd_build_size(run, p, i, "uhw_out", c->shape ? c->shape->uhw_out : 0);
	if (c->shape)
		uvd_build_fill(run, p, i, c->shape, c->core);
	bytes_put(c->uhw, 8, UVD_PROG_SCRATCH);
	return NULL;
}

static size_t words8(size_t len)
{
	return (len + 7) / 8;
}

/* Records the size of the driver's part: what exceeds the core's struct. */
static void record_note_room(struct uvd_prog_record *r, const char *name, size_t all, size_t core)
{
	uvd_prog_note_number(r, name, all > core ? all - core : 0);
}

static size_t command_put_plain(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i, struct command *c,
				uint8_t *msg)
{
	struct ib_uverbs_cmd_hdr *hdr = (void *)msg;
	size_t len = sizeof(*hdr) + c->in + c->uhw_in;

	if (c->response)
		bytes_put(c->core, 8, uvd_build_knob(run, p, i, "!response", UVD_PROG_OUT(run)));
	memcpy(msg + sizeof(*hdr), c->core, c->in);
	memcpy(msg + sizeof(*hdr) + c->in, c->uhw, c->uhw_in);
	hdr->command = uvd_build_knob(run, p, i, "!command", c->number);
	uvd_prog_note_number(&run->records[i], "command", hdr->command);
	hdr->in_words = uvd_build_knob(run, p, i, "!in_words", len / 4);
	hdr->out_words = uvd_build_knob(run, p, i, "!out_words", (c->out + c->uhw_out) / 4);
	if (c->shape) {
		record_note_room(&run->records[i], "uhw_in", hdr->in_words * 4, sizeof(*hdr) + c->shape->in_size);
		record_note_room(&run->records[i], "uhw_out", hdr->out_words * 4, c->shape->out_size);
	}
	return len;
}

static size_t command_put_ex(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i, struct command *c,
			     uint8_t *msg)
{
	struct ib_uverbs_cmd_hdr *hdr = (void *)msg;
	struct ib_uverbs_ex_cmd_hdr *ex = (void *)(hdr + 1);
	uint8_t *core = (uint8_t *)(ex + 1);

	memcpy(core, c->core, words8(c->in) * 8);
	memcpy(core + words8(c->in) * 8, c->uhw, words8(c->uhw_in) * 8);
	hdr->command = uvd_build_knob(run, p, i, "!command", c->number);
	uvd_prog_note_number(&run->records[i], "command", hdr->command);
	hdr->in_words = uvd_build_knob(run, p, i, "!in_words", words8(c->in));
	hdr->out_words = uvd_build_knob(run, p, i, "!out_words", words8(c->out));
	ex->provider_in_words = uvd_build_knob(run, p, i, "!provider_in_words", words8(c->uhw_in));
	ex->provider_out_words = uvd_build_knob(run, p, i, "!provider_out_words", words8(c->uhw_out));
	ex->cmd_hdr_reserved = uvd_build_knob(run, p, i, "!cmd_hdr_reserved", 0);
	uvd_prog_note_number(&run->records[i], "uhw_in", ex->provider_in_words * 8);
	uvd_prog_note_number(&run->records[i], "uhw_out", ex->provider_out_words * 8);
	ex->response = uvd_build_knob(run, p, i, "!response", c->out + c->uhw_out ? UVD_PROG_OUT(run) : 0);
	return core + (words8(c->in) + words8(c->uhw_in)) * 8 - msg;
}

/* Records the fields' values in the sent bytes, for the conditions of the list. */
static void command_note_sent(struct uvd_prog_record *r, const struct command *c, const uint8_t *msg, size_t len)
{
	size_t core = sizeof(struct ib_uverbs_cmd_hdr) + (c->ex ? sizeof(struct ib_uverbs_ex_cmd_hdr) : 0);

	for (unsigned int f = 0; c->shape && f < c->shape->in.n; f++) {
		const struct uvd_shape_field *field = &c->shape->in.f[f];

		if (core + field->at + field->size <= len)
			uvd_prog_note(r, field->name, msg + core + field->at, field->size);
	}
}

const char *uvd_prog_build_write(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i,
				 struct uvd_prog_built *b)
{
	static struct command c;
	static uint8_t msg[UVD_PROG_MSG_SIZE];
	struct uvd_prog_record *r = &run->records[i];
	const struct ib_uverbs_cmd_hdr *hdr = (void *)msg;
	const struct ib_uverbs_ex_cmd_hdr *ex = (void *)(hdr + 1);
	const char *wrong = command_of(run, p, i, &c), *edge = uvd_prog_item(&p->calls[i], "!edge");
	size_t len, readable, core_out, all;

	if (wrong)
		return wrong;
	memset(msg, 0, sizeof(msg));
	len = c.ex ? command_put_ex(run, p, i, &c, msg) : command_put_plain(run, p, i, &c, msg);
	uvd_build_spoil(&p->calls[i], msg, len);
	command_note_sent(r, &c, msg, len);
	b->len = uvd_build_size(run, p, i, "!len", len);
	readable = edge ? strtoull(edge, NULL, 0) : b->len > len ? b->len : len;
	uvd_build_place(run, i, b, msg, readable);
	/* Only extended headers tell where the core's part ends. */
	all = c.ex ? (hdr->out_words + ex->provider_out_words) * 8 : hdr->out_words * 4;
	all = all < MOST_NAMED ? all : MOST_NAMED;
	core_out = c.ex ? hdr->out_words * 8 : c.shape ? c.shape->out_size : all;
	core_out = core_out < all ? core_out : all;
	uvd_prog_region_add(r, "", 0, core_out, c.shape ? c.shape->out : (struct uvd_shape_fields){});
	uvd_prog_region_add(r, "uhw", core_out, all - core_out, (struct uvd_shape_fields){});
	return NULL;
}

/* ---- ioctls ------------------------------------------------------------------------------------------------------ */

struct tree {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[UVD_PROG_MAX_ITEMS + 8];
	/* bytes of the arena */
	size_t in_used, out_used;
};

static const char *mods_find(const char *mods, const char *name)
{
	size_t len = strlen(name);

	for (; mods && *mods == ':'; mods += 1 + strcspn(mods + 1, ":"))
		if (!strncmp(mods + 1, name, len) && (mods[1 + len] == '=' || !mods[1 + len] || mods[1 + len] == ':'))
			return mods + 1 + len + (mods[1 + len] == '=');
	return NULL;
}

static uint64_t mods_number(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i, const char *mods,
			    const char *name, uint64_t value)
{
	const char *found = mods_find(mods, name);
	char word[UVD_PROG_MAX_ITEM];

	if (!found)
		return value;
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(found, ":"), found);
	if (*word == '+' || (*word == '-' && strchr("len flags", *name)))
		return value + strtoll(word, NULL, 0);
	return uvd_prog_value_of(run, p, i, word);
}

/* Data of up to 8 bytes is stored in the attribute itself. */
static void attr_in(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i, struct tree *t,
		    struct ib_uverbs_attr *a, const uint8_t *bytes, size_t len, const char *mods)
{
	uint8_t *to = (uint8_t *)UVD_PROG_IN(run) + t->in_used;
	const char *tail = mods_find(mods, "tail");

	a->len = mods_number(run, p, i, mods, "len", len);
	if (t->in_used + a->len + 8 > UVD_PROG_IN_SIZE)
		return;
	memset(to, 0, a->len + 8);
	memcpy(to, bytes, len < a->len ? len : a->len);
	if (tail && a->len)
		to[a->len - 1] = strtoull(tail, NULL, 0);
	a->data = (uintptr_t)to;
	if (a->len <= 8)
		memcpy(&a->data, to, 8);
	t->in_used += (a->len + 15) / 8 * 8;
}

static void attr_out(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i, struct tree *t,
		     struct ib_uverbs_attr *a, const char *name, size_t len, struct uvd_shape_fields fields,
		     const char *mods)
{
	a->len = mods_number(run, p, i, mods, "len", len);
	a->data = UVD_PROG_OUT(run) + t->out_used;
	uvd_prog_region_add(&run->records[i], name, t->out_used, a->len, fields);
	t->out_used += (a->len + UVD_PROG_OUT_SLACK + 7) / 8 * 8;
}

/* Fills `bytes` from {FIELD=WORD,...} or WORD; other fields get their defaults. */
static void fields_fill(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i,
			const struct uvd_shape_fields *fields, const char *name, const char *text, uint8_t *bytes)
{
	char word[UVD_PROG_MAX_ITEM], key[48];
	struct uvd_prog_record *r = &run->records[i];

	for (unsigned int f = 0; f < fields->n; f++)
		word_put(run, p, i, bytes + fields->f[f].at, fields->f[f].size, uvd_build_preset(&fields->f[f], word));
	if (text && *text == '{') {
		for (text++; *text && *text != '}'; text += strspn(text, ",")) {
			size_t len = strcspn(text, ",}");

			if (sscanf(text, "%47[^=]=%159[^,}]", key, word) == 2)
				for (unsigned int f = 0; f < fields->n; f++)
					if (uvd_shape_field_is(&fields->f[f], key))
						word_put(run, p, i, bytes + fields->f[f].at, fields->f[f].size, word);
			text += len;
		}
	} else if (text && *text) {
		word_put(run, p, i, bytes, fields->n ? fields->f[0].size : 8, text);
	}
	for (unsigned int f = 0; f < fields->n; f++)
		uvd_prog_note(r, strcmp(fields->f[f].name, UVD_SHAPE_VALUE) ? fields->f[f].name : name,
			      bytes + fields->f[f].at, fields->f[f].size);
}

/* text: the part after "=", without mods. */
static void attr_add(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i, struct tree *t,
		     const struct uvd_attr_row *row, const char *name, const char *text, const char *mods)
{
	struct ib_uverbs_attr *a = &t->attrs[t->hdr.num_attrs];
	const struct uvd_shape_attr *shape = uvd_shape_attr(name);
	struct uvd_shape_fields fields = shape ? shape->fields : (struct uvd_shape_fields){};
	size_t size = row->len && row->len != UVD_LEN_ANY && row->type != UVD_ATTR_FLAGS ? row->len
		      : shape								 ? shape->size
											 : 8;
	uint8_t bytes[512] = {};

	t->hdr.num_attrs++;
	a->attr_id = row->id;
	a->flags = UVERBS_ATTR_F_MANDATORY;
	switch (row->type) {
	case UVD_ATTR_PTR_OUT:
		attr_out(run, p, i, t, a, row->flags & UVD_UDATA ? "uhw" : name,
			 text && *text ? uvd_prog_value_of(run, p, i, text) & 0x7fff : size, fields, mods);
		break;
	case UVD_ATTR_IDR:
	case UVD_ATTR_FD:
	case UVD_ATTR_RAW_FD:
		a->data = text && *text ? uvd_prog_value_of(run, p, i, text) : 0;
		a->len = mods_number(run, p, i, mods, "len", 0);
		uvd_prog_note(&run->records[i], name, (uint8_t *)&a->data, 8);
		break;
	default:
		if (row->flags & UVD_UDATA) {
			bytes_put(bytes, 8, UVD_PROG_SCRATCH);
			size = text && *text ? uvd_prog_value_of(run, p, i, text) & 0xff : 8;
		} else {
			fields_fill(run, p, i, &fields, name, text, bytes);
		}
		attr_in(run, p, i, t, a, bytes, size < sizeof(bytes) ? size : sizeof(bytes), mods);
		break;
	}
	a->attr_id = mods_number(run, p, i, mods, "id", a->attr_id);
	a->flags = mods_number(run, p, i, mods, "flags", a->flags);
	a->attr_data.enum_data.elem_id = mods_number(run, p, i, mods, "elem", 0);
	a->attr_data.enum_data.reserved = mods_number(run, p, i, mods, "rsv", 0);
	a->data = mods_number(run, p, i, mods, "ptr", a->data);
	if (mods_find(mods, "ptr") && a->len <= 8)
		uvd_prog_note_number(&run->records[i], name, a->data);
	/* The mod `ptr` points to memory that holds zeros or is not mapped: record zeros. */
	for (unsigned int f = 0; mods_find(mods, "ptr") && row->type == UVD_ATTR_PTR_IN && a->len > 8 && f < fields.n;
	     f++)
		uvd_prog_note_number(&run->records[i], fields.f[f].name, 0);
}

/* Parses NAME[=TEXT][:MODS] and adds the attribute. #ID names one that has no row. */
static const char *method_item(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i, struct tree *t,
			       const struct uvd_shape_method *ref, const char *item)
{
	char name[UVD_PROG_MAX_ITEM], text[UVD_PROG_MAX_ITEM] = "";
	const char *is, *mods, *brace;
	const struct uvd_attr_row *row;
	struct uvd_attr_row raw = { .type = UVD_ATTR_PTR_IN, .len = 8 };

	snprintf(name, sizeof(name), "%s", item);
	name[strcspn(name, "=:")] = 0;
	is = item[strlen(name)] == '=' ? item + strlen(name) + 1 : NULL;
	brace = is && *is == '{' ? strchr(is, '}') : NULL;
	mods = strchr(brace ? brace : item, ':');
	if (is)
		snprintf(text, sizeof(text), "%.*s", (int)(mods ? (size_t)(mods - is) : strlen(is)), is);
	row = uvd_shape_attr_row(ref->row, name);
	if (!row && *name == '#') {
		raw.id = strtoull(name + 1, NULL, 0);
		row = &raw;
	}
	if (!row)
		return "no such attribute";
	attr_add(run, p, i, t, row, name, text, mods);
	return NULL;
}

static const char *method_attrs(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i, struct tree *t)
{
	const struct uvd_prog_call *call = &p->calls[i];
	const char *wrong = NULL;
	struct uvd_shape_method ref;

	if (!uvd_shape_method(call->target, &ref))
		return "no such method";
	t->hdr.object_id = ref.object;
	t->hdr.method_id = ref.method;
	for (unsigned int n = 0; n < call->num_items && !wrong; n++)
		if (!strchr("!@", call->items[n][0]))
			wrong = method_item(run, p, i, t, &ref, call->items[n]);
	return wrong;
}

/* Adds one attribute of INVOKE_WRITE, unless it is empty. */
static void invoke_attr(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i, struct tree *t,
			const char *name, const uint8_t *bytes, size_t len, struct uvd_shape_fields fields)
{
	struct ib_uverbs_attr *a = &t->attrs[t->hdr.num_attrs];
	const struct uvd_prog_call *call = &p->calls[i];
	const struct uvd_attr_row *row;
	const char *mods = NULL;
	struct uvd_shape_method ref;

	for (unsigned int n = 0; n < call->num_items; n++)
		if (call->items[n][0] == '!' && !strncmp(call->items[n] + 1, name, strlen(name)) &&
		    call->items[n][1 + strlen(name)] == ':')
			mods = call->items[n] + 1 + strlen(name);
	uvd_shape_method("INVOKE_WRITE", &ref);
	row = uvd_shape_attr_row(ref.row, name);
	if (mods_find(mods, "drop") || (!len && !mods))
		return;
	t->hdr.num_attrs++;
	a->attr_id = row->id;
	a->flags = UVERBS_ATTR_F_MANDATORY;
	if (bytes)
		attr_in(run, p, i, t, a, bytes, len, mods);
	else
		attr_out(run, p, i, t, a, strcmp(name, "core_out") ? "uhw" : "", len, fields, mods);
	a->attr_id = mods_number(run, p, i, mods, "id", a->attr_id);
	a->flags = mods_number(run, p, i, mods, "flags", a->flags);
	a->attr_data.reserved = mods_number(run, p, i, mods, "rsv", 0);
	a->data = mods_number(run, p, i, mods, "ptr", a->data);
}

static const char *invoke_attrs(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i, struct tree *t)
{
	static struct command c;
	const char *wrong = command_of(run, p, i, &c);
	uint64_t number = c.number;

	if (wrong)
		return wrong;
	t->hdr.object_id = UVERBS_OBJECT_DEVICE;
	t->hdr.method_id = UVERBS_METHOD_INVOKE_WRITE;
	number = uvd_build_knob(run, p, i, "!command", number);
	invoke_attr(run, p, i, t, "write_cmd", (uint8_t *)&number, 8, (struct uvd_shape_fields){});
	if (t->hdr.num_attrs)
		uvd_prog_note_number(&run->records[i], "command", t->attrs[0].data);
	invoke_attr(run, p, i, t, "core_in", c.core, c.in, (struct uvd_shape_fields){});
	invoke_attr(run, p, i, t, "core_out", NULL, c.out, c.shape ? c.shape->out : (struct uvd_shape_fields){});
	invoke_attr(run, p, i, t, "uhw_in", c.uhw, c.uhw_in, (struct uvd_shape_fields){});
	invoke_attr(run, p, i, t, "uhw_out", NULL, c.uhw_out, (struct uvd_shape_fields){});
	return NULL;
}

static size_t attr_len(const struct tree *t, uint16_t id)
{
	for (unsigned int a = 0; a < t->hdr.num_attrs; a++)
		if (t->attrs[a].attr_id == id)
			return t->attrs[a].len;
	return 0;
}

const char *uvd_prog_build_ioctl(struct uvd_prog_run *run, const struct uvd_prog *p, unsigned int i,
				 struct uvd_prog_built *b)
{
	static struct tree t;
	struct uvd_prog_record *r = &run->records[i];
	const char *wrong;
	size_t len;

	memset(&t, 0, sizeof(t));
	wrong = p->calls[i].front == UVD_PROG_INVOKE ? invoke_attrs(run, p, i, &t) : method_attrs(run, p, i, &t);
	if (wrong)
		return wrong;
	uvd_prog_note_number(r, "uhw_in", attr_len(&t, UVD_ATTR_UHW_IN));
	uvd_prog_note_number(r, "uhw_out", attr_len(&t, UVD_ATTR_UHW_OUT));
	len = sizeof(t.hdr) + t.hdr.num_attrs * sizeof(t.attrs[0]);
	t.hdr.length = uvd_build_knob(run, p, i, "!length", len);
	t.hdr.num_attrs = uvd_build_knob(run, p, i, "!num_attrs", t.hdr.num_attrs);
	t.hdr.object_id = uvd_build_knob(run, p, i, "!object", t.hdr.object_id);
	t.hdr.method_id = uvd_build_knob(run, p, i, "!method", t.hdr.method_id);
	uvd_prog_note_number(r, "object", t.hdr.object_id);
	uvd_prog_note_number(r, "method", t.hdr.method_id);
	t.hdr.reserved1 = uvd_build_knob(run, p, i, "!reserved1", 0);
	t.hdr.reserved2 = uvd_build_knob(run, p, i, "!reserved2", 0);
	t.hdr.driver_id = uvd_build_knob(run, p, i, "!driver", run->driver_id);
	b->msg = (uint8_t *)UVD_PROG_MSG(run) + UVD_PROG_MSG_SIZE - len;
	arena_copy(b->msg, &t, len);
	uvd_build_spoil(&p->calls[i], b->msg, len);
	b->is_ioctl = true;
	b->arg = uvd_build_knob(run, p, i, "!arg", (uintptr_t)b->msg);
	b->cmd = uvd_build_knob(run, p, i, "!cmd", RDMA_VERBS_IOCTL);
	r->is_ioctl = true;
	r->msg_len = len < UVD_PROG_MAX_MSG ? len : UVD_PROG_MAX_MSG;
	return NULL;
}
