/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Finds the structs of calls, and reads and writes their fields. The tables are generated (structs.py). */
#include "call/call.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

const struct uvd_struct uvd_no_struct = { .name = "",
					  .fields = (const struct uvd_field[]){ {} },
					  .reserved = (const struct uvd_field[]){ {} } };
static const struct uvd_command_fields bytes_only = { "", &uvd_no_struct, &uvd_no_struct };

const struct uvd_command_fields *uvd_command_fields(const char *command)
{
	const struct uvd_command_fields *c = uvd_commands_find(uvd_commands_fields, command);

	return c ? c : &bytes_only;
}

static const struct uvd_cm_command *cm_command(const char *command)
{
	const struct uvd_cm_command *c = uvd_cm_commands;

	while (c->command && strcmp(c->command, command))
		c++;
	return c->command ? c : NULL;
}

const struct uvd_struct *uvd_command_response(const struct uvd_command_fields *c, const uint8_t *request, size_t len)
{
	const struct uvd_cm_command *more = c->command ? cm_command(c->command) : NULL;
	const struct uvd_field *selector = more && more->other ? &c->request->fields[more->selector - 1] : NULL;

	if (!selector || uvd_field_end(selector) > len || uvd_field_get(selector, request) != more->value)
		return c->response;
	return more->other;
}

size_t uvd_cm_response_at(const char *command)
{
	const struct uvd_cm_command *more = cm_command(command);

	return more ? more->response_at : UVD_NO_RESPONSE;
}

const struct uvd_attr_fields *uvd_attr_fields(const char *attr)
{
	static const struct uvd_attr_fields none = {};
	const struct uvd_attr_fields *a = uvd_attrs_find(uvd_attrs_fields, attr);

	return a ? a : &none;
}

const struct uvd_flow_kind *uvd_flow_kind(uint32_t type)
{
	for (const struct uvd_flow_kind *k = uvd_flow_kinds; k->name; k++)
		if (k->type == type)
			return k;
	return NULL;
}

const char *uvd_role_name(enum uvd_role role)
{
	static const char *const names[] = {
		[UVD_ROLE_UNKNOWN] = "unknown",	  [UVD_ROLE_NUMBER] = "number",	  [UVD_ROLE_WORDS] = "words",
		[UVD_ROLE_FLAGS] = "flags",	  [UVD_ROLE_HANDLE] = "handle",	  [UVD_ROLE_FD] = "fd",
		[UVD_ROLE_LKEY] = "lkey",	  [UVD_ROLE_RKEY] = "rkey",	  [UVD_ROLE_QPN] = "qpn",
		[UVD_ROLE_SRQN] = "srqn",	  [UVD_ROLE_WQN] = "wqn",	  [UVD_ROLE_ADDRESS] = "address",
		[UVD_ROLE_IOVA] = "iova",	  [UVD_ROLE_AT] = "at",		  [UVD_ROLE_COUNT] = "count",
		[UVD_ROLE_LOG] = "log",		  [UVD_ROLE_SIZE] = "size",	  [UVD_ROLE_BYTES_OF] = "bytes_of",
		[UVD_ROLE_GID] = "gid",		  [UVD_ROLE_LID] = "lid",	  [UVD_ROLE_COOKIE] = "cookie",
		[UVD_ROLE_BYTES] = "bytes",	  [UVD_ROLE_STRUCT] = "struct",	  [UVD_ROLE_SPECS] = "specs",
		[UVD_ROLE_RESERVED] = "reserved", [UVD_ROLE_PORT] = "port",	  [UVD_ROLE_GID_INDEX] = "gid_index",
		[UVD_ROLE_OWN_GID] = "own_gid",	  [UVD_ROLE_OWN_LID] = "own_lid", [UVD_ROLE_GUID] = "guid",
		[UVD_ROLE_MACHINE] = "machine",	  [UVD_ROLE_TIME] = "time",	  [UVD_ROLE_SHARE] = "share",
		[UVD_ROLE_CAPACITY] = "capacity", [UVD_ROLE_DRIVER] = "driver",	  [UVD_ROLE_SOCKADDR] = "sockaddr",
		[UVD_ROLE_RANDOM] = "random",
	};

	return names[role];
}

bool uvd_role_is_chosen(enum uvd_role role)
{
	return role >= UVD_ROLE_LKEY && role <= UVD_ROLE_WQN;
}

unsigned int uvd_role_needs(enum uvd_role role)
{
	switch (role) {
	case UVD_ROLE_CAPACITY:
		return UVD_SAME_DRIVER;
	case UVD_ROLE_GID:
	case UVD_ROLE_LID:
		return UVD_SAME_PEERS;
	case UVD_ROLE_OWN_GID:
	case UVD_ROLE_OWN_LID:
	case UVD_ROLE_GUID:
	case UVD_ROLE_MACHINE:
	case UVD_ROLE_SHARE:
		return UVD_SAME_MACHINE;
	case UVD_ROLE_TIME:
	case UVD_ROLE_DRIVER:
	case UVD_ROLE_SOCKADDR: /* a port can be one that was free */
	case UVD_ROLE_RANDOM:
		return UVD_SAME_RUN;
	default:
		return 0;
	}
}

/* ---- one field --------------------------------------------------------------------------------------------------- */

size_t uvd_field_bytes(const struct uvd_field *f)
{
	return (size_t)f->size * (f->count ? f->count : 1);
}

size_t uvd_field_end(const struct uvd_field *f)
{
	return f->at + uvd_field_bytes(f);
}

uint64_t uvd_field_get(const struct uvd_field *f, const uint8_t *data)
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

void uvd_field_put(const struct uvd_field *f, uint64_t value, uint8_t *data)
{
	if (f->big)
		value = f->size == 2 ? htobe16(value) : f->size == 4 ? htobe32(value) : htobe64(value);
	memcpy(data + f->at, &value, f->size);
}

/* The number of a field from 1, or 0: NULL. */
static const struct uvd_field *field_numbered(const struct uvd_struct *of, unsigned int number)
{
	return number ? &of->fields[number - 1] : NULL;
}

const struct uvd_field *uvd_field_beside(const struct uvd_struct *of, const struct uvd_field *f)
{
	return field_numbered(of, f->beside);
}

static bool field_is_selected(const struct uvd_field *f, uint64_t by)
{
	return (by & f->select_flags) || (by < 64 && f->select_values >> by & 1);
}

bool uvd_field_is_read(const struct uvd_struct *of, const struct uvd_field *f, const uint8_t *data, size_t len)
{
	const struct uvd_field *selector;

	/* A selector can be in a struct that another one selects: the chain ends at a field that is always read. */
	for (; uvd_field_end(f) <= len; f = selector) {
		selector = field_numbered(of, f->selector);
		if (!selector)
			return true;
		if (uvd_field_end(selector) > len || !field_is_selected(f, uvd_field_get(selector, data)))
			return false;
	}
	return false;
}

bool uvd_field_is_of(const struct uvd_field *f, uint16_t object)
{
	return (f->role == UVD_ROLE_HANDLE || f->role == UVD_ROLE_FD) &&
	       (f->object == object || f->or_object == object);
}

/* ---- a struct ---------------------------------------------------------------------------------------------------- */

const struct uvd_field *uvd_struct_counter(const struct uvd_struct *of, const char *array, enum uvd_role role)
{
	for (const struct uvd_field *f = of->fields; f->name; f++)
		if (f->role == role && f->array && !strcmp(f->array, array))
			return f;
	return NULL;
}

uint64_t uvd_struct_tail_count(const struct uvd_struct *of, const uint8_t *data, size_t len)
{
	const struct uvd_field *count = uvd_struct_counter(of, of->tail, UVD_ROLE_COUNT),
			       *log = uvd_struct_counter(of, of->tail, UVD_ROLE_LOG), *f = count ? count : log;
	uint64_t value;

	if (!f || uvd_field_end(f) > len)
		return UINT64_MAX;
	value = uvd_field_get(f, data);
	if (f == count)
		return value;
	return value < 63 ? UINT64_C(1) << value : UINT64_MAX;
}

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

/* ---- words ------------------------------------------------------------------------------------------------------- */

static const struct uvd_word *word_find(const struct uvd_words *words, const char *text, size_t len)
{
	char name[64];

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
