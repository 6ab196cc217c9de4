/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <fnmatch.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "compare.h"

enum { MAX_CHOSEN = 128 };

struct state {
	struct list *list;
	const struct program *p;
	const struct run *kernel, *ours;
	unsigned int call;
	struct difference *first;
	/* Pairs of numbers that the drivers chose: each side's number stands for the other's. */
	unsigned int num_chosen;
	struct {
		uint64_t kernel, ours;
	} chosen[MAX_CHOSEN];
};

const char *result_text(const struct record *r)
{
	static char text[4][32];
	static unsigned int next;
	const char *name = r->err ? strerrorname_np(r->err) : NULL;

	if (name)
		return name;
	if (r->is_ioctl ? r->ret == 0 : r->ret >= 0)
		return "ok";
	next = (next + 1) % 4;
	snprintf(text[next], sizeof(text[next]), "%ld/%d", r->ret, r->err);
	return text[next];
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static bool value_in(const struct record *r, const char *name, uint64_t *value)
{
	for (unsigned int i = 0; i < r->num_values; i++)
		if (!strcmp(r->values[i].name, name)) {
			*value = r->values[i].value;
			return true;
		}
	return false;
}

/* Does an item of the call (!ATTR) corrupt this attribute of an INVOKE_WRITE? */
static bool call_modded(const struct call *call, const char *text)
{
	for (unsigned int i = 0; i < call->num_items; i++)
		if (!strncmp(call->items[i], text, strlen(text)) && call->items[i][strlen(text)] == ':')
			return true;
	return false;
}

/* Finds the method in the sent header: !object and !method can make it another one than the program names. */
static bool asked_method(const struct state *s, struct method_ref *ref)
{
	const struct call *call = &s->p->calls[s->call];
	uint64_t object, method;

	if (call->front == BY_METHOD && value_in(&s->kernel->records[s->call], "object", &object) &&
	    value_in(&s->kernel->records[s->call], "method", &method))
		for (unsigned int i = 0; schema_method_at(i, ref); i++)
			if (ref->object == object && ref->method == method)
				return true;
	return schema_method(call->front == BY_INVOKE ? "INVOKE_WRITE" : call->target, ref) && ref->row;
}

static const char *asked(const struct state *s)
{
	const struct call *call = &s->p->calls[s->call];
	struct method_ref ref;

	return call->front == BY_METHOD && asked_method(s, &ref) ? schema_method_name(ref.row) : call->target;
}

static const char *attr_name(const struct state *s, uint16_t id)
{
	static char text[16];
	struct method_ref ref;

	if (asked_method(s, &ref))
		for (unsigned int a = 0; a < ref.row->num_attrs; a++)
			if (ref.row->attrs[a].id == id)
				return schema_attr_name(&ref.row->attrs[a]);
	snprintf(text, sizeof(text), "#%#x", id);
	return text;
}

/* Returns the name of an item's attribute in the method that the sent header asks for. */
static const char *item_attr(const struct state *s, const char *item)
{
	static char name[MAX_ITEM];
	const struct uvd_attr_row *row = NULL;
	struct method_ref named;

	snprintf(name, sizeof(name), "%s", item);
	name[strcspn(name, "=:")] = 0;
	if (*name == '#')
		return attr_name(s, strtoul(name + 1, NULL, 0));
	if (schema_method(s->p->calls[s->call].target, &named) && named.row)
		row = schema_attr(named.row, name);
	return row ? attr_name(s, row->id) : name;
}

static bool has_attr(const struct state *s, const char *pattern)
{
	const struct call *call = &s->p->calls[s->call];

	for (unsigned int i = 0; i < call->num_items; i++)
		if (!fnmatch(pattern, item_attr(s, call->items[i]), 0))
			return true;
	return false;
}

/* Did call `i` make the QP with this handle? */
static bool makes_qp(const struct state *s, unsigned int i, uint64_t qp)
{
	const struct record *r = &s->kernel->records[i];
	uint64_t value;

	return r->ret >= 0 && list_match("CREATE_QP EX_CREATE_QP QP_CREATE", s->p->calls[i].target) &&
	       (output_of(r, "handle", &value) || value_in(r, "handle", &value)) && value == qp;
}

/* Returns the QP's state before this call: as the last MODIFY_QP set it, else 0 (RESET). UINT64_MAX: no QP. */
static uint64_t qp_now(const struct state *s)
{
	uint64_t qp, value, mask;

	if (!value_in(&s->kernel->records[s->call], "qp_handle", &qp))
		return UINT64_MAX;
	for (unsigned int i = s->call; i-- && !makes_qp(s, i, qp);) {
		const struct record *r = &s->kernel->records[i];

		if (r->ret >= 0 && list_match("MODIFY_QP EX_MODIFY_QP", s->p->calls[i].target) &&
		    value_in(r, "qp_handle", &value) && value == qp && value_in(r, "attr_mask", &mask) && mask & 1 &&
		    value_in(r, "qp_state", &value))
			return value;
	}
	return 0;
}

/* Did an earlier call of `target` succeed on this call's QP? */
static bool qp_after(const struct state *s, const char *target)
{
	uint64_t qp, value;

	if (value_in(&s->kernel->records[s->call], "qp_handle", &qp))
		for (unsigned int i = s->call; i-- && !makes_qp(s, i, qp);)
			if (s->kernel->records[i].ret >= 0 && !strcmp(s->p->calls[i].target, target) &&
			    value_in(&s->kernel->records[i], "qp_handle", &value) && value == qp)
				return true;
	return false;
}

static bool condition(const struct state *s, const char *text)
{
	const struct call *call = &s->p->calls[s->call];
	const struct record *r = &s->kernel->records[s->call];
	size_t len = strcspn(text, "!=&<>");
	char name[64];
	uint64_t value, limit;

	if (*text == '!')
		return call_item(call, text) || call_modded(call, text);
	snprintf(name, sizeof(name), "%.*s", (int)len, text);
	if (!strcmp(name, "with"))
		return has_attr(s, text + len + 1);
	if (!strcmp(name, "qp_now"))
		return list_number(text + len + 1, qp_now(s));
	if (!strcmp(name, "after"))
		return qp_after(s, text + len + 1);
	if (!strcmp(name, "failed"))
		return r->ret < 0;
	if (!strcmp(name, "front"))
		return !strcmp(front_names[call->front], text + len + 1);
	if (!text[len] || (!value_in(r, name, &value) && !output_of(r, name, &value)))
		return false;
	limit = strtoull(text + len + 1 + (text[len] == '!'), NULL, 0);
	switch (text[len]) {
	case '!':
		return value != limit;
	case '=':
		return list_number(text + len + 1, value);
	case '&':
		return value & limit;
	case '<':
		return value < limit;
	default:
		return value > limit;
	}
}

static bool conditions(const struct state *s, const char *when)
{
	char text[128];
	int n;

	for (; sscanf(when, "%127s%n", text, &n) == 1; when += n)
		if (!condition(s, text))
			return false;
	return true;
}

static struct listed *find_listed(const struct state *s, const char *item, const char *kernel, const char *ours)
{
	for (unsigned int i = 0; i < s->list->num; i++) {
		struct listed *row = &s->list->rows[i];

		if (list_match(row->call, asked(s)) && list_match(row->item, item) && list_match(row->kernel, kernel) &&
		    list_match(row->ours, ours) && conditions(s, row->when))
			return row;
	}
	return NULL;
}

/* Returns the difference's row in the list. NULL: it has none, and is recorded as the first unlisted one. */
static struct listed *differs(struct state *s, const char *item, const char *kernel, const char *ours)
{
	struct listed *row = find_listed(s, item, kernel, ours);

	if (row) {
		row->hits++;
		return row;
	}
	s->first->found = true;
	s->first->call = s->call;
	snprintf(s->first->target, sizeof(s->first->target), "%s", s->p->calls[s->call].target);
	snprintf(s->first->item, sizeof(s->first->item), "%s", item);
	snprintf(s->first->kernel, sizeof(s->first->kernel), "%s", kernel);
	snprintf(s->first->ours, sizeof(s->first->ours), "%s", ours);
	return NULL;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static uint64_t number(const uint8_t *bytes, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, bytes, size < 8 ? size : 8);
	return value;
}

static bool is_chosen(const struct state *s, uint64_t kernel, uint64_t ours)
{
	for (unsigned int i = 0; i < s->num_chosen; i++)
		if (s->chosen[i].kernel == kernel && s->chosen[i].ours == ours)
			return true;
	return false;
}

static bool bytes_differ(struct state *s, const char *item, const uint8_t *kernel, const uint8_t *ours, size_t size)
{
	uint64_t k = number(kernel, size), o = number(ours, size);
	char ktext[40] = "bytes", otext[40] = "bytes";
	struct listed *row;

	if (size <= 8) {
		if (is_chosen(s, k, o))
			return true;
		snprintf(ktext, sizeof(ktext), "%#llx", (unsigned long long)k);
		snprintf(otext, sizeof(otext), "%#llx", (unsigned long long)o);
	}
	row = differs(s, item, ktext, otext);
	if (row && row->chosen && size <= 8 && s->num_chosen < MAX_CHOSEN) {
		s->chosen[s->num_chosen].kernel = k;
		s->chosen[s->num_chosen++].ours = o;
	}
	return row;
}

/* Finds the piece of output at offset `at`: its beginning and name. Returns its length. */
static size_t piece_at(const struct record *r, size_t at, size_t *begin, char *name, size_t name_size)
{
	for (unsigned int i = 0; i < r->num_regions; i++) {
		const struct region *region = &r->regions[i];

		if (at < region->at || at >= region->at + region->len)
			continue;
		for (unsigned int f = 0; f < region->fields.n; f++) {
			const struct field *field = &region->fields.f[f];
			size_t stride = region->fields.stride, past = at - region->at;
			size_t left, from = region->at + field->at + (stride ? past / stride * stride : 0);

			if (at < from || at >= from + field->size)
				continue;
			*begin = from;
			snprintf(name, name_size, "%s", field->name);
			left = region->at + region->len - from;
			return field->size < left ? field->size : left;
		}
		*begin = at;
		snprintf(name, name_size, "%s+%#zx", region->name, at - region->at);
		return 1;
	}
	*begin = at;
	snprintf(name, name_size, "beyond+%#zx", at);
	return 1;
}

static bool compare_out(struct state *s, const struct record *k, const struct record *o)
{
	char name[80];
	size_t begin;

	for (size_t at = 0; at < k->out_len; at++) {
		size_t size;

		if (k->out[at] == o->out[at])
			continue;
		size = piece_at(k, at, &begin, name, sizeof(name));
		if (!bytes_differ(s, name, k->out + begin, o->out + begin, size))
			return false;
		at = begin + size - 1;
	}
	return true;
}

static bool compare_msg(struct state *s, const struct record *k, const struct record *o)
{
	static const struct {
		const char *name;
		size_t at, size;
	} parts[] = { { "id", 0, 2 }, { "len", 2, 2 }, { "flags", 4, 2 }, { "elem", 6, 2 }, { "data", 8, 8 } };
	const size_t hdr = sizeof(struct ib_uverbs_ioctl_hdr), size = sizeof(struct ib_uverbs_attr);
	char name[80];

	if (!memcmp(k->msg, o->msg, k->msg_len))
		return true;
	if (!k->is_ioctl || memcmp(k->msg, o->msg, hdr < k->msg_len ? hdr : k->msg_len))
		return differs(s, "header", "bytes", "bytes");
	for (size_t at = hdr; at + size <= k->msg_len; at += size)
		for (unsigned int i = 0; i < UVD_COUNT(parts); i++) {
			const uint8_t *kp = k->msg + at + parts[i].at, *op = o->msg + at + parts[i].at;

			if (!memcmp(kp, op, parts[i].size))
				continue;
			snprintf(name, sizeof(name), "%s.%s", attr_name(s, number(k->msg + at, 2)), parts[i].name);
			if (!bytes_differ(s, name, kp, op, parts[i].size))
				return false;
		}
	return true;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static const char *end_text(const struct run *run, char *text, size_t size)
{
	if (WIFSIGNALED(run->status))
		snprintf(text, size, "%s",
			 WTERMSIG(run->status) == SIGALRM ? HANG : sigabbrev_np(WTERMSIG(run->status)));
	else
		snprintf(text, size, "ended/%d", WEXITSTATUS(run->status));
	return text;
}

/* Returns false if the calls after this one are not to be compared. */
static bool compare_call(struct state *s)
{
	const struct record *k = &s->kernel->records[s->call], *o = &s->ours->records[s->call];
	char kend[32], oend[32];

	if (!k->done || !o->done) {
		differs(s, "result", k->done ? result_text(k) : end_text(s->kernel, kend, sizeof(kend)),
			o->done ? result_text(o) : end_text(s->ours, oend, sizeof(oend)));
		return false;
	}
	if (k->ret != o->ret || k->err != o->err) {
		if (!differs(s, "result", result_text(k), result_text(o)))
			return false;
		return k->ret < 0 && o->ret < 0;
	}
	return compare_msg(s, k, o) && compare_out(s, k, o);
}

void compare(struct list *list, const struct program *p, const struct run *kernel, const struct run *ours,
	     struct difference *first)
{
	struct state s = { .list = list, .p = p, .kernel = kernel, .ours = ours, .first = first };

	memset(first, 0, sizeof(*first));
	for (s.call = 0; s.call < p->num_calls; s.call++)
		if (!compare_call(&s))
			return;
}

bool same_difference(const struct difference *a, const struct difference *b)
{
	return a->found == b->found && !strcmp(a->target, b->target) && !strcmp(a->item, b->item) &&
	       (strcmp(a->item, "result") || (!strcmp(a->kernel, b->kernel) && !strcmp(a->ours, b->ours)));
}

void difference_print(const struct difference *d, FILE *out)
{
	fprintf(out, "call %u, %s: %s is %s with the kernel, %s with uverbsd\n", d->call + 1, d->target, d->item,
		d->kernel, d->ours);
}
