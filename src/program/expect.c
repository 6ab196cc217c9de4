/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "compare.h"
#include "expect.h"

/* ---- from a run to text ------------------------------------------------------------------------------------------ */

/* Appends an item, or nothing if it does not fit. */
static void __attribute__((format(printf, 2, 3))) expect_add(struct uvd_prog_call *call, const char *format, ...)
{
	size_t len = strlen(call->expect), room = sizeof(call->expect) - len;
	va_list ap;
	int added;

	va_start(ap, format);
	added = vsnprintf(call->expect + len, room, format, ap);
	va_end(ap);
	if (added < 0 || (size_t)added >= room)
		call->expect[len] = 0;
}

static void expect_add_bytes(struct uvd_prog_call *call, const char *name, const uint8_t *bytes, size_t len)
{
	char text[UVD_PROG_MAX_EXPECT];
	size_t at = 0;

	for (size_t n = 0; n < len && at + 3 < sizeof(text); n++)
		at += snprintf(text + at, sizeof(text) - at, "%02x", bytes[n]);
	if (len)
		expect_add(call, " %s=x%s", name, text);
}

static bool region_has_fields(const struct uvd_prog_region *region)
{
	return region->fields.n && !region->fields.stride;
}

static void region_bytes_name(const struct uvd_prog_region *region, char *name, size_t size)
{
	snprintf(name, size, "%s+0", region->name[0] ? region->name : "out");
}

static void expect_add_region(struct uvd_prog_call *call, const struct uvd_prog_record *r,
			      const struct uvd_prog_region *region)
{
	const uint8_t *bytes = r->out + region->at;
	char name[64];

	/* The driver's part says where it put its queues, which differs from run to run. */
	if (!strcmp(region->name, "uhw"))
		return;
	if (!region_has_fields(region)) {
		region_bytes_name(region, name, sizeof(name));
		expect_add_bytes(call, name, bytes, region->len);
		return;
	}
	for (unsigned int f = 0; f < region->fields.n; f++) {
		const struct uvd_shape_field *field = &region->fields.f[f];
		uint64_t value = 0;

		if (field->at + field->size > region->len)
			continue;
		if (field->size > 8) {
			expect_add_bytes(call, field->name, bytes + field->at, field->size);
			continue;
		}
		memcpy(&value, bytes + field->at, field->size);
		expect_add(call, " %s=%#llx", field->name, (unsigned long long)value);
	}
}

/* Has the call outputs, and did it write none of their bytes? */
static bool record_untouched(const struct uvd_prog_record *r)
{
	bool any = false;

	for (unsigned int i = 0; i < r->num_regions; i++)
		any |= r->regions[i].len > 0;
	for (uint32_t n = 0; n < r->out_len; n++)
		if (r->out[n] != UVD_PROG_UNTOUCHED)
			return false;
	return any;
}

static void expect_add_outputs(struct uvd_prog_call *call, const struct uvd_prog_record *r)
{
	if (r->new_at)
		expect_add(call, " handle=%#x", (uint32_t)((const struct ib_uverbs_attr *)(r->msg + r->new_at))->data);
	if (record_untouched(r)) {
		expect_add(call, " untouched");
		return;
	}
	for (unsigned int i = 0; r->ret >= 0 && i < r->num_regions; i++)
		expect_add_region(call, r, &r->regions[i]);
}

void uvd_prog_expect_record(struct uvd_prog *p, const struct uvd_prog_run *run)
{
	for (unsigned int i = 0; i < p->num_calls; i++) {
		const struct uvd_prog_record *r = &run->records[i];
		struct uvd_prog_call *call = &p->calls[i];

		call->expect[0] = 0;
		if (!r->done)
			continue;
		if (r->ret == r->full && !r->err)
			expect_add(call, "ok");
		else if (r->ret == -1 && strerrorname_np(r->err))
			expect_add(call, "%s", strerrorname_np(r->err));
		else
			expect_add(call, "%ld/%d", r->ret, r->err);
		expect_add_outputs(call, r);
	}
}

/* ---- from text to a run ------------------------------------------------------------------------------------------ */

static int errno_of(const char *name)
{
	for (int err = 1; err < 200; err++)
		if (strerrorname_np(err) && !strcmp(strerrorname_np(err), name))
			return err;
	return 0;
}

static bool expect_result(struct uvd_prog_record *r, const char *word)
{
	char *end;

	r->done = true;
	r->ret = r->full;
	r->err = 0;
	if (!strcmp(word, "ok"))
		return true;
	r->ret = -1;
	r->err = errno_of(word);
	if (r->err)
		return true;
	r->ret = strtol(word, &end, 10);
	r->err = *end == '/' ? atoi(end + 1) : 0;
	return end > word;
}

/* A value replaces bytes of the record: hexadecimal ones in order, or a number. */
static void expect_put(uint8_t *to, size_t size, const char *text)
{
	uint64_t value = strtoull(text, NULL, 0);

	if (*text == 'x')
		uvd_prog_bytes_of(to, size, text + 1);
	else
		memcpy(to, &value, size < 8 ? size : 8);
}

/* Returns false if the region has no such output. */
static bool expect_in_region(struct uvd_prog_record *r, struct uvd_prog_region *region, const char *name,
			     const char *text)
{
	uint8_t *bytes = r->out + region->at;
	char all[64];

	region_bytes_name(region, all, sizeof(all));
	/* Results that were recorded before their fields had names are the bytes of the region. */
	if (!strcmp(all, name)) {
		expect_put(bytes, region->len, text);
		return true;
	}
	for (unsigned int f = 0; region_has_fields(region) && f < region->fields.n; f++) {
		const struct uvd_shape_field *field = &region->fields.f[f];

		if (!uvd_shape_field_is(field, name) || field->at + field->size > region->len)
			continue;
		region->named |= 1ull << (field - region->fields.f) % 64;
		expect_put(bytes + field->at, field->size, text);
		return true;
	}
	return false;
}

static bool expect_output(struct uvd_prog_record *r, char *item, bool failed)
{
	char *text = strchr(item, '=');

	if (!strcmp(item, "untouched")) {
		memset(r->out, UVD_PROG_UNTOUCHED, r->out_len);
		return true;
	}
	if (!text)
		return false;
	*text++ = 0;
	if (r->new_at && !strcmp(item, "handle")) {
		__u64 *data = &((struct ib_uverbs_attr *)(r->msg + r->new_at))->data;

		*data = (*data & ~0xffffffffull) | (uint32_t)strtoull(text, NULL, 0);
		return true;
	}
	for (unsigned int i = 0; i < r->num_regions; i++)
		if (expect_in_region(r, &r->regions[i], item, text))
			return true;
	/* A call that failed has fewer outputs than the one that was recorded: the result differs, and that is enough. */
	return failed || !r->num_regions;
}

/* Nothing may write behind the outputs. */
static void expect_nothing_beyond(struct uvd_prog_record *r)
{
	static uint8_t out[UVD_PROG_MAX_OUT];

	memset(out, UVD_PROG_UNTOUCHED, sizeof(out));
	for (unsigned int i = 0; i < r->num_regions; i++)
		memcpy(out + r->regions[i].at, r->out + r->regions[i].at, r->regions[i].len);
	memcpy(r->out, out, r->out_len);
}

static const char *expect_call(struct uvd_prog_record *r, const char *text)
{
	static char copy[UVD_PROG_MAX_EXPECT];
	const bool failed = r->ret < 0;
	char *save, *word;

	snprintf(copy, sizeof(copy), "%s", text);
	word = strtok_r(copy, " \t", &save);
	if (!word || !expect_result(r, word))
		return "no such result";
	expect_nothing_beyond(r);
	while ((word = strtok_r(NULL, " \t", &save)))
		if (!expect_output(r, word, failed))
			return "no such output";
	return NULL;
}

static void expect_none_named(struct uvd_prog_record *r)
{
	for (unsigned int i = 0; i < r->num_regions; i++) {
		r->regions[i].is_expected = true;
		r->regions[i].named = 0;
	}
}

const char *uvd_prog_expect_run(const struct uvd_prog *p, const struct uvd_prog_run *actual,
				struct uvd_prog_run *expected, unsigned int *at)
{
	memcpy(expected, actual, sizeof(*expected));
	for (*at = 0; *at < p->num_calls; (*at)++) {
		expect_none_named(&expected->records[*at]);
		const char *text = p->calls[*at].expect;
		const char *wrong = *text ? expect_call(&expected->records[*at], text) : NULL;

		if (wrong)
			return wrong;
	}
	return NULL;
}
