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

/* ---- chance ------------------------------------------------------------------------------------------------------ */

/* splitmix64 */
static uint64_t draw(struct gen *g)
{
	uint64_t z = g->state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static unsigned int below(struct gen *g, unsigned int n)
{
	return draw(g) % n;
}

static bool chance(struct gen *g, unsigned int percent)
{
	return !g->plain && below(g, 100) < percent;
}

static const char *one_of(struct gen *g, const char *const *words, unsigned int n)
{
	return words[below(g, n)];
}
#define ONE_OF(g, ...) \
	one_of(g, (const char *const[]){ __VA_ARGS__ }, UVD_COUNT(((const char *const[]){ __VA_ARGS__ })))

/* ---- objects ----------------------------------------------------------------------------------------------------- */

static struct live *find_live(struct gen *g, const char *type)
{
	unsigned int seen = 0;
	struct live *found = NULL;

	for (unsigned int i = 0; i < g->num_live; i++)
		if (!type || !strcmp(g->live[i].type, type))
			if (!below(g, ++seen))
				found = &g->live[i];
	return found;
}

static struct live *add_live(struct gen *g, struct call *call, const char *type)
{
	struct live *live = &g->live[g->num_live];

	snprintf(call->label, sizeof(call->label), "%.8s%u", type, g->next++);
	if (g->num_live == MAX_LIVE)
		return NULL;
	g->num_live++;
	memset(live, 0, sizeof(*live));
	snprintf(live->label, sizeof(live->label), "%s", call->label);
	snprintf(live->type, sizeof(live->type), "%s", type);
	return live;
}

static void end_live(struct gen *g, const char *label)
{
	for (unsigned int i = 0; i < g->num_live; i++)
		if (!strcmp(g->live[i].label, label)) {
			g->live[i] = g->live[--g->num_live];
			return;
		}
}

/* Picks a word for an object of this type, usually one that exists. */
static void object_word(struct gen *g, const char *type, char *word)
{
	struct live *live = find_live(g, chance(g, 2) ? NULL : type);

	if (live && !chance(g, 2))
		snprintf(word, MAX_ITEM, "%s", live->label);
	else
		snprintf(word, MAX_ITEM, "%s", ONE_OF(g, "0", "1", "2", "5", "-1", "0x7fffffff"));
}

/* Picks one of the field's good words, sometimes another. */
static void pick(struct gen *g, const char *good, char *word)
{
	char words[24][64], type[64];
	unsigned int n = 0;
	int used;

	for (; good && n < 24 && sscanf(good, "%63s%n", words[n], &used) == 1; good += used)
		n++;
	if (!n || (chance(g, g->vary) && chance(g, 25))) {
		snprintf(word, MAX_ITEM, "%s",
			 ONE_OF(g, "0", "1", "2", "8", "0xff", "0x100", "0x80000000", "0xffffffff"));
		return;
	}
	snprintf(word, MAX_ITEM, "%.63s", words[chance(g, g->vary) ? below(g, n) : 0]);
	if (word[0] != '<')
		return;
	snprintf(type, sizeof(type), "%.*s", (int)strcspn(word, ">") - 1, word + 1);
	if (!strcmp(type, "lkey")) {
		struct live *mr = find_live(g, "mr");

		snprintf(word, MAX_ITEM, "%s%s", mr ? mr->label : "0", mr ? ".lkey" : "");
		return;
	}
	object_word(g, type, word);
}

static bool is_preset(const char *good, const char *word)
{
	size_t len = good ? strcspn(good, " ") : 0;

	return good && *good != '<' && strlen(word) == len && !strncmp(good, word, len);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static struct call *new_call(struct gen *g, enum front front, const char *target)
{
	struct call *call;

	if (g->p->num_calls == MAX_CALLS)
		return NULL;
	call = &g->p->calls[g->p->num_calls++];
	memset(call, 0, sizeof(*call));
	call->front = front;
	snprintf(call->target, sizeof(call->target), "%s", target);
	return call;
}

/* Does the row's condition on `key` allow the value? A row without such a condition does. */
static bool condition_is(const struct listed *row, const char *key, unsigned long long value)
{
	const char *numbers = list_condition(row, key);

	return !numbers || list_number(numbers, value);
}

static bool is_absent_method(struct gen *g, const struct method_ref *ref)
{
	for (unsigned int i = 0; i < g->list->num; i++) {
		const struct listed *row = &g->list->rows[i];

		if (row->absent && list_condition(row, "object") && condition_is(row, "object", ref->object) &&
		    condition_is(row, "method", ref->method))
			return true;
	}
	return false;
}

bool gen_absent_attr(struct gen *g, const struct uvd_attr_row *attr)
{
	for (unsigned int i = 0; i < g->list->num; i++) {
		const char *pattern = g->list->rows[i].absent ? list_condition(&g->list->rows[i], "with") : NULL;

		if (pattern && list_match(pattern, schema_attr_name(attr)))
			return true;
	}
	return false;
}

bool gen_absent_command(struct gen *g, const struct command_shape *shape)
{
	uint32_t number = shape->number | (shape->ex ? 0x80000000 : 0);

	for (unsigned int i = 0; i < g->list->num; i++) {
		const struct listed *row = &g->list->rows[i];

		if (row->absent && list_condition(row, "command") && condition_is(row, "command", number))
			return true;
	}
	return false;
}

bool gen_excluded(const char *name)
{
	for (unsigned int i = 0; i < UVD_COUNT(excluded); i++)
		if (!strcmp(excluded[i].name, name))
			return true;
	return false;
}

static enum front command_front(struct gen *g)
{
	return chance(g, 60) ? BY_WRITE : BY_INVOKE;
}

/*
 * Picks a wrong command number: the command's other form, or one that no command with a response has: the bytes of
 * another command's response would be compared under the wrong names.
 */
static const char *other_command(struct gen *g)
{
	return ONE_OF(g, "+0x80000000", "+0x40000000", "+64", "+256", "6", "16", "0x3f", "0xff");
}

static void spoil_write(struct gen *g, struct call *call, const struct command_shape *shape)
{
	switch (below(g, shape->ex ? 13 : 10)) {
	case 0:
		call_add(call, "!in_words=%s", ONE_OF(g, "+1", "-1", "0", "0xffff"));
		break;
	case 1:
		call_add(call, "!out_words=%s", ONE_OF(g, "+1", "-1", "0", "+4"));
		break;
	case 2:
		call_add(call, "!len=%s", ONE_OF(g, "+4", "-4", "-8", "4", "8", "7", "+8"));
		break;
	case 3:
		call_add(call, "!response=%s", ONE_OF(g, "none", "0", "ro", "0xffffffffffffffff", "mem"));
		break;
	case 4:
		call_add(call, "!command=%s", other_command(g));
		break;
	case 5:
		call_add(call, "out=%u", below(g, shape->out_size + 17) & ~3u);
		break;
	case 6:
		call_add(call, "in=%u", below(g, shape->in_size + 17) & ~3u);
		break;
	case 7:
		call_add(call, "uhw_out=%u", below(g, 48) & ~3u);
		break;
	case 8:
		call_add(call, "uhw_in=%u", below(g, 24) & ~3u);
		break;
	case 9:
		call_add(call, "@%u=%u",
			 (shape->ex	    ? 24
			  : shape->response ? 16
					    : 8) +
				 below(g, shape->in_size + 1),
			 below(g, 256));
		break;
	case 10:
		call_add(call, "!provider_in_words=%s", ONE_OF(g, "+1", "-1", "0", "0xffff"));
		break;
	case 11:
		call_add(call, "!provider_out_words=%s", ONE_OF(g, "+1", "-1", "0", "0xffff"));
		break;
	case 12:
		call_add(call, "!cmd_hdr_reserved=1");
		break;
	}
}

static void spoil_header(struct gen *g, struct call *call)
{
	switch (below(g, call->front == BY_METHOD ? 9 : 8)) {
	case 0:
		call_add(call, "!length=%s", ONE_OF(g, "+16", "-16", "+1", "0", "0xffff"));
		break;
	case 1:
		call_add(call, "!num_attrs=%s", ONE_OF(g, "+1", "-1", "0", "0xffff"));
		break;
	case 2:
		call_add(call, "!object=%#x", below(g, 24) | (chance(g, 20) ? 0x1000 : 0));
		break;
	case 3:
		call_add(call, "!method=%#x", below(g, 10) | (chance(g, 20) ? 0x1000 : 0));
		break;
	case 4:
		call_add(call, "!reserved1=1");
		break;
	case 5:
		call_add(call, "!reserved2=1");
		break;
	case 6:
		call_add(call, "!driver=%s", ONE_OF(g, "+1", "+64", "-1", "+65536"));
		break;
	case 7:
		call_add(call, "!arg=%s", ONE_OF(g, "none", "0", "0xffffffffffffffff"));
		break;
	case 8:
		call_add(call, "#%#x%s", below(g, 16) | (chance(g, 30) ? 0x1000 : 0), chance(g, 50) ? ":flags=0" : "");
		break;
	}
}

const char *const gen_attr_mods[] = {
	"len=+1",  "len=-1",  "len=0",	   "len=8",	   "len=9",    "len=4", "len=64", "len=64:tail=1",
	"flags=0", "flags=2", "flags=3",   "flags=0x8001", "ptr=none", "ptr=0", "ptr=ro", "ptr=0xffffffffffffffff",
	"elem=1",  "rsv=1",   "id=0x1002", "id=0x2000",	   "id=7",     NULL
};

static const char *attr_mod(struct gen *g)
{
	return one_of(g, gen_attr_mods, UVD_COUNT(gen_attr_mods) - 1);
}

static void spoil_invoke(struct gen *g, struct call *call, const struct command_shape *shape)
{
	switch (below(g, 8)) {
	case 0:
		spoil_header(g, call);
		break;
	case 1:
		call_add(call, "out=%u", below(g, shape->out_size + 17));
		break;
	case 2:
		call_add(call, "in=%u", below(g, shape->in_size + 17));
		break;
	case 3:
		call_add(call, "uhw_out=%u", below(g, 48));
		break;
	case 4:
		call_add(call, "!command=%s", other_command(g));
		break;
	default:
		call_add(call, "!%s:%s", ONE_OF(g, "write_cmd", "core_in", "core_out", "uhw_out"),
			 chance(g, 20) ? "drop" : attr_mod(g));
		break;
	}
}

static void set_vary(struct gen *g)
{
	static const unsigned char moods[] = { 0, 0, 0, 5, 10, 10, 20, 50 };

	g->vary = g->plain ? 0 : moods[below(g, sizeof(moods))];
}

static void make_object(struct gen *g, const char *type)
{
	const struct command_shape *maker;

	if (find_live(g, type) || chance(g, 20))
		return;
	for (unsigned int n = 0; (maker = shape_command_at(n)); n++)
		if (maker->makes && !strcmp(maker->makes, type) && !maker->ex && !gen_absent_command(g, maker)) {
			gen_command(g, maker, command_front(g));
			return;
		}
}

/* Usually makes the objects that a call refers to, before the call. */
static void make_missing(struct gen *g, const struct command_shape *shape)
{
	char type[32];

	for (unsigned int f = 0; f < shape->in.n; f++)
		if (shape->in.f[f].good && sscanf(shape->in.f[f].good, "<%31[^>]", type) == 1)
			make_object(g, type);
}

struct call *gen_command(struct gen *g, const struct command_shape *shape, enum front front)
{
	struct call *call;
	struct live *live;
	char word[MAX_ITEM];

	make_missing(g, shape);
	set_vary(g);
	call = new_call(g, front, shape->name);
	if (!call)
		return NULL;
	for (unsigned int f = 0; f < shape->in.n; f++) {
		const struct field *field = &shape->in.f[f];

		pick(g, field->good, word);
		if (!is_preset(field->good, word))
			call_add(call, "%s=%s", field->name, word);
		if (shape->ends && field->good && *field->good == '<')
			end_live(g, word);
	}
	/* The flag and the handle go together. */
	if (call_item(call, "is_srq") && !call_item(call, "srq_handle") && find_live(g, "srq"))
		call_add(call, "srq_handle=%s", find_live(g, "srq")->label);
	if (shape->makes) {
		live = add_live(g, call, shape->makes);
		if (live)
			live->datagram = call_item(call, "qp_type") && !strcmp(call_item(call, "qp_type"), "4");
	}
	if (chance(g, SPOILED)) {
		if (front == BY_WRITE)
			spoil_write(g, call, shape);
		else
			spoil_invoke(g, call, shape);
	}
	return call;
}

static void attr_value(struct gen *g, const struct uvd_attr_row *row, char *item)
{
	const char *name = schema_attr_name(row);
	const struct attr_shape *shape = shape_attr(name);
	const struct field *field;
	char word[MAX_ITEM];
	size_t len = snprintf(item, MAX_ITEM, "%.60s", name);
	if (row->type == UVD_ATTR_IDR || row->type == UVD_ATTR_FD || row->type == UVD_ATTR_IDRS_ARRAY) {
		if (row->access == UVD_UOBJ_NEW)
			return;
		object_word(g, shape_object_name(row->object), word);
		snprintf(item + len, MAX_ITEM - len, "=%.60s", word);
		return;
	}
	if (row->type == UVD_ATTR_PTR_OUT || !shape || !shape->fields.n || chance(g, 50))
		return;
	field = &shape->fields.f[below(g, shape->fields.n)];
	pick(g, field->good, word);
	if (strcmp(field->name, "value"))
		snprintf(item + len, MAX_ITEM - len, "={%s=%.40s}", field->name, word);
	else
		snprintf(item + len, MAX_ITEM - len, "=%.60s", word);
}

/* Bytes of driver data in rxe's response: without room for them the method fails there. */
static unsigned int driver_room(const char *name)
{
	if (strstr(name, "CQ_CREATE"))
		return 16;
	if (strstr(name, "SRQ_CREATE"))
		return 24;
	return strstr(name, "QP_CREATE") ? 32 : 0;
}

static void add_attr(struct gen *g, struct call *call, const struct uvd_attr_row *row)
{
	char item[MAX_ITEM];
	unsigned int room = driver_room(call->target);

	if (row->flags & UVD_UDATA) {
		if (row->type == UVD_ATTR_PTR_OUT && room && !chance(g, 3))
			call_add(call, "uhw_out=%u", room);
		else if (chance(g, 3))
			call_add(call, "%s=%u", row->type == UVD_ATTR_PTR_OUT ? "uhw_out" : "uhw_in", below(g, 40));
		return;
	}
	if (gen_absent_attr(g, row) || (gen_wanted(row) ? chance(g, 2) : !chance(g, 35)))
		return;
	/* An optional attribute is only of interest for its value: vary it more often. */
	if (!gen_wanted(row))
		g->vary = 70;
	attr_value(g, row, item);
	call_add(call, "%s", item);
	if (row->access == UVD_UOBJ_DESTROY && row->type == UVD_ATTR_IDR && strchr(item, '='))
		end_live(g, strchr(item, '=') + 1);
	if (row->access == UVD_UOBJ_NEW && (row->type == UVD_ATTR_IDR || row->type == UVD_ATTR_FD))
		add_live(g, call, shape_object_name(row->object));
}

static void spoil_method(struct gen *g, struct call *call)
{
	unsigned int i = call->num_items ? below(g, call->num_items) : 0,
		     j = call->num_items ? below(g, call->num_items) : 0;
	char item[MAX_ITEM];

	if (!call->num_items || chance(g, 30)) {
		spoil_header(g, call);
		return;
	}
	switch (below(g, 5)) {
	case 0: /* another order */
		strcpy(item, call->items[i]);
		strcpy(call->items[i], call->items[j]);
		strcpy(call->items[j], item);
		break;
	case 1: /* twice */
		call_add(call, "%s", call->items[i]);
		break;
	case 2:
		call_drop_item(call, i);
		break;
	default:
		snprintf(item, sizeof(item), "%s", call->items[i]);
		snprintf(call->items[i], MAX_ITEM, "%.100s:%s", item, attr_mod(g));
		break;
	}
}

bool gen_wanted(const struct uvd_attr_row *row)
{
	/* The type of a QP decides which of these it needs: want all. */
	return row->flags & UVD_MANDATORY ||
	       list_match("create_qp_pd_handle create_qp_send_cq_handle create_qp_recv_cq_handle",
			  schema_attr_name(row));
}

bool gen_can_ask(struct gen *g, const struct method_ref *ref)
{
	return !gen_excluded(schema_method_name(ref->row)) && !is_absent_method(g, ref);
}

struct call *gen_method(struct gen *g, const struct method_ref *ref)
{
	struct call *call;

	for (unsigned int a = 0; a < ref->row->num_attrs; a++) {
		const struct uvd_attr_row *row = &ref->row->attrs[a];

		if ((row->type == UVD_ATTR_IDR || row->type == UVD_ATTR_FD) && row->access != UVD_UOBJ_NEW &&
		    gen_wanted(row))
			make_object(g, shape_object_name(row->object));
	}
	set_vary(g);
	call = new_call(g, BY_METHOD, schema_method_name(ref->row));
	for (unsigned int a = 0; call && a < ref->row->num_attrs; a++)
		add_attr(g, call, &ref->row->attrs[a]);
	return call;
}

static void method(struct gen *g)
{
	struct method_ref ref;
	unsigned int n = 0;
	struct call *call;

	while (schema_method_at(n, &ref))
		n++;
	do
		schema_method_at(below(g, n), &ref);
	while (!gen_can_ask(g, &ref));
	call = gen_method(g, &ref);
	if (call && chance(g, SPOILED))
		spoil_method(g, call);
}

/* ---- sequences of calls ------------------------------------------------------------------------------------------ */

/* Modifies a QP towards RTS, then to ERR and RESET, for a random number of steps. */
static void connect(struct gen *g)
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
	struct live *qp = find_live(g, "qp");
	unsigned int far = 1 + below(g, UVD_COUNT(steps));

	for (unsigned int i = 0; qp && i < far; i++) {
		struct call *call = new_call(g, command_front(g), chance(g, 80) ? "MODIFY_QP" : "EX_MODIFY_QP");
		const char *text = qp->datagram ? steps[i].ud : steps[i].rc;
		char item[64];
		int used;

		if (!call)
			return;
		call_add(call, "qp_handle=%s", qp->label);
		for (; sscanf(text, "%63s%n", item, &used) == 1; text += used)
			call_add(call, "%s", item);
		if (i == 1 && !qp->datagram)
			call_add(call, "dest_qp_num=%s.qpn", qp->label);
	}
	if (qp && chance(g, 70)) {
		struct call *call = new_call(g, command_front(g), "QUERY_QP");

		if (call)
			call_add(call, "qp_handle=%s", qp->label);
	}
}

static const struct command_shape *any_command(struct gen *g)
{
	const struct command_shape *shape;
	unsigned int n = 0;

	while (shape_command_at(n))
		n++;
	do
		shape = shape_command_at(below(g, n));
	while (gen_excluded(shape->name) || gen_absent_command(g, shape));
	return shape;
}

static void first_objects(struct gen *g)
{
	static const char *const names[] = { "ALLOC_PD",   "CREATE_CQ", "CREATE_QP", "CREATE_COMP_CHANNEL",
					     "CREATE_SRQ", "REG_MR" };
	unsigned int most = below(g, UVD_COUNT(names) + 1);

	for (unsigned int i = 0; i < most; i++)
		gen_command(g, shape_command(names[i]), command_front(g));
}

void generate(struct program *p, const struct list *list, uint64_t seed)
{
	struct gen g = { .state = seed, .p = p, .list = list };
	unsigned int most;

	memset(p, 0, sizeof(*p));
	snprintf(p->name, sizeof(p->name), SEED "%llu", (unsigned long long)seed);
	if (!chance(&g, 2))
		gen_command(&g, shape_command("GET_CONTEXT"), chance(&g, 80) ? BY_WRITE : BY_INVOKE);
	first_objects(&g);
	most = p->num_calls + 2 + below(&g, 14);
	while (p->num_calls < most && p->num_calls < MAX_CALLS) {
		switch (below(&g, 10)) {
		case 0:
			connect(&g);
			break;
		case 1 ... 3:
			method(&g);
			break;
		default:
			gen_command(&g, any_command(&g), command_front(&g));
			break;
		}
	}
}
