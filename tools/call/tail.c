/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The flexible array at the end of a command's request, which repeated arguments fill. */
#include <rdma/ib_user_verbs.h>
#include <stdlib.h>
#include <string.h>

#include "script.h"

enum { MAX_TAIL = 0xffff };

/* The array of scatter/gather elements behind work requests (src/call/roles.txt). */
#define SGE "sge"

static const struct uvd_field *tail_num_sge(const struct uvd_tail *tail)
{
	return tail->of->tail_of ? uvd_struct_counter(tail->of->tail_of, SGE, UVD_ROLE_COUNT) : NULL;
}

static bool is_sge(const struct uvd_tail *tail, const char *word)
{
	return tail_num_sge(tail) && uvd_names_equal(word, SGE);
}

bool uvd_tail_is_called(const struct uvd_tail *tail, const char *word)
{
	return tail->of->tail && (uvd_names_equal(word, tail->of->tail) || is_sge(tail, word));
}

/* Makes room for `len` more bytes of zeros. Returns them, or NULL after a message. */
static uint8_t *tail_grow(struct uvd_bytes *bytes, const struct uvd_script *s, const char *what, size_t len)
{
	uint8_t *more = bytes->len + len <= MAX_TAIL ? realloc(bytes->data, bytes->len + len) : NULL;

	if (!more) {
		uvd_script_complain(s, "%s: more than %u bytes", what, MAX_TAIL);
		return NULL;
	}
	bytes->data = more;
	bytes->len += len;
	return memset(more + bytes->len - len, 0, len);
}

static bool tail_add_struct(struct uvd_tail *tail, const struct uvd_script *s, const char *word, const char *text)
{
	const struct uvd_struct *of = tail->of->tail_of;
	uint8_t *data = tail_grow(&tail->elements, s, word, of->size);
	uint32_t num_sge = 0;

	if (!data || !uvd_struct_parse(s, word, of, text, data))
		return false;
	if (tail_num_sge(tail))
		memcpy(&num_sge, data + tail_num_sge(tail)->at, sizeof(num_sge));
	tail->counts_sges = !num_sge;
	tail->num++;
	return true;
}

/* A scatter/gather element belongs to the work request before it. */
static bool tail_add_sge(struct uvd_tail *tail, const struct uvd_script *s, const char *word, const char *text)
{
	const struct uvd_struct *of = uvd_attr_fields("UVERBS_ATTR_ADVISE_MR_SGE_LIST")->of;
	uint8_t *data, *last;
	uint32_t num_sge;

	if (!tail->num) {
		uvd_script_complain(s, "%s: it must follow a --%s", word, tail->of->tail);
		return false;
	}
	data = tail_grow(&tail->sges, s, word, of->size);
	if (!data || !uvd_struct_parse(s, word, of, text, data))
		return false;
	tail->num_sges++;
	if (!tail->counts_sges)
		return true;
	last = tail->elements.data + tail->elements.len - tail->of->tail_of->size + tail_num_sge(tail)->at;
	memcpy(&num_sge, last, sizeof(num_sge));
	num_sge++;
	memcpy(last, &num_sge, sizeof(num_sge));
	return true;
}

/* The value is TYPE:FIELD=VALUE,... */
static bool tail_add_spec(struct uvd_tail *tail, const struct uvd_script *s, const char *word, const char *text)
{
	const size_t len = strcspn(text, ":");
	char *name = strndup(text, len);
	struct uvd_nearest nearest = { .wrong = name ? name : "" };
	const struct uvd_flow_kind *spec = uvd_flow_kinds;
	struct ib_uverbs_flow_spec_hdr hdr = {};
	uint8_t *data;

	for (; spec->name && !uvd_names_equal(spec->name, nearest.wrong); spec++)
		uvd_nearest_add(&nearest, spec->name);
	if (!spec->name)
		uvd_nearest_complain(&nearest, s, word, "type");
	free(name);
	data = spec->name ? tail_grow(&tail->elements, s, word, spec->of->size) : NULL;
	if (!data)
		return false;
	hdr.type = spec->type;
	hdr.size = spec->of->size;
	memcpy(data, &hdr, sizeof(hdr));
	tail->num++;
	return uvd_struct_parse(s, word, spec->of, text[len] ? text + len + 1 : "", data);
}

static bool tail_add_numbers(struct uvd_tail *tail, const struct uvd_script *s, const char *word, const char *text)
{
	char *copy = strdup(text), *save = NULL;
	bool ok = copy;

	for (char *number = ok ? strtok_r(copy, ",", &save) : NULL; number && ok; number = strtok_r(NULL, ",", &save)) {
		uint8_t *data = tail_grow(&tail->elements, s, word, sizeof(uint32_t));

		ok = data && uvd_value_sized(s, word, number, data, sizeof(uint32_t));
		tail->num++;
	}
	free(copy);
	return ok;
}

bool uvd_tail_add(struct uvd_tail *tail, const struct uvd_script *s, const char *word, const char *text)
{
	if (is_sge(tail, word))
		return tail_add_sge(tail, s, word, text);
	if (tail->of->tail_of)
		return tail_add_struct(tail, s, word, text);
	if (tail->of->tail_role == UVD_ROLE_SPECS)
		return tail_add_spec(tail, s, word, text);
	return tail_add_numbers(tail, s, word, text);
}

bool uvd_tail_count(const struct uvd_tail *tail, const struct uvd_field *f, uint64_t *value)
{
	switch (f->role) {
	case UVD_ROLE_COUNT:
		*value = strcmp(f->array, SGE) ? tail->num : tail->num_sges;
		return true;
	case UVD_ROLE_SIZE:
		*value = tail->of->tail_of->size;
		return true;
	case UVD_ROLE_BYTES_OF:
		*value = tail->elements.len;
		return true;
	case UVD_ROLE_LOG:
		for (*value = 0; 2ull << *value <= tail->num;)
			++*value;
		return true;
	default:
		return false;
	}
}

void uvd_tail_copy(const struct uvd_tail *tail, uint8_t *to)
{
	if (tail->elements.len)
		memcpy(to, tail->elements.data, tail->elements.len);
	if (tail->sges.len)
		memcpy(to + tail->elements.len, tail->sges.data, tail->sges.len);
}

void uvd_tail_free(struct uvd_tail *tail)
{
	free(tail->elements.data);
	free(tail->sges.data);
}
