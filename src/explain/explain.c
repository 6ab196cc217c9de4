/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <arpa/inet.h>
#include <endian.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include "explain/explain.h"
#include "util/util.h"

const struct uvd_reason uvd_reasons[UVD_NUM_REASONS] = {
#define UVD_REASON(name, code, text, remedy, source) [UVD_WHY_##name] = { code, text, remedy, source },
#include "explain/reasons.h"
#undef UVD_REASON
};

/* ---- the values of a reason's texts ------------------------------------------------------------------------------- */

enum { NAME_MAX_BYTES = 16, VALUE_TEXT = 256 };

/* {NAME:FORM} in a text, and the value that it stands for. */
struct explain_slot {
	char name[NAME_MAX_BYTES], form[NAME_MAX_BYTES];
	unsigned int value; /* the index */
};

struct explain_names {
	char names[UVD_WHY_VALUES][NAME_MAX_BYTES];
	unsigned int num; /* values that have names so far: of a GID, only the first has one */
};

/* Reads the slot that begins at `at`. Returns what follows it, or NULL: it is not one. */
static const char *slot_read(const char *at, struct explain_slot *slot)
{
	int end = 0;

	slot->form[0] = 0;
	if (sscanf(at, "{%15[a-z_]:%15[a-z]}%n", slot->name, slot->form, &end) == 2 && end)
		return at + end;
	slot->form[0] = 0;
	return sscanf(at, "{%15[a-z_]}%n", slot->name, &end) == 1 && end ? at + end : NULL;
}

/* Finds the slot's value, which is the next one if the name is new. Returns false if there are too many names. */
static bool slot_find(struct explain_slot *slot, struct explain_names *known)
{
	const unsigned int takes = strcmp(slot->form, "gid") ? 1 : 2;

	for (slot->value = 0; slot->value < known->num; slot->value++)
		if (!strcmp(known->names[slot->value], slot->name))
			return true;
	if (known->num + takes > UVD_WHY_VALUES)
		return false;
	strcpy(known->names[known->num], slot->name);
	if (takes == 2)
		known->names[known->num + 1][0] = 0;
	known->num += takes;
	return true;
}

static void time_text(char *out, size_t size, uint64_t ns)
{
	if (ns < 10000)
		snprintf(out, size, "%llu ns", (unsigned long long)ns);
	else if (ns < 10000000)
		snprintf(out, size, "%llu us", (unsigned long long)ns / 1000);
	else if (ns < 10000000000)
		snprintf(out, size, "%llu ms", (unsigned long long)ns / 1000000);
	else
		snprintf(out, size, "%llu s", (unsigned long long)ns / 1000000000);
}

static void gid_text(char *out, size_t size, const union uvd_why_value *halves)
{
	uint64_t raw[2] = { htobe64(halves[0].number), htobe64(halves[1].number) };

	inet_ntop(AF_INET6, raw, out, size);
}

static void states_text(char *out, size_t size, uint64_t mask)
{
	size_t len = 0;

	*out = 0;
	for (unsigned int state = 0; mask && state < 64 && len < size; state++) {
		const char *between = !len ? "" : mask >> state == 1 ? " and " : ", ";

		if (!(mask >> state & 1))
			continue;
		mask &= ~(1ull << state);
		len += snprintf(out + len, size - len, "%s%s", between, uvd_name_of(uvd_qp_state_names, state));
	}
}

/* Writes a value as its form says. */
static void value_text(char *out, size_t size, const char *form, const union uvd_why_value *value)
{
	if (!*form)
		snprintf(out, size, "%llu", (unsigned long long)value->number);
	else if (!strcmp(form, "d"))
		snprintf(out, size, "%lld", (long long)value->number);
	else if (!strcmp(form, "x"))
		snprintf(out, size, "0x%llx", (unsigned long long)value->number);
	else if (!strcmp(form, "s"))
		snprintf(out, size, "%s", value->word ?: "?");
	else if (!strcmp(form, "time"))
		time_text(out, size, value->number);
	else if (!strcmp(form, "state"))
		snprintf(out, size, "%s", uvd_name_of(uvd_qp_state_names, value->number));
	else if (!strcmp(form, "states"))
		states_text(out, size, value->number);
	else if (!strcmp(form, "attrs"))
		uvd_flag_names(uvd_qp_attr_names, value->number, ", ", out, size);
	else if (!strcmp(form, "access"))
		uvd_flag_names(uvd_access_flag_names, value->number, ", ", out, size);
	else if (!strcmp(form, "gid"))
		gid_text(out, size, value);
	else
		snprintf(out, size, "?");
}

/* ---- text --------------------------------------------------------------------------------------------------------- */

struct explain_out {
	char *at;
	size_t size, len;
};

__attribute__((format(printf, 2, 3))) static void out_add(struct explain_out *out, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(out->at + out->len, out->size - out->len, fmt, ap);
	va_end(ap);
	if (n > 0)
		out->len += (size_t)n < out->size - out->len ? (size_t)n : out->size - out->len - 1;
}

/* Adds a text of a reason, with the values in it. */
static void out_template(struct explain_out *out, const char *text, const struct uvd_why *why,
			 struct explain_names *known)
{
	while (*text) {
		struct explain_slot slot;
		const char *next = *text == '{' ? slot_read(text, &slot) : NULL;
		char value[VALUE_TEXT] = "?";

		if (!next) {
			out_add(out, "%c", *text++);
			continue;
		}
		if (slot_find(&slot, known))
			value_text(value, sizeof(value), slot.form, &why->values[slot.value]);
		out_add(out, "%s", value);
		text = next;
	}
}

static void out_why(struct explain_out *out, const struct uvd_why *why)
{
	struct explain_names known = { .num = 0 };

	if (!why->reason)
		return;
	out_template(out, why->reason->text, why, &known);
	if (!why->reason->remedy)
		return;
	out_add(out, "; ");
	out_template(out, why->reason->remedy, why, &known);
}

size_t uvd_why_text(char *out, size_t size, const struct uvd_why *why)
{
	struct explain_out o = { out, size, 0 };

	*out = 0;
	out_why(&o, why);
	return o.len;
}

static void out_completion(struct explain_out *out, const struct uvd_explained *e)
{
	out_add(out, "%s", e->is_recv ? "receive" : uvd_name_of(uvd_wr_opcode_names, e->opcode));
	if (e->length || !e->is_recv)
		out_add(out, " of %u bytes", e->length);
	out_add(out, ", wr_id 0x%llx: %s", (unsigned long long)e->wr_id, uvd_name_of(uvd_wc_status_names, e->status));
}

size_t uvd_explained_text(char *out, size_t size, const struct uvd_explained *e)
{
	struct explain_out o = { out, size, 0 };

	*out = 0;
	if (e->object && e->kind != UVD_EXPLAINED_CALL)
		out_add(&o, "%s 0x%x: ", e->object, e->number);
	if (e->kind == UVD_EXPLAINED_COMPLETION)
		out_completion(&o, e);
	else if (e->kind == UVD_EXPLAINED_EVENT)
		out_add(&o, "event %s", uvd_name_of(uvd_event_names, e->event));
	else if (e->kind == UVD_EXPLAINED_DROP)
		out_add(&o, "a message is dropped");
	else
		out_add(&o, "%s: %s", e->verb ?: "?", uvd_errno_name(e->err));
	if (e->object && e->kind == UVD_EXPLAINED_CALL)
		out_add(&o, ": %s 0x%x", e->object, e->number);
	if (e->why.reason) {
		out_add(&o, ": ");
		out_why(&o, &e->why);
	}
	return o.len;
}

/* ---- JSON --------------------------------------------------------------------------------------------------------- */

/* Adds the values of a text, by name: numbers as they are, others as the text has them. */
static void json_values(json_t *values, const char *text, const struct uvd_why *why, struct explain_names *known)
{
	for (const char *at = strchr(text, '{'); at; at = strchr(at + 1, '{')) {
		struct explain_slot slot;
		char value[VALUE_TEXT];

		if (!slot_read(at, &slot) || !slot_find(&slot, known))
			continue;
		value_text(value, sizeof(value), slot.form, &why->values[slot.value]);
		if (!slot.form[0] || !strcmp(slot.form, "d") || !strcmp(slot.form, "time"))
			json_object_set_new(values, slot.name, json_integer(why->values[slot.value].number));
		else
			json_object_set_new(values, slot.name, json_string(value));
	}
}

static void json_why(json_t *o, const struct uvd_why *why)
{
	struct explain_names known = { .num = 0 };
	char text[UVD_EXPLAINED_TEXT];
	json_t *values = json_object();

	if (why->reason) {
		uvd_why_text(text, sizeof(text), why);
		json_object_set_new(o, "reason", json_string(why->reason->code));
		json_object_set_new(o, "text", json_string(text));
		json_values(values, why->reason->text, why, &known);
		if (why->reason->remedy)
			json_values(values, why->reason->remedy, why, &known);
	}
	json_object_set_new(o, "values", values);
}

static void json_completion(json_t *o, const struct uvd_explained *e)
{
	json_object_set_new(o, "status", json_sprintf("IBV_WC_%s", uvd_name_of(uvd_wc_status_names, e->status)));
	json_object_set_new(o, "operation",
			    json_string(e->is_recv ? "receive" : uvd_name_of(uvd_wr_opcode_names, e->opcode)));
	json_object_set_new(o, "wr_id", json_sprintf("0x%llx", (unsigned long long)e->wr_id));
	json_object_set_new(o, "length", json_integer(e->length));
}

static json_t *explained_json(const struct uvd_explained *e, const char *device, pid_t pid)
{
	static const char *const kinds[] = { "completion", "call", "event", "drop" };
	json_t *o = json_object();

	json_object_set_new(o, "explains", json_string(kinds[e->kind]));
	json_object_set_new(o, "device", json_string(device));
	json_object_set_new(o, "pid", json_integer(pid));
	if (e->object) {
		json_object_set_new(o, "object", json_string(e->object));
		json_object_set_new(o, "number", json_integer(e->number));
	}
	if (e->kind == UVD_EXPLAINED_COMPLETION)
		json_completion(o, e);
	else if (e->kind == UVD_EXPLAINED_EVENT)
		json_object_set_new(o, "event", json_sprintf("IBV_EVENT_%s", uvd_name_of(uvd_event_names, e->event)));
	else if (e->kind == UVD_EXPLAINED_CALL) {
		json_object_set_new(o, "verb", json_string(e->verb ?: "?"));
		json_object_set_new(o, "errno", json_string(uvd_errno_name(e->err)));
	}
	json_why(o, &e->why);
	return o;
}

size_t uvd_explained_json(char *out, size_t size, const struct uvd_explained *e, const char *device, pid_t pid)
{
	json_t *o = explained_json(e, device, pid);
	size_t len = json_dumpb(o, out, size - 1, JSON_COMPACT | JSON_PRESERVE_ORDER);

	json_decref(o);
	/* Longer than the buffer, or no memory: no half object. */
	if (len > size - 1)
		len = 0;
	out[len] = 0;
	return len;
}
