/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reads and writes structs by the names of their fields. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "script.h"

/* ---- one field --------------------------------------------------------------------------------------------------- */

static bool field_set_array(const struct uvd_script *s, const struct uvd_field *f, const char *text, uint8_t *at)
{
	const size_t len = (size_t)f->size * f->count;
	struct uvd_bytes bytes;
	bool ok;

	if (len == sizeof(struct in6_addr) && inet_pton(AF_INET6, text, at) == 1)
		return true;
	if (f->role == UVD_ROLE_SOCKADDR && uvd_sockaddr_parse(text, at, len))
		return true;
	if (!uvd_value_bytes(s, f->name, text, &bytes))
		return false;
	ok = bytes.len <= len;
	if (ok)
		memcpy(at, bytes.data, bytes.len);
	else
		uvd_script_complain(s, "%s: %zu bytes are given, and it has %zu", f->name, bytes.len, len);
	free(bytes.data);
	return ok;
}

bool uvd_field_set(const struct uvd_script *s, const struct uvd_field *f, const char *text, uint8_t *data)
{
	char number[24];
	uint64_t value;

	if (f->count)
		return field_set_array(s, f, text, data + f->at);
	if (f->words && uvd_words_parse(f->words, text, &value)) {
		snprintf(number, sizeof(number), "%llu", (unsigned long long)value);
		text = number;
	}
	if (!f->big)
		return uvd_value_sized(s, f->name, text, data + f->at, f->size);
	if (!uvd_value_sized(s, f->name, text, &(uint64_t){ 0 }, f->size) ||
	    !uvd_value_number(s, f->name, text, &value))
		return false;
	uvd_field_put(f, value, data);
	return true;
}

void uvd_words_result(json_t *results, const char *name, const struct uvd_words *words, const void *data, size_t len)
{
	char text[UVD_WORDS];
	uint64_t value = 0;

	if (words && len <= sizeof(value)) {
		memcpy(&value, data, len);
		if (uvd_words_format(words, value, text, sizeof(text))) {
			json_object_set_new(results, name, json_string(text));
			return;
		}
	}
	uvd_result_set(results, name, data, len);
}

void uvd_field_result(json_t *results, const char *name, const struct uvd_field *f, const uint8_t *data)
{
	char text[UVD_SOCKADDR_TEXT];
	uint64_t value;

	if (f->role == UVD_ROLE_SOCKADDR && uvd_sockaddr_format(data + f->at, uvd_field_bytes(f), text)) {
		json_object_set_new(results, name, json_string(text));
		return;
	}
	if (f->count) {
		uvd_result_set_hex(results, name, data + f->at, uvd_field_bytes(f));
		return;
	}
	value = uvd_field_get(f, data);
	uvd_words_result(results, name, f->words, &value, sizeof(value));
}

/* ---- a struct ---------------------------------------------------------------------------------------------------- */

static bool set_by_name(const struct uvd_script *s, const char *what, const struct uvd_struct *of, char *pair,
			uint8_t *data)
{
	char *equals = strchr(pair, '=');
	struct uvd_nearest nearest = { .wrong = pair };
	const struct uvd_field *f;

	if (!equals) {
		uvd_script_complain(s, "%s: `%s` is not FIELD=VALUE", what, pair);
		return false;
	}
	*equals = '\0';
	f = uvd_struct_find(of, pair);
	if (f)
		return uvd_field_set(s, f, equals + 1, data);
	for (f = of->fields; f->name; f++)
		uvd_nearest_add(&nearest, f->name);
	uvd_nearest_complain(&nearest, s, what, "field");
	return false;
}

bool uvd_struct_parse(const struct uvd_script *s, const char *what, const struct uvd_struct *of, const char *text,
		      uint8_t *data)
{
	char *copy = strdup(text), *save = NULL;
	bool ok = copy;

	if (!ok)
		uvd_script_complain(s, "%s: ENOMEM", what);
	for (char *pair = ok ? strtok_r(copy, ",", &save) : NULL; pair && ok; pair = strtok_r(NULL, ",", &save))
		ok = set_by_name(s, what, of, pair, data);
	free(copy);
	return ok;
}

void uvd_struct_results(json_t *results, const char *prefix, const struct uvd_struct *of, const uint8_t *data,
			size_t len)
{
	char name[2 * UVD_SHORT_NAME];

	for (const struct uvd_field *f = of->fields; f->name; f++) {
		if (uvd_field_end(f) > len)
			continue;
		snprintf(name, sizeof(name), "%s%s%s", prefix, *prefix ? "." : "", f->name);
		uvd_field_result(results, name, f, data);
	}
}

/* ---- the tables as JSON ------------------------------------------------------------------------------------------ */

static json_t *words_json(const struct uvd_words *words)
{
	json_t *o = json_object();

	for (const struct uvd_word *w = words->words; w->name; w++)
		json_object_set_new(o, w->name, json_integer(w->value));
	return json_pack("{s:b, s:o}", "flags", words->flags, "words", o);
}

/* Returns, as JSON, the field that says if the kernel reads this one, with its flags or its values. */
static json_t *selector_json(const struct uvd_struct *of, const struct uvd_field *f)
{
	json_t *values = json_array();

	for (unsigned int v = 0; v < 64; v++)
		if (f->select_values >> v & 1)
			json_array_append_new(values, json_integer(v));
	return json_pack("{s:s, s:I, s:o}", "field", of->fields[f->selector - 1].name, "flags",
			 (json_int_t)f->select_flags, "values", values);
}

/* Adds the other fields and the objects that a role names. */
static void add_relations(json_t *o, const struct uvd_struct *of, const struct uvd_field *f)
{
	const struct uvd_field *beside = uvd_field_beside(of, f);

	if ((f->role == UVD_ROLE_HANDLE || f->role == UVD_ROLE_FD) && f->object != UVD_NO_OBJECT)
		json_object_set_new(o, "object", json_integer(f->object));
	if (f->array)
		json_object_set_new(o, "array", json_string(f->array));
	if (beside)
		json_object_set_new(o, "beside", json_string(beside->name));
	if (f->selector)
		json_object_set_new(o, "if", selector_json(of, f));
	if (f->optional)
		json_object_set_new(o, "none", json_true());
	if (f->makes)
		json_object_set_new(o, "created", json_true());
}

json_t *uvd_struct_json(const struct uvd_struct *of)
{
	json_t *fields = json_array(), *o;

	for (const struct uvd_field *f = of->fields; f->name; f++) {
		o = json_pack("{s:s, s:i, s:i}", "name", f->name, "at", f->at, "size", f->size);
		if (f->count)
			json_object_set_new(o, "count", json_integer(f->count));
		if (f->big)
			json_object_set_new(o, "big", json_true());
		if (f->role != UVD_ROLE_NUMBER)
			json_object_set_new(o, "role", json_string(uvd_role_name(f->role)));
		add_relations(o, of, f);
		if (f->words)
			json_object_set_new(o, "enum", words_json(f->words));
		json_array_append_new(fields, o);
	}
	o = json_pack("{s:i, s:o}", "size", of->size, "fields", fields);
	if (of->tail)
		json_object_set_new(o, "tail", json_string(of->tail));
	if (of->tail)
		json_object_set_new(o, "tail_role", json_string(uvd_role_name(of->tail_role)));
	if (of->tail_of)
		json_object_set_new(o, "element", uvd_struct_json(of->tail_of));
	return o;
}

json_t *uvd_value_json(const struct uvd_attr_fields *a)
{
	json_t *o = a->of ? uvd_struct_json(a->of) : json_object();

	if (!a->of && a->role != UVD_ROLE_NUMBER)
		json_object_set_new(o, "role", json_string(uvd_role_name(a->role)));
	if (a->words)
		json_object_set_new(o, "enum", words_json(a->words));
	return o;
}

/* The numbers of all roles, by their words. */
static json_t *roles_json(void)
{
	json_t *roles = json_object();

	for (unsigned int role = 0; role < UVD_ROLES; role++)
		json_object_set_new(roles, uvd_role_name(role), json_integer(role));
	return roles;
}

/* Of commands of rdma_cm: where the response's address is, and the response that a field of the request selects. */
static void add_cm_commands(json_t *commands)
{
	for (const struct uvd_cm_command *c = uvd_cm_commands; c->command; c++) {
		json_t *o = json_object_get(commands, c->command);

		if (c->response_at != UVD_NO_RESPONSE)
			json_object_set_new(o, "response_at", json_integer(c->response_at));
		if (c->other)
			json_object_set_new(
				o, "other",
				json_pack("{s:s, s:i, s:o}", "field",
					  uvd_command_fields(c->command)->request->fields[c->selector - 1].name,
					  "value", (int)c->value, "response", uvd_struct_json(c->other)));
	}
}

json_t *uvd_fields_json(void)
{
	json_t *commands = json_object(), *attrs = json_object(), *specs = json_object(), *o;

	for (const struct uvd_command_fields *c = uvd_commands_fields; c->command; c++)
		json_object_set_new(commands, c->command,
				    json_pack("{s:o, s:o}", "request", uvd_struct_json(c->request), "response",
					      uvd_struct_json(c->response)));
	add_cm_commands(commands);
	for (const struct uvd_attr_fields *a = uvd_attrs_fields; a->attr; a++) {
		o = uvd_value_json(a);
		if (json_object_size(o))
			json_object_set_new(attrs, a->attr, o);
		else
			json_decref(o);
	}
	for (const struct uvd_flow_kind *f = uvd_flow_kinds; f->name; f++) {
		o = uvd_struct_json(f->of);
		json_object_set_new(o, "type", json_integer(f->type));
		json_object_set_new(specs, f->name, o);
	}
	return json_pack("{s:o, s:o, s:o, s:o}", "commands", commands, "attributes", attrs, "specs", specs, "roles",
			 roles_json());
}
