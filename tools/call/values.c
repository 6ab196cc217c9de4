/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Values of attributes as text: numbers, bytes and variables; and outputs as numbers or hexadecimal. */
#include <ctype.h>
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "script.h"

enum { MAX_BYTES = 0xffff };

/* ---- variables --------------------------------------------------------------------------------------------------- */

const struct uvd_variable *uvd_variable_find(const struct uvd_script *s, const char *name)
{
	for (size_t i = 0; i < s->num_variables; i++)
		if (!strcmp(s->variables[i].name, name))
			return &s->variables[i];
	return NULL;
}

/* Adds an entry without a name. Returns NULL after a message. */
static struct uvd_variable *add_variable(struct uvd_script *s)
{
	struct uvd_variable *more = realloc(s->variables, (s->num_variables + 1) * sizeof(*more));

	if (!more) {
		uvd_script_complain(s, "ENOMEM");
		return NULL;
	}
	s->variables = more;
	return &more[s->num_variables++];
}

bool uvd_variable_set(struct uvd_script *s, const char *name, int64_t value, void *memory)
{
	struct uvd_variable *v = (struct uvd_variable *)uvd_variable_find(s, name);

	/* A call may have registered the memory of a variable, so it stays until the end, without its name. */
	if (v && v->memory)
		v->name[0] = '\0';
	if (!v || v->memory)
		v = add_variable(s);
	if (!v)
		return false;
	*v = (struct uvd_variable){ .value = value, .memory = memory };
	snprintf(v->name, sizeof(v->name), "%s", name);
	return true;
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* Decimal, or hexadecimal after 0x. */
static bool value_parse_number(const char *text, uint64_t *value)
{
	const char *digits = *text == '-' ? text + 1 : text;
	const int base = !strncasecmp(digits, "0x", 2) ? 16 : 10;
	char *end;

	if (!isdigit((unsigned char)*digits))
		return false;
	errno = 0;
	*value = digits > text ? (uint64_t)strtoll(text, &end, base) : strtoull(text, &end, base);
	return !errno && !*end;
}

/* The id of an object or the number of a command, by the name that the tree has: for INFO_HANDLES and INVOKE_WRITE. */
static bool number_of_row(const struct uvd_script *s, const char *text, uint64_t *value)
{
	for (size_t i = 0; i < s->view.num; i++) {
		const struct uverbsd_tree_row *row = &s->view.entries[i].row;

		if ((row->kind != UVERBSD_TREE_OBJECT && row->kind != UVERBSD_TREE_COMMAND) ||
		    !uvd_names_equal(row->name, text))
			continue;
		*value = row->id;
		if (row->kind == UVERBSD_TREE_COMMAND && row->flags & UVERBSD_TREE_COMMAND_EX)
			*value |= IB_USER_VERBS_CMD_FLAG_EXTENDED;
		return true;
	}
	return false;
}

bool uvd_value_number(const struct uvd_script *s, const char *what, const char *text, uint64_t *value)
{
	const struct uvd_variable *v;

	if (*text == '$') {
		v = uvd_variable_find(s, text + 1);
		if (!v)
			uvd_script_complain(s, "%s: no line has set `%s`", what, text);
		else
			*value = v->value;
		return v;
	}
	if (value_parse_number(text, value) || number_of_row(s, text, value))
		return true;
	uvd_script_complain(s, "%s: `%s` is not a number", what, text);
	return false;
}

bool uvd_is_number_size(size_t size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

/* A negative number is valid if it fits the signed type. */
static bool number_fits(uint64_t value, size_t size)
{
	const uint64_t half = size < 8 ? 1ull << (size * 8 - 1) : 0;

	return size >= 8 || value < 2 * half || value >= -half;
}

static void put_number(void *to, uint64_t value, size_t size)
{
	const uint8_t one = value;
	const uint16_t two = value;
	const uint32_t four = value;

	memcpy(to,
	       size == 1   ? (void *)&one
	       : size == 2 ? (void *)&two
	       : size == 4 ? (void *)&four
			   : (void *)&value,
	       size);
}

bool uvd_value_sized(const struct uvd_script *s, const char *what, const char *text, void *to, size_t size)
{
	uint64_t value;

	if (!uvd_value_number(s, what, text, &value))
		return false;
	if (!number_fits(value, size)) {
		uvd_script_complain(s, "%s: `%s` does not fit into %zu bytes", what, text, size);
		return false;
	}
	put_number(to, value, size);
	return true;
}

bool uvd_value_size(const struct uvd_script *s, const char *what, const char *text, size_t *size)
{
	uint64_t value;

	if (!uvd_value_number(s, what, text, &value))
		return false;
	if (value > MAX_BYTES) {
		uvd_script_complain(s, "%s: the size `%s` is above %u bytes", what, text, MAX_BYTES);
		return false;
	}
	*size = value;
	return true;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static bool append(const struct uvd_script *s, const char *what, struct uvd_bytes *to, const void *data, size_t len)
{
	if (to->len + len > MAX_BYTES) {
		uvd_script_complain(s, "%s: more than %u bytes", what, MAX_BYTES);
		return false;
	}
	memcpy(to->data + to->len, data, len);
	to->len += len;
	return true;
}

static bool append_hex(const struct uvd_script *s, const char *what, const char *part, struct uvd_bytes *to)
{
	const char *p = !strncmp(part, "0x", 2) ? part + 2 : part;
	unsigned int byte;

	for (; *p; p += 2) {
		if (!isxdigit((unsigned char)p[0]) || !isxdigit((unsigned char)p[1])) {
			uvd_script_complain(s, "%s: `%s` is neither pairs of hexadecimal digits nor u32:1,2,3", what,
					    part);
			return false;
		}
		sscanf(p, "%2x", &byte);
		if (!append(s, what, to, &(uint8_t){ byte }, 1))
			return false;
	}
	return true;
}

static bool append_numbers(const struct uvd_script *s, const char *what, char *list, size_t size, struct uvd_bytes *to)
{
	char *save = NULL;
	uint64_t number;

	for (char *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save))
		if (!uvd_value_sized(s, what, word, &number, size) || !append(s, what, to, &number, size))
			return false;
	return true;
}

static bool append_part(const struct uvd_script *s, const char *what, char *part, struct uvd_bytes *to)
{
	static const struct {
		const char *prefix;
		size_t size;
	} kinds[] = { { "u8:", 1 }, { "u16:", 2 }, { "u32:", 4 }, { "u64:", 8 } };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strncmp(part, kinds[i].prefix, strlen(kinds[i].prefix)))
			return append_numbers(s, what, part + strlen(kinds[i].prefix), kinds[i].size, to);
	return append_hex(s, what, part, to);
}

bool uvd_value_bytes(const struct uvd_script *s, const char *what, const char *text, struct uvd_bytes *bytes)
{
	char *copy = strdup(text), *save = NULL;
	bool ok = true;

	*bytes = (struct uvd_bytes){ .data = calloc(1, MAX_BYTES + 1) };
	if (!copy || !bytes->data) {
		uvd_script_complain(s, "%s: ENOMEM", what);
		ok = false;
	}
	for (char *part = ok ? strtok_r(copy, "+", &save) : NULL; part && ok; part = strtok_r(NULL, "+", &save))
		ok = append_part(s, what, part, bytes);
	free(copy);
	if (ok)
		return true;
	free(bytes->data);
	bytes->data = NULL;
	return false;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static json_t *hex_json(const uint8_t *data, size_t len)
{
	char *text = malloc(2 * len + 1);
	json_t *json;

	if (!text)
		return json_null();
	for (size_t i = 0; i < len; i++)
		sprintf(text + 2 * i, "%02x", data[i]);
	text[2 * len] = '\0';
	json = json_string(text);
	free(text);
	return json;
}

/* JSON integers of jansson are signed: the largest numbers become text. */
static json_t *number_json(uint64_t value)
{
	char text[24];

	if (value <= INT64_MAX)
		return json_integer(value);
	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)value);
	return json_string(text);
}

size_t uvd_used_len(const uint8_t *data, size_t len, size_t min_len)
{
	while (len > min_len && !data[len - 1])
		len--;
	return (len + 3) / 4 * 4;
}

void uvd_result_set_hex(json_t *results, const char *name, const void *data, size_t len)
{
	json_object_set_new(results, name, hex_json(data, len));
}

void uvd_result_set(json_t *results, const char *name, const void *data, size_t len)
{
	uint8_t one = 0;
	uint16_t two = 0;
	uint32_t four = 0;
	uint64_t eight = 0;

	if (!uvd_is_number_size(len)) {
		uvd_result_set_hex(results, name, data, len);
		return;
	}
	memcpy(len == 1	  ? (void *)&one
	       : len == 2 ? (void *)&two
	       : len == 4 ? (void *)&four
			  : (void *)&eight,
	       data, len);
	json_object_set_new(results, name, number_json(eight + four + two + one));
}
