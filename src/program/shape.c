/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Makes the tables of commands and attributes, from those of src/call and from shape_values.c. */
#include "shape.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cm.h"
#include "list.h"
#include "objects/objects.h"
#include "shape_values.h"

static struct {
	struct uvd_shape_command *commands;
	struct uvd_shape_attr *attrs;
	unsigned int num_commands, num_attrs;
} shapes;

/* The tables cannot be missing: a process without memory for them ends. */
static void *shape_alloc(size_t size)
{
	void *memory = calloc(1, size);

	if (!memory) {
		perror("tables of calls");
		exit(2);
	}
	return memory;
}

static char *__attribute__((format(printf, 1, 2))) shape_text(const char *format, ...)
{
	va_list ap;
	char *text;
	int len;

	va_start(ap, format);
	len = vasprintf(&text, format, ap);
	va_end(ap);
	if (len < 0) {
		perror("tables of calls");
		exit(2);
	}
	return text;
}

/* ---- values and names -------------------------------------------------------------------------------------------- */

/* Zeros, and zeros behind a one. */
static const char *words_of_reserved(const struct uvd_field *f)
{
	char zeros[2 * 64 + 1] = "";

	if (!f->count)
		return "0 1";
	for (size_t i = 0; i < uvd_field_bytes(f) && i < 64; i++)
		strcat(zeros, "00");
	return shape_text("x%s x01%s", zeros, zeros + 2);
}

static char *words_of_enumeration(const struct uvd_words *words)
{
	char *text = NULL;

	for (const struct uvd_word *w = words ? words->words : NULL; w && w->name; w++) {
		char *longer = shape_text("%s%s%llu", text ? text : "", text ? " " : "", (unsigned long long)w->value);

		free(text);
		text = longer;
	}
	return text;
}

static const char *words_of_descriptor(const struct uvd_field *f)
{
	if (f->object == UVD_NO_OBJECT)
		return "-1";
	return shape_text(f->optional ? "-1 <%s>" : "<%s> -1", uvd_shape_object_name(f->object));
}

/* The words of a field without a row follow from its role. Returns NULL if none do. */
static const char *words_of_role(const struct uvd_field *f)
{
	switch (f->role) {
	case UVD_ROLE_HANDLE:
		return shape_text("<%s>", uvd_shape_object_name(f->object));
	case UVD_ROLE_FD:
		return words_of_descriptor(f);
	case UVD_ROLE_LKEY:
		return "<lkey> 0";
	case UVD_ROLE_WORDS:
		return words_of_enumeration(f->words);
	case UVD_ROLE_COUNT:
		return "1 0 2 -1";
	case UVD_ROLE_RESERVED:
		return words_of_reserved(f);
	default:
		return NULL;
	}
}

/* A number that the device has chosen for an object, of whichever the program has: uvd_gen_word_number(). */
static const char *words_of_number(enum uvd_role role)
{
	return shape_text("<%s> 0", uvd_role_name(role));
}

/* All flags, none, and each alone. */
static const char *words_of_flags(const struct uvd_words *words)
{
	char *each = words_of_enumeration(words);
	unsigned long long all = 0;
	const char *text;

	if (!each)
		return NULL;
	for (const struct uvd_word *w = words->words; w->name; w++)
		all |= w->value;
	text = shape_text("%llu 0 %s", all, each);
	free(each);
	return text;
}

/* Is it the length of another field's memory? */
static bool field_is_length(const struct uvd_struct *of, const struct uvd_field *f)
{
	for (const struct uvd_field *g = of->fields; g->name; g++)
		if (g->role == UVD_ROLE_ADDRESS && uvd_field_beside(of, g) == f)
			return true;
	return false;
}

/*
 * The words of a plug-in's field: nobody has chosen any, so all follow from its role. A request with a flexible array has two
 * handles.
 */
static const char *words_of_added(const struct uvd_struct *of, const struct uvd_field *f)
{
	if (field_is_length(of, f))
		return "64 4096 1 0 -1";
	switch (f->role) {
	case UVD_ROLE_RKEY:
	case UVD_ROLE_QPN:
	case UVD_ROLE_SRQN:
	case UVD_ROLE_WQN:
		return words_of_number(f->role);
	case UVD_ROLE_ADDRESS:
	case UVD_ROLE_IOVA:
	case UVD_ROLE_AT:
		return "mem none ro 0";
	case UVD_ROLE_FLAGS:
		return words_of_flags(f->words);
	case UVD_ROLE_COUNT:
		return "2 1 0 3 -1";
	case UVD_ROLE_LOG:
		return "1 0 2 63 -1";
	default:
		return words_of_role(f);
	}
}

static const char *words_of(const struct uvd_struct *of, const struct uvd_field *f)
{
	if (uvd_shape_is_added(of))
		return words_of_added(of, f);
	for (const struct uvd_shape_values *v = uvd_shape_values; v->structs; v++)
		if (uvd_prog_list_match(v->structs, of->name) && uvd_prog_list_match(v->fields, f->name))
			return v->words;
	return words_of_role(f);
}

static const struct uvd_shape_name *name_row(const struct uvd_struct *of, const struct uvd_field *f)
{
	for (const struct uvd_shape_name *n = uvd_shape_names; n->structs; n++)
		if (uvd_prog_list_match(n->structs, of->name) && uvd_prog_list_match(n->fields, f->name))
			return n;
	return NULL;
}

/* Does the row make one field of all those that match? */
static bool name_joins(const struct uvd_shape_name *row)
{
	return row && strchr(row->fields, '*') && !strchr(row->name, '*');
}

static const char *name_of(const struct uvd_struct *of, const struct uvd_field *f, bool in)
{
	const struct uvd_shape_name *row = name_row(of, f);
	const char *star;

	if (!in && f->makes && f->role == UVD_ROLE_HANDLE)
		return "handle";
	if (!in && f->role == UVD_ROLE_FD)
		return "fd";
	if (!row)
		return f->name;
	star = strchr(row->name, '*');
	if (!star)
		return row->name;
	return shape_text("%.*s%s", (int)(star - row->name), row->name, f->name + strcspn(row->fields, "*"));
}

enum uvd_role uvd_shape_field_role(const struct uvd_shape_field *f)
{
	return f->field ? f->field->role : UVD_ROLE_UNKNOWN;
}

bool uvd_shape_field_is(const struct uvd_shape_field *f, const char *name)
{
	return !strcmp(f->name, name) || (f->field && !strcmp(f->field->name, name));
}

/* ---- structs ----------------------------------------------------------------------------------------------------- */

/* Fields that programs see as one. Its place is that of struct uvd_shape_field. */
static const struct uvd_field several = {
	.name = "", .role = UVD_ROLE_BYTES, .object = UVD_NO_OBJECT, .or_object = UVD_NO_OBJECT
};

/* A list of fields in the making. */
struct making {
	struct uvd_shape_field *f;
	unsigned int n;
	bool in;
};

static void making_put(struct making *m, const struct uvd_shape_field *field)
{
	m->f = reallocarray(m->f, m->n + 1, sizeof(*m->f));
	if (!m->f) {
		perror("tables of calls");
		exit(2);
	}
	m->f[m->n++] = *field;
}

static void making_add(struct making *m, const struct uvd_struct *of, const struct uvd_field *f, size_t base)
{
	const char *name = name_of(of, f, m->in);
	const bool joined = name_joins(name_row(of, f));
	struct uvd_shape_field *last = m->n ? &m->f[m->n - 1] : NULL;

	if (joined && last && !strcmp(last->name, name)) {
		last->size = base + uvd_field_end(f) - last->at;
		return;
	}
	making_put(m, &(struct uvd_shape_field){
			      .name = name,
			      .at = base + f->at,
			      .size = uvd_field_bytes(f),
			      .good = m->in ? words_of(of, f) : NULL,
			      .field = joined ? &several : f,
		      });
}

/* Adds the fields of a struct that is `base` bytes behind the first one, those that are reserved between the others. */
static size_t making_add_struct(struct making *m, const struct uvd_struct *of, size_t base)
{
	static const struct uvd_field none[] = { {} };
	const struct uvd_field *f = of->fields, *r = of->reserved ? of->reserved : none;

	while (f->name || r->name)
		making_add(m, of, !r->name || (f->name && f->at <= r->at) ? f++ : r++, base);
	return base + of->size;
}

/* A number that is no member of a struct: an element of an array, or an attribute. */
static const struct uvd_field *number_field(const char *name, uint16_t size, enum uvd_role role, uint16_t object)
{
	struct uvd_field *f = shape_alloc(sizeof(*f));

	*f = (struct uvd_field){ name, 0, size, .role = role, .object = object, .or_object = UVD_NO_OBJECT };
	return f;
}

/* The elements of scatter/gather lists have the struct of this attribute. */
static const struct uvd_struct *sge_struct(void)
{
	return uvd_attr_fields("UVERBS_ATTR_ADVISE_MR_SGE_LIST")->of;
}

/* Adds an element of a request's flexible array. Returns the size of the request with it. */
static size_t making_add_tail(struct making *m, const struct uvd_struct *of)
{
	enum { HANDLES = 2 };
	size_t size = of->size;

	if (of->tail_of)
		size = making_add_struct(m, of->tail_of, size);
	for (unsigned int i = 0; of->tail && of->tail_role == UVD_ROLE_HANDLE && i < HANDLES; i++) {
		const char *name = shape_text("%s%u", uvd_shape_object_name(of->tail_object), i);

		making_add(m, of, number_field(name, sizeof(uint32_t), of->tail_role, of->tail_object), size);
		size += sizeof(uint32_t);
	}
	if (uvd_struct_counter(of, "sge", UVD_ROLE_COUNT))
		size = making_add_struct(m, sge_struct(), size);
	return size;
}

struct uvd_shape_fields uvd_shape_fields_of(const struct uvd_struct *of, bool in)
{
	struct making m = { .in = in };

	making_add_struct(&m, of, 0);
	return (struct uvd_shape_fields){ m.f, m.n, 0 };
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

/* "EX_CREATE_CQ" for IB_USER_VERBS_EX_CMD_CREATE_CQ */
static const char *command_name(const char *name, bool ex)
{
	static const char plain[] = "IB_USER_VERBS_CMD_", extended[] = "IB_USER_VERBS_EX_CMD_";

	if (ex)
		return shape_text("EX_%s", uvd_shape_without(name, extended));
	return uvd_shape_without(name, plain);
}

static const char *struct_makes(const struct uvd_struct *of)
{
	for (const struct uvd_field *f = of->fields; f->name; f++)
		if (f->makes)
			return uvd_shape_object_name(f->object);
	return NULL;
}

static const char *struct_ends(const struct uvd_struct *of)
{
	for (const struct uvd_field *f = of->fields; f->name; f++)
		if (f->ends)
			return uvd_shape_object_name(f->object);
	return NULL;
}

static bool struct_renews(const struct uvd_struct *of)
{
	const struct uvd_field *f = of->fields;

	while (f->name && !f->renews)
		f++;
	return f->name;
}

static void command_add_more(struct uvd_shape_command *c)
{
	for (const struct uvd_shape_more *m = uvd_shape_more; m->command; m++) {
		if (strcmp(m->command, c->name))
			continue;
		c->uhw_in = m->uhw_in;
		c->uhw_out = m->uhw_out;
		if (m->makes)
			c->makes = m->makes;
	}
}

static void command_make(struct uvd_shape_command *c, const struct uvd_write_row *row, uint16_t object)
{
	const struct uvd_command_fields *known = uvd_shape_command_fields(row->name);
	struct making in = { .in = true };

	c->ex = row->flags & UVD_WRITE_EX;
	c->response = row->flags & UVD_WRITE_RESP;
	c->number = row->number;
	c->object = object;
	c->request = known->request;
	c->name = command_name(row->name, c->ex);
	making_add_struct(&in, known->request, 0);
	c->in_size = making_add_tail(&in, known->request);
	c->in = (struct uvd_shape_fields){ in.f, in.n, 0 };
	c->out_size = known->response->size;
	/* A plug-in need not say what all bytes are. */
	c->in_size = c->in_size > row->req_size ? c->in_size : row->req_size;
	c->out_size =
		c->out_size > row->resp_size || !uvd_shape_is_added(known->response) ? c->out_size : row->resp_size;
	c->out = uvd_shape_fields_of(known->response, false);
	c->makes = struct_makes(known->response);
	c->ends = struct_ends(known->request);
	c->renews = struct_renews(known->request);
	c->uhw_out = known->response->tail_of ? known->response->tail_of->size : 0;
	command_add_more(c);
}

/* By number; extended commands come last. */
static int command_order(const void *a, const void *b)
{
	const struct uvd_shape_command *x = a, *y = b;

	return x->ex != y->ex ? x->ex - y->ex : x->number - y->number;
}

static void commands_make(void)
{
	const struct uvd_object_row *o;

	for (unsigned int i = 0; (o = uvd_shape_object_at(i)); i++)
		shapes.num_commands += o->num_writes;
	shapes.commands = shape_alloc(shapes.num_commands * sizeof(*shapes.commands));
	for (unsigned int i = 0, n = 0; (o = uvd_shape_object_at(i)); i++)
		for (unsigned int w = 0; w < o->num_writes; w++)
			command_make(&shapes.commands[n++], &o->writes[w], o->id);
	qsort(shapes.commands, shapes.num_commands, sizeof(*shapes.commands), command_order);
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static const struct uvd_attr_fields *attr_known(const char *name)
{
	char full[80];

	snprintf(full, sizeof(full), "UVERBS_ATTR_%s", name);
	return uvd_attr_fields(full);
}

static const struct uvd_struct *response_struct(const char *command)
{
	char full[80];

	snprintf(full, sizeof(full), "IB_USER_VERBS_CMD_%s", command);
	return uvd_command_fields(full)->response;
}

/* Returns the attribute's row in the method that has it. */
static const struct uvd_attr_row *attr_row(const char *name)
{
	const struct uvd_attr_row *row = NULL;
	struct uvd_shape_method ref;

	for (unsigned int i = 0; !row && uvd_shape_method_at(i, &ref); i++)
		for (unsigned int a = 0; !row && a < ref.row->num_attrs; a++)
			if (!strcasecmp(uvd_shape_attr_name(&ref.row->attrs[a]), name))
				row = &ref.row->attrs[a];
	return row;
}

/* Returns the size of an attribute, from its row; 0: it has none of its own. */
static uint16_t attr_size(const char *name)
{
	const struct uvd_attr_row *row = attr_row(name);

	return !row || row->len == UVD_LEN_ANY ? 0 : row->len;
}

static bool attr_is_input(const char *name)
{
	const struct uvd_attr_row *row = attr_row(name);

	return row && row->type == UVD_ATTR_PTR_IN;
}

/* An attribute that is a number is a field at 0. */
static void making_put_number(struct making *m, const char *name, uint16_t size, const char *words, enum uvd_role role)
{
	const struct uvd_field *f = number_field(name, size, role, UVD_NO_OBJECT);

	making_put(m, &(struct uvd_shape_field){ name, 0, size, words, f });
}

static struct uvd_shape_fields attr_number(const struct uvd_shape_attr_values *v, uint16_t size)
{
	struct making m = {};

	making_put_number(&m, v->name ? v->name : UVD_SHAPE_VALUE, size, v->words, attr_known(v->attr)->role);
	return (struct uvd_shape_fields){ m.f, m.n, 0 };
}

static void attr_make(struct uvd_shape_attr *a, const struct uvd_shape_attr_values *v)
{
	const uint16_t size = v->size ? v->size : attr_size(v->attr);
	const struct uvd_struct *element = v->elements ? attr_known(v->elements)->of : NULL;

	a->name = v->attr;
	a->size = size ? size : sizeof(uint64_t);
	if (element) {
		a->fields = uvd_shape_fields_of(element, false);
		a->fields.stride = element->size;
	} else if (v->response) {
		a->fields = uvd_shape_fields_of(response_struct(v->response), false);
	} else if (v->name || v->words) {
		a->fields = attr_number(v, a->size);
	}
}

static void attr_make_struct(struct uvd_shape_attr *a, const struct uvd_attr_fields *known)
{
	a->name = uvd_shape_without(known->attr, "UVERBS_ATTR_");
	a->size = known->of->size;
	a->fields = uvd_shape_fields_of(known->of, attr_is_input(a->name));
}

/* The value of a plug-in's attribute that is no struct. */
static void attr_make_value(struct uvd_shape_attr *a, const struct uvd_attr_fields *known)
{
	const bool chosen = uvd_role_is_chosen(known->role);
	const char *words = NULL, *name = UVD_SHAPE_VALUE;
	struct making m = {};

	a->name = uvd_shape_without(known->attr, "UVERBS_ATTR_");
	a->size = attr_size(a->name) ? attr_size(a->name) : sizeof(uint64_t);
	if (chosen)
		words = words_of_number(known->role);
	else if (known->role == UVD_ROLE_FLAGS)
		words = words_of_flags(known->words);
	else if (known->role == UVD_ROLE_WORDS)
		words = words_of_enumeration(known->words);
	/* As an output it has the name that the response of a command would have. */
	if (chosen && !attr_is_input(a->name))
		name = uvd_role_name(known->role);
	making_put_number(&m, name, a->size > 8 ? 8 : a->size, words, known->role);
	a->fields = (struct uvd_shape_fields){ m.f, m.n, 0 };
}

static void attrs_make(void)
{
	const struct uvd_shape_attr_values *v = uvd_shape_attr_values;
	const struct uvd_attr_fields *known = uvd_attrs_fields;
	unsigned int most = 0;

	for (unsigned int i = 0; v[i].attr; i++)
		most++;
	for (unsigned int i = 0; known[i].attr; i++)
		most += !!known[i].of;
	for (unsigned int i = 0; uvd_shape_added_attr(i); i++)
		most++;
	shapes.attrs = shape_alloc(most * sizeof(*shapes.attrs));
	for (; v->attr; v++)
		attr_make(&shapes.attrs[shapes.num_attrs++], v);
	for (; known->attr; known++)
		if (known->of)
			attr_make_struct(&shapes.attrs[shapes.num_attrs++], known);
	for (unsigned int i = 0; (known = uvd_shape_added_attr(i)); i++)
		(known->of ? attr_make_struct : attr_make_value)(&shapes.attrs[shapes.num_attrs++], known);
}

/* ---- look-ups ---------------------------------------------------------------------------------------------------- */

static void shapes_make(void)
{
	commands_make();
	attrs_make();
}

void uvd_shape_need(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, shapes_make);
	uvd_shape_cm_at(0);
}

const struct uvd_shape_command *uvd_shape_command_at(unsigned int i)
{
	uvd_shape_need();
	return i < shapes.num_commands ? &shapes.commands[i] : NULL;
}

const struct uvd_shape_command *uvd_shape_command(const char *name)
{
	uvd_shape_need();
	for (unsigned int i = 0; i < shapes.num_commands; i++)
		if (!strcmp(shapes.commands[i].name, name))
			return &shapes.commands[i];
	return NULL;
}

const struct uvd_shape_attr *uvd_shape_attr(const char *name)
{
	uvd_shape_need();
	for (unsigned int i = 0; i < shapes.num_attrs; i++)
		if (!strcasecmp(shapes.attrs[i].name, name))
			return &shapes.attrs[i];
	return NULL;
}
