/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reads and writes structs by the names of their fields. The tables are generated (call_structs.py). */
#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"

static const struct uvd_struct no_struct = { .fields = (const struct uvd_field[]){ {} } };
static const struct uvd_command_fields bytes_only = { "", &no_struct, &no_struct };

const struct uvd_command_fields *uvd_command_fields(const char *command)
{
	for (const struct uvd_command_fields *c = uvd_commands_fields; c->command; c++)
		if (!strcmp(c->command, command))
			return c;
	return &bytes_only;
}

const struct uvd_attr_fields *uvd_attr_fields(const char *attr)
{
	static const struct uvd_attr_fields none = {};

	for (const struct uvd_attr_fields *a = uvd_attrs_fields; a->attr; a++)
		if (!strcmp(a->attr, attr))
			return a;
	return &none;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static const struct uvd_word *word_find(const struct uvd_words *words, const char *text, size_t len)
{
	char name[UVD_SHORT_NAME];

	snprintf(name, sizeof(name), "%.*s", (int)len, text);
	for (const struct uvd_word *w = words->words; w->name; w++)
		if (uvd_names_equal(w->name, name))
			return w;
	return NULL;
}

/* Flags without a word are a number: "SM|0x100". */
static bool flags_number(const struct uvd_words *words, const char *text, size_t len, uint64_t *value)
{
	char *end;

	*value = strtoull(text, &end, 16);
	return words->flags && !strncmp(text, "0x", 2) && len > 2 && end == text + len;
}

bool uvd_words_parse(const struct uvd_words *words, const char *text, uint64_t *value)
{
	const struct uvd_word *word;
	uint64_t number;
	size_t len;

	*value = 0;
	for (;; text += len + 1) {
		len = words->flags ? strcspn(text, "|") : strlen(text);
		word = word_find(words, text, len);
		if (!word && !flags_number(words, text, len, &number))
			return false;
		*value |= word ? word->value : number;
		if (!text[len])
			return true;
	}
}

/* Appends a flag to text, if it fits. */
static void add_flag(char *text, size_t size, const char *name)
{
	const size_t len = strlen(text);

	snprintf(text + len, size - len, "%s%s", len ? "|" : "", name);
}

bool uvd_words_format(const struct uvd_words *words, uint64_t value, char *text, size_t size)
{
	uint64_t rest = value;
	char number[24];

	*text = '\0';
	for (const struct uvd_word *w = words->words; w->name; w++) {
		if (words->flags ? !w->value || (rest & w->value) != w->value : w->value != value)
			continue;
		add_flag(text, size, w->name);
		if (!words->flags)
			return true;
		rest &= ~w->value;
	}
	if (!*text)
		return false;
	snprintf(number, sizeof(number), "0x%llx", (unsigned long long)rest);
	if (rest)
		add_flag(text, size, number);
	return true;
}

/* ---- one field --------------------------------------------------------------------------------------------------- */

static uint64_t turn_bytes(uint64_t value, size_t size)
{
	return size == 2 ? htobe16(value) : size == 4 ? htobe32(value) : htobe64(value);
}

static bool field_set_array(const struct uvd_script *s, const struct uvd_field *f, const char *text, uint8_t *at)
{
	const size_t len = (size_t)f->size * f->count;
	struct uvd_bytes bytes;
	bool ok;

	if (len == sizeof(struct in6_addr) && inet_pton(AF_INET6, text, at) == 1)
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
	value = turn_bytes(value, f->size);
	memcpy(data + f->at, &value, f->size);
	return true;
}

void uvd_field_put(const struct uvd_field *f, uint64_t value, uint8_t *data)
{
	memcpy(data + f->at, &value, f->size);
}

static uint64_t field_number(const struct uvd_field *f, const uint8_t *data)
{
	uint8_t one;
	uint16_t two;
	uint32_t four;
	uint64_t eight;

	switch (f->size) {
	case 1:
		memcpy(&one, data + f->at, sizeof(one));
		return one;
	case 2:
		memcpy(&two, data + f->at, sizeof(two));
		return f->big ? be16toh(two) : two;
	case 4:
		memcpy(&four, data + f->at, sizeof(four));
		return f->big ? be32toh(four) : four;
	default:
		memcpy(&eight, data + f->at, sizeof(eight));
		return f->big ? be64toh(eight) : eight;
	}
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

static void field_result(json_t *results, const char *name, const struct uvd_field *f, const uint8_t *data)
{
	uint64_t value;

	if (f->count) {
		uvd_result_set_hex(results, name, data + f->at, (size_t)f->size * f->count);
		return;
	}
	value = field_number(f, data);
	uvd_words_result(results, name, f->words, &value, sizeof(value));
}

/* ---- a struct ---------------------------------------------------------------------------------------------------- */

static const struct uvd_field *field_by_end(const struct uvd_struct *of, const char *word, unsigned int *num)
{
	const struct uvd_field *found = NULL;

	*num = 0;
	for (const struct uvd_field *f = of->fields; f->name; f++) {
		const size_t len = strlen(f->name), n = strlen(word);

		if (len <= n || f->name[len - n - 1] != '.' || !uvd_names_equal(f->name + len - n, word))
			continue;
		found = f;
		(*num)++;
	}
	return found;
}

const struct uvd_field *uvd_struct_find(const struct uvd_struct *of, const char *word)
{
	const struct uvd_field *found;
	unsigned int num;

	for (const struct uvd_field *f = of->fields; f->name; f++)
		if (uvd_names_equal(f->name, word))
			return f;
	found = field_by_end(of, word, &num);
	return num == 1 ? found : NULL;
}

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
		if (f->at + (size_t)f->size * (f->count ? f->count : 1) > len)
			continue;
		snprintf(name, sizeof(name), "%s%s%s", prefix, *prefix ? "." : "", f->name);
		field_result(results, name, f, data);
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

static json_t *struct_json(const struct uvd_struct *of)
{
	json_t *fields = json_array(), *o;

	for (const struct uvd_field *f = of->fields; f->name; f++) {
		o = json_pack("{s:s, s:i, s:i}", "name", f->name, "at", f->at, "size", f->size);
		if (f->count)
			json_object_set_new(o, "count", json_integer(f->count));
		if (f->big)
			json_object_set_new(o, "big", json_true());
		if (f->none)
			json_object_set_new(o, "none", json_true());
		if (f->created)
			json_object_set_new(o, "created", json_true());
		if (f->words)
			json_object_set_new(o, "enum", words_json(f->words));
		json_array_append_new(fields, o);
	}
	o = json_pack("{s:i, s:o}", "size", of->size, "fields", fields);
	if (of->tail)
		json_object_set_new(o, "tail", json_string(of->tail));
	if (of->tail_of)
		json_object_set_new(o, "element", struct_json(of->tail_of));
	return o;
}

json_t *uvd_fields_json(void)
{
	json_t *commands = json_object(), *attrs = json_object(), *specs = json_object(), *o;

	for (const struct uvd_command_fields *c = uvd_commands_fields; c->command; c++)
		json_object_set_new(commands, c->command,
				    json_pack("{s:o, s:o}", "request", struct_json(c->request), "response",
					      struct_json(c->response)));
	for (const struct uvd_attr_fields *a = uvd_attrs_fields; a->attr; a++) {
		o = a->of ? struct_json(a->of) : json_object();
		if (a->words)
			json_object_set_new(o, "enum", words_json(a->words));
		json_object_set_new(attrs, a->attr, o);
	}
	for (const struct uvd_flow_kind *f = uvd_flow_kinds; f->name; f++) {
		o = struct_json(f->of);
		json_object_set_new(o, "type", json_integer(f->type));
		json_object_set_new(specs, f->name, o);
	}
	return json_pack("{s:o, s:o, s:o}", "commands", commands, "attributes", attrs, "specs", specs);
}
