/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "gen.h"

enum { SPOILED = 14 }; /* per cent of the calls are corrupted */

/* Generated programs never make these calls, nor those that the list calls absent. The corpus may make them. */
static const struct {
	const char *name, *reason;
} excluded[] = {
	{ "GET_CONTEXT", "every program begins with it" },
	{ "INVOKE_WRITE", "is every other call" },
};

/* ---- objects ----------------------------------------------------------------------------------------------------- */

struct uvd_gen_live *uvd_gen_live_find(struct uvd_gen *g, const char *type)
{
	unsigned int seen = 0;
	struct uvd_gen_live *found = NULL;

	for (unsigned int i = 0; i < g->num_live; i++)
		if (!type || !strcmp(g->live[i].type, type))
			if (!uvd_gen_below(g, ++seen))
				found = &g->live[i];
	return found;
}

struct uvd_gen_live *uvd_gen_live_add(struct uvd_gen *g, struct uvd_prog_call *call, const char *type)
{
	struct uvd_gen_live *live = &g->live[g->num_live];

	snprintf(call->label, sizeof(call->label), "%.8s%u", type, g->next++);
	if (g->num_live == UVD_GEN_MAX_LIVE)
		return NULL;
	g->num_live++;
	memset(live, 0, sizeof(*live));
	snprintf(live->label, sizeof(live->label), "%s", call->label);
	snprintf(live->type, sizeof(live->type), "%s", type);
	return live;
}

void uvd_gen_live_end(struct uvd_gen *g, const char *label)
{
	for (unsigned int i = 0; i < g->num_live; i++)
		if (!strcmp(g->live[i].label, label)) {
			g->live[i] = g->live[--g->num_live];
			return;
		}
}

/* Picks a word for an object of this type, usually one that exists. */
static void word_object(struct uvd_gen *g, const char *type, char *word)
{
	struct uvd_gen_live *live = uvd_gen_live_find(g, uvd_gen_chance(g, 2) ? NULL : type);

	if (live && !uvd_gen_chance(g, 2))
		snprintf(word, UVD_PROG_MAX_ITEM, "%s", live->label);
	else
		snprintf(word, UVD_PROG_MAX_ITEM, "%s", UVD_GEN_ONE_OF(g, "0", "1", "2", "5", "-1", "0x7fffffff"));
}

/* Returns the name of the output by which the call tells the number of its object, or NULL. */
static const char *call_number(const struct uvd_prog_call *call, const char *kind)
{
	const struct uvd_shape_command *shape = call->front <= UVD_PROG_INVOKE ? uvd_shape_command(call->target) : NULL;
	struct uvd_shape_method ref;

	for (unsigned int i = 0; shape && i < shape->out.n; i++)
		if (shape->out.f[i].field && !strcmp(uvd_role_name(shape->out.f[i].field->role), kind))
			return shape->out.f[i].name;
	if (call->front != UVD_PROG_METHOD || !uvd_shape_method(call->target, &ref) || !ref.row)
		return NULL;
	for (unsigned int a = 0; a < ref.row->num_attrs; a++)
		if (ref.row->attrs[a].type == UVD_ATTR_PTR_OUT &&
		    !strcmp(uvd_role_name(uvd_shape_attr_fields(ref.row->attrs[a].name)->role), kind))
			return kind;
	return NULL;
}

/* Does an item of the call name the object? */
static bool call_names(const struct uvd_prog_call *call, const char *label)
{
	for (unsigned int i = 0; i < call->num_items; i++) {
		const char *is = strchr(call->items[i], '=');

		if (is && !strcmp(is + 1, label))
			return true;
	}
	return false;
}

/*
 * Picks the number of an object that the program has made: "rkey" of any that has an r_key, mostly of one that the last call
 * names: that is the call which gets the number.
 */
static void word_number(struct uvd_gen *g, const char *kind, char *word)
{
	const struct uvd_prog_call *last = &g->p->calls[g->p->num_calls - 1];
	const bool own = uvd_gen_chance(g, 80);
	unsigned int seen = 0;

	snprintf(word, UVD_PROG_MAX_ITEM, "0");
	for (const struct uvd_prog_call *call = g->p->calls; call < last; call++) {
		const char *name = *call->label ? call_number(call, kind) : NULL;

		if (!name)
			continue;
		if (!uvd_gen_below(g, ++seen) || (own && call_names(last, call->label)))
			snprintf(word, UVD_PROG_MAX_ITEM, "%.15s.%.60s", call->label, name);
		if (own && call_names(last, call->label))
			return;
	}
}

/* Picks one of the field's good words, sometimes another. */
static void word_pick(struct uvd_gen *g, const char *good, char *word)
{
	char words[24][64], type[64];
	unsigned int n = 0;
	int used;

	for (; good && n < 24 && sscanf(good, "%63s%n", words[n], &used) == 1; good += used)
		n++;
	if (!n || (uvd_gen_chance(g, g->vary) && uvd_gen_chance(g, 25))) {
		snprintf(word, UVD_PROG_MAX_ITEM, "%s",
			 UVD_GEN_ONE_OF(g, "0", "1", "2", "8", "0xff", "0x100", "0x80000000", "0xffffffff"));
		return;
	}
	snprintf(word, UVD_PROG_MAX_ITEM, "%.63s", words[uvd_gen_chance(g, g->vary) ? uvd_gen_below(g, n) : 0]);
	if (word[0] != '<')
		return;
	snprintf(type, sizeof(type), "%.*s", (int)strcspn(word, ">") - 1, word + 1);
	if (!strcmp(type, "lkey")) {
		struct uvd_gen_live *mr = uvd_gen_live_find(g, "mr");

		snprintf(word, UVD_PROG_MAX_ITEM, "%s%s", mr ? mr->label : "0", mr ? ".lkey" : "");
		return;
	}
	if (uvd_prog_list_match("rkey qpn srqn wqn", type))
		word_number(g, type, word);
	else
		word_object(g, type, word);
}

static bool word_is_preset(const char *good, const char *word)
{
	size_t len = good ? strcspn(good, " ") : 0;

	return good && *good != '<' && strlen(word) == len && !strncmp(good, word, len);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

struct uvd_prog_call *uvd_gen_new_call(struct uvd_gen *g, enum uvd_prog_front front, const char *target)
{
	struct uvd_prog_call *call;

	if (g->p->num_calls == UVD_PROG_MAX_CALLS)
		return NULL;
	call = &g->p->calls[g->p->num_calls++];
	memset(call, 0, sizeof(*call));
	call->front = front;
	snprintf(call->target, sizeof(call->target), "%s", target);
	return call;
}

/* Does the row's condition on `key` allow the value? A row without such a condition does. */
static bool listed_allows(const struct uvd_prog_listed *row, const char *key, unsigned long long value)
{
	const char *numbers = uvd_prog_list_condition(row, key);

	return !numbers || uvd_prog_list_number(numbers, value);
}

static bool gen_absent_method(struct uvd_gen *g, const struct uvd_shape_method *ref)
{
	for (unsigned int i = 0; i < g->list->num; i++) {
		const struct uvd_prog_listed *row = &g->list->rows[i];

		if (row->absent && uvd_prog_list_condition(row, "object") &&
		    listed_allows(row, "object", ref->object) && listed_allows(row, "method", ref->method))
			return true;
	}
	return false;
}

bool uvd_gen_absent_attr(struct uvd_gen *g, const struct uvd_attr_row *attr)
{
	for (unsigned int i = 0; i < g->list->num; i++) {
		const char *pattern =
			g->list->rows[i].absent ? uvd_prog_list_condition(&g->list->rows[i], "with") : NULL;

		if (pattern && uvd_prog_list_match(pattern, uvd_shape_attr_name(attr)))
			return true;
	}
	return false;
}

bool uvd_gen_absent_command(struct uvd_gen *g, const struct uvd_shape_command *shape)
{
	uint32_t number = shape->number | (shape->ex ? 0x80000000 : 0);

	for (unsigned int i = 0; i < g->list->num; i++) {
		const struct uvd_prog_listed *row = &g->list->rows[i];

		if (row->absent && uvd_prog_list_condition(row, "command") && listed_allows(row, "command", number))
			return true;
	}
	return false;
}

bool uvd_gen_excluded(const char *name)
{
	for (unsigned int i = 0; i < UVD_COUNT(excluded); i++)
		if (!strcmp(excluded[i].name, name))
			return true;
	return false;
}

enum uvd_prog_front uvd_gen_front(struct uvd_gen *g)
{
	return uvd_gen_chance(g, 60) ? UVD_PROG_WRITE : UVD_PROG_INVOKE;
}

static void gen_set_vary(struct uvd_gen *g)
{
	static const unsigned char moods[] = { 0, 0, 0, 5, 10, 10, 20, 50 };

	g->vary = g->plain ? 0 : moods[uvd_gen_below(g, sizeof(moods))];
}

/* Finds the command that makes objects of this type. */
const struct uvd_shape_command *uvd_gen_maker(struct uvd_gen *g, const char *type)
{
	const struct uvd_shape_command *maker;

	for (unsigned int n = 0; (maker = uvd_shape_command_at(n)); n++)
		if (maker->makes && !strcmp(maker->makes, type) && !maker->ex && !uvd_gen_absent_command(g, maker))
			return maker;
	return NULL;
}

static void gen_object(struct uvd_gen *g, const char *type)
{
	const struct uvd_shape_command *maker;

	if (uvd_gen_live_find(g, type) || uvd_gen_chance(g, 20))
		return;
	maker = uvd_gen_maker(g, type);
	if (maker)
		uvd_gen_command(g, maker, uvd_gen_front(g));
}

/* Usually makes the objects that a call refers to, before the call. */
static void gen_missing(struct uvd_gen *g, const struct uvd_shape_fields *fields)
{
	char type[32];

	for (unsigned int f = 0; f < fields->n; f++)
		if (fields->f[f].good && sscanf(fields->f[f].good, "<%31[^>]", type) == 1)
			gen_object(g, type);
}

/* A handle that any value of a flag selects goes together with the flag. */
static void gen_selected(struct uvd_gen *g, struct uvd_prog_call *call, const struct uvd_shape_command *shape,
			 const struct uvd_shape_field *f)
{
	const struct uvd_field *handle = f->field;
	const char *type = uvd_shape_object_name(handle->object);

	if (handle->role != UVD_ROLE_HANDLE || !handle->selector || handle->select_flags != UINT64_MAX ||
	    !uvd_prog_item(call, shape->request->fields[handle->selector - 1].name) || uvd_prog_item(call, f->name))
		return;
	if (uvd_gen_live_find(g, type))
		uvd_prog_add_item(call, "%s=%s", f->name, uvd_gen_live_find(g, type)->label);
}

struct uvd_prog_call *uvd_gen_command(struct uvd_gen *g, const struct uvd_shape_command *shape,
				      enum uvd_prog_front front)
{
	struct uvd_prog_call *call;
	struct uvd_gen_live *live;
	char word[UVD_PROG_MAX_ITEM];

	gen_missing(g, &shape->in);
	gen_set_vary(g);
	call = uvd_gen_new_call(g, front, shape->name);
	if (!call)
		return NULL;
	for (unsigned int f = 0; f < shape->in.n; f++) {
		const struct uvd_shape_field *field = &shape->in.f[f];

		if (!field->good)
			continue;
		word_pick(g, field->good, word);
		if (!word_is_preset(field->good, word))
			uvd_prog_add_item(call, "%s=%s", field->name, word);
		if (field->field->ends)
			uvd_gen_live_end(g, word);
	}
	for (unsigned int f = 0; f < shape->in.n; f++)
		gen_selected(g, call, shape, &shape->in.f[f]);
	if (shape->makes) {
		live = uvd_gen_live_add(g, call, shape->makes);
		if (live)
			live->datagram = uvd_prog_item(call, "qp_type") && !strcmp(uvd_prog_item(call, "qp_type"), "4");
	}
	if (uvd_gen_chance(g, SPOILED)) {
		if (front == UVD_PROG_WRITE)
			uvd_gen_spoil_write(g, call, shape);
		else if (front == UVD_PROG_CM)
			uvd_gen_spoil_cm(g, call, shape);
		else
			uvd_gen_spoil_invoke(g, call, shape);
	}
	return call;
}

/* Is it an attribute of a plug-in, whose role is known? */
static bool attr_is_added(const struct uvd_attr_row *row)
{
	const struct uvd_attr_fields *known;

	for (unsigned int i = 0; (known = uvd_shape_added_attr(i)); i++)
		if (!strcmp(known->attr, row->name))
			return true;
	return false;
}

/* Gives each field of a plug-in's attribute, as far as there is room for it, what a command would give it. */
static void gen_attr_fields(struct uvd_gen *g, const struct uvd_shape_fields *fields, char *item, size_t room)
{
	char word[UVD_PROG_MAX_ITEM];
	size_t len = 0;

	if (!strcmp(fields->f[0].name, UVD_SHAPE_VALUE)) {
		word_pick(g, fields->f[0].good, word);
		snprintf(item, room, "=%.60s", word);
		return;
	}
	for (unsigned int i = 0; i < fields->n; i++) {
		const struct uvd_shape_field *f = &fields->f[i];

		word_pick(g, f->good, word);
		if (word_is_preset(f->good, word) || len + strlen(f->name) + strlen(word) + 4 > room)
			continue;
		len += snprintf(item + len, room - len, "%s%s=%s", len ? "," : "={", f->name, word);
	}
	if (len)
		snprintf(item + len, room - len, "}");
}

static void gen_attr_value(struct uvd_gen *g, const struct uvd_attr_row *row, char *item)
{
	const char *name = uvd_shape_attr_name(row);
	const struct uvd_shape_attr *shape = uvd_shape_attr(name);
	const struct uvd_shape_field *field;
	char word[UVD_PROG_MAX_ITEM];
	size_t len = snprintf(item, UVD_PROG_MAX_ITEM, "%.60s", name);
	if (row->type == UVD_ATTR_IDR || row->type == UVD_ATTR_FD || row->type == UVD_ATTR_IDRS_ARRAY) {
		if (row->access == UVD_UOBJ_NEW)
			return;
		word_object(g, uvd_shape_object_name(row->object), word);
		snprintf(item + len, UVD_PROG_MAX_ITEM - len, "=%.60s", word);
		return;
	}
	if (row->type == UVD_ATTR_PTR_OUT || !shape || !shape->fields.n)
		return;
	if (attr_is_added(row)) {
		gen_attr_fields(g, &shape->fields, item + len, UVD_PROG_MAX_ITEM - len);
		return;
	}
	if (uvd_gen_chance(g, 50))
		return;
	field = &shape->fields.f[uvd_gen_below(g, shape->fields.n)];
	word_pick(g, field->good, word);
	if (strcmp(field->name, UVD_SHAPE_VALUE))
		snprintf(item + len, UVD_PROG_MAX_ITEM - len, "={%s=%.40s}", field->name, word);
	else
		snprintf(item + len, UVD_PROG_MAX_ITEM - len, "=%.60s", word);
}

/* Bytes of driver data in rxe's response, as the command that makes the same object has them: without room for them the method fails. */
static unsigned int gen_driver_room(const struct uvd_method_row *method)
{
	const char *makes = uvd_shape_method_makes(method);
	const struct uvd_shape_command *shape;

	for (unsigned int n = 0; makes && (shape = uvd_shape_command_at(n)); n++)
		if (shape->makes && !strcmp(shape->makes, makes))
			return shape->uhw_out;
	return 0;
}

static void gen_attr(struct uvd_gen *g, struct uvd_prog_call *call, const struct uvd_method_row *method,
		     const struct uvd_attr_row *row)
{
	char item[UVD_PROG_MAX_ITEM];
	unsigned int room = gen_driver_room(method);

	if (row->flags & UVD_UDATA) {
		if (row->type == UVD_ATTR_PTR_OUT && room && !uvd_gen_chance(g, 3))
			uvd_prog_add_item(call, "uhw_out=%u", room);
		else if (uvd_gen_chance(g, 3))
			uvd_prog_add_item(call, "%s=%u", row->type == UVD_ATTR_PTR_OUT ? "uhw_out" : "uhw_in",
					  uvd_gen_below(g, 40));
		return;
	}
	if (uvd_gen_absent_attr(g, row) || (uvd_gen_wanted(row) ? uvd_gen_chance(g, 2) : !uvd_gen_chance(g, 35)))
		return;
	/* An optional attribute is only of interest for its value: vary it more often. */
	if (!uvd_gen_wanted(row))
		g->vary = 70;
	gen_attr_value(g, row, item);
	uvd_prog_add_item(call, "%s", item);
	if (row->access == UVD_UOBJ_DESTROY && row->type == UVD_ATTR_IDR && strchr(item, '='))
		uvd_gen_live_end(g, strchr(item, '=') + 1);
	if (row->access == UVD_UOBJ_NEW && (row->type == UVD_ATTR_IDR || row->type == UVD_ATTR_FD))
		uvd_gen_live_add(g, call, uvd_shape_object_name(row->object));
}

bool uvd_gen_wanted(const struct uvd_attr_row *row)
{
	/* The type of a QP decides which of these it needs: want all. */
	return row->flags & UVD_MANDATORY ||
	       uvd_prog_list_match("create_qp_pd_handle create_qp_send_cq_handle create_qp_recv_cq_handle",
				   uvd_shape_attr_name(row));
}

bool uvd_gen_can_ask(struct uvd_gen *g, const struct uvd_shape_method *ref)
{
	return !uvd_gen_excluded(uvd_shape_method_name(ref->row)) && !gen_absent_method(g, ref);
}

struct uvd_prog_call *uvd_gen_method(struct uvd_gen *g, const struct uvd_shape_method *ref)
{
	struct uvd_prog_call *call;

	for (unsigned int a = 0; a < ref->row->num_attrs; a++) {
		const struct uvd_attr_row *row = &ref->row->attrs[a];

		if ((row->type == UVD_ATTR_IDR || row->type == UVD_ATTR_FD) && row->access != UVD_UOBJ_NEW &&
		    uvd_gen_wanted(row))
			gen_object(g, uvd_shape_object_name(row->object));
		if (row->type != UVD_ATTR_PTR_OUT && attr_is_added(row))
			gen_missing(g, &uvd_shape_attr(uvd_shape_attr_name(row))->fields);
	}
	gen_set_vary(g);
	call = uvd_gen_new_call(g, UVD_PROG_METHOD, uvd_shape_method_name(ref->row));
	for (unsigned int a = 0; call && a < ref->row->num_attrs; a++)
		gen_attr(g, call, ref->row, &ref->row->attrs[a]);
	return call;
}

static void gen_any_method(struct uvd_gen *g)
{
	struct uvd_shape_method ref;
	unsigned int n = 0;
	struct uvd_prog_call *call;

	while (uvd_shape_method_at(n, &ref))
		n++;
	do
		uvd_shape_method_at(uvd_gen_below(g, n), &ref);
	while (!uvd_gen_can_ask(g, &ref));
	call = uvd_gen_method(g, &ref);
	if (call && uvd_gen_chance(g, SPOILED))
		uvd_gen_spoil_method(g, call);
}

/* ---- sequences of calls ------------------------------------------------------------------------------------------ */

/* Modifies a QP towards RTS, then to ERR and RESET, for a random number of steps. */
static void gen_connect(struct uvd_gen *g)
{
	static const struct {
		const char *rc, *ud;
	} steps[] = {
		{ "qp_state=1 attr_mask=0x39 qp_access_flags=7", "qp_state=1 attr_mask=0x71 qkey=0x11" },
		{ "qp_state=2 attr_mask=0x129181", "qp_state=2 attr_mask=1" },
		{ "qp_state=3 attr_mask=0x12e01", "qp_state=3 attr_mask=0x10001 sq_psn=1" },
		{ "qp_state=4 attr_mask=1", "qp_state=4 attr_mask=1" },
		{ "qp_state=6 attr_mask=1", "qp_state=6 attr_mask=1" },
		{ "qp_state=0 attr_mask=1", "qp_state=0 attr_mask=1" },
	};
	struct uvd_gen_live *qp = uvd_gen_live_find(g, "qp");
	unsigned int far = 1 + uvd_gen_below(g, UVD_COUNT(steps));

	for (unsigned int i = 0; qp && i < far; i++) {
		struct uvd_prog_call *call =
			uvd_gen_new_call(g, uvd_gen_front(g), uvd_gen_chance(g, 80) ? "MODIFY_QP" : "EX_MODIFY_QP");
		const char *text = qp->datagram ? steps[i].ud : steps[i].rc;
		char item[64];
		int used;

		if (!call)
			return;
		uvd_prog_add_item(call, "qp_handle=%s", qp->label);
		for (; sscanf(text, "%63s%n", item, &used) == 1; text += used)
			uvd_prog_add_item(call, "%s", item);
		if (i == 1 && !qp->datagram)
			uvd_prog_add_item(call, "dest_qp_num=%s.qpn", qp->label);
	}
	if (qp && uvd_gen_chance(g, 70)) {
		struct uvd_prog_call *call = uvd_gen_new_call(g, uvd_gen_front(g), "QUERY_QP");

		if (call)
			uvd_prog_add_item(call, "qp_handle=%s", qp->label);
	}
}

static const struct uvd_shape_command *gen_any_command(struct uvd_gen *g)
{
	const struct uvd_shape_command *shape;
	unsigned int n = 0;

	while (uvd_shape_command_at(n))
		n++;
	do
		shape = uvd_shape_command_at(uvd_gen_below(g, n));
	while (uvd_gen_excluded(shape->name) || uvd_gen_absent_command(g, shape));
	return shape;
}

static void gen_first_objects(struct uvd_gen *g)
{
	static const char *const names[] = { "ALLOC_PD",   "CREATE_CQ", "CREATE_QP", "CREATE_COMP_CHANNEL",
					     "CREATE_SRQ", "REG_MR" };
	unsigned int most = uvd_gen_below(g, UVD_COUNT(names) + 1);

	for (unsigned int i = 0; i < most; i++)
		uvd_gen_command(g, uvd_shape_command(names[i]), uvd_gen_front(g));
}

void uvd_gen_begin(struct uvd_gen *g, uint64_t seed)
{
	memset(g->p, 0, sizeof(*g->p));
	snprintf(g->p->name, sizeof(g->p->name), UVD_PROG_SEED "%llu", (unsigned long long)seed);
	if (!uvd_gen_chance(g, 2))
		uvd_gen_command(g, uvd_shape_command("GET_CONTEXT"),
				uvd_gen_chance(g, 80) ? UVD_PROG_WRITE : UVD_PROG_INVOKE);
	gen_first_objects(g);
}

void uvd_gen_any_call(struct uvd_gen *g)
{
	switch (uvd_gen_below(g, 10)) {
	case 0:
		gen_connect(g);
		break;
	case 1 ... 3:
		gen_any_method(g);
		break;
	default:
		uvd_gen_command(g, gen_any_command(g), uvd_gen_front(g));
		break;
	}
}

void uvd_prog_generate(struct uvd_prog *p, const struct uvd_prog_list *list, uint64_t seed)
{
	struct uvd_gen g = { .state = seed, .p = p, .list = list };
	unsigned int most;

	uvd_gen_begin(&g, seed);
	most = p->num_calls + 2 + uvd_gen_below(&g, 14);
	while (p->num_calls < most && p->num_calls < UVD_PROG_MAX_CALLS)
		uvd_gen_any_call(&g);
}
