/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "record.h"

#include <string.h>

void uvd_prog_note(struct uvd_prog_record *r, const char *name, const uint8_t *from, size_t size)
{
	char begin[48];
	struct uvd_prog_value *v;
	unsigned int n;

	for (n = 0; n < r->num_values && strcmp(r->values[n].name, name); n++)
		;
	if (n == UVD_PROG_MAX_VALUES)
		return;
	v = &r->values[n];
	if (n == r->num_values)
		r->num_values++;
	snprintf(v->name, sizeof(v->name), "%s", name);
	v->value = 0;
	memcpy(&v->value, from + (size > 8 ? size - 8 : 0), size > 8 ? 8 : size);
	if (size > 8) {
		snprintf(begin, sizeof(begin), "%.40s.begin", name);
		uvd_prog_note(r, begin, from, 8);
	}
}

void uvd_prog_note_number(struct uvd_prog_record *r, const char *name, uint64_t value)
{
	uvd_prog_note(r, name, (uint8_t *)&value, sizeof(value));
}

void uvd_prog_region_add(struct uvd_prog_record *r, const char *name, size_t at, size_t len,
			 struct uvd_shape_fields fields)
{
	struct uvd_prog_region *region = &r->regions[r->num_regions];

	if (r->num_regions == UVD_PROG_MAX_REGIONS || at + len > UVD_PROG_MAX_OUT - UVD_PROG_OUT_SLACK)
		return;
	r->num_regions++;
	snprintf(region->name, sizeof(region->name), "%s", name);
	region->at = at;
	region->len = len;
	region->fields = fields;
	if (r->out_len < at + len + UVD_PROG_OUT_SLACK)
		r->out_len = at + len + UVD_PROG_OUT_SLACK;
}

bool uvd_prog_input(const struct uvd_prog_record *r, const char *name, uint64_t *value)
{
	for (unsigned int i = 0; i < r->num_values; i++)
		if (!strcmp(r->values[i].name, name)) {
			*value = r->values[i].value;
			return true;
		}
	return false;
}

const uint8_t *uvd_prog_output_at(const struct uvd_prog_record *r, const char *name, size_t *size)
{
	for (unsigned int i = 0; i < r->num_regions; i++) {
		const struct uvd_prog_region *region = &r->regions[i];

		for (unsigned int f = 0; f < region->fields.n; f++) {
			const struct uvd_shape_field *field = &region->fields.f[f];

			if (!uvd_shape_field_is(field, name) || field->at + field->size > region->len ||
			    field->size > 8)
				continue;
			*size = field->size;
			return r->out + region->at + field->at;
		}
	}
	return NULL;
}

bool uvd_prog_output(const struct uvd_prog_record *r, const char *name, uint64_t *value)
{
	size_t size;
	const uint8_t *at = uvd_prog_output_at(r, name, &size);

	if (!at)
		return false;
	*value = 0;
	memcpy(value, at, size);
	return true;
}
